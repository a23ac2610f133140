package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import fencepost.kafka.Tables;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotRequestData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.raft.internals.QuorumLogs;
import org.apache.kafka.server.common.OffsetAndEpoch;

/**
 * Nodes of a quorum in one process, and the wire between them. A line of JSON asks for one thing to happen at one node,
 * which then polls until it has nothing more to do, or so many times as the line says.
 */
public final class Quorum {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Path scratch;
    private final List<QuorumNode> nodes = new ArrayList<>();
    private final Map<Integer, Path> ended = new HashMap<>();
    private final Map<Integer, Integer> lives = new HashMap<>();
    private final Map<Integer, Long> times = new HashMap<>();
    private final Map<Long, Carried> carried = new HashMap<>();
    private QuorumNode.Settings settings;
    private long folders = 0;
    private long numbers = 0;
    private ArrayNode sent = JSON.createArrayNode();
    private Throwable unheard;

    /** A request in flight, or (with an answer) what came of it. */
    private record Carried(
            int from, int to, Sent asked, QuorumWire.Request request, QuorumWire.Response answer) {}

    /** A request as its client knows it, and which process of the node that was. */
    private record Sent(int life, RaftRequest.Outbound request) {}

    public Quorum(Path scratch) {
        this.scratch = scratch;
    }

    // -- commands ------------------------------------------------------------------------------------------------

    /** Have a change of Kafka's classes hold from the next reset on. */
    public static void plant(String defect) {
        QuorumDefect.plant(defect);
    }

    /** Does what a command says. */
    public ObjectNode handle(JsonNode command) throws Exception {
        sent = JSON.createArrayNode();
        int number = command.path("node").asInt(-1);
        int polls = command.path("polls").asInt(64);
        ObjectNode answer = JSON.createObjectNode();
        String what = command.get("do").asText();
        if (told(what, command, answer)) {
            return answer;
        } else if (what.equals("reset")) {
            reset(command);
        } else if (what.equals("crash")) {
            crash(number);
        } else {
            if (what.equals("start")) {
                start(number);
            }
            QuorumNode node = nodes.get(number);
            if (polls > 0) {
                act(what, node, command);
            }
            unheard = null;
            node.poll(polls);
            if (unheard != null) {
                throw new IllegalStateException(unheard);
            }
            leave(node);
        }
        answer.set("sent", sent);
        ObjectNode seen = answer.putObject("seen");
        for (QuorumNode each : nodes) {
            if (each != null && (number < 0 || number == each.id)) {
                QuorumPicture.look(each, seen.putObject(String.valueOf(each.id)));
            }
        }
        return answer;
    }

    /** What is asked without anything happening. */
    private boolean told(String what, JsonNode command, ObjectNode answer) throws IOException {
        switch (what) {
            case "errors" -> Tables.errors(answer.putObject("errors"));
            case "fields" -> Tables.fields(ApiKeys.valueOf(command.get("api").asText()), answer);
            case "settings" -> MetadataLogConfig.CONFIG_DEF.names().forEach(answer.putArray("names")::add);
            case "files" -> files(command.get("node").asInt(), answer.putObject("files"));
            default -> {
                return false;
            }
        }
        return true;
    }

    /** The files of a node, up or down, by their names. */
    private void files(int id, ObjectNode found) throws IOException {
        Path home = nodes.get(id) == null ? ended.get(id) : nodes.get(id).folder;
        try (Stream<Path> all = Files.list(home.resolve(QuorumNode.PARTITION.toString()))) {
            for (Path each : all.sorted().filter(Files::isRegularFile).toList()) {
                String name = each.getFileName().toString();
                // Indices have the size that they may grow to.
                found.put(name, name.endsWith("index") ? new byte[0] : Files.readAllBytes(each));
            }
        }
    }

