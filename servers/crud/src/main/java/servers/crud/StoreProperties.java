// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Where people are kept and for how long.
 *
 * @param kind memcached or memory
 * @param ttlSeconds after so long a person is gone
 * @param memcached HOST:PORT
 * @param memoryEntries how many people the memory holds; beyond, the oldest ones leave
 */
@ConfigurationProperties("store")
record StoreProperties(
        @DefaultValue("memcached") String kind,
        @DefaultValue("1000") int ttlSeconds,
        @DefaultValue("127.0.0.1:11211") String memcached,
        @DefaultValue("1000000") int memoryEntries) {
}
