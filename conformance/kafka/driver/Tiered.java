package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.apache.kafka.server.log.remote.storage.RemoteTasks;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.collection.mutable.Buffer;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Brokers with tiered storage. Each has Kafka's RemoteLogManager, whose tasks are commands; the store is a folder, and
 * the remote log metadata are one log, which a broker reads when it is told to and when it has written to it.
 */
final class Tiered extends Cluster {
    private final Path store;
    private Map<String, String> topic = Map.of();
    private boolean fromTiered = false;
    /** So much of the remote log metadata was told of. */
    private int told = 0;

    Tiered(Path scratch) throws IOException {
        super(scratch);
        store = folder();
    }

    // -- commands ------------------------------------------------------------------------------------------------

    @Override
    ObjectNode handle(JsonNode command) throws Exception {
        if (command.has("fromTiered") && command.get("fromTiered").asBoolean() != fromTiered) {
            fromTiered = command.get("fromTiered").asBoolean();
            renew();
        }
        boolean resets = command.get("do").asText().equals("reset");
        for (Broker each : resets ? brokers() : List.<Broker>of()) {
            end(each);
        }
        ObjectNode answer = super.handle(command);
        if (resets) {
            // What was written as the former topic was deleted, too.
            RemoteMetadata.forget();
            Ids.repeat();
            told = 0;
            // They were looked at before that.
            for (JsonNode each : answer.path("seen")) {
                ((ObjectNode) each).put("read", 0);
            }
        }
        said(answer.putArray("metadata"));
        return answer;
    }

    /** Nothing of a broker is under way any more. */
    private void end(Broker broker) {
        messages.mute(true);
        broker.worker.end();
        // Who asks where to begin has a lock by then that is wanted to remove its partition.
        while (broker.fetcher() != null && broker.fetcher().baton().waitsFor() >= 0) {
            broker.fetcher().baton().resume(null);
        }
    }

    @Override
    boolean does(JsonNode command, ObjectNode answer) throws Exception {
        int node = command.path("node").asInt(-1);
        switch (command.get("do").asText()) {
            case "copy" -> broker(node).remote.copy();
            case "expire" -> broker(node).remote.expire();
            case "work" -> works(node, answer, "copy".equals(command.get("what").asText()));
            case "go" -> {
                broker(node).worker.resume();
                wants(node, answer);
            }
            case "replace" -> {
                empty(node);
                return true;
            }
            case "checkpoint-starts" -> broker(node).tasks.run("kafka-log-start-offset-checkpoint");
            case "retain" -> broker(node).tasks.run("kafka-log-retention");
            case "learn" -> RemoteMetadata.of(node).read(RemoteMetadata.LOG.size());
            case "store" -> {
                Path failing = RemoteStore.failing(store, command.get("at").asInt());
                if (command.get("fails").asBoolean()) {
                    Files.createFile(failing);
                } else {
                    Files.delete(failing);
                }
            }
            case "list" -> answer.set("listed", listed(broker(node), command));
            default -> {
                return TieredSteps.does(this, command, answer);
            }
        }
        if (node >= 0) {
            broker(node).finish();
        }
        return true;
    }

    /** A task begins, which stops before each thing that it does outside. */
    private void works(int node, ObjectNode answer, boolean copies) throws IOException {
        RemoteTasks remote = broker(node).remote;
        broker(node).worker.begin(copies ? remote::copy : remote::expire);
        wants(node, answer);
    }

    /** What the task is about to do, and what is in the store by now. */
    private void wants(int node, ObjectNode answer) throws IOException {
        Object next = broker(node).worker.next();
        if (next instanceof RemoteLogMetadata record) {
            answer.set("wants", shown(record));
        } else if (next != null) {
            answer.put("wants", next.toString());
        }
        stored(answer.putArray("stored"));
    }

