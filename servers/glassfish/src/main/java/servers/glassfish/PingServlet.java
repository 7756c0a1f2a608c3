// SPDX-License-Identifier: Apache-2.0
package servers.glassfish;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;

/** Prints four strings of HTML. */
public class PingServlet extends HttpServlet {

    private static final long serialVersionUID = 1L;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentType("text/html;charset=UTF-8");
        PrintWriter out = response.getWriter();
        out.print("<html><head><title>Ping</title></head>\n");
        out.print("<body><h1>Ping</h1>\n");
        out.print("<p>The servlet is alive.</p>\n");
        out.print("</body></html>\n");
    }
}
