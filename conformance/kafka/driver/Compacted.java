package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Brokers whose topic is compacted. Each has Kafka's LogCleaner, whose thread is the driver's: a round of it is a command,
 * and the process may end in its midst. Of a log each segment is seen, with what a record is.
 */
final class Compacted extends Cluster {
    /** Buffers hold a few batches, so that a segment is read in pieces, and one that is larger has them grow. */
    private static final int BUFFER = 512;

    private static final long AHEAD = 2_400_000_000_000L;

    private Map<String, String> topic = Map.of();
    private long memory = 1 << 12;
    private String fetched = "";
    private final Map<Integer, Path> amid = new HashMap<>();
    /** By broker, when its cleaner has run last. */
    private final Map<Integer, Long> cleaned = new HashMap<>();

    Compacted(Path scratch) {
        super(scratch);
        // Ahead of the machine's: a segment without records is as old as its file, by the time that the machine has.
        clock.move(AHEAD);
    }

    @Override
    boolean does(JsonNode command, ObjectNode answer) throws Exception {
        switch (command.get("do").asText()) {
            case "elapse" -> clock.move(command.get("ms").asLong() - 1);
            case "clean" -> clean(broker(command.get("node").asInt()), command.get("amid").asInt());
            default -> {
                return false;
            }
        }
        return true;
    }

    @Override
    ObjectNode handle(JsonNode command) throws Exception {
        if (command.has("fetched") && !command.get("fetched").asText().equals(fetched)) {
            fetched = command.get("fetched").asText();
            renew();
        }
        return super.handle(command).put("now", clock.milliseconds());
    }

    // -- configuration -------------------------------------------------------------------------------------------

    @Override
    boolean configured(JsonNode command) {
        Map<String, String> wanted = new HashMap<>();
        command.get("topic").properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
        boolean differs = super.configured(command) | !wanted.equals(topic);
        topic = wanted;
        memory = command.get("memory").asLong();
        cleaned.clear();
        return differs;
    }

    @Override
    Map<String, String> settings(int id, Path folder) {
        Map<String, String> found = super.settings(id, folder);
        found.put("replica.fetch.max.bytes", fetched);
        return found;
    }

    @Override
    LogConfig defaults() {
        return Broker.defaults(minIsr, topic);
    }

    @Override
    CleanerConfig cleaning() {
        return new CleanerConfig(1, memory, 0.9, 2 * BUFFER, 1 << 20, Double.MAX_VALUE, 0, true);
    }

    @Override
    LogCleaner cleaner(
            CleanerConfig config,
            List<File> folders,
            ConcurrentMap<TopicPartition, UnifiedLog> logs,
            LogDirFailureChannel failures,
            Time time) {
        return new LogCleaner(config, folders, logs, failures, time) {
            @Override
            public void startup() {
                // Its thread is the driver's.
            }
        };
    }

    // -- cleaning ------------------------------------------------------------------------------------------------

    /**
     * One round of a cleaner's thread. From 0 on: after so many changes of the files there is a copy of them, which is
     * what is left of the process when it ends; it has changed them less often, if there is none.
     */
    private void clean(Broker broker, int after) throws Exception {
        cleaned.put(broker.id, clock.milliseconds());
        LogCleaner cleaner = broker.logs.cleaner();
        cleaner.reconfigure(cleaner.currentConfig(), cleaning());
        LogCleaner.CleanerThread thread = cleaner.new CleanerThread(0);
        CleanerDefect.change(cleaner, thread, clock);
        if (after >= 0) {
            Manual.effect = new Copier(broker, after);
        }
        try {
            thread.doWork();
        } finally {
            Manual.effect = () -> {};
        }
        Set<TopicPartition> given = cleaner.cleanerManager().uncleanablePartitions(broker.folder.toString());
        if (given.contains(partition)) {
            throw new IllegalStateException("the cleaner has marked " + partition + " as uncleanable");
        }
        broker.finish();
    }

    /** Counts how often the files have changed, and copies them once. */
    private final class Copier implements Runnable {
        private final Broker broker;
        private int left;
        private Set<String> before;

        Copier(Broker broker, int after) {
            this.broker = broker;
            left = after;
            before = files(broker);
        }

        @Override
        public void run() {
            Set<String> now = files(broker);
            if (left < 0 || now.equals(before)) {
                return;
            }
            before = now;
            if (left-- == 0) {
                try {
                    Path copy = folder();
                    broker.copy(copy);
                    amid.put(broker.id, copy);
                } catch (IOException failed) {
                    throw new UncheckedIOException(failed);
                }
            }
        }
    }

    private static Set<String> files(Broker broker) {
        Set<String> found = new TreeSet<>();
        try (Stream<Path> all = Files.walk(broker.folder)) {
            for (Path each : (Iterable<Path>) all::iterator) {
                found.add(broker.folder.relativize(each) + " " + (Files.isDirectory(each) ? 0 : Files.size(each)));
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        return found;
    }

    @Override
    void leave(Broker broker, Path copy) throws IOException {
        Path left = amid.remove(broker.id);
        if (left == null) {
            super.leave(broker, copy);
        } else {
            Utils.delete(copy.toFile());
            Files.move(left, copy);
        }
    }

    // -- what is sent and seen -----------------------------------------------------------------------------------

    @Override
    MemoryRecords sent(JsonNode command) {
        SimpleRecord[] records = new SimpleRecord[command.get("records").size()];
        for (int number = 0; number < records.length; number++) {
            JsonNode each = command.get("records").get(number);
            records[number] = new SimpleRecord(each.get(2).asLong(), bytes(each.get(0)), bytes(each.get(1)));
        }
        long producer = command.get("producer").asLong();
        return producer < 0
                ? MemoryRecords.withRecords(Compression.NONE, records)
                : MemoryRecords.withIdempotentRecords(Compression.NONE, producer, (short) 0, 0, records);
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    void look(Broker broker, ObjectNode seen) throws IOException {
        Optional<UnifiedLog> log = broker.logs.getLog(partition);
        ArrayNode records = seen.putArray("records");
        if (log.isPresent()) {
            for (LogSegment each : log.get().logSegments()) {
                shown(each.log()).forEach(records::add);
            }
        }
        seen.put("active", log.map(there -> there.activeSegment().baseOffset()).orElse(0L));
        seen.put("checkpoint", broker.logs.cleaner().cleanerManager().allCleanerCheckpoints().getOrDefault(partition, 0L));
        seen.put("cleaned", cleaned.getOrDefault(broker.id, 0L));
        Picture.roles(broker, log, seen);
    }

    /** Records as [offset, leader epoch, key, value, timestamp, delete horizon of the batch or -1]. */
    @Override
    ArrayNode shown(Records records) {
        ArrayNode found = Lines.JSON.createArrayNode();
        for (RecordBatch batch : records.batches()) {
            for (Record each : batch) {
                found.addArray()
                        .add(each.offset())
                        .add(batch.partitionLeaderEpoch())
                        .add(text(each.key()))
                        .add(text(each.value()))
                        .add(each.timestamp())
                        .add(batch.deleteHorizonMs().orElse(-1));
            }
        }
        return found;
    }

    private static String text(ByteBuffer bytes) {
        return bytes == null ? null : StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }
}
