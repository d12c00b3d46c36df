// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.ShortBuffer;
import java.util.List;

/**
 * The memory of one run at a time, on direct buffers of the caller or on those of the session.
 *
 * <p>It serves one thread at a time: a call while another thread is in one raises
 * IllegalStateException. For runs side by side give each thread a session of its own. Close it
 * before its model.
 */
public final class Session implements AutoCloseable {
    private final Handle handle;
    private final Model model; // which so outlives its sessions
    private final List<TensorInfo> inputs;
    private final List<TensorInfo> outputs;
    private final ByteBuffer[] ownInputs;
    private final ByteBuffer[] ownOutputs;
    private boolean ran; // on these

    /** Made by Model.session(). */
    Session(Model model, long address, Handle made) {
        this.handle = new Handle(this, address, made, true);
        this.model = model;
        this.inputs = model.getInputs();
        this.outputs = model.getOutputs();
        this.ownInputs = new ByteBuffer[inputs.size()];
        this.ownOutputs = new ByteBuffer[outputs.size()];
    }

    public Model getModel() {
        return model;
    }

    /**
     * Runs on direct buffers, without a copy: what remains of each, from its position to its limit,
     * is the tensor, whose size and native byte order it has. Positions stay as they are. Outputs
     * share no memory with any other buffer. IllegalArgumentException says what is not so.
     */
    public void run(ByteBuffer[] in, ByteBuffer[] out) {
        if (in.length != inputs.size() || out.length != outputs.size()) {
            throw new IllegalArgumentException(
                    in.length + " inputs and " + out.length + " outputs are not the model's "
                            + inputs.size() + " and " + outputs.size());
        }
        handle.enter();
        try {
            runAlone(in, out);
        } finally {
            handle.leave();
        }
    }

    /** Runs on the session's own buffers, each of whose inputs was asked for or set before. */
    public void run() {
        handle.enter();
        try {
            for (int i = 0; i < ownInputs.length; i++) {
                if (ownInputs[i] == null) {
                    throw new IllegalStateException("input " + inputs.get(i) + " was never set");
                }
            }
            for (int i = 0; i < ownOutputs.length; i++) {
                own(outputs, ownOutputs, i);
            }
            runAlone(ownInputs, ownOutputs);
            ran = true;
        } finally {
            handle.leave();
        }
    }

    /** The session's own buffer of an input, to be filled before run(). */
    public ByteBuffer getInput(int index) {
        return view(inputs, ownInputs, index);
    }

    public ByteBuffer getInput(String name) {
        return getInput(find(inputs, name));
    }

    /** The session's own buffer of an output, which run() fills. */
    public ByteBuffer getOutput(int index) {
        return view(outputs, ownOutputs, index);
    }

    public ByteBuffer getOutput(String name) {
        return getOutput(find(outputs, name));
    }

    /** Copies values to the session's own buffer of a float32 input. */
    public void set(String input, float[] values) {
        target(input, TensorInfo.Type.FLOAT32, values.length).asFloatBuffer().put(values);
    }

    /** Sets an int8 or uint8 input. */
    public void set(String input, byte[] values) {
        target(input, TensorInfo.Type.INT8, values.length).put(values);
    }

    /** Sets an int16 input. */
    public void set(String input, short[] values) {
        target(input, TensorInfo.Type.INT16, values.length).asShortBuffer().put(values);
    }

    /** Sets an int32 input. */
    public void set(String input, int[] values) {
        target(input, TensorInfo.Type.INT32, values.length).asIntBuffer().put(values);
    }

    /** A copy of the session's own buffer of a float32 output. */
    public float[] getFloats(String output) {
        FloatBuffer from = source(output, TensorInfo.Type.FLOAT32).asFloatBuffer();
        float[] values = new float[from.remaining()];
        from.get(values);
        return values;
    }

    /** Values of an int8 output. */
    public byte[] getBytes(String output) {
        ByteBuffer from = source(output, TensorInfo.Type.INT8);
        byte[] values = new byte[from.remaining()];
        from.get(values);
        return values;
    }

    /** Values of an int16 output. */
    public short[] getShorts(String output) {
        ShortBuffer from = source(output, TensorInfo.Type.INT16).asShortBuffer();
        short[] values = new short[from.remaining()];
        from.get(values);
        return values;
    }

