package fencepost.kafka;

import org.apache.kafka.controller.ControllerReplay;

/** Replays metadata logs through Kafka's controller and MetadataLoader, and writes which record each rejects. */
public final class ReplayDriver {
    private ReplayDriver() {}

    /** The one argument, a folder for files, is unused. */
    public static void main(String[] arguments) throws Exception {
        Lines.serve(
                ControllerReplay::handle,
                defect -> {
                    throw new IllegalArgumentException("no defect " + defect);
                });
    }
}
