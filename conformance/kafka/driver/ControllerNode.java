package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import fencepost.kafka.Manual;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.deferred.DeferredEvent;
import org.apache.kafka.deferred.DeferredEventQueue;
import org.apache.kafka.image.loader.Snapshots;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandler;

/**
 * A process of a controller: Kafka's own, with its event queue and the queue's thread, over a voter's log. The thread
 * waits on the driver's clock, and the driver waits for the thread, so that one thing happens at a time.
 */
final class ControllerNode {
    static final String CLUSTER = "fencepost";
    /** In seconds of the real clock: whoever needs longer for one event has hung. */
    private static final int PATIENCE = 30;

    final int id;
    final ControllerLog log;
    final QuorumController controller;
    private final DeferredEventQueue waiting;
    private final Field pending;
    private final Field result;
    /** What makes its snapshots; null where none is asked for. */
    private Snapshots snapshots;
    /** Whether eligible leader replicas are on. */
    private final boolean knowsEligible;
    private volatile RuntimeException fault;

    /** What it is like follows from the command by which all of them began. */
    ControllerNode(int id, ControllerLog log, Manual.Clock clock, JsonNode asked, QuorumFeatures features)
            throws Exception {
        this.id = id;
        this.log = log;
        FaultHandler faults =
                (message, cause) -> {
                    RuntimeException found = new IllegalStateException(message, cause);
                    fault = found;
                    return found;
                };
        if (asked.has("snapshotBytes")) {
            long bytes = asked.get("snapshotBytes").asLong();
            long ms = asked.get("snapshotMs").asLong();
            snapshots = new Snapshots(id, clock, faults, bytes, ms, log::highWatermark);
            log.beside = snapshots.listener();
        }
        long sessionMs = asked.get("session").asLong();
        knowsEligible = asked.path("eligible").asBoolean();
        short level = (short) (knowsEligible ? 1 : 0);
        controller =
                new QuorumController.Builder(id, CLUSTER)
                        .setTime(clock)
                        .setRaftClient(log)
                        .setQuorumFeatures(features)
                        .setConfigSchema(KafkaRaftServer.configSchema())
                        .setSessionTimeoutNs(TimeUnit.MILLISECONDS.toNanos(ControllerDefect.session(sessionMs)))
                        .setBootstrapMetadata(
                                BootstrapMetadata.fromVersions(
                                        MetadataVersion.LATEST_PRODUCTION,
                                        Map.of(EligibleLeaderReplicasVersion.FEATURE_NAME, level),
                                        "fencepost"))
                        .setFatalFaultHandler(faults)
                        .setNonFatalFaultHandler(faults)
                        .build();
        Field queue = QuorumController.class.getDeclaredField("deferredEventQueue");
        queue.setAccessible(true);
        waiting = (DeferredEventQueue) queue.get(controller);
        pending = DeferredEventQueue.class.getDeclaredField("pending");
        pending.setAccessible(true);
        result = QuorumController.ControllerWriteEvent.class.getDeclaredField("resultAndOffset");
        result.setAccessible(true);
    }

    /** Waits until the controller has done what it had to; it has been told what its log owes it. */
    void settle() throws Exception {
        do {
            for (int turn = 0; turn < 2; turn++) {
                asked(() -> null);
            }
        } while (log.tell());
        if (fault != null) {
            RuntimeException found = fault;
            fault = null;
            throw found;
        }
    }

    /** What something on the controller's own thread gives. */
    private <T> T asked(java.util.function.Supplier<T> what) throws Exception {
        return controller.appendReadEvent("look", OptionalLong.empty(), what).get(PATIENCE, TimeUnit.SECONDS);
    }

