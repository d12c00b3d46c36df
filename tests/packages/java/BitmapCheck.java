// SPDX-License-Identifier: Apache-2.0

import android.graphics.Bitmap;
import dev.neon8.Bitmaps;
import dev.neon8.Model;
import dev.neon8.Pixels;
import dev.neon8.Session;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;

/** BitmapCheck FOLDER: runs photo.n8 on the colors of a bitmap; its output goes to bitmap.out. */
public final class BitmapCheck {
    private BitmapCheck() {}

    private static final class Colors extends Bitmap {
        private final int[] colors;

        Colors(int[] colors) {
            this.colors = colors;
        }

        @Override
        public int getWidth() {
            return 7;
        }

        @Override
        public int getHeight() {
            return colors.length / 7;
        }

        @Override
        public void getPixels(int[] to, int offset, int stride, int x, int y, int w, int h) {
            for (int row = 0; row < h; row++) {
                System.arraycopy(colors, (y + row) * 7 + x, to, offset + row * stride, w);
            }
        }
    }

    public static void main(String[] words) throws IOException {
        File folder = new File(words[0]);
        byte[] bytes = Files.readAllBytes(new File(folder, "colors.in").toPath());
        int[] colors = new int[63];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(colors);
        try (Model model = Model.open(new File(folder, "photo.n8"));
                Session session = model.session()) {
            Bitmaps.put(session, "x", new Colors(colors), Pixels.Order.GRAY);
            session.run();
            Files.write(new File(folder, "bitmap.out").toPath(), session.getBytes("y"));
            refuse(session, new Colors(colors), Pixels.Order.RGB);
            refuse(session, new Colors(new int[56]), Pixels.Order.GRAY);
        }
    }

    private static void refuse(Session session, Bitmap bitmap, Pixels.Order order) {
        try {
            Bitmaps.put(session, "x", bitmap, order);
        } catch (IllegalArgumentException error) {
            if (error.getMessage().endsWith("are not the input 'x' UINT8[1, 9, 7, 1]")) {
                return;
            }
        }
        throw new AssertionError("not refused");
    }
}
