// SPDX-License-Identifier: Apache-2.0
package servers.springboot;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/**
 * Prints, once, what Actuator's own meters say at <em>application ready</em>: one line on standard output, a word and a
 * JSON object.
 */
@Component
class ReadyFigures {

    private final MeterRegistry registry;

    ReadyFigures(MeterRegistry registry) {
        this.registry = registry;
    }

    @EventListener
    void print(ApplicationReadyEvent event) {
        System.out.println("ready-figures {\"jvm.memory.used\":" + sum("jvm.memory.used")
                + ",\"jvm.classes.loaded\":" + sum("jvm.classes.loaded")
                + ",\"jvm.threads.live\":" + sum("jvm.threads.live") + "}");
    }

    /** The sum over all tags, as `/actuator/metrics/{name}` reports it; all three are whole numbers. */
    private long sum(String name) {
        double sum = 0;
        for (Gauge gauge : registry.find(name).gauges()) {
            sum += gauge.value();
        }
        return (long) sum;
    }
}
