// SPDX-License-Identifier: Apache-2.0
package android.graphics;

/** What Bitmaps.java needs of Android's class to be compiled without an SDK; no jar has it. */
public abstract class Bitmap {
    public abstract int getWidth();

    public abstract int getHeight();

    public abstract void getPixels(
            int[] pixels, int offset, int stride, int x, int y, int width, int height);
}
