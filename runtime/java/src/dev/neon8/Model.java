// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * An opened .n8 file: immutable, and free to be shared by threads.
 *
 * <p>Close it after its sessions and other shapes. One that is forgotten instead is closed when
 * another model or session is made after the garbage collector has found it, with a warning in the
 * log "dev.neon8". No argument and no result is ever null.
 */
public final class Model implements AutoCloseable {
    private final Handle handle;
    private final Model origin; // which so outlives this one
    private final List<TensorInfo> inputs;
    private final List<TensorInfo> outputs;

    private Model(long address, Model origin) {
        this.handle = new Handle(this, address, origin == null ? null : origin.handle, false);
        this.origin = origin;
        try {
            this.inputs = describe(0);
            this.outputs = describe(1);
        } catch (RuntimeException | Error error) {
            handle.close();
            throw error;
        }
    }

    /** The model in `bytes`, of which nothing is needed afterwards. Neon8Exception. */
    public static Model open(byte[] bytes) {
        ByteBuffer copy = ByteBuffer.allocateDirect(bytes.length);
        copy.put(bytes).flip();
        return open(copy);
    }

    /**
     * The model in a file. IOException: it cannot be read; Neon8Exception: as the other ones.
     * What is read is a copy, so nothing happens if the file changes.
     */
    public static Model open(File file) throws IOException {
        try (RandomAccessFile opened = new RandomAccessFile(file, "r")) {
            FileChannel channel = opened.getChannel();
            if (channel.size() > Integer.MAX_VALUE) {
                throw new IOException(file + ": is larger than a ByteBuffer");
            }
            ByteBuffer content = ByteBuffer.allocateDirect((int) channel.size());
            while (content.hasRemaining()) {
                if (channel.read(content) < 0) {
                    throw new EOFException(file + ": became shorter while it was read");
                }
            }
            content.flip();
            return open(content);
        }
    }

    /** As the other one, within 1 GiB. */
    public static Model open(ByteBuffer bytes) {
        return open(bytes, 1L << 30);
    }

    /**
     * The model in what remains of a direct buffer, such as a mapped asset; nobody may change it
     * meanwhile. maxBytes: of the model and one session together. Neon8Exception: the bytes are
     * refused, and it says which layer or tensor is why.
     */
    public static Model open(ByteBuffer bytes, long maxBytes) {
        if (!bytes.isDirect()) {
            throw new IllegalArgumentException("the buffer of a model is not direct");
        }
        if (maxBytes < 1) {
            throw new IllegalArgumentException("maxBytes " + maxBytes + " is not positive");
        }
        Handle.reap();
        ByteBuffer kept = bytes.duplicate(); // its position is nobody else's
        return new Model(Native.open(kept, kept.position(), kept.remaining(), maxBytes), null);
    }

    /** Version of the C library. */
    public static String getLibraryVersion() {
        return Native.text(Native.version());
    }

    /**
     * The model at other shapes, one for each input, within TensorInfo.getBounds(). It shares the
     * weights of this one, is closed before it, and gives the bytes of a model that was compiled
     * for these shapes. Neon8Exception: a dimension may not be so, or a layer cannot run.
     */
    public Model at(int[]... shapes) {
        if (shapes.length != inputs.size()) {
            throw new IllegalArgumentException(
                    shapes.length + " shapes for " + inputs.size() + " inputs");
        }
        int[] rows = new int[8 * shapes.length];
        Arrays.fill(rows, 1);
        for (int i = 0; i < shapes.length; i++) {
            int rank = inputs.get(i).getShape().length;
            if (shapes[i] == null || shapes[i].length != rank) {
                String text = " dimensions are expected of input " + inputs.get(i);
                throw new IllegalArgumentException(rank + text);
            }
            System.arraycopy(shapes[i], 0, rows, 8 * i, rank);
        }
        Handle.reap();
        handle.enter();
        long made = 0;
        try {
            made = Native.reshape(this, handle.address, rows);
        } finally {
            if (made == 0) {
                handle.leave();
            }
        }
        return new Model(made, this);
    }

    /** A session that runs on the thread that calls it. */
    public Session session() {
        return session(1);
    }

    /** A session with threads of its own, 1 to 64; its results do not depend on how many. */
    public Session session(int threads) {
        if (threads < 1 || threads > 64) {
            throw new IllegalArgumentException(threads + " threads are not 1 to 64");
        }
        Handle.reap();
        handle.enter();
        long made = 0;
        try {
            made = Native.createSession(this, handle.address, threads);
        } finally {
            if (made == 0) {
                handle.leave();
            }
        }
        return new Session(this, made, handle);
    }

    public List<TensorInfo> getInputs() {
        return inputs;
    }

    public List<TensorInfo> getOutputs() {
        return outputs;
    }

    /**
     * Ends the model; twice is allowed. IllegalStateException: a session or another shape of it is
     * open, and the model stays so.
     */
    @Override
    public void close() {
        handle.close();
    }

    private List<TensorInfo> describe(int which) {
        List<TensorInfo> found = new ArrayList<>();
        while (true) {
            int[] numbers = new int[Native.NUMBERS];
            byte[] name = Native.describe(this, handle.address, which, found.size(), numbers);
            if (name == null) {
                return Collections.unmodifiableList(found);
            }
            found.add(new TensorInfo(name, numbers));
        }
    }
}
