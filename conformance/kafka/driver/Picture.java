package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import kafka.cluster.Partition;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingPartitionChange;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.jdk.javaapi.CollectionConverters;

/** What can be seen of a broker, as JSON. */
final class Picture {
    private Picture() {}

    /** A broker as it is now, with its first segment's records. */
    static void look(Broker broker, ObjectNode seen) throws IOException {
        ArrayNode records = seen.putArray("records");
        Optional<UnifiedLog> log = broker.logs.getLog(broker.topic());
        if (log.isPresent()) {
            Records all = log.get().read(0, 1 << 20, FetchIsolation.LOG_END, true).records;
            shown(all).forEach(records::add);
        }
        roles(broker, log, seen);
    }

    /** What a broker goes by, but its records. */
    static void roles(Broker broker, Optional<UnifiedLog> log, ObjectNode seen) {
        Fetcher fetcher = broker.fetcher();
        seen.put("fetcher", fetcher == null ? "none" : fetcher.baton().waitsFor() >= 0 ? "waits" : "idle");
        seen.put("asks", broker.controller.waitsFor());
        Partition there = broker.partition();
        seen.put("hosted", there != null);
        seen.put("end", log.map(UnifiedLog::logEndOffset).orElse(0L));
        if (there == null) {
            return;
        }
        seen.put("hw", log.map(UnifiedLog::highWatermark).orElse(0L));
        seen.put("epoch", there.getLeaderEpoch());
        seen.put("version", there.getPartitionEpoch());
        seen.put("leader", there.leaderReplicaIdOpt().isEmpty() ? -1 : (Integer) there.leaderReplicaIdOpt().get());
        PartitionState state = there.partitionState();
        boolean leads = there.isLeader();
        seen.put("leads", leads);
        if (!leads) {
            return;
        }
        PartitionState committed = state;
        java.util.Set<Integer> asked = state.isr();
        if (state instanceof PendingPartitionChange pending) {
            asked = new TreeSet<>(pending.sentLeaderAndIsr().isr());
            committed = pending.lastCommittedState();
        }
        set(seen.putArray("isr"), committed.isr());
        set(seen.putArray("maximal"), state.maximalIsr());
        set(seen.putArray("asked"), asked);
        ObjectNode ends = seen.putObject("ends");
        CollectionConverters.asJava(there.remoteReplicas())
                .forEach(each -> ends.put(String.valueOf(each.brokerId()), each.stateSnapshot().logEndOffset()));
    }

    private static void set(ArrayNode into, java.util.Set<Integer> members) {
        new TreeSet<>(members).forEach(into::add);
    }

    static List<Integer> integers(JsonNode array) {
        List<Integer> found = new ArrayList<>();
        array.forEach(each -> found.add(each.asInt()));
        return found;
    }

    /** Records as [offset, leader epoch, payload]. */
    static ArrayNode shown(Records records) {
        ArrayNode found = Lines.JSON.createArrayNode();
        for (RecordBatch batch : records.batches()) {
            for (Record each : batch) {
                ByteBuffer value = each.value();
                byte[] there = new byte[value.remaining()];
                value.duplicate().get(there);
                found.addArray()
                        .add(each.offset())
                        .add(batch.partitionLeaderEpoch())
                        .add(new String(there, StandardCharsets.UTF_8));
            }
        }
        return found;
    }
}
