// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import java.nio.ByteBuffer;

/** Colors as the bytes that a model takes which was compiled with --io-image. */
public final class Pixels {
    /** `color` of the file that --io-image names. */
    public enum Order {
        RGB(3),
        BGR(3),
        /** One byte, (19595 R + 38470 G + 7471 B + 32768) / 65536, as on the PC. */
        GRAY(1);

        /** Bytes of a pixel. */
        public final int channels;

        Order(int channels) {
            this.channels = channels;
        }
    }

    private Pixels() {}

    /** Appends the pixels 0xAARRGGBB to a buffer; alpha is left out. */
    public static void put(int[] colors, Order order, ByteBuffer to) {
        byte[] bytes = new byte[colors.length * order.channels];
        int at = 0;
        for (int color : colors) {
            int red = color >> 16 & 255;
            int green = color >> 8 & 255;
            int blue = color & 255;
            if (order == Order.GRAY) {
                bytes[at++] = (byte) (19595 * red + 38470 * green + 7471 * blue + 32768 >> 16);
            } else {
                bytes[at++] = (byte) (order == Order.RGB ? red : blue);
                bytes[at++] = (byte) green;
                bytes[at++] = (byte) (order == Order.RGB ? blue : red);
            }
        }
        to.put(bytes);
    }
}
