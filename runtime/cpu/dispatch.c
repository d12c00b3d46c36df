// SPDX-License-Identifier: Apache-2.0
#include "dispatch.h"

#include "cpu.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

// What the C kernels, the packing and N8_SLACK rely on.
#define RUNS_CHANNELS       1 // of kr in a step
#define RUNS_CHANNELS_BY_4  4
#define RUNS_GROUPS         1
#define RUNS_GROUPS_BY_4    4
#define RUNS_BOTH           1
#define RUNS_WINDOWS        1
#define RUNS_WINOGRAD       2
#define RUNS_WINOGRAD_PAIRS 1
#define N8_KERNEL(slot, suffix)
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)                                   \
    _Static_assert((mr) >= 1 && (mr) <= N8_MAX_MR && (nr) >= 1 && (nr) <= N8_MAX_NR, #slot);       \
    _Static_assert((kr) >= 1 && ((kr) & ((kr) - 1)) == 0 && RUNS_##packing * (kr) <= N8_MAX_STEP,  \
                   #slot);                                                                         \
    _Static_assert(N8_PACKING_##packing != N8_PACKING_GROUPS || (kr) == 2 * N8_BLOCK, #slot);      \
    _Static_assert(N8_PACKING_##packing != N8_PACKING_BOTH || ((mr) == 8 && (kr) == 8), #slot);    \
    _Static_assert(N8_PACKING_##packing != N8_PACKING_WINOGRAD || ((mr) % 2 == 0 && (kr) == 4),    \
                   #slot);                                                                         \
    _Static_assert(                                                                                \
        N8_PACKING_##packing != N8_PACKING_WINOGRAD_PAIRS || ((mr) % 4 == 0 && (kr) == 8), #slot);
#define N8_DEPTHWISE(slot, level, variant, block, height, width, ratio, outputs, core)             \
    _Static_assert((block) % 8 == 0 && (block) >= 8 && (block) <= N8_SLACK, #slot);                \
    _Static_assert((outputs) == 1 || ((outputs) == 2 && (height) > 0 && (ratio) > 0), #slot);
#define N8_WINOGRAD(slot, level, variant, width, core)                                             \
    _Static_assert((width) % 8 == 0 && (width) >= 8 && (width) <= N8_MAX_NR, #slot);
#include "kernels.inc"
_Static_assert((int)N8_MAX_STEP <= N8_SLACK && (int)N8_MAX_NR <= N8_SLACK, "read past a tensor");

// The symbols of all rows.
static const struct names {
#define N8_KERNEL(slot, suffix)
#define N8_PART(slot, level)
#define N8_NAME(slot, level, variant)                                                              \
    char slot##_##level##variant[sizeof "n8_" #slot "_" #level #variant];
#define N8_GEMM(slot, level, variant, ...)      N8_NAME(slot, level, variant)
#define N8_DEPTHWISE(slot, level, variant, ...) N8_NAME(slot, level, variant)
#define N8_WINOGRAD(slot, level, variant, ...)  N8_NAME(slot, level, variant)
#include "kernels.inc"
#undef N8_NAME
} NAMES = {
#define N8_KERNEL(slot, suffix)
#define N8_PART(slot, level)
#define N8_NAME(slot, level, variant)           "n8_" #slot "_" #level #variant,
#define N8_GEMM(slot, level, variant, ...)      N8_NAME(slot, level, variant)
#define N8_DEPTHWISE(slot, level, variant, ...) N8_NAME(slot, level, variant)
#define N8_WINOGRAD(slot, level, variant, ...)  N8_NAME(slot, level, variant)
#include "kernels.inc"
#undef N8_NAME
};

const char *n8_conv_row_name(const struct n8_conv_row *row) {
    return (const char *)&NAMES + row->name;
}

const struct n8_conv_row n8_conv_rows[] = {
#define N8_KERNEL(slot, suffix)
#define N8_GEMM(slot_, level_, variant, mr_, nr_, kr_, packing_, core_)                            \
    {.name = offsetof(struct names, slot_##_##level_##variant),                                    \
     .kind = N8_CONV_IGEMM,                                                                        \
     .slot = N8_SLOT_##slot_,                                                                      \
     .level = N8_LEVEL_##level_,                                                                   \
     .core = N8_CORE_##core_,                                                                      \
     .igemm = n8_##slot_##_##level_##variant,                                                      \
     .tile = {.mr = mr_, .nr = nr_, .kr = kr_, .packing = N8_PACKING_##packing_}},
#define N8_DEPTHWISE(slot_, level_, variant, block_, height_, width_, ratio_, outputs_, core_)     \
    {.name = offsetof(struct names, slot_##_##level_##variant),                                    \
     .kind = N8_CONV_DEPTHWISE,                                                                    \
     .slot = N8_SLOT_##slot_,                                                                      \
     .level = N8_LEVEL_##level_,                                                                   \
     .core = N8_CORE_##core_,                                                                      \
     .depthwise = n8_##slot_##_##level_##variant,                                                  \
     .block = block_,                                                                              \
     .height = height_,                                                                            \
     .width = width_,                                                                              \
     .ratio = ratio_,                                                                              \
     .outputs = outputs_},
#define N8_PART(slot, level)
#define N8_WINOGRAD(slot_, level_, variant, width_, core_)                                         \
    {.name = offsetof(struct names, slot_##_##level_##variant),                                    \
     .kind = N8_CONV_WINOGRAD16,                                                                   \
     .slot = N8_SLOT_##slot_,                                                                      \
     .level = N8_LEVEL_##level_,                                                                   \
     .core = N8_CORE_##core_,                                                                      \
     .winograd16 = &(const struct n8_winograd16){n8_winograd_input_s8_##level_,                    \
                                                 n8_##slot_##_##level_##variant,                   \
                                                 n8_winograd_output_s8_##level_},                  \
     .tile = {.nr = width_}},
#include "kernels.inc"
};

const size_t n8_conv_row_count = sizeof n8_conv_rows / sizeof n8_conv_rows[0];

static enum n8_status resolve(enum n8_isa isa, enum n8_isa *out) {
    if (isa == N8_ISA_AUTO) {
        const char *wanted = getenv("N8_ISA");
        isa = wanted == NULL || wanted[0] == '\0' ? n8_cpu_best() : n8_cpu_level(wanted);
    }
    if (!n8_cpu_has(isa)) {
        return N8_E_UNSUPPORTED;
    }
    *out = isa;
    return N8_OK;
}

enum n8_status n8_kernels_select(enum n8_isa isa, struct n8_kernels *out) {
    memset(out, 0, sizeof *out);
    N8_TRY(resolve(isa, &out->isa));
    const struct {
#define N8_LEVEL(name, number, march, check) bool name;
#include "levels.inc"
    } serves = {
#define N8_LEVEL(name, number, march, check) n8_serves(number, out->isa),
#include "levels.inc"
    };
    out->core = n8_cpu_core();
    out->cache = n8_cpu_cache();
    out->gemm = n8_winograd_gemm_s32_c;
    out->gemm_name = "n8_winograd_gemm_s32_c";
    out->gemm_width = 16;
#define N8_GEMM(slot, level, variant, mr, nr, kr, packing, core)
#define N8_DEPTHWISE(slot, level, variant, block, height, width, ratio, outputs, core)
#define N8_PART(slot, level)
#define N8_WINOGRAD(slot, level, variant, width, core_)                                            \
    if (serves.level && (N8_CORE_##core_ == N8_CORE_ANY || N8_CORE_##core_ == out->core)) {        \
        out->gemm = n8_##slot##_##level##variant;                                                  \
        out->gemm_name = "n8_" #slot "_" #level #variant;                                          \
        out->gemm_width = width;                                                                   \
    }
#define N8_KERNEL(slot, level)                                                                     \
    if (serves.level) {                                                                            \
        out->slot = n8_##slot##_##level;                                                           \
        out->slot##_name = "n8_" #slot "_" #level;                                                 \
    }
#include "kernels.inc"
    return N8_OK;
}