    private void act(String what, QuorumNode node, JsonNode command) throws Exception {
        switch (what) {
            case "start", "poll" -> {}
            case "request" -> request(node, carried.get(command.get("id").asLong()), command.get("id").asLong());
            case "response" -> {
                Carried message = carried.get(command.get("id").asLong());
                // A connection ends with its process: who starts anew gets no answers to what another has asked.
                if (message.asked.life == lives.get(node.id)) {
                    node.receive(message.answer, message.asked.request);
                }
            }
            case "elapse" -> {
                long next = node.queue.waits > 0 ? Math.min(node.queue.waits, 60_000) : QuorumNode.REQUEST_TIMEOUT;
                node.clock.move(Math.max(command.path("ms").asLong(), next));
            }
            case "append" -> {
                List<String> records = new ArrayList<>();
                command.get("records").forEach(each -> records.add(each.asText()));
                node.append(records);
            }
            case "resign" -> node.client.resign(node.client.quorum().epoch());
            case "snapshot" -> {
                long end = command.get("end").asLong();
                node.machine.ends.stream()
                        .filter(each -> each.offset() == end)
                        .findFirst()
                        .ifPresent(each -> node.snapshot(each, command.get("bytes").asInt()));
            }
            case "snapshot at" -> {
                long end = command.get("end").asLong();
                node.planted.createNewSnapshot(new OffsetAndEpoch(end, command.get("epoch").asInt())).get().close();
            }
            case "clean" -> clean(node, () -> node.planted.maybeClean());
            case "delete" -> {
                OffsetAndEpoch id = new OffsetAndEpoch(command.get("end").asLong(), command.get("epoch").asInt());
                clean(node, () -> node.planted.deleteBeforeSnapshot(id));
            }
            default -> throw new IllegalArgumentException("nobody knows how to " + what);
        }
    }

    /** As KafkaRaftClient does from time to time: where the high watermark is not known yet, nothing comes of it. */
    private static void clean(QuorumNode node, Runnable what) {
        try {
            what.run();
        } catch (OffsetOutOfRangeException unknown) {
            node.refusals++;
        }
        node.tasks.settle();
    }

    private void reset(JsonNode command) throws IOException {
        for (int id = 0; id < nodes.size(); id++) {
            if (nodes.get(id) != null) {
                nodes.get(id).close();
            } else {
                Utils.delete(ended.get(id).toFile());
            }
        }
        nodes.clear();
        ended.clear();
        lives.clear();
        carried.clear();
        numbers = 0;
        settings =
                new QuorumNode.Settings(
                        command.get("nodes").asInt(),
                        command.get("voters").asInt(),
                        command.get("fetchBytes").asInt(),
                        command.get("chunk").asInt(),
                        command.get("seed").asLong(),
                        command.get("rolls").asBoolean());
        for (int id = 0; id < settings.nodes(); id++) {
            ended.put(id, folder());
            times.put(id, 1_700_000_000_000L);
            nodes.add(null);
            start(id);
        }
        for (QuorumNode each : nodes) {
            each.poll(64);
            leave(each);
        }
    }

    private Path folder() throws IOException {
        return Files.createDirectories(scratch.resolve(String.valueOf(folders++)));
    }

    private void start(int id) throws IOException {
        int life = lives.merge(id, 1, Integer::sum);
        Path place = ended.get(id);
        Files.createDirectories(place.resolve(QuorumNode.PARTITION.toString()));
        nodes.set(id, new QuorumNode(id, life, place, settings, times.get(id)));
        ended.remove(id);
    }

    private void crash(int id) {
        QuorumNode node = nodes.get(id);
        times.put(id, node.clock.milliseconds());
        node.end();
        ended.put(id, node.folder);
        nodes.set(id, null);
    }

    // -- the wire ------------------------------------------------------------------------------------------------

    private void request(QuorumNode node, Carried message, long number) {
        node.receive(message.request, message.asked.request.correlationId())
                .whenComplete(
                        (answer, failed) -> {
                            // What is thrown here nobody hears of.
                            try {
                                if (failed != null) {
                                    throw new IllegalStateException(failed);
                                }
                                answered(node, message, number, answer.data());
                            } catch (Throwable thrown) {
                                unheard = thrown;
                            }
                        });
    }

