// SPDX-License-Identifier: Apache-2.0
//
// GRU, LSTM and RNN in float32 with int8 matrices, (21): the vectors that the matrices multiply
// are quantized where they are made. Tensors have the dimensions of ONNX: input (T, B, I),
// states (D, B, H), output (T, D, B, H), after which it may go on with the last state and, of an
// LSTM, the last cell.
#include "memory/allocate.h"
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

#include <float.h>

enum {
    LANES = 8,      // to a multiple of which the rows of a gate are filled up, with zeros
    MOST = 1 << 17, // entries of a vector: 2^17 * 127 * 127 < 2^31
    MOST_STATES = 2,
};

struct sizes {
    size_t steps, directions, batch, input, hidden;
    size_t gates, lanes; // lanes of a gate, of which `hidden` are its rows
    size_t states;       // of the inputs after the first, and of the output after its T steps
};

static size_t gates_of(const struct n8_step *step) {
    return step->row.kind == N8_OP_LSTM ? 4 : step->row.kind == N8_OP_GRU ? 3 : 1;
}

static struct sizes sizes_of(const struct n8_step *step) {
    const struct n8_tensor *in = step->in;
    const size_t hidden = (size_t)step->out->onnx_dims[3];
    return (struct sizes){
        .steps = (size_t)in->onnx_dims[0],
        .batch = (size_t)in->onnx_dims[1],
        .input = (size_t)in->onnx_dims[2],
        .directions = (size_t)step->out->onnx_dims[1],
        .hidden = hidden,
        .gates = gates_of(step),
        .lanes = n8_round_up(hidden, LANES),
        .states = step->row.kind == N8_OP_LSTM ? 2 : 1,
    };
}

static size_t rows_of(const struct sizes *s) {
    return s->directions * s->gates * s->hidden;
}

static size_t weights_of(const struct sizes *s) {
    return rows_of(s) * (s->input + s->hidden);
}

// All lanes of the gates of a direction.
static size_t lanes_of(const struct sizes *s) {
    return s->gates * s->lanes;
}

enum n8_status n8_check_recurrent(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *out = step->out;
    const struct sizes s = sizes_of(step);
    const size_t rows = (size_t)out->onnx_dims[0];
    if (step->in->rank != 3 || out->rank != 4 || (rows != s.steps && rows != s.steps + s.states) ||
        (size_t)out->onnx_dims[2] != s.batch || s.directions > 2 || s.input > MOST ||
        s.hidden > MOST ||
        (uint64_t)s.directions * lanes_of(&s) * (s.input + s.hidden) > INT32_MAX) {
        return n8_malformed(reader, "its sequence and its output do not fit");
    }
    if (step->row.input_count != 1 && step->row.input_count != 1 + s.states) {
        return n8_malformed(reader, "it has some of its states and not all");
    }
    for (size_t i = 1; i < step->row.input_count; i++) {
        const struct n8_tensor *state = n8_input(reader->model, step, i);
        if (state->rank != 3 || (size_t)state->onnx_dims[0] != s.directions ||
            (size_t)state->onnx_dims[1] != s.batch || (size_t)state->onnx_dims[2] != s.hidden) {
            return n8_malformed(reader, "a state does not fit its output");
        }
    }
    if (((step->row.flags & N8_OP_REVERSE) != 0 && s.directions == 2) ||
        ((step->row.flags & N8_OP_LINEAR_BEFORE_RESET) != 0 && step->row.kind != N8_OP_GRU)) {
        return n8_malformed(reader, "it has a flag that does not fit it");
    }
    return N8_OK;
}

// min(max(f(factor * x + shift), lo), hi), f being N8_FUNCTION_X, _SIGMOID or _TANH.
struct form {
    float factor, shift, lo, hi;
};

enum { FORMS = 3, FORM_VALUES = 4 };

// The array `values` of a layer that has one, after which peepholes may follow, [D][3][H].
struct options {
    float clip;
    struct form forms[FORMS];
};

static size_t options_of(const struct n8_step *step, const struct sizes *s) {
    const size_t peepholes = step->row.kind == N8_OP_LSTM ? 3 * s->directions * s->hidden : 0;
    return sizeof(struct options) / sizeof(float) + peepholes;
}

