// SPDX-License-Identifier: Apache-2.0
//
// Which of a pixel's channels have the largest or the smallest values, (36).
#include "size.h"
#include "step.h"

#include <string.h>

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    if (in->type == N8_TYPE_U8) {
        return n8_malformed(reader, "an input is not of the type that it takes");
    }
    if (in->dims[0] != out->dims[0] || in->dims[2] != out->dims[2] || in->dims[3] != out->dims[3] ||
        in->dims[1] < out->dims[1]) {
        return n8_malformed(reader, "its output has other pixels, or more channels");
    }
    if (step->row.function != N8_FUNCTION_MINIMUM && step->row.function != N8_FUNCTION_MAXIMUM) {
        return n8_malformed(reader, "its function is neither minimum nor maximum");
    }
    return N8_OK;
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    step->scratch_size = n8_mul(sizeof(int64_t), (size_t)n8_output(reader->model, step)->dims[1]);
    return N8_OK;
}

// What grows with the value, or falls with it where all bits of `turned` are set. NaN is below all.
static int32_t key_of(const struct n8_tensor *in, const uint8_t *values, size_t i, int32_t turned) {
    switch (in->type) {
    case N8_TYPE_S8:
        return ((const int8_t *)values)[i] ^ turned;
    case N8_TYPE_S16:
        return ((const int16_t *)values)[i] ^ turned;
    case N8_TYPE_S32:
        return ((const int32_t *)values)[i] ^ turned;
    default:
        break;
    }
    const float x = ((const float *)values)[i];
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? INT32_MIN : (bits < 0 ? -(bits & INT32_MAX) : bits) ^ turned;
}

// Lets the entry at `at` of a heap, whose least is the first, down to its place.
static void sink(int64_t *heap, size_t count, size_t at) {
    const int64_t moved = heap[at];
    for (size_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        below += below + 1 < count && heap[below + 1] < heap[below];
        if (heap[below] >= moved) {
            break;
        }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = moved;
}

// A unit is a pixel. Scratch: the best so far, each a key above the place that decides where keys
// are equal.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_tensor *in = n8_input(session->model, step, 0);
    const size_t size = (size_t)in->dims[1];
    const size_t wanted = (size_t)n8_output(session->model, step)->dims[1];
    const int32_t turned = step->row.function == N8_FUNCTION_MINIMUM ? -1 : 0;
    const uint32_t first = (step->row.flags & N8_OP_REVERSE) != 0 ? 0 : UINT32_MAX;
    int64_t *heap = scratch;
    for (size_t p = begin; p < end; p++) {
        const uint8_t *values = n8_in_pixel(session, step, 0, p);
        int32_t *to = n8_out_pixel(session, step, p);
        for (size_t i = 0; i < size; i++) {
            const int64_t key = key_of(in, values, i, turned);
            const int64_t entry = key * 0x100000000 + ((uint32_t)i ^ first);
            if (i < wanted) {
                heap[wanted - 1 - i] = entry;
                sink(heap, wanted, wanted - 1 - i);
            } else if (entry > heap[0]) {
                heap[0] = entry;
                sink(heap, wanted, 0);
            }
        }
        for (size_t left = wanted; left > 0; left--) {
            const int64_t least = heap[0];
            heap[0] = heap[left - 1];
            sink(heap, left - 1, 0);
            to[left - 1] = (int32_t)((uint32_t)least ^ first);
        }
    }
}

const struct n8_operator n8_op_top = {
    .name = "top",
    .types = {0, N8_TYPE_S32},
    .inputs = {1, 1},
    .fields = N8_FIELD_FUNCTION | N8_FIELD_REVERSE,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
    .check = check,
    .plan = plan,
    .run = run,
};
