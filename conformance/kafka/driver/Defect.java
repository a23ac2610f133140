package fencepost.kafka;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.partition.DefaultAlterPartitionManager;
import org.apache.kafka.server.util.Scheduler;

/** A change of a few lines in Kafka's own classes, by a subclass: whoever judges the brokers must see it. */
enum Defect {
    NONE,
    /** A follower leaves its log as it is where it parts from the leader's. */
    KEEPS_DIVERGENCE,
    /** A follower names no epoch in its fetches, and begins by cutting its log to its high watermark (before KIP-101). */
    NAMES_NO_EPOCH,
    /** A follower takes all that it has for committed. */
    COMMITS_ALL,
    /** A producer that asks for acks=all is answered as one that asks for acks=1. */
    ACKS_ONE,
    /** A leader goes by the ISR that it wants, without the controller's word. */
    ALTERS_ALONE;

    static final Defect PLANTED = valueOf(System.getProperty("fencepost.defect", "NONE"));

    boolean isPlanted() {
        return this == PLANTED;
    }

    /** Of a broker: Kafka's own, unless it is to ask nobody. */
    static DefaultAlterPartitionManager alterManager(
            NodeToControllerChannelManager controller, Scheduler tasks, int id, Supplier<Long> epoch) {
        if (!ALTERS_ALONE.isPlanted()) {
            return new DefaultAlterPartitionManager(controller, tasks, id, epoch);
        }
        return new DefaultAlterPartitionManager(controller, tasks, id, epoch) {
            @Override
            public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition partition, LeaderAndIsr wanted) {
                return CompletableFuture.completedFuture(wanted.withPartitionEpoch(wanted.partitionEpoch() + 1));
            }
        };
    }
}