    /** Values of an int32 output. */
    public int[] getInts(String output) {
        IntBuffer from = source(output, TensorInfo.Type.INT32).asIntBuffer();
        int[] values = new int[from.remaining()];
        from.get(values);
        return values;
    }

    /** Ends the session; twice is allowed. IllegalStateException: it runs in another thread. */
    @Override
    public void close() {
        handle.close();
    }

    TensorInfo infoOf(String input) {
        return inputs.get(find(inputs, input));
    }

    private void runAlone(ByteBuffer[] in, ByteBuffer[] out) {
        int count = in.length + out.length;
        ByteBuffer[] buffers = new ByteBuffer[count];
        int[] positions = new int[count];
        int[] sizes = new int[count];
        for (int i = 0; i < count; i++) {
            boolean input = i < in.length;
            TensorInfo info = input ? inputs.get(i) : outputs.get(i - in.length);
            ByteBuffer given = input ? in[i] : out[i - in.length];
            String wrong = null;
            if (given == null) {
                wrong = "null";
            } else if (!given.isDirect()) {
                wrong = "not direct";
            } else if (!input && given.isReadOnly()) {
                wrong = "read-only";
            } else if (info.getType().size > 1 && given.order() != ByteOrder.nativeOrder()) {
                wrong = "not of native byte order";
            } else {
                buffers[i] = given.duplicate(); // its position is nobody else's
                positions[i] = buffers[i].position();
                sizes[i] = buffers[i].remaining();
                if (sizes[i] != info.getSize()) {
                    wrong = sizes[i] + " bytes instead of " + info.getSize();
                }
            }
            if (wrong != null) {
                String which = input ? "input " : "output ";
                throw new IllegalArgumentException("the buffer of " + which + info + " is " + wrong);
            }
        }
        switch (Native.run(this, handle.address, buffers, positions, sizes, in.length)) {
            case 1:
                throw new IllegalArgumentException(
                        "the buffer of an output overlaps that of another tensor");
            case 2:
                throw new IllegalArgumentException("this JVM gives no address of a buffer");
            default:
        }
    }

    private ByteBuffer view(List<TensorInfo> infos, ByteBuffer[] own, int index) {
        handle.enter();
        try {
            return own(infos, own, index).duplicate().order(ByteOrder.nativeOrder());
        } finally {
            handle.leave();
        }
    }

    private static ByteBuffer own(List<TensorInfo> infos, ByteBuffer[] own, int index) {
        if (index < 0 || index >= own.length) {
            throw new IllegalArgumentException(index + " is not below " + own.length);
        }
        if (own[index] == null) {
            own[index] = infos.get(index).newBuffer();
        }
        return own[index];
    }

    /** The buffer of an input that has this type and count of values. */
    private ByteBuffer target(String name, TensorInfo.Type type, int count) {
        int index = find(inputs, name);
        TensorInfo info = checked(inputs.get(index), type);
        if (info.getCount() != count) {
            throw new IllegalArgumentException(count + " values are not those of " + info);
        }
        return getInput(index);
    }

    /** The buffer of an output that has this type, after a run(). */
    private ByteBuffer source(String name, TensorInfo.Type type) {
        int index = find(outputs, name);
        checked(outputs.get(index), type);
        ByteBuffer found = getOutput(index);
        if (!ran) {
            throw new IllegalStateException("the session has not run() yet");
        }
        return found;
    }

    private static TensorInfo checked(TensorInfo info, TensorInfo.Type type) {
        TensorInfo.Type has = info.getType();
        boolean bytes = type == TensorInfo.Type.INT8 && has == TensorInfo.Type.UINT8;
        if (has != type && !bytes) {
            throw new IllegalArgumentException(info + " is not " + type);
        }
        return info;
    }

    private static int find(List<TensorInfo> infos, String name) {
        int found = -1;
        for (int i = 0; i < infos.size(); i++) {
            if (infos.get(i).getName().equals(name)) {
                if (found >= 0) {
                    throw new IllegalArgumentException("two tensors are named '" + name + "'");
                }
                found = i;
            }
        }
        if (found < 0) {
            throw new IllegalArgumentException("none of " + infos + " is named '" + name + "'");
        }
        return found;
    }
}
