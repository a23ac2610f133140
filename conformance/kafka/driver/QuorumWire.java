package org.apache.kafka.raft;

import fencepost.kafka.Collected;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.FetchSnapshotResponseData;
import org.apache.kafka.common.message.UpdateRaftVoterResponseData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.network.Send;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.BeginQuorumEpochResponse;
import org.apache.kafka.common.requests.EndQuorumEpochResponse;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.FetchSnapshotResponse;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.requests.UpdateRaftVoterResponse;
import org.apache.kafka.common.requests.VoteResponse;

/** Requests and responses as the bytes that a socket would carry: what is read from files is read as it is sent. */
final class QuorumWire {
    private QuorumWire() {}

    /** A request as it leaves. */
    record Request(ApiKeys api, short version, ByteBuffer bytes) {
        static Request of(ApiMessage data) {
            AbstractRequest.Builder<? extends AbstractRequest> builder = KafkaNetworkChannel.buildRequest(data);
            AbstractRequest built = builder.build(builder.latestAllowedVersion());
            return new Request(built.apiKey(), built.version(), built.serialize().buffer());
        }

        AbstractRequest read() {
            return AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(bytes.duplicate())).request;
        }

        ApiMessage parsed() {
            return read().data();
        }
    }

    /** A response as it leaves, behind its header. */
    record Response(ApiKeys api, short version, ByteBuffer bytes) {
        /** As ControllerApis does: what cannot be written is answered with an error. */
        static Response of(Request request, ApiMessage data) throws IOException {
            try {
                return written(request, response(data));
            } catch (RuntimeException unwritten) {
                return written(request, request.read().getErrorResponse(unwritten));
            }
        }

        private static Response written(Request request, AbstractResponse response) throws IOException {
            ResponseHeader header = new ResponseHeader(0, request.api.responseHeaderVersion(request.version));
            Send send = response.toSend(header, request.version);
            Collected all = new Collected();
            while (!send.completed()) {
                send.writeTo(all);
            }
            ByteBuffer bytes = all.read();
            bytes.getInt();
            ResponseHeader.parse(bytes, request.api.responseHeaderVersion(request.version));
            return new Response(request.api, request.version, bytes.slice());
        }

        ApiMessage parsed() {
            return AbstractResponse.parseResponse(api, new ByteBufferAccessor(bytes.duplicate()), version).data();
        }
    }

    private static AbstractResponse response(ApiMessage data) {
        if (data instanceof FetchResponseData fetch) {
            return FetchResponse.of(fetch);
        } else if (data instanceof FetchSnapshotResponseData snapshot) {
            return new FetchSnapshotResponse(snapshot);
        } else if (data instanceof VoteResponseData vote) {
            return new VoteResponse(vote);
        } else if (data instanceof BeginQuorumEpochResponseData begin) {
            return new BeginQuorumEpochResponse(begin);
        } else if (data instanceof EndQuorumEpochResponseData end) {
            return new EndQuorumEpochResponse(end);
        } else if (data instanceof UpdateRaftVoterResponseData update) {
            return new UpdateRaftVoterResponse(update);
        }
        throw new IllegalArgumentException("nobody here sends " + data.getClass());
    }
}