static bool has_options(const struct n8_step *step) {
    return step->row.values != 0;
}

// What is multiplied at once: W by the inputs of several steps, R by a state. R has rows of their
// own where what multiplies them waits for the reset gate.
enum part { PART_W, PART_R, PART_RESET, PARTS };

enum { BLOCK = 8 }; // steps of one multiplication by W

// Packed: this, the weights of the parts, and then the scales, of W and of R, [2][D][lanes], the
// biases, likewise, the options and the numbers of their functions.
struct matrices {
    struct n8_conv parts[2][PARTS]; // of each direction, as convolutions of a column of pixels
    const float *scales, *bias;
    const struct options *options; // or NULL
    const float *peepholes;
    const int32_t *functions;
};

enum { HEAD = (sizeof(struct matrices) + N8_CONV_ALIGN - 1) / N8_CONV_ALIGN * N8_CONV_ALIGN };

static enum part parts_of(const struct n8_step *step) {
    const bool waits =
        step->row.kind == N8_OP_GRU && (step->row.flags & N8_OP_LINEAR_BEFORE_RESET) == 0;
    return waits ? PARTS : PART_RESET;
}

// The first of the gates that a part has.
static size_t first_gate(enum part part) {
    return part == PART_RESET ? 2 : 0;
}

static size_t gates_of_part(const struct n8_step *step, const struct sizes *s, enum part part) {
    const bool split = part == PART_R && parts_of(step) == PARTS;
    return (split ? 2 : s->gates) - first_gate(part);
}

static size_t columns_of(const struct sizes *s, enum part part) {
    return part == PART_W ? s->input : s->hidden;
}

// Steps of a block, of which all have about as many.
static size_t block_of(const struct sizes *s) {
    return n8_pieces(s->steps, n8_pieces(s->steps, BLOCK));
}

static enum n8_status plan_part(const struct n8_model *model, const struct n8_step *step,
                                const struct sizes *s, enum part part, struct n8_conv *conv) {
    const int32_t pixels = part == PART_W ? (int32_t)block_of(s) : 1;
    const int32_t lanes = (int32_t)(gates_of_part(step, s, part) * s->lanes);
    const struct n8_conv2d_shape shape =
        n8_matrix_shape(pixels, (int32_t)columns_of(s, part), lanes);
    const struct n8_conv_input input = {.type = N8_TYPE_S8, .residual = N8_TYPE_S8, .reach = 128};
    const struct n8_conv2d_epilogue epilogue = {.type = N8_TYPE_S32};
    const struct n8_conv_certificate any = {.int16_depth = 2, .acc_bound = INT32_MAX};
    return n8_conv_plan(conv, &shape, &input, &epilogue, &any, &model->kernels);
}

// One sequence of the batch in one direction, and what it needs, for one thread.
struct work {
    const struct n8_session *session;
    const struct n8_step *step;
    const struct matrices *m;
    struct sizes s;
    size_t direction, batch;
    float *gates;  // [2][lanes]: what W and R add up to
    float *state;  // [lanes of a gate]
    float *cell;   // [lanes of a gate]
    float *vector; // [vector_of()]
    float scales[BLOCK];
    int32_t *sums; // [block][lanes], of W
    int32_t *more; // [lanes], of R
    int8_t *bytes; // [block][max(I, H)], each padded
    void *scratch; // of the multiplications
};

// Bytes from one vector to the next.
static size_t stride_of(size_t count) {
    return n8_round_up(count, N8_PIXEL);
}

static size_t bytes_of(const struct sizes *s) {
    return n8_larger(block_of(s) * stride_of(s->input), stride_of(s->hidden)) + N8_SLACK;
}

// Entries of a vector of either kind, whole quads.
static size_t vector_of(const struct sizes *s) {
    return n8_larger(n8_round_up(s->input, LANES), s->lanes);
}

