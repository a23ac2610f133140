package fencepost.kafka;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Remote storage as a folder, with one below it for each partition, and one below that for each copy of a segment. While
 * there is a file fails-at-N in it, nothing can be stored, read or deleted at broker N.
 */
public final class RemoteStore implements RemoteStorageManager {
    static final String LOG = "log";

    private Path folder;
    private Path failing;

    @Override
    public void configure(Map<String, ?> configs) {
        folder = Path.of(String.valueOf(configs.get("folder")));
        failing = failing(folder, Integer.parseInt(String.valueOf(configs.get("broker.id"))));
    }

    /** The file by whose being there it fails at a broker. */
    static Path failing(Path folder, int broker) {
        return folder.resolve("fails-at-" + broker);
    }

    /** Whether all parts of a copy are in its folder; what there is of transactions may be nothing. */
    static boolean isWhole(Path copy) {
        return Files.exists(copy.resolve(LOG))
                && Stream.of(IndexType.values())
                        .filter(each -> each != IndexType.TRANSACTION)
                        .allMatch(each -> Files.exists(copy.resolve(each.name())));
    }

    private Path of(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        if (Files.exists(failing)) {
            throw new RemoteStorageException("the store fails");
        }
        if (Thread.currentThread().isInterrupted()) {
            throw new RemoteStorageException("its task was cancelled");
        }
        return folder.resolve(segment.topicIdPartition().topicPartition().toString())
                .resolve(segment.remoteLogSegmentId().id().toString());
    }

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        Worker.before("store");
        Path there = of(segment);
        try {
            Files.createDirectories(there);
            Files.copy(data.logSegment(), there.resolve(LOG));
            Files.copy(data.offsetIndex(), there.resolve(IndexType.OFFSET.name()));
            Files.copy(data.timeIndex(), there.resolve(IndexType.TIMESTAMP.name()));
            Files.copy(data.producerSnapshotIndex(), there.resolve(IndexType.PRODUCER_SNAPSHOT.name()));
            if (data.transactionIndex().isPresent()) {
                Files.copy(data.transactionIndex().get(), there.resolve(IndexType.TRANSACTION.name()));
            }
            ByteBuffer epochs = data.leaderEpochIndex().duplicate();
            byte[] bytes = new byte[epochs.remaining()];
            epochs.get(bytes);
            Files.write(there.resolve(IndexType.LEADER_EPOCH.name()), bytes);
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
        return Optional.empty();
    }

    private InputStream read(RemoteLogSegmentMetadata segment, String part, int first, int end) throws RemoteStorageException {
        Path there = of(segment).resolve(part);
        try {
            if (!Files.exists(there)) {
                throw new RemoteResourceNotFoundException("no " + part + " of " + segment.remoteLogSegmentId());
            }
            byte[] bytes = Files.readAllBytes(there);
            return new ByteArrayInputStream(Arrays.copyOfRange(bytes, Math.min(first, bytes.length), Math.min(end, bytes.length)));
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int first) throws RemoteStorageException {
        return read(segment, LOG, first, Integer.MAX_VALUE);
    }

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int first, int last) throws RemoteStorageException {
        return read(segment, LOG, first, last + 1);
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType index) throws RemoteStorageException {
        return read(segment, index.name(), 0, Integer.MAX_VALUE);
    }

    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Worker.before("store");
        try {
            Utils.delete(of(segment).toFile());
        } catch (IOException failed) {
            throw new RemoteStorageException(failed);
        }
    }

    @Override
    public void close() {}
}
