// SPDX-License-Identifier: Apache-2.0
//
// Convolution in float32, (20). One output's sum has one order, over taps and then over the
// channels of its group; outputs that lie side by side are summed at the same time, in lanes.
#include "ref/floats.h"
#include "size.h"
#include "step.h"
#include "window.h"

enum {
    LANES = 8, // output channels at a time
    TILE = 4,  // output pixels at a time
    COST = 8,  // of a product and a sum, in those of int8
};

// Depthwise layers have one channel in and out for each group: their lanes are groups.
static bool is_depthwise(const struct n8_file_op *row, const struct n8_tensor *in,
                         const struct n8_tensor *out) {
    return row->groups == in->dims[1] && row->groups == out->dims[1];
}

// Packed: blocks of LANES output channels, zero padded, each of which has its biases and then
// its weights in the order of the sum, [tap][channel of the group][LANES]. Blocks do not cross
// groups, depthwise layers excepted, which are packed as one group of one channel.
struct packing {
    size_t groups;
    size_t outputs; // of a group
    size_t depth;   // channels of a sum
    size_t taps;
    size_t blocks; // of a group
    size_t block;  // floats of a block
};

static struct packing packing_of(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    struct packing p = {.groups = is_depthwise(row, step->in, step->out) ? 1 : (size_t)row->groups};
    p.outputs = (size_t)step->out->dims[1] / p.groups;
    p.depth = (size_t)(step->in->dims[1] / row->groups);
    p.taps = n8_mul((size_t)row->kernel[0], (size_t)row->kernel[1]);
    p.blocks = n8_pieces(p.outputs, LANES);
    p.block = n8_mul(LANES, n8_add(1, n8_mul(p.taps, p.depth)));
    return p;
}

enum n8_status n8_plan_conv2d_f32(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    const struct n8_tensor *out = step->out;
    const struct packing p = packing_of(reader->model, step);
    const size_t channels = (size_t)out->dims[1];
    const size_t weights = n8_mul(channels, n8_mul(p.taps, p.depth));
    N8_TRY(n8_read_array(reader, row->bias_f32, channels, sizeof(float), &step->arrays[1]));
    N8_TRY(n8_read_array(reader, row->values, weights, sizeof(float), &step->arrays[0]));
    step->kernel_name = is_depthwise(row, step->in, out) ? "depthwise_f32_c" : "conv_f32_c";
    step->packed_size = n8_mul(n8_mul(p.groups * p.blocks, p.block), sizeof(float));
    step->units = n8_pieces(out->pixels, TILE);
    step->macs = (uint64_t)out->pixels * weights;
    step->mac_cost = COST;
    return N8_OK;
}

enum n8_status n8_pack_conv2d_f32(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct packing p = packing_of(reader->model, step);
    const size_t count = p.taps * p.depth;
    const uint8_t *weights = step->arrays[0];
    const uint8_t *bias = step->arrays[1];
    float *packed = memory;
    for (size_t o = 0; o < p.groups * p.outputs; o++) {
        const size_t within = o % p.outputs;
        float *block = packed + (o / p.outputs * p.blocks + within / LANES) * p.block;
        float *lane = block + within % LANES;
        memcpy(lane, bias + o * sizeof(float), sizeof(float));
        for (size_t k = 0; k < count; k++) {
            memcpy(lane + (1 + k) * LANES, weights + (o * count + k) * sizeof(float),
                   sizeof(float));
        }
    }
    if (!n8_all_finite(packed, p.groups * p.blocks * p.block)) {
        return n8_malformed(reader, "a weight or bias is not finite");
    }
    return N8_OK;
}

// The windows of up to TILE output pixels.
struct tile {
    size_t count;
    const float *image[TILE]; // of the input
    struct n8_window y[TILE], x[TILE];
};

static struct tile tile_at(const struct n8_session *session, const struct n8_step *step,
                           size_t pixel) {
    const struct n8_tensor *in = step->in, *out = step->out;
    const size_t width = (size_t)out->dims[3];
    const size_t height = (size_t)out->dims[2];
    const size_t area = (size_t)in->dims[2] * (size_t)in->dims[3];
    struct tile t = {.count = n8_smaller(out->pixels - pixel, TILE)};
    for (size_t i = 0; i < t.count; i++, pixel++) {
        t.image[i] = n8_in_pixel(session, step, 0, pixel / width / height * area);
        t.y[i] = n8_window_at(&step->row, 0, (int64_t)(pixel / width % height), in->dims[2]);
        t.x[i] = n8_window_at(&step->row, 1, (int64_t)(pixel % width), in->dims[3]);
    }
    return t;
}

