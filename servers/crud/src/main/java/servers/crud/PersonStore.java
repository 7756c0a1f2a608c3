// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import java.util.Optional;

/** People by name. Throws {@link StoreException} when the store does not do what was asked of it. */
interface PersonStore {

    /** False, and nothing happens, when there is one of this name. */
    boolean add(Person person);

    Optional<Person> find(String name);

    /** False, and nothing happens, when there is none of this name. */
    boolean replace(Person person);

    /** Whether there was one of this name. */
    boolean delete(String name);
}
