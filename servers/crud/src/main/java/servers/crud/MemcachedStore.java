// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.exception.MemcachedException;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/** People in memcached: the key is the name in Base64, the value is JSON text. */
@Component
@ConditionalOnProperty(name = "store.kind", havingValue = "memcached", matchIfMissing = true)
class MemcachedStore implements PersonStore, DisposableBean {

    private final ObjectMapper mapper;
    private final int ttlSeconds;
    private final MemcachedClient client;

    MemcachedStore(StoreProperties properties, ObjectMapper mapper) throws IOException {
        this.mapper = mapper;
        this.ttlSeconds = properties.ttlSeconds();
        this.client = new XMemcachedClientBuilder(properties.memcached()).build();
    }

    @Override
    public boolean add(Person person) {
        return ask(() -> client.add(key(person.name()), ttlSeconds, json(person)));
    }

    @Override
    public Optional<Person> find(String name) {
        String found = ask(() -> client.get(key(name)));
        return found == null ? Optional.empty() : Optional.of(person(found));
    }

    @Override
    public boolean replace(Person person) {
        return ask(() -> client.replace(key(person.name()), ttlSeconds, json(person)));
    }

    @Override
    public boolean delete(String name) {
        return ask(() -> client.delete(key(name)));
    }

    @Override
    public void destroy() throws IOException {
        client.shutdown();
    }

    private static String key(String name) {
        return Base64.getEncoder().encodeToString(name.getBytes(StandardCharsets.UTF_8));
    }

    private String json(Person person) {
        try {
            return mapper.writeValueAsString(person);
        } catch (JsonProcessingException fault) {
            throw new StoreException("a person cannot be written as JSON", fault);
        }
    }

    private Person person(String json) {
        try {
            return mapper.readValue(json, Person.class);
        } catch (JsonProcessingException fault) {
            throw new StoreException("what memcached holds is no person", fault);
        }
    }

    private interface Question<T> {
        T ask() throws TimeoutException, InterruptedException, MemcachedException;
    }

    private static <T> T ask(Question<T> question) {
        try {
            return question.ask();
        } catch (TimeoutException fault) {
            throw new StoreException("memcached did not answer in time", fault);
        } catch (MemcachedException fault) {
            throw new StoreException("memcached refused: " + fault.getMessage(), fault);
        } catch (InterruptedException fault) {
            Thread.currentThread().interrupt();
            throw new StoreException("interrupted while waiting for memcached", fault);
        }
    }
}
