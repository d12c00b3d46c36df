// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <string.h>

// A piece at a time, since `out` may be the residual.
void n8_output_s32_s16_c(const struct n8_output_args *args) {
    enum { PIECE = 64 };
    const struct n8_bounds limits = n8_bounds_of(args->zero_point, args->lo, args->hi);
    const float scale = args->residual_scale;
    const int32_t zero_point = args->residual_zero_point;
    for (size_t p = 0; p < args->pixels; p++) {
        const ptrdiff_t at = (ptrdiff_t)p;
        const char *sums = (const char *)args->sums + at * args->sums_stride;
        const char *residual = (const char *)args->residual;
        residual = residual ? residual + at * args->residual_stride : NULL;
        char *out = (char *)args->out + at * args->out_stride;
        for (size_t done = 0; done < args->channels; done += PIECE) {
            const size_t rest = args->channels - done;
            const size_t count = rest < PIECE ? rest : PIECE;
            uint32_t acc[PIECE];
            int16_t added[PIECE], q[PIECE];
            float v[PIECE];
            memcpy(acc, sums + done * sizeof *acc, count * sizeof *acc);
            for (size_t i = 0; args->bias && i < count; i++)
                acc[i] += (uint32_t)args->bias[done + i];
            for (size_t i = 0; i < count; i++)
                v[i] = (float)(int32_t)acc[i] * args->multiplier[done + i];
            if (residual) {
                memcpy(added, residual + done * sizeof *added, count * sizeof *added);
                for (size_t i = 0; i < count; i++)
                    v[i] = v[i] + (float)(added[i] - zero_point) * scale;
            }
            for (size_t i = 0; args->slope && i < count; i++)
                v[i] = n8_leaky(v[i], args->slope[done + i]);
            for (size_t i = 0; i < count; i++)
                q[i] = n8_round_s16(v[i], limits);
            memcpy(out + done * sizeof *q, q, count * sizeof *q);
        }
    }
}
