import java.io.FileOutputStream;
import java.lang.management.ManagementFactory;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Requests of known cost: `java Staged.java burn_us=80 calls=0 bytes=0 hand=0 lock_us=0`. Twice a second it prints:
 * requests, CPU ns of the process, CPU ns of the application by its thread's own clock.
 */
public final class Staged {
    private static final AtomicLong burned = new AtomicLong(), requests = new AtomicLong();
    private static final Object lock = new Object();
    private static volatile long sink;
    private static volatile byte[] kept;

    public static void main(String[] arguments) throws Exception {
        long burnUs = 0, calls = 0, bytes = 0, hand = 0, lockUs = 0;
        for (String one : arguments) {
            long value = Long.parseLong(one.substring(one.indexOf('=') + 1));
            switch (one.substring(0, one.indexOf('='))) {
                case "burn_us" -> burnUs = value;
                case "calls" -> calls = value;
                case "bytes" -> bytes = value;
                case "hand" -> hand = value;
                case "lock_us" -> lockUs = value;
                default -> throw new IllegalArgumentException(one);
            }
        }
        serve(burnUs, calls, bytes, hand, lockUs);
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        while (true) {
            Thread.sleep(500);
            System.out.println(requests.get() + " " + system.getProcessCpuTime() + " " + burned.get());
        }
    }

    private static void serve(long burnUs, long calls, long bytes, long hand, long lockUs) {
        var work = new SynchronousQueue<Integer>();
        var done = new SynchronousQueue<Integer>();
        start("other", () -> {
            while (true) {
                done.put(work.take());
            }
        });
        if (lockUs > 0) {
            start("holder", () -> {
                while (true) {
                    synchronized (lock) {
                        Thread.sleep(0, (int) lockUs * 1000);
                    }
                }
            });
        }
        start("worker", () -> {
            var threads = ManagementFactory.getThreadMXBean();
            long rounds = calibrated(burnUs);
            try (var null_ = new FileOutputStream("/dev/null")) {
                while (true) {
                    long begun = threads.getCurrentThreadCpuTime();
                    sink += burn(rounds);
                    for (long left = bytes; left > 0; left -= 1024) {
                        kept = new byte[1008]; // and a header of 16
                    }
                    burned.addAndGet(threads.getCurrentThreadCpuTime() - begun);
                    for (long at = 0; at < calls; at++) {
                        null_.write(1);
                    }
                    for (long at = 0; at < hand; at++) {
                        work.put(1);
                        done.take();
                    }
                    if (lockUs > 0) {
                        synchronized (lock) {
                            sink++;
                        }
                    }
                    requests.incrementAndGet();
                }
            }
        });
    }

    /** Rounds of burn() that take this many microseconds once it is compiled. */
    private static long calibrated(long burnUs) {
        long best = Long.MAX_VALUE;
        for (int at = 0; at < 200; at++) {
            long begun = System.nanoTime();
            sink += burn(100_000);
            best = Math.min(best, System.nanoTime() - begun);
        }
        return burnUs * 1000 * 100_000 / best;
    }

    private static long burn(long rounds) {
        long value = sink | 1;
        for (long at = 0; at < rounds; at++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
            value ^= value >>> 29;
        }
        return value;
    }

    private interface Task {
        void run() throws Exception;
    }

    private static void start(String name, Task task) {
        var thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception fault) {
                fault.printStackTrace();
                System.exit(1);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
