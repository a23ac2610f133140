package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.LocalLeaderEndPoint;
import kafka.server.TierStateMachine;
import kafka.server.TopicConfigHandler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.LeaderEndPoint;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteMetadata;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.quota.QuotaFactory;

/** What brokers with tiered storage are asked for single rows about Kafka. */
final class TieredSteps {
    private TieredSteps() {}

    static boolean does(Cluster cluster, JsonNode command, ObjectNode answer) throws Exception {
        int node = command.path("node").asInt(-1);
        switch (command.get("do").asText()) {
            case "trim" -> cluster.broker(node).partition().deleteRecordsOnLeader(command.get("offset").asLong());
            case "deposed" -> deposed(cluster.broker(node), Metadata.changes(cluster.topicId, command.get("records")));
            case "configure" -> configure(cluster, cluster.broker(node), command.get("topic"));
            case "within" -> within(cluster, cluster.broker(node), cluster.broker(command.get("at").asInt()), command, answer);
            default -> {
                return false;
            }
        }
        cluster.broker(node).finish();
        return true;
    }

    /** A broker deletes in remote storage, and hears this when it has deleted what is the first. */
    private static void deposed(Broker broker, List<ApiMessage> records) {
        int before = RemoteMetadata.LOG.size();
        // A segment's deletion has two records, and each is written with the time.
        Manual.effect =
                () -> {
                    if (RemoteMetadata.LOG.size() > before) {
                        Manual.effect = () -> {};
                        broker.take(records);
                    }
                };
        try {
            broker.remote.expire();
        } finally {
            Manual.effect = () -> {};
        }
    }

    /** A broker hears of a topic's configuration, as by DynamicConfigPublisher. */
    private static void configure(Cluster cluster, Broker broker, JsonNode topic) {
        Properties wanted = new Properties();
        topic.properties().forEach(each -> wanted.put(each.getKey(), each.getValue().asText()));
        KafkaConfig config = cluster.configOf(broker.id, broker.folder);
        new TopicConfigHandler(broker.replicas, config, cluster.quotas(config))
                .processConfigChanges(cluster.partition.topic(), wanted);
    }

    /**
     * What a broker says of its log within itself, as to a replica that moves to another of its disks; and what a
     * follower asks for that is told of the local log start with an epoch, that one or another.
     */
    private static void within(Cluster cluster, Broker broker, Broker follower, JsonNode command, ObjectNode answer)
            throws Exception {
        TopicPartition partition = cluster.partition;
        int current = broker.partition().getLeaderEpoch();
        KafkaConfig config = cluster.configOf(broker.id, broker.folder);
        BrokerEndPoint place = new BrokerEndPoint(broker.id, "localhost", 9092);
        LeaderEndPoint own =
                new LocalLeaderEndPoint(place, config, broker.replicas, QuotaFactory.UNBOUNDED_QUOTA);
        OffsetAndEpoch earliest = own.fetchEarliestOffset(partition, current);
        OffsetAndEpoch local = own.fetchEarliestLocalOffset(partition, current);
        answer.putArray("earliest").add(earliest.offset()).add(earliest.epoch());
        answer.putArray("local").add(local.offset()).add(local.epoch());
        ArrayNode asked = answer.putArray("asked");
        Object heard =
                Proxy.newProxyInstance(
                        LeaderEndPoint.class.getClassLoader(),
                        new Class<?>[] {LeaderEndPoint.class},
                        (self, method, given) -> {
                            if (method.getName().equals("fetchEpochEndOffsets")) {
                                ((Map<?, ?>) given[0])
                                        .values()
                                        .forEach(each -> asked.add(((OffsetForLeaderPartition) each).leaderEpoch()));
                            }
                            return method.invoke(own, given);
                        });
        Method start =
                TierStateMachine.class.getDeclaredMethod(
                        "start", TopicPartition.class, Optional.class, int.class, OffsetAndEpoch.class, long.class);
        start.setAccessible(true);
        OffsetAndEpoch told = new OffsetAndEpoch(local.offset(), command.path("epoch").asInt(local.epoch()));
        Optional<Uuid> id = Optional.of(cluster.topicId);
        try {
            start.invoke(
                    new TierStateMachine((LeaderEndPoint) heard, follower.replicas, false),
                    partition,
                    id,
                    current,
                    told,
                    earliest.offset());
        } catch (InvocationTargetException failed) {
            answer.put("thrown", failed.getCause().getClass().getSimpleName());
        }
    }
}
