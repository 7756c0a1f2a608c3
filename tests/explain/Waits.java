// SPDX-License-Identifier: Apache-2.0
import java.io.FileWriter;
import java.io.PrintWriter;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Two locks, each held for 200 ms again and again, and a thread that waits for each. A line for each wait in the file
 * that is named: the thread, and System.nanoTime() before it asks for the lock and after it got it.
 */
public final class Waits {
    private static final long HELD_MS = 200;
    private static final Gate gate = new Gate();
    private static final ReentrantLock lock = new ReentrantLock();
    private static PrintWriter told;
    private static long passed;

    private static final class Gate {}

    private static void forGate() {
        synchronized (gate) {
            passed++;
        }
    }

    private static void forLock() {
        lock.lock();
        try {
            passed++;
        } finally {
            lock.unlock();
        }
    }

    private static void holdGate() throws InterruptedException {
        synchronized (gate) {
            Thread.sleep(HELD_MS);
        }
        Thread.sleep(20);
    }

    private static void holdLock() throws InterruptedException {
        lock.lock();
        try {
            Thread.sleep(HELD_MS);
        } finally {
            lock.unlock();
        }
        Thread.sleep(20);
    }

    private static void waits(String name, Runnable asks) {
        long before = System.nanoTime();
        asks.run();
        long after = System.nanoTime();
        if (after - before > HELD_MS * 1_000_000 / 4) {
            synchronized (told) {
                told.println(name + " " + before + " " + after);
                told.flush();
            }
        }
    }

    private interface Step {
        void take() throws Exception;
    }

    private static void again(String name, Step step) {
        new Thread(() -> {
            try {
                while (true) {
                    step.take();
                }
            } catch (Exception fault) {
                fault.printStackTrace();
                System.exit(1);
            }
        }, name).start();
    }

    public static void main(String[] arguments) throws Exception {
        told = new PrintWriter(new FileWriter(arguments[0]));
        again("holds the gate", Waits::holdGate);
        again("holds the lock", Waits::holdLock);
        again("waits for the gate", () -> {
            waits("gate", Waits::forGate);
            Thread.sleep(5);
        });
        again("waits for the lock", () -> {
            waits("lock", Waits::forLock);
            Thread.sleep(5);
        });
        System.out.println("ready");
    }
}
