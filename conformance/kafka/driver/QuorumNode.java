package org.apache.kafka.raft;

import fencepost.kafka.Manual;
import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.raft.internals.BatchMemoryPool;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.raft.internals.QuorumLogs;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * A process of a quorum's node: Kafka's client, log and state store on a folder of its own, with a clock that the driver
 * sets, and a queue that the driver fills. Nothing happens but in {@link #poll}.
 */
final class QuorumNode {
    static final TopicPartition PARTITION = new TopicPartition("__cluster_metadata", 0);
    static final Uuid TOPIC = Uuid.METADATA_TOPIC_ID;
    /** In milliseconds. */
    static final int REQUEST_TIMEOUT = 500;
    private static final String CLUSTER = "fencepost";
    private static final ListenerName LISTENER = new ListenerName("CONTROLLER");
    /** All nodes share the buffers of 8 MB that batches are made in; those that are free are kept. */
    private static final MemoryPool BUFFERS = new BatchMemoryPool(8, KafkaRaftClient.MAX_BATCH_SIZE_BYTES);

    /** Whoever polls in vain so often without waiting does nothing: an observer whose fetch timeout has run off. */
    private static final int IDLE = 4;

    /** What is the same for all nodes of a run. */
    record Settings(int nodes, int voters, int fetchBytes, int chunk, long seed, boolean rolls) {}

    /** A snapshot's reader, and the lines that it found. */
    record Read(RawSnapshotReader raw, List<String> lines) {}

    final int id;
    final Path folder;
    final Manual.Clock clock = new Manual.Clock();
    final Manual.Tasks tasks = new Manual.Tasks();
    final QuorumMachine machine = new QuorumMachine();
    final KafkaRaftLog log;
    /** The log that the client has: Kafka's own, but for a planted defect. */
    final RaftLog planted;
    final KafkaRaftClient<String> client;
    final Queue queue = new Queue();
    final List<RaftRequest.Outbound> sent = new ArrayList<>();
    /** The end of what was synced when the node had done what it had to. */
    long synced = 0;
    /** How often the log was not to be cleaned. */
    int refusals = 0;
    /** What was read of each snapshot, as long as its reader is the same. */
    final Map<OffsetAndEpoch, Read> read = new HashMap<>();
    private final Settings settings;
    private final Metrics metrics = new Metrics();

    QuorumNode(int id, int life, Path folder, Settings settings, long now) throws IOException {
        this.id = id;
        this.folder = folder;
        this.settings = settings;
        clock.move(now - clock.milliseconds());
        Map<String, String> given = new HashMap<>();
        given.put(QuorumConfig.QUORUM_REQUEST_TIMEOUT_MS_CONFIG, String.valueOf(REQUEST_TIMEOUT));
        given.put(QuorumConfig.QUORUM_RETRY_BACKOFF_MS_CONFIG, "50");
        given.put(QuorumConfig.QUORUM_ELECTION_TIMEOUT_MS_CONFIG, "1000");
        given.put(QuorumConfig.QUORUM_ELECTION_BACKOFF_MAX_MS_CONFIG, "100");
        given.put(QuorumConfig.QUORUM_FETCH_TIMEOUT_MS_CONFIG, "2000");
        given.put(QuorumConfig.QUORUM_LINGER_MS_CONFIG, "0");
        given.put(QuorumConfig.QUORUM_FETCH_MAX_BYTES_CONFIG, String.valueOf(settings.fetchBytes));
        given.put(QuorumConfig.QUORUM_FETCH_SNAPSHOT_MAX_BYTES_CONFIG, String.valueOf(settings.chunk));
        LogContext context = new LogContext("[node " + id + "] ");
        log = KafkaRaftLog.createLog(PARTITION, TOPIC, directory().toFile(), clock, tasks, config(), id);
        planted = QuorumDefect.log(log, directory());
        tasks.settle();
        client =
                new KafkaRaftClient<>(
                        OptionalInt.of(id),
                        directoryId(id),
                        new StringSerde(),
                        new Channel(),
                        queue,
                        planted,
                        BUFFERS,
                        clock,
                        new Never(),
                        0,
                        id < settings.voters,
                        CLUSTER,
                        List.of(),
                        Endpoints.fromInetSocketAddresses(Map.of(LISTENER, address(id))),
                        Feature.KRAFT_VERSION.supportedVersionRange(),
                        context,
                        new Random(settings.seed * 31 + id * 1_000_003L + life),
                        new QuorumConfig(new AbstractConfig(QuorumConfig.CONFIG_DEF, given)));
        Map<Integer, InetSocketAddress> voters = new TreeMap<>();
        for (int each = 0; each < settings.voters; each++) {
            voters.put(each, address(each));
        }
        client.register(machine);
        File state = directory().resolve(FileQuorumStateStore.DEFAULT_FILE_NAME).toFile();
        client.initialize(voters, QuorumDefect.store(new FileQuorumStateStore(state)), metrics, ignored -> {});
    }

    private static MetadataLogConfig config() {
        Map<String, String> given = new HashMap<>();
        // The oldest snapshots go whenever Kafka's cleaner is run.
        given.put(MetadataLogConfig.METADATA_MAX_RETENTION_BYTES_CONFIG, "1");
        given.put(MetadataLogConfig.METADATA_MAX_RETENTION_MILLIS_CONFIG, "-1");
        given.put(MetadataLogConfig.INTERNAL_METADATA_DELETE_DELAY_MILLIS_CONFIG, "0");
        return new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF, given));
    }

    private static InetSocketAddress address(int id) {
        return InetSocketAddress.createUnresolved("node-" + id, 9090 + id);
    }

    private static Uuid directoryId(int id) {
        return new Uuid(0x0123456789ABCDEFL, id + 1);
    }

    Path directory() {
        return folder.resolve(PARTITION.toString());
    }

    // -- what happens --------------------------------------------------------------------------------------------

    /** Polls until there is nothing to do at this time, or so many times. */
    void poll(int atMost) throws IOException {
        int idle = 0;
        for (int done = 0; done < atMost && idle < IDLE; done++) {
            int before = sent.size();
            client.poll();
            tasks.settle();
            if (queue.hasMore() || sent.size() > before) {
                idle = 0;
            } else if (queue.waits > 0) {
                idle = IDLE;
            } else {
                idle++;
            }
        }
        // A segment that ends is synced in the background: nobody may go by that.
        synced = QuorumLogs.synced(log);
        if (settings.rolls) {
            QuorumLogs.roll(log);
            tasks.settle();
        }
    }

    CompletionStage<RaftResponse.Outbound> receive(QuorumWire.Request request, int correlation) {
        return client.handle(
                new RaftRequest.Inbound(LISTENER, correlation, request.version(), request.parsed(), clock.milliseconds()));
    }

    /** A response comes; the client knows whether it still waits for that. */
    void receive(QuorumWire.Response response, RaftRequest.Outbound request) {
        queue.add(new RaftResponse.Inbound(request.correlationId(), response.parsed(), request.destination()));
    }

    void append(List<String> records) {
        client.prepareAppend(client.quorum().epoch(), records);
        client.schedulePreparedAppend();
    }

    /** A snapshot of what the machine had applied at that end, of about so many bytes. */
    void snapshot(QuorumMachine.End end, int bytes) {
        Optional<SnapshotWriter<String>> writer =
                client.createSnapshot(new OffsetAndEpoch(end.offset(), end.epoch()), end.appended());
        if (writer.isPresent()) {
            try (SnapshotWriter<String> there = writer.get()) {
                there.append(machine.lines.subList(0, (int) end.offset()));
                if (bytes > 0) {
                    there.append(List.of(QuorumMachine.PADDING.repeat(bytes)));
                }
                there.freeze();
            }
        }
        tasks.settle();
    }

    /** The process ends, with no word to anybody: its files stay as they are. */
    void end() {
        QuorumLogs.drop(log);
        metrics.close();
    }

    void close() throws IOException {
        end();
        Utils.delete(folder.toFile());
    }

    // -- what is around it ---------------------------------------------------------------------------------------

    /** Messages wait here; how long the client would wait for one says when its next timer runs off. */
    static final class Queue implements RaftMessageQueue {
        private final ArrayDeque<RaftMessage> waiting = new ArrayDeque<>();
        private boolean woken;
        private boolean taken;
        long waits = 0;

        private record Entry(RaftMessage message, CompletableFuture<RaftMessage> future) implements QueueEntry {}

        private final Map<RaftMessage, CompletableFuture<RaftMessage>> futures = new java.util.IdentityHashMap<>();

        @Override
        public Optional<QueueEntry> poll(long timeout) {
            waits = timeout;
            woken = false;
            RaftMessage next = waiting.poll();
            taken = next != null;
            return next == null ? Optional.empty() : Optional.of(new Entry(next, futures.remove(next)));
        }

        @Override
        public CompletionStage<RaftMessage> add(RaftMessage message) {
            CompletableFuture<RaftMessage> future = new CompletableFuture<>();
            waiting.add(message);
            futures.put(message, future);
            return future;
        }

        @Override
        public boolean isEmpty() {
            return waiting.isEmpty();
        }

        @Override
        public void wakeup() {
            woken = true;
        }

        /** The client has just taken a message, or should look again. */
        boolean hasMore() {
            return woken || taken || !waiting.isEmpty();
        }
    }

    /** What is sent is taken from here. */
    private final class Channel implements NetworkChannel {
        private int correlations = 0;

        @Override
        public int newCorrelationId() {
            return QuorumDefect.TAKES_ANY_ANSWER.isPlanted() ? 0 : correlations++;
        }

        @Override
        public CompletionStage<RaftResponse.Inbound> send(RaftRequest.Outbound request) {
            sent.add(request);
            return new CompletableFuture<>();
        }

        @Override
        public ListenerName listenerName() {
            return LISTENER;
        }

        @Override
        public void close() {}
    }

    /** Nothing that waits in a purgatory expires. */
    private static final class Never implements ExpirationService {
        @Override
        public <T> CompletableFuture<T> failAfter(long ms) {
            return new CompletableFuture<>();
        }
    }
}
