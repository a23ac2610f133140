package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.FenceBrokerRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnfenceBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** What records of the metadata log say of brokers and partitions; of others their name. */
final class ControllerRecords {
    private ControllerRecords() {}

    /** One object for each offset, with the epoch; that of the record by which an epoch begins has no more. */
    static void tell(ControllerLog.Entry entry, ArrayNode told) {
        if (entry.records().isEmpty()) {
            told.addObject().put("at", entry.epoch());
        }
        for (ApiMessageAndVersion each : ControllerLog.read(entry)) {
            tell(each.message(), told.addObject().put("at", entry.epoch()));
        }
    }

    static void tell(ApiMessage message, ObjectNode told) {
        told.put("record", message.getClass().getSimpleName());
        if (message instanceof RegisterBrokerRecord record) {
            told.put("broker", record.brokerId()).put("epoch", record.brokerEpoch());
            told.put("process", record.incarnationId().getLeastSignificantBits());
            told.put("fenced", record.fenced()).put("stopping", record.inControlledShutdown());
        } else if (message instanceof BrokerRegistrationChangeRecord record) {
            told.put("broker", record.brokerId()).put("epoch", record.brokerEpoch());
            if (record.fenced() != 0) {
                told.put("fenced", record.fenced() > 0);
            }
            if (record.inControlledShutdown() != 0) {
                told.put("stopping", true);
            }
        } else if (message instanceof FenceBrokerRecord record) {
            told.put("broker", record.id()).put("epoch", record.epoch()).put("fenced", true);
        } else if (message instanceof UnfenceBrokerRecord record) {
            told.put("broker", record.id()).put("epoch", record.epoch()).put("fenced", false);
        } else if (message instanceof TopicRecord record) {
            told.put("topic", record.topicId().toString()).put("name", record.name());
        } else if (message instanceof RemoveTopicRecord record) {
            told.put("topic", record.topicId().toString());
        } else if (message instanceof PartitionRecord record) {
            told.put("topic", record.topicId().toString()).put("leader", record.leader());
            told.put("leaderEpoch", record.leaderEpoch()).put("partitionEpoch", record.partitionEpoch());
            told.put("recovering", record.leaderRecoveryState());
            isr(record.isr(), told);
        } else if (message instanceof PartitionChangeRecord record) {
            told.put("topic", record.topicId().toString());
            if (record.leader() != -2) {
                told.put("leader", record.leader());
            }
            if (record.leaderRecoveryState() >= 0) {
                told.put("recovering", record.leaderRecoveryState());
            }
            if (record.isr() != null) {
                isr(record.isr(), told);
            }
        }
    }

    private static void isr(List<Integer> members, ObjectNode told) {
        ArrayNode found = told.putArray("isr");
        members.forEach(found::add);
    }
}
