package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import fencepost.kafka.Manual;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.image.loader.LoaderReplay;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.SnapshotReader;

/**
 * Replays metadata logs through Kafka's own nodes: a standby QuorumController, which stops at the first record that it
 * rejects, and a MetadataLoader, as every node has one.
 */
public final class ControllerReplay {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int EPOCH = 1;
    private static final int PATIENCE_SECONDS = 30;
    private static final Pattern OFFSET = Pattern.compile("(?:record at|from) offset (\\d+)");
    private static final Pattern IN_SNAPSHOT = Pattern.compile("which was (\\d+) of|log record (\\d+) in snapshot");

    private ControllerReplay() {}

    /** The first fault that a node reports. */
    private static final class FirstFault implements FaultHandler {
        private String message;
        private Throwable cause;

        @Override
        public synchronized RuntimeException handleFault(String text, Throwable failed) {
            if (message == null) {
                message = text;
                cause = failed;
            }
            return new IllegalStateException(text, failed);
        }

        /** Offset of the rejected record, or its number in a snapshot, from 0; null without a fault. */
        synchronized ObjectNode told() {
            if (message == null) {
                return null;
            }
            ObjectNode told = JSON.createObjectNode().put("why", message + ": " + cause);
            Matcher inSnapshot = IN_SNAPSHOT.matcher(message);
            Matcher offset = OFFSET.matcher(message);
            if (inSnapshot.find()) {
                boolean counts = inSnapshot.group(1) != null; // the controller counts from 1, the loader from 0
                told.put("at", counts ? Long.parseLong(inSnapshot.group(1)) - 1 : Long.parseLong(inSnapshot.group(2)));
            } else {
                told.put("at", offset.find() ? Long.parseLong(offset.group(1)) : -1);
            }
            return told;
        }
    }

    /** Names the supported features, or replays each of the command's logs: its snapshot, and its batches of records. */
    public static ObjectNode handle(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        if (command.get("do").asText().equals("features")) {
            ArrayNode names = answer.putArray("features");
            QuorumFeatures.defaultSupportedFeatureMap(false).keySet().forEach(names::add);
            return answer;
        }
        ArrayNode results = answer.putArray("results");
        for (JsonNode log : command.get("logs")) {
            ObjectNode result = results.addObject();
            FirstFault controller = new FirstFault();
            FirstFault loader = new FirstFault();
            replay(log, controller, loader);
            result.set("controller", controller.told());
            result.set("loader", loader.told());
        }
        return answer;
    }

    private static void replay(JsonNode asked, FirstFault controllerFault, FirstFault loaderFault) throws Exception {
        ControllerLog log = new ControllerLog(0, 1);
        Manual.Clock clock = new Manual.Clock();
        LoaderReplay loader = new LoaderReplay(clock, loaderFault, log::highWatermark);
        QuorumController controller =
                new QuorumController.Builder(0, "fencepost")
                        .setTime(clock)
                        .setRaftClient(log)
                        .setQuorumFeatures(
                                new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(false), List.of(0)))
                        .setConfigSchema(KafkaRaftServer.configSchema())
                        .setSupportedConfigChecker(new DefaultSupportedConfigChecker())
                        .setBootstrapMetadata(
                                BootstrapMetadata.fromVersions(MetadataVersion.LATEST_PRODUCTION, Map.of(), "fencepost"))
                        .setFatalFaultHandler(controllerFault)
                        .setNonFatalFaultHandler(controllerFault)
                        .build();
        try {
            long base = 0;
            if (asked.hasNonNull("snapshot")) {
                List<ApiMessageAndVersion> records = records(asked.get("snapshot"), 0);
                base = asked.get("end").asLong();
                log.listener().handleLoadSnapshot(new Whole(records, base));
                loader.listener().handleLoadSnapshot(new Whole(records, base));
            }
            for (JsonNode each : asked.get("batches")) {
                List<ApiMessageAndVersion> records = records(each, base);
                long next = base + Math.max(1, each.size());
                log.highWatermark = next;
                if (!records.isEmpty()) {
                    Batch<ApiMessageAndVersion> batch = Batch.data(base, EPOCH, 0, 1, records);
                    log.listener().handleCommit(new One(batch));
                    loader.listener().handleCommit(new One(batch));
                }
                base = next;
            }
            controller.appendReadEvent("wait", OptionalLong.empty(), () -> null).get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            loader.settle();
        } finally {
            controller.beginShutdown();
            controller.close();
            loader.close();
        }
    }

    private static List<ApiMessageAndVersion> records(JsonNode values, long base) throws IOException {
        List<byte[]> bytes = new ArrayList<>();
        for (JsonNode each : values) {
            bytes.add(each.binaryValue());
        }
        return ControllerLog.read(new ControllerLog.Entry(base, EPOCH, bytes));
    }

    /** One committed batch. */
    private static final class One implements BatchReader<ApiMessageAndVersion> {
        private final Batch<ApiMessageAndVersion> batch;
        private boolean isRead = false;

        One(Batch<ApiMessageAndVersion> batch) {
            this.batch = batch;
        }

        @Override
        public boolean hasNext() {
            return !isRead;
        }

        @Override
        public Batch<ApiMessageAndVersion> next() {
            isRead = true;
            return batch;
        }

        @Override
        public long baseOffset() {
            return batch.baseOffset();
        }

        @Override
        public OptionalLong lastOffset() {
            return OptionalLong.of(batch.lastOffset());
        }

        @Override
        public void close() {}
    }

    /** A snapshot whose records are one batch. */
    private static final class Whole implements SnapshotReader<ApiMessageAndVersion> {
        private final List<ApiMessageAndVersion> records;
        private final long end;
        private boolean isRead;

        Whole(List<ApiMessageAndVersion> records, long end) {
            this.records = records;
            this.end = end;
            this.isRead = records.isEmpty();
        }

        @Override
        public OffsetAndEpoch snapshotId() {
            return new OffsetAndEpoch(end, EPOCH);
        }

        @Override
        public long lastContainedLogOffset() {
            return end - 1;
        }

        @Override
        public int lastContainedLogEpoch() {
            return EPOCH;
        }

        @Override
        public long lastContainedLogTimestamp() {
            return 0;
        }

        @Override
        public boolean hasNext() {
            return !isRead;
        }

        @Override
        public Batch<ApiMessageAndVersion> next() {
            isRead = true;
            return Batch.data(0, EPOCH, 0, 1, records);
        }

        @Override
        public void close() {}
    }
}