// The pixel under a tap of window i, or NULL.
static const float *tap_of(const struct tile *t, size_t i, const struct n8_file_op *row,
                           const struct n8_tensor *in, int64_t ky, int64_t kx) {
    const struct n8_window *wy = &t->y[i];
    const struct n8_window *wx = &t->x[i];
    if (ky < wy->from || ky >= wy->to || kx < wx->from || kx >= wx->to) {
        return NULL;
    }
    const int64_t y = wy->start + ky * row->dilation[0];
    const int64_t x = wx->start + kx * row->dilation[1];
    return t->image[i] + (size_t)(y * in->dims[3] + x) * (in->pixel_stride / sizeof(float));
}

static void add_pixel(float *acc, const float *in, const float *weights, size_t depth) {
    for (size_t k = 0; k < depth; k++) {
        for (size_t j = 0; j < LANES; j++) {
            acc[j] += in[k] * weights[k * LANES + j];
        }
    }
}

// add_pixel() of TILE pixels, which share the loads of the weights.
static void add_tile(float acc[TILE][LANES], const float *const in[TILE], const float *weights,
                     size_t depth) {
    float sums[TILE][LANES];
    memcpy(sums, acc, sizeof sums);
    for (size_t k = 0; k < depth; k++) {
        for (size_t i = 0; i < TILE; i++) {
            for (size_t j = 0; j < LANES; j++) {
                sums[i][j] += in[i][k] * weights[k * LANES + j];
            }
        }
    }
    memcpy(acc, sums, sizeof sums);
}

// As add_pixel() where each lane has a channel of its own.
static void add_lanes(float *acc, const float *in, const float *weights, size_t lanes) {
    if (lanes == LANES) {
        for (size_t j = 0; j < LANES; j++) {
            acc[j] += in[j] * weights[j];
        }
        return;
    }
    for (size_t j = 0; j < lanes; j++) {
        acc[j] += in[j] * weights[j];
    }
}

// One block of output channels of a tile; `channel` is the first one of the input.
static void sum_block(float acc[TILE][LANES], const struct tile *t, const struct n8_step *step,
                      const struct n8_tensor *in, const struct packing *p, const float *block,
                      size_t channel, size_t lanes, bool depthwise) {
    for (size_t i = 0; i < t->count; i++) {
        memcpy(acc[i], block, LANES * sizeof(float));
    }
    const float *weights = block + LANES;
    for (int64_t ky = 0; ky < step->row.kernel[0]; ky++) {
        for (int64_t kx = 0; kx < step->row.kernel[1]; kx++, weights += p->depth * LANES) {
            const float *taps[TILE];
            size_t inside = 0;
            for (size_t i = 0; i < t->count; i++) {
                taps[i] = tap_of(t, i, &step->row, in, ky, kx);
                taps[i] = taps[i] == NULL ? NULL : taps[i] + channel;
                inside += taps[i] != NULL;
            }
            if (inside == TILE && !depthwise) {
                add_tile(acc, taps, weights, p->depth);
                continue;
            }
            for (size_t i = 0; i < t->count; i++) {
                if (taps[i] != NULL && depthwise) {
                    add_lanes(acc[i], taps[i], weights, lanes);
                } else if (taps[i] != NULL) {
                    add_pixel(acc[i], taps[i], weights, p->depth);
                }
            }
        }
    }
}

void n8_run_conv2d_f32(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *scratch) {
    const struct packing p = packing_of(session->model, step);
    const bool depthwise = is_depthwise(&step->row, step->in, step->out);
    for (size_t unit = begin; unit < end; unit++) {
        const struct tile tile = tile_at(session, step, unit * TILE);
        const float *block = step->packed;
        for (size_t b = 0; b < p.groups * p.blocks; b++, block += p.block) {
            const size_t group = b / p.blocks;
            const size_t first = b % p.blocks * LANES;
            const size_t lanes = n8_smaller(p.outputs - first, LANES);
            float acc[TILE][LANES];
            sum_block(acc, &tile, step, step->in, &p, block, depthwise ? first : group * p.depth,
                      lanes, depthwise);
            for (size_t i = 0; i < tile.count; i++) {
                float *out = n8_out_pixel(session, step, unit * TILE + i);
                for (size_t j = 0; j < lanes; j++) {
                    out[group * p.outputs + first + j] = n8_one_nan(acc[i][j]);
                }
            }
        }
    }
}

const struct n8_operator n8_op_conv2d_f32 = {
    .name = "conv2d_f32",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .fields = N8_FIELD_WINDOW | N8_FIELD_GROUPS | N8_FIELD_BIAS_F32 | N8_FIELD_VALUES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES,
};
