package org.apache.kafka.server.log.remote.storage;

import fencepost.kafka.TieringDefect;
import fencepost.kafka.Worker;
import java.io.IOException;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.StopPartition;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Kafka's RemoteLogManager: a leader's tasks are run by the driver and not by its pools, and a follower's are not run. */
public final class RemoteTasks extends RemoteLogManager {
    private final RemoteLogManagerConfig config;
    private final Worker worker;
    private final Map<TopicIdPartition, RLMCopyTask> copies = new HashMap<>();
    private final Map<TopicIdPartition, RLMExpirationTask> expirations = new HashMap<>();

    public RemoteTasks(
            RemoteLogManagerConfig config,
            int broker,
            String folder,
            Time time,
            Function<TopicPartition, Optional<UnifiedLog>> logs,
            BiConsumer<TopicPartition, Long> starts,
            BrokerTopicStats stats,
            Metrics metrics,
            Worker worker)
            throws IOException {
        super(config, broker, folder, "cluster", time, logs, starts, stats, metrics, Optional.empty());
        this.config = config;
        this.worker = worker;
    }

    @Override
    void doHandleLeaderPartition(TopicIdPartition partition, Boolean copiesNothing) {
        if (!copiesNothing) {
            copies.computeIfAbsent(partition, this::copying);
        }
        expirations.computeIfAbsent(partition, RLMExpirationTask::new);
    }

    private RLMCopyTask copying(TopicIdPartition partition) {
        int most = config.remoteLogMetadataCustomMetadataMaxBytes();
        if (!TieringDefect.UPLOADS_UNCOMMITTED.isPlanted()) {
            return new RLMCopyTask(partition, most);
        }
        return new RLMCopyTask(partition, most) {
            @Override
            List<EnrichedLogSegment> candidateLogSegments(UnifiedLog log, Long from, Long stable) {
                return super.candidateLogSegments(log, from, log.logEndOffset());
            }
        };
    }

    @Override
    void doHandleFollowerPartition(TopicIdPartition partition) {
        if (!TieringDefect.NEVER_CANCELS.isPlanted()) {
            cancel(partition);
        }
    }

    @Override
    OffsetAndEpoch findHighestRemoteOffset(TopicIdPartition partition, UnifiedLog log) throws RemoteStorageException {
        OffsetAndEpoch found = super.findHighestRemoteOffset(partition, log);
        boolean more = TieringDefect.COUNTS_UNCOPIED.isPlanted() && found.offset() + 1 < log.logEndOffset();
        return more ? new OffsetAndEpoch(found.offset() + 1, found.epoch()) : found;
    }

    @Override
    List<EpochEntry> getLeaderEpochEntries(UnifiedLog log, long start, long end) {
        List<EpochEntry> found = super.getLeaderEpochEntries(log, start, end);
        boolean loses = TieringDefect.LOSES_FIRST_EPOCH.isPlanted() && start < 0 && found.size() > 1;
        return loses ? found.subList(1, found.size()) : found;
    }

    /** Whether a leader has found out how far its log is in remote storage, since it leads. */
    public boolean hasLooked() {
        return copies.values().stream().anyMatch(RemoteTasks::hasLooked);
    }

    private static boolean hasLooked(RLMCopyTask task) {
        try {
            Field found = RLMCopyTask.class.getDeclaredField("copiedOffsetOption");
            found.setAccessible(true);
            return ((Optional<?>) found.get(task)).isPresent();
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(failed);
        }
    }

    @Override
    public void stopPartitions(Set<StopPartition> partitions, BiConsumer<TopicPartition, Throwable> failed) {
        for (StopPartition each : partitions) {
            expirations.keySet().stream()
                    .filter(there -> there.topicPartition().equals(each.topicPartition))
                    .toList()
                    .forEach(this::cancel);
        }
        super.stopPartitions(partitions, failed);
    }

    private void cancel(TopicIdPartition partition) {
        worker.interrupt();
        RLMCopyTask copy = copies.remove(partition);
        if (copy != null) {
            copy.cancel();
        }
        RLMExpirationTask expiration = expirations.remove(partition);
        if (expiration != null) {
            expiration.cancel();
        }
    }

    /** One run of each copying task. */
    public void copy() {
        List.copyOf(copies.values()).forEach(RLMTask::run);
    }

    /** One run of each task that deletes in remote storage. */
    public void expire() {
        List.copyOf(expirations.values()).forEach(RLMTask::run);
    }
}
