package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.SnapshotPath;
import org.apache.kafka.snapshot.Snapshots;

/** What can be seen of a node of the quorum, as JSON. */
final class QuorumPicture {
    private QuorumPicture() {}

    static void look(QuorumNode node, ObjectNode seen) throws IOException {
        QuorumState state = node.client.quorum();
        seen.put("epoch", state.epoch());
        seen.put("leader", state.leaderIdOrSentinel());
        seen.put("role", role(state));
        seen.put("voted", state.votedKey().map(ReplicaKey::id).orElse(-1));
        seen.put("begin", node.log.startOffset());
        seen.put("end", node.log.endOffset().offset());
        seen.put("last", node.log.lastFetchedEpoch());
        seen.put("hw", node.log.highWatermark().offset());
        seen.put("known", state.highWatermark().map(LogOffsetMetadata::offset).orElse(-1L));
        seen.put("synced", node.synced);
        seen.put("waits", node.queue.waits);
        seen.put("applied", node.machine.lines.size());
        ArrayNode votes = seen.putArray("votes");
        if (state.isCandidate()) {
            new TreeSet<>(state.candidateStateOrThrow().epochElection().grantingVoters()).forEach(votes::add);
        }
        ObjectNode counted = seen.putObject("counted");
        if (state.isLeader()) {
            state.leaderStateOrThrow()
                    .voterStates()
                    .forEach(
                            (id, each) ->
                                    counted.put(
                                            String.valueOf(id),
                                            each.endOffset().map(LogOffsetMetadata::offset).orElse(-1L)));
        }
        if (state.isFollower() && state.followerStateOrThrow().fetchingSnapshot().isPresent()) {
            var there = state.followerStateOrThrow().fetchingSnapshot().get();
            seen.putArray("fetching")
                    .add(there.snapshotId().offset())
                    .add(there.snapshotId().epoch())
                    .add(there.sizeInBytes());
        }
        records(node, seen.putArray("records"));
        snapshots(node, seen.putArray("snapshots"));
        ArrayNode ends = seen.putArray("ends");
        for (QuorumMachine.End each : node.machine.ends) {
            ends.addArray().add(each.offset()).add(each.epoch());
        }
        ArrayNode lines = seen.putArray("lines");
        node.machine.lines.forEach(lines::add);
    }

    private static String role(QuorumState state) {
        if (state.isLeader()) {
            return "leader";
        } else if (state.isCandidate()) {
            return "candidate";
        } else if (state.isProspective()) {
            return "prospective";
        } else if (state.isFollower()) {
            return "follower";
        } else {
            return state.isResigned() ? "resigned" : "unattached";
        }
    }

    /** A line for each record, segment by segment. */
    private static void records(QuorumNode node, ArrayNode found) {
        long offset = node.log.startOffset();
        long end = node.log.endOffset().offset();
        while (offset < end) {
            Records there = node.log.read(offset, Isolation.UNCOMMITTED, Integer.MAX_VALUE).records;
            long next = offset;
            for (RecordBatch batch : there.batches()) {
                for (Record each : batch) {
                    if (each.offset() >= offset) {
                        found.add(QuorumMachine.line(each.offset(), batch.partitionLeaderEpoch(), payload(batch, each)));
                    }
                }
                next = batch.nextOffset();
            }
            if (next == offset) {
                return;
            }
            offset = next;
        }
    }

    private static String payload(RecordBatch batch, Record record) {
        if (batch.isControlBatch()) {
            return QuorumMachine.OF_LEADER;
        }
        ByteBuffer value = record.value().duplicate();
        byte[] there = new byte[value.remaining()];
        value.get(there);
        return new String(there, StandardCharsets.UTF_8);
    }

    /** End, epoch, size in bytes and lines of each snapshot in the folder; size -1: the node does not know it. */
    private static void snapshots(QuorumNode node, ArrayNode found) throws IOException {
        TreeMap<OffsetAndEpoch, Path> files = new TreeMap<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(node.directory(), "*" + Snapshots.SUFFIX)) {
            for (Path each : all) {
                Optional<SnapshotPath> known = Snapshots.parse(each);
                if (known.isPresent() && !known.get().partial() && !known.get().deleted()) {
                    files.put(known.get().snapshotId(), each);
                }
            }
        }
        Optional<OffsetAndEpoch> latest = node.log.latestSnapshotId();
        latest.ifPresent(each -> files.putIfAbsent(each, node.directory()));
        for (OffsetAndEpoch each : files.keySet()) {
            Optional<RawSnapshotReader> raw = node.log.readSnapshot(each);
            ArrayNode one = found.addArray().add(each.offset()).add(each.epoch());
            one.add(raw.isEmpty() ? -1 : raw.get().sizeInBytes());
            ArrayNode lines = one.addArray();
            if (raw.isPresent()) {
                lines(node, each, raw.get()).forEach(lines::add);
            }
        }
    }

    /** A file of this name and size is the same as long as the process lives, unless it was deleted meanwhile. */
    private static List<String> lines(QuorumNode node, OffsetAndEpoch id, RawSnapshotReader raw) {
        QuorumNode.Read known = node.read.get(id);
        if (known != null && known.raw() == raw) {
            return known.lines();
        }
        List<String> lines;
        try (RecordsSnapshotReader<String> reader =
                RecordsSnapshotReader.of(
                        raw, new StringSerde(), BufferSupplier.create(), 1 << 20, true, new LogContext(""))) {
            lines = QuorumMachine.read(reader);
        } catch (RuntimeException broken) {
            lines = List.of("unreadable: " + broken.getMessage());
        }
        node.read.put(id, new QuorumNode.Read(raw, lines));
        return lines;
    }
}