    /** The copies in the store that are whole: the epochs that are with them, and their records. */
    private void stored(ArrayNode into) throws IOException {
        Path all = store.resolve(partition.toString());
        if (!Files.isDirectory(all)) {
            return;
        }
        try (Stream<Path> copies = Files.list(all)) {
            for (Path each : (Iterable<Path>) copies::iterator) {
                if (!RemoteStore.isWhole(each)) {
                    continue;
                }
                ObjectNode found = into.addObject().put("copy", each.getFileName().toString());
                ArrayNode epochs = found.putArray("epochs");
                // Version, count, and an epoch a line with where it begins.
                Files.readAllLines(each.resolve(IndexType.LEADER_EPOCH.name())).stream()
                        .skip(2)
                        .map(line -> line.split(" "))
                        .forEach(line -> epochs.addArray().add(Integer.parseInt(line[0])).add(Long.parseLong(line[1])));
                found.set("records", shown(MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(each.resolve(RemoteStore.LOG))))));
            }
        }
    }

    // -- configuration -------------------------------------------------------------------------------------------

    @Override
    boolean configured(JsonNode command) {
        Map<String, String> wanted = new HashMap<>();
        command.get("topic").properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
        wanted.put("remote.storage.enable", "true");
        boolean differs = super.configured(command) | !wanted.equals(topic);
        topic = wanted;
        try (Stream<Path> all = Files.list(store)) {
            for (Path each : (Iterable<Path>) all::iterator) {
                Utils.delete(each.toFile());
            }
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
        return differs;
    }

    @Override
    Map<String, String> settings(int id, Path folder) {
        Map<String, String> found = super.settings(id, folder);
        found.put("remote.log.storage.system.enable", "true");
        found.put("remote.log.storage.manager.class.name", RemoteStore.class.getName());
        found.put("rsm.config.folder", String.valueOf(store));
        found.put("remote.log.metadata.manager.class.name", RemoteMetadata.class.getName());
        found.put("follower.fetch.last.tiered.offset.enable", String.valueOf(fromTiered));
        return found;
    }

    @Override
    LogConfig defaults() {
        return Broker.defaults(minIsr, topic);
    }

    @Override
    RemoteTasks remote(Broker broker, KafkaConfig config, BrokerTopicStats stats, Metrics metrics) throws IOException {
        return new RemoteTasks(
                config.remoteLogManagerConfig(),
                broker.id,
                broker.folder.toString(),
                clock,
                each -> broker.logs.getLog(each),
                (each, start) -> broker.logs.getLog(each).ifPresent(log -> log.updateLogStartOffsetFromRemoteTier(start)),
                stats,
                metrics,
                broker.worker);
    }

    // -- what followers ask --------------------------------------------------------------------------------------

    @Override
    void asks(AbstractRequest request, ObjectNode told) {
        if (request instanceof ListOffsetsRequest list) {
            told.put("kind", "list").put("timestamp", list.topics().get(0).partitions().get(0).timestamp());
        } else if (request instanceof OffsetsForLeaderEpochRequest epochs) {
            told.put("kind", "epoch");
            told.put("of", epochs.data().topics().iterator().next().partitions().get(0).leaderEpoch());
        }
    }

    @Override
    AbstractResponse answer(Broker broker, AbstractRequest request, ObjectNode told) {
        if (request instanceof ListOffsetsRequest list) {
            ListOffsetsResponse response = offsets(broker, list.topics(), list.replicaId(), list.version());
            ListOffsetsResponseData.ListOffsetsPartitionResponse one = response.topics().get(0).partitions().get(0);
            told.put("kind", "listed").put("error", Errors.forCode(one.errorCode()).name());
            told.put("offset", one.offset()).put("epoch", one.leaderEpoch());
            return response;
        }
        OffsetsForLeaderEpochRequest epochs = (OffsetsForLeaderEpochRequest) request;
        Buffer<OffsetForLeaderEpochRequestData.OffsetForLeaderTopic> asked =
                CollectionConverters.asScala(
                        new ArrayList<OffsetForLeaderEpochRequestData.OffsetForLeaderTopic>(epochs.data().topics().valuesList()));
        OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
        CollectionConverters.asJava(broker.replicas.lastOffsetForLeaderEpoch(asked)).forEach(data.topics()::add);
        OffsetForLeaderEpochResponseData.EpochEndOffset one = data.topics().iterator().next().partitions().get(0);
        told.put("kind", "ended").put("error", Errors.forCode(one.errorCode()).name());
        told.put("offset", one.endOffset()).put("epoch", one.leaderEpoch());
        return new OffsetsForLeaderEpochResponse(data);
    }

    private static ListOffsetsResponse offsets(
            Broker broker, List<ListOffsetsRequestData.ListOffsetsTopic> topics, int replica, short version) {
        List<ListOffsetsResponseData.ListOffsetsTopicResponse> found = new ArrayList<>();
        Buffer<ListOffsetsRequestData.ListOffsetsTopic> asked =
                CollectionConverters.asScala(new ArrayList<ListOffsetsRequestData.ListOffsetsTopic>(topics));
        broker.replicas.fetchOffset(
                asked,
                CollectionConverters.asScala(new HashSet<TopicPartition>()),
                IsolationLevel.READ_UNCOMMITTED,
                replica,
                "driver",
                0,
                version,
                (error, each) ->
                        new ListOffsetsResponseData.ListOffsetsPartitionResponse()
                                .setPartitionIndex(each.partitionIndex())
                                .setErrorCode(error.code())
                                .setOffset(-1)
                                .setTimestamp(-1),
                found::addAll,
                0);
        if (found.isEmpty()) {
            throw new IllegalStateException("an offset that the store is asked for is not told at once");
        }
        return new ListOffsetsResponse(new ListOffsetsResponseData().setTopics(found));
    }

    /** What a client is told of a timestamp. */
    private ObjectNode listed(Broker broker, JsonNode command) {
        ListOffsetsRequestData.ListOffsetsTopic asked =
                new ListOffsetsRequestData.ListOffsetsTopic()
                        .setName(partition.topic())
                        .setPartitions(
                                List.of(
                                        new ListOffsetsRequestData.ListOffsetsPartition()
                                                .setPartitionIndex(0)
                                                .setCurrentLeaderEpoch(-1)
                                                .setTimestamp(command.get("timestamp").asLong())));
        ListOffsetsResponseData.ListOffsetsPartitionResponse one =
                offsets(broker, List.of(asked), -1, (short) 11).topics().get(0).partitions().get(0);
        return Lines.JSON
                .createObjectNode()
                .put("error", Errors.forCode(one.errorCode()).name())
                .put("offset", one.offset())
                .put("epoch", one.leaderEpoch());
    }

    // -- what is seen --------------------------------------------------------------------------------------------

    @Override
    void look(Broker broker, ObjectNode seen) throws IOException {
        Optional<UnifiedLog> there = broker.logs.getLog(partition);
        ArrayNode records = seen.putArray("records");
        ArrayNode epochs = seen.putArray("epochs");
        if (there.isPresent()) {
            UnifiedLog log = there.get();
            // A read ends with its segment.
            for (long from = log.localLogStartOffset(); from < log.logEndOffset(); ) {
                Records read = log.read(from, 1 << 20, FetchIsolation.LOG_END, true).records;
                shown(read).forEach(records::add);
                from = read.lastBatch().orElseThrow().nextOffset();
            }
            log.leaderEpochCache().epochEntries().forEach(each -> epochs.addArray().add(each.epoch()).add(each.startOffset()));
            seen.put("logStart", log.logStartOffset()).put("localStart", log.localLogStartOffset());
            seen.put("highestRemote", log.highestOffsetInRemoteStorage()).put("active", log.activeSegment().baseOffset());
        }
        seen.put("read", RemoteMetadata.of(broker.id).read());
        seen.put("busy", broker.worker.isBusy()).put("looked", broker.remote.hasLooked());
        Picture.roles(broker, there, seen);
    }

    /** What was written to the remote log metadata since that was told last, in its order. */
    private void said(ArrayNode into) {
        for (; told < RemoteMetadata.LOG.size(); told++) {
            into.add(shown(RemoteMetadata.LOG.get(told)));
        }
    }

    private static ObjectNode shown(RemoteLogMetadata record) {
        ObjectNode found = Lines.JSON.createObjectNode().put("broker", record.brokerId());
        if (record instanceof RemoteLogSegmentMetadata added) {
            found.put("copy", added.remoteLogSegmentId().id().toString()).put("state", added.state().name());
            found.put("start", added.startOffset()).put("end", added.endOffset() + 1);
            ArrayNode epochs = found.putArray("epochs");
            new TreeMap<>(added.segmentLeaderEpochs()).forEach((epoch, start) -> epochs.addArray().add(epoch).add(start));
        } else if (record instanceof RemoteLogSegmentMetadataUpdate updated) {
            found.put("copy", updated.remoteLogSegmentId().id().toString()).put("state", updated.state().name());
        }
        return found;
    }
}
