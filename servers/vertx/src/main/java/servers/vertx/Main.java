// SPDX-License-Identifier: Apache-2.0
package servers.vertx;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import java.util.Map;
import java.util.TreeMap;

/** Deploys the pages: each instance has an event loop of its own, and all of them share the port. */
public final class Main {

    public static void main(String[] args) {
        Map<String, String> options = new TreeMap<>();
        for (String word : args) {
            int equals = word.indexOf('=');
            if (!word.startsWith("--") || equals < 0) {
                System.err.println("unexpected word '" + word + "': expected --name=value");
                System.exit(2);
            }
            options.put(word.substring(2, equals), word.substring(equals + 1));
        }
        int instances = Integer.parseInt(options.getOrDefault("instances", "1"));
        Vertx vertx = Vertx.vertx();
        vertx.deployVerticle(() -> new Pages(options), new DeploymentOptions().setInstances(instances))
                .onFailure(fault -> {
                    fault.printStackTrace();
                    System.exit(1);
                });
    }
}
