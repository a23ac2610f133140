package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/** Reads a command a line, and writes an answer a line; whatever Kafka prints goes to standard error. */
final class Lines {
    static final ObjectMapper JSON = new ObjectMapper();

    private Lines() {}

    /** Whoever does what a command says. */
    interface Handler {
        ObjectNode handle(JsonNode command) throws Exception;
    }

    /**
     * Until there is nothing to read any more.
     *
     * @param plants has a change of Kafka's classes, by its name, hold from the next reset on ("plant"); NONE ends it
     */
    static void serve(Handler handler, Consumer<String> plants) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = in.readLine();
        while (line != null) {
            ObjectNode answer;
            try {
                JsonNode command = JSON.readTree(line);
                if (command.get("do").asText().equals("plant")) {
                    plants.accept(command.get("defect").asText());
                    answer = JSON.createObjectNode();
                } else {
                    answer = handler.handle(command);
                }
            } catch (Throwable failed) {
                StringWriter trace = new StringWriter();
                failed.printStackTrace(new PrintWriter(trace));
                answer = JSON.createObjectNode().put("failed", trace.toString());
            }
            out.write(JSON.writeValueAsBytes(answer));
            out.write('\n');
            out.flush();
            line = in.readLine();
        }
        System.exit(0);
    }
}
