package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.log.remote.storage.RemoteTasks;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Tuple2;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * Brokers of one partition in one process, and the wire between them. A line of JSON asks for one thing to happen, and
 * is answered with what was sent in it and what the brokers are like that it touched.
 */
class Cluster {

    final Manual.Clock clock = new Manual.Clock();
    int minIsr = 1;
    TopicPartition partition;
    private final Path scratch;
    private final List<Broker> brokers = new ArrayList<>();
    private final Map<Integer, Path> ended = new HashMap<>();
    private final Map<Long, Carried> carried = new HashMap<>();
    private final Map<Path, KafkaConfig> configs = new HashMap<>();
    private QuotaFactory.QuotaManagers quotas;
    private Uuid topicId;
    private long runs = 0;
    private long folders = 0;
    private long numbers = 0;
    private ArrayNode sent = Lines.JSON.createArrayNode();
    private boolean muted;

    /** A message in flight, as bytes. */
    private record Carried(int from, int to, AbstractRequest request, ByteBuffer answer) {}

    Cluster(Path scratch) {
        this.scratch = scratch;
    }

    /** A broker epoch. It is the same for each process of a broker. */
    long epochOf(int node) {
        return node + 1;
    }

    // -- commands ------------------------------------------------------------------------------------------------

    ObjectNode handle(JsonNode command) throws Exception {
        sent = Lines.JSON.createArrayNode();
        clock.move(1);
        int node = command.path("node").asInt(-1);
        ObjectNode answer = Lines.JSON.createObjectNode();
        switch (command.get("do").asText()) {
            case "reset" -> reset(command);
            case "metadata" -> broker(node).take(Metadata.changes(topicId, command.get("records")));
            case "fetch" -> {
                broker(node).fetcher().baton().resume(null);
                broker(node).finish();
            }
            case "timeout" -> {
                broker(node).fetcher().baton().resume(null);
                broker(node).finish();
            }
            case "serve" -> serve(broker(node), command.get("id").asLong());
            case "answer" -> answer.put("taken", answer(broker(node), command.get("id").asLong()));
            case "shrink" -> {
                broker(node).tasks.run("isr-expiration");
                broker(node).finish();
            }
            case "checkpoint" -> broker(node).replicas.checkpointHighWatermarks();
            case "altered" -> altered(broker(node), command);
            case "produce" -> produce(broker(node), command);
            case "read" -> read(broker(node), command);
            case "crash" -> crash(node);
            case "start" -> start(node, command.get("records"));
            case "errors" -> Tables.errors(answer.putObject("errors"));
            case "committed" -> Tables.committed(command, answer);
            case "fields" -> Tables.fields(ApiKeys.valueOf(command.get("api").asText()), answer);
            case "quit" -> quit();
            default -> {
                if (!does(command, answer)) {
                    throw new IllegalArgumentException("nobody knows how to " + command.get("do"));
                }
            }
        }
        answer.set("sent", sent);
        ObjectNode seen = answer.putObject("seen");
        for (Broker each : brokers) {
            if (each != null && (node < 0 || node == each.id)) {
                look(each, seen.putObject(String.valueOf(each.id)));
            }
        }
        return answer;
    }

    /** Have a change of Kafka's classes hold, in brokers that are made from now on. */
    void plant(String defect) {
        Defect.plant(defect);
        renew();
    }

    /** The next brokers are new ones. */
    void renew() {
        try {
            quit();
        } catch (Exception failed) {
            throw new IllegalStateException(failed);
        }
    }

    // -- what others have otherwise ------------------------------------------------------------------------------

    /** Do what else there is to do; gives whether it is known. */
    boolean does(JsonNode command, ObjectNode answer) throws Exception {
        return false;
    }

    /** The configuration of a run; gives whether it is another one than before. */
    boolean configured(JsonNode command) {
        int before = minIsr;
        minIsr = command.get("minIsr").asInt();
        return minIsr != before;
    }

    /** What a broker is configured with. */
    Map<String, String> settings(int id, Path folder) {
        return Broker.settings(id, folder);
    }

    /** What a topic is like. */
    LogConfig defaults() {
        return Broker.defaults(minIsr, Map.of());
    }

    CleanerConfig cleaning() {
        return new CleanerConfig(false);
    }

