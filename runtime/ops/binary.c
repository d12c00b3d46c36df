// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of two tensors, broadcast as ONNX does: of float32, (22), and of integers, and their
// comparison, (27).
#include "ref/elementary.h"
#include "ref/floats.h"
#include "size.h"
#include "step.h"

enum n8_status n8_check_binary(struct n8_reader *reader, const struct n8_step *step) {
    const uint32_t function = step->row.function;
    if (function != N8_FUNCTION_PRELU && function != N8_FUNCTION_MINIMUM &&
        function != N8_FUNCTION_MAXIMUM && function != N8_FUNCTION_POWER &&
        function != N8_FUNCTION_REMAINDER && function != N8_FUNCTION_MODULO &&
        (function < N8_FUNCTION_ADD || function > N8_FUNCTION_DIVIDE)) {
        return n8_malformed(reader, "its function does not take two values");
    }
    return n8_check_broadcast(reader, step);
}

// The rest of a division towards -infinity.
static float modulo(float x, float y) {
    const float rest = fmodf(x, y);
    return rest != 0.0f && (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
}

enum { BLOCK = 32 }; // values at once, which compilers make vectors of

#define EACH(limit, value)                                                                         \
    for (size_t i = 0; i < (limit); i++) {                                                         \
        const float x = a[i], y = b[i];                                                            \
        out[i] = n8_one_nan(value);                                                                \
    }                                                                                              \
    break

// The first `count` values, and of what is cheap those that follow in the block, too.
static void combine(uint32_t function, float *restrict out, const float *restrict a,
                    const float *restrict b, size_t count) {
    switch (function) {
    case N8_FUNCTION_ADD:
        EACH(BLOCK, x + y);
    case N8_FUNCTION_SUBTRACT:
        EACH(BLOCK, x - y);
    case N8_FUNCTION_MULTIPLY:
        EACH(BLOCK, x * y);
    case N8_FUNCTION_DIVIDE:
        EACH(count, x / y);
    case N8_FUNCTION_MINIMUM:
        EACH(BLOCK, x != x || x < y ? x : y);
    case N8_FUNCTION_MAXIMUM:
        EACH(BLOCK, x != x || x > y ? x : y);
    case N8_FUNCTION_POWER:
        EACH(count, (float)n8_power((double)x, (double)y));
    case N8_FUNCTION_REMAINDER:
        EACH(count, fmodf(x, y));
    case N8_FUNCTION_MODULO:
        EACH(count, modulo(x, y));
    default: // N8_FUNCTION_PRELU
        EACH(BLOCK, x < 0.0f ? x * y : x);
    }
}

static void copy(float *to, const float *from, size_t step, size_t count) {
    if (step == 1 && count == BLOCK) {
        memcpy(to, from, BLOCK * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i * step];
    }
}

static void combine_floats(const struct n8_step *step, void *out, const void *const *operands,
                           const size_t *steps, size_t count) {
    const float *a = operands[0], *b = operands[1];
    float *to = out, x[BLOCK] = {0}, y[BLOCK] = {0}, z[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t some = n8_smaller(count - i, BLOCK);
        copy(x, a + i * steps[0], steps[0], some);
        copy(y, b + i * steps[1], steps[1], some);
        combine(step->row.function, z, x, y, some);
        memcpy(to + i, z, some * sizeof *z);
    }
}

void n8_run_binary(const struct n8_session *session, const struct n8_step *step, size_t begin,
                   size_t end, void *scratch) {
    n8_run_broadcast(session, step, begin, end, combine_floats);
}

enum n8_status n8_check_compare(struct n8_reader *reader, const struct n8_step *step) {
    if (step->row.function < N8_FUNCTION_EQUAL || step->row.function > N8_FUNCTION_LESS_EQUAL) {
        return n8_malformed(reader, "its function does not compare");
    }
    return n8_check_broadcast(reader, step);
}

static void compare(const struct n8_step *step, void *out, const void *const *operands,
                    const size_t *steps, size_t count) {
    const float *a = operands[0], *b = operands[1];
    int32_t *to = out;
    for (size_t i = 0; i < count; i++) {
        const float x = a[i * steps[0]], y = b[i * steps[1]];
        to[i] = step->row.function == N8_FUNCTION_EQUAL  ? x == y
                : step->row.function == N8_FUNCTION_LESS ? x < y
                                                         : x <= y;
    }
}

void n8_run_compare(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    n8_run_broadcast(session, step, begin, end, compare);
}

enum n8_status n8_check_integer(struct n8_reader *reader, const struct n8_step *step) {
    const uint32_t function = step->row.function;
    if ((function < N8_FUNCTION_ADD || function > N8_FUNCTION_ABSOLUTE) &&
        function != N8_FUNCTION_POWER && function != N8_FUNCTION_MINIMUM &&
        function != N8_FUNCTION_MAXIMUM &&
        (function < N8_FUNCTION_EQUAL || function > N8_FUNCTION_SHIFT_RIGHT)) {
        return n8_malformed(reader, "its function does not take two integers");
    }
    return n8_check_broadcast(reader, step);
}

// x to the power of y, modulo 2^32; what is below 1 is cut off towards 0.
static uint32_t whole_power(int32_t x, int32_t y) {
    if (y < 0) {
        return x == 1 || (x == -1 && y % 2 == 0) ? 1U : x == -1 ? UINT32_MAX : 0U;
    }
    uint32_t result = 1U;
    for (uint32_t factor = (uint32_t)x; y > 0; y /= 2) {
        result *= y % 2 != 0 ? factor : 1U;
        factor *= factor;
    }
    return result;
}

// The lower 32 bits of a function of integers. Where y is 0 there is neither a quotient nor a
// remainder.
static uint32_t of_integers(uint32_t function, int32_t x, int32_t y) {
    const uint32_t a = (uint32_t)x, b = (uint32_t)y;
    switch (function) {
    case N8_FUNCTION_ADD:
        return a + b;
    case N8_FUNCTION_SUBTRACT:
        return a - b;
    case N8_FUNCTION_MULTIPLY:
        return a * b;
    case N8_FUNCTION_DIVIDE:
        return y == 0 ? 0U : y == -1 ? 0U - a : (uint32_t)(x / y);
    case N8_FUNCTION_ABSOLUTE:
        return x < y ? b - a : a - b;
    case N8_FUNCTION_POWER:
        return whole_power(x, y);
    case N8_FUNCTION_MINIMUM:
        return x < y ? a : b;
    case N8_FUNCTION_MAXIMUM:
        return x > y ? a : b;
    case N8_FUNCTION_EQUAL:
        return x == y;
    case N8_FUNCTION_LESS:
        return x < y;
    case N8_FUNCTION_LESS_EQUAL:
        return x <= y;
    case N8_FUNCTION_AND:
        return a & b;
    case N8_FUNCTION_OR:
        return a | b;
    case N8_FUNCTION_XOR:
        return a ^ b;
    case N8_FUNCTION_SHIFT_LEFT:
        return b < 32U ? a << b : 0U;
    case N8_FUNCTION_SHIFT_RIGHT:
        return (uint32_t)(x >> (b < 32U ? b : 31U)); // copies of the sign come in
    default: { // N8_FUNCTION_REMAINDER, of the sign of x, and N8_FUNCTION_MODULO, of that of y
        const int32_t rest = y == 0 || y == -1 ? 0 : x % y;
        const bool other = function == N8_FUNCTION_MODULO && rest != 0 && (rest < 0) != (y < 0);
        return (uint32_t)rest + (other ? b : 0U);
    }
    }
}

static void combine_integers(const struct n8_step *step, void *out, const void *const *operands,
                             const size_t *steps, size_t count) {
    const int32_t *a = operands[0], *b = operands[1];
    uint32_t *to = out;
    for (size_t i = 0; i < count; i++) {
        to[i] = of_integers(step->row.function, a[i * steps[0]], b[i * steps[1]]);
    }
}

void n8_run_integer(const struct n8_session *session, const struct n8_step *step, size_t begin,
                    size_t end, void *scratch) {
    n8_run_broadcast(session, step, begin, end, combine_integers);
}

#define PAIRS(symbol, check_of, in_type, out_type, over)                                           \
    const struct n8_operator n8_op_##symbol = {                                                    \
        .name = #symbol,                                                                           \
        .types = {in_type, out_type},                                                              \
        .inputs = {2, 2},                                                                          \
        .fields = N8_FIELD_FUNCTION,                                                               \
        .placing = N8_READS_SLICES | N8_WRITES_SLICES | (over),                                    \
    }

PAIRS(binary, check, N8_TYPE_F32, N8_TYPE_F32, N8_OVER_FIRST | N8_OVER_SECOND);
PAIRS(compare, check_compare, N8_TYPE_F32, N8_TYPE_S32, 0);
PAIRS(integer, check_integer, N8_TYPE_S32, N8_TYPE_S32, N8_OVER_FIRST | N8_OVER_SECOND);
