// SPDX-License-Identifier: Apache-2.0
package servers.agent;

import java.lang.management.ClassLoadingMXBean;
import java.lang.management.CompilationMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryUsage;
import java.lang.management.OperatingSystemMXBean;
import java.lang.management.RuntimeMXBean;
import java.lang.management.ThreadMXBean;
import java.util.List;

/**
 * One reading of the platform MXBeans as a line of JSON. Plain loops and one builder, so that a reading loads no further
 * classes and allocates only a few kilobytes. A figure that this JVM does not have is {@code null}.
 */
final class Snapshot {

    private final RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
    private final MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
    private final ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
    /** Null on a JVM that only interprets. */
    private final CompilationMXBean compilation = ManagementFactory.getCompilationMXBean();
    private final List<MemoryPoolMXBean> pools = ManagementFactory.getMemoryPoolMXBeans();
    private final List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans();
    private final String vm = runtime.getVmName() + " " + runtime.getVmVersion();
    private final StringBuilder out = new StringBuilder(1024);

    String json() {
        out.setLength(0);
        MemoryUsage heap = memory.getHeapMemoryUsage();
        out.append("{\"uptime_s\":");
        seconds(runtime.getUptime(), 1_000);
        number(",\"heap_used_bytes\":", heap.getUsed());
        number(",\"heap_committed_bytes\":", heap.getCommitted());
        number(",\"heap_max_bytes\":", heap.getMax());
        number(",\"non_heap_used_bytes\":", memory.getNonHeapMemoryUsage().getUsed());
        pools();
        number(",\"classes_loaded\":", classes.getLoadedClassCount());
        number(",\"classes_loaded_total\":", classes.getTotalLoadedClassCount());
        number(",\"threads_live\":", threads.getThreadCount());
        number(",\"threads_peak\":", threads.getPeakThreadCount());
        collectors();
        out.append(",\"jit_time_s\":");
        if (compilation != null && compilation.isCompilationTimeMonitoringSupported()) {
            seconds(compilation.getTotalCompilationTime(), 1_000);
        } else {
            out.append("null");
        }
        out.append(",\"process_cpu_s\":");
        processCpu();
        out.append(",\"vm\":");
        text(vm);
        return out.append("}\n").toString();
    }

    private void pools() {
        out.append(",\"pools_used_bytes\":{");
        for (int i = 0; i < pools.size(); i++) {
            MemoryUsage usage = pools.get(i).getUsage();
            if (i > 0) {
                out.append(',');
            }
            text(pools.get(i).getName());
            // A pool that has become invalid has no usage; it also holds nothing.
            number(":", usage == null ? 0 : usage.getUsed());
        }
        out.append('}');
    }

    private void collectors() {
        long count = 0;
        long millis = 0;
        for (int i = 0; i < collectors.size(); i++) {
            // -1 means that this collector does not count.
            count += Math.max(0, collectors.get(i).getCollectionCount());
            millis += Math.max(0, collectors.get(i).getCollectionTime());
        }
        number(",\"gc_count\":", count);
        out.append(",\"gc_time_s\":");
        seconds(millis, 1_000);
        out.append(",\"gc_names\":[");
        for (int i = 0; i < collectors.size(); i++) {
            if (i > 0) {
                out.append(',');
            }
            text(collectors.get(i).getName());
        }
        out.append(']');
    }

    private void processCpu() {
        long nanos = system instanceof com.sun.management.OperatingSystemMXBean
                ? ((com.sun.management.OperatingSystemMXBean) system).getProcessCpuTime()
                : -1;
        if (nanos < 0) {
            out.append("null");
        } else {
            seconds(nanos, 1_000_000_000);
        }
    }

    private void number(String key, long value) {
        out.append(key).append(value);
    }

    /** Appends {@code count / perSecond} in decimal, all digits, without floating point. */
    private void seconds(long count, long perSecond) {
        out.append(count / perSecond).append('.');
        long rest = count % perSecond;
        for (long digit = perSecond / 10; digit > 0; digit /= 10) {
            out.append((char) ('0' + rest / digit % 10));
        }
    }

    private void text(String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else {
                out.append(c < ' ' ? ' ' : c);
            }
        }
        out.append('"');
    }
}
