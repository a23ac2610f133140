package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** One consumer at a time: a command a line, an answer a line, as of {@link Lines}. */
public final class ReaderDriver {
    private ReaderDriver() {}

    private static Reader reader;

    /** One argument, which nobody reads: a consumer has no files. */
    public static void main(String[] arguments) throws Exception {
        Manual.Clock clock = new Manual.Clock();
        Lines.serve(command -> handle(clock, command), Planted::plant);
    }

    private static ObjectNode handle(Manual.Clock clock, JsonNode command)
            throws Exception {
        if (command.get("do").asText().equals("start")) {
            reader = new Reader(clock, command);
        }
        return reader.handle(command);
    }
}
