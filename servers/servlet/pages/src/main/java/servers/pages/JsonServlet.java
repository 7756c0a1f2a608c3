// SPDX-License-Identifier: Apache-2.0
package servers.pages;

import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** An object with one field, serialised anew for every request. */
public class JsonServlet extends HttpServlet {

    private static final long serialVersionUID = 1L;

    private final transient ObjectMapper mapper = new ObjectMapper();

    record Greeting(String message) {
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentType("application/json");
        mapper.writeValue(response.getOutputStream(), new Greeting("Hello, World!"));
    }
}
