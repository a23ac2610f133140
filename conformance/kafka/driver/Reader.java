package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.Metadata.LeaderAndEpoch;
import org.apache.kafka.clients.MetadataRecoveryStrategy;
import org.apache.kafka.clients.MetadataUpdater;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.internals.AbstractCoordinator;
import org.apache.kafka.clients.consumer.internals.AutoOffsetResetStrategy;
import org.apache.kafka.clients.consumer.internals.ConsumerMetadata;
import org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient;
import org.apache.kafka.clients.consumer.internals.Fetcher;
import org.apache.kafka.clients.consumer.internals.SubscriptionState;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * A KafkaConsumer of the classic protocol with one partition, assigned by hand: its client, its metadata, its timers
 * and its fetcher are Kafka's own. Ours are the sockets, the clock, and the choice of the broker that is asked first.
 */
final class Reader {
    private static final TopicPartition PARTITION = new TopicPartition(Answers.TOPIC, 0);
    private static final int AT_MOST = 64;

    private final Manual.Clock clock;
    private final Wire wire;
    private final SubscriptionState subscriptions;
    private final ConsumerMetadata metadata;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ConsumerNetworkClient client;
    private final Fetcher<byte[], byte[]> fetcher;
    private final AbstractCoordinator coordinator;
    private final KafkaClient network;
    private final AtomicReference<RuntimeException> cached;
    private ObjectNode told;
    private long commits = 0;

