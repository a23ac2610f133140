package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.VersionRange;

/** Requests to a controller, as lines of JSON have them, and what it answers. */
final class ControllerRequests {
    static final List<String> NAMES = List.of("first", "second");

    private ControllerRequests() {}

    /** A request: whoever is asked gives what comes of it. */
    interface Asked {
        CompletableFuture<?> of(QuorumController controller) throws Exception;
    }

    private static ControllerRequestContext context(ApiKeys api, short version) {
        RequestHeaderData header =
                new RequestHeaderData().setRequestApiKey(api.id).setRequestApiVersion(version).setClientId("fencepost");
        return new ControllerRequestContext(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private static ControllerRequestContext context(ApiKeys api) {
        return context(api, api.latestVersion());
    }

    /** The request of a command. */
    static Asked of(JsonNode told, Map<String, VersionRange> features) {
        return switch (told.get("kind").asText()) {
            case "register" -> register(told, features);
            case "heartbeat" -> heartbeat(told);
            case "alter" -> alter(told);
            case "create" -> create(told);
            case "delete" ->
                    one ->
                            one.deleteTopics(
                                    context(ApiKeys.DELETE_TOPICS), List.of(Uuid.fromString(told.get("topic").asText())));
            case "elect" -> elect(told);
            case "config" -> config(told);
            default -> throw new IllegalArgumentException("nobody can be asked to " + told.get("kind"));
        };
    }

    private static Asked register(JsonNode told, Map<String, VersionRange> features) {
        int broker = told.get("broker").asInt();
        BrokerRegistrationRequestData data =
                new BrokerRegistrationRequestData()
                        .setBrokerId(broker)
                        .setClusterId(told.path("cluster").asText(ControllerNode.CLUSTER))
                        .setIncarnationId(new Uuid(broker + 1, told.get("process").asLong()))
                        .setPreviousBrokerEpoch(told.path("previous").asLong(-1))
                        .setLogDirs(List.of(directory(broker)));
        data.listeners()
                .add(
                        new BrokerRegistrationRequestData.Listener()
                                .setName("PLAINTEXT")
                                .setHost("localhost")
                                .setPort(9092 + broker)
                                .setSecurityProtocol((short) 0));
        features.forEach(
                (name, range) ->
                        data.features()
                                .add(
                                        new BrokerRegistrationRequestData.Feature()
                                                .setName(name)
                                                .setMinSupportedVersion(range.min())
                                                .setMaxSupportedVersion(range.max())));
        return one -> {
            ControllerDefect.registered(one, broker);
            return one.registerBroker(context(ApiKeys.BROKER_REGISTRATION), data);
        };
    }

    private static Uuid directory(int broker) {
        return new Uuid(0x0123456789ABCDEFL, broker + 1);
    }

    private static Asked heartbeat(JsonNode told) {
        BrokerHeartbeatRequestData data =
                new BrokerHeartbeatRequestData()
                        .setBrokerId(told.get("broker").asInt())
                        .setBrokerEpoch(told.get("epoch").asLong())
                        .setCurrentMetadataOffset(told.get("end").asLong() - 1)
                        .setWantFence(told.get("fence").asBoolean())
                        .setWantShutDown(told.get("stop").asBoolean());
        return one -> {
            ControllerDefect.heard(one, data);
            return one.processBrokerHeartbeat(context(ApiKeys.BROKER_HEARTBEAT), data);
        };
    }

    private static Asked alter(JsonNode told) {
        List<AlterPartitionRequestData.BrokerState> members = new ArrayList<>();
        told.get("isr")
                .fields()
                .forEachRemaining(
                        each ->
                                members.add(
                                        new AlterPartitionRequestData.BrokerState()
                                                .setBrokerId(Integer.parseInt(each.getKey()))
                                                .setBrokerEpoch(each.getValue().asLong())));
        AlterPartitionRequestData.PartitionData partition =
                new AlterPartitionRequestData.PartitionData()
                        .setPartitionIndex(0)
                        .setLeaderEpoch(told.get("leaderEpoch").asInt())
                        .setPartitionEpoch(told.get("partitionEpoch").asInt())
                        .setNewIsrWithEpochs(members);
        AlterPartitionRequestData data =
                new AlterPartitionRequestData()
                        .setBrokerId(told.get("broker").asInt())
                        .setBrokerEpoch(told.get("epoch").asLong());
        data.topics()
                .add(
                        new AlterPartitionRequestData.TopicData()
                                .setTopicId(Uuid.fromString(told.get("topic").asText()))
                                .setPartitions(new ArrayList<>(List.of(partition))));
        return one -> {
            ControllerDefect.altered(one, data);
            return one.alterPartition(context(ApiKeys.ALTER_PARTITION), data);
        };
    }

    private static Asked create(JsonNode told) {
        CreateTopicsRequestData.CreatableTopic topic =
                new CreateTopicsRequestData.CreatableTopic()
                        .setName(told.get("name").asText())
                        .setNumPartitions(-1)
                        .setReplicationFactor((short) -1);
        List<Integer> replicas = new ArrayList<>();
        told.get("replicas").forEach(each -> replicas.add(each.asInt()));
        topic.assignments()
                .add(
                        new CreateTopicsRequestData.CreatableReplicaAssignment()
                                .setPartitionIndex(0)
                                .setBrokerIds(replicas));
        CreateTopicsRequestData data = new CreateTopicsRequestData();
        data.topics().add(topic);
        return one -> one.createTopics(context(ApiKeys.CREATE_TOPICS), data, Set.of(topic.name()), false);
    }

    private static Asked elect(JsonNode told) {
        ElectLeadersRequestData data =
                new ElectLeadersRequestData().setElectionType((byte) (told.get("unclean").asBoolean() ? 1 : 0));
        data.topicPartitions()
                .add(
                        new ElectLeadersRequestData.TopicPartitions()
                                .setTopic(told.get("name").asText())
                                .setPartitions(List.of(0)));
        return one -> one.electLeaders(context(ApiKeys.ELECT_LEADERS), data);
    }

    private static Asked config(JsonNode told) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, told.get("name").asText());
        String value = told.get("value").asText();
        return one ->
                one.incrementalAlterConfigs(
                        context(ApiKeys.INCREMENTAL_ALTER_CONFIGS),
                        Map.of(
                                resource,
                                Map.of("min.insync.replicas", new SimpleImmutableEntry<>(OpType.SET, value))),
                        false,
                        false);
    }

