// SPDX-License-Identifier: Apache-2.0
package servers.glassfish;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** GlassFish's own configuration for embedded use, with a few values set in it before the server reads it. */
final class Domain {

    private static final String ORIGINAL = "/org/glassfish/embed/domain.xml";

    private final Document document;

    Domain() throws Exception {
        try (InputStream original = Domain.class.getResourceAsStream(ORIGINAL)) {
            if (original == null) {
                throw new IOException("this GlassFish has no " + ORIGINAL);
            }
            document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(original);
        }
    }

    void listen(String host, int port) {
        Element listener = named("network-listener", "http-listener");
        listener.setAttribute("address", host);
        listener.setAttribute("port", Integer.toString(port));
        listener.setAttribute("enabled", "true");
    }

    /** Threads that accept connections. */
    void acceptors(int count) {
        named("transport", "tcp").setAttribute("acceptor-threads", Integer.toString(count));
    }

    /** Threads that answer requests. */
    void workers(int count) {
        Element pool = named("thread-pool", "http-thread-pool");
        pool.setAttribute("min-thread-pool-size", Integer.toString(count));
        pool.setAttribute("max-thread-pool-size", Integer.toString(count));
    }

    Path write(Path file) throws Exception {
        TransformerFactory.newInstance().newTransformer()
                .transform(new DOMSource(document), new StreamResult(file.toFile()));
        return file;
    }

    private Element named(String tag, String name) {
        NodeList found = document.getElementsByTagName(tag);
        for (int i = 0; i < found.getLength(); i++) {
            Element element = (Element) found.item(i);
            if (element.getAttribute("name").equals(name)) {
                return element;
            }
        }
        throw new IllegalStateException("this GlassFish has no <" + tag + " name=\"" + name + "\">");
    }
}