// Bytes of what stands in struct work before `scratch`.
static size_t own_scratch(const struct sizes *s) {
    const size_t values = (2 + block_of(s) + 1) * lanes_of(s) + 2 * s->lanes + vector_of(s);
    return n8_round_up(values * sizeof(float) + bytes_of(s), N8_CONV_ALIGN);
}

enum n8_status n8_plan_recurrent(struct n8_reader *reader, struct n8_step *step) {
    const struct sizes s = sizes_of(step);
    const size_t pairs = 2 * rows_of(&s);
    N8_TRY(n8_read_array(reader, step->row.weights, weights_of(&s), 1, &step->arrays[0]));
    N8_TRY(n8_read_array(reader, step->row.multiplier, pairs, sizeof(float), &step->arrays[1]));
    N8_TRY(n8_read_array(reader, step->row.bias_f32, pairs, sizeof(float), &step->arrays[2]));
    if ((step->row.indices != 0) != has_options(step)) {
        return n8_malformed(reader, "it has functions without values");
    }
    N8_TRY(n8_read_optional(reader, step->row.indices, FORMS, sizeof(int32_t), &step->arrays[3]));
    N8_TRY(n8_read_optional(reader, step->row.values, options_of(step, &s), sizeof(float),
                            &step->arrays[4]));
    const size_t more =
        has_options(step) ? options_of(step, &s) * sizeof(float) + FORMS * sizeof(int32_t) : 0;
    size_t packed = HEAD, scratch = 0;
    for (enum part part = PART_W; part < parts_of(step); part++) {
        struct n8_conv conv;
        N8_TRY(plan_part(reader->model, step, &s, part, &conv));
        packed = n8_add(packed, n8_mul(s.directions, conv.packed_size));
        scratch = n8_larger(scratch, conv.scratch_size);
        if (part == PART_W) {
            step->kernel_name = conv.kernel_name;
        }
    }
    step->units = s.batch * s.directions;
    packed = n8_add(packed, 4 * s.directions * lanes_of(&s) * sizeof(float));
    step->packed_size = n8_add(packed, more);
    step->scratch_size = n8_add(own_scratch(&s), scratch);
    step->macs = (uint64_t)s.steps * s.batch * weights_of(&s);
    return N8_OK;
}

static bool options_ok(const struct matrices *m, size_t count) {
    const struct options *o = m->options;
    for (size_t i = 0; i < FORMS; i++) {
        const int32_t f = m->functions[i];
        if ((f != N8_FUNCTION_X && f != N8_FUNCTION_SIGMOID && f != N8_FUNCTION_TANH) ||
            !n8_all_finite(&o->forms[i].factor, 2) || !(o->forms[i].lo <= o->forms[i].hi)) {
            return false;
        }
    }
    return o->clip > 0.0f &&
           n8_all_finite(m->peepholes, count - sizeof(struct options) / sizeof(float));
}

// After the biases, from the file.
static enum n8_status pack_options(struct n8_reader *reader, const struct n8_step *step,
                                   const struct sizes *s, struct matrices *m, float *memory) {
    const size_t count = options_of(step, s);
    memcpy(memory, step->arrays[4], count * sizeof *memory);
    memcpy(memory + count, step->arrays[3], FORMS * sizeof(int32_t));
    m->options = (const struct options *)(const void *)memory;
    m->peepholes = memory + sizeof(struct options) / sizeof(float);
    m->functions = (const int32_t *)(const void *)(memory + count);
    return options_ok(m, count)
               ? N8_OK
               : n8_malformed(reader, "its activations, clip or peepholes are wrong");
}

// The weights of a part, which `lanes` has room for, lie between those of others in the file.
static void pack_part(const struct n8_step *step, const struct sizes *s, size_t direction,
                      enum part part, struct n8_conv *conv, int8_t *lanes, void *memory) {
    const size_t columns = columns_of(s, part), width = s->input + s->hidden;
    const int8_t *from = step->arrays[0];
    from += (direction * s->gates + first_gate(part)) * s->hidden * width;
    from += part == PART_W ? 0 : s->input;
    int8_t *to = lanes;
    for (size_t gate = 0; gate < gates_of_part(step, s, part); gate++) {
        for (size_t n = 0; n < s->lanes; n++, to += columns) {
            if (n < s->hidden) {
                memcpy(to, from, columns);
                from += width;
            } else {
                memset(to, 0, columns);
            }
        }
    }
    n8_conv_pack(conv, lanes, &(struct n8_conv_proof){0}, memory);
}

