// SPDX-License-Identifier: Apache-2.0

import dev.neon8.Model;
import dev.neon8.Neon8Exception;
import dev.neon8.Pixels;
import dev.neon8.Session;
import dev.neon8.TensorInfo;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;

/**
 * The classes dev.neon8 on a JVM: Check FOLDER. The models of the folder run on its
 * inputs, and what they give is written beside them; a check that fails ends the program.
 */
public final class Check {
    private interface Action {
        void run() throws Exception;
    }

    private static final ByteOrder OTHER_ORDER =
            ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN
                    ? ByteOrder.LITTLE_ENDIAN
                    : ByteOrder.BIG_ENDIAN;

    private static final Logger LOG = Logger.getLogger("dev.neon8"); // kept, or it is collected

    private static File folder;
    private static int checks;

    private Check() {}

    public static void main(String[] words) throws Exception {
        folder = new File(words[0]);
        golden();
        arrays();
        pixels();
        open();
        misuse();
        hostile();
        sideBySide();
        together();
        lost();
        System.out.println(checks + " checks, version " + Model.getLibraryVersion());
    }

    private static void golden() throws IOException {
        for (String name : new String[] {"small", "wide", "factors", "indexed", "photo"}) {
            ByteBuffer input = direct(read(name + ".in"));
            try (Model model = Model.open(read(name + ".n8"))) {
                for (int threads = 1; threads <= 2; threads++) {
                    try (Session session = model.session(threads)) {
                        ByteBuffer[] out = outputs(model);
                        session.run(new ByteBuffer[] {input}, out);
                        session.getInput(0).put(input.duplicate());
                        session.run();
                        for (int i = 0; i < out.length; i++) {
                            check(out[i].equals(session.getOutput(i)), name + " " + i);
                        }
                        write(name, model, out);
                    }
                }
                StringBuilder text = new StringBuilder();
                for (TensorInfo info : model.getInputs()) {
                    text.append(line(info));
                }
                for (TensorInfo info : model.getOutputs()) {
                    text.append(line(info));
                }
                Files.write(new File(folder, name + ".txt").toPath(), text.toString().getBytes("UTF-8"));
            }
        }
    }

    private static String line(TensorInfo info) {
        return String.join(
                        " ",
                        info.getName(),
                        info.getType().toString(),
                        Arrays.toString(info.getShape()).replace(" ", ""),
                        Double.toString(info.getScale()),
                        info.getZeroPoint() + " " + info.getLo() + " " + info.getHi(),
                        Long.toString(info.getSize()))
                + "\n";
    }

    private static void arrays() throws IOException {
        float[] image = new float[read("small.in").length / 4];
        direct(read("small.in")).asFloatBuffer().get(image);
        try (Model model = Model.open(new File(folder, "small.n8"));
                Session session = model.session()) {
            session.set("image", image);
            session.run();
            ByteBuffer sums = session.getOutput("sum");
            float[] values = session.getFloats("sum");
            for (float value : values) {
                check(value == sums.getFloat(), "an array has the values of the buffer");
            }
            check(!sums.hasRemaining(), "all of them");
            check(session.getFloats("p").length == 20, "the other output");
            check(session.getModel() == model, "a session knows its model");
            raises(IllegalArgumentException.class, "is not INT8", () ->
                    session.set("image", new byte[image.length]));
            raises(IllegalArgumentException.class, "is not INT32", () ->
                    session.set("image", new int[image.length]));
            raises(IllegalArgumentException.class, "is not INT16", () -> session.getShorts("p"));
            raises(IllegalArgumentException.class, "is not INT8", () -> session.getBytes("p"));
            raises(IllegalArgumentException.class, "3 values are not those of", () ->
                    session.set("image", new float[3]));
            raises(IllegalArgumentException.class, "is named 'nothing'", () ->
                    session.set("nothing", image));
        }
        try (Model model = Model.open(read("indexed.n8")); Session session = model.session()) {
            raises(IllegalStateException.class, "input 'image' FLOAT32[2, 3, 9, 7] was never set",
                    session::run);
            raises(IllegalStateException.class, "not run() yet", () -> session.getInts("best"));
            session.set("image", image);
            session.run();
            check(session.getInts("best").length == 6, "integers");
            raises(IllegalArgumentException.class, "is not FLOAT32", () ->
                    session.getFloats("best"));
        }
    }

