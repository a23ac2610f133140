package org.apache.kafka.raft;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotWriter;
import org.apache.kafka.snapshot.Snapshots;

/**
 * A change of a few lines in Kafka's own classes: whoever judges the quorum must see it. A method of the log that the
 * client has, or of its state store, does something else.
 */
enum QuorumDefect {
    NONE,
    /** A vote is given, and not stored (KIP-595: "voted" is in quorum-state). */
    FORGETS_VOTE,
    /** A fetch at the log start is served whatever its epoch: hole A2. */
    VALIDATES_NOTHING,
    /** The bytes of a snapshot go on where those of a former leader's ended: hole A4. */
    MIXES_SNAPSHOTS,
    /** An answer counts whichever request of its asker it answers: hole A5. */
    TAKES_ANY_ANSWER,
    /** A snapshot was fetched, and the log is left as it was. */
    KEEPS_LOG,
    /** The snapshot goes that the log begins behind. */
    DELETES_LAST,
    /** A follower that diverges cuts a record too few. */
    CUTS_TOO_LITTLE,
    /** A node takes all that it has for committed. */
    COMMITS_ALL,
    /** A follower fetches, and has not synced what it has. */
    NEVER_SYNCS,
    /** Fetches and candidates name epoch 0, as if the log were empty. */
    NAMES_NO_EPOCH;

    private static volatile QuorumDefect planted = NONE;

    /** Have it hold from the next start on. */
    static void plant(String name) {
        planted = valueOf(name);
    }

    boolean isPlanted() {
        return this == planted;
    }

    /** The log that the client gets: Kafka's, or one of which a method does something else. */
    static RaftLog log(KafkaRaftLog kafkas, Path folder) {
        QuorumDefect here = planted;
        if (here == NONE) {
            return kafkas;
        }
        Map<OffsetAndEpoch, RawSnapshotWriter> begun = new HashMap<>();
        InvocationHandler handler =
                (self, method, arguments) -> {
                    try {
                        return here.instead(kafkas, folder, begun, method.getName(), arguments)
                                .orElseGet(() -> called(() -> method.invoke(kafkas, arguments)));
                    } catch (Called failed) {
                        throw failed.getCause();
                    }
                };
        return (RaftLog) Proxy.newProxyInstance(RaftLog.class.getClassLoader(), new Class<?>[] {RaftLog.class}, handler);
    }

    private static Object called(java.util.concurrent.Callable<Object> what) {
        try {
            return what.call();
        } catch (InvocationTargetException failed) {
            throw new Called(failed.getCause());
        } catch (Exception failed) {
            throw new Called(failed);
        }
    }

    private static final class Called extends RuntimeException {
        Called(Throwable cause) {
            super(cause);
        }
    }

    /** What a method gives that gives nothing; a proxy does not look at it. */
    private static final Optional<Object> DONE = Optional.of("");

    /** What a method gives, where that is not what Kafka's own would. */
    private Optional<Object> instead(
            KafkaRaftLog log,
            Path folder,
            Map<OffsetAndEpoch, RawSnapshotWriter> begun,
            String method,
            Object[] arguments) {
        switch (this.name() + " " + method) {
            case "VALIDATES_NOTHING validateOffsetAndEpoch" -> {
                long offset = (Long) arguments[0];
                int epoch = (Integer) arguments[1];
                if (offset == log.startOffset()) {
                    return Optional.of(ValidOffsetAndEpoch.valid(new OffsetAndEpoch(offset, epoch)));
                }
            }
            case "MIXES_SNAPSHOTS createNewSnapshotUnchecked" -> {
                OffsetAndEpoch id = (OffsetAndEpoch) arguments[0];
                RawSnapshotWriter former = begun.get(id);
                if (former == null || former.isFrozen()) {
                    Optional<RawSnapshotWriter> made = log.createNewSnapshotUnchecked(id);
                    if (made.isEmpty()) {
                        return Optional.of(made);
                    }
                    former = kept(made.get());
                    begun.put(id, former);
                }
                return Optional.of(Optional.of(former));
            }
            case "COMMITS_ALL updateHighWatermark" -> {
                log.updateHighWatermark(log.endOffset());
                return DONE;
            }
            case "NEVER_SYNCS flush" -> {
                return DONE;
            }
            case "NAMES_NO_EPOCH lastFetchedEpoch" -> {
                return Optional.of(0);
            }
            case "KEEPS_LOG truncateToLatestSnapshot" -> {
                return Optional.of(true);
            }
            case "DELETES_LAST deleteBeforeSnapshot" -> {
                OffsetAndEpoch id = (OffsetAndEpoch) arguments[0];
                boolean deleted = log.deleteBeforeSnapshot(id);
                if (deleted) {
                    try {
                        Files.deleteIfExists(Snapshots.snapshotPath(folder, id));
                    } catch (IOException failed) {
                        throw new UncheckedIOException(failed);
                    }
                }
                return Optional.of(deleted);
            }
            case "CUTS_TOO_LITTLE truncateToEndOffset" -> {
                long end = log.endOffset().offset();
                OffsetAndEpoch asked = (OffsetAndEpoch) arguments[0];
                OffsetAndEpoch more = new OffsetAndEpoch(Math.min(asked.offset() + 1, end), asked.epoch());
                log.truncateTo(more.offset());
                return Optional.of(more.offset());
            }
            default -> {}
        }
        return Optional.empty();
    }

    /** A writer that nobody closes before it is whole. */
    private static RawSnapshotWriter kept(RawSnapshotWriter writer) {
        InvocationHandler handler =
                (self, method, arguments) -> {
                    if (method.getName().equals("close") && !writer.isFrozen()) {
                        return null;
                    }
                    try {
                        return method.invoke(writer, arguments);
                    } catch (InvocationTargetException failed) {
                        throw failed.getCause();
                    }
                };
        Class<?>[] faces = {RawSnapshotWriter.class};
        return (RawSnapshotWriter) Proxy.newProxyInstance(RawSnapshotWriter.class.getClassLoader(), faces, handler);
    }

    static QuorumStateStore store(FileQuorumStateStore kafkas) {
        if (!FORGETS_VOTE.isPlanted()) {
            return kafkas;
        }
        return new QuorumStateStore() {
            @Override
            public Optional<ElectionState> readElectionState() {
                return kafkas.readElectionState();
            }

            @Override
            public void writeElectionState(ElectionState state, KRaftVersion version) {
                boolean votes = state.hasVoted() && !state.hasLeader();
                kafkas.writeElectionState(
                        votes ? ElectionState.withUnknownLeader(state.epoch(), java.util.Set.of()) : state, version);
            }

            @Override
            public Path path() {
                return kafkas.path();
            }

            @Override
            public void clear() {
                kafkas.clear();
            }
        };
    }
}
