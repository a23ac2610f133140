package org.apache.kafka.image.loader;

import java.lang.reflect.Field;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.publisher.SnapshotGenerator;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.queue.EventQueue;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

/**
 * What makes a node's snapshots, beside its controller: Kafka's MetadataLoader, which replays what is committed, and
 * Kafka's SnapshotGenerator. A snapshot is kept as the records that its image writes.
 */
public final class Snapshots {
    /** What a snapshot includes ends there. */
    public record Made(long end, List<ApiMessageAndVersion> records) {}

    private final List<Made> made = new CopyOnWriteArrayList<>();
    private final MetadataLoader loader;
    private final SnapshotGenerator generator;
    private final EventQueue queue;

    public Snapshots(
            int id, Time time, FaultHandler faults, long bytes, long ms, Supplier<OptionalLong> highWatermark)
            throws Exception {
        generator =
                new SnapshotGenerator.Builder(this::keep)
                        .setNodeId(id)
                        .setTime(time)
                        .setFaultHandler(faults)
                        .setMaxBytesSinceLastSnapshot(bytes)
                        .setMaxTimeSinceLastSnapshotNs(TimeUnit.MILLISECONDS.toNanos(ms))
                        .build();
        loader =
                new MetadataLoader.Builder()
                        .setNodeId(id)
                        .setTime(time)
                        .setFaultHandler(faults)
                        .setHighWaterMarkAccessor(highWatermark)
                        .build();
        Field there = SnapshotGenerator.class.getDeclaredField("eventQueue");
        there.setAccessible(true);
        queue = (EventQueue) there.get(generator);
        loader.installPublishers(List.of(generator));
    }

    /** What is told of commits. */
    public RaftClient.Listener<ApiMessageAndVersion> listener() {
        return loader;
    }

    private void keep(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        made.add(new Made(image.provenance().lastContainedOffset() + 1, writer.records()));
    }

    /** All of them, when what was committed is replayed, and what is to be made of it is made. */
    public List<Made> made() throws Exception {
        for (int turn = 0; turn < 2; turn++) {
            loader.waitForAllEventsToBeHandled();
        }
        CompletableFuture<Void> done = new CompletableFuture<>();
        queue.append(() -> done.complete(null));
        done.get();
        return made;
    }

    public void close() throws Exception {
        loader.close();
    }
}
