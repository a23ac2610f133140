package fencepost.kafka;

import java.nio.file.Path;

/** Reads commands to brokers, and writes what came of them. */
public final class Driver {
    private Driver() {}

    /** One argument: a folder for the brokers' files. */
    public static void main(String[] arguments) throws Exception {
        Cluster cluster = new Cluster(Path.of(arguments[0]));
        Lines.serve(cluster::handle, cluster::plant);
    }
}
