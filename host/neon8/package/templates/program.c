// Made by `neon8 package` from {{ w.source | shown }}; do not edit.
//
// {{ w.name }}: one run of an int8 network, from files to files.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neon8.h"

enum {
    INPUTS = {{ w.inputs | length }},
    OUTPUTS = {{ w.outputs | length }},
    HEADER = 512, // bytes of the header of an .npy file, at most
};

static const char help[] =
    {% set files = w.inputs | map(attribute="identifier") | map("upper") | join(" ") %}
    "usage: {{ w.name }} [OPTIONS] {{ files }}\n"
    "Runs the int8 network {{ w.source | shown }} once. Inputs are .npy files, or raw ones of the\n"
    "right size; - is the standard input, or the standard output.\n"
    "\n"
{% for v in w.inputs %}
    "  {{ v.identifier | upper }}: {{ v.shape }}, {{ v.info.dtype }}\n"
{% endfor %}
    "\n"
    "options:\n"
    "  -o FILE       write an output as an .npy file; once for each, in this order:\n"
{% for v in w.outputs %}
    "                  {{ v.identifier }}, {{ v.info.dtype }}\n"
{% endfor %}
    "                - by default, where there is one\n"
{% for a in w.arguments %}
    "  --{{ a.identifier }} N   {{ a.bounds }}, by default {{ a.usual }}\n"
{% endfor %}
    "  --threads N   1 to 64, by default 1; the bytes are the same\n"
{% if not embed %}
    "  --model FILE  another file than {{ model_path }}\n"
{% endif %}
    "  --selftest    run the stored sample and compare with the bytes of the PC\n"
    "  --help        this text\n";

{% if embed %}
extern const unsigned char model[];
extern const size_t model_size;
{% else %}
static const char *model_path = "{{ model_path }}";
{% endif %}
extern const unsigned char *const samples[INPUTS + OUTPUTS];
extern const size_t sample_sizes[INPUTS + OUTPUTS];

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("{{ w.name }}: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    exit(2);
}

static void check(enum n8_status status) {
    if (status != N8_OK)
        fail("%s", n8_status_string(status));
}

static void *room(size_t size) {
    void *bytes = malloc(size ? size : 1);
    if (!bytes)
        fail("out of memory");
    return bytes;
}

/// What NumPy writes about a tensor; returns its length.
static size_t describe(char text[HEADER], const struct n8_tensor_info *info) {
    static const char *const types[] = {
        [N8_TYPE_S8] = "|i1", [N8_TYPE_F32] = "<f4", [N8_TYPE_S32] = "<i4",
        [N8_TYPE_U8] = "|u1", [N8_TYPE_S16] = "<i2",
    };
    int length = snprintf(text, HEADER, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          types[info->type]);
    for (int32_t axis = 0; axis < info->rank; axis++)
        length += snprintf(text + length, HEADER - (size_t)length, "%s%ld", axis ? ", " : "",
                           (long)info->dims[axis]);
    length += snprintf(text + length, HEADER - (size_t)length, "%s), }", info->rank == 1 ? "," : "");
    return (size_t)length;
}

/// Everything in a file, but no more than `most` bytes.
static unsigned char *contents(const char *path, size_t most, size_t *size) {
    int standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file)
        fail("%s: cannot be read", path);
    unsigned char *bytes = room(most + 1);
    *size = fread(bytes, 1, most + 1, file);
    if (ferror(file))
        fail("%s: cannot be read", path);
    if (*size > most)
        fail("%s: is larger than %zu bytes", path, most);
    if (!standard)
        fclose(file);
    return bytes;
}

/// An input, from an .npy file or one with nothing but its values.
static const void *take(const char *path, const struct n8_tensor_info *info) {
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    size_t size;
    unsigned char *bytes = contents(path, info->size + HEADER, &size);
    if (size == info->size)
        return bytes;
    char wanted[HEADER];
    size_t length = describe(wanted, info);
    if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        fail("%s: is neither an .npy file of version 1 nor %zu bytes", path, info->size);
    size_t start = 10 + bytes[8] + 256u * bytes[9];
    if (start > size || size - start != info->size || start < 10 + length ||
        memcmp(bytes + 10, wanted, length) != 0)
        fail("%s: is not %s", path, wanted);
    memmove(bytes, bytes + start, info->size);
    return bytes;
}

