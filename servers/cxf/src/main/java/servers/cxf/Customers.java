// SPDX-License-Identifier: Apache-2.0
package servers.cxf;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The customers, in bounded memory: those that are there from the start, and the newest of those that were created
 * since. A creation beyond that takes the place of the oldest one, so that the billionth costs what the first did.
 */
final class Customers {

    /** Ids 1 to 1000 are there from the start. */
    static final int INITIAL = 1_000;
    /** So many created customers are kept; a power of two. */
    static final int KEPT = 1 << 17;

    private final AtomicReferenceArray<Customer> initial = new AtomicReferenceArray<>(INITIAL);
    private final AtomicReferenceArray<Customer> created = new AtomicReferenceArray<>(KEPT);
    private final AtomicLong lastId = new AtomicLong(INITIAL);

    Customers() {
        for (int id = 1; id <= INITIAL; id++) {
            initial.set(id - 1, new Customer(id, "John"));
        }
    }

    /** Null when there is none of this id. */
    Customer find(long id) {
        Customer found = id < 1 ? null : places(id).get(place(id));
        return found == null || found.getId() != id ? null : found;
    }

    Customer create(String name) {
        long id = lastId.incrementAndGet();
        Customer customer = new Customer(id, name);
        created.set(place(id), customer);
        return customer;
    }

    /** The customer with its new name; null when there is none of this id. */
    Customer rename(long id, String name) {
        Customer renamed = new Customer(id, name);
        Customer old;
        do {
            old = find(id);
            if (old == null) {
                return null;
            }
        } while (!places(id).compareAndSet(place(id), old, renamed));
        return renamed;
    }

    /** Whether there was one of this id. */
    boolean delete(long id) {
        Customer old;
        do {
            old = find(id);
            if (old == null) {
                return false;
            }
        } while (!places(id).compareAndSet(place(id), old, null));
        return true;
    }

    private AtomicReferenceArray<Customer> places(long id) {
        return id <= INITIAL ? initial : created;
    }

    private static int place(long id) {
        return (int) (id <= INITIAL ? id - 1 : id & (KEPT - 1));
    }
}
