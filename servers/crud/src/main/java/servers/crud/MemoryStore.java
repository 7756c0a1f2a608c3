// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/**
 * People in this process: what the application costs without a database. As in memcached they leave when their time is
 * over, and the oldest ones leave when there are too many.
 */
@Component
@ConditionalOnProperty(name = "store.kind", havingValue = "memory")
class MemoryStore implements PersonStore {

    private record Entry(Person person, long endsAtNanos) {

        boolean hasEnded(long nowNanos) {
            return endsAtNanos - nowNanos <= 0;
        }
    }

    private final ConcurrentMap<String, Entry> entries = new ConcurrentHashMap<>();
    /** All entries in the order in which they end, also those that were replaced or deleted since. */
    private final Queue<Entry> byEnd = new ConcurrentLinkedQueue<>();
    private final AtomicInteger queued = new AtomicInteger();
    private final Lock sweeping = new ReentrantLock();
    private final long ttlNanos;
    private final int most;

    MemoryStore(StoreProperties properties) {
        this.ttlNanos = TimeUnit.SECONDS.toNanos(properties.ttlSeconds());
        this.most = properties.memoryEntries();
    }

    @Override
    public boolean add(Person person) {
        long now = System.nanoTime();
        Entry added = new Entry(person, now + ttlNanos);
        Entry kept = entries.compute(person.name(),
                (name, old) -> old == null || old.hasEnded(now) ? added : old);
        return kept == added && remember(added, now);
    }

    @Override
    public Optional<Person> find(String name) {
        Entry found = entries.get(name);
        return found == null || found.hasEnded(System.nanoTime()) ? Optional.empty() : Optional.of(found.person());
    }

    @Override
    public boolean replace(Person person) {
        long now = System.nanoTime();
        Entry replacement = new Entry(person, now + ttlNanos);
        Entry kept = entries.computeIfPresent(person.name(),
                (name, old) -> old.hasEnded(now) ? null : replacement);
        return kept == replacement && remember(replacement, now);
    }

    @Override
    public boolean delete(String name) {
        Entry deleted = entries.remove(name);
        return deleted != null && !deleted.hasEnded(System.nanoTime());
    }

    /** True, always; lets go what has ended or is too much. One thread at a time is enough for that. */
    private boolean remember(Entry entry, long nowNanos) {
        byEnd.add(entry);
        queued.incrementAndGet();
        if (sweeping.tryLock()) {
            try {
                Entry oldest = byEnd.peek();
                while (oldest != null && (queued.get() > most || oldest.hasEnded(nowNanos))) {
                    byEnd.poll();
                    queued.decrementAndGet();
                    // Only if it is still this very entry: the name may have a newer one.
                    entries.remove(oldest.person().name(), oldest);
                    oldest = byEnd.peek();
                }
            } finally {
                sweeping.unlock();
            }
        }
        return true;
    }
}
