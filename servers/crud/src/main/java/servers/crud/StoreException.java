// SPDX-License-Identifier: Apache-2.0
package servers.crud;

/** The store cannot be reached, does not answer in time, or holds something else. */
class StoreException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    StoreException(String message, Throwable cause) {
        super(message, cause);
    }
}
