// SPDX-License-Identifier: Apache-2.0
//
// A function of each value, (22): a tree of those in enum n8_function, in postfix order,
// computed in double on blocks of values and rounded to float32 once.
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

enum {
    BLOCK = 64,
    LARGEST_EXPONENT = 64, // of those that are computed by multiplication
};

struct function {
    int32_t names[N8_FUNCTION_MOST];
    float parameters[N8_FUNCTION_MOST][2];
    size_t size;  // names in use
    size_t depth; // values on the stack, at most
};

// How many values a function takes, and how many parameters it has; -1: it is none.
static int arguments_of(int32_t name) {
    if (name == N8_FUNCTION_X || name == N8_FUNCTION_CONSTANT) {
        return 0;
    }
    if (N8_FUNCTION_ADD <= name && name <= N8_FUNCTION_DIVIDE) {
        return 2;
    }
    const bool late =
        name == N8_FUNCTION_SINE || name == N8_FUNCTION_ARCTANGENT || name == N8_FUNCTION_NARROW;
    return late || (N8_FUNCTION_ABSOLUTE <= name && name <= N8_FUNCTION_ROUND) ? 1 : -1;
}

static int parameters_of(int32_t name) {
    switch (name) {
    case N8_FUNCTION_CONSTANT:
    case N8_FUNCTION_POWER:
    case N8_FUNCTION_ELU:
    case N8_FUNCTION_LEAKY:
    case N8_FUNCTION_THRESHOLD:
        return 1;
    case N8_FUNCTION_CLIP:
    case N8_FUNCTION_NARROW:
        return 2;
    default:
        return 0;
    }
}

// False unless the names take one value and leave one.
static bool well_formed(struct function *f) {
    size_t depth = 0;
    for (; f->size < N8_FUNCTION_MOST && f->names[f->size] != N8_FUNCTION_NONE; f->size++) {
        const int arguments = arguments_of(f->names[f->size]);
        if (arguments < 0 || (size_t)arguments > depth) {
            return false;
        }
        depth = depth + 1 - (size_t)arguments;
        f->depth = depth > f->depth ? depth : f->depth;
    }
    for (size_t i = f->size; i < N8_FUNCTION_MOST; i++) {
        if (f->names[i] != N8_FUNCTION_NONE) {
            return false;
        }
    }
    return depth == 1;
}

// Finite, but for the bounds of a clip; 0 where there is none.
static bool parameters_ok(const struct function *f) {
    for (size_t i = 0; i < N8_FUNCTION_MOST; i++) {
        const float *p = f->parameters[i];
        const int count = parameters_of(f->names[i]);
        if (f->names[i] == N8_FUNCTION_NARROW) {
            if (!(p[0] >= 1.0f && p[0] <= 24.0f && p[1] >= -149.0f && p[1] <= 127.0f)) {
                return false;
            }
        } else if (f->names[i] == N8_FUNCTION_CLIP
                       ? !(p[0] <= p[1])
                       : !n8_all_finite(p, 2) || p[1] != 0.0f || (count == 0 && p[0] != 0.0f)) {
            return false;
        }
    }
    return true;
}

enum n8_status n8_plan_unary(struct n8_reader *reader, struct n8_step *step) {
    const struct n8_file_op *row = &step->row;
    N8_TRY(
        n8_read_array(reader, row->indices, N8_FUNCTION_MOST, sizeof(int32_t), &step->arrays[0]));
    N8_TRY(n8_read_array(reader, row->values, 2 * (size_t)N8_FUNCTION_MOST, sizeof(float),
                         &step->arrays[1]));
    struct function f = {.size = 0};
    memcpy(f.names, step->arrays[0], sizeof f.names);
    memcpy(f.parameters, step->arrays[1], sizeof f.parameters);
    if (!well_formed(&f)) {
        return n8_malformed(reader, "its function is not well formed");
    }
    if (!parameters_ok(&f)) {
        return n8_malformed(reader, "a parameter of its function is wrong");
    }
    step->packed_size = sizeof f;
    step->scratch_size = f.depth * BLOCK * sizeof(double);
    return N8_OK;
}

enum n8_status n8_pack_unary(struct n8_reader *reader, struct n8_step *step, void *memory) {
    struct function *f = memory;
    memcpy(f->names, step->arrays[0], sizeof f->names);
    memcpy(f->parameters, step->arrays[1], sizeof f->parameters);
    (void)well_formed(f); // which it is: counts them again
    return N8_OK;
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)
static double softplus(double x) {
    return (x > 0.0 ? x : 0.0) + n8_log1p(n8_exp(x < 0.0 ? x : -x));
}

// By multiplication, by roots, else e^(exponent * ln x).
double n8_power(double x, double exponent) {
    const double size = fabs(exponent);
    double result = 1.0;
    if (size == rint(size) && size <= (double)LARGEST_EXPONENT) {
        for (int i = 0; i < (int)size; i++) {
            result = result * x;
        }
    } else {
        result = size == 0.5 ? sqrt(x) : n8_exp(size * n8_log(x));
    }
    return exponent < 0.0 ? 1.0 / result : result;
}

