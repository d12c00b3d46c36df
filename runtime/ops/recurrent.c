// SPDX-License-Identifier: Apache-2.0
//
// GRU, LSTM and RNN in float32 with int8 matrices, (21): the vectors that the matrices multiply
// are quantized where they are made. Tensors have the dimensions of ONNX: input (T, B, I),
// states (D, B, H), output (T, D, B, H), after which it may go on with the last state and, of an
// LSTM, the last cell.
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

#include <float.h>

enum {
    MOST = 1 << 17, // entries of a vector: 2^17 * 127 * 127 < 2^31
    MOST_STATES = 2,
};

struct sizes {
    size_t steps, directions, batch, input, hidden;
    size_t gates;
    size_t states; // of the inputs after the first, and of the output after its T steps
};

static size_t gates_of(const struct n8_step *step) {
    return step->row.kind == N8_OP_LSTM ? 4 : step->row.kind == N8_OP_GRU ? 3 : 1;
}

static struct sizes sizes_of(const struct n8_model *model, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(model, step, 0);
    const struct n8_tensor *out = n8_output(model, step);
    return (struct sizes){
        .steps = (size_t)in->onnx_dims[0],
        .batch = (size_t)in->onnx_dims[1],
        .input = (size_t)in->onnx_dims[2],
        .directions = (size_t)out->onnx_dims[1],
        .hidden = (size_t)out->onnx_dims[3],
        .gates = gates_of(step),
        .states = step->row.kind == N8_OP_LSTM ? 2 : 1,
    };
}

static size_t rows_of(const struct sizes *s) {
    return s->directions * s->gates * s->hidden;
}

static size_t weights_of(const struct sizes *s) {
    return rows_of(s) * (s->input + s->hidden);
}

