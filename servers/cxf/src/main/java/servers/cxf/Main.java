// SPDX-License-Identifier: Apache-2.0
package servers.cxf;

import com.fasterxml.jackson.jakarta.rs.base.JsonMappingExceptionMapper;
import com.fasterxml.jackson.jakarta.rs.base.JsonParseExceptionMapper;
import com.fasterxml.jackson.jakarta.rs.json.JacksonJsonProvider;
import java.util.List;
import org.apache.cxf.jaxrs.JAXRSServerFactoryBean;
import org.apache.cxf.jaxrs.lifecycle.SingletonResourceProvider;

/** Publishes the customer service at {@code http://HOST:PORT/} by CXF's Jetty transport with its defaults. */
public final class Main {

    public static void main(String[] args) {
        if (args.length != 2) {
            System.err.println("expected two words, HOST and PORT, found " + args.length);
            System.exit(2);
        }
        JAXRSServerFactoryBean server = new JAXRSServerFactoryBean();
        server.setResourceClasses(CustomerService.class);
        server.setResourceProvider(CustomerService.class,
                new SingletonResourceProvider(new CustomerService(new Customers())));
        // The mappers answer a body that is not right with 400; without them it would be 500.
        server.setProviders(List.of(
                new JacksonJsonProvider(), new JsonParseExceptionMapper(), new JsonMappingExceptionMapper()));
        server.setAddress("http://" + args[0] + ":" + args[1] + "/");
        server.create();
    }
}