// Rounded half to even; both parameters are cut off.
static double narrow(double x, int bits, int least) {
    int exponent;
    if (!isfinite(x)) {
        return x;
    }
    (void)frexp(x, &exponent);
    exponent = (exponent - 1 > least ? exponent - 1 : least) + 1 - bits;
    return ldexp(rint(ldexp(x, -exponent)), exponent);
}

#define EACH(value)                                                                                \
    for (size_t i = 0; i < count; i++) {                                                           \
        const double x = a[i];                                                                     \
        a[i] = (value);                                                                            \
    }                                                                                              \
    break

// a[i] = name(a[i])
static void apply_one(int32_t name, const float *parameters, double *a, size_t count) {
    const double p = (double)parameters[0];
    const double q = (double)parameters[1];
    switch (name) {
    case N8_FUNCTION_ABSOLUTE:
        EACH(fabs(x));
    case N8_FUNCTION_EXP:
        n8_exp_all(a, count);
        break;
    case N8_FUNCTION_LOG:
        EACH(n8_log(x));
    case N8_FUNCTION_SQRT:
        EACH(sqrt(x));
    case N8_FUNCTION_POWER:
        EACH(n8_power(x, p));
    case N8_FUNCTION_ERF:
        EACH(n8_erf(x));
    case N8_FUNCTION_SIGMOID:
        n8_sigmoid_all(a, count);
        break;
    case N8_FUNCTION_TANH:
        n8_tanh_all(a, count);
        break;
    case N8_FUNCTION_SOFTPLUS:
        EACH(x != x ? x : softplus(x));
    case N8_FUNCTION_ELU:
        EACH(x < 0.0 ? p * n8_expm1(x) : x);
    case N8_FUNCTION_LEAKY:
        EACH(x < 0.0 ? x * p : x);
    case N8_FUNCTION_CLIP:
        EACH(x < p ? p : x > q ? q : x);
    case N8_FUNCTION_THRESHOLD:
        EACH(x > p ? x : 0.0);
    case N8_FUNCTION_FLOOR:
        EACH(floor(x));
    case N8_FUNCTION_CEIL:
        EACH(ceil(x));
    case N8_FUNCTION_SINE:
        EACH(n8_sine(x));
    case N8_FUNCTION_ARCTANGENT:
        EACH(n8_arctangent(x));
    case N8_FUNCTION_NARROW:
        EACH(narrow(x, (int)p, (int)q));
    default: // N8_FUNCTION_ROUND
        EACH(rint(x));
    }
}

#undef EACH
#define EACH(operation)                                                                            \
    for (size_t i = 0; i < count; i++) {                                                           \
        a[i] = a[i] operation b[i];                                                                \
    }                                                                                              \
    break

// a[i] = name(a[i], b[i])
static void apply_two(int32_t name, double *a, const double *b, size_t count) {
    switch (name) {
    case N8_FUNCTION_ADD:
        EACH(+);
    case N8_FUNCTION_SUBTRACT:
        EACH(-);
    case N8_FUNCTION_MULTIPLY:
        EACH(*);
    default: // N8_FUNCTION_DIVIDE
        EACH(/);
    }
}

static void apply(const struct function *f, float *out, const float *in, size_t count,
                  double *stack) {
    double *top = stack; // the first free place
    for (size_t n = 0; n < f->size; n++) {
        const int32_t name = f->names[n];
        if (name == N8_FUNCTION_X) {
            n8_to_double_all(top, in, count);
            top += BLOCK;
        } else if (name == N8_FUNCTION_CONSTANT) {
            for (size_t i = 0; i < count; i++) {
                top[i] = (double)f->parameters[n][0];
            }
            top += BLOCK;
        } else if (arguments_of(name) == 1) {
            apply_one(name, f->parameters[n], top - BLOCK, count);
        } else {
            top -= BLOCK;
            apply_two(name, top - BLOCK, top, count);
        }
    }
    n8_to_float_all(out, stack, count);
}

void n8_run_unary(const struct n8_session *session, const struct n8_step *step, size_t begin,
                  size_t end, void *scratch) {
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    const struct function *f = step->packed;
    const int32_t of_x = f->size == 2 && f->names[0] == N8_FUNCTION_X ? f->names[1] : N8_FUNCTION_X;
    for (size_t p = begin; p < end; p += stretch.pixels) {
        const float *in = n8_in_pixel(session, step, 0, p);
        float *out = n8_out_pixel(session, step, p);
        if (of_x == N8_FUNCTION_SIGMOID || of_x == N8_FUNCTION_TANH) {
            n8_sigmoid_or_tanh(out, in, stretch.count, of_x == N8_FUNCTION_TANH);
            continue;
        }
        for (size_t i = 0; i < stretch.count; i += BLOCK) {
            const size_t left = stretch.count - i;
            apply(f, out + i, in + i, n8_smaller(left, BLOCK), scratch);
        }
    }
}

const struct n8_operator n8_op_unary = {
    .name = "unary",
    .types = {N8_TYPE_F32, N8_TYPE_F32},
    .inputs = {1, 1},
    .same_shape = true,
    .fields = N8_FIELD_INDICES | N8_FIELD_VALUES,
    .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_OVER_FIRST,
};