static enum n8_status check(struct n8_reader *reader, const struct n8_step *step) {
    const struct n8_tensor *in = n8_input(reader->model, step, 0);
    const struct n8_tensor *out = n8_output(reader->model, step);
    const struct sizes s = sizes_of(reader->model, step);
    const size_t rows = (size_t)out->onnx_dims[0];
    if (in->rank != 3 || out->rank != 4 || (rows != s.steps && rows != s.steps + s.states) ||
        (size_t)out->onnx_dims[2] != s.batch || s.directions > 2 || s.input > MOST ||
        s.hidden > MOST || (uint64_t)rows_of(&s) * (s.input + s.hidden) > INT32_MAX) {
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

// Packed: the weights of all rows, [D][G * H][I + H]; then their scales, of W and of R, and
// their biases, of W and of R, both [D][G * H][2]; the options and the numbers of their
// functions.
struct matrices {
    const int8_t *weights;
    const float *scales, *bias;
    const struct options *options; // or NULL
    const float *peepholes;
    const int32_t *functions;
};

static struct matrices matrices_of(const struct n8_step *step, const struct sizes *s) {
    const int8_t *weights = step->packed;
    const float *scales =
        (const float *)(const void *)(weights + n8_round_up(weights_of(s), sizeof(float)));
    struct matrices m = {.weights = weights, .scales = scales, .bias = scales + 2 * rows_of(s)};
    if (has_options(step)) {
        const float *options = scales + 4 * rows_of(s);
        m.options = (const struct options *)(const void *)options;
        m.peepholes = options + sizeof(struct options) / sizeof(float);
        m.functions = (const int32_t *)(const void *)(options + options_of(step, s));
    }
    return m;
}

// What one sequence in one direction needs, for one thread.
struct work {
    float *gates;  // [2][G * H]: what W and R add up to
    float *state;  // [H]
    float *cell;   // [H]
    float *vector; // [max(I, H)]
    int8_t *bytes; // [max(I, H)]
};

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static enum n8_status plan(struct n8_reader *reader, struct n8_step *step) {
    const struct sizes s = sizes_of(reader->model, step);
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
    const size_t floats = 2 * s.gates * s.hidden + 2 * s.hidden + larger(s.input, s.hidden);
    step->units = s.batch * s.directions;
    step->packed_size =
        n8_round_up(weights_of(&s), sizeof(float)) + 2 * pairs * sizeof(float) + more;
    step->scratch_size = floats * sizeof(float) + larger(s.input, s.hidden);
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
                                   const struct sizes *s, float *memory) {
    const size_t count = options_of(step, s);
    memcpy(memory, step->arrays[4], count * sizeof *memory);
    memcpy(memory + count, step->arrays[3], FORMS * sizeof(int32_t));
    const struct matrices m = matrices_of(step, s);
    return options_ok(&m, count)
               ? N8_OK
               : n8_malformed(reader, "its activations, clip or peepholes are wrong");
}

static enum n8_status pack(struct n8_reader *reader, struct n8_step *step, void *memory) {
    const struct sizes s = sizes_of(reader->model, step);
    const size_t pairs = 2 * rows_of(&s);
    int8_t *weights = memory;
    float *scales = (float *)(void *)(weights + n8_round_up(weights_of(&s), sizeof(float)));
    memcpy(weights, step->arrays[0], weights_of(&s));
    memcpy(scales, step->arrays[1], pairs * sizeof(float));
    memcpy(scales + pairs, step->arrays[2], pairs * sizeof(float));
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
    for (size_t i = 0; i < pairs; i++) {
        if (!n8_multiplier_ok(scales[i])) {
            return n8_malformed(reader, "a multiplier is neither 0 nor in 1e-30 .. 2^64");
        }
    }
    if (!n8_all_finite(scales + pairs, pairs)) {
        return n8_malformed(reader, "a float bias is not finite");
    }
    return has_options(step) ? pack_options(reader, step, &s, scales + 2 * pairs) : N8_OK;
}

// Quantizes a vector by its largest magnitude; its scale, 0 where all is below 1e-30.
static float quantize(int8_t *out, float *vector, size_t count) {
    float largest = 0.0f;
    for (size_t i = 0; i < count; i++) {
        const float v = vector[i] != vector[i] ? 0.0f : vector[i];
        vector[i] = v > FLT_MAX ? FLT_MAX : v < -FLT_MAX ? -FLT_MAX : v;
        const float size = fabsf(vector[i]);
        largest = size > largest ? size : largest;
    }
    if (largest < 1e-30f) {
        memset(out, 0, count);
        return 0.0f;
    }
    const float inverse = 127.0f / largest;
    for (size_t i = 0; i < count; i++) {
        const float q = rintf(vector[i] * inverse);
        out[i] = (int8_t)(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
    }
    return largest / 127.0f;
}

static int32_t dot(const int8_t *a, const int8_t *b, size_t count) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (int32_t)a[i] * b[i];
    }
    return sum;
}

// out[n] of rows [begin, end) = M v + bias; `which` is 0 for W and 1 for R.
static void multiply(float *out, const struct sizes *s, const struct matrices *m, size_t direction,
                     size_t which, size_t begin, size_t end, const int8_t *vector, float scale) {
    const size_t count = which == 0 ? s->input : s->hidden;
    const size_t offset = which == 0 ? 0 : s->input;
    for (size_t n = begin; n < end; n++) {
        const size_t row = direction * s->gates * s->hidden + n;
        const int8_t *weights = m->weights + row * (s->input + s->hidden) + offset;
        const float product =
            (float)dot(weights, vector, count) * (scale * m->scales[2 * row + which]);
        out[n] = product + m->bias[2 * row + which];
    }
}

// Once in the library, not once for each gate: what takes time is in them.
static __attribute__((noinline)) double sigmoid(double x) {
    return n8_sigmoid(x);
}

static __attribute__((noinline)) double hyperbolic(double x) {
    return n8_tanh(x);
}

// The activation of a gate: the one of the options, or a sigmoid, or a hyperbolic tangent.
static __attribute__((noinline)) float activated(const struct matrices *m, size_t which, float x,
                                                 double (*plain)(double)) {
    if (m->options == NULL) {
        return (float)plain((double)x);
    }
    const struct form *form = &m->options->forms[which];
    const double clip = (double)m->options->clip;
    double v = (double)x;
    if (which < 2) { // the cell is not clipped
        v = v < -clip ? -clip : v > clip ? clip : v;
    }
    v = (double)form->factor * v + (double)form->shift;
    const int32_t name = m->functions[which];
    v = name == N8_FUNCTION_SIGMOID ? sigmoid(v) : name == N8_FUNCTION_TANH ? hyperbolic(v) : v;
    v = v<(double)form->lo ? (double)form->lo : v>(double) form->hi ? (double)form->hi : v;
    return (float)v;
}

// The next state from x W + b and h R + b, gates z, r, h.
static void gru(const struct n8_step *step, const struct sizes *s, const struct matrices *m,
                size_t direction, const struct work *w) {
    const size_t size = s->hidden;
    const float *x = w->gates;
    float *r = w->gates + s->gates * size;
    const bool before = (step->row.flags & N8_OP_LINEAR_BEFORE_RESET) != 0;
    if (!before) { // R multiplies the state that the reset gate has scaled
        for (size_t i = 0; i < size; i++) {
            w->vector[i] = activated(m, 0, x[size + i] + r[size + i], sigmoid) * w->state[i];
        }
        const float scale = quantize(w->bytes, w->vector, size);
        multiply(r, s, m, direction, 1, 2 * size, 3 * size, w->bytes, scale);
    }
    for (size_t i = 0; i < size; i++) {
        const float update = activated(m, 0, x[i] + r[i], sigmoid);
        const float reset = before ? activated(m, 0, x[size + i] + r[size + i], sigmoid) : 1.0f;
        const float made = activated(m, 1, x[2 * size + i] + reset * r[2 * size + i], hyperbolic);
        w->state[i] = (1.0f - update) * made + update * w->state[i];
    }
}

// What peephole `i` adds to a gate: nothing, not even a zero, where there are none.
static float peeped(float sum, const float *peepholes, size_t i, float cell) {
    return peepholes == NULL ? sum : sum + peepholes[i] * cell;
}

// Gates i, o, f, c.
static void lstm(const struct sizes *s, const struct matrices *m, size_t direction,
                 const struct work *w) {
    const size_t size = s->hidden;
    const float *x = w->gates;
    const float *r = w->gates + s->gates * size;
    const float *p = m->options == NULL ? NULL : m->peepholes + 3 * size * direction;
    for (size_t i = 0; i < size; i++) {
        const float cell = w->cell[i];
        const float in = activated(m, 0, peeped(x[i] + r[i], p, i, cell), sigmoid);
        const float forget = activated(
            m, 0, peeped(x[2 * size + i] + r[2 * size + i], p, 2 * size + i, cell), sigmoid);
        const float made = activated(m, 1, x[3 * size + i] + r[3 * size + i], hyperbolic);
        w->cell[i] = forget * cell + in * made;
        const float out =
            activated(m, 0, peeped(x[size + i] + r[size + i], p, size + i, w->cell[i]), sigmoid);
        w->state[i] = out * activated(m, 2, w->cell[i], hyperbolic);
    }
}

static void rnn(const struct sizes *s, const struct matrices *m, const struct work *w) {
    for (size_t i = 0; i < s->hidden; i++) {
        w->state[i] = activated(m, 0, w->gates[i] + w->gates[s->hidden + i], hyperbolic);
    }
}

// The H values of (row, direction, batch) of the output: N, C, H, W of the model's tensor.
static void put(const struct n8_session *session, const struct n8_step *step, const struct sizes *s,
                size_t row, size_t direction, size_t batch, const float *values) {
    for (size_t i = 0; i < s->hidden; i++) {
        const size_t pixel = (row * s->batch + batch) * s->hidden + i;
        ((float *)n8_out_pixel(session, step, pixel))[direction] = n8_one_nan(values[i]);
    }
}

// The values of (row, batch) of an input of three dimensions.
static void get(float *values, size_t count, const struct n8_session *session,
                const struct n8_step *step, size_t index, size_t row, size_t batch) {
    for (size_t i = 0; i < count; i++) {
        values[i] = ((const float *)n8_in_pixel(session, step, index, row * count + i))[batch];
    }
}

static void run_sequence(const struct n8_session *session, const struct n8_step *step,
                         const struct sizes *s, size_t direction, size_t batch,
                         const struct work *w) {
    const struct matrices m = matrices_of(step, s);
    const size_t rows = s->gates * s->hidden;
    const bool backwards = direction == 1 || (step->row.flags & N8_OP_REVERSE) != 0;
    float *const states[MOST_STATES] = {w->state, w->cell};
    for (size_t i = 0; i < s->states; i++) {
        memset(states[i], 0, s->hidden * sizeof(float));
        if (step->row.input_count > 1) {
            get(states[i], s->hidden, session, step, 1 + i, direction, batch);
        }
    }
    for (size_t t = 0; t < s->steps; t++) {
        const size_t at = backwards ? s->steps - 1 - t : t;
        get(w->vector, s->input, session, step, 0, at, batch);
        float scale = quantize(w->bytes, w->vector, s->input);
        multiply(w->gates, s, &m, direction, 0, 0, rows, w->bytes, scale);
        memcpy(w->vector, w->state, s->hidden * sizeof(float));
        scale = quantize(w->bytes, w->vector, s->hidden);
        multiply(w->gates + rows, s, &m, direction, 1, 0, rows, w->bytes, scale);
        switch (step->row.kind) {
        case N8_OP_GRU:
            gru(step, s, &m, direction, w);
            break;
        case N8_OP_LSTM:
            lstm(s, &m, direction, w);
            break;
        default:
            rnn(s, &m, w);
        }
        put(session, step, s, at, direction, batch, w->state);
    }
    const bool all = (size_t)n8_output(session->model, step)->onnx_dims[0] > s->steps;
    for (size_t i = 0; all && i < s->states; i++) {
        put(session, step, s, s->steps + i, direction, batch, states[i]);
    }
}

// A unit is one sequence of the batch in one direction.
static void run(const struct n8_session *session, const struct n8_step *step, size_t begin,
                size_t end, void *scratch) {
    const struct sizes s = sizes_of(session->model, step);
    struct work w = {.gates = scratch};
    w.state = w.gates + 2 * s.gates * s.hidden;
    w.cell = w.state + s.hidden;
    w.vector = w.cell + s.hidden;
    w.bytes = (int8_t *)(void *)(w.vector + larger(s.input, s.hidden));
    for (size_t unit = begin; unit < end; unit++) {
        run_sequence(session, step, &s, unit % s.directions, unit / s.directions, &w);
    }
}

// What all of them say of themselves.
#define OPERATOR                                                                                   \
    .types = {N8_TYPE_F32, N8_TYPE_F32}, .check = check, .plan = plan, .pack = pack, .run = run,   \
    .fields = N8_FIELD_MATRICES | N8_FIELD_RECURRENT | N8_FIELD_INDICES | N8_FIELD_VALUES,         \
    .placing = N8_READS_SLICES | N8_WRITES_SLICES

const struct n8_operator n8_op_gru = {OPERATOR, .name = "gru", .inputs = {1, 2}};
const struct n8_operator n8_op_lstm = {OPERATOR, .name = "lstm", .inputs = {1, 3}};
const struct n8_operator n8_op_rnn = {OPERATOR, .name = "rnn", .inputs = {1, 2}};
