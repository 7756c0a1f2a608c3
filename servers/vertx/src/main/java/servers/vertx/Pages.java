// SPDX-License-Identifier: Apache-2.0
package servers.vertx;

import io.vertx.core.Future;
import io.vertx.core.Handler;
import io.vertx.core.VerticleBase;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.json.JsonObject;
import io.vertx.core.net.PfxOptions;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import java.util.Map;

/** An HTTP server with a router; nothing in it blocks its event loop. */
final class Pages extends VerticleBase {

    private static final int LONGEST_MS = 60_000;

    private final Map<String, String> options;
    private final Buffer large = Buffer.buffer("0123456789abcdef".repeat(65_536));

    Pages(Map<String, String> options) {
        this.options = options;
    }

    @Override
    public Future<?> start() {
        Router router = Router.router(vertx);
        page(router, "/", context ->
                context.response().putHeader("Content-Type", "text/plain; charset=utf-8").end("Hello, World!"));
        page(router, "/delay", this::delay);
        page(router, "/Ping/PingServlet", Pages::ping);
        page(router, "/json", context -> context.json(new JsonObject().put("message", "Hello, World!")));
        page(router, "/large", context ->
                context.response().putHeader("Content-Type", "application/octet-stream").end(large));
        router.route().handler(StaticHandler.create(FileSystemAccess.ROOT, options.get("static")));

        HttpServerOptions http = new HttpServerOptions();
        if (options.containsKey("keystore")) {
            // Without ALPN no client can ask for another version than HTTP/1.1.
            http.setSsl(true).setUseAlpn(options.containsKey("http2")).setKeyCertOptions(
                    new PfxOptions().setPath(options.get("keystore")).setPassword(options.get("password")));
        }
        if (options.containsKey("http2")) {
            http.getInitialSettings().setMaxConcurrentStreams(Long.parseLong(options.get("http2")));
        }
        return vertx.createHttpServer(http)
                .requestHandler(router)
                .listen(Integer.parseInt(options.get("port")), options.get("host"));
    }

    private static void page(Router router, String path, Handler<RoutingContext> handler) {
        router.route(path).method(HttpMethod.GET).method(HttpMethod.HEAD).handler(handler);
    }

    private void delay(RoutingContext context) {
        int millis = millis(context.request().getParam("ms"));
        if (millis < 0) {
            context.fail(400);
        } else if (millis == 0) {
            // A timer needs at least a millisecond.
            answer(context);
        } else {
            vertx.setTimer(millis, timer -> answer(context));
        }
    }

    private static void answer(RoutingContext context) {
        context.response().putHeader("Content-Type", "text/html; charset=utf-8").end("Hello World!");
    }

    private static int millis(String asked) {
        if (asked == null) {
            return 150;
        }
        try {
            int millis = Integer.parseInt(asked);
            return millis <= LONGEST_MS ? Math.max(-1, millis) : -1;
        } catch (NumberFormatException fault) {
            return -1;
        }
    }

    private static void ping(RoutingContext context) {
        context.response()
                .putHeader("Content-Type", "text/html; charset=utf-8")
                .end("<html><head><title>Ping</title></head>\n"
                        + "<body><h1>Ping</h1>\n"
                        + "<p>The servlet is alive.</p>\n"
                        + "</body></html>\n");
    }
}