    /** colors.in has colors as a Bitmap gives them; the model is for gray. */
    private static void pixels() throws IOException {
        ByteBuffer from = ByteBuffer.wrap(read("colors.in")).order(ByteOrder.LITTLE_ENDIAN);
        int[] colors = new int[from.remaining() / 4];
        from.asIntBuffer().get(colors);
        for (Pixels.Order order : Pixels.Order.values()) {
            byte[] wanted = read("colors." + order);
            ByteBuffer made = ByteBuffer.allocateDirect(colors.length * order.channels);
            Pixels.put(colors, order, made);
            made.flip();
            check(made.equals(ByteBuffer.wrap(wanted)), order + " as on the PC");
        }
    }

    private static void open() throws IOException {
        try (Model model = Model.open(read("open.n8"))) {
            TensorInfo image = model.getInputs().get(0);
            check(Arrays.equals(image.getBounds(2), new int[] {6, 40, 2}), "bounds");
            check(Arrays.equals(image.getBounds(1), new int[] {3, 3, 1}), "the same always");
            raises(IllegalArgumentException.class, "no dimension 4", () -> image.getBounds(4));
            for (File file : folder.listFiles()) {
                String name = file.getName().replace(".in", "");
                if (!file.getName().matches("open-.*\\.in")) {
                    continue;
                }
                int[] shape = {0, 3, 0, 0};
                String[] sizes = name.substring(5).split("x");
                shape[0] = Integer.parseInt(sizes[0]);
                shape[2] = Integer.parseInt(sizes[1]);
                shape[3] = Integer.parseInt(sizes[2]);
                try (Model at = model.at(shape); Session session = at.session()) {
                    check(Arrays.equals(at.getInputs().get(0).getShape(), shape), "the shape");
                    ByteBuffer[] out = outputs(at);
                    session.run(new ByteBuffer[] {direct(read(name + ".in"))}, out);
                    write(name, at, out);
                    raises(IllegalStateException.class, "in use", model::close);
                    raises(IllegalStateException.class, "in use", at::close);
                }
            }
            refused(Neon8Exception.Status.SHAPE, "image", () -> model.at(new int[] {1, 3, 7, 6}));
            refused(Neon8Exception.Status.SHAPE, "image", () -> model.at(new int[] {1, 3, -8, 6}));
            raises(IllegalArgumentException.class, "0 shapes for 1 inputs", () -> model.at());
            raises(IllegalArgumentException.class, "4 dimensions are expected", () ->
                    model.at(new int[3]));
            raises(IllegalArgumentException.class, "4 dimensions are expected", () ->
                    model.at((int[]) null));
            raises(NullPointerException.class, "", () -> model.at((int[][]) null));
            model.close();
            raises(IllegalStateException.class, "closed", () -> model.at(new int[] {1, 3, 6, 6}));
        }
    }