static enum n8_status pack_parts(struct n8_reader *reader, const struct n8_step *step,
                                 const struct sizes *s, struct matrices *m, uint8_t **memory) {
    int8_t *lanes = n8_allocate(lanes_of(s) * n8_larger(s->input, s->hidden));
    if (lanes == NULL) {
        return N8_E_MEMORY;
    }
    for (size_t d = 0; d < s->directions; d++) {
        for (enum part part = PART_W; part < parts_of(step); part++) {
            struct n8_conv *conv = &m->parts[d][part];
            (void)plan_part(reader->model, step, s, part, conv); // which went well before
            pack_part(step, s, d, part, conv, lanes, *memory);
            *memory += conv->packed_size;
        }
    }
    n8_free(lanes);
    return N8_OK;
}

// Pairs of a value of W and one of R of each row, as all those of W and all those of R by lanes.
static void separate(const struct sizes *s, float *out, const void *pairs) {
    const size_t gates = s->directions * s->gates, count = gates * s->lanes;
    const uint8_t *from = pairs;
    memset(out, 0, 2 * count * sizeof *out);
    for (size_t gate = 0; gate < gates; gate++, out += s->lanes) {
        for (size_t n = 0; n < s->hidden; n++, from += 2 * sizeof *out) {
            memcpy(out + n, from, sizeof *out);
            memcpy(out + count + n, from + sizeof *out, sizeof *out);
        }
    }
}

enum n8_status n8_pack_recurrent(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct sizes s = sizes_of(step);
    const size_t pairs = 2 * s.directions * lanes_of(&s);
    const int8_t *weights = step->arrays[0];
    step->proof.weights_lo = INT8_MAX;
    step->proof.weights_hi = INT8_MIN;
    for (size_t i = 0; i < weights_of(&s); i++) {
        const int32_t w = weights[i];
        step->proof.weights_lo = w < step->proof.weights_lo ? w : step->proof.weights_lo;
        step->proof.weights_hi = w > step->proof.weights_hi ? w : step->proof.weights_hi;
    }
    if (step->proof.weights_lo == INT8_MIN) {
        return n8_malformed(reader, "a weight is -128");
    }
    struct matrices *m = memory;
    uint8_t *next = (uint8_t *)memory + HEAD;
    N8_TRY(pack_parts(reader, step, &s, m, &next));
    float *scales = (float *)(void *)next;
    separate(&s, scales, step->arrays[1]);
    separate(&s, scales + pairs, step->arrays[2]);
    m->scales = scales;
    m->bias = scales + pairs;
    for (size_t i = 0; i < pairs; i++) {
        if (!n8_multiplier_ok(scales[i])) {
            return n8_malformed(reader, "a multiplier is neither 0 nor in 1e-30 .. 2^64");
        }
    }
    if (!n8_all_finite(m->bias, pairs)) {
        return n8_malformed(reader, "a float bias is not finite");
    }
    return has_options(step) ? pack_options(reader, step, &s, m, scales + 2 * pairs) : N8_OK;
}

// Four lanes, of which compilers make one register where vectors do with floats what C does.
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t quad_of_ints __attribute__((vector_size(16), aligned(4), may_alias));

static inline quad *quads(const float *lanes) {
    return (quad *)(uintptr_t)lanes;
}

#define EACH_QUAD(count) for (size_t i = 0; i < (count) / 4; i++)

// The bits of the largest magnitude: they are in the order of magnitudes. Writes zeros up to a
// quad.
static int32_t most_bits(float *vector, size_t count) {
    const quad_of_ints *bits = (const quad_of_ints *)(const void *)vector;
    quad_of_ints most = {0};
    while (count % 4 != 0) {
        vector[count++] = 0.0f;
    }
    EACH_QUAD(count) {
        const quad_of_ints more = (bits[i] & INT32_MAX) - most;
        most += more & ~(more >> 31);
    }
    const int32_t a = most[0] > most[1] ? most[0] : most[1];
    const int32_t b = most[2] > most[3] ? most[2] : most[3];
    return a > b ? a : b;
}

