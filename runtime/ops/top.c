// SPDX-License-Identifier: Apache-2.0
//
// Which of a pixel's channels have the largest or the smallest values, (36); which boxes are kept
// of those that overlap, (38).
#include "size.h"
#include "step.h"

#include <string.h>

enum n8_status n8_check_top(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = step->in, *out = step->out;
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

enum n8_status n8_plan_top(struct n8_reader *reader, struct n8_step *step) {
    step->scratch_size = n8_mul(sizeof(int64_t), (size_t)step->out->dims[1]);
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
void n8_run_top(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const size_t size = (size_t)step->in->dims[1];
    const size_t wanted = (size_t)step->out->dims[1];
    const int32_t turned = step->row.function == N8_FUNCTION_MINIMUM ? -1 : 0;
    const uint32_t first = (step->row.flags & N8_OP_REVERSE) != 0 ? 0 : UINT32_MAX;
    int64_t *heap = scratch;
    for (size_t p = begin; p < end; p++) {
        const uint8_t *values = n8_in_pixel(session, step, 0, p);
        int32_t *to = n8_out_pixel(session, step, p);
        for (size_t i = 0; i < size; i++) {
            const int64_t key = key_of(step->in, values, i, turned);
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
};

// Boxes --------------------------------------------------------------------------------

// Without a side where a corner is NaN, so that it overlaps nothing.
struct box {
    float lo[2], hi[2], area;
};

// As many lists as each image has classes, for images with so many boxes; each list has room in
// the output for `most`.
struct lists {
    size_t images, boxes, count, most;
};

static struct lists lists_of(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_tensor *scores = n8_input(model, step, 1);
    const size_t images = (size_t)scores->dims[0];
    const size_t count = n8_mul(images, (size_t)scores->dims[1]);
    return (struct lists){images, scores->pixels / images, count, step->out->pixels / count};
}

enum n8_status n8_plan_nms(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_tensor *boxes = step->in;
    const struct lists lists = lists_of(reader->model, step);
    if ((size_t)boxes->dims[0] != lists.images || (size_t)boxes->dims[1] != lists.boxes ||
        boxes->pixels != 4 * lists.images || step->out->dims[1] != 3 ||
        step->out->pixels != n8_mul(lists.most, lists.count) || lists.most > lists.boxes) {
        return n8_malformed(reader, "its boxes, scores and rows do not fit");
    }
    if (step->row.function != N8_FUNCTION_NONE && step->row.function != N8_FUNCTION_MULTIPLY) {
        return n8_malformed(reader, "its function is none that it has for its type");
    }
    step->units = 1;
    step->scratch_size =
        n8_add(n8_mul(sizeof(int64_t), lists.boxes), n8_mul(sizeof(struct box), lists.most));
    return N8_OK;
}

static struct box box_at(const struct n8_session *session, const struct n8_step *step, size_t first,
                         size_t i) {
    const bool centred = step->row.function != N8_FUNCTION_NONE;
    float given[4];
    for (size_t k = 0; k < 4; k++) {
        given[k] = ((const float *)n8_in_pixel(session, step, 0, first + k))[i];
    }
    struct box box;
    for (size_t k = 0; k < 2; k++) {
        const float a = given[k], b = given[k + 2];
        const float lo = centred ? a - b / 2 : a >= b ? b : a;
        const float hi = centred ? a + b / 2 : a >= b ? a : b;
        box.lo[k] = lo < hi ? lo : 0;
        box.hi[k] = lo < hi ? hi : 0;
        given[k] = centred ? b : hi - lo;
    }
    box.area = given[0] * given[1];
    return box;
}

static bool overlaps(const struct box *a, const struct box *b, float most) {
    float sides[2];
    for (size_t k = 0; k < 2; k++) {
        const float lo = a->lo[k] < b->lo[k] ? b->lo[k] : a->lo[k];
        const float hi = a->hi[k] < b->hi[k] ? a->hi[k] : b->hi[k];
        if (!(lo < hi)) {
            return false;
        }
        sides[k] = hi - lo;
    }
    const float both = sides[0] * sides[1];
    return both / (a->area + b->area - both) > most;
}

// The only unit. Scratch: the places of one list by score, as above but with the largest first; the
// boxes that are kept.
void n8_run_nms(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct n8_tensor *scores = n8_input(session->model, step, 1);
    const struct lists lists = lists_of(session->model, step);
    const float threshold = step->row.fill;
    int64_t *heap = scratch;
    struct box *kept = (struct box *)(heap + lists.boxes);
    size_t row = 0;
    for (size_t list = 0; list < lists.count; list++) {
        const size_t image = list / (size_t)scores->dims[1];
        const size_t channel = list % (size_t)scores->dims[1];
        size_t count = 0, found = 0;
        for (size_t i = 0; i < lists.boxes; i++) {
            const float *at = n8_in_pixel(session, step, 1, image * lists.boxes + i);
            if (at[channel] > threshold || threshold != threshold) {
                const int64_t key = key_of(scores, (const uint8_t *)at, channel, 0);
                heap[count++] = ~(key * 0x100000000 + (UINT32_MAX - (uint32_t)i));
            }
        }
        for (size_t at = count / 2; at > 0; at--) {
            sink(heap, count, at - 1);
        }
        while (count > 0 && found < lists.most) {
            const uint32_t best = (uint32_t)heap[0];
            heap[0] = heap[--count];
            sink(heap, count, 0);
            kept[found] = box_at(session, step, image * 4, best);
            size_t other = 0;
            while (other < found && !overlaps(&kept[found], &kept[other], step->row.scale)) {
                other++;
            }
            if (other == found) {
                const int32_t places[] = {(int32_t)image, (int32_t)channel, (int32_t)best};
                memcpy(n8_out_pixel(session, step, row++), places, sizeof places);
                found++;
            }
        }
    }
    for (; row < step->out->pixels; row++) {
        memset(n8_out_pixel(session, step, row), 0xff, 3 * sizeof(int32_t));
    }
}

const struct n8_operator n8_op_nms = {
    .name = "nms",
    .types = {N8_TYPE_F32, N8_TYPE_S32},
    .inputs = {2, 2},
    .fields = N8_FIELD_SCALE | N8_FIELD_FILL | N8_FIELD_FUNCTION,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,
};
