// SPDX-License-Identifier: Apache-2.0
//
// Integers of 32 bits, value by value, (27).
#include "step.h"

// Towards 0, saturating; NaN gives 0. The largest float below 2^31 is 2^31 - 128.
static int32_t truncated(float x) {
    if (!(x > -0x1p31f)) {
        return x != x ? 0 : INT32_MIN;
    }
    return x < 0x1p31f ? (int32_t)x : INT32_MAX;
}

// A unit is a pixel.
void n8_run_to_integer(const struct n8_session *session, const struct n8_step *step, size_t begin,
                       size_t end, void *scratch) {
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        const float *from = n8_in_pixel(session, step, 0, p);
        int32_t *to = n8_out_pixel(session, step, p);
        for (size_t i = 0; i < stretch.count; i++) {
            const float x = from[i];
            to[i] = truncated(x);
        }
    }
}

void n8_run_to_float(const struct n8_session *session, const struct n8_step *step, size_t begin,
                     size_t end, void *scratch) {
    const struct n8_stretch stretch = n8_stretch_of(session->model, step, end - begin);
    for (size_t p = begin; p < end; p += stretch.pixels) {
        const int32_t *from = n8_in_pixel(session, step, 0, p);
        float *to = n8_out_pixel(session, step, p);
        for (size_t i = 0; i < stretch.count; i++) {
            to[i] = (float)from[i];
        }
    }
}

#define CONVERSION(symbol, in_type, out_type)                                                      \
    const struct n8_operator n8_op_##symbol = {                                                    \
        .name = #symbol,                                                                           \
        .types = {in_type, out_type},                                                              \
        .inputs = {1, 1},                                                                          \
        .same_shape = true,                                                                        \
        .placing = N8_READS_SLICES | N8_WRITES_SLICES | N8_READS_EXACTLY,                          \
    }

CONVERSION(to_integer, N8_TYPE_F32, N8_TYPE_S32);
CONVERSION(to_float, N8_TYPE_S32, N8_TYPE_F32);
