// SPDX-License-Identifier: Apache-2.0
package servers.jetty;

import jakarta.servlet.http.HttpServlet;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.ee11.servlet.DefaultServlet;
import org.eclipse.jetty.ee11.servlet.ServletContextHandler;
import org.eclipse.jetty.ee11.servlet.ServletHolder;
import org.eclipse.jetty.http2.server.AbstractHTTP2ServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import servers.pages.AsyncDelayServlet;
import servers.pages.DelayServlet;
import servers.pages.HelloServlet;
import servers.pages.JsonServlet;
import servers.pages.LargeServlet;
import servers.pages.Options;
import servers.pages.PingServlet;

/** The pages on embedded Jetty with its default thread pool. */
public final class Main {

    public static void main(String[] args) throws Exception {
        Options options = Options.parse(
                args, "host", "port", "static", "mode", "threads", "tls", "keystore", "password", "http2");
        QueuedThreadPool threads = new QueuedThreadPool(options.number("threads"));
        if (options.get("mode").equals("virtual")) {
            threads.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        }
        Server server = new Server(threads);
        server.addConnector(connector(server, options));

        ServletContextHandler context = new ServletContextHandler("/");
        context.setBaseResourceAsPath(Path.of(options.get("static")).toRealPath());
        add(context, new DefaultServlet(), "/");
        add(context, new HelloServlet(), "");
        add(context, options.get("mode").equals("async") ? new AsyncDelayServlet() : new DelayServlet(), "/delay");
        add(context, new PingServlet(), "/Ping/PingServlet");
        add(context, new JsonServlet(), "/json");
        add(context, new LargeServlet(), "/large");
        server.setHandler(context);

        server.start();
        server.join();
    }

    private static void add(ServletContextHandler context, HttpServlet servlet, String pattern) {
        ServletHolder holder = new ServletHolder(servlet);
        holder.setAsyncSupported(true);
        context.addServlet(holder, pattern);
    }

    private static ServerConnector connector(Server server, Options options) {
        HttpConfiguration config = new HttpConfiguration();
        HttpConnectionFactory http = new HttpConnectionFactory(config);
        List<ConnectionFactory> protocols = new ArrayList<>();
        if (options.has("tls")) {
            config.addCustomizer(new SecureRequestCustomizer());
            SslContextFactory.Server tls = new SslContextFactory.Server();
            tls.setKeyStorePath(options.get("keystore"));
            tls.setKeyStorePassword(options.get("password"));
            if (options.has("http2")) {
                // A client that names no version by ALPN gets HTTP/1.1.
                ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory();
                alpn.setDefaultProtocol(http.getProtocol());
                protocols.add(new SslConnectionFactory(tls, alpn.getProtocol()));
                protocols.add(alpn);
                protocols.add(streams(new HTTP2ServerConnectionFactory(config), options));
                protocols.add(http);
            } else {
                protocols.add(new SslConnectionFactory(tls, http.getProtocol()));
                protocols.add(http);
            }
        } else {
            // The first bytes of a connection say whether it is HTTP/2.
            protocols.add(http);
            if (options.has("http2")) {
                protocols.add(streams(new HTTP2CServerConnectionFactory(config), options));
            }
        }
        ServerConnector connector = new ServerConnector(server, protocols.toArray(new ConnectionFactory[0]));
        connector.setHost(options.get("host"));
        connector.setPort(options.number("port"));
        return connector;
    }

    /** As many streams at once on a connection as asked for. */
    private static ConnectionFactory streams(AbstractHTTP2ServerConnectionFactory http2, Options options) {
        http2.setMaxConcurrentStreams(options.number("http2"));
        return http2;
    }
}
