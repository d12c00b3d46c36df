// SPDX-License-Identifier: Apache-2.0
package dev.neon8;

import android.graphics.Bitmap;
import java.nio.ByteBuffer;

/** From bitmaps of Android to inputs of models that were compiled with --io-image. */
public final class Bitmaps {
    private Bitmaps() {}

    /**
     * Puts a bitmap into a session's own buffer of an input, N H W C of uint8 with N = 1.
     * IllegalArgumentException: the bitmap has not the input's height and width, or the input not
     * the order's channels. Whoever resizes it chooses how; from these pixels on the bytes are
     * those of the PC. A bitmap of the configuration HARDWARE must be copied to another one before.
     */
    public static void put(Session session, String input, Bitmap bitmap, Pixels.Order order) {
        ByteBuffer buffer = session.getInput(input);
        int width = bitmap.getWidth();
        int height = bitmap.getHeight();
        TensorInfo info = session.infoOf(input);
        int[] shape = info.getShape();
        if (info.getType() != TensorInfo.Type.UINT8
                || shape.length != 4
                || shape[0] != 1
                || shape[1] != height
                || shape[2] != width
                || shape[3] != order.channels) {
            throw new IllegalArgumentException(
                    height + " x " + width + " pixels, " + order + ", are not the input " + info);
        }
        int[] row = new int[width];
        for (int y = 0; y < height; y++) {
            bitmap.getPixels(row, 0, width, 0, y, width, 1);
            Pixels.put(row, order, buffer);
        }
    }
}
