package fencepost.kafka;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.Metadata.LeaderAndEpoch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.internals.AutoOffsetResetStrategy;
import org.apache.kafka.clients.consumer.internals.ConsumerMetadata;
import org.apache.kafka.clients.consumer.internals.SubscriptionState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.utils.internals.LogContext;

/** A change of a few lines in the consumer's own classes, by a subclass: whoever judges the consumer must see it. */
enum Planted {
    NONE,
    /** A position goes over to another leader, and is not validated there (KAFKA-7747). */
    NEVER_VALIDATES,
    /** An answer to a validation counts for whatever the position is by now. */
    TAKES_ANY_VALIDATION,
    /** A log that is too short is no truncation. */
    OVERLOOKS_TRUNCATION,
    /** The position does not have the epoch of the record before it (KAFKA-7440). */
    FORGETS_EPOCH,
    /** A position that is sought with an epoch is not validated. */
    TRUSTS_SEEKS,
    /** Metadata of an older leader epoch takes the place of newer (KAFKA-6262). */
    GOES_BACK,
    /** A commit does not have the epoch of the record before it (as in KAFKA-19902). */
    COMMITS_NO_EPOCH;

    private static Planted planted = NONE;

    /** Have it hold from the next start on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    static SubscriptionState subscriptions(LogContext log, AutoOffsetResetStrategy policy) {
        return planted == NONE ? new SubscriptionState(log, policy) : new Subscriptions(log, policy);
    }

    static ConsumerMetadata metadata(ConsumerConfig config, SubscriptionState subscriptions, LogContext log) {
        ClusterResourceListeners nobody = new ClusterResourceListeners();
        if (planted != GOES_BACK) {
            return new ConsumerMetadata(config, subscriptions, log, nobody);
        }
        return new ConsumerMetadata(config, subscriptions, log, nobody) {
            @Override
            public synchronized void update(int version, MetadataResponse told, boolean partial, long now) {
                try {
                    ((Map<?, ?>) Reader.get(this, "lastSeenLeaderEpochs")).clear();
                } catch (ReflectiveOperationException failed) {
                    throw new IllegalStateException(failed);
                }
                super.update(version, told, partial, now);
            }
        };
    }

    /** Where a partition is read. */
    private static final class Subscriptions extends SubscriptionState {
        Subscriptions(LogContext log, AutoOffsetResetStrategy policy) {
            super(log, policy);
        }

        @Override
        public synchronized boolean maybeValidatePositionForCurrentLeader(
                ApiVersions versions, TopicPartition of, LeaderAndEpoch leads) {
            boolean waits = super.maybeValidatePositionForCurrentLeader(versions, of, leads);
            if (waits && planted == NEVER_VALIDATES) {
                completeValidation(of);
                return false;
            }
            return waits;
        }

        @Override
        public synchronized Optional<LogTruncation> maybeCompleteValidation(
                TopicPartition of, FetchPosition asked, EpochEndOffset end) {
            if (planted == OVERLOOKS_TRUNCATION && awaitingValidation(of) && position(of).equals(asked)) {
                completeValidation(of);
                return Optional.empty();
            }
            FetchPosition now = positionOrNull(of);
            return super.maybeCompleteValidation(of, planted == TAKES_ANY_VALIDATION && now != null ? now : asked, end);
        }

        @Override
        public synchronized void position(TopicPartition of, FetchPosition to) {
            super.position(of, planted == FORGETS_EPOCH ? without(to) : to);
        }

        @Override
        public void seekUnvalidated(TopicPartition of, FetchPosition to) {
            if (planted == TRUSTS_SEEKS) {
                seekValidated(of, to);
            } else {
                super.seekUnvalidated(of, to);
            }
        }

        @Override
        public synchronized Map<TopicPartition, OffsetAndMetadata> allConsumed() {
            Map<TopicPartition, OffsetAndMetadata> found = super.allConsumed();
            if (planted == COMMITS_NO_EPOCH) {
                Map<TopicPartition, OffsetAndMetadata> changed = new HashMap<>();
                found.forEach((of, at) -> changed.put(of, new OffsetAndMetadata(at.offset(), Optional.empty(), "")));
                return changed;
            }
            return found;
        }

        private static FetchPosition without(FetchPosition at) {
            try {
                return new FetchPosition(at.offset, Optional.empty(), (LeaderAndEpoch) Reader.get(at, "currentLeader"));
            } catch (ReflectiveOperationException failed) {
                throw new IllegalStateException(failed);
            }
        }
    }
}
