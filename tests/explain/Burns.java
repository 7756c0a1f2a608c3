// SPDX-License-Identifier: Apache-2.0
/** Burns CPU in one named method, and allocates. */
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

    public static void main(String[] args) {
        System.out.println("ready");
        while (true) {
            sink += burnsHere();
            kept = new byte[65_536];
        }
    }
}