    /** What was decided last, and is not told yet; where all is told, nothing. */
    @SuppressWarnings("unchecked")
    Optional<ControllerResultAndOffset<?>> decided() throws Exception {
        return asked(
                () -> {
                    try {
                        Map.Entry<Long, List<DeferredEvent>> last =
                                ((TreeMap<Long, List<DeferredEvent>>) pending.get(waiting)).lastEntry();
                        if (last == null) {
                            return Optional.<ControllerResultAndOffset<?>>empty();
                        }
                        DeferredEvent event = last.getValue().get(last.getValue().size() - 1);
                        return Optional.<ControllerResultAndOffset<?>>of(
                                (ControllerResultAndOffset<?>) result.get(event));
                    } catch (IllegalAccessException failed) {
                        throw new IllegalStateException(failed);
                    }
                });
    }

    /** Tell everything that waits, whatever is committed. */
    void tellAll() throws Exception {
        asked(
                () -> {
                    waiting.completeUpTo(Long.MAX_VALUE);
                    return null;
                });
    }

    /** Everything that can be seen of the process and of its voter. */
    void look(ObjectNode seen) throws Exception {
        int claimed = controller.curClaimEpoch();
        seen.put("active", claimed).put("epoch", log.epoch).put("leads", log.leads());
        seen.put("leader", log.leader.orElse(-1)).put("end", log.end()).put("hw", log.highWatermark);
        seen.put("applied", log.given);
        asked(
                () -> {
                    ArrayNode stopping = seen.putArray("stopping");
                    if (claimed >= 0) {
                        for (int broker : controller.clusterControl().brokerRegistrations().keySet()) {
                            if (controller.clusterControl().heartbeatManager().controlledShutdownOffset(broker).isPresent()) {
                                stopping.add(broker);
                            }
                        }
                    }
                    image(seen.putObject("image"));
                    return null;
                });
        seen.put("from", log.known);
        ArrayNode records = seen.putArray("records");
        for (ControllerLog.Entry each : log.entries) {
            if (each.base() >= log.known) {
                ControllerRecords.tell(each, records);
            }
        }
        log.known = log.end();
        if (snapshots != null) {
            ArrayNode made = seen.putArray("snapshots");
            for (Snapshots.Made each : snapshots.made()) {
                ObjectNode one = made.addObject().put("end", each.end());
                ArrayNode said = one.putArray("records");
                each.records().forEach(record -> ControllerRecords.tell(record.message(), said.addObject()));
            }
        }
    }

    private void image(ObjectNode told) {
        ObjectNode brokers = told.putObject("brokers");
        for (BrokerRegistration each : controller.clusterControl().brokerRegistrations().values()) {
            ObjectNode one = brokers.putObject(String.valueOf(each.id()));
            one.put("epoch", each.epoch()).put("process", each.incarnationId().getLeastSignificantBits());
            one.put("fenced", each.fenced()).put("stopping", each.inControlledShutdown());
        }
        ObjectNode partitions = told.putObject("partitions");
        for (String name : ControllerRequests.NAMES) {
            Uuid topic = controller.replicationControl().getTopicId(name);
            PartitionRegistration there =
                    topic == null ? null : controller.replicationControl().getPartition(topic, 0);
            if (there != null) {
                ObjectNode one = partitions.putObject(name);
                one.put("topic", topic.toString()).put("leader", there.leader);
                one.put("leaderEpoch", there.leaderEpoch).put("partitionEpoch", there.partitionEpoch);
                one.put("recovering", there.leaderRecoveryState.value());
                members(there.isr, one.putArray("isr"));
                if (knowsEligible) {
                    members(there.elr, one.putArray("eligible"));
                    members(there.lastKnownElr, one.putArray("lastKnown"));
                }
            }
        }
    }

    private static void members(int[] brokers, ArrayNode told) {
        for (int each : brokers) {
            told.add(each);
        }
    }

    /** The process ends at once. Its voter's log is as it was. */
    void end() throws Exception {
        log.restart();
        if (snapshots != null) {
            snapshots.close();
        }
        controller.beginShutdown();
        controller.close();
    }
}
