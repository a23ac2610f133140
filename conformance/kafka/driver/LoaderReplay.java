package org.apache.kafka.image.loader;

import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.fault.FaultHandler;

/** Kafka's MetadataLoader, which replays what is committed on every node. */
public final class LoaderReplay {
    private final MetadataLoader loader;

    public LoaderReplay(Time time, FaultHandler faults, Supplier<OptionalLong> highWatermark) {
        loader =
                new MetadataLoader.Builder()
                        .setNodeId(0)
                        .setTime(time)
                        .setFaultHandler(faults)
                        .setHighWaterMarkAccessor(highWatermark)
                        .setSupportedConfigChecker(new DefaultSupportedConfigChecker())
                        .build();
    }

    public RaftClient.Listener<ApiMessageAndVersion> listener() {
        return loader;
    }

    /** Waits until everything that the listener was given is replayed. */
    public void settle() throws Exception {
        loader.waitForAllEventsToBeHandled();
    }

    public void close() throws Exception {
        loader.close();
    }
}
