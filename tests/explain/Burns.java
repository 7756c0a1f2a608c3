// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.locks.LockSupport;

/**
 * Burns CPU in one named method, and allocates. With an argument: so many threads, each of which burns
 * a little and pauses for 50 ms.
 */
public final class Burns {
    static volatile long sink;
    static volatile byte[] kept;

    static long burnsHere() {
        long sum = 1;
        for (int i = 0; i < 200_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    static void burnAndPause() {
        while (true) {
            sink += burnsHere();
            LockSupport.parkNanos(50_000_000);
        }
    }

    public static void main(String[] args) {
        int threads = args.length == 0 ? 0 : Integer.parseInt(args[0]);
        for (int i = 0; i < threads; i++) {
            new Thread(Burns::burnAndPause).start();
        }
        System.out.println("ready");
        if (threads > 0) {
            return;
        }
        while (true) {
            sink += burnsHere();
            kept = new byte[65_536];
        }
    }
}
