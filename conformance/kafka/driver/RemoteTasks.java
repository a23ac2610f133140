package org.apache.kafka.server.log.remote.storage;

import java.io.IOException;
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
import org.apache.kafka.server.common.StopPartition;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Kafka's RemoteLogManager: a leader's tasks are run by the driver and not by its pools, and a follower's are not run. */
public final class RemoteTasks extends RemoteLogManager {
    private final RemoteLogManagerConfig config;
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
            Metrics metrics)
            throws IOException {
        super(config, broker, folder, "cluster", time, logs, starts, stats, metrics, Optional.empty());
        this.config = config;
    }

    @Override
    void doHandleLeaderPartition(TopicIdPartition partition, Boolean copiesNothing) {
        if (!copiesNothing) {
            copies.computeIfAbsent(
                    partition, each -> new RLMCopyTask(each, config.remoteLogMetadataCustomMetadataMaxBytes()));
        }
        expirations.computeIfAbsent(partition, RLMExpirationTask::new);
    }

    @Override
    void doHandleFollowerPartition(TopicIdPartition partition) {
        cancel(partition);
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
        copies.values().forEach(RLMTask::run);
    }

    /** One run of each task that deletes in remote storage. */
    public void expire() {
        List.copyOf(expirations.values()).forEach(RLMTask::run);
    }
}
