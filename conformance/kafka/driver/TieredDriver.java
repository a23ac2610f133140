package fencepost.kafka;

import java.nio.file.Path;

/** Reads commands to brokers with tiered storage, and writes what came of them. */
public final class TieredDriver {
    private TieredDriver() {}

    /** One argument: a folder for the brokers' files, and for the store. */
    public static void main(String[] arguments) throws Exception {
        Ids.install();
        Tiered cluster = new Tiered(Path.of(arguments[0]));
        Lines.serve(
                cluster::handle,
                defect -> {
                    TieringDefect.plant(defect);
                    cluster.renew();
                });
    }
}
