// SPDX-License-Identifier: Apache-2.0
//
// The program that is measured, run by qemu as one core:
//
//   guest layer LAYER OUTPUT         one n8_conv2d_run
//   guest model MODEL INPUT OUTPUT   one n8_session_run, by one thread; all inputs are in one file,
//                                    and all outputs
//
// LAYER is what layers.py writes: struct layer, multipliers, biases, weights, input. The level
// and the order of the core are found as on a device. What count.c counts is between
// measure_begin() and measure_end(), and each part of a run, which is a copy of an input or output
// or a step, begins with measure_part().
#include "exec/threads.h"
#include "neon8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layer {
    struct n8_conv2d_shape shape;
    int32_t in_zero_point, zero_point, lo, hi;
};

enum { ALIGN = 64, SLACK = 64, MOST_PLACES = 64 };

// Neither inlined nor left out: count.c knows them by their addresses.
__attribute__((noipa)) static void measure_begin(void) {
    __asm__ volatile("");
}

__attribute__((noipa)) static void measure_part(void) {
    __asm__ volatile("");
}

__attribute__((noipa)) static void measure_end(void) {
    __asm__ volatile("");
}

// The linker has sessions call this in place of n8_threads_run (--wrap), once for each part.
void __real_n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                           void *context);
void __wrap_n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                           void *context) {
    measure_part();
    __real_n8_threads_run(threads, units, grain, work, context);
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "guest: %s: %s\n", what, why);
    exit(1);
}

static void expect(enum n8_status status, const char *what) {
    if (status != N8_OK) {
        fail(what, n8_status_string(status));
    }
}

// Memory as an allocator of tensors would give it, filled with 0.
static void *allocate(size_t size) {
    const size_t room = (size + ALIGN - 1) / ALIGN * ALIGN + ALIGN;
    void *memory = aligned_alloc(ALIGN, room);
    if (memory == NULL) {
        fail("memory", "out of it");
    }
    return memset(memory, 0, room);
}

// The whole file.
static char *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fail(name, "cannot be read");
    }
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = allocate(*size);
    if (fread(bytes, 1, *size, file) != *size) {
        fail(name, "cannot be read");
    }
    fclose(file);
    return bytes;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fail(name, "cannot be written");
    }
}

// The next `size` bytes of a file, in memory of their own.
static void *take(const char **from, size_t size) {
    void *bytes = memcpy(allocate(size), *from, size);
    *from += size;
    return bytes;
}

static size_t pixel_bytes(int32_t channels) {
    return (size_t)(channels + 7) / 8 * 8;
}

static void run_layer(const char *layer_name, const char *out_name) {
    size_t size;
    const char *at = read_file(layer_name, &size);
    const struct layer *layer = take(&at, sizeof *layer);
    const struct n8_conv2d_shape *shape = &layer->shape;
    const size_t channels = (size_t)shape->out_channels;
    const size_t taps = (size_t)shape->kernel_height * (size_t)shape->kernel_width;
    const size_t depth = taps * (size_t)(shape->in_channels / shape->groups);
    const float *multiplier = take(&at, channels * sizeof *multiplier);
    const int32_t *bias = take(&at, channels * sizeof *bias);
    const struct n8_conv2d_epilogue epilogue = {
        .type = N8_TYPE_S8,
        .multiplier = multiplier,
        .bias = bias,
        .zero_point = layer->zero_point,
        .lo = layer->lo,
        .hi = layer->hi,
    };
    const int8_t *weights = take(&at, channels * depth);
    const size_t in_stride = pixel_bytes(shape->in_channels);
    const size_t out_stride = pixel_bytes(shape->out_channels);
    const size_t pixels = (size_t)shape->batch * (size_t)shape->in_height * (size_t)shape->in_width;
    const int8_t *in = take(&at, pixels * in_stride + SLACK);
    const size_t out_size =
        (size_t)shape->batch * (size_t)shape->out_height * (size_t)shape->out_width * out_stride;
    int8_t *out = allocate(out_size);
    struct n8_conv2d *conv;
    expect(n8_conv2d_create(shape, weights, layer->in_zero_point, &epilogue, N8_ISA_AUTO, &conv),
           layer_name);
    measure_begin();
    const enum n8_status status =
        n8_conv2d_run(conv, out, (ptrdiff_t)out_stride, in, (ptrdiff_t)in_stride, NULL, 0);
    measure_end();
    expect(status, layer_name);
    write_file(out_name, out, out_size);
}

// One buffer for all inputs or outputs of a model, one after another, and where each begins.
static char *place_all(const struct n8_model *model, enum n8_io which, void **places,
                       size_t *size) {
    struct n8_tensor_info info;
    *size = 0;
    for (size_t i = 0; n8_model_io(model, which, i, &info) == N8_OK; i++) {
        if (i == MOST_PLACES) {
            fail("model", "has too many inputs or outputs");
        }
        *size += info.size;
    }
    char *buffer = allocate(*size), *next = buffer;
    for (size_t i = 0; n8_model_io(model, which, i, &info) == N8_OK; i++) {
        places[i] = next;
        next += info.size;
    }
    return buffer;
}

static void run_model(const char *model_name, const char *in_name, const char *out_name) {
    size_t size, in_size, given, out_size;
    const void *bytes = read_file(model_name, &size);
    const void *values = read_file(in_name, &given);
    struct n8_model *model;
    struct n8_session *session;
    expect(n8_model_open(bytes, size, NULL, &model, NULL), model_name);
    expect(n8_session_create(model, NULL, &session), model_name);
    void *inputs[MOST_PLACES], *outputs[MOST_PLACES];
    char *in = place_all(model, N8_INPUT, inputs, &in_size);
    const char *out = place_all(model, N8_OUTPUT, outputs, &out_size);
    if (in_size != given) {
        fail(in_name, "is not the inputs of the model");
    }
    memcpy(in, values, in_size);
    measure_begin();
    const enum n8_status status = n8_session_run(session, (const void *const *)inputs, outputs);
    measure_end();
    expect(status, model_name);
    write_file(out_name, out, out_size);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "layer") == 0) {
        run_layer(argv[2], argv[3]);
    } else if (argc == 5 && strcmp(argv[1], "model") == 0) {
        run_model(argv[2], argv[3], argv[4]);
    } else {
        fputs("usage: guest layer LAYER OUTPUT | guest model MODEL INPUT OUTPUT\n", stderr);
        return 2;
    }
    return 0;
}
