// SPDX-License-Identifier: Apache-2.0
package servers.agent;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Opens a Unix domain socket and answers each line {@code snapshot} with one line of JSON: what the platform MXBeans say
 * at that moment. Must not know the application, and must not disturb it: one daemon thread, asleep between readings,
 * and no fault of its own ever leaves this class.
 *
 * <p>{@code -javaagent:agent.jar=/path/of/the/socket}
 */
public final class Agent implements Runnable {

    /** No request is longer; a longer line is not ours and ends the connection. */
    private static final int LONGEST_LINE = 64;

    private final ServerSocketChannel server;

    private Agent(ServerSocketChannel server) {
        this.server = server;
    }

    /** Called by the JVM before {@code main}; the argument is the path of the socket to create. */
    public static void premain(String path) {
        try {
            if (path == null || path.isEmpty()) {
                complain("no socket path was given", "use -javaagent:agent.jar=/path/of/the/socket");
                return;
            }
            Thread thread = new Thread(null, new Agent(open(path)), "agent", 0, false);
            thread.setDaemon(true);
            thread.start();
        } catch (Throwable fault) {
            // The application goes on without readings; a fault here would otherwise end the JVM before main.
            complain("cannot listen on " + path + " (" + fault + ")",
                    "the path must not exist, its folder must be writable, and it may have 107 bytes at most");
        }
    }

    private static ServerSocketChannel open(String path) throws IOException {
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            server.bind(UnixDomainSocketAddress.of(Path.of(path)));
            return server;
        } catch (Throwable fault) {
            server.close();
            throw fault;
        }
    }

    private static void complain(String what, String remedy) {
        System.err.println("agent: " + what + "; the server runs without it: " + remedy);
    }

    /** One connection after the other; whatever goes wrong ends that connection and nothing else. */
    @Override
    public void run() {
        Snapshot snapshot = null;
        ByteBuffer line = ByteBuffer.allocate(LONGEST_LINE);
        while (server.isOpen()) {
            try (SocketChannel client = server.accept()) {
                if (snapshot == null) {
                    // On the first question, not before: until then nothing of the management classes is loaded.
                    snapshot = new Snapshot();
                }
                serve(client, line.clear(), snapshot);
            } catch (Throwable fault) {
                pause();
            }
        }
    }

    private static void serve(SocketChannel client, ByteBuffer line, Snapshot snapshot) throws IOException {
        while (line.hasRemaining() && client.read(line) >= 0) {
            if (line.position() == 0 || line.get(line.position() - 1) != '\n') {
                continue;
            }
            String question = new String(line.array(), 0, line.position() - 1, StandardCharsets.ISO_8859_1);
            if (!question.equals("snapshot")) {
                return;
            }
            ByteBuffer answer = ByteBuffer.wrap(snapshot.json().getBytes(StandardCharsets.UTF_8));
            while (answer.hasRemaining()) {
                client.write(answer);
            }
            line.clear();
        }
    }

    /** Keeps a fault that comes back at once (no descriptors left) from turning into a busy loop. */
    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException ignored) {
            // Nobody interrupts this thread on purpose; going on is right.
        }
    }
}
