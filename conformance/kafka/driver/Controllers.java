package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import fencepost.kafka.Manual;
import fencepost.kafka.Tables;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.metadata.VersionRange;

/**
 * Controllers in one process, and the logs of their quorum. A line of JSON asks for one thing to happen; then whoever is
 * touched does what it has to, and is looked at.
 */
public final class Controllers {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Manual.Clock clock = new Manual.Clock();
    private final List<ControllerLog> logs = new ArrayList<>();
    private final Map<Integer, ControllerNode> nodes = new HashMap<>();
    private final Map<Long, Waiting> waiting = new LinkedHashMap<>();
    private Map<String, VersionRange> features;
    private JsonNode begun;

    /** A request that has not been answered, at whom, and the end and the last epoch of the log that it is decided by. */
    private record Waiting(int node, CompletableFuture<?> future, long end, int epoch) {}

    /** Have a change of Kafka's classes hold from the next reset on. */
    public static void plant(String defect) {
        ControllerDefect.plant(defect);
    }

    /** Does what a command says. */
    public ObjectNode handle(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        int number = command.path("node").asInt(-1);
        ControllerLog log = number < 0 ? null : logs.get(number);
        switch (command.get("do").asText()) {
            case "reset" -> reset(command);
            case "lead" -> log.lead(command.get("epoch").asInt());
            case "hear" -> log.enter(command.get("epoch").asInt(), OptionalInt.empty());
            case "fetch" -> log.fetch(logs.get(command.get("leader").asInt()), command.get("batches").asInt());
            case "resign" -> log.resign();
            case "crash" -> crash(number);
            case "start" -> start(number);
            case "elapse" -> clock.move(command.get("ms").asLong());
            case "look" -> {}
            case "fields" -> {
                Tables.fields(ApiKeys.valueOf(command.get("api").asText()), answer);
                return answer;
            }
            case "request" -> request(nodes.get(number), command, answer);
            default -> throw new IllegalArgumentException("nobody knows how to " + command.get("do"));
        }
        List<ControllerNode> touched = touched(number, command.path("leader").asInt(-1));
        for (ControllerNode each : touched) {
            each.settle();
        }
        answered(answer.putArray("answered"));
        ObjectNode seen = answer.putObject("seen");
        for (ControllerNode each : touched) {
            each.look(seen.putObject(String.valueOf(each.id)));
        }
        return answer;
    }

    /** Whoever a command is about, of those that run; all of them where it names nobody. */
    private List<ControllerNode> touched(int number, int leader) {
        List<ControllerNode> found = new ArrayList<>();
        for (ControllerNode each : nodes.values()) {
            if (number < 0 || each.id == number || each.id == leader) {
                found.add(each);
            }
        }
        return found;
    }

    private void reset(JsonNode command) throws Exception {
        for (ControllerNode each : nodes.values()) {
            each.end();
        }
        nodes.clear();
        logs.clear();
        waiting.clear();
        begun = command;
        int voters = command.get("nodes").asInt();
        features = QuorumFeatures.defaultSupportedFeatureMap(false);
        for (int id = 0; id < voters; id++) {
            logs.add(new ControllerLog(id, voters));
            start(id);
        }
    }

    private void start(int id) throws Exception {
        List<Integer> voters = new ArrayList<>();
        logs.forEach(each -> voters.add(each.id));
        QuorumFeatures known = new QuorumFeatures(id, features, voters);
        nodes.put(id, new ControllerNode(id, logs.get(id), clock, begun, known));
    }

    private void crash(int id) throws Exception {
        nodes.remove(id).end();
        waiting.values().removeIf(each -> each.node == id);
    }

    // -- requests ------------------------------------------------------------------------------------------------

    private void request(ControllerNode node, JsonNode command, ObjectNode answer) throws Exception {
        CompletableFuture<?> future = asked(node, ControllerRequests.of(command, features));
        node.settle();
        long end = node.log.end();
        Waiting asked = new Waiting(node.id, future, end, node.log.epochAt(end - 1));
        waiting.put(command.get("id").asLong(), asked);
        if (!future.isDone()) {
            Optional<ControllerResultAndOffset<?>> decided = node.decided();
            ControllerRequests.tell(decided.orElseThrow().response(), answer.putObject("decided"));
            if (ControllerDefect.ANSWERS_PENDING.isPlanted()) {
                node.tellAll();
            }
        }
    }

    /** Who is not active says so of a heartbeat at once. */
    private static CompletableFuture<?> asked(ControllerNode node, ControllerRequests.Asked what) throws Exception {
        try {
            return what.of(node.controller);
        } catch (ApiException refused) {
            return CompletableFuture.failedFuture(refused);
        }
    }

    private void answered(ArrayNode told) {
        List<Long> done = new ArrayList<>();
        waiting.forEach(
                (number, asked) -> {
                    if (asked.future.isDone()) {
                        done.add(number);
                        ObjectNode one = told.addObject().put("id", number).put("node", asked.node);
                        one.put("end", asked.end).put("at", asked.epoch);
                        try {
                            ControllerRequests.tell(asked.future.join(), one);
                        } catch (CompletionException | CancellationException failed) {
                            ControllerRequests.failed(failed, one);
                        }
                    }
                });
        done.forEach(waiting::remove);
    }
}