// Quantizes a vector by its largest magnitude; its scale, 0 where all is below 1e-30.
static float quantize(const struct work *w, int8_t *out, float *vector, size_t count) {
    const int32_t infinite = 0x7f800000;
    int32_t most = most_bits(vector, count);
    if (most >= infinite) {
        for (size_t i = 0; i < count; i++) {
            const float v = vector[i] != vector[i] ? 0.0f : vector[i];
            vector[i] = v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v;
        }
        most = most_bits(vector, count);
    }
    float largest;
    memcpy(&largest, &most, sizeof largest);
    if (largest < 1e-30f) {
        memset(out, 0, count);
        return 0.0f;
    }
    w->session->model->kernels.quantize_f32_s8(out, vector, count, 127.0f / largest, 0, -127, 127);
    return largest / 127.0f;
}

static void multiply(const struct n8_conv *conv, int32_t *sums, size_t stride, const int8_t *bytes,
                     void *scratch) {
    const struct n8_conv_io io = {
        .out = sums,
        .out_stride = (ptrdiff_t)(stride * sizeof *sums),
        .in = bytes,
        .in_stride = (ptrdiff_t)stride_of((size_t)conv->shape.in_channels),
    };
    n8_conv_run(conv, &io, 0, conv->units, scratch);
}

// out[n] = M v + bias of `count` lanes, of which entry 0 of the arrays is the first.
static void scale_sums(float *out, const int32_t *sums, size_t count, float scale,
                       const float *scales, const float *bias) {
    const quad_of_ints *in = (const quad_of_ints *)(const void *)sums;
    EACH_QUAD(count) {
        quads(out)[i] =
            __builtin_convertvector(in[i], quad) * (scale * quads(scales)[i]) + quads(bias)[i];
    }
}

// R v + bias of the lanes of a part, to its place among the gates.
static void multiply_state(const struct work *w, enum part part) {
    const struct sizes *s = &w->s;
    const struct n8_conv *conv = &w->m->parts[w->direction][part];
    const float scale = quantize(w, w->bytes, w->vector, s->hidden);
    const size_t lanes = lanes_of(s), first = first_gate(part) * s->lanes;
    const size_t entry = (s->directions + w->direction) * lanes + first;
    multiply(conv, w->more, lanes, w->bytes, w->scratch);
    scale_sums(w->gates + lanes + first, w->more, (size_t)conv->shape.out_channels, scale,
               w->m->scales + entry, w->m->bias + entry);
}

enum { AT_ONCE = 64 }; // values in double

// The activations of the options.
static __attribute__((noinline)) void activate_by(const struct form *form, double clip,
                                                  int32_t function, float *x, size_t count) {
    const double lo = (double)form->lo, hi = (double)form->hi;
    double v[AT_ONCE];
    for (size_t size; count > 0; count -= size, x += size) {
        size = n8_smaller(count, AT_ONCE);
        for (size_t i = 0; i < size; i++) {
            v[i] = (double)x[i];
            v[i] = v[i] < -clip ? -clip : v[i] > clip ? clip : v[i];
            v[i] = (double)form->factor * v[i] + (double)form->shift;
        }
        if (function == N8_FUNCTION_SIGMOID) {
            n8_sigmoid_all(v, size);
        } else if (function == N8_FUNCTION_TANH) {
            n8_tanh_all(v, size);
        }
        for (size_t i = 0; i < size; i++) {
            x[i] = (float)(v[i] < lo ? lo : v[i] > hi ? hi : v[i]);
        }
    }
}

// The activations of lanes, in place: those of the options, or `plain`.
static void activate(const struct matrices *m, size_t which, float *x, size_t count,
                     int32_t plain) {
    if (m->options != NULL) {
        const double clip = which == 2 ? (double)INFINITY : (double)m->options->clip;
        activate_by(&m->options->forms[which], clip, m->functions[which], x, count);
    } else {
        n8_sigmoid_or_tanh(x, x, count, plain == N8_FUNCTION_TANH);
    }
}

