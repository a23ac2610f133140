package fencepost.kafka;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** Reads a command a line, and writes an answer a line; whatever Kafka prints goes to standard error. */
public final class Driver {
    private Driver() {}

    /** One argument: a folder for the brokers' files. */
    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Cluster cluster = new Cluster(Path.of(arguments[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line = in.readLine();
        while (line != null) {
            ObjectNode answer;
            try {
                answer = cluster.handle(Cluster.JSON.readTree(line));
            } catch (Throwable failed) {
                StringWriter trace = new StringWriter();
                failed.printStackTrace(new PrintWriter(trace));
                answer = Cluster.JSON.createObjectNode().put("failed", trace.toString());
            }
            out.write(Cluster.JSON.writeValueAsBytes(answer));
            out.write('\n');
            out.flush();
            line = in.readLine();
        }
        System.exit(0);
    }
}
