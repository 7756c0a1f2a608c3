// SPDX-License-Identifier: Apache-2.0
package servers.undertow;

import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.handlers.resource.PathResourceManager;
import io.undertow.servlet.Servlets;
import io.undertow.servlet.api.DeploymentInfo;
import io.undertow.servlet.api.DeploymentManager;
import io.undertow.servlet.api.ServletInfo;
import jakarta.servlet.Servlet;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import servers.pages.AsyncDelayServlet;
import servers.pages.DelayServlet;
import servers.pages.HelloServlet;
import servers.pages.JsonServlet;
import servers.pages.LargeServlet;
import servers.pages.Options;
import servers.pages.PingServlet;

/** The pages on embedded Undertow with its default worker. */
public final class Main {

    public static void main(String[] args) throws Exception {
        Options options = Options.parse(
                args, "host", "port", "static", "mode", "tls", "keystore", "password", "http2");
        DeploymentInfo deployment = Servlets.deployment()
                .setClassLoader(Main.class.getClassLoader())
                .setContextPath("/")
                .setDeploymentName("pages")
                .setResourceManager(new PathResourceManager(Path.of(options.get("static")).toRealPath()))
                .addServlets(
                        servlet(HelloServlet.class, ""),
                        servlet(options.get("mode").equals("async") ? AsyncDelayServlet.class : DelayServlet.class,
                                "/delay"),
                        servlet(PingServlet.class, "/Ping/PingServlet"),
                        servlet(JsonServlet.class, "/json"),
                        servlet(LargeServlet.class, "/large"));
        if (options.get("mode").equals("virtual")) {
            deployment.setExecutor(virtualThreads());
        }
        DeploymentManager manager = Servlets.defaultContainer().addDeployment(deployment);
        manager.deploy();

        Undertow.Builder server = Undertow.builder().setHandler(manager.start());
        if (options.has("http2")) {
            server.setServerOption(UndertowOptions.ENABLE_HTTP2, true);
        }
        if (options.has("tls")) {
            server.addHttpsListener(options.number("port"), options.get("host"), tls(options));
        } else {
            server.addHttpListener(options.number("port"), options.get("host"));
        }
        server.build().start();
    }

    private static ServletInfo servlet(Class<? extends Servlet> type, String pattern) {
        return Servlets.servlet(type.getSimpleName(), type).addMapping(pattern).setAsyncSupported(true);
    }

    /** By reflection, because the classes are compiled for Java 17, where it does not exist. */
    private static Executor virtualThreads() throws ReflectiveOperationException {
        return (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    }

    private static SSLContext tls(Options options) throws Exception {
        char[] password = options.get("password").toCharArray();
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream file = Files.newInputStream(Path.of(options.get("keystore")))) {
            store.load(file, password);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }
}