    private static void misuse() throws IOException {
        byte[] bytes = read("small.n8");
        raises(NullPointerException.class, "", () -> Model.open((byte[]) null));
        raises(NullPointerException.class, "", () -> Model.open((ByteBuffer) null));
        raises(IllegalArgumentException.class, "not direct", () ->
                Model.open(ByteBuffer.wrap(bytes)));
        raises(IllegalArgumentException.class, "not positive", () -> Model.open(direct(bytes), 0));
        refused(Neon8Exception.Status.LIMIT, null, () -> Model.open(direct(bytes), 100));
        raises(IOException.class, "", () -> Model.open(new File(folder, "absent.n8")));
        raises(IOException.class, "", () -> Model.open(folder));
        Model model = Model.open(bytes);
        raises(IllegalArgumentException.class, "0 threads", () -> model.session(0));
        raises(IllegalArgumentException.class, "65 threads", () -> model.session(65));
        Session session = model.session();
        raises(IllegalStateException.class, "the model is in use", model::close);
        ByteBuffer[] in = {model.getInputs().get(0).newBuffer()};
        ByteBuffer[] out = outputs(model);
        session.run(in, out);
        raises(NullPointerException.class, "", () -> session.run(null, out));
        raises(IllegalArgumentException.class, "1 inputs and 0 outputs", () ->
                session.run(in, new ByteBuffer[0]));
        raises(IllegalArgumentException.class, "2 inputs and 2 outputs", () ->
                session.run(new ByteBuffer[] {in[0], in[0]}, out));
        int size = in[0].capacity();
        wrong(session, in, out, null, "is null");
        wrong(session, in, out, ByteBuffer.allocate(size), "is not direct");
        wrong(session, in, out, ByteBuffer.allocateDirect(size).order(OTHER_ORDER), "byte order");
        wrong(session, in, out, direct(new byte[size - 1]), size - 1 + " bytes instead of " + size);
        wrong(session, in, out, direct(new byte[size + 1]), size + 1 + " bytes instead of " + size);
        wrong(session, in, out, direct(new byte[0]), "0 bytes instead of");
        ByteBuffer moved = direct(new byte[size]);
        moved.position(4);
        wrong(session, in, out, moved, size - 4 + " bytes instead of " + size);
        ByteBuffer[] same = out.clone();
        same[1] = out[1].asReadOnlyBuffer().order(ByteOrder.nativeOrder());
        raises(IllegalArgumentException.class, "output 'p' FLOAT32[2, 10] is read-only", () ->
                session.run(in, same));
        // Inputs may be read-only, and anywhere in a buffer.
        ByteBuffer room = ByteBuffer.allocateDirect(size + 7).order(ByteOrder.nativeOrder());
        room.position(3).limit(3 + size);
        session.run(new ByteBuffer[] {room.asReadOnlyBuffer().order(ByteOrder.nativeOrder())}, out);
        check(room.position() == 3 && out[0].position() == 0, "positions stay");
        overlaps(session, in, out);
        raises(IllegalArgumentException.class, "2 is not below 2", () -> session.getOutput(2));
        raises(IllegalArgumentException.class, "-1 is not below 1", () -> session.getInput(-1));
        raises(IllegalArgumentException.class, "named 'null'", () ->
                session.getInput((String) null));
        raises(NullPointerException.class, "", () -> session.set("image", (float[]) null));
        session.close();
        session.close();
        raises(IllegalStateException.class, "the session has been closed", () ->
                session.run(in, out));
        raises(IllegalStateException.class, "closed", session::run);
        raises(IllegalStateException.class, "closed", () -> session.getInput(0));
        raises(IllegalStateException.class, "closed", () -> session.getFloats("p"));
        model.close();
        model.close();
        raises(IllegalStateException.class, "the model has been closed", model::session);
        check(model.getInputs().get(0).getName().equals("image"), "what was known stays");
    }

    /** An input of float32, which a run reads where it is, on a wrong buffer. */
    private static void wrong(
            Session session, ByteBuffer[] in, ByteBuffer[] out, ByteBuffer bad, String text) {
        raises(IllegalArgumentException.class, text, () ->
                session.run(new ByteBuffer[] {bad}, out));
        ByteBuffer[] others = {bad, out[1]};
        raises(IllegalArgumentException.class, text.replaceAll(" instead.*", ""), () ->
                session.run(in, others));
    }