    /** Of a broker; null: nobody cleans. */
    LogCleaner cleaner(
            CleanerConfig config,
            List<File> folders,
            ConcurrentMap<TopicPartition, UnifiedLog> logs,
            LogDirFailureChannel failures,
            Time time) {
        return null;
    }

    /** What a broker does with remote storage; null: there is none. */
    RemoteTasks remote(Broker broker, KafkaConfig config, BrokerTopicStats stats, Metrics metrics) throws IOException {
        return null;
    }

    final boolean isTiered() {
        return settings(0, scratch).containsKey("remote.log.storage.system.enable");
    }

    /** Tell of a request that is no fetch. */
    void asks(AbstractRequest request, ObjectNode told) {
        told.put("kind", request.apiKey().name);
    }

    /** A broker's answer to one. */
    AbstractResponse answer(Broker broker, AbstractRequest request, ObjectNode told) {
        throw new IllegalStateException("a follower asked for " + request.apiKey());
    }

    void look(Broker broker, ObjectNode seen) throws IOException {
        Picture.look(broker, seen);
    }

    ArrayNode shown(Records records) {
        return Picture.shown(records);
    }

    /** What a producer sends. */
    MemoryRecords sent(JsonNode command) {
        return MemoryRecords.withRecords(
                Compression.NONE,
                new SimpleRecord(1L, command.get("payload").asText().getBytes(StandardCharsets.UTF_8)));
    }

    /** What the process of a broker leaves that ends now. */
    void leave(Broker broker, Path copy) throws IOException {
        broker.copy(copy);
    }

    // -- brokers -------------------------------------------------------------------------------------------------

    Broker broker(int node) {
        Broker found = brokers.get(node);
        if (found == null) {
            throw new IllegalStateException("broker " + node + " is down");
        }
        return found;
    }

    /** Settings are read once for each folder, in which one process of a broker follows another. */
    KafkaConfig configOf(int id, Path folder) {
        return configs.computeIfAbsent(folder, there -> new KafkaConfig(settings(id, there), false));
    }

    /** No quota is set, and those who would watch over them are threads: one set of them is enough. */
    QuotaFactory.QuotaManagers quotas(KafkaConfig config) {
        if (quotas == null) {
            quotas = QuotaFactory.instantiate(config, new Metrics(), clock, "", "");
        }
        return quotas;
    }

    Path folder() throws IOException {
        return Files.createDirectories(scratch.resolve(String.valueOf(folders++)));
    }

    private void reset(JsonNode command) throws Exception {
        int nodes = command.get("nodes").asInt();
        Uuid old = topicId;
        muted = true;
        for (Broker each : brokers) {
            if (each != null) {
                refuse(each);
            }
        }
        carried.clear();
        numbers = 0;
        for (int node = 0; node < brokers.size(); node++) {
            Broker each = brokers.get(node);
            if (each != null && each.partition() == null) {
                // It has files of a topic that it has not heard of, which nobody would ever delete.
                each.close();
                brokers.set(node, null);
            }
        }
        topicId = new Uuid(0x0123456789ABCDEFL, ++runs);
        partition = new TopicPartition("t" + runs, 0);
        if (configured(command)) {
            for (Broker each : brokers) {
                if (each != null) {
                    each.logs.reconfigureDefaultLogConfig(defaults());
                }
            }
        }
        while (brokers.size() > nodes) {
            Broker last = brokers.remove(brokers.size() - 1);
            Path left = ended.remove(brokers.size());
            if (last != null) {
                last.close();
            } else if (left != null) {
                Utils.delete(left.toFile());
            }
        }
        for (int node = 0; node < nodes; node++) {
            List<ApiMessage> records = new ArrayList<>();
            Broker there = node < brokers.size() ? brokers.get(node) : null;
            if (there == null) {
                Path left = ended.remove(node);
                if (left != null) {
                    Utils.delete(left.toFile());
                }
                there = new Broker(node, this, folder());
                if (node < brokers.size()) {
                    brokers.set(node, there);
                } else {
                    brokers.add(there);
                }
                records.addAll(Metadata.cluster(nodes, this::epochOf));
            } else {
                records.add(new RemoveTopicRecord().setTopicId(old));
                records.addAll(Metadata.cluster(nodes, this::epochOf));
            }
            records.addAll(Metadata.created(partition.topic(), topicId, nodes));
            there.take(records);
            there.tasks.run("kafka-delete-logs");
        }
        muted = false;
    }

