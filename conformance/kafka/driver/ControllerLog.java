package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.errors.NotLeaderException;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * A voter's copy of the metadata log, behind the interface that a controller knows. Nothing moves in it by itself: who
 * is elected, who fetches, and how much, is the driver's word. What KafkaRaftClient promises a listener holds: committed
 * batches in order, each once; and a leader hears that it leads when it has been given all of its log, up to the record
 * by which its epoch begins.
 */
final class ControllerLog implements RaftClient<ApiMessageAndVersion> {
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    /** Records that were appended at once, as bytes; none: the record by which an epoch begins. */
    record Entry(long base, int epoch, List<byte[]> records) {
        long end() {
            return base + Math.max(1, records.size());
        }
    }

    final int id;
    final int voters;
    final List<Entry> entries = new ArrayList<>();
    int epoch = 0;
    OptionalInt leader = OptionalInt.empty();
    /** The end of what this voter knows to be committed. */
    long highWatermark = 0;
    /** The end of what its listener was given. */
    long given = 0;
    private LeaderAndEpoch told = new LeaderAndEpoch(OptionalInt.empty(), 0);
    private long begin = 0;
    /** Of who leads: how far the others are. */
    private final Map<Integer, Long> ends = new HashMap<>();
    private Entry prepared;
    private Listener<ApiMessageAndVersion> listener;
    /** Who is told of commits beside the controller; null: nobody is. */
    Listener<ApiMessageAndVersion> beside;
    /** All below this is as it was told to whoever reads the driver's lines. */
    long known = 0;

    ControllerLog(int id, int voters) {
        this.id = id;
        this.voters = voters;
    }

    // -- the quorum's word ---------------------------------------------------------------------------------------

    boolean leads() {
        return leader.isPresent() && leader.getAsInt() == id;
    }

    long end() {
        return entries.isEmpty() ? 0 : entries.get(entries.size() - 1).end();
    }

    int epochAt(long offset) {
        for (int place = entries.size() - 1; place >= 0; place--) {
            if (entries.get(place).base <= offset) {
                return entries.get(place).epoch;
            }
        }
        return 0;
    }

    /** This voter leads an epoch, and appends the record by which that begins. */
    void lead(int newEpoch) {
        enter(newEpoch, OptionalInt.of(id));
        begin = end();
        ends.clear();
        entries.add(new Entry(begin, newEpoch, List.of()));
        count();
    }

    /** This voter hears of an epoch, and of who leads it, if anybody does. */
    void enter(int newEpoch, OptionalInt newLeader) {
        epoch = newEpoch;
        leader = newLeader;
        prepared = null;
    }

    /** This voter, who leads, gives that up. */
    void resign() {
        enter(epoch, OptionalInt.empty());
    }

    /** This voter fetches what a leader has and it has not, so many batches; what is not the leader's is cut off. */
    void fetch(ControllerLog from, int batches) {
        if (epoch < from.epoch || leader.isEmpty()) {
            enter(from.epoch, OptionalInt.of(from.id));
        }
        int same = 0;
        while (same < entries.size() && same < from.entries.size() && alike(entries.get(same), from.entries.get(same))) {
            same++;
        }
        while (entries.size() > same) {
            entries.remove(entries.size() - 1);
        }
        known = Math.min(known, end());
        for (int place = same; place < from.entries.size() && place < same + batches; place++) {
            entries.add(from.entries.get(place));
        }
        from.ends.put(id, end());
        from.count();
        highWatermark = Math.max(highWatermark, Math.min(end(), from.highWatermark));
    }

    private static boolean alike(Entry one, Entry other) {
        return one.base == other.base && one.epoch == other.epoch && one.records.size() == other.records.size();
    }

    /** What most voters have is committed, once that reaches the leader's own epoch. */
    private void count() {
        List<Long> all = new ArrayList<>(ends.values());
        all.add(end());
        while (all.size() < voters) {
            all.add(0L);
        }
        all.sort(null);
        long most = all.get((voters - 1) / 2);
        if (leads() && most > begin) {
            highWatermark = Math.max(highWatermark, most);
        }
    }

    /** Give the listener what it is owed; says whether there was anything. */
    boolean tell() {
        if (listener == null) {
            return false;
        }
        // Whoever follows hears of it before it is given what another leader has committed.
        boolean any = !leads() && tellLeader();
        if (given < highWatermark) {
            List<Batch<ApiMessageAndVersion>> owed = new ArrayList<>();
            for (Entry each : entries) {
                if (each.base >= given && each.end() <= highWatermark) {
                    owed.add(batch(each));
                }
            }
            given = highWatermark;
            listener.handleCommit(new Reader(owed));
            if (beside != null) {
                beside.handleCommit(new Reader(owed));
            }
            any = true;
        }
        return leads() && given > begin && tellLeader() || any;
    }