    private static void overlaps(Session session, ByteBuffer[] in, ByteBuffer[] out) {
        int sums = out[0].capacity();
        int rest = out[1].capacity();
        ByteBuffer both = ByteBuffer.allocateDirect(sums + rest + in[0].capacity());
        for (int shift : new int[] {-1, -rest, 0, 1 - rest}) {
            ByteBuffer[] beside = {part(both, 0, sums), part(both, sums + shift, rest)};
            if (shift == 0) {
                session.run(in, beside);
            } else {
                raises(IllegalArgumentException.class, "overlaps", () -> session.run(in, beside));
            }
        }
        ByteBuffer[] source = {part(both, sums - 1, in[0].capacity())};
        ByteBuffer[] target = {part(both, 0, sums), out[1]};
        raises(IllegalArgumentException.class, "overlaps", () -> session.run(source, target));
    }

    private static void hostile() throws Exception {
        refused(Neon8Exception.Status.FORMAT, null, () -> Model.open(new byte[1]));
        raises(Neon8Exception.class, "", () -> Model.open(new byte[0]));
        refused(Neon8Exception.Status.FORMAT, null, () -> Model.open(new byte[100000]));
        byte[] whole = read("small.n8");
        byte[] bytes = whole.clone();
        bytes[bytes.length / 2] ^= 1;
        refused(Neon8Exception.Status.CHECKSUM, null, () -> Model.open(bytes));
        for (int size = 0; size < whole.length; size += 97) {
            byte[] less = Arrays.copyOf(whole, size);
            raises(Neon8Exception.class, "", () -> Model.open(less));
        }
        // Checksums of these are right, and the names as Java's own strings never have them.
        refused(Neon8Exception.Status.FORMAT, "first", () -> Model.open(read("refused.n8")));
        refused(Neon8Exception.Status.FORMAT, "\ud83d\ude00x", () ->
                Model.open(read("refused-emoji.n8")));
        raises(Neon8Exception.class, "layer '", () -> Model.open(read("refused-bytes.n8")));
        try (Model model = Model.open(read("emoji.n8")); Session session = model.session()) {
            check(model.getInputs().get(0).getName().equals("\ud83d\ude00x"), "any UTF-8");
            check(session.getInput("\ud83d\ude00x").capacity() == 1512, "by that name");
        }
        try (Model model = Model.open(read("bytes.n8"))) {
            check(model.getInputs().get(0).getName().contains("\ufffd"), "and what is none");
        }
        try (RandomAccessFile file = new RandomAccessFile(new File(folder, "small.n8"), "r")) {
            ByteBuffer map = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, file.length());
            Model.open(map).close();
        }
    }

    private static void sideBySide() throws Exception {
        ByteBuffer input = direct(read("small.in"));
        try (Model model = Model.open(read("small.n8"))) {
            ByteBuffer[] wanted = outputs(model);
            try (Session session = model.session()) {
                session.run(new ByteBuffer[] {input}, wanted);
            }
            AtomicInteger same = new AtomicInteger();
            Runnable runs = () -> {
                for (int round = 0; round < 20; round++) {
                    try (Session session = model.session(1 + round % 2)) {
                        ByteBuffer[] out = outputs(model);
                        session.run(new ByteBuffer[] {input}, out);
                        same.addAndGet(Arrays.equals(out, wanted) ? 1 : 0);
                    }
                }
            };
            Thread[] threads = {new Thread(runs), new Thread(runs), new Thread(runs)};
            for (Thread thread : threads) {
                thread.start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            check(same.get() == 60, "sessions side by side: " + same);
        }
    }

    /** Two threads at one session, and a close while it runs: one of them is refused. */
    private static void together() throws Exception {
        ByteBuffer[] input = {direct(read("small.in"))};
        try (Model model = Model.open(read("small.n8"))) {
            Session session = model.session();
            AtomicInteger refused = new AtomicInteger();
            Runnable runs = () -> {
                ByteBuffer[] out = outputs(model);
                while (refused.get() == 0) {
                    try {
                        session.run(input, out);
                    } catch (IllegalStateException error) {
                        refused.incrementAndGet();
                        check(error.getMessage().contains("by another thread"), "" + error);
                    }
                }
            };
            Thread other = new Thread(runs);
            other.start();
            runs.run();
            other.join();
            AtomicInteger ended = new AtomicInteger();
            Thread runner = new Thread(() -> {
                ByteBuffer[] out = outputs(model);
                try {
                    while (true) {
                        session.run(input, out);
                    }
                } catch (IllegalStateException closed) {
                    ended.incrementAndGet();
                }
            });
            runner.start();
            boolean closed = false;
            while (!closed) {
                try {
                    session.close();
                    closed = true;
                } catch (IllegalStateException error) {
                    check(error.getMessage().contains("runs in another thread"), "" + error);
                }
            }
            runner.join();
            check(ended.get() == 1, "closed between two runs");
        }
    }

    /** What nobody closes is closed, after a warning, when something else is made. */
    private static void lost() throws Exception {
        AtomicInteger models = new AtomicInteger();
        AtomicInteger sessions = new AtomicInteger();
        LOG.setFilter(record -> {
            String text = record.getMessage();
            (text.startsWith("the model") ? models : sessions).incrementAndGet();
            check(text.endsWith(" was never closed; it is now"), text);
            return false;
        });
        byte[] bytes = read("open.n8");
        for (int i = 0; i < 5; i++) {
            Model model = Model.open(bytes);
            model.at(new int[] {1, 3, 6, 6}).session();
            model.session().close();
        }
        long end = System.nanoTime() + 20_000_000_000L;
        while ((models.get() < 10 || sessions.get() < 5) && System.nanoTime() < end) {
            System.gc();
            Thread.sleep(5);
            Model.open(bytes).close();
        }
        check(models.get() == 10 && sessions.get() == 5, models + " models, " + sessions);
        Field open = Class.forName("dev.neon8.Handle").getDeclaredField("OPEN");
        open.setAccessible(true);
        check(((Set<?>) open.get(null)).isEmpty(), "all that was opened is freed");
    }

    private static ByteBuffer[] outputs(Model model) {
        return model.getOutputs().stream().map(TensorInfo::newBuffer).toArray(ByteBuffer[]::new);
    }

    private static ByteBuffer direct(byte[] bytes) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length).order(ByteOrder.nativeOrder());
        buffer.put(bytes).flip();
        return buffer;
    }

    private static ByteBuffer part(ByteBuffer whole, int from, int size) {
        ByteBuffer part = whole.duplicate().order(ByteOrder.nativeOrder());
        part.position(from).limit(from + size);
        return part;
    }

    private static byte[] read(String name) throws IOException {
        return Files.readAllBytes(new File(folder, name).toPath());
    }

    private static void write(String name, Model model, ByteBuffer[] out) throws IOException {
        for (int i = 0; i < out.length; i++) {
            String file = name + "." + model.getOutputs().get(i).getName() + ".out";
            byte[] bytes = new byte[out[i].remaining()];
            out[i].duplicate().get(bytes);
            Files.write(new File(folder, file).toPath(), bytes);
        }
    }

    private static void refused(Neon8Exception.Status status, String name, Action action) {
        raises(Neon8Exception.class, name == null ? "" : "'" + name + "': ", () -> {
            try {
                action.run();
            } catch (Neon8Exception error) {
                check(error.getStatus() == status, error.getStatus() + " " + error.getMessage());
                check(name == null || name.equals(error.getName()), "named " + error.getName());
                throw error;
            }
        });
    }

    private static void raises(Class<?> kind, String text, Action action) {
        Exception raised = null;
        try {
            action.run();
        } catch (Exception error) {
            raised = error;
        }
        check(raised != null, "nothing was raised: " + kind + " " + text);
        String message = String.valueOf(raised.getMessage());
        check(kind.isInstance(raised) && message.contains(text), raised + " has no: " + text);
    }

    private static synchronized void check(boolean good, String what) {
        checks++;
        if (!good) {
            throw new AssertionError(what);
        }
    }
}
