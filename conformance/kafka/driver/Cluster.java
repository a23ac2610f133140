package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.storage.RemoteTasks;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Brokers of one partition in one process, and the wire between them. A line of JSON asks for one thing to happen, and
 * is answered with what was sent in it and what the brokers are like that it touched.
 */
class Cluster {

    final Manual.Clock clock = new Manual.Clock();
    int minIsr = 1;
    TopicPartition partition;
    Uuid topicId;
    private final Path scratch;
    private final List<Broker> brokers = new ArrayList<>();
    private final Map<Integer, Path> ended = new HashMap<>();
    private final Map<Path, KafkaConfig> configs = new HashMap<>();
    private QuotaFactory.QuotaManagers quotas;
    private long runs = 0;
    private long folders = 0;
    /** Something was thrown: the next run is not to depend on what the brokers are like since then. */
    private boolean broken;
    final Messages messages = new Messages(this);
    private final Calls calls = new Calls(this, messages);

    Cluster(Path scratch) {
        this.scratch = scratch;
    }

    /** A broker epoch. It is the same for each process of a broker. */
    long epochOf(int node) {
        return node + 1;
    }

    // -- commands ------------------------------------------------------------------------------------------------

    ObjectNode handle(JsonNode command) throws Exception {
        try {
            return handled(command);
        } catch (Throwable failed) {
            broken = true;
            throw failed;
        }
    }

    private ObjectNode handled(JsonNode command) throws Exception {
        ArrayNode sent = messages.begin();
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
            case "serve" -> messages.serve(broker(node), command.get("id").asLong());
            case "answer" -> answer.put("taken", messages.arrives(broker(node), command.get("id").asLong()));
            case "shrink" -> {
                broker(node).tasks.run("isr-expiration");
                broker(node).finish();
            }
            case "checkpoint" -> broker(node).replicas.checkpointHighWatermarks();
            case "altered" -> messages.altered(broker(node), command);
            case "produce" -> calls.produce(broker(node), command);
            case "read" -> calls.read(broker(node), command);
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

    /** Those that are up. */
    final List<Broker> brokers() {
        return brokers.stream().filter(each -> each != null).toList();
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
        messages.mute(true);
        if (broken) {
            quit();
            broken = false;
        }
        for (Broker each : brokers) {
            if (each != null) {
                messages.refuse(each);
            }
        }
        messages.clear();
        for (int node = 0; node < brokers.size(); node++) {
            Broker each = brokers.get(node);
            if (each != null && each.partition() == null) {
                // It has files of a topic that it has not heard of, which nobody would ever delete.
                end(each);
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
                end(last);
            } else if (left != null) {
                forget(left);
            }
        }
        for (int node = 0; node < nodes; node++) {
            List<ApiMessage> records = new ArrayList<>();
            Broker there = node < brokers.size() ? brokers.get(node) : null;
            if (there == null) {
                Path left = ended.remove(node);
                if (left != null) {
                    forget(left);
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
        messages.mute(false);
    }

    private void crash(int node) throws Exception {
        Path copy = folder();
        Path place = broker(node).folder;
        messages.mute(true);
        leave(broker(node), copy);
        broker(node).close();
        messages.mute(false);
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

    /** A broker that is down has another disk. */
    final void empty(int node) throws IOException {
        Path place = ended.get(node);
        Utils.delete(place.toFile());
        Files.createDirectories(place);
    }

    private void quit() throws Exception {
        List<Broker> last = brokers();
        // One that cannot be closed is in no later run all the same.
        brokers.clear();
        for (Broker each : last) {
            end(each);
        }
    }

    /** A broker ends, and no process follows it in its folder. */
    private void end(Broker broker) throws Exception {
        broker.close();
        forget(broker.folder);
    }

    private void forget(Path folder) throws IOException {
        configs.remove(folder);
        Utils.delete(folder.toFile());
    }
}