    @SuppressWarnings("unchecked")
    Reader(Manual.Clock clock, JsonNode command) throws ReflectiveOperationException {
        this.clock = clock;
        // Kafka's Cluster shuffles its brokers, and a client begins with any of them.
        Field shuffles = Collections.class.getDeclaredField("r");
        shuffles.setAccessible(true);
        shuffles.set(null, new Random(command.get("seed").asLong()));
        int brokers = command.get("brokers").asInt();
        wire = new Wire(new Answers(brokers, command.get("coordinator").asInt()));
        long timeout = command.get("timeout").asLong();
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, Wire.HOST + ":" + Wire.FIRST_PORT);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, "g");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, command.get("policy").asText());
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, command.get("bytes").asInt());
        settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, 0);
        settings.put(ConsumerConfig.REQUEST_TIMEOUT_MS_CONFIG, (int) timeout);
        settings.put(ConsumerConfig.RETRY_BACKOFF_MS_CONFIG, 1);
        settings.put(ConsumerConfig.RETRY_BACKOFF_MAX_MS_CONFIG, 1);
        settings.put(ConsumerConfig.METADATA_MAX_AGE_CONFIG, command.get("age").asLong());
        ConsumerConfig config =
                new ConsumerConfig(
                        ConsumerConfig.appendDeserializerToConfig(
                                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        LogContext log = new LogContext();
        subscriptions =
                Planted.subscriptions(log, AutoOffsetResetStrategy.fromString(command.get("policy").asText()));
        metadata = Planted.metadata(config, subscriptions, log);
        List<InetSocketAddress> first = new ArrayList<>();
        command.get("first").forEach(each -> first.add(new InetSocketAddress(Wire.HOST, Wire.FIRST_PORT + each.asInt())));
        metadata.bootstrap(first);
        NetworkClient sockets =
                client(
                        wire,
                        metadata,
                        "reader",
                        100,
                        1L,
                        1L,
                        -1,
                        -1,
                        (int) timeout,
                        // A connection comes about at once, or not at all.
                        1L << 30,
                        1L << 30,
                        clock,
                        true,
                        new ApiVersions(),
                        null,
                        log,
                        MetadataRecoveryStrategy.NONE,
                        false);
        network = sockets;
        set(sockets, "randOffset", new Random(command.get("seed").asLong()));
        Constructor<?> made =
                KafkaConsumer.class.getDeclaredConstructor(
                        LogContext.class,
                        Time.class,
                        ConsumerConfig.class,
                        Deserializer.class,
                        Deserializer.class,
                        KafkaClient.class,
                        SubscriptionState.class,
                        ConsumerMetadata.class,
                        List.class);
        made.setAccessible(true);
        consumer =
                (KafkaConsumer<byte[], byte[]>)
                        made.newInstance(
                                log,
                                clock,
                                config,
                                new ByteArrayDeserializer(),
                                new ByteArrayDeserializer(),
                                sockets,
                                subscriptions,
                                metadata,
                                List.of());
        Object delegate = get(consumer, "delegate");
        Object offsets = get(delegate, "offsetFetcher");
        // The constructor that takes a client lets the consumer look elsewhere for what brokers can do.
        set(sockets, "apiVersions", get(offsets, "apiVersions"));
        cached =
                (AtomicReference<RuntimeException>)
                        get(get(get(offsets, "offsetFetcherUtils"), "positionsValidator"), "cachedValidatePositionsException");
        client = (ConsumerNetworkClient) get(delegate, "client");
        fetcher = (Fetcher<byte[], byte[]>) get(delegate, "fetcher");
        coordinator = (AbstractCoordinator) get(delegate, "coordinator");
        consumer.assign(List.of(PARTITION));
    }

    /** Kafka 4.4 has one argument more than 4.3: the last one. */
    private static NetworkClient client(Object... arguments) throws ReflectiveOperationException {
        for (Constructor<?> each : NetworkClient.class.getConstructors()) {
            List<Class<?>> types = List.of(each.getParameterTypes());
            if (types.contains(Metadata.class) && types.contains(Sensor.class) && !types.contains(MetadataUpdater.class)) {
                return (NetworkClient) each.newInstance(Arrays.copyOf(arguments, types.size()));
            }
        }
        throw new NoSuchMethodException("a NetworkClient over a Selectable, with a Sensor");
    }

    // -- what is asked of it ----------------------------------------------------------------------------------------

    ObjectNode handle(JsonNode command) throws ReflectiveOperationException {
        told = Lines.JSON.createObjectNode();
        try {
            act(command);
        } catch (LogTruncationException truncated) {
            fail("LOG_TRUNCATION", Optional.ofNullable(truncated.divergentOffsets().get(PARTITION)));
        } catch (KafkaException failed) {
            fail(failed.getClass().getSimpleName(), Optional.empty());
        }
        settle();
        ArrayNode sent = told.putArray("sent");
        wire.take().forEach(sent::add);
        look(told.putObject("seen"));
        return told;
    }

    private void act(JsonNode command) {
        switch (command.get("do").asText()) {
            case "start":
                break;
            case "poll":
                give(consumer.poll(Duration.ZERO).records(PARTITION));
                break;
            case "arrive":
                // As in a poll that waits for it.
                if (wire.arrive(command.get("id").asLong(), command)) {
                    settle();
                    if (command.get("poll").asBoolean()) {
                        give(consumer.poll(Duration.ZERO).records(PARTITION));
                    } else {
                        give(fetcher.collectFetch().records().getOrDefault(PARTITION, List.of()));
                    }
                }
                break;
            case "lose":
                wire.lose(command.get("node").asInt(), command.get("down").asBoolean());
                break;
            case "reach":
                wire.reach(command.get("node").asInt());
                break;
            case "time":
                clock.move(command.get("ms").asLong());
                break;
            case "seek":
                long offset = command.get("offset").asLong();
                if (command.has("epoch")) {
                    int epoch = command.get("epoch").asInt();
                    Optional<Integer> named = epoch < 0 ? Optional.empty() : Optional.of(epoch);
                    consumer.seek(PARTITION, new OffsetAndMetadata(offset, named, ""));
                } else {
                    consumer.seek(PARTITION, offset);
                }
                break;
            case "beginning":
                consumer.seekToBeginning(List.of(PARTITION));
                break;
            case "end":
                consumer.seekToEnd(List.of(PARTITION));
                break;
            case "commit":
                long number = commits++;
                consumer.commitAsync(
                        (offsets, failed) ->
                                told.withArray("commits")
                                        .addObject()
                                        .put("number", number)
                                        .put("error", failed == null ? "NONE" : failed.getClass().getSimpleName()));
                break;
            default:
                throw new IllegalArgumentException("nobody knows how to " + command.get("do").asText());
        }
    }

    /** Let the client's connections come about, and what has arrived be taken; no time passes. */
    private void settle() {
        for (int times = 0; times < AT_MOST; times++) {
            client.pollNoWakeup();
            if (!wire.isBusy()) {
                return;
            }
        }
        throw new IllegalStateException("the client goes on and on");
    }

    private void give(List<ConsumerRecord<byte[], byte[]>> records) {
        ArrayNode given = told.putArray("records");
        for (ConsumerRecord<byte[], byte[]> each : records) {
            given.addArray()
                    .add(each.offset())
                    .add(each.leaderEpoch().orElse(-1))
                    .add(new String(each.value(), StandardCharsets.UTF_8));
        }
    }

    private void fail(String name, Optional<OffsetAndMetadata> divergent) {
        ObjectNode error = told.putObject("raised").put("name", name);
        divergent.ifPresent(at -> error.put("offset", at.offset()).put("epoch", at.leaderEpoch().orElse(-1)));
    }

    // -- what is seen -----------------------------------------------------------------------------------------------

    @SuppressWarnings("unchecked")
    private void look(ObjectNode seen) throws ReflectiveOperationException {
        put(seen.putObject("metadata"), metadata.currentLeader(PARTITION));
        seen.put("knows", metadata.topicIds().containsKey(Answers.TOPIC));
        SubscriptionState.FetchPosition position = subscriptions.positionOrNull(PARTITION);
        if (position != null) {
            ObjectNode at = seen.putObject("position").put("offset", position.offset);
            at.put("last", ((Optional<Integer>) get(position, "offsetEpoch")).orElse(-1));
            put(at, (LeaderAndEpoch) get(position, "currentLeader"));
        }
        seen.put("validates", subscriptions.awaitingValidation(PARTITION));
        boolean resets = subscriptions.isOffsetResetNeeded(PARTITION);
        seen.put("asks", resets ? subscriptions.resetStrategy(PARTITION).name() : "nothing");
        seen.put("begins", subscriptions.initializingPartitions().contains(PARTITION));
        if (cached.get() instanceof LogTruncationException truncated) {
            OffsetAndMetadata at = truncated.divergentOffsets().get(PARTITION);
            ObjectNode found = seen.putObject("truncated").put("offset", at == null ? -1 : at.offset());
            found.put("epoch", at == null ? -1 : at.leaderEpoch().orElse(-1));
        }
        seen.put("buffered", fetcher.hasAvailableFetches());
        seen.put("coordinated", !coordinator.coordinatorUnknown());
        ArrayNode waits = seen.putArray("waits");
        wire.waiting().forEach(waits::add);
    }

    private static void put(ObjectNode into, LeaderAndEpoch leads) {
        into.put("leader", leads.leader.map(Node::id).orElse(-1)).put("epoch", leads.epoch.orElse(-1));
    }

    // -- what nobody may see ------------------------------------------------------------------------------------------

    private static Field field(Object of, String name) throws NoSuchFieldException {
        for (Class<?> each = of.getClass(); each != null; each = each.getSuperclass()) {
            try {
                Field found = each.getDeclaredField(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchFieldException there) {
                continue;
            }
        }
        throw new NoSuchFieldException(name);
    }

    static Object get(Object of, String name) throws ReflectiveOperationException {
        return field(of, name).get(of);
    }

    private static void set(Object of, String name, Object value) throws ReflectiveOperationException {
        field(of, name).set(of, value);
    }
}
