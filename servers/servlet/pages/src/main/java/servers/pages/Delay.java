// SPDX-License-Identifier: Apache-2.0
package servers.pages;

import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;

/** What both ways to wait have in common: how long, and the page that is sent afterwards. */
final class Delay {

    private static final int LONGEST_MS = 60_000;

    private Delay() {
    }

    /** The query parameter {@code ms}, 150 without one; -1 when it is not a time of at most a minute. */
    static int millis(HttpServletRequest request) {
        String asked = request.getParameter("ms");
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

    static void answer(ServletResponse response) throws IOException {
        response.setContentType("text/html;charset=UTF-8");
        response.getWriter().print("Hello World!");
    }
}
