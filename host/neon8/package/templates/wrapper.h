// Made by `neon8 package` from {{ w.source | shown }}; do not edit.
///
/// {{ w.name }}: the int8 network with its inputs and outputs as C types.
#ifndef {{ upper }}_H
#define {{ upper }}_H

#include <stddef.h>
#include <stdint.h>

#include "neon8.h"

#ifdef __cplusplus
extern "C" {
#endif

{% if w.arguments %}
/// How many values inputs and outputs have at the dimensions that {{ w.name }}_open() chooses:
/// {% for a in w.arguments %}{{ a.identifier }} {{ a.usual }}{{ ", " if not loop.last }}{% endfor %}.
{% else %}
/// How many values inputs and outputs have.
{% endif %}
enum {
{% for v in w.values %}
    /// {{ v | described }}
    {{ upper }}_{{ v.identifier | upper }}_SIZE = {{ v.size }},
{% endfor %}
{% if w.labels %}
    /// how many labels there are
    {{ upper }}_CLASSES = {{ w.labels | length }},
{% endif %}
};
{% for v in w.values if v.info.quantized %}

/// Real values of {{ v.identifier }} are {{ upper }}_{{ v.identifier | upper }}_SCALE * (q - {{ upper }}_{{ v.identifier | upper }}_ZERO_POINT), for q in
/// {{ v.info.lo }} .. {{ v.info.hi }}; n8_quantize_f32_s8() and n8_dequantize_s8_f32() convert int8.
#define {{ upper }}_{{ v.identifier | upper }}_SCALE {{ v.info.scale | c_float }}
enum { {{ upper }}_{{ v.identifier | upper }}_ZERO_POINT = {{ v.info.zero_point }} };
{% endfor %}
{% if w.preprocess %}

/// Images were {{ preprocessing.steps }}, then
/// value = (byte * scale - mean) / std for each channel, {{ preprocessing.order }}.
{% if w.inputs[0].info.dtype == "uint8" %}
/// The model does the arithmetic itself: give it the bytes.
{% endif %}
extern const float {{ w.name }}_scale, {{ w.name }}_mean[{{ preprocessing.mean | length }}], {{ w.name }}_std[{{ preprocessing.std | length }}];
{% endif %}
{% if w.labels %}

/// The names of the classes.
extern const char *const {{ w.name }}_labels[{{ upper }}_CLASSES];
{% endif %}
{% if embed %}

/// The bytes of {{ w.source | shown }}.
extern const unsigned char {{ w.name }}_model[];
extern const size_t {{ w.name }}_model_size;
{% endif %}

/// The model, opened, with the memory of a run. It serves one thread at a time.
struct {{ w.name }} {
    struct n8_model *model;
    struct n8_session *session;
    int32_t threads;
{% if w.arguments %}
    /// The same model at the dimensions that were chosen.
    struct n8_model *resized;
    /// How many values there are at these dimensions.
    size_t {% for v in w.values %}{{ v.identifier }}_size{{ ", " if not loop.last }}{% endfor %};
{% endif %}
};

{% if embed %}
/// Opens the model that is compiled in, for runs by 1 to 64 threads.
enum n8_status {{ w.name }}_open(struct {{ w.name }} *net, int32_t threads);
{% else %}
/// Opens the file `path`, for runs by 1 to 64 threads; N8_E_ARGUMENT: it cannot be read.
enum n8_status {{ w.name }}_open(struct {{ w.name }} *net, const char *path, int32_t threads);
{% endif %}

/// Opens the same from memory, of which nothing is needed afterwards. N8_E_ARGUMENT: it is a model
/// with other inputs or outputs{{ "; N8_E_SHAPE: at other dimensions" if w.arguments }}.
/// After an error there is nothing to close.
{{ ("enum n8_status " ~ w.name ~ "_open_bytes(") | broken(["struct " ~ w.name ~ " *net", "const void *bytes", "size_t size", "int32_t threads"]) }});
{% if w.arguments %}

/// Chooses the dimensions of the runs that follow, and fills in the sizes.
/// N8_E_SHAPE: one of them is not
{% for a in w.arguments %}
/// {{ a.identifier }}: {{ a.bounds }}{{ "," if not loop.last else "." }}
{% endfor %}
{{ ("enum n8_status " ~ w.name ~ "_resize(") | broken(["struct " ~ w.name ~ " *net"] + arguments) }});
{% endif %}

/// Runs once. It allocates nothing.
{{ ("enum n8_status " ~ w.name ~ "_run(") | broken(["struct " ~ w.name ~ " *net"] + parameters) }});

/// Frees what was opened.
void {{ w.name }}_close(struct {{ w.name }} *net);

#ifdef __cplusplus
}
#endif

#endif // {{ upper }}_H
