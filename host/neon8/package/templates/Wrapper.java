// Made by `neon8 package` from {{ w.source | shown }}; do not edit.
package dev.neon8.models;

import dev.neon8.Model;
{% if w.preprocess %}
import dev.neon8.Pixels;
{% endif %}
import dev.neon8.Session;
import dev.neon8.TensorInfo;
import java.nio.ByteBuffer;
{% if w.labels %}
import java.util.ArrayList;
{% endif %}
{% if not w.arguments %}
import java.util.Arrays;
{% endif %}
{% if w.labels %}
import java.util.Collections;
import java.util.List;
{% endif %}

/**
 * {{ w.name }}: the int8 network with its inputs and outputs. It serves one thread at a time.
 *
{% for v in w.values %}
 * <p>{{ v | described }}
{% endfor %}
 */
public final class {{ java }} implements AutoCloseable {
    /** The model among the assets. */
    public static final String ASSET = "{{ w.name }}.n8";
{% for v in w.values if v.info.quantized %}

    /** Real values of {{ v.identifier }} are scale * (q - zero point), for q in {{ v.info.lo }} .. {{ v.info.hi }}. */
    public static final float {{ v.identifier | upper }}_SCALE = {{ v.info.scale | c_float }};

    public static final int {{ v.identifier | upper }}_ZERO_POINT = {{ v.info.zero_point }};
{% endfor %}
{% if w.preprocess %}

    /**
     * Images were {{ preprocessing.steps }}, then
     * value = (byte * SCALE - mean) / std for each channel in this order.
{% if w.inputs[0].info.dtype == "uint8" %}
     * The model does the arithmetic itself: give it the bytes, as by dev.neon8.Bitmaps.
{% endif %}
     */
    public static final Pixels.Order ORDER = Pixels.Order.{{ w.preprocess.color | upper }};

    public static final float SCALE = {{ w.preprocess.scale | c_float }};
{% for name in ("mean", "std") %}

    public static float[] {{ name }}() {
        return new float[] { {{- preprocessing[name] | map("c_float") | join(", ") -}} };
    }
{% endfor %}
{% endif %}
{% if w.labels %}

    /** The names of the classes. */
    public static final List<String> LABELS;

    static {
        List<String> all = new ArrayList<>();
{% for part in w.labels | batch(1000) %}
        labels{{ loop.index0 }}(all);
{% endfor %}
        LABELS = Collections.unmodifiableList(all);
    }
{% endif %}

    private final Model model;
    private final int threads;
{% if w.arguments %}
    private Model resized;
{% endif %}
    private Session session;

    /** The model in the bytes of ASSET, for runs by 1 to 64 threads. Neon8Exception. */
    public {{ java }}(byte[] bytes, int threads) {
        this(Model.open(bytes), threads);
    }

    /** The same from a direct buffer, such as that of an asset which is not compressed. */
    public {{ java }}(ByteBuffer bytes, int threads) {
        this(Model.open(bytes), threads);
    }

    private {{ java }}(Model model, int threads) {
        this.model = model;
        this.threads = threads;
        try {
            if (model.getInputs().size() != {{ w.inputs | length }} || model.getOutputs().size() != {{ w.outputs | length }}) {
                throw other();
            }
{% for v in w.inputs %}
            check(model.getInputs().get({{ loop.index0 }}), {{ v | java_info }}{% for size in v.info.shape if not w.arguments %}, {{ size }}{% endfor %});
{% endfor %}
{% for v in w.outputs %}
            check(model.getOutputs().get({{ loop.index0 }}), {{ v | java_info }}{% for size in v.info.shape if not w.arguments %}, {{ size }}{% endfor %});
{% endfor %}
            session = model.session(threads);
        } catch (RuntimeException | Error error) {
            model.close();
            throw error;
        }
    }
{% if w.arguments %}

    /**
     * Chooses the dimensions of the runs that follow. Neon8Exception: one of them is not
{% for a in w.arguments %}
     * {{ a.identifier }}: {{ a.bounds }}{{ "," if not loop.last else "." }}
{% endfor %}
     */
    public void resize({{ w.arguments | map(attribute="identifier") | map("java_int") | join(", ") }}) {
        Model at =
                model.at(
{% for v in w.inputs %}
                        new int[] { {{- v.dimensions | join(", ") -}} }{{ "," if not loop.last else ");" }}
{% endfor %}
        Session made = null;
        try {
            made = at.session(threads);
            session.close();
        } catch (RuntimeException | Error error) {
            if (made != null) {
                made.close();
            }
            at.close();
            throw error;
        }
        session = made;
        if (resized != null) {
            resized.close();
        }
        resized = at;
    }
{% endif %}
{% for v in w.inputs %}

    /** Sets {{ v | described }}. */
    public void set{{ methods[v.identifier] }}({{ v.info.dtype | jtype }}[] values) {
        session.set({{ v.name | java_text }}, values);
    }
{% endfor %}

    /** Runs once. */
    public void run() {
        session.run();
    }
{% for v in w.outputs %}

    /** What the last run gave of {{ v | described }}. */
    public {{ v.info.dtype | jtype }}[] get{{ methods[v.identifier] }}() {
        return session.get{{ v.info.dtype | jtype | capitalize }}s({{ v.name | java_text }});
    }
{% endfor %}

    /** For direct buffers and bitmaps{{ "; another one after resize()" if w.arguments }}. */
    public Session getSession() {
        return session;
    }

    @Override
    public void close() {
        session.close();
{% if w.arguments %}
        if (resized != null) {
            resized.close();
        }
{% endif %}
        model.close();
    }

{% for part in w.labels | batch(1000) %}
    private static void labels{{ loop.index0 }}(List<String> all) {
{% for label in part %}
        all.add({{ label | java_text }});
{% endfor %}
    }

{% endfor %}
    private static void check(TensorInfo info, String type, float scale, int zeroPoint{% if not w.arguments %}, int... shape{% endif %}) {
        if (!info.getType().toString().equals(type)
                || info.getScale() != scale
{% if not w.arguments %}
                || !Arrays.equals(info.getShape(), shape)
{% endif %}
                || info.getZeroPoint() != zeroPoint) {
            throw other();
        }
    }

    private static IllegalArgumentException other() {
        return new IllegalArgumentException("a model with other inputs or outputs");
    }
}
