package fencepost.kafka;

import org.apache.kafka.controller.Controllers;

/** Reads commands to a quorum of QuorumControllers, and writes what came of them. */
public final class ControllerDriver {
    private ControllerDriver() {}

    /** One argument, which nobody reads: these controllers have no files. */
    public static void main(String[] arguments) throws Exception {
        Controllers controllers = new Controllers();
        Lines.serve(controllers::handle, Controllers::plant);
    }
}
