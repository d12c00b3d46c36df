// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The functions of neon8_jni.c, which trust their caller. Each takes the object that owns the
 * handle, so that the garbage collector does not take it for forgotten while the call lasts.
 */
final class Native {
    /** Numbers that describe() fills in. */
    static final int NUMBERS = 38;

    static {
        String path = System.getProperty("dev.neon8.library");
        if (path == null) {
            System.loadLibrary("neon8_jni");
        } else {
            System.load(path);
        }
    }

    private Native() {}

    static native byte[] version();

    static native long open(ByteBuffer bytes, int position, int size, long maxBytes);

    static native long reshape(Object owner, long model, int[] shapes);

    static native void closeModel(long model);

    static native byte[] describe(
            Object owner, long model, int which, int index, int[] numbers);

    static native long createSession(Object owner, long model, int threads);

    static native void destroySession(long session);

    static native int run(
            Object owner,
            long session,
            ByteBuffer[] buffers,
            int[] positions,
            int[] sizes,
            int inputs);

    /** Text of the library or of a file, which may be anything. */
    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Called by neon8_jni.c, to raise. */
    @SuppressWarnings("unused")
    private static void fail(int status, byte[] reason, byte[] name, boolean layer) {
        Neon8Exception.Status[] all = Neon8Exception.Status.values();
        throw new Neon8Exception(
                all[status > 0 && status < all.length ? status : 0],
                text(reason),
                name == null ? null : text(name),
                layer);
    }
}
