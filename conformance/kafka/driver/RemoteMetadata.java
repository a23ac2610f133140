package org.apache.kafka.server.log.remote.metadata.storage;

import fencepost.kafka.Worker;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/**
 * The remote log metadata of all brokers as one log. Each knows it as far as it has read, by Kafka's own
 * RemotePartitionMetadataStore; whoever writes to it waits, as with Kafka's topic, until it has read that itself.
 */
public final class RemoteMetadata implements RemoteLogMetadataManager {
    /** What was written, in its order. */
    public static final List<RemoteLogMetadata> LOG = new ArrayList<>();

    private static final Map<Integer, RemoteMetadata> BROKERS = new HashMap<>();

    private final RemotePartitionMetadataStore known = new RemotePartitionMetadataStore();
    private final Map<TopicIdPartition, Integer> needed = new HashMap<>();
    private int read;

    /** That of a broker's process, which is the last one that was made. */
    public static RemoteMetadata of(int broker) {
        return BROKERS.get(broker);
    }

    @Override
    public void configure(Map<String, ?> configs) {
        BROKERS.put(Integer.parseInt(String.valueOf(configs.get("broker.id"))), this);
    }

    /** There is nothing of former topics any more. */
    public static void forget() {
        LOG.clear();
        for (RemoteMetadata each : BROKERS.values()) {
            each.needed.clear();
            each.read = 0;
        }
    }

    /** Read up to there. */
    public void read(int end) {
        for (; read < end; read++) {
            RemoteLogMetadata each = LOG.get(read);
            known.maybeLoadPartition(each.topicIdPartition());
            known.markInitialized(each.topicIdPartition());
            if (each instanceof RemoteLogSegmentMetadata added) {
                known.handleRemoteLogSegmentMetadata(added);
            } else if (each instanceof RemoteLogSegmentMetadataUpdate updated) {
                known.handleRemoteLogSegmentMetadataUpdate(updated);
            } else if (each instanceof RemotePartitionDeleteMetadata deleted) {
                known.handleRemotePartitionDeleteMetadata(deleted);
            }
        }
    }

    /** So much it has read. */
    public int read() {
        return read;
    }

    /** Where the last record about a partition ends, as of now. */
    private static int endOf(TopicIdPartition partition) {
        int end = LOG.size();
        while (end > 0 && !LOG.get(end - 1).topicIdPartition().equals(partition)) {
            end--;
        }
        return end;
    }

    private CompletableFuture<Void> write(RemoteLogMetadata record) {
        Worker.before(record);
        LOG.add(record);
        if (Thread.currentThread().isInterrupted()) {
            // It is sent all the same; who waits for it is interrupted.
            return new CompletableFuture<>();
        }
        read(LOG.size());
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<Void> addRemoteLogSegmentMetadata(RemoteLogSegmentMetadata record) {
        return write(record);
    }

    @Override
    public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate record) {
        return write(record);
    }

    @Override
    public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata record) {
        return write(record);
    }

    @Override
    public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(TopicIdPartition partition, int epoch, long offset)
            throws RemoteStorageException {
        return known.remoteLogSegmentMetadata(partition, offset, epoch);
    }

    @Override
    public Optional<Long> highestOffsetForEpoch(TopicIdPartition partition, int epoch) throws RemoteStorageException {
        return known.highestLogOffset(partition, epoch);
    }

    @Override
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition)
            throws RemoteStorageException {
        return known.listRemoteLogSegments(partition);
    }

    @Override
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition, int epoch)
            throws RemoteStorageException {
        return known.listRemoteLogSegments(partition, epoch);
    }

    @Override
    public boolean isReady(TopicIdPartition partition) {
        return read >= needed.getOrDefault(partition, Integer.MAX_VALUE);
    }

    @Override
    public void onPartitionLeadershipChanges(Set<TopicIdPartition> leaders, Set<TopicIdPartition> followers) {
        for (Set<TopicIdPartition> all : List.of(leaders, followers)) {
            // As Kafka's: it is ready when it has read what there was as it first heard of a partition.
            all.forEach(each -> needed.putIfAbsent(each, endOf(each)));
            all.forEach(known::maybeLoadPartition);
            all.forEach(known::markInitialized);
        }
    }

    @Override
    public void onStopPartitions(Set<TopicIdPartition> partitions) {
        partitions.forEach(known::clearTopicPartition);
    }

    @Override
    public long remoteLogSize(TopicIdPartition partition, int epoch) throws RemoteStorageException {
        long size = 0;
        for (Iterator<RemoteLogSegmentMetadata> all = listRemoteLogSegments(partition, epoch); all.hasNext(); ) {
            size += all.next().segmentSizeInBytes();
        }
        return size;
    }

    @Override
    public void close() {}
}
