package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

/** What a release's own tables say: its errors, which fields the versions of a message have, and what a commit is. */
public final class Tables {
    private Tables() {}

    /** The errors' codes by their names. */
    public static void errors(ObjectNode told) {
        for (Errors each : Errors.values()) {
            told.put(each.name(), each.code());
        }
    }

    /** Who listens for a request; by version that there still is, its fields and its response's, each by its path. */
    public static void fields(ApiKeys api, ObjectNode told) {
        ArrayNode listeners = told.putArray("listeners");
        api.messageType.listeners().forEach(each -> listeners.add(each.name()));
        ObjectNode request = told.putObject("request");
        ObjectNode response = told.putObject("response");
        for (int version = api.oldestVersion(); version <= api.latestVersion(); version++) {
            put(api.messageType.requestSchemas()[version], request, version);
            put(api.messageType.responseSchemas()[version], response, version);
        }
    }

    private static void put(Schema schema, ObjectNode told, int version) {
        Set<String> found = new TreeSet<>();
        collect(schema, "", found);
        found.forEach(told.putArray(String.valueOf(version))::add);
    }

    private static void collect(Type type, String path, Set<String> found) {
        if (type instanceof Schema schema) {
            for (BoundField each : schema.fields()) {
                if (each.def.type instanceof TaggedFields tagged) {
                    tagged.fields().values().forEach(one -> collect(one, path, found));
                } else {
                    collect(each.def, path, found);
                }
            }
        } else if (type.arrayElementType().isPresent()) {
            collect(type.arrayElementType().get(), path, found);
        }
    }

    private static void collect(Field field, String path, Set<String> found) {
        found.add(path + field.name);
        collect(field.type, path + field.name + ".", found);
    }

    /** A record of the offsets log as a coordinator reads it, and as it writes one with the same offset and epoch. */
    static void committed(JsonNode command, ObjectNode told) throws IOException {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        CoordinatorRecord read =
                serde.deserialize(
                        ByteBuffer.wrap(command.get("key").binaryValue()),
                        ByteBuffer.wrap(command.get("value").binaryValue()));
        OffsetCommitValue value = (OffsetCommitValue) read.value().message();
        told.put("offset", value.offset()).put("epoch", value.leaderEpoch()).put("metadata", value.metadata());
        CoordinatorRecord written =
                GroupCoordinatorRecordHelpers.newOffsetCommitRecord(
                        "g", "t", 0, OffsetAndMetadata.fromRecord(0, value));
        told.put("version", written.value().version()).put("key", serde.serializeKey(written));
        told.put("value", serde.serializeValue(written));
    }
}
