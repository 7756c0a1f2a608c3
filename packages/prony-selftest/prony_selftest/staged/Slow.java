import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A server that stops on a schedule: {@code java Slow.java collect_ms=500 ballast_mib=40 sleep_each=700 sleep_ms=60}.
 * The whole heap is collected at random intervals with this mean; one request in sleep_each sleeps. With
 * {@code lock_each=300 lock_ms=20} a thread holds a lock, which every request needs, for lock_ms about every lock_each
 * ms. 0 switches off. The first output line is the port.
 */
public final class Slow {
    private static final AtomicLong requests = new AtomicLong();
    private static List<Object[]> ballast;
    private static final Gate gate = new Gate();
    private static long passed;

    /** What requests wait for. */
    private static final class Gate {}

    public static void main(String[] arguments) throws Exception {
        long collectMs = 0, ballastMib = 0, sleepEach = 0, sleepMs = 0, lockEach = 0, lockMs = 0;
        for (String one : arguments) {
            long value = Long.parseLong(one.substring(one.indexOf('=') + 1));
            switch (one.substring(0, one.indexOf('='))) {
                case "collect_ms" -> collectMs = value;
                case "ballast_mib" -> ballastMib = value;
                case "sleep_each" -> sleepEach = value;
                case "sleep_ms" -> sleepMs = value;
                case "lock_each" -> lockEach = value;
                case "lock_ms" -> lockMs = value;
                default -> throw new IllegalArgumentException(one);
            }
        }
        ballast = new ArrayList<>();
        for (long left = ballastMib << 20; left > 0; left -= 64) {
            ballast.add(new Object[8]);
        }
        if (lockEach > 0) {
            hold(lockEach, lockMs);
        }
        serve(sleepEach, sleepMs, lockEach > 0);
        var random = new Random(18);
        while (true) {
            Thread.sleep(collectMs > 0 ? collectMs / 2 + random.nextLong(collectMs) : 1000);
            if (collectMs > 0) {
                System.gc();
            }
        }
    }

    private static void hold(long eachMs, long ms) {
        var random = new Random(81);
        var holder = new Thread(() -> {
            try {
                while (true) {
                    Thread.sleep(eachMs / 2 + random.nextLong(eachMs));
                    synchronized (gate) {
                        Thread.sleep(ms);
                    }
                }
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
            }
        });
        holder.setDaemon(true);
        holder.start();
    }

    private static void serve(long sleepEach, long sleepMs, boolean locks) throws Exception {
        byte[] body = "Hello\n".getBytes();
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            if (locks) {
                synchronized (gate) {
                    passed++;
                }
            }
            if (sleepEach > 0 && requests.incrementAndGet() % sleepEach == 0) {
                try {
                    Thread.sleep(sleepMs);
                } catch (InterruptedException end) {
                    Thread.currentThread().interrupt();
                }
            }
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
