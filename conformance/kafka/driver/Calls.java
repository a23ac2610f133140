package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import scala.Tuple2;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** What producers and consumers ask brokers for, past their sockets. */
final class Calls {
    private final Cluster cluster;
    private final Messages messages;

    Calls(Cluster cluster, Messages messages) {
        this.cluster = cluster;
        this.messages = messages;
    }

    void produce(Broker broker, JsonNode command) {
        long request = command.get("request").asLong();
        MemoryRecords records = cluster.sent(command);
        Map<TopicIdPartition, MemoryRecords> entries = new HashMap<>();
        entries.put(new TopicIdPartition(cluster.topicId, cluster.partition), records);
        String topic = cluster.partition.topic();
        broker.replicas.appendRecords(
                Long.MAX_VALUE / 4,
                (short) (Defect.ACKS_ONE.isPlanted() ? 1 : command.get("acks").asInt()),
                false,
                AppendOrigin.CLIENT,
                CollectionConverters.asScala(entries),
                found -> {
                    for (ProduceResponse.PartitionResponse each : found.values()) {
                        if (!messages.isMuted() && topic.equals(cluster.partition.topic())) {
                            messages.answers(request, broker.id, -1, "produced")
                                    .put("error", each.error.name())
                                    .put("offset", each.baseOffset);
                        }
                    }
                    return BoxedUnit.UNIT;
                },
                broker.replicas.appendRecords$default$7(),
                RequestLocal.noCaching(),
                broker.replicas.appendRecords$default$9(),
                broker.replicas.appendRecords$default$10());
        broker.finish();
    }

    void read(Broker broker, JsonNode command) {
        long request = command.get("request").asLong();
        Buffer<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> infos =
                CollectionConverters.asScala(new ArrayList<Tuple2<TopicIdPartition, FetchRequest.PartitionData>>());
        infos.append(
                new Tuple2<>(
                        new TopicIdPartition(cluster.topicId, cluster.partition),
                        new FetchRequest.PartitionData(
                                cluster.topicId,
                                command.get("offset").asLong(),
                                0,
                                command.path("bytes").asInt(1 << 20),
                                named(command, "current"),
                                named(command, "last"))));
        FetchParams params =
                new FetchParams(-1, -1, 0, 0, 1 << 20, FetchIsolation.HIGH_WATERMARK, Optional.empty());
        broker.replicas.fetchMessages(
                params,
                infos,
                QuotaFactory.UNBOUNDED_QUOTA,
                found -> {
                    FetchPartitionData there = found.apply(0)._2();
                    ObjectNode told = messages.answers(request, broker.id, -1, "read").put("error", there.error.name());
                    there.divergingEpoch.ifPresent(
                            where -> told.putArray("diverging").add(where.epoch()).add(where.endOffset()));
                    told.set("records", cluster.shown(there.records));
                    there.records.batches().forEach(each -> told.put("next", each.nextOffset()));
                    return BoxedUnit.UNIT;
                });
        broker.finish();
    }

    /** A leader epoch that a consumer names: that of its metadata, or of the last record that it has read. */
    private static Optional<Integer> named(JsonNode command, String which) {
        return command.has(which) ? Optional.of(command.get(which).asInt()) : Optional.empty();
    }
}
