// SPDX-License-Identifier: Apache-2.0
package servers.cxf;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import jakarta.xml.bind.annotation.XmlRootElement;
import jakarta.xml.bind.annotation.XmlType;

/** A customer as it travels: {@code {"id":123,"name":"John"}} or the same as XML. */
@XmlRootElement(name = "Customer")
@XmlType(propOrder = {"id", "name"})
@JsonPropertyOrder({"id", "name"})
public class Customer {

    private long id;
    private String name;

    public Customer() {
        // for JAXB and Jackson
    }

    Customer(long id, String name) {
        this.id = id;
        this.name = name;
    }

    public long getId() {
        return id;
    }

    public void setId(long id) {
        this.id = id;
    }

    public String getName() {
        return name;
    }

    public void setName(String name) {
        this.name = name;
    }
}