    private void answered(QuorumNode node, Carried message, long number, ApiMessage data) {
        try {
            QuorumWire.Response answer = QuorumWire.Response.of(message.request, data);
            long id = numbers++;
            carried.put(id, new Carried(message.to, message.from, message.asked, message.request, answer));
            ObjectNode told = sent.addObject();
            told.put("id", id).put("from", node.id).put("to", message.from).put("request", number);
            told.put("kind", message.request.api().name() + " answer");
            tell(told, answer.parsed());
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** What a node has sent is in flight from now on. Kafka sends to sets of voters in any order. */
    private void leave(QuorumNode node) {
        List<RaftRequest.Outbound> there = new ArrayList<>(node.sent);
        node.sent.clear();
        there.sort(Comparator.comparingInt((RaftRequest.Outbound each) -> each.data().apiKey())
                .thenComparingInt(each -> each.destination().id()));
        for (RaftRequest.Outbound each : there) {
            long id = numbers++;
            QuorumWire.Request request = QuorumWire.Request.of(each.data());
            Sent asked = new Sent(lives.get(node.id), each);
            carried.put(id, new Carried(node.id, each.destination().id(), asked, request, null));
            ObjectNode told = sent.addObject();
            told.put("id", id).put("from", node.id).put("to", each.destination().id());
            told.put("kind", request.api().name());
            tell(told, request);
        }
    }

    private static void tell(ObjectNode told, QuorumWire.Request request) {
        ApiMessage data = request.parsed();
        if (data instanceof VoteRequestData vote) {
            var asked = vote.topics().get(0).partitions().get(0);
            told.put("epoch", asked.replicaEpoch()).put("pre", asked.preVote());
        } else if (data instanceof FetchRequestData fetch) {
            var asked = fetch.topics().get(0).partitions().get(0);
            told.put("epoch", asked.currentLeaderEpoch()).put("offset", asked.fetchOffset());
            told.put("last", asked.lastFetchedEpoch());
        } else if (data instanceof FetchSnapshotRequestData fetch) {
            var asked = fetch.topics().get(0).partitions().get(0);
            told.put("epoch", asked.currentLeaderEpoch()).put("position", asked.position());
        }
    }

    private static void tell(ObjectNode told, ApiMessage data) {
        if (data instanceof VoteResponseData vote && !vote.topics().isEmpty()) {
            var there = vote.topics().get(0).partitions().get(0);
            told.put("granted", there.voteGranted());
            says(told, there.errorCode(), there.leaderEpoch(), there.leaderId());
        } else if (data instanceof BeginQuorumEpochResponseData begin && !begin.topics().isEmpty()) {
            var there = begin.topics().get(0).partitions().get(0);
            says(told, there.errorCode(), there.leaderEpoch(), there.leaderId());
        } else if (data instanceof EndQuorumEpochResponseData end && !end.topics().isEmpty()) {
            var there = end.topics().get(0).partitions().get(0);
            says(told, there.errorCode(), there.leaderEpoch(), there.leaderId());
        } else if (data instanceof FetchResponseData fetch && !fetch.responses().isEmpty()) {
            var there = fetch.responses().get(0).partitions().get(0);
            says(told, there.errorCode(), there.currentLeader().leaderEpoch(), there.currentLeader().leaderId());
            told.put("hw", there.highWatermark()).put("begin", there.logStartOffset());
            if (there.divergingEpoch().epoch() >= 0) {
                told.putArray("diverging").add(there.divergingEpoch().endOffset()).add(there.divergingEpoch().epoch());
            }
            if (there.snapshotId().epoch() >= 0) {
                told.putArray("snapshot").add(there.snapshotId().endOffset()).add(there.snapshotId().epoch());
            }
            int batches = 0;
            for (RecordBatch ignored : FetchResponse.recordsOrFail(there).batches()) {
                batches++;
            }
            told.put("batches", batches);
        } else if (data instanceof FetchSnapshotResponseData fetch && !fetch.topics().isEmpty()) {
            var there = fetch.topics().get(0).partitions().get(0);
            says(told, there.errorCode(), there.currentLeader().leaderEpoch(), there.currentLeader().leaderId());
            told.put("size", there.size()).put("position", there.position());
            told.put("bytes", there.unalignedRecords() == null ? 0 : there.unalignedRecords().sizeInBytes());
        } else if (data instanceof FetchSnapshotResponseData fetch) {
            told.put("error", Errors.forCode(fetch.errorCode()).name());
        } else {
            told.put("error", ApiKeys.forId(data.apiKey()).name);
        }
    }

    private static void says(ObjectNode told, short error, int epoch, int leader) {
        told.put("error", Errors.forCode(error).name()).put("epoch", epoch).put("leader", leader);
    }
}
