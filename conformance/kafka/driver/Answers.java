package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FindCoordinatorRequest;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/** What brokers are asked, as JSON, and what they answer, as bytes. Each request is about one partition. */
final class Answers {
    static final String TOPIC = "topic";
    private static final Uuid TOPIC_ID = new Uuid(1, 1);

    private final int brokers;
    private final int coordinator;

    /** Brokers are numbered from 0; the coordinator is a node of its own. */
    Answers(int brokers, int coordinator) {
        this.brokers = brokers;
        this.coordinator = coordinator;
    }

    // -- requests -------------------------------------------------------------------------------------------------

    /** A request, with what it says of its partition. */
    ObjectNode told(RequestHeader header, AbstractRequest request) {
        ObjectNode told = Lines.JSON.createObjectNode().put("version", header.apiVersion());
        switch (header.apiKey()) {
            case METADATA:
                return told.put("kind", "metadata");
            case FETCH:
                FetchRequestData.FetchPartition fetches =
                        ((FetchRequest) request).data().topics().get(0).partitions().get(0);
                return told.put("kind", "fetch")
                        .put("offset", fetches.fetchOffset())
                        .put("current", fetches.currentLeaderEpoch())
                        .put("last", fetches.lastFetchedEpoch())
                        .put("bytes", fetches.partitionMaxBytes());
            case OFFSET_FOR_LEADER_EPOCH:
                OffsetForLeaderEpochRequestData.OffsetForLeaderPartition searches =
                        ((OffsetsForLeaderEpochRequest) request).data().topics().iterator().next().partitions().get(0);
                return told.put("kind", "validate")
                        .put("epoch", searches.leaderEpoch())
                        .put("current", searches.currentLeaderEpoch());
            case LIST_OFFSETS:
                ListOffsetsRequestData.ListOffsetsPartition lists =
                        ((ListOffsetsRequest) request).data().topics().get(0).partitions().get(0);
                return told.put("kind", "list")
                        .put("timestamp", lists.timestamp())
                        .put("current", lists.currentLeaderEpoch());
            case OFFSET_COMMIT:
                OffsetCommitRequestData.OffsetCommitRequestPartition commits =
                        ((OffsetCommitRequest) request).data().topics().get(0).partitions().get(0);
                return told.put("kind", "commit")
                        .put("offset", commits.committedOffset())
                        .put("epoch", commits.committedLeaderEpoch());
            case OFFSET_FETCH:
                return told.put("kind", "committed");
            default:
                throw new IllegalArgumentException("nobody here answers " + header.apiKey());
        }
    }

    // -- answers --------------------------------------------------------------------------------------------------

    /** Which versions there are, and who coordinates. */
    ByteBuffer atOnce(RequestHeader header, AbstractRequest request) throws IOException {
        if (header.apiKey() == ApiKeys.API_VERSIONS) {
            return bytes(
                    header,
                    new ApiVersionsResponseData()
                            .setApiKeys(
                                    ApiVersionsResponse.brokerApiVersions(ApiMessageType.ListenerType.BROKER, false, false)));
        }
        List<FindCoordinatorResponseData.Coordinator> found = new ArrayList<>();
        for (String key : ((FindCoordinatorRequest) request).data().coordinatorKeys()) {
            found.add(
                    new FindCoordinatorResponseData.Coordinator()
                            .setKey(key)
                            .setNodeId(coordinator)
                            .setHost(Wire.HOST)
                            .setPort(Wire.FIRST_PORT + coordinator));
        }
        return bytes(header, new FindCoordinatorResponseData().setCoordinators(found));
    }

    /** An answer that somebody gives. */
    ByteBuffer answer(RequestHeader header, AbstractRequest request, JsonNode told) {
        short error = Errors.valueOf(told.get("error").asText()).code();
        switch (header.apiKey()) {
            case METADATA:
                return bytes(header, metadata(told, error));
            case FETCH:
                return bytes(header, fetched((FetchRequest) request, told, error));
            case OFFSET_FOR_LEADER_EPOCH:
                return bytes(header, end(told, error));
            case LIST_OFFSETS:
                return bytes(header, listed(told, error));
            case OFFSET_COMMIT:
                return bytes(header, stored((OffsetCommitRequest) request, error));
            default:
                return bytes(header, committed((OffsetFetchRequest) request, told, error));
        }
    }

    private static ByteBuffer bytes(RequestHeader header, ApiMessage body) {
        return RequestUtils.serialize(
                header.toResponseHeader().data(),
                header.apiKey().responseHeaderVersion(header.apiVersion()),
                body,
                header.apiVersion());
    }

