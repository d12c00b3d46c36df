// Made by `neon8 package` from {{ w.source | shown }}; do not edit.
#include "{{ w.name }}.h"

{% if not embed %}
#include <stdio.h>
#include <stdlib.h>

{% endif %}
{% if w.preprocess %}
const float {{ w.name }}_scale = {{ w.preprocess.scale | c_float }};
const float {{ w.name }}_mean[{{ preprocessing.mean | length }}] = { {{- preprocessing.mean | map("c_float") | join(", ") -}} };
const float {{ w.name }}_std[{{ preprocessing.std | length }}] = { {{- preprocessing.std | map("c_float") | join(", ") -}} };

{% endif %}
{% if w.labels %}
const char *const {{ w.name }}_labels[{{ upper }}_CLASSES] = {
{% for label in w.labels %}
    {{ label | c_text }},
{% endfor %}
};

{% endif %}
/// What the inputs, then the outputs of a model have to be.
static const struct {
    enum n8_io which;
    size_t index, size;
    enum n8_type type;
    float scale;
    int32_t zero_point;
} wanted[] = {
{% for v in w.inputs %}
    {N8_INPUT, {{ loop.index0 }}, {{ v.sample.nbytes }}, {{ v.info.dtype | n8_type }}, {{ v.info.scale | c_float }}, {{ v.info.zero_point }}},
{% endfor %}
{% for v in w.outputs %}
    {N8_OUTPUT, {{ loop.index0 }}, {{ v.sample.nbytes }}, {{ v.info.dtype | n8_type }}, {{ v.info.scale | c_float }}, {{ v.info.zero_point }}},
{% endfor %}
};

static int counts_fit(const struct n8_model *model) {
    struct n8_model_facts facts;
    return n8_model_describe(model, &facts) == N8_OK && facts.input_count == {{ w.inputs | length }} &&
           facts.output_count == {{ w.outputs | length }};
}

static int fits(const struct n8_model *model) {
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct n8_tensor_info info;
        if (n8_model_io(model, wanted[i].which, wanted[i].index, &info) != N8_OK ||
            info.size != wanted[i].size || info.type != wanted[i].type ||
            info.scale != wanted[i].scale || info.zero_point != wanted[i].zero_point)
            return 0;
    }
    return 1;
}

{% if w.arguments %}
static size_t values(const struct n8_model *model, enum n8_io which, size_t index, size_t each) {
    struct n8_tensor_info info;
    return n8_model_io(model, which, index, &info) == N8_OK ? info.size / each : 0;
}

static void measure(struct {{ w.name }} *net, const struct n8_model *model) {
{% for v in w.inputs %}
    net->{{ v.identifier }}_size = values(model, N8_INPUT, {{ loop.index0 }}, sizeof({{ v.info.dtype | ctype }}));
{% endfor %}
{% for v in w.outputs %}
    net->{{ v.identifier }}_size = values(model, N8_OUTPUT, {{ loop.index0 }}, sizeof({{ v.info.dtype | ctype }}));
{% endfor %}
}

{% endif %}
{{ ("enum n8_status " ~ w.name ~ "_open_bytes(") | broken(["struct " ~ w.name ~ " *net", "const void *bytes", "size_t size", "int32_t threads"], 101) }}) {
    *net = (struct {{ w.name }}){.threads = threads};
    enum n8_status status = n8_model_open(bytes, size, NULL, &net->model, NULL);
    if (status == N8_OK && !counts_fit(net->model))
        status = N8_E_ARGUMENT;
{% if w.arguments %}
    if (status == N8_OK)
        status = {{ w.name }}_resize(net, {{ w.arguments | map(attribute="usual") | join(", ") }});
    if (status == N8_OK && !fits(net->resized))
        status = N8_E_ARGUMENT;
{% else %}
    if (status == N8_OK && !fits(net->model))
        status = N8_E_ARGUMENT;
    if (status == N8_OK)
        status = n8_session_create(net->model, &(struct n8_session_options){.threads = threads},
                                   &net->session);
{% endif %}
    if (status != N8_OK)
        {{ w.name }}_close(net);
    return status;
}

{% if embed %}
enum n8_status {{ w.name }}_open(struct {{ w.name }} *net, int32_t threads) {
    return {{ w.name }}_open_bytes(net, {{ w.name }}_model, {{ w.name }}_model_size, threads);
}
{% else %}
/// A whole file, which the caller frees; NULL on any failure.
static void *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *bytes = length > 0 ? malloc((size_t)length) : NULL;
    rewind(file);
    if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    *size = bytes ? (size_t)length : 0;
    return bytes;
}

enum n8_status {{ w.name }}_open(struct {{ w.name }} *net, const char *path, int32_t threads) {
    size_t size;
    void *bytes = load(path, &size);
    *net = (struct {{ w.name }}){0};
    if (!bytes)
        return N8_E_ARGUMENT;
    enum n8_status status = {{ w.name }}_open_bytes(net, bytes, size, threads);
    free(bytes);
    return status;
}
{% endif %}

{% if w.arguments %}
{{ ("enum n8_status " ~ w.name ~ "_resize(") | broken(["struct " ~ w.name ~ " *net"] + arguments, 101) }}) {
    const int32_t shapes[][8] = {
{% for v in w.inputs %}
        { {{- v.dimensions | join(", ") -}} },
{% endfor %}
    };
    struct n8_model *resized = NULL;
    struct n8_session *session = NULL;
    enum n8_status status = n8_model_reshape(net->model, shapes, &resized, NULL);
    if (status == N8_OK)
        status = n8_session_create(
            resized, &(struct n8_session_options){.threads = net->threads}, &session);
    if (status != N8_OK) {
        n8_model_close(resized);
        return status;
    }
    n8_session_destroy(net->session);
    n8_model_close(net->resized);
    net->session = session;
    net->resized = resized;
    measure(net, resized);
    return N8_OK;
}

{% endif %}
{{ ("enum n8_status " ~ w.name ~ "_run(") | broken(["struct " ~ w.name ~ " *net"] + parameters, 101) }}) {
    const void *const inputs[] = { {{- w.inputs | map(attribute="identifier") | join(", ") -}} };
    void *const outputs[] = { {{- w.outputs | map(attribute="identifier") | join(", ") -}} };
    return n8_session_run(net->session, inputs, outputs);
}

void {{ w.name }}_close(struct {{ w.name }} *net) {
    n8_session_destroy(net->session);
{% if w.arguments %}
    n8_model_close(net->resized);
{% endif %}
    n8_model_close(net->model);
    *net = (struct {{ w.name }}){0};
}
