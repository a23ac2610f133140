package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.metadata.BrokerRegistrationFencingChange;
import org.apache.kafka.metadata.BrokerRegistrationInControlledShutdownChange;
import org.apache.kafka.server.common.MetadataVersion;

/** Records of the metadata log. */
final class Metadata {
    private Metadata() {}

    /** The cluster's features and brokers, all of them registered and unfenced. */
    static List<ApiMessage> cluster(int nodes, IntToLongFunction epochOf) {
        List<ApiMessage> found = new ArrayList<>();
        found.add(
                new FeatureLevelRecord()
                        .setName(MetadataVersion.FEATURE_NAME)
                        .setFeatureLevel(MetadataVersion.LATEST_PRODUCTION.featureLevel()));
        for (int node = 0; node < nodes; node++) {
            found.add(registered(node, epochOf.applyAsLong(node)));
        }
        return found;
    }

    private static RegisterBrokerRecord registered(int node, long epoch) {
        RegisterBrokerRecord.BrokerEndpointCollection ends = new RegisterBrokerRecord.BrokerEndpointCollection();
        ends.add(
                new RegisterBrokerRecord.BrokerEndpoint()
                        .setName("PLAINTEXT")
                        .setHost("localhost")
                        .setPort(9092 + node)
                        .setSecurityProtocol((short) 0));
        return new RegisterBrokerRecord()
                .setBrokerId(node)
                .setIncarnationId(new Uuid(epoch, node))
                .setBrokerEpoch(epoch)
                .setEndPoints(ends)
                .setFenced(false);
    }

    /** A broker is fenced, shuts down, or is registered with another epoch; or is as it was before. */
    private static ApiMessage registration(JsonNode told) {
        int node = told.get("broker").asInt();
        long epoch = told.get("epoch").asLong();
        return switch (told.get("what").asText()) {
            case "fence" -> change(node, epoch).setFenced(BrokerRegistrationFencingChange.FENCE.value());
            case "unfence" -> change(node, epoch).setFenced(BrokerRegistrationFencingChange.UNFENCE.value());
            case "shut down" ->
                    change(node, epoch)
                            .setInControlledShutdown(
                                    BrokerRegistrationInControlledShutdownChange.IN_CONTROLLED_SHUTDOWN.value());
            case "register" -> registered(node, epoch);
            default -> throw new IllegalArgumentException("nobody knows how to " + told.get("what"));
        };
    }

    private static BrokerRegistrationChangeRecord change(int node, long epoch) {
        return new BrokerRegistrationChangeRecord().setBrokerId(node).setBrokerEpoch(epoch);
    }

    /** The topic, with one partition that nobody leads yet. */
    static List<ApiMessage> created(String topic, Uuid topicId, int nodes) {
        List<Integer> all = new ArrayList<>();
        List<Uuid> folders = new ArrayList<>();
        for (int node = 0; node < nodes; node++) {
            all.add(node);
            folders.add(Uuid.ZERO_UUID);
        }
        return List.of(
                new TopicRecord().setName(topic).setTopicId(topicId),
                new PartitionRecord()
                        .setTopicId(topicId)
                        .setPartitionId(0)
                        .setReplicas(all)
                        .setIsr(all)
                        .setDirectories(folders)
                        .setLeader(-1)
                        .setLeaderEpoch(0)
                        .setPartitionEpoch(0));
    }

    /** Changes of the partition and of the brokers' registrations, as a line of JSON tells them. */
    static List<ApiMessage> changes(Uuid topicId, JsonNode told) {
        List<ApiMessage> found = new ArrayList<>();
        for (JsonNode each : told) {
            if (each.has("broker")) {
                found.add(registration(each));
                continue;
            }
            PartitionChangeRecord record = new PartitionChangeRecord().setTopicId(topicId).setPartitionId(0);
            if (each.has("leader")) {
                record.setLeader(each.get("leader").asInt());
            }
            if (each.has("isr")) {
                record.setIsr(Picture.integers(each.get("isr")));
            }
            found.add(record);
        }
        return found;
    }
}
