// SPDX-License-Identifier: Apache-2.0
package servers.pages;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The words {@code --name=value} of the command line. */
public final class Options {

    private final Map<String, String> values = new HashMap<>();

    private Options() {
    }

    /** Ends the program with exit code 2 when a word is none of the known options. */
    public static Options parse(String[] words, String... known) {
        Options options = new Options();
        for (String word : words) {
            int equals = word.indexOf('=');
            String name = word.startsWith("--") && equals > 0 ? word.substring(2, equals) : "";
            if (!List.of(known).contains(name)) {
                System.err.println("unknown option '" + word + "'; known: --" + String.join("=, --", known) + "=");
                System.exit(2);
            }
            options.values.put(name, word.substring(equals + 1));
        }
        return options;
    }

    public boolean has(String name) {
        return values.containsKey(name);
    }

    public String get(String name) {
        String value = values.get(name);
        if (value == null) {
            System.err.println("the option --" + name + "= is missing");
            System.exit(2);
        }
        return value;
    }

    public String get(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    public int number(String name) {
        return Integer.parseInt(get(name));
    }
}
