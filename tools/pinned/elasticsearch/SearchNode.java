import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.Plugin;

/**
 * One node on the loopback address, for tests: SearchNode HOME HTTP_PORT TRANSPORT_PORT. It ends when its standard
 * input does. For OpenSearch, tools/fetch.py writes its package name in place of Elasticsearch's.
 */
public final class SearchNode extends Node {
    private static final List<String> TRANSPORTS = List.of(
        "org.elasticsearch.transport.Netty4Plugin", "org.elasticsearch.transport.Netty4ModulePlugin");

    private SearchNode(Environment environment, List<Class<? extends Plugin>> plugins) {
        super(environment, plugins, false);
    }

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("cluster.name", "prony-tests")
            .put("node.name", "one")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", args[2])
            .put("discovery.type", "single-node")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings, Map.of(), home.resolve("config"), () -> "one");
        try (SearchNode node = new SearchNode(environment, plugins())) {
            node.start();
            System.out.println("started");
            while (System.in.read() >= 0) {
                // a parent that goes away takes the node with it
            }
        }
        System.exit(0);
    }

    private static List<Class<? extends Plugin>> plugins() {
        List<Class<? extends Plugin>> found = new ArrayList<>();
        for (String name : TRANSPORTS) {
            try {
                found.add(Class.forName(name).asSubclass(Plugin.class));
            } catch (ClassNotFoundException absent) {
                // the other one's name
            }
        }
        return found;
    }
}
