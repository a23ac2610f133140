package fencepost.kafka;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import kafka.server.BlockingSend;
import kafka.server.FailedPartitions;
import java.util.Optional;
import kafka.server.KafkaConfig;
import kafka.server.OffsetTruncationState;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import scala.Option;

/** Kafka's fetcher thread, which goes on only when it is told to: before a round, and where it waits for an answer. */
final class Fetcher extends ReplicaFetcherThread {
    private final Baton baton;
    private final ReplicaManager replicas;

    Fetcher(
            String name,
            LeaderEndPoint leader,
            KafkaConfig config,
            FailedPartitions failed,
            ReplicaManager replicas,
            ReplicaQuota quota,
            String prefix,
            Baton baton) {
        super(name, leader, config, failed, replicas, quota, prefix);
        this.baton = baton;
        this.replicas = replicas;
        setDaemon(true);
    }

    @Override
    public synchronized void start() {
        super.start();
        baton.untilParked();
    }

    @Override
    public void doWork() {
        baton.park(Baton.At.IDLE);
        if (isRunning()) {
            super.doWork();
        }
    }

    @Override
    public void run() {
        try {
            super.run();
        } finally {
            baton.end();
        }
    }

    Baton baton() {
        return baton;
    }

    @Override
    public void truncate(TopicPartition partition, OffsetTruncationState state) {
        if (Defect.COMMITS_BEFORE_CUTTING.isPlanted()) {
            try {
                replicas.localLogOrException(partition).maybeUpdateHighWatermark(baton.highWatermark);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
        if (!Defect.KEEPS_DIVERGENCE.isPlanted()) {
            super.truncate(partition, state);
        }
    }

    @Override
    public Optional<OffsetAndEpoch> endOffsetForEpoch(TopicPartition partition, int epoch) {
        return Defect.CUTS_BY_OFFSET.isPlanted()
                ? Optional.of(new OffsetAndEpoch(logEndOffset(partition), epoch))
                : super.endOffsetForEpoch(partition, epoch);
    }

    @Override
    public Optional<Integer> latestEpoch(TopicPartition partition) {
        return Defect.NAMES_NO_EPOCH.isPlanted() ? Optional.empty() : super.latestEpoch(partition);
    }

    @Override
    public boolean shouldFetchFromLastTieredOffset(TopicPartition partition, long leaders, long own) {
        return super.shouldFetchFromLastTieredOffset(partition, leaders, TieringDefect.JUMPS_WITH_DATA.isPlanted() ? 0 : own);
    }

    @Override
    public Option<LogAppendInfo> processPartitionData(
            TopicPartition partition, long offset, int epoch, FetchResponseData.PartitionData data) {
        if (Defect.COMMITS_ALL.isPlanted()) {
            data.setHighWatermark(Long.MAX_VALUE);
        }
        return super.processPartitionData(partition, offset, epoch, data);
    }

    /** Between the driver and one fetcher, of which one runs at a time. */
    static final class Baton {
        enum At {
            IDLE,
            WAITING,
            ENDED
        }

        private At at;
        private boolean go;
        private boolean closed;
        private ByteBuffer parcel;
        private long request = -1;
        /** What the last answer said, for those defects that have to know it. */
        private long highWatermark = 0;

        private boolean empty = false;

        /** Of the fetcher: stop here until told to go on; gives what came, null where nothing did. */
        synchronized ByteBuffer park(At where) {
            at = where;
            notifyAll();
            while (!go && !closed) {
                pause();
            }
            go = false;
            at = null;
            ByteBuffer found = parcel;
            parcel = null;
            return found;
        }

        /** Of the driver: let it go on, until it stops again. */
        synchronized void resume(ByteBuffer brought) {
            if (at == At.ENDED) {
                return;
            }
            parcel = brought;
            go = true;
            at = null;
            notifyAll();
            untilParked();
        }

        synchronized void untilParked() {
            while (at == null) {
                pause();
            }
        }

        synchronized void close() {
            closed = true;
            notifyAll();
        }

        synchronized void end() {
            at = At.ENDED;
            notifyAll();
        }

        synchronized boolean isAt(At where) {
            return at == where;
        }

        synchronized boolean isClosed() {
            return closed;
        }

        synchronized long waitsFor() {
            return at == At.WAITING ? request : -1;
        }

        synchronized void asks(long number) {
            request = number;
        }

        private void pause() {
            try {
                wait();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    /** The wire of a fetcher: its requests go to the driver as bytes, and their answers come back as bytes. */
    static final class Sender implements BlockingSend {
        private final Cluster cluster;
        private final int from;
        private final BrokerEndPoint to;
        private final Baton baton;

        Sender(Cluster cluster, int from, BrokerEndPoint to, Baton baton) {
            this.cluster = cluster;
            this.from = from;
            this.to = to;
            this.baton = baton;
        }

        @Override
        public BrokerEndPoint brokerEndPoint() {
            return to;
        }

        @Override
        public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> builder) {
            short version = builder.latestAllowedVersion();
            AbstractRequest request = builder.build(version);
            if (Defect.FORGETS_LAST_EPOCH.isPlanted() && baton.empty && request instanceof FetchRequest fetch) {
                fetch.data().topics().forEach(topic -> topic.partitions().forEach(each -> each.setLastFetchedEpoch(-1)));
            }
            baton.asks(cluster.messages.asked(from, to.id(), request));
            ByteBuffer answer = baton.park(Baton.At.WAITING);
            if (answer == null) {
                throw new UncheckedDisconnect("no answer came from " + to.id());
            }
            AbstractResponse response =
                    AbstractResponse.parseResponse(
                            request.apiKey(), new org.apache.kafka.common.protocol.ByteBufferAccessor(answer), version);
            if (response instanceof FetchResponse fetched) {
                for (FetchResponseData.FetchableTopicResponse topic : fetched.data().responses()) {
                    for (FetchResponseData.PartitionData each : topic.partitions()) {
                        baton.highWatermark = each.highWatermark();
                        baton.empty = FetchResponse.recordsSize(each) == 0 && !FetchResponse.isDivergingEpoch(each);
                    }
                }
            }
            RequestHeader header = new RequestHeader(request.apiKey(), version, "fetcher", 0);
            return new ClientResponse(header, null, to.toString(), 0, 0, false, null, null, response);
        }

        @Override
        public void initiateClose() {
            baton.close();
        }

        @Override
        public void close() {}
    }

    /** What a broken connection is to a fetcher. */
    static final class UncheckedDisconnect extends RuntimeException {
        private static final long serialVersionUID = 1L;

        UncheckedDisconnect(String what) {
            super(what, new IOException(what), false, false);
        }
    }
}
