// SPDX-License-Identifier: Apache-2.0
package servers.crud;

/** The entity; people are told apart by their names. */
public record Person(String name, String email, int age) {
}
