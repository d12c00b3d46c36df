// SPDX-License-Identifier: Apache-2.0
#include "permute.h"

#include "copy.h"
#include "planes.h"
#include "size.h"

#include <stdlib.h>

enum {
    TILE = 64,     // values, where neighbours of the output are none of the input
    AT_ONCE = 4096 // values of a tile
};

// Which dimension of N C H W the inner end of a loop is in, and how far a step is there.
struct axis {
    int dim;
    size_t left; // values of this dimension that no loop has yet
    struct n8_permute_step step;
};

static struct axis axis_of(const int32_t dims[4], int dim) {
    const size_t width = (size_t)dims[3];
    const size_t steps[4] = {width * (size_t)dims[2], 1, width, 1};
    return (struct axis){dim, (size_t)dims[dim], {dim != 1, steps[dim]}};
}

static void insert(struct n8_permute_plan *plan, size_t at, struct n8_permute_loop loop) {
    for (size_t i = plan->count++; i > at; i--) {
        plan->loops[i] = plan->loops[i - 1];
    }
    plan->loops[at] = loop;
}

// Lays the loops, which are in the order of values, the outermost first, over the dimensions of
// `dims`, and cuts them where a dimension ends.
static bool lay_over(struct n8_permute_plan *plan, const int32_t dims[4], bool out) {
    struct axis axis = axis_of(dims, 3);
    for (size_t i = plan->count; i-- > 0;) {
        for (;;) {
            while (axis.left == 1) {
                axis = axis_of(dims, axis.dim - 1); // as many values are left as loops have
            }
            struct n8_permute_loop *loop = &plan->loops[i];
            struct n8_permute_step *step = out ? &loop->out : &loop->in;
            if (axis.left % loop->size == 0) {
                *step = axis.step;
                axis.left /= loop->size;
                axis.step.count *= loop->size;
                break;
            }
            if (loop->size % axis.left != 0) {
                return false;
            }
            struct n8_permute_loop inner = *loop;
            inner.size = axis.left;
            *(out ? &inner.out : &inner.in) = axis.step;
            loop->size /= axis.left;
            loop->in.count *= axis.left; // nothing where it is not known yet
            axis.left = 1;
            insert(plan, i + 1, inner);
        }
    }
    return true;
}

static int by_distance(struct n8_permute_step a, struct n8_permute_step b) {
    if (a.pixels != b.pixels) {
        return a.pixels ? 1 : -1;
    }
    return a.count < b.count ? -1 : a.count > b.count;
}

static int by_output(const void *left, const void *right) {
    const struct n8_permute_loop *a = left, *b = right;
    return by_distance(a->out, b->out);
}

static bool follows(struct n8_permute_step inner, size_t size, struct n8_permute_step outer) {
    return inner.pixels == outer.pixels && inner.count * size == outer.count;
}

// Whether neighbours are neighbours in both tensors.
static bool is_run(const struct n8_permute_loop *loop) {
    return !loop->in.pixels && !loop->out.pixels && loop->in.count == 1 && loop->out.count == 1;
}

// Sorted, and neighbours in both tensors joined. Second comes the longest loop around runs, so that
// there are few tiles, or the one whose values lie closest together in the input.
static void arrange(struct n8_permute_plan *plan) {
    struct n8_permute_loop *loops = plan->loops;
    qsort(loops, plan->count, sizeof loops[0], by_output);
    size_t kept = 0;
    for (size_t i = 1; i < plan->count; i++) {
        struct n8_permute_loop *last = &loops[kept];
        if (follows(last->in, last->size, loops[i].in) &&
            follows(last->out, last->size, loops[i].out)) {
            last->size *= loops[i].size;
        } else {
            loops[++kept] = loops[i];
        }
    }
    plan->count = kept + 1;
    const bool runs = is_run(&loops[0]);
    size_t best = runs ? 1 : 0;
    for (size_t i = 1; i < plan->count; i++) {
        const bool better =
            runs ? loops[i].size > loops[best].size : by_distance(loops[i].in, loops[best].in) < 0;
        best = better ? i : best;
    }
    if (best > 1) {
        const struct n8_permute_loop second = loops[best];
        for (size_t i = best; i > 1; i--) {
            loops[i] = loops[i - 1];
        }
        loops[1] = second;
    }
    if (plan->count == 1) {
        loops[plan->count++] = (struct n8_permute_loop){.size = 1};
    }
}

