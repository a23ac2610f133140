package fencepost.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.network.ChannelState;
import org.apache.kafka.common.network.NetworkReceive;
import org.apache.kafka.common.network.NetworkSend;
import org.apache.kafka.common.network.Selectable;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * The sockets of a client: its requests are bytes, which wait here until somebody answers them, in bytes again.
 *
 * <p>Which versions a broker speaks, and who coordinates a group, is answered at once. A broker is a port of one host.
 */
final class Wire implements Selectable {
    static final String HOST = "127.0.0.1";
    /** The port of the first broker; it is nobody's, as nothing is ever connected to. */
    static final int FIRST_PORT = 10_000;

    /** A request that was sent, and was not answered yet. */
    static final class Asked {
        final String connection;
        final RequestHeader header;
        final AbstractRequest request;
        ByteBuffer answer;

        Asked(String connection, RequestHeader header, AbstractRequest request) {
            this.connection = connection;
            this.header = header;
            this.request = request;
        }
    }

    private final Answers answers;
    private final Map<String, Integer> nodes = new LinkedHashMap<>();
    private final Set<Integer> unreachable = new HashSet<>();
    private final Map<Long, Asked> asked = new TreeMap<>();
    private final Map<String, Deque<Asked>> orders = new HashMap<>();
    private final List<ObjectNode> told = new ArrayList<>();
    private long next = 0;

    private final List<String> connecting = new ArrayList<>();
    private final List<String> breaking = new ArrayList<>();
    private final List<NetworkSend> sent = new ArrayList<>();
    private final List<NetworkReceive> arrived = new ArrayList<>();

    private List<String> connected = List.of();
    private Map<String, ChannelState> disconnected = Map.of();
    private List<NetworkSend> completedSends = List.of();
    private List<NetworkReceive> completedReceives = List.of();

    Wire(Answers answers) {
        this.answers = answers;
    }

    // -- for the driver -------------------------------------------------------------------------------------------

    /** What was sent since this was asked last. */
    List<ObjectNode> take() {
        List<ObjectNode> found = new ArrayList<>(told);
        told.clear();
        return found;
    }

    /** Whether the client has to be polled before it has noticed all that is known here. */
    boolean isBusy() {
        return !connecting.isEmpty() || !breaking.isEmpty() || !sent.isEmpty() || !arrived.isEmpty();
    }

    /** An answer arrives; none does where the connection on which it was asked for is gone. */
    boolean arrive(long id, JsonNode answer) {
        Asked to = asked.remove(id);
        if (to == null) {
            return false;
        }
        to.answer = answers.answer(to.header, to.request, answer);
        receive(to.connection);
        return true;
    }

    /** The numbers of the requests that wait for an answer. */
    Collection<Long> waiting() {
        return asked.keySet();
    }

    /** All connections to a broker break, and no new one is made until it is reached again. */
    void lose(int node, boolean forGood) {
        if (forGood) {
            unreachable.add(node);
        }
        for (Map.Entry<String, Integer> each : nodes.entrySet()) {
            if (each.getValue() == node && !breaking.contains(each.getKey())) {
                breaking.add(each.getKey());
            }
        }
    }

    void reach(int node) {
        unreachable.remove(node);
    }

    /** On a connection answers come in the order of what was asked. */
    private void receive(String connection) {
        Deque<Asked> inOrder = orders.get(connection);
        while (inOrder != null && !inOrder.isEmpty() && inOrder.peek().answer != null) {
            arrived.add(new NetworkReceive(connection, inOrder.poll().answer));
        }
    }

    private void forget(String connection) {
        nodes.remove(connection);
        orders.remove(connection);
        connecting.remove(connection);
        asked.values().removeIf(each -> each.connection.equals(connection));
        arrived.removeIf(each -> each.source().equals(connection));
        sent.removeIf(each -> each.destinationId().equals(connection));
    }

    // -- for the client -------------------------------------------------------------------------------------------

    @Override
    public void connect(String id, InetSocketAddress address, int sendBuffer, int receiveBuffer) {
        int node = address.getPort() - FIRST_PORT;
        nodes.put(id, node);
        (unreachable.contains(node) ? breaking : connecting).add(id);
    }

    @Override
    public void send(NetworkSend send) {
        try {
            Collected bytes = new Collected();
            while (!send.completed()) {
                send.writeTo(bytes);
            }
            ByteBuffer buffer = bytes.read();
            buffer.getInt();
            RequestHeader header = RequestHeader.parse(buffer);
            AbstractRequest request =
                    AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(), new ByteBufferAccessor(buffer)).request;
            Asked asks = new Asked(send.destinationId(), header, request);
            sent.add(send);
            orders.computeIfAbsent(asks.connection, each -> new ArrayDeque<>()).add(asks);
            if (header.apiKey() == ApiKeys.API_VERSIONS || header.apiKey() == ApiKeys.FIND_COORDINATOR) {
                asks.answer = answers.atOnce(header, request);
                receive(asks.connection);
                return;
            }
            long id = next++;
            asked.put(id, asks);
            told.add(answers.told(header, request).put("id", id).put("to", nodes.get(asks.connection)).put("connection", asks.connection));
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    @Override
    public void poll(long timeout) {
        connected = new ArrayList<>(connecting);
        connecting.clear();
        disconnected = new LinkedHashMap<>();
        for (String id : breaking) {
            if (nodes.containsKey(id)) {
                forget(id);
                disconnected.put(id, ChannelState.LOCAL_CLOSE);
            }
        }
        breaking.clear();
        completedSends = new ArrayList<>(sent);
        sent.clear();
        // As a selector does: of each connection one at a time.
        Map<String, NetworkReceive> first = new LinkedHashMap<>();
        arrived.forEach(each -> first.putIfAbsent(each.source(), each));
        completedReceives = new ArrayList<>(first.values());
        arrived.removeAll(completedReceives);
    }

    @Override
    public void close(String id) {
        forget(id);
        breaking.remove(id);
    }

    @Override
    public void close() {
        List.copyOf(nodes.keySet()).forEach(this::close);
    }

    @Override
    public List<NetworkSend> completedSends() {
        return completedSends;
    }

    @Override
    public Collection<NetworkReceive> completedReceives() {
        return completedReceives;
    }

    @Override
    public Map<String, ChannelState> disconnected() {
        return disconnected;
    }

    @Override
    public List<String> connected() {
        return connected;
    }

    @Override
    public boolean isChannelReady(String id) {
        return nodes.containsKey(id) && !connecting.contains(id);
    }

    @Override
    public void wakeup() {}

    @Override
    public void mute(String id) {}

    @Override
    public void unmute(String id) {}

    @Override
    public void muteAll() {}

    @Override
    public void unmuteAll() {}
}
