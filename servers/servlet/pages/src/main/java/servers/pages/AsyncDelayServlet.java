// SPDX-License-Identifier: Apache-2.0
package servers.pages;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Answers after a while; no thread waits, a timer completes the request. */
public class AsyncDelayServlet extends HttpServlet {

    private static final long serialVersionUID = 1L;

    private transient ScheduledExecutorService timer;

    @Override
    public void init() {
        timer = Executors.newScheduledThreadPool(Runtime.getRuntime().availableProcessors());
    }

    @Override
    public void destroy() {
        timer.shutdownNow();
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        int millis = Delay.millis(request);
        if (millis < 0) {
            response.sendError(HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        AsyncContext context = request.startAsync();
        // The container's own limit (30 s) would cut longer delays short.
        context.setTimeout(0);
        timer.schedule(() -> complete(context), millis, TimeUnit.MILLISECONDS);
    }

    private void complete(AsyncContext context) {
        try {
            Delay.answer(context.getResponse());
        } catch (IOException gone) {
            log("the client has gone", gone);
        } finally {
            context.complete();
        }
    }
}
