package org.apache.kafka.raft;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.SnapshotReader;

/**
 * A state machine that remembers every record, in order: a line for each offset. A leader's own record has one too.
 * It knows where batches end, as a snapshot may end nowhere else.
 */
final class QuorumMachine implements RaftClient.Listener<String> {
    static final String PADDING = "#";
    static final String OF_LEADER = "-";

    /** The end of a batch, its epoch, and the time when it was appended. */
    record End(long offset, int epoch, long appended) {}

    final List<String> lines = new ArrayList<>();
    final List<End> ends = new ArrayList<>();

    @Override
    public void handleCommit(BatchReader<String> reader) {
        try (reader) {
            while (reader.hasNext()) {
                Batch<String> batch = reader.next();
                take(batch);
            }
        }
    }

    private void take(Batch<String> batch) {
        long offset = batch.baseOffset();
        for (String each : batch.records()) {
            lines.add(line(offset++, batch.epoch(), each));
        }
        while (offset <= batch.lastOffset()) {
            lines.add(line(offset++, batch.epoch(), OF_LEADER));
        }
        ends.add(new End(batch.lastOffset() + 1, batch.epoch(), batch.appendTimestamp()));
    }

    static String line(long offset, int epoch, String payload) {
        int size = payload.indexOf(PADDING);
        return offset + " " + epoch + " " + (size < 0 ? payload : payload.substring(0, size));
    }

    @Override
    public void handleLoadSnapshot(SnapshotReader<String> reader) {
        try (reader) {
            lines.clear();
            ends.clear();
            lines.addAll(read(reader));
            OffsetAndEpoch id = reader.snapshotId();
            ends.add(new End(id.offset(), id.epoch(), reader.lastContainedLogTimestamp()));
        }
    }

    @Override
    public void handleLoadBootstrap(SnapshotReader<String> reader) {
        reader.close();
    }

    /** The lines in a snapshot. */
    static List<String> read(SnapshotReader<String> reader) {
        List<String> found = new ArrayList<>();
        while (reader.hasNext()) {
            for (String each : reader.next().records()) {
                if (!each.startsWith(PADDING)) {
                    found.add(each);
                }
            }
        }
        return found;
    }
}
