package fencepost.kafka;

import java.nio.file.Path;

/** Reads commands to brokers of a compacted topic, and writes what came of them. */
public final class CleanerDriver {
    private CleanerDriver() {}

    /** One argument: a folder for the brokers' files. */
    public static void main(String[] arguments) throws Exception {
        Compacted cluster = new Compacted(Path.of(arguments[0]));
        Lines.serve(
                cluster::handle,
                defect -> {
                    CleanerDefect.plant(defect);
                    cluster.renew();
                });
    }
}