    // -- answers -------------------------------------------------------------------------------------------------

    /** What a request has failed with. */
    static void failed(Throwable why, ObjectNode answer) {
        Throwable found = why instanceof CompletionException && why.getCause() != null ? why.getCause() : why;
        answer.put("error", Errors.forException(found).name()).put("thrown", true);
        if (Errors.forException(found) == Errors.UNKNOWN_SERVER_ERROR) {
            throw new IllegalStateException(found);
        }
    }

    /** What a request is answered. */
    static void tell(Object response, ObjectNode answer) {
        Errors error = Errors.NONE;
        if (response instanceof BrokerRegistrationReply reply) {
            answer.put("epoch", reply.epoch());
        } else if (response instanceof BrokerHeartbeatReply reply) {
            answer.put("caughtUp", reply.isCaughtUp()).put("fenced", reply.isFenced());
            answer.put("mayStop", reply.shouldShutDown());
        } else if (response instanceof AlterPartitionResponseData altered) {
            error = Errors.forCode(altered.errorCode());
            if (error == Errors.NONE) {
                error = Errors.forCode(altered.topics().get(0).partitions().get(0).errorCode());
            }
        } else if (response instanceof CreateTopicsResponseData created) {
            CreateTopicsResponseData.CreatableTopicResult topic = created.topics().iterator().next();
            error = Errors.forCode(topic.errorCode());
            answer.put("topic", topic.topicId().toString());
        } else if (response instanceof ElectLeadersResponseData elected) {
            error = Errors.forCode(elected.replicaElectionResults().get(0).partitionResult().get(0).errorCode());
        } else if (response instanceof Map<?, ?> each) {
            error = ((ApiError) each.values().iterator().next()).error();
        }
        answer.put("error", error.name());
    }
}
