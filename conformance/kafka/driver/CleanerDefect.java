package fencepost.kafka;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.security.DigestException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogCleaningState;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.OffsetMap;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** A change of a few lines in Kafka's cleaner, its map or its manager, by a subclass: whoever judges it must see it. */
enum CleanerDefect {
    NONE,
    /** Of a key the map keeps the first record, and a later one does not take its place. */
    KEEPS_FIRST,
    /** Two keys that begin alike are one to the map (as where digests of keys collide). */
    TAKES_KEYS_FOR_ONE,
    /** What the map has no room for is passed over, and the log counts as clean up to there all the same. */
    MAPS_PART,
    /** A tombstone goes in the round in which it is first cleaned, whatever its delete horizon is. */
    EXPIRES_EARLY,
    /** No tombstone is ever old enough: for a cleaner that meets one it is a moment before (as in KAFKA-8522). */
    EXPIRES_NEVER,
    /** The cleaner goes up to the active segment, whatever the high watermark is. */
    CLEANS_UNCOMMITTED,
    /** Records are cleaned that are younger than min.compaction.lag.ms. */
    CLEANS_YOUNG,
    /** The checkpoint says that the log is clean to its end, however far it was cleaned. */
    CHECKPOINTS_ALL,
    /** The checkpoint is written before the log is cleaned. */
    CHECKPOINTS_BEFORE,
    /** The checkpoint stays where it was. */
    CHECKPOINTS_NOTHING;

    private static CleanerDefect planted = NONE;

    /** Have it hold from the next reset on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    boolean isPlanted() {
        return this == planted;
    }

    /** Have a thread of a cleaner go by what is planted. */
    static void change(LogCleaner cleaner, LogCleaner.CleanerThread thread, Time time) throws Exception {
        if (planted == NONE) {
            return;
        }
        if (!(cleaner.cleanerManager() instanceof Manager)) {
            LogCleanerManager kafkas = cleaner.cleanerManager();
            Map<?, ?> checkpoints = (Map<?, ?>) get(LogCleanerManager.class, kafkas, "checkpoints");
            List<File> folders = checkpoints.keySet().stream().map(each -> (File) each).toList();
            kafkas.removeMetrics();
            set(LogCleaner.class, cleaner, "cleanerManager", new Manager(folders, cleaner));
        }
        CleanerConfig config = cleaner.currentConfig();
        OffsetMap map = new Keys(new SkimpyOffsetMap((int) config.dedupeBufferSize, config.hashAlgorithm()));
        Consumer<TopicPartition> done = cleaner.cleanerManager()::checkCleaningAborted;
        set(LogCleaner.CleanerThread.class, thread, "cleaner", new Changed(config, map, cleaner, time, done));
    }

    private static Object get(Class<?> of, Object from, String name) throws ReflectiveOperationException {
        Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(from);
    }

    private static void set(Class<?> of, Object in, String name, Object value) throws ReflectiveOperationException {
        Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        field.set(in, value);
    }

    /** The map of keys. */
    private static final class Keys implements OffsetMap {
        private final SkimpyOffsetMap kafkas;

        Keys(SkimpyOffsetMap kafkas) {
            this.kafkas = kafkas;
        }

        private static ByteBuffer key(ByteBuffer key) {
            return TAKES_KEYS_FOR_ONE.isPlanted() ? key.duplicate().limit(key.position() + 1) : key;
        }

        @Override
        public int slots() {
            return kafkas.slots();
        }

        @Override
        public void put(ByteBuffer key, long offset) throws DigestException {
            if (KEEPS_FIRST.isPlanted() && kafkas.get(key.duplicate()) >= 0) {
                return;
            }
            if (MAPS_PART.isPlanted() && kafkas.get(key.duplicate()) < 0 && kafkas.size() > 0) {
                return;
            }
            kafkas.put(key(key), offset);
        }

        @Override
        public long get(ByteBuffer key) throws DigestException {
            return kafkas.get(key(key));
        }

        @Override
        public void updateLatestOffset(long offset) {
            kafkas.updateLatestOffset(offset);
        }

