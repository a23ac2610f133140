package fencepost.kafka;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import kafka.cluster.Partition;
import kafka.server.KafkaConfig;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.log.remote.storage.RemoteTasks;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.quota.ReplicationQuotaManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;

/** One broker's process: Kafka's ReplicaManager over its LogManager, on real files. */
final class Broker {
    final int id;
    final Cluster cluster;
    final Path folder;
    final Manual.Tasks tasks = new Manual.Tasks();
    final KRaftMetadataCache cache;
    final LogManager logs;
    final ReplicaManager replicas;
    final Controller controller;
    /** What is done with remote storage; null where there is none. */
    final RemoteTasks remote;
    /** Of the remote log manager's threads, the one that has a task. */
    final Worker worker = new Worker();
    private final KafkaConfig config;
    private final Metrics metrics = new Metrics();
    private MetadataImage image = MetadataImage.EMPTY;
    private long offset = 0;
    private Fetcher fetcher;

    Broker(int id, Cluster cluster, Path folder) throws Exception {
        this.id = id;
        this.cluster = cluster;
        this.folder = folder;
        config = cluster.configOf(id, folder);
        cache = new KRaftMetadataCache(id, () -> KRaftVersion.KRAFT_VERSION_0);
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        BrokerTopicStats stats = new BrokerTopicStats(cluster.isTiered());
        logs =
                new LogManager(
                        List.of(folder.toFile()),
                        List.of(),
                        cache,
                        cluster.defaults(),
                        cluster.cleaning(),
                        1,
                        Long.MAX_VALUE,
                        60_000L,
                        60_000L,
                        300_000L,
                        900_000,
                        new ProducerStateManagerConfig(86_400_000, false),
                        600_000,
                        tasks,
                        stats,
                        failures,
                        cluster.clock,
                        cluster.isTiered(),
                        30_000L,
                        cluster::cleaner);
        controller = new Controller();
        AlterPartitionManager alter = Defect.alterManager(controller, tasks, id, () -> cluster.epochOf(id));
        remote = cluster.remote(this, config, stats, metrics);
        replicas =
                new ReplicaManager(
                        config,
                        metrics,
                        cluster.clock,
                        tasks,
                        logs,
                        Option.apply(remote),
                        cluster.quotas(config),
                        cache,
                        failures,
                        alter,
                        stats,
                        purgatory("Produce"),
                        purgatory("Fetch"),
                        purgatory("DeleteRecords"),
                        purgatory("RemoteFetch"),
                        purgatory("RemoteListOffsets"),
                        purgatory("ShareFetch"),
                        () -> (Object) Long.valueOf(cluster.epochOf(id)),
                        Option.empty(),
                        DirectoryEventHandler.NOOP,
                        new DelayedActionQueue()) {
                    @Override
                    public ReplicaFetcherManager createReplicaFetcherManager(
                            Metrics used, org.apache.kafka.common.utils.Time time, ReplicationQuotaManager quota) {
                        return fetchers(this, used, time, quota);
                    }
                };
        logs.startup(Set.of());
        replicas.startup();
    }

    private <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory(String name) {
        return Option.apply(new DelayedOperationPurgatory<T>(name, new Manual.Never(), id, 1000, false, false));
    }

    static LogConfig defaults(int minIsr, Map<String, String> more) {
        Map<String, String> found = new HashMap<>(more);
        found.put("min.insync.replicas", String.valueOf(minIsr));
        found.put("segment.index.bytes", "4096");
        found.put("file.delete.delay.ms", "0");
        return new LogConfig(found);
    }

    static Map<String, String> settings(int id, Path folder) {
        Map<String, String> found = new HashMap<>();
        found.put("process.roles", "broker");
        found.put("node.id", String.valueOf(id));
        found.put("controller.quorum.voters", "100@localhost:9093");
        found.put("controller.listener.names", "CONTROLLER");
        found.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        found.put("listeners", "PLAINTEXT://localhost:9092");
        found.put("log.dirs", folder.toString());
        // Whoever has not everything lags, and nobody else: time says nothing here.
        found.put("replica.lag.time.max.ms", "0");
        found.put("replica.fetch.wait.max.ms", "0");
        found.put("replica.fetch.backoff.ms", "0");
        return found;
    }