    private void crash(int node) throws Exception {
        Path copy = folder();
        Path place = broker(node).folder;
        muted = true;
        leave(broker(node), copy);
        broker(node).close();
        muted = false;
        Files.move(copy, place);
        ended.put(node, place);
        brokers.set(node, null);
    }

    private void start(int node, JsonNode records) throws Exception {
        Broker there = new Broker(node, this, ended.remove(node));
        brokers.set(node, there);
        List<ApiMessage> all = Metadata.cluster(brokers.size(), this::epochOf);
        if (!records.isNull()) {
            all.addAll(Metadata.created(partition.topic(), topicId, brokers.size()));
            all.addAll(Metadata.changes(topicId, records));
        }
        there.take(all);
    }

    private void quit() throws Exception {
        for (Broker each : brokers) {
            if (each != null) {
                each.close();
            }
        }
        brokers.clear();
    }

    // -- the wire ------------------------------------------------------------------------------------------------

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
            fetch.fetchData(Map.of(topicId, partition.topic()))
                    .forEach(
                            (each, data) -> {
                                if (each.topicPartition().equals(partition)) {
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
            asks(there, told);
        }
        return number;
    }

    private ObjectNode answers(long request, int from, int to, String kind) {
        return sent.addObject().put("kind", kind).put("request", request).put("from", from).put("to", to);
    }

    private void serve(Broker broker, long number) {
        Carried message = carried.get(number);
        if (!(message.request instanceof FetchRequest request)) {
            long id = numbers++;
            ObjectNode told = answers(number, broker.id, message.from, "answer").put("id", id);
            AbstractResponse response = answer(broker, message.request, told);
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
            none.append(new Tuple2<>(new TopicIdPartition(topicId, partition), unknown));
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
                    where -> Defect.diverges(broker.partition(), request.replicaId(), offsets(request), clock.milliseconds()));
            data.put(each._1(), one);
            told.put("error", there.error.name()).put("hw", there.highWatermark);
            told.put("bytes", there.records.sizeInBytes());
            there.divergingEpoch.ifPresent(where -> told.putArray("diverging").add(where.epoch()).add(where.endOffset()));
            told.set("records", shown(one.records() == null ? MemoryRecords.EMPTY : (Records) one.records()));
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
    private boolean answer(Broker broker, long number) {
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
    private void refuse(Broker broker) {
        ObjectNode refusal = Lines.JSON.createObjectNode().put("error", Errors.UNKNOWN_TOPIC_OR_PARTITION.name());
        while (broker.controller.waitsFor() >= 0) {
            altered(broker, refusal.put("request", broker.controller.waitsFor()));
        }
    }

    private void altered(Broker broker, JsonNode command) {
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
                                                .setTopicId(topicId)
                                                .setPartitions(List.of(data))));
        broker.controller.answered(command.get("request").asLong(), new AlterPartitionResponse(answer));
        broker.finish();
    }

    // -- clients -------------------------------------------------------------------------------------------------

    private void produce(Broker broker, JsonNode command) {
        long request = command.get("request").asLong();
        MemoryRecords records = sent(command);
        Map<TopicIdPartition, MemoryRecords> entries = new HashMap<>();
        entries.put(new TopicIdPartition(topicId, partition), records);
        String topic = partition.topic();
        broker.replicas.appendRecords(
                Long.MAX_VALUE / 4,
                (short) (Defect.ACKS_ONE.isPlanted() ? 1 : command.get("acks").asInt()),
                false,
                AppendOrigin.CLIENT,
                CollectionConverters.asScala(entries),
                found -> {
                    for (ProduceResponse.PartitionResponse each : found.values()) {
                        if (!muted && topic.equals(partition.topic())) {
                            answers(request, broker.id, -1, "produced")
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

    private void read(Broker broker, JsonNode command) {
        long request = command.get("request").asLong();
        Buffer<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> infos =
                CollectionConverters.asScala(new ArrayList<Tuple2<TopicIdPartition, FetchRequest.PartitionData>>());
        infos.append(
                new Tuple2<>(
                        new TopicIdPartition(topicId, partition),
                        new FetchRequest.PartitionData(
                                topicId,
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
                    ObjectNode told = answers(request, broker.id, -1, "read").put("error", there.error.name());
                    there.divergingEpoch.ifPresent(
                            where -> told.putArray("diverging").add(where.epoch()).add(where.endOffset()));
                    told.set("records", shown(there.records));
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
