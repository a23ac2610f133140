package org.apache.kafka.raft.internals;

import java.io.IOException;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** What the package of KafkaRaftLog keeps to itself. */
public final class QuorumLogs {
    private QuorumLogs() {}

    /** The end of what is synced. */
    public static long synced(KafkaRaftLog log) {
        return Math.min(log.log().recoveryPoint(), log.log().logEndOffset());
    }

    /** Let go of the files as they are: nothing more is written to them. */
    public static void drop(KafkaRaftLog log) {
        log.log().closeQuietly();
    }

    /** Begin a segment, where the last one has records: as after metadata.log.segment.ms. */
    public static void roll(KafkaRaftLog log) throws IOException {
        UnifiedLog there = log.log();
        if (there.activeSegment().size() > 0) {
            there.roll();
        }
    }
}
