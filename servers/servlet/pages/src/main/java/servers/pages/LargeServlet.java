// SPDX-License-Identifier: Apache-2.0
package servers.pages;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** One MiB from memory: the sixteen hexadecimal digits again and again. */
public class LargeServlet extends HttpServlet {

    private static final long serialVersionUID = 1L;

    private final transient byte[] body = "0123456789abcdef".repeat(65_536).getBytes(StandardCharsets.US_ASCII);

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentType("application/octet-stream");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
