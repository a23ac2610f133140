package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import scala.Tuple2;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** The wire between the brokers of one partition, and to their controller: messages in flight, as bytes. */
final class Messages {
    private final Cluster cluster;
    private final Map<Long, Carried> carried = new HashMap<>();
    private long numbers = 0;
    private ArrayNode sent = Lines.JSON.createArrayNode();
    private boolean muted;

    /** A message in flight, as bytes. */
    private record Carried(int from, int to, AbstractRequest request, ByteBuffer answer) {}

    Messages(Cluster cluster) {
        this.cluster = cluster;
    }

    /** What is sent from now on is told with the next command's answer. */
    ArrayNode begin() {
        sent = Lines.JSON.createArrayNode();
        return sent;
    }

    /** Whether what brokers send is sent to nobody, as they end. */
    void mute(boolean on) {
        muted = on;
    }

    boolean isMuted() {
        return muted;
    }

    /** Nothing is in flight any more, and messages are numbered from 0. */
    void clear() {
        carried.clear();
        numbers = 0;
    }

    /** A request is sent: it goes over the wire as bytes, and is in flight from now on. Node -1 is the controller. */
    long asked(int from, int to, AbstractRequest request) {
        long number = numbers++;
        if (muted) {
            return number;
        }
        AbstractRequest there =
                AbstractRequest.parseRequest(request.apiKey(), request.version(), request.serialize()).request;
        carried.put(number, new Carried(from, to, there, null));
        ObjectNode told = sent.addObject();
        told.put("id", number).put("from", from).put("to", to);
        if (there instanceof FetchRequest fetch) {
            told.put("kind", "fetch");
            fetch.fetchData(Map.of(cluster.topicId, cluster.partition.topic()))
                    .forEach(
                            (each, data) -> {
                                if (each.topicPartition().equals(cluster.partition)) {
                                    told.put("epoch", data.currentLeaderEpoch.orElse(-1));
                                    told.put("offset", data.fetchOffset);
                                    told.put("lastEpoch", data.lastFetchedEpoch.orElse(-1));
                                }
                            });
        } else if (there instanceof AlterPartitionRequest alter) {
            AlterPartitionRequestData.PartitionData data = alter.data().topics().get(0).partitions().get(0);
            told.put("kind", "alter").put("epoch", data.leaderEpoch()).put("version", data.partitionEpoch());
            ArrayNode isr = told.putArray("isr");
            data.newIsrWithEpochs().forEach(each -> isr.add(each.brokerId()));
        } else {
            cluster.asks(there, told);
        }
        return number;
    }

    ObjectNode answers(long request, int from, int to, String kind) {
        return sent.addObject().put("kind", kind).put("request", request).put("from", from).put("to", to);
    }

    void serve(Broker broker, long number) {
        Carried message = carried.get(number);
        if (!(message.request instanceof FetchRequest request)) {
            long id = numbers++;
            ObjectNode told = answers(number, broker.id, message.from, "answer").put("id", id);
            AbstractResponse response = cluster.answer(broker, message.request, told);
            carried.put(id, new Carried(broker.id, message.from, message.request, bytes(response, message.request.version())));
            return;
        }
        if (broker.partition() == null) {
            // KafkaApis looks for the topic's name before it asks the ReplicaManager.
            FetchPartitionData unknown =
                    new FetchPartitionData(
                            Errors.UNKNOWN_TOPIC_ID,
                            -1,
                            -1,
                            MemoryRecords.EMPTY,
                            Optional.empty(),
                            java.util.OptionalLong.empty(),
                            Optional.empty(),
                            java.util.OptionalInt.empty(),
                            false);
            Buffer<Tuple2<TopicIdPartition, FetchPartitionData>> none =
                    CollectionConverters.asScala(new ArrayList<Tuple2<TopicIdPartition, FetchPartitionData>>());
            none.append(new Tuple2<>(new TopicIdPartition(cluster.topicId, cluster.partition), unknown));
            fetched(broker, number, message, request, none);
            return;
        }
        Map<TopicIdPartition, FetchRequest.PartitionData> asked = request.fetchData(broker.cache.topicIdsToNames());
        Buffer<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> infos =
                CollectionConverters.asScala(new ArrayList<Tuple2<TopicIdPartition, FetchRequest.PartitionData>>());
        asked.forEach((each, data) -> infos.append(new Tuple2<>(each, Defect.asked(data))));
        FetchParams params =
                new FetchParams(
                        request.replicaId(),
                        request.replicaEpoch(),
                        0,
                        0,
                        request.maxBytes(),
                        FetchIsolation.of(request),
                        Optional.empty());
        broker.replicas.fetchMessages(
                params,
                infos,
                QuotaFactory.UNBOUNDED_QUOTA,
                found -> {
                    fetched(broker, number, message, request, found);
                    return BoxedUnit.UNIT;
                });
        broker.finish();
    }

