// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** An input or output of a model. Of int8 and int16, real = scale * (value - zero point). */
public final class TensorInfo {
    /** How a value lies in memory. */
    public enum Type {
        INT8(1),
        FLOAT32(4),
        INT32(4),
        UINT8(1),
        INT16(2);

        /** Bytes of a value. */
        public final int size;

        Type(int size) {
            this.size = size;
        }
    }

    private final String name;
    private final Type type;
    private final int zeroPoint;
    private final int lo;
    private final int hi;
    private final float scale;
    private final int[] shape;
    private final int[] numbers;

    /** numbers: as Native.describe() gives them. */
    TensorInfo(byte[] name, int[] numbers) {
        if (numbers[0] < 1 || numbers[0] > Type.values().length) {
            String reason = "has a type that these classes do not know: the library is newer";
            String text = Native.text(name);
            throw new Neon8Exception(Neon8Exception.Status.UNSUPPORTED, reason, text, false);
        }
        this.name = Native.text(name);
        this.type = Type.values()[numbers[0] - 1];
        this.zeroPoint = numbers[2];
        this.lo = numbers[3];
        this.hi = numbers[4];
        this.scale = Float.intBitsToFloat(numbers[5]);
        this.shape = Arrays.copyOfRange(numbers, 6, 6 + numbers[1]);
        this.numbers = numbers;
    }

    public String getName() {
        return name;
    }

    public Type getType() {
        return type;
    }

    /** In the order of the ONNX network, or as the file was compiled: N H W C of an image. */
    public int[] getShape() {
        return shape.clone();
    }

    public float getScale() {
        return scale;
    }

    public int getZeroPoint() {
        return zeroPoint;
    }

    /** The smallest value that an int8 or int16 tensor has. */
    public int getLo() {
        return lo;
    }

    /** The largest one. */
    public int getHi() {
        return hi;
    }

    /** What a dimension of an input may be: the least, the largest and the step between. */
    public int[] getBounds(int axis) {
        if (axis < 0 || axis >= shape.length) {
            throw new IllegalArgumentException(this + " has no dimension " + axis);
        }
        return new int[] {numbers[14 + axis], numbers[22 + axis], numbers[30 + axis]};
    }

    /** Values in it. */
    public long getCount() {
        long count = 1;
        for (int size : shape) {
            count *= size;
        }
        return count;
    }

    /** Bytes of a buffer for it. */
    public long getSize() {
        return getCount() * type.size;
    }

    /** A new direct buffer for it, of native byte order and filled with zeros. */
    public ByteBuffer newBuffer() {
        if (getSize() > Integer.MAX_VALUE) {
            throw new IllegalStateException(this + " is larger than a ByteBuffer");
        }
        return ByteBuffer.allocateDirect((int) getSize()).order(ByteOrder.nativeOrder());
    }

    @Override
    public String toString() {
        return "'" + name + "' " + type + Arrays.toString(shape);
    }
}