    private MetadataResponseData metadata(JsonNode told, short error) {
        MetadataResponseData data = new MetadataResponseData().setControllerId(-1).setClusterId("fencepost");
        for (int node = 0; node < brokers; node++) {
            data.brokers()
                    .add(
                            new MetadataResponseData.MetadataResponseBroker()
                                    .setNodeId(node)
                                    .setHost(Wire.HOST)
                                    .setPort(Wire.FIRST_PORT + node));
        }
        MetadataResponseData.MetadataResponseTopic topic =
                new MetadataResponseData.MetadataResponseTopic().setName(TOPIC).setTopicId(TOPIC_ID);
        data.topics().add(topic);
        if (error == Errors.UNKNOWN_TOPIC_OR_PARTITION.code()) {
            topic.setErrorCode(error).setTopicId(Uuid.ZERO_UUID);
            return data;
        }
        List<Integer> replicas = IntStream.range(0, brokers).boxed().toList();
        topic.setPartitions(
                List.of(
                        new MetadataResponseData.MetadataResponsePartition()
                                .setErrorCode(error)
                                .setPartitionIndex(0)
                                .setLeaderId(told.get("leader").asInt())
                                .setLeaderEpoch(told.get("epoch").asInt())
                                .setReplicaNodes(replicas)
                                .setIsrNodes(replicas)));
        return data;
    }

    private static FetchResponseData fetched(FetchRequest request, JsonNode told, short error) {
        ByteBuffer records;
        try {
            records = ByteBuffer.wrap(told.get("records").binaryValue());
        } catch (IOException failed) {
            throw new IllegalArgumentException(failed);
        }
        FetchResponseData.PartitionData partition =
                new FetchResponseData.PartitionData()
                        .setPartitionIndex(0)
                        .setErrorCode(error)
                        .setHighWatermark(told.get("hw").asLong())
                        .setLastStableOffset(told.get("hw").asLong())
                        .setLogStartOffset(told.get("start").asLong())
                        .setRecords(MemoryRecords.readableRecords(records));
        FetchRequestData.FetchTopic topic = request.data().topics().get(0);
        return new FetchResponseData()
                .setResponses(
                        List.of(
                                new FetchResponseData.FetchableTopicResponse()
                                        .setTopic(topic.topic())
                                        .setTopicId(topic.topicId())
                                        .setPartitions(List.of(partition))));
    }

    private static OffsetForLeaderEpochResponseData end(JsonNode told, short error) {
        OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
        data.topics()
                .add(
                        new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult()
                                .setTopic(TOPIC)
                                .setPartitions(
                                        List.of(
                                                new OffsetForLeaderEpochResponseData.EpochEndOffset()
                                                        .setPartition(0)
                                                        .setErrorCode(error)
                                                        .setLeaderEpoch(told.get("epoch").asInt())
                                                        .setEndOffset(told.get("offset").asLong()))));
        return data;
    }

    private static ListOffsetsResponseData listed(JsonNode told, short error) {
        return new ListOffsetsResponseData()
                .setTopics(
                        List.of(
                                new ListOffsetsResponseData.ListOffsetsTopicResponse()
                                        .setName(TOPIC)
                                        .setPartitions(
                                                List.of(
                                                        new ListOffsetsResponseData.ListOffsetsPartitionResponse()
                                                                .setPartitionIndex(0)
                                                                .setErrorCode(error)
                                                                .setLeaderEpoch(told.get("epoch").asInt())
                                                                .setOffset(told.get("offset").asLong())))));
    }

    private static OffsetCommitResponseData stored(OffsetCommitRequest request, short error) {
        OffsetCommitRequestData.OffsetCommitRequestTopic topic = request.data().topics().get(0);
        return new OffsetCommitResponseData()
                .setTopics(
                        List.of(
                                new OffsetCommitResponseData.OffsetCommitResponseTopic()
                                        .setName(topic.name())
                                        .setTopicId(topic.topicId())
                                        .setPartitions(
                                                List.of(
                                                        new OffsetCommitResponseData.OffsetCommitResponsePartition()
                                                                .setPartitionIndex(0)
                                                                .setErrorCode(error)))));
    }

    private static OffsetFetchResponseData committed(OffsetFetchRequest request, JsonNode told, short error) {
        OffsetFetchRequestData.OffsetFetchRequestGroup group = request.data().groups().get(0);
        OffsetFetchRequestData.OffsetFetchRequestTopics topic = group.topics().get(0);
        OffsetFetchResponseData.OffsetFetchResponsePartitions partition =
                new OffsetFetchResponseData.OffsetFetchResponsePartitions()
                        .setPartitionIndex(0)
                        .setErrorCode(error)
                        .setMetadata("")
                        .setCommittedLeaderEpoch(told.get("epoch").asInt())
                        .setCommittedOffset(told.get("offset").asLong());
        return new OffsetFetchResponseData()
                .setGroups(
                        List.of(
                                new OffsetFetchResponseData.OffsetFetchResponseGroup()
                                        .setGroupId(group.groupId())
                                        .setTopics(
                                                List.of(
                                                        new OffsetFetchResponseData.OffsetFetchResponseTopics()
                                                                .setName(topic.name())
                                                                .setTopicId(topic.topicId())
                                                                .setPartitions(List.of(partition))))));
    }
}
