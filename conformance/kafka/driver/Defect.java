package fencepost.kafka;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import kafka.cluster.Partition;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.partition.DefaultAlterPartitionManager;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import scala.Option;

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
    ALTERS_ALONE,
    /** A follower cuts its log where the leader's epoch ends, wherever that epoch ends in its own (KAFKA-6361). */
    CUTS_BY_OFFSET,
    /** A leader serves whoever fetches in another leader epoch than its own (KAFKA-6880). */
    FENCES_NOBODY,
    /** Who has all that is committed is in sync, though the leader's epoch began behind that (KAFKA-7128). */
    JOINS_EARLY,
    /** A leader counts the fetch offset of a follower whom it tells to cut its log (KAFKA-13141). */
    COUNTS_DIVERGENCE,
    /** A follower takes up the leader's high watermark before it cuts its log (KAFKA-14704). */
    COMMITS_BEFORE_CUTTING,
    /** After an answer without records a follower does not know any more of which epoch its last record is (KAFKA-15510). */
    FORGETS_LAST_EPOCH;

    private static Defect planted = NONE;

    /** Have it hold from the next start on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    boolean isPlanted() {
        return this == planted;
    }

    /** What a follower has asked a leader for. */
    static FetchRequest.PartitionData asked(FetchRequest.PartitionData data) {
        return !FENCES_NOBODY.isPlanted()
                ? data
                : new FetchRequest.PartitionData(
                        data.topicId,
                        data.fetchOffset,
                        data.logStartOffset,
                        data.maxBytes,
                        Optional.empty(),
                        data.lastFetchedEpoch);
    }

    /** A follower is told that its log diverges below the offset that it has fetched from. */
    static void diverges(Partition partition, int follower, long offset, long now) {
        if (COUNTS_DIVERGENCE.isPlanted() && partition.getReplica(follower).isDefined()) {
            long end = partition.localLogOrException().logEndOffset();
            partition.updateFollowerFetchState(
                    partition.getReplica(follower).get(),
                    new LogOffsetMetadata(Math.min(offset, end)),
                    0,
                    now,
                    end,
                    follower + 1);
        }
    }

    /** A broker has taken up metadata. */
    static void takenUp(Partition partition) {
        if (JOINS_EARLY.isPlanted() && partition != null && partition.isLeader()) {
            partition.leaderEpochStartOffsetOpt_$eq(Option.apply((Object) 0L));
        }
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