// a[i] += b[i]
static void add(float *a, const float *b, size_t count) {
    EACH_QUAD(count) {
        quads(a)[i] += quads(b)[i];
    }
}

// a[i] *= b[i]
static void scale_by(float *a, const float *b, size_t count) {
    EACH_QUAD(count) {
        quads(a)[i] *= quads(b)[i];
    }
}

// The next state from x W + b and h R + b, gates z, r, h.
static void gru(const struct work *w) {
    const size_t size = w->s.lanes;
    float *x = w->gates, *reset = x + size, *made = reset + size, *r = x + lanes_of(&w->s);
    const quad *z = quads(x), *n = quads(made);
    quad *h = quads(w->state);
    add(x, r, 2 * size);
    activate(w->m, 0, x, 2 * size, N8_FUNCTION_SIGMOID);
    if (parts_of(w->step) == PARTS) { // R multiplies the state that the reset gate has scaled
        memcpy(w->vector, w->state, size * sizeof *w->state);
        scale_by(w->vector, reset, size);
        multiply_state(w, PART_RESET);
    } else {
        scale_by(r + 2 * size, reset, size);
    }
    add(made, r + 2 * size, size);
    activate(w->m, 1, made, size, N8_FUNCTION_TANH);
    EACH_QUAD(size) {
        h[i] = (1.0f - z[i]) * n[i] + z[i] * h[i];
    }
}

// What a peephole adds to a gate: nothing, not even a zero, where there are none.
static void peep(const struct work *w, size_t gate, float *sums) {
    if (w->m->options == NULL) {
        return;
    }
    const float *p = w->m->peepholes + (3 * w->direction + gate) * w->s.hidden;
    for (size_t i = 0; i < w->s.hidden; i++) {
        sums[i] = sums[i] + p[i] * w->cell[i];
    }
}

// Gates i, o, f, c.
static void lstm(const struct work *w) {
    const struct matrices *m = w->m;
    const size_t size = w->s.lanes;
    quad *c = quads(w->cell);
    float *in = w->gates, *out = in + size, *forget = out + size, *made = forget + size;
    add(in, in + lanes_of(&w->s), lanes_of(&w->s));
    peep(w, 0, in);
    peep(w, 2, forget);
    activate(m, 0, in, size, N8_FUNCTION_SIGMOID);
    activate(m, 0, forget, size, N8_FUNCTION_SIGMOID);
    activate(m, 1, made, size, N8_FUNCTION_TANH);
    EACH_QUAD(size) {
        c[i] = quads(forget)[i] * c[i] + quads(in)[i] * quads(made)[i];
    }
    peep(w, 1, out);
    activate(m, 0, out, size, N8_FUNCTION_SIGMOID);
    memcpy(w->state, w->cell, size * sizeof *w->state);
    activate(m, 2, w->state, size, N8_FUNCTION_TANH);
    scale_by(w->state, out, size);
}

static void rnn(const struct work *w) {
    const size_t size = w->s.lanes;
    add(w->gates, w->gates + size, size);
    memcpy(w->state, w->gates, size * sizeof *w->state);
    activate(w->m, 0, w->state, size, N8_FUNCTION_TANH);
}

// The H values of (row, direction, batch) of the output: N, C, H, W of the model's tensor.
static void put(const struct work *w, size_t row, const float *values) {
    const size_t stride = w->step->out->pixel_stride, size = w->s.hidden;
    uint8_t *to = n8_out_pixel(w->session, w->step, (row * w->s.batch + w->batch) * size);
    to += w->direction * sizeof *values;
    for (size_t i = 0; i < size; i++, to += stride) {
        const float value = n8_one_nan(values[i]);
        memcpy(to, &value, sizeof value);
    }
}

// The values of (row, batch) of an input of three dimensions.
static void get(const struct work *w, float *values, size_t count, size_t index, size_t row) {
    const struct n8_model *model = w->session->model;
    const uint8_t *from = n8_in_pixel(w->session, w->step, index, row * count);
    model->kernels.transpose_f32(values, 0, from + w->batch * sizeof *values,
                                 n8_input(model, w->step, index)->pixel_stride, count, 1);
}

