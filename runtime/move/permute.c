// SPDX-License-Identifier: Apache-2.0
#include "permute.h"

#include "copy.h"
#include "planes.h"

#include <stdlib.h>

enum {
    TILE = 64,     // values, where neighbours of the output are none of the input
    AT_ONCE = 4096 // values of a tile
};

// Which dimension of N C H W the inner end of a loop is in, and how far a step is there.
struct axis {
    int dim;
    size_t left; // values of this dimension that no loop has yet
    struct n8_turn_step step;
};

static struct axis axis_of(const struct n8_tensor *t, int dim) {
    const size_t width = (size_t)t->dims[3];
    const size_t steps[4] = {width * (size_t)t->dims[2], 1, width, 1};
    return (struct axis){dim, (size_t)t->dims[dim], {dim != 1, steps[dim]}};
}

static void insert(struct n8_turn *turn, size_t at, struct n8_turn_loop loop) {
    for (size_t i = turn->count++; i > at; i--) {
        turn->loops[i] = turn->loops[i - 1];
    }
    turn->loops[at] = loop;
}

// Lays the loops, which are in the order of values, the outermost first, over the dimensions of
// `t`, and cuts them where a dimension ends.
static bool lay_over(struct n8_turn *turn, const struct n8_tensor *t, bool out) {
    struct axis axis = axis_of(t, 3);
    for (size_t i = turn->count; i-- > 0;) {
        for (;;) {
            while (axis.left == 1) {
                axis = axis_of(t, axis.dim - 1); // as many values are left as loops have
            }
            struct n8_turn_loop *loop = &turn->loops[i];
            struct n8_turn_step *step = out ? &loop->out : &loop->in;
            if (axis.left % loop->size == 0) {
                *step = axis.step;
                axis.left /= loop->size;
                axis.step.count *= loop->size;
                break;
            }
            if (loop->size % axis.left != 0) {
                return false;
            }
            struct n8_turn_loop inner = *loop;
            inner.size = axis.left;
            *(out ? &inner.out : &inner.in) = axis.step;
            loop->size /= axis.left;
            loop->in.count *= axis.left; // nothing where it is not known yet
            axis.left = 1;
            insert(turn, i + 1, inner);
        }
    }
    return true;
}

static int by_distance(struct n8_turn_step a, struct n8_turn_step b) {
    if (a.pixels != b.pixels) {
        return a.pixels ? 1 : -1;
    }
    return a.count < b.count ? -1 : a.count > b.count;
}

static int by_output(const void *left, const void *right) {
    const struct n8_turn_loop *a = left, *b = right;
    return by_distance(a->out, b->out);
}

static bool follows(struct n8_turn_step inner, size_t size, struct n8_turn_step outer) {
    return inner.pixels == outer.pixels && inner.count * size == outer.count;
}

// Sorted, and neighbours in both tensors joined.
static void arrange(struct n8_turn *turn) {
    struct n8_turn_loop *loops = turn->loops;
    qsort(loops, turn->count, sizeof loops[0], by_output);
    size_t kept = 0;
    for (size_t i = 1; i < turn->count; i++) {
        struct n8_turn_loop *last = &loops[kept];
        if (follows(last->in, last->size, loops[i].in) &&
            follows(last->out, last->size, loops[i].out)) {
            last->size *= loops[i].size;
        } else {
            loops[++kept] = loops[i];
        }
    }
    turn->count = kept + 1;
    size_t nearest = 0;
    for (size_t i = 1; i < turn->count; i++) {
        nearest = by_distance(loops[i].in, loops[nearest].in) < 0 ? i : nearest;
    }
    if (nearest > 1) {
        const struct n8_turn_loop second = loops[nearest];
        for (size_t i = nearest; i > 1; i--) {
            loops[i] = loops[i - 1];
        }
        loops[1] = second;
    }
    if (turn->count == 1) {
        loops[turn->count++] = (struct n8_turn_loop){.size = 1};
    }
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

bool n8_turn_plan(struct n8_turn *turn, const struct n8_tensor *in, const struct n8_tensor *out,
                  const int32_t *view, const int32_t *order) {
    *turn = (struct n8_turn){0};
    for (int axis = 0; axis < N8_FORMAT_MAX_RANK; axis++) {
        if (view[axis] != 1) {
            turn->loops[turn->count++] = (struct n8_turn_loop){.size = (size_t)view[axis]};
        }
    }
    struct n8_turn taken = *turn;
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
    turn->count = 0;
    for (int i = 0; i < N8_FORMAT_MAX_RANK; i++) {
        for (size_t loop = begins[order[i]]; loop < ends[order[i]]; loop++) {
            turn->loops[turn->count++] = taken.loops[loop];
        }
    }
    if (!lay_over(turn, out, true)) {
        return false;
    }
    if (turn->count == 0) {
        turn->loops[turn->count++] = (struct n8_turn_loop){.size = 1};
    }
    arrange(turn);
    const struct n8_turn_loop *x = &turn->loops[0], *y = &turn->loops[1];
    const bool runs = !x->in.pixels && !x->out.pixels && x->in.count == 1 && x->out.count == 1;
    turn->tile[0] = runs ? x->size : least(x->size, TILE);
    turn->tile[1] = least(y->size, AT_ONCE / least(turn->tile[0], AT_ONCE));
    turn->units = n8_pieces(x->size, turn->tile[0]) * n8_pieces(y->size, turn->tile[1]);
    for (size_t i = 2; i < turn->count; i++) {
        turn->units *= turn->loops[i].size; // at most one unit for each value
    }
    return true;
}

static size_t bytes_of(struct n8_turn_step step, size_t stride, size_t size) {
    return step.count * (step.pixels ? stride : size);
}

// The tile of unit `unit`: the first value in both tensors, and how many there are.
struct tile {
    size_t to, from;
    size_t count[2];
};

static struct tile tile_of(const struct n8_turn *turn, size_t to_stride, size_t from_stride,
                           size_t size, size_t unit) {
    struct tile tile = {0};
    for (size_t i = 0; i < turn->count; i++) {
        const struct n8_turn_loop *loop = &turn->loops[i];
        const size_t each = i < 2 ? turn->tile[i] : 1;
        const size_t tiles = n8_pieces(loop->size, each);
        const size_t first = unit % tiles * each;
        unit /= tiles;
        tile.to += first * bytes_of(loop->out, to_stride, size);
        tile.from += first * bytes_of(loop->in, from_stride, size);
        if (i < 2) {
            tile.count[i] = least(each, loop->size - first);
        }
    }
    return tile;
}

void n8_turn_run(const struct n8_turn *turn, const struct n8_kernels *kernels, uint8_t *to,
                 size_t to_stride, const uint8_t *from, size_t from_stride, size_t size,
                 size_t begin, size_t end) {
    const struct n8_turn_loop *x = &turn->loops[0], *y = &turn->loops[1];
    const size_t to_x = bytes_of(x->out, to_stride, size);
    const size_t to_y = bytes_of(y->out, to_stride, size);
    const size_t from_x = bytes_of(x->in, from_stride, size);
    const size_t from_y = bytes_of(y->in, from_stride, size);
    for (size_t unit = begin; unit < end; unit++) {
        const struct tile tile = tile_of(turn, to_stride, from_stride, size, unit);
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
