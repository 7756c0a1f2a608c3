// SPDX-License-Identifier: Apache-2.0
package servers.glassfish;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
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

    /** As GlassFish comes. */
    private static final char[] MASTER_PASSWORD = "changeit".toCharArray();
    private static final String KEY = "s1as";
    private static final String STORE = "/config/keystore.jks";

    private final Document document;

    Domain() throws Exception {
        try (InputStream original = Domain.class.getResourceAsStream(ORIGINAL)) {
            if (original == null) {
                throw new IOException("this GlassFish has no " + ORIGINAL);
            }
            document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(original);
        }
    }

    /** On a listener in clear text or the one over TLS; the other is not enabled. */
    void listen(String host, int port, boolean tls) {
        Element listener = named("network-listener", tls ? "https-listener" : "http-listener");
        listener.setAttribute("address", host);
        listener.setAttribute("port", Integer.toString(port));
        listener.setAttribute("enabled", "true");
    }

    /** How many streams of HTTP/2, which both listeners speak as they come, are taken at once on a connection. */
    void streams(int most) {
        for (String protocol : new String[] {"http-listener", "https-listener"}) {
            Element http = (Element) named("protocol", protocol).getElementsByTagName("http").item(0);
            http.setAttribute("http2-max-concurrent-streams", Integer.toString(most));
        }
    }

    /**
     * The key of this store for the listener over TLS. GlassFish opens stores with its master password alone, looks for
     * entries of its own in them, and takes their path from a property of the JVM: it gets a copy of its own store
     * with this key in place of its own.
     */
    void key(Path store, char[] password) throws Exception {
        KeyStore given = KeyStore.getInstance(store.toFile(), password);
        String alias = given.aliases().nextElement();
        KeyStore own = KeyStore.getInstance("JKS");
        try (InputStream original = Domain.class.getResourceAsStream(STORE)) {
            if (original == null) {
                throw new IOException("this GlassFish has no " + STORE);
            }
            own.load(original, MASTER_PASSWORD);
        }
        own.setKeyEntry(KEY, given.getKey(alias, password), MASTER_PASSWORD, given.getCertificateChain(alias));
        Path copy = Files.createTempFile("keystore", ".jks");
        try (OutputStream out = Files.newOutputStream(copy)) {
            own.store(out, MASTER_PASSWORD);
        }
        String property = "-Djavax.net.ssl.keyStore=";
        NodeList options = document.getElementsByTagName("jvm-options");
        for (int i = 0; i < options.getLength(); i++) {
            if (options.item(i).getTextContent().startsWith(property)) {
                options.item(i).setTextContent(property + copy);
            }
        }
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