bool n8_permute_plan_of(struct n8_permute_plan *plan, const int32_t in[4], const int32_t out[4],
                        const int32_t *view, const int32_t *order) {
    *plan = (struct n8_permute_plan){0};
    for (int axis = 0; axis < N8_FORMAT_MAX_RANK; axis++) {
        if (view[axis] != 1) {
            plan->loops[plan->count++] = (struct n8_permute_loop){.size = (size_t)view[axis]};
        }
    }
    struct n8_permute_plan taken = *plan;
    size_t begins[N8_FORMAT_MAX_RANK]; // loops of an axis, before and after it is cut
    size_t ends[N8_FORMAT_MAX_RANK];
    if (!lay_over(&taken, in, false)) {
        return false;
    }
    size_t at = 0;
    for (int axis = 0; axis < N8_FORMAT_MAX_RANK; axis++) {
        begins[axis] = at;
        for (size_t size = 1; size < (size_t)view[axis]; at++) {
            size *= taken.loops[at].size;
        }
        ends[axis] = at;
    }
    plan->count = 0;
    for (int i = 0; i < N8_FORMAT_MAX_RANK; i++) {
        for (size_t loop = begins[order[i]]; loop < ends[order[i]]; loop++) {
            plan->loops[plan->count++] = taken.loops[loop];
        }
    }
    if (!lay_over(plan, out, true)) {
        return false;
    }
    if (plan->count == 0) {
        plan->loops[plan->count++] = (struct n8_permute_loop){.size = 1};
    }
    arrange(plan);
    const struct n8_permute_loop *x = &plan->loops[0], *y = &plan->loops[1];
    plan->tile[0] = is_run(x) ? x->size : n8_smaller(x->size, TILE);
    plan->tile[1] = n8_smaller(y->size, AT_ONCE / n8_smaller(plan->tile[0], AT_ONCE));
    plan->units = n8_pieces(x->size, plan->tile[0]) * n8_pieces(y->size, plan->tile[1]);
    for (size_t i = 2; i < plan->count; i++) {
        plan->units *= plan->loops[i].size; // at most one unit for each value
    }
    return true;
}

static size_t bytes_of(struct n8_permute_step step, size_t stride, size_t size) {
    return step.count * (step.pixels ? stride : size);
}

// The tile of unit `unit`: the first value in both tensors, and how many there are.
struct tile {
    size_t to, from;
    size_t count[2];
};

static struct tile tile_of(const struct n8_permute_plan *plan, size_t to_stride, size_t from_stride,
                           size_t size, size_t unit) {
    struct tile tile = {0};
    for (size_t i = 0; i < plan->count; i++) {
        const struct n8_permute_loop *loop = &plan->loops[i];
        const size_t each = i < 2 ? plan->tile[i] : 1;
        const size_t tiles = n8_pieces(loop->size, each);
        const size_t first = unit % tiles * each;
        unit /= tiles;
        tile.to += first * bytes_of(loop->out, to_stride, size);
        tile.from += first * bytes_of(loop->in, from_stride, size);
        if (i < 2) {
            tile.count[i] = n8_smaller(each, loop->size - first);
        }
    }
    return tile;
}

void n8_permute(const struct n8_permute_plan *plan, const struct n8_kernels *kernels, uint8_t *to,
                size_t to_stride, const uint8_t *from, size_t from_stride, size_t size,
                size_t begin, size_t end) {
    const struct n8_permute_loop *x = &plan->loops[0], *y = &plan->loops[1];
    const size_t to_x = bytes_of(x->out, to_stride, size);
    const size_t to_y = bytes_of(y->out, to_stride, size);
    const size_t from_x = bytes_of(x->in, from_stride, size);
    const size_t from_y = bytes_of(y->in, from_stride, size);
    for (size_t unit = begin; unit < end; unit++) {
        const struct tile tile = tile_of(plan, to_stride, from_stride, size, unit);
        if (to_x == size && from_y == size) {
            n8_interleave(kernels, to + tile.to, to_y, tile.count[0] * size, from + tile.from,
                          from_x, tile.count[0], tile.count[1], size);
            continue;
        }
        for (size_t i = 0; i < tile.count[1]; i++) {
            n8_move_values(to + tile.to + i * to_y, to_x, from + tile.from + i * from_y, from_x,
                           tile.count[0], size);
        }
    }
}
