// SPDX-License-Identifier: Apache-2.0
#include "activate.h"
#include "neon8_calibrate.h"

#include <math.h>
#include <string.h>

// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

// The place of spread coordinate `at` on an axis of `size` values, -1 where there is none.
static int64_t place(int64_t at, int64_t spread, int64_t size) {
    return at >= 0 && at % spread == 0 && at / spread < size ? at / spread : -1;
}

// Reads one channel of `source` from (top, left) on, which may lie outside. Returns whether all
// values are finite.
static int read_channel(float *out, const float *plane, const struct n8c_source *source,
                        const struct n8c_rows *layer, int64_t top, int64_t left) {
    int64_t height = (int64_t)source->height, width = (int64_t)source->width;
    int64_t rows = (int64_t)layer->spread[0], columns = (int64_t)layer->spread[1];
    int finite = 1;
    for (size_t i = 0; i < layer->kernel[0]; i++) {
        int64_t row = place(top + (int64_t)(i * layer->dilations[0]), rows, height);
        for (size_t j = 0; j < layer->kernel[1]; j++) {
            int64_t column = place(left + (int64_t)(j * layer->dilations[1]), columns, width);
            float x = 0;
            if (row >= 0 && column >= 0) {
                x = plane[row * width + column];
                x = n8c_activate(x, source->slope, source->lo, source->hi) + 0.0f; // no -0
            }
            finite &= isfinite(x) != 0;
            *out++ = x;
        }
    }
    return finite;
}

static int read_row(float *out, const struct n8c_rows *layer, size_t pixel) {
    size_t row = pixel / layer->columns, column = pixel % layer->columns;
    int64_t top = (int64_t)(row * layer->strides[0]) - layer->pads[0];
    int64_t left = (int64_t)(column * layer->strides[1]) - layer->pads[1];
    size_t taps = layer->kernel[0] * layer->kernel[1];
    int finite = 1;
    for (size_t i = 0; i < layer->source_count; i++) {
        const struct n8c_source *source = &layer->sources[i];
        for (size_t channel = 0; channel < source->channels; channel++) {
            const float *plane = source->values + channel * source->height * source->width;
            float *at = out + source->at + channel * taps;
            finite &= read_channel(at, plane, source, layer, top, left);
        }
    }
    return finite;
}

// Is the row in slot `a` to be kept rather than that in slot `b`?
static int before(const struct n8c_rows *layer, size_t a, size_t b) {
    if (layer->keys[a] != layer->keys[b])
        return layer->keys[a] < layer->keys[b];
    size_t size = layer->size;
    return memcmp(layer->rows + a * size, layer->rows + b * size, size * sizeof(float)) < 0;
}

// Keeps the row in slots[used], in place of the largest one if all are in use.
static void keep(struct n8c_rows *layer) {
    uint64_t *slots = layer->slots;
    if (layer->used < N8C_ROWS) {
        layer->used++;
    } else {
        size_t slot = slots[layer->largest];
        if (!before(layer, slots[N8C_ROWS], slot))
            return;
        slots[layer->largest] = slots[N8C_ROWS];
        slots[N8C_ROWS] = slot;
    }
    layer->largest = 0;
    for (size_t i = 1; i < layer->used; i++) {
        if (before(layer, slots[layer->largest], slots[i]))
            layer->largest = i;
    }
}

static void draw(struct n8c_rows *layer, const uint64_t *words) {
    uint64_t mixed[2 * N8C_PIXELS];
    for (size_t i = 0; i < 2 * N8C_PIXELS; i++)
        mixed[i] = mix(words[i] ^ layer->words[i]);
    size_t first = mixed[0] % layer->pixels, second = mixed[1] % layer->pixels;
    size_t pixels[N8C_PIXELS] = {first, first == second ? (second + 1) % layer->pixels : second};
    for (size_t i = 0; i < N8C_PIXELS && i < layer->pixels; i++) {
        uint64_t key = mixed[N8C_PIXELS + i];
        if (layer->used == N8C_ROWS && key > layer->keys[layer->slots[layer->largest]])
            continue;
        size_t slot = layer->slots[layer->used];
        layer->keys[slot] = key;
        if (read_row(layer->rows + slot * layer->size, layer, pixels[i]))
            keep(layer);
    }
}

enum n8c_status n8c_draw(struct n8c_rows *layers, size_t count, const uint64_t *words) {
    if (words == NULL || (layers == NULL && count != 0))
        return N8C_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        const struct n8c_rows *layer = &layers[i];
        if (layer->rows == NULL || layer->keys == NULL || layer->slots == NULL ||
            layer->sources == NULL || layer->pixels == 0 || layer->columns == 0 ||
            layer->spread[0] == 0 || layer->spread[1] == 0)
            return N8C_E_ARGUMENT;
        for (size_t j = 0; j < layer->source_count; j++) {
            if (layer->sources[j].values == NULL)
                return N8C_E_ARGUMENT;
        }
    }
    for (size_t i = 0; i < count; i++)
        draw(&layers[i], words);
    return N8C_OK;
}
