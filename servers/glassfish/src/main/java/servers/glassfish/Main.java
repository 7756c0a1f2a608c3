// SPDX-License-Identifier: Apache-2.0
package servers.glassfish;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.glassfish.embeddable.GlassFish;
import org.glassfish.embeddable.GlassFishProperties;
import org.glassfish.embeddable.GlassFishRuntime;
import org.glassfish.embeddable.archive.ScatteredArchive;

/** Starts embedded GlassFish and deploys, at the root, the files of a folder and the servlet of this jar. */
public final class Main {

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String word : args) {
            String[] pair = word.split("=", 2);
            options.put(pair[0], pair.length == 2 ? pair[1] : "");
        }
        Domain domain = new Domain();
        boolean tls = options.containsKey("--keystore");
        domain.listen(required(options, "--host"), Integer.parseInt(required(options, "--port")), tls);
        if (tls) {
            domain.key(Path.of(options.get("--keystore")), required(options, "--password").toCharArray());
        }
        if (options.containsKey("--http2")) {
            domain.streams(Integer.parseInt(options.get("--http2")));
        }
        if (options.containsKey("--acceptors")) {
            domain.acceptors(Integer.parseInt(options.get("--acceptors")));
        }
        if (options.containsKey("--threads")) {
            domain.workers(Integer.parseInt(options.get("--threads")));
        }

        GlassFishProperties properties = new GlassFishProperties();
        // What is listened on stands in the file: set later, the server would listen on all addresses until then.
        properties.setConfigFileURI(domain.write(Files.createTempFile("domain", ".xml")).toUri().toString());
        GlassFish server = GlassFishRuntime.bootstrap().newGlassFish(properties);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(server)));
        server.start();

        ScatteredArchive application = new ScatteredArchive("pages", ScatteredArchive.Type.WAR,
                Path.of(required(options, "--static")).toRealPath().toFile());
        application.addMetadata(descriptor());
        application.addClassPath(new File(Main.class.getProtectionDomain().getCodeSource().getLocation().toURI()));
        if (server.getDeployer().deploy(application.toURI(), "--name=pages", "--contextroot=/") == null) {
            System.err.println("the application was not deployed");
            System.exit(1);
        }
    }

    /** The application's web.xml as a file, as an archive wants it: GlassFish finds no annotations in such a jar. */
    private static File descriptor() throws IOException {
        Path file = Files.createTempDirectory("descriptor").resolve("web.xml");
        try (InputStream packed = Main.class.getResourceAsStream("/web.xml")) {
            Files.copy(packed, file);
        }
        return file.toFile();
    }

    private static String required(Map<String, String> options, String name) {
        String value = options.get(name);
        if (value == null || value.isEmpty()) {
            System.err.println("the option " + name + "= is missing");
            System.exit(2);
        }
        return value;
    }

    private static void stop(GlassFish server) {
        try {
            server.dispose();
        } catch (Exception fault) {
            System.err.println("not stopped in order: " + fault);
        }
    }
}