        @Override
        public void clear() {
            kafkas.clear();
        }

        @Override
        public int size() {
            return kafkas.size();
        }

        @Override
        public long latestOffset() {
            return kafkas.latestOffset();
        }
    }

    /** Who goes through a log. */
    private static final class Changed extends Cleaner {
        private final LogCleanerManager manager;

        Changed(CleanerConfig config, OffsetMap map, LogCleaner cleaner, Time time, Consumer<TopicPartition> done) {
            super(
                    0,
                    map,
                    config.ioBufferSize / 2,
                    config.maxMessageSize,
                    config.dedupeBufferLoadFactor,
                    cleaner.throttler(),
                    time,
                    done);
            manager = cleaner.cleanerManager();
        }

        @Override
        public Map.Entry<Long, CleanerStats> doClean(LogToClean what, long now) throws IOException, DigestException {
            if (CHECKPOINTS_BEFORE.isPlanted()) {
                Map.Entry<TopicPartition, Long> end = Map.entry(what.topicPartition(), what.firstUncleanableOffset());
                manager.updateCheckpoints(what.log().parentDirFile(), Optional.of(end), Optional.empty());
            }
            Map.Entry<Long, CleanerStats> found = super.doClean(what, EXPIRES_NEVER.isPlanted() ? before(what.log(), now) : now);
            return EXPIRES_EARLY.isPlanted() ? super.doClean(what, now + what.log().config().deleteRetentionMs) : found;
        }
    }

    /** A time before each delete horizon that is over. */
    private static long before(UnifiedLog log, long now) {
        long found = now;
        for (LogSegment segment : log.logSegments()) {
            for (RecordBatch batch : segment.log().batches()) {
                found = Math.min(found, batch.deleteHorizonMs().orElse(Long.MAX_VALUE) - 1);
            }
        }
        return found;
    }

    /** Who says which log is cleaned, and how far. */
    private static final class Manager extends LogCleanerManager {
        private final Map<TopicPartition, UnifiedLog> logs;

        Manager(List<File> folders, LogCleaner cleaner) {
            super(folders, cleaner.logs(), null);
            logs = cleaner.logs();
        }

        @Override
        public Optional<LogToClean> grabFilthiestCompactedLog(Time time, PreCleanStats stats) {
            Optional<LogToClean> kafkas = super.grabFilthiestCompactedLog(time, stats);
            if (!CLEANS_UNCOMMITTED.isPlanted() && !CLEANS_YOUNG.isPlanted()) {
                return kafkas;
            }
            for (UnifiedLog log : kafkas.map(each -> List.of(each.log())).orElse(List.copyOf(logs.values()))) {
                long active = log.activeSegment().baseOffset();
                long end = CLEANS_YOUNG.isPlanted() ? Math.min(active, log.lastStableOffset()) : active;
                long first = Math.min(allCleanerCheckpoints().getOrDefault(log.topicPartition(), 0L), end);
                LogToClean found = new LogToClean(log, first, end, true);
                if (found.cleanableBytes() > 0) {
                    mark(log.topicPartition());
                    return Optional.of(found);
                }
            }
            return kafkas;
        }

        @SuppressWarnings("unchecked")
        private void mark(TopicPartition partition) {
            try {
                Map<TopicPartition, LogCleaningState> marks =
                        (Map<TopicPartition, LogCleaningState>) get(LogCleanerManager.class, this, "inProgress");
                marks.put(partition, LogCleaningState.LOG_CLEANING_IN_PROGRESS);
            } catch (ReflectiveOperationException failed) {
                throw new IllegalStateException(failed);
            }
        }

        @Override
        public void doneCleaning(TopicPartition partition, File folder, long end) {
            long before = allCleanerCheckpoints().getOrDefault(partition, 0L);
            long all = logs.get(partition).logEndOffset();
            super.doneCleaning(
                    partition, folder, CHECKPOINTS_ALL.isPlanted() ? all : CHECKPOINTS_NOTHING.isPlanted() ? before : end);
        }
    }
}