    private void fetched(
            Broker broker,
            long number,
            Carried message,
            FetchRequest request,
            scala.collection.Seq<Tuple2<TopicIdPartition, FetchPartitionData>> found) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data = new LinkedHashMap<>();
        long id = numbers++;
        ObjectNode told = answers(number, broker.id, message.from, "fetched").put("id", id);
        for (Tuple2<TopicIdPartition, FetchPartitionData> each : CollectionConverters.asJava(found)) {
            FetchPartitionData there = each._2();
            FetchResponseData.PartitionData one =
                    new FetchResponseData.PartitionData()
                            .setPartitionIndex(each._1().partition())
                            .setErrorCode(there.error.code())
                            .setHighWatermark(there.highWatermark)
                            .setLastStableOffset(there.lastStableOffset.orElse(-1))
                            .setLogStartOffset(there.logStartOffset)
                            .setRecords(copied(there.records));
            there.divergingEpoch.ifPresent(one::setDivergingEpoch);
            there.divergingEpoch.ifPresent(
                    where -> Defect.diverges(broker.partition(), request.replicaId(), offsets(request), cluster.clock.milliseconds()));
            data.put(each._1(), one);
            told.put("error", there.error.name()).put("hw", there.highWatermark).put("logStart", there.logStartOffset);
            told.put("bytes", there.records.sizeInBytes());
            there.divergingEpoch.ifPresent(where -> told.putArray("diverging").add(where.epoch()).add(where.endOffset()));
            told.set("records", cluster.shown(one.records() == null ? MemoryRecords.EMPTY : (Records) one.records()));
        }
        FetchResponse response = FetchResponse.of(Errors.NONE, 0, 0, data, List.of());
        carried.put(id, new Carried(broker.id, message.from, message.request, bytes(response, request.version())));
    }

    private static long offsets(FetchRequest request) {
        return request.data().topics().get(0).partitions().get(0).fetchOffset();
    }

    private static ByteBuffer bytes(AbstractResponse response, short version) {
        org.apache.kafka.common.protocol.ObjectSerializationCache cache =
                new org.apache.kafka.common.protocol.ObjectSerializationCache();
        ByteBuffer found = ByteBuffer.allocate(response.data().size(cache, version));
        response.data().write(new ByteBufferAccessor(found), cache, version);
        found.flip();
        return found;
    }

    /** What a socket would have got of a file, at once. */
    private static MemoryRecords copied(Records records) {
        try {
            if (records instanceof MemoryRecords there) {
                return there;
            }
            ByteBuffer found = ByteBuffer.allocate(records.sizeInBytes());
            ((org.apache.kafka.common.record.internal.FileRecords) records).readInto(found, 0);
            return MemoryRecords.readableRecords(found);
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** An answer comes; gives whether anybody has waited for it. */
    boolean arrives(Broker broker, long number) {
        Carried message = carried.get(number);
        Fetcher fetcher = broker.fetcher();
        long asked = -1;
        for (Map.Entry<Long, Carried> each : carried.entrySet()) {
            if (each.getValue().answer == null && each.getValue().request == message.request) {
                asked = each.getKey();
            }
        }
        boolean waits = fetcher != null && asked >= 0 && fetcher.baton().waitsFor() == asked;
        if (waits) {
            fetcher.baton().resume(message.answer.duplicate());
        }
        broker.finish();
        return waits;
    }

    /** Whatever a broker has asked the controller for is refused, so that it may ask for something else. */
    void refuse(Broker broker) {
        ObjectNode refusal = Lines.JSON.createObjectNode().put("error", Errors.UNKNOWN_TOPIC_OR_PARTITION.name());
        while (broker.controller.waitsFor() >= 0) {
            altered(broker, refusal.put("request", broker.controller.waitsFor()));
        }
    }

    void altered(Broker broker, JsonNode command) {
        AlterPartitionResponseData.PartitionData data =
                new AlterPartitionResponseData.PartitionData()
                        .setPartitionIndex(0)
                        .setErrorCode(Errors.valueOf(command.get("error").asText()).code());
        if (command.has("isr")) {
            data.setLeaderId(command.get("leader").asInt())
                    .setLeaderEpoch(command.get("epoch").asInt())
                    .setIsr(Picture.integers(command.get("isr")))
                    .setPartitionEpoch(command.get("version").asInt());
        }
        AlterPartitionResponseData answer =
                new AlterPartitionResponseData()
                        .setTopics(
                                List.of(
                                        new AlterPartitionResponseData.TopicData()
                                                .setTopicId(cluster.topicId)
                                                .setPartitions(List.of(data))));
        broker.controller.answered(command.get("request").asLong(), new AlterPartitionResponse(answer));
        broker.finish();
    }
}
