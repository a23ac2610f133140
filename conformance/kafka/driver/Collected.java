package fencepost.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import org.apache.kafka.common.network.TransferableChannel;

/** Takes all that Kafka writes to a channel, a part of a file too, and keeps it. */
public final class Collected implements TransferableChannel {
    private ByteBuffer kept = ByteBuffer.allocate(256);

    /** What was written, from its beginning on; nothing is to be written after that. */
    public ByteBuffer read() {
        return kept.flip();
    }

    private void makeRoom(int size) {
        if (kept.remaining() < size) {
            kept.flip();
            kept = ByteBuffer.allocate(2 * (kept.remaining() + size)).put(kept);
        }
    }

    @Override
    public int write(ByteBuffer from) {
        int size = from.remaining();
        makeRoom(size);
        kept.put(from);
        return size;
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) {
        long size = 0;
        for (int number = offset; number < offset + length; number++) {
            size += write(from[number]);
        }
        return size;
    }

    @Override
    public long write(ByteBuffer[] from) {
        return write(from, 0, from.length);
    }

    @Override
    public long transferFrom(FileChannel file, long position, long count) throws IOException {
        makeRoom((int) count);
        int read = file.read(kept.slice(kept.position(), (int) count), position);
        kept.position(kept.position() + read);
        return read;
    }

    @Override
    public boolean hasPendingWrites() {
        return false;
    }

    @Override
    public boolean isOpen() {
        return true;
    }

    @Override
    public void close() {}
}