/// Writes an output as an .npy file.
static void give(const char *path, const struct n8_tensor_info *info, const void *values) {
    char header[HEADER + 10];
    size_t length = describe(header + 10, info), start = (10 + length + 1 + 63) / 64 * 64;
    memcpy(header, "\x93NUMPY\x01\0", 8);
    header[8] = (char)((start - 10) & 255);
    header[9] = (char)((start - 10) >> 8);
    memset(header + 10 + length, ' ', start - 10 - length);
    header[start - 1] = '\n';
    int standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdout : fopen(path, "wb");
    int written = file && fwrite(header, 1, start, file) == start &&
                  fwrite(values, 1, info->size, file) == info->size && fflush(file) == 0;
    if (!written || (!standard && fclose(file) != 0))
        fail("%s: cannot be written", path);
}

static int32_t number(const char *option, const char *word) {
    char *end;
    long value = word ? strtol(word, &end, 10) : 0;
    if (!word || *end || value < 1 || value > INT32_MAX)
        fail("%s takes a number of 1 or more", option);
    return (int32_t)value;
}

int main(int argc, char **argv) {
{% for a in w.arguments %}
    int32_t {{ a.identifier }} = {{ a.usual }};
{% endfor %}
    int32_t threads = 1;
    const char *sources[INPUTS] = {0}, *targets[OUTPUTS] = {0};
    size_t given = 0, asked = 0;
    int selftest = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0) {
            fputs(help, stdout);
            return 0;
        } else if (strcmp(word, "--selftest") == 0) {
            selftest = 1;
        } else if (strcmp(word, "--threads") == 0) {
            threads = number(word, argv[++i]);
{% for a in w.arguments %}
        } else if (strcmp(word, "--{{ a.identifier }}") == 0) {
            {{ a.identifier }} = number(word, argv[++i]);
{% endfor %}
{% if not embed %}
        } else if (strcmp(word, "--model") == 0 && i + 1 < argc) {
            model_path = argv[++i];
{% endif %}
        } else if (strcmp(word, "-o") == 0 && i + 1 < argc && asked < OUTPUTS) {
            targets[asked++] = argv[++i];
        } else if ((word[0] != '-' || !word[1]) && given < INPUTS) {
            sources[given++] = word;
        } else {
            fail("'%s' is not expected; see --help", word);
        }
    }
    if (OUTPUTS == 1 && asked == 0)
        targets[asked++] = "-";
    if (!selftest && given < INPUTS)
        fail("an input is missing; see --help");
    if (!selftest && asked < OUTPUTS)
        fail("-o FILE is missing for an output; see --help");

{% if not embed %}
    size_t model_size;
    unsigned char *model = contents(model_path, {{ w.model | length }}, &model_size);
{% endif %}
    struct n8_model *opened = NULL;
    struct n8_model_error error;
    const struct n8_model_options options = {.max_bytes = INT64_MAX};
    if (n8_model_open(model, model_size, &options, &opened, &error) != N8_OK)
        fail("%s", error.reason);
    struct n8_model_facts facts;
    check(n8_model_describe(opened, &facts));
    if (facts.input_count != INPUTS || facts.output_count != OUTPUTS)
        fail("the model has other inputs or outputs");
{% if w.arguments %}
    const int32_t shapes[][8] = {
{% for v in w.inputs %}
        { {{- v.dimensions | join(", ") -}} },
{% endfor %}
    };
    struct n8_model *usual = opened;
    check(n8_model_reshape(usual, shapes, &opened, NULL));
{% endif %}
    struct n8_session *session = NULL;
    check(n8_session_create(opened, &(struct n8_session_options){.threads = threads}, &session));

    struct n8_tensor_info info;
    const void *inputs[INPUTS];
    void *outputs[OUTPUTS];
    for (size_t i = 0; i < INPUTS; i++) {
        check(n8_model_io(opened, N8_INPUT, i, &info));
        if (selftest && info.size != sample_sizes[i])
            fail("--selftest is for the dimensions that are usual");
        inputs[i] = selftest ? samples[i] : take(sources[i], &info);
    }
    for (size_t i = 0; i < OUTPUTS; i++) {
        check(n8_model_io(opened, N8_OUTPUT, i, &info));
        outputs[i] = room(info.size);
    }
    check(n8_session_run(session, inputs, outputs));
    int equal = 1;
    for (size_t i = 0; i < OUTPUTS; i++) {
        check(n8_model_io(opened, N8_OUTPUT, i, &info));
        if (!selftest)
            give(targets[i], &info, outputs[i]);
        else
            equal &= info.size == sample_sizes[INPUTS + i] &&
                     memcmp(outputs[i], samples[INPUTS + i], info.size) == 0;
    }
    n8_session_destroy(session);
    n8_model_close(opened);
{% if w.arguments %}
    n8_model_close(usual);
{% endif %}
    if (selftest)
        puts(equal ? "selftest: the same bytes as on the PC" : "selftest: OTHER BYTES");
    return equal ? 0 : 1;
}