    private boolean tellLeader() {
        LeaderAndEpoch now = leaderAndEpoch();
        if (told.equals(now)) {
            return false;
        }
        told = now;
        listener.handleLeaderChange(now);
        return true;
    }

    /** The process has ended: the next one knows what is in its files, and nothing of what is committed. */
    void restart() {
        listener = null;
        beside = null;
        if (leads()) {
            leader = OptionalInt.empty();
        }
        prepared = null;
        highWatermark = 0;
        given = 0;
        told = new LeaderAndEpoch(OptionalInt.empty(), 0);
    }

    private static Batch<ApiMessageAndVersion> batch(Entry entry) {
        if (entry.records.isEmpty()) {
            return Batch.control(entry.base, entry.epoch, 0, 0, List.of(ControlRecord.of(new LeaderChangeMessage())));
        }
        int size = entry.records.stream().mapToInt(each -> each.length).sum();
        return Batch.data(entry.base, entry.epoch, 0, size, read(entry));
    }

    static List<ApiMessageAndVersion> read(Entry entry) {
        List<ApiMessageAndVersion> found = new ArrayList<>();
        for (byte[] each : entry.records) {
            found.add(SERDE.read(new ByteBufferAccessor(java.nio.ByteBuffer.wrap(each)), each.length));
        }
        return found;
    }

    private static byte[] written(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        byte[] bytes = new byte[SERDE.recordSize(record, cache)];
        SERDE.write(record, cache, new ByteBufferAccessor(java.nio.ByteBuffer.wrap(bytes)));
        return bytes;
    }

    /** Committed batches, in order. */
    private static final class Reader implements BatchReader<ApiMessageAndVersion> {
        private final List<Batch<ApiMessageAndVersion>> batches;
        private int next = 0;

        Reader(List<Batch<ApiMessageAndVersion>> batches) {
            this.batches = batches;
        }

        @Override
        public boolean hasNext() {
            return next < batches.size();
        }

        @Override
        public Batch<ApiMessageAndVersion> next() {
            return batches.get(next++);
        }

        @Override
        public long baseOffset() {
            return batches.get(0).baseOffset();
        }

        @Override
        public OptionalLong lastOffset() {
            return OptionalLong.of(batches.get(batches.size() - 1).lastOffset());
        }

        @Override
        public void close() {}
    }

    // -- the controller's side -----------------------------------------------------------------------------------

    @Override
    public void register(Listener<ApiMessageAndVersion> one) {
        listener = one;
    }

    /** The controller, once it has registered. */
    Listener<ApiMessageAndVersion> listener() {
        return listener;
    }

    @Override
    public void unregister(Listener<ApiMessageAndVersion> one) {
        listener = null;
    }

    @Override
    public OptionalLong highWatermark() {
        return OptionalLong.of(highWatermark);
    }

    @Override
    public LeaderAndEpoch leaderAndEpoch() {
        return new LeaderAndEpoch(leader, epoch);
    }

    @Override
    public OptionalInt nodeId() {
        return OptionalInt.of(id);
    }

    @Override
    public Optional<Node> voterNode(int voter, ListenerName name) {
        return Optional.of(new Node(voter, "localhost", 9090 + voter));
    }

    @Override
    public long prepareAppend(int claimed, List<ApiMessageAndVersion> records) {
        if (!leads() || claimed != epoch) {
            throw new NotLeaderException("epoch " + claimed + " is over, this one is " + epoch);
        }
        List<byte[]> bytes = new ArrayList<>();
        records.forEach(each -> bytes.add(written(each)));
        prepared = new Entry(end(), epoch, bytes);
        return prepared.end() - 1;
    }

    @Override
    public void schedulePreparedAppend() {
        entries.add(prepared);
        prepared = null;
        count();
    }

    @Override
    public CompletableFuture<Void> shutdown(int timeout) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public void resign(int claimed) {
        if (leads() && claimed == epoch) {
            resign();
        }
    }

    @Override
    public Optional<SnapshotWriter<ApiMessageAndVersion>> createSnapshot(OffsetAndEpoch snapshot, long time) {
        return Optional.empty();
    }

    @Override
    public Optional<OffsetAndEpoch> latestSnapshotId() {
        return Optional.empty();
    }

    @Override
    public long logEndOffset() {
        return end();
    }

    @Override
    public KRaftVersion kraftVersion() {
        return KRaftVersion.KRAFT_VERSION_0;
    }

    @Override
    public void upgradeKRaftVersion(int claimed, KRaftVersion version, boolean validateOnly) {
        throw new UnsupportedOperationException("these voters have one version");
    }

    @Override
    public void close() {}
}
