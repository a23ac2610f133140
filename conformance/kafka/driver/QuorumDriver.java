package fencepost.kafka;

import java.nio.file.Path;
import org.apache.kafka.raft.Quorum;

/** Reads commands to a quorum of KafkaRaftClients, and writes what came of them. */
public final class QuorumDriver {
    private QuorumDriver() {}

    /** One argument: a folder for the nodes' files. */
    public static void main(String[] arguments) throws Exception {
        Quorum quorum = new Quorum(Path.of(arguments[0]));
        Lines.serve(quorum::handle, Quorum::plant);
    }
}