// The step after the state of `t` others.
static size_t step_at(const struct work *w, size_t t) {
    const bool backwards = w->direction == 1 || (w->step->row.flags & N8_OP_REVERSE) != 0;
    return backwards ? w->s.steps - 1 - t : t;
}

// W by the inputs of `count` steps after the state of `t` others.
static void multiply_inputs(struct work *w, size_t t, size_t count) {
    const struct sizes *s = &w->s;
    for (size_t i = 0; i < count; i++) {
        get(w, w->vector, s->input, 0, step_at(w, t + i));
        w->scales[i] = quantize(w, w->bytes + i * stride_of(s->input), w->vector, s->input);
    }
    multiply(&w->m->parts[w->direction][PART_W], w->sums, lanes_of(s), w->bytes, w->scratch);
}

static void run_sequence(struct work *w) {
    const struct sizes *s = &w->s;
    const struct n8_step *step = w->step;
    const size_t lanes = lanes_of(s), block = block_of(s), first = w->direction * lanes;
    float *const states[MOST_STATES] = {w->state, w->cell};
    for (size_t i = 0; i < s->states; i++) {
        memset(states[i], 0, s->lanes * sizeof(float));
        if (step->row.input_count > 1) {
            get(w, states[i], s->hidden, 1 + i, w->direction);
        }
    }
    for (size_t t = 0; t < s->steps; t++) {
        if (t % block == 0) {
            multiply_inputs(w, t, n8_smaller(s->steps - t, block));
        }
        scale_sums(w->gates, w->sums + t % block * lanes, lanes, w->scales[t % block],
                   w->m->scales + first, w->m->bias + first);
        memcpy(w->vector, w->state, s->hidden * sizeof(float));
        multiply_state(w, PART_R);
        switch (step->row.kind) {
        case N8_OP_GRU:
            gru(w);
            break;
        case N8_OP_LSTM:
            lstm(w);
            break;
        default:
            rnn(w);
        }
        put(w, step_at(w, t), w->state);
    }
    const bool all = (size_t)step->out->onnx_dims[0] > s->steps;
    for (size_t i = 0; all && i < s->states; i++) {
        put(w, s->steps + i, states[i]);
    }
}

// A unit is one sequence of the batch in one direction.
void n8_run_recurrent(const struct n8_session *session, const struct n8_step *step, size_t begin,
                      size_t end, void *scratch) {
    const struct sizes s = sizes_of(step);
    struct work w = {.session = session, .step = step, .m = step->packed, .s = s};
    w.gates = scratch;
    w.state = w.gates + 2 * lanes_of(&s);
    w.cell = w.state + s.lanes;
    w.vector = w.cell + s.lanes;
    w.sums = (int32_t *)(void *)(w.vector + vector_of(&s));
    w.more = w.sums + block_of(&s) * lanes_of(&s);
    w.bytes = (int8_t *)(void *)(w.more + lanes_of(&s));
    w.scratch = (uint8_t *)scratch + own_scratch(&s);
    for (size_t unit = begin; unit < end; unit++) {
        w.direction = unit % s.directions;
        w.batch = unit / s.directions;
        run_sequence(&w);
    }
}

// What all of them say of themselves.
#define OPERATOR                                                                                   \
    .types = {N8_TYPE_F32, N8_TYPE_F32},                                                           \
    .fields = N8_FIELD_MATRICES | N8_FIELD_RECURRENT | N8_FIELD_INDICES | N8_FIELD_VALUES,         \
    .placing = N8_READS_SLICES | N8_WRITES_SLICES

const struct n8_operator n8_op_gru = {OPERATOR, .name = "gru", .inputs = {1, 2}};
const struct n8_operator n8_op_lstm = {OPERATOR, .name = "lstm", .inputs = {1, 3}};
const struct n8_operator n8_op_rnn = {OPERATOR, .name = "rnn", .inputs = {1, 2}};
