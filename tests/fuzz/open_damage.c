// SPDX-License-Identifier: Apache-2.0
//
// Damage that knows the format: sizes that are computed otherwise, bounds that are not those of the
// network, numbers that become other sizes, segments of other lengths. Most of it passes the checks
// of form, so that what comes after them is reached.
#include "open_damage.h"

#include "neon8_format.h"

#include <stddef.h>
#include <string.h>

static const int32_t EXTREMES[] = {
    INT32_MIN,  INT32_MIN + 1,
    -(1 << 20), -65536,
    -1,         0,
    1,          2,
    3,          7,
    8,          255,
    65535,      65536,
    1 << 20,    (1 << 20) + 1,
    1 << 24,    1 << 30,
    0x3f800000, 46341,
    INT32_MAX,  INT32_MAX - 1,
};

struct damage {
    uint8_t *bytes;
    uint64_t (*next_random)(void);
    struct n8_file_header header;
    struct n8_file_shapes shapes;
};

static uint32_t below(const struct damage *d, uint64_t count) {
    return (uint32_t)(d->next_random() % (count == 0 ? 1 : count));
}

// A number that could stand where `before` does.
static int32_t any_number(const struct damage *d, int32_t before) {
    switch (below(d, 8)) {
    case 0:
        return EXTREMES[below(d, sizeof EXTREMES / sizeof EXTREMES[0])];
    case 1:
        return (int32_t)below(d, 40);
    case 2:
        return (int32_t)((uint32_t)before + 1);
    case 3:
        return (int32_t)((uint32_t)before - 1);
    case 4:
        return (int32_t)((uint32_t)before ^ 1u << below(d, 32));
    default:
        return -1 - (int32_t)below(d, d->shapes.size_count + UINT64_C(1));
    }
}

static void change_word(const struct damage *d, uint64_t at) {
    int32_t value;
    memcpy(&value, d->bytes + at, sizeof value);
    value = any_number(d, value);
    memcpy(d->bytes + at, &value, sizeof value);
}

static void change_symbol(const struct damage *d) {
    const uint64_t words = d->shapes.symbol_count * sizeof(struct n8_file_symbol) / 4;
    change_word(d, d->shapes.symbols + 4 * below(d, words));
}

// Mostly to another expression of sizes before it.
static void change_size(const struct damage *d) {
    const uint32_t index = below(d, d->shapes.size_count);
    const uint64_t at = d->shapes.sizes + index * sizeof(struct n8_file_size);
    if (d->shapes.size_count == 0) {
        return;
    }
    if (below(d, 4) == 0) {
        change_word(d, at + 4 * below(d, 3));
        return;
    }
    const struct n8_file_size size = {
        .kind = 1 + below(d, N8_SIZE_MINIMUM),
        .a = (int32_t)below(d, index),
        .b = (int32_t)below(d, index),
    };
    memcpy(d->bytes + at, &size, sizeof size);
}

static void change_form(const struct damage *d) {
    if (d->shapes.form_count != 0) {
        const uint64_t words = d->shapes.form_count * sizeof(struct n8_file_form) / 4;
        change_word(d, d->shapes.forms + 4 * below(d, words));
    }
}

static void change_form_word(const struct damage *d) {
    if (d->shapes.word_count == 0) {
        return;
    }
    const uint64_t at = d->shapes.words + 4 * below(d, d->shapes.word_count);
    if (below(d, 4) != 0) {
        change_word(d, at);
    } else {
        memcpy(d->bytes + at, d->bytes + d->shapes.words + 4 * below(d, d->shapes.word_count), 4);
    }
}

static void change_dimension(const struct damage *d) {
    const uint64_t row =
        d->header.tensors + below(d, d->header.tensor_count) * sizeof(struct n8_file_tensor);
    change_word(d, row + offsetof(struct n8_file_tensor, dims) + 4 * below(d, 8));
}

// A window, or which form makes an array.
static void change_step(const struct damage *d) {
    static const size_t FIELDS[] = {
        offsetof(struct n8_file_op, kernel),  offsetof(struct n8_file_op, kernel) + 4,
        offsetof(struct n8_file_op, stride),  offsetof(struct n8_file_op, stride) + 4,
        offsetof(struct n8_file_op, pad),     offsetof(struct n8_file_op, pad) + 4,
        offsetof(struct n8_file_op, pad_end), offsetof(struct n8_file_op, pad_end) + 4,
        offsetof(struct n8_file_op, axis),    offsetof(struct n8_file_op, indices),
        offsetof(struct n8_file_op, values),  offsetof(struct n8_file_op, groups),
    };
    const uint64_t row = d->header.ops + below(d, d->header.op_count) * sizeof(struct n8_file_op);
    change_word(d, row + FIELDS[below(d, sizeof FIELDS / sizeof FIELDS[0])]);
}

// Anything before the data, but not the checksum and what comes before it.
static void change_anything(const struct damage *d) {
    const uint64_t from = offsetof(struct n8_file_header, file_size);
    change_word(d, from + below(d, d->header.data - from - 4) / 4 * 4);
}

void damage_open(uint8_t *bytes, uint64_t (*next_random)(void)) {
    static void (*const CHANGES[])(const struct damage *) = {
        change_symbol,    change_size,      change_size, change_size,      change_form,
        change_form_word, change_form_word, change_step, change_dimension, change_anything,
    };
    struct damage d = {.bytes = bytes, .next_random = next_random};
    memcpy(&d.header, bytes, sizeof d.header);
    memcpy(&d.shapes, bytes + sizeof d.header, sizeof d.shapes);
    for (uint32_t n = 1 + below(&d, 6) / 3 + below(&d, 8) / 7; n > 0; n--) {
        CHANGES[below(&d, sizeof CHANGES / sizeof CHANGES[0])](&d);
    }
}