    private ReplicaFetcherManager fetchers(
            ReplicaManager owner, Metrics used, org.apache.kafka.common.utils.Time time, ReplicationQuotaManager quota) {
        KafkaConfig settings = owner.config();
        return new ReplicaFetcherManager(
                settings, owner, used, time, quota, () -> owner.metadataCache().metadataVersion(), owner.brokerEpochSupplier()) {
            @Override
            public ReplicaFetcherThread createFetcherThread(int number, BrokerEndPoint leader) {
                String prefix = "[ReplicaFetcher " + settings.brokerId() + " of " + leader.id() + "] ";
                Fetcher.Baton baton = new Fetcher.Baton();
                RemoteLeaderEndPoint there =
                        new RemoteLeaderEndPoint(
                                prefix,
                                new Fetcher.Sender(cluster, settings.brokerId(), leader, baton),
                                new FetchSessionHandler(new LogContext(prefix), leader.id()),
                                settings,
                                owner,
                                quota,
                                () -> owner.metadataCache().metadataVersion(),
                                owner.brokerEpochSupplier());
                fetcher =
                        new Fetcher(
                                "ReplicaFetcherThread-" + number + "-" + leader.id(),
                                there,
                                settings,
                                failedPartitions(),
                                owner,
                                quota,
                                prefix,
                                baton);
                return fetcher;
            }
        };
    }

    /** Replay records into one delta, and have the broker take it up, as BrokerMetadataPublisher does. */
    void take(List<ApiMessage> records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (ApiMessage each : records) {
            delta.replay(each);
        }
        offset += records.size();
        image = delta.apply(new MetadataProvenance(offset, 1, 0, true));
        cache.setImage(image);
        if (delta.topicsDelta() != null) {
            replicas.applyDelta(delta.topicsDelta(), image);
            Defect.takenUp(partition());
        }
        finish();
    }

    /** What a broker does after each request, and what was scheduled for at once. */
    void finish() {
        replicas.tryCompleteActions();
        tasks.settle();
    }

    /** The fetcher that lives, or null. */
    Fetcher fetcher() {
        return fetcher == null || fetcher.baton().isClosed() || fetcher.baton().isAt(Fetcher.Baton.At.ENDED) ? null : fetcher;
    }

    Partition partition() {
        Option<Partition> found = replicas.onlinePartition(cluster.partition);
        return found.isEmpty() ? null : found.get();
    }

    /** A copy of its files as they are now, which is what it would leave if its process ended. */
    void copy(Path copy) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path each : (Iterable<Path>) all::iterator) {
                Path there = copy.resolve(folder.relativize(each).toString());
                if (Files.isDirectory(each)) {
                    Files.createDirectories(there);
                } else if (!each.getFileName().toString().equals(".lock")) {
                    Files.copy(each, there);
                }
            }
        }
    }

    void close() throws Exception {
        worker.end();
        replicas.shutdown(false);
        if (remote != null) {
            remote.close();
        }
        logs.shutdown();
        metrics.close();
        Utils.delete(folder.toFile());
    }

    TopicPartition topic() {
        return cluster.partition;
    }

    /** The channel to the controller: one request at a time is on its way, and the driver says when an answer comes. */
    final class Controller implements NodeToControllerChannelManager {
        private long number = -1;
        private AbstractRequest.Builder<? extends AbstractRequest> request;
        private ControllerRequestCompletionHandler handler;

        @Override
        public void start() {}

        @Override
        public void shutdown() {}

        @Override
        public Optional<NodeApiVersions> controllerApiVersions() {
            return Optional.empty();
        }

        @Override
        public long getTimeoutMs() {
            return Long.MAX_VALUE;
        }

        @Override
        public void sendRequest(
                AbstractRequest.Builder<? extends AbstractRequest> asked, ControllerRequestCompletionHandler told) {
            request = asked;
            handler = told;
            number = cluster.messages.asked(id, -1, request.build(request.latestAllowedVersion()));
        }

        /** The request that has no answer yet; -1: there is none. */
        long waitsFor() {
            return request == null ? -1 : number;
        }

        /** An answer comes; to a request that nobody waits for any more it is dropped. */
        void answered(long answered, AbstractResponse response) {
            if (request == null || number != answered) {
                return;
            }
            short version = request.latestAllowedVersion();
            RequestHeader header = new RequestHeader(ApiKeys.ALTER_PARTITION, version, "alter", 0);
            ControllerRequestCompletionHandler told = handler;
            request = null;
            handler = null;
            told.onComplete(new ClientResponse(header, null, "controller", 0, 0, false, null, null, response));
        }
    }
}
