// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.support.ServletUriComponentsBuilder;

/** PUT creates, GET reads, POST updates, DELETE deletes. */
@RestController
@RequestMapping("/testbed/memcached")
class PersonController {

    /** A key of memcached has at most 250 bytes; Base64 makes four of three. */
    private static final int LONGEST_NAME_BYTES = 186;

    private final PersonStore store;

    PersonController(PersonStore store) {
        this.store = store;
    }

    @PutMapping
    ResponseEntity<?> create(@RequestBody Person person) {
        if (!isName(person.name())) {
            return badName();
        }
        if (!store.add(person)) {
            return error(HttpStatus.NOT_ACCEPTABLE, "there is already a person of this name");
        }
        URI place = ServletUriComponentsBuilder.fromCurrentRequest()
                .replaceQuery(null)
                .queryParam("name", "{name}")
                .encode()
                .buildAndExpand(person.name())
                .toUri();
        return ResponseEntity.created(place).body(person);
    }

    @GetMapping
    ResponseEntity<?> read(@RequestParam String name) {
        return isName(name) ? ResponseEntity.of(store.find(name)) : badName();
    }

    @PostMapping
    ResponseEntity<?> update(@RequestBody Person person) {
        if (!isName(person.name())) {
            return badName();
        }
        return store.replace(person) ? ResponseEntity.ok(person) : ResponseEntity.notFound().build();
    }

    @DeleteMapping
    ResponseEntity<?> delete(@RequestParam String name) {
        if (!isName(name)) {
            return badName();
        }
        return store.delete(name) ? ResponseEntity.ok().build() : ResponseEntity.notFound().build();
    }

    @ExceptionHandler
    ResponseEntity<Map<String, String>> failed(StoreException fault) {
        return error(HttpStatus.SERVICE_UNAVAILABLE, fault.getMessage());
    }

    private static boolean isName(String name) {
        return name != null && !name.isEmpty()
                && name.getBytes(StandardCharsets.UTF_8).length <= LONGEST_NAME_BYTES;
    }

    private static ResponseEntity<Map<String, String>> badName() {
        return error(HttpStatus.BAD_REQUEST, "expected a name of 1 to " + LONGEST_NAME_BYTES + " bytes");
    }

    private static ResponseEntity<Map<String, String>> error(HttpStatus status, String message) {
        return ResponseEntity.status(status).body(Map.of("error", message));
    }
}
