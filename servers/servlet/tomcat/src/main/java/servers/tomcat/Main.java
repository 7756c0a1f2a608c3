// SPDX-License-Identifier: Apache-2.0
package servers.tomcat;

import jakarta.servlet.Servlet;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.servlets.DefaultServlet;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import servers.pages.AsyncDelayServlet;
import servers.pages.DelayServlet;
import servers.pages.HelloServlet;
import servers.pages.JsonServlet;
import servers.pages.LargeServlet;
import servers.pages.Options;
import servers.pages.PingServlet;

/** The pages on embedded Tomcat with its default connector. */
public final class Main {

    /** The implementation of TLS that calls OpenSSL through the foreign function interface of Java 22 and newer. */
    private static final String OPENSSL = "org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation";

    public static void main(String[] args) throws LifecycleException {
        Options options =
                Options.parse(args, "host", "port", "static", "mode", "threads", "tls", "keystore", "password",
                        "http2", "connections");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
        tomcat.setConnector(connector(options));

        Context context = tomcat.addContext("", options.get("static"));
        // addContext gives no defaults: the types of files and the servlet for them are named here.
        Tomcat.addDefaultMimeTypeMappings(context);
        add(context, "default", new DefaultServlet(), "/");
        add(context, "hello", new HelloServlet(), "");
        add(context, "delay", options.get("mode").equals("async") ? new AsyncDelayServlet() : new DelayServlet(),
                "/delay");
        add(context, "ping", new PingServlet(), "/Ping/PingServlet");
        add(context, "json", new JsonServlet(), "/json");
        add(context, "large", new LargeServlet(), "/large");

        tomcat.start();
        tomcat.getServer().await();
    }

    private static void add(Context context, String name, Servlet servlet, String pattern) {
        Tomcat.addServlet(context, name, servlet).setAsyncSupported(true);
        context.addServletMappingDecoded(pattern, name);
    }

    private static Connector connector(Options options) {
        Connector connector = new Connector();
        connector.setPort(options.number("port"));
        set(connector, "address", options.get("host"));
        set(connector, "maxThreads", options.get("threads"));
        if (options.has("connections")) {
            set(connector, "maxConnections", options.get("connections"));
        }
        if (options.get("mode").equals("virtual")) {
            set(connector, "useVirtualThreads", "true");
        }
        if (options.has("tls")) {
            secure(connector, options);
        }
        if (options.has("http2")) {
            connector.addUpgradeProtocol(http2(options));
        }
        return connector;
    }

    /** As many streams at once as asked for, and as many of them served at once as there are threads. */
    private static Http2Protocol http2(Options options) {
        Http2Protocol protocol = new Http2Protocol();
        protocol.setMaxConcurrentStreams(options.number("http2"));
        protocol.setMaxConcurrentStreamExecution(options.number("threads"));
        return protocol;
    }

    private static void secure(Connector connector, Options options) {
        connector.setScheme("https");
        connector.setSecure(true);
        set(connector, "SSLEnabled", "true");
        if (options.get("tls").equals("openssl")) {
            set(connector, "sslImplementationName", OPENSSL);
        }
        SSLHostConfig config = new SSLHostConfig();
        SSLHostConfigCertificate certificate =
                new SSLHostConfigCertificate(config, SSLHostConfigCertificate.Type.UNDEFINED);
        certificate.setCertificateKeystoreFile(options.get("keystore"));
        certificate.setCertificateKeystorePassword(options.get("password"));
        config.addCertificate(certificate);
        connector.addSslHostConfig(config);
    }

    private static void set(Connector connector, String name, String value) {
        if (!connector.setProperty(name, value)) {
            throw new IllegalArgumentException("this Tomcat has no attribute " + name + " for its connector");
        }
    }
}
