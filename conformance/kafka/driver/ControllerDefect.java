package org.apache.kafka.controller;

import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * A change of a few lines in what a controller does: whoever judges it must see it. A check that is not made is a
 * request that says what the controller wants to hear.
 */
enum ControllerDefect {
    NONE,
    /** A heartbeat counts for whichever process of its broker is registered. */
    HEARS_FORMER_PROCESSES,
    /** A broker is unfenced before it has replayed its own registration. */
    UNFENCES_EARLY,
    /** The broker epochs of an ISR's members are not compared (before KIP-903). */
    TAKES_ANY_MEMBER,
    /** An ISR is taken up whatever has become of the one that its leader went by (KIP-497's partition epoch). */
    TAKES_OLD_VERSIONS,
    /** An answer is told before what it goes by is committed. */
    ANSWERS_PENDING,
    /** A session is over after half of its time. */
    FENCES_EARLY,
    /** No session is ever over. */
    FENCES_NOBODY,
    /** A process registers in the place of one that lives. */
    REGISTERS_TWO,
    /** A broker may stop before those that may lead know of it. */
    STOPS_EARLY;

    private static volatile ControllerDefect planted = NONE;

    /** Have it hold from the next reset on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    boolean isPlanted() {
        return this == planted;
    }

    /** The time of a session, in milliseconds. */
    static long session(long ms) {
        return FENCES_EARLY.isPlanted() ? ms / 2 : FENCES_NOBODY.isPlanted() ? ms * 1_000_000 : ms;
    }

    /** A registration has come. */
    static void registered(QuorumController controller, int broker) {
        BrokerRegistration known = controller.clusterControl().brokerRegistrations().get(broker);
        if (REGISTERS_TWO.isPlanted() && known != null && controller.isActive()) {
            BrokerIdAndEpoch former = new BrokerIdAndEpoch(broker, known.epoch());
            controller.clusterControl().heartbeatManager().tracker().updateContactTime(former, 0);
        }
    }

    /** A heartbeat has come. */
    static void heard(QuorumController controller, BrokerHeartbeatRequestData data) {
        BrokerRegistration known = controller.clusterControl().brokerRegistrations().get(data.brokerId());
        if (HEARS_FORMER_PROCESSES.isPlanted() && known != null) {
            data.setBrokerEpoch(known.epoch());
        } else if (UNFENCES_EARLY.isPlanted() || (STOPS_EARLY.isPlanted() && known != null && !known.fenced())) {
            data.setCurrentMetadataOffset(Long.MAX_VALUE);
        }
    }

    /** A leader asks for another ISR. */
    static void altered(QuorumController controller, AlterPartitionRequestData data) {
        AlterPartitionRequestData.TopicData topic = data.topics().get(0);
        AlterPartitionRequestData.PartitionData asked = topic.partitions().get(0);
        PartitionRegistration known = controller.replicationControl().getPartition(topic.topicId(), 0);
        if (TAKES_ANY_MEMBER.isPlanted()) {
            asked.newIsrWithEpochs().forEach(each -> each.setBrokerEpoch(-1));
        } else if (TAKES_OLD_VERSIONS.isPlanted() && known != null) {
            asked.setPartitionEpoch(Math.max(asked.partitionEpoch(), known.partitionEpoch));
        }
    }
}
