// SPDX-License-Identifier: Apache-2.0
#include "choose.h"

#include <stdbool.h>

// Panels of channels that must read a tile of rows before packing them has paid: it takes about two
// cycles for each that one of them saves.
enum { PACKED_PANELS = 3 };

// One row kernel call for each row of outputs; what it cannot do is implicit GEMM's.
static bool is_depthwise(const struct n8_conv_facts *f) {
    return f->shape->groups == f->shape->in_channels &&
           f->shape->groups == f->shape->out_channels && f->epilogue->type == N8_TYPE_S8 &&
           f->epilogue->residual_scale == 0.0f && f->epilogue->fixed == NULL;
}

static enum n8_conv_slot igemm_slot(const struct n8_conv2d_epilogue *e) {
    if (e->type == N8_TYPE_S32 || e->fixed != NULL) {
        return N8_SLOT_igemm_s8_s32;
    }
    if (e->type == N8_TYPE_F32) {
        return N8_SLOT_igemm_s8_f32;
    }
    return e->residual_scale != 0.0f ? N8_SLOT_igemm_s8_s8_add : N8_SLOT_igemm_s8_s8;
}

// NULL, or why a depthwise row does not serve the layer. A kernel sees distances between
// pixels only, so a dilation that equals the stride is stride 1 to it.
static const char *refuse_depthwise(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    const struct n8_conv2d_shape *s = f->shape;
    if ((row->height != 0 && row->height != s->kernel_height) ||
        (row->width != 0 && row->width != s->kernel_width)) {
        return "for another kernel size";
    }
    if (row->ratio != 0 && (int64_t)row->ratio * s->dilation_width != s->stride_width) {
        return "for another stride";
    }
    if (row->outputs == 2 &&
        (s->out_height == 1 || (int64_t)row->ratio * s->dilation_height != s->stride_height)) {
        return "for two rows of outputs";
    }
    return NULL;
}

static const char *refuse_igemm(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (row->tile.mr == 1 && (f->shape->out_height != 1 || f->shape->out_width != 1)) {
        return "for a single pixel";
    }
    return NULL;
}

// NULL, or why a row does not serve such layers at all.
static const char *refuse(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (row->level > f->level) {
        return "of a level beyond the one allowed";
    }
    if (row->core != N8_CORE_ANY && row->core != f->core) {
        return "ordered for another core";
    }
    return row->depthwise != NULL ? refuse_depthwise(row, f) : refuse_igemm(row, f);
}

// NULL, or what of the certificate or the size such a layer lacks for a row that could serve it.
static const char *lack(const struct n8_conv_row *row, const struct n8_conv_facts *f) {
    if (row->products > f->certificate->int16_depth) {
        return "sums more products in int16 than were proved to fit";
    }
    const size_t channels = (size_t)(f->shape->out_channels / f->shape->groups);
    if (row->tile.packing == N8_PACKING_BOTH && channels < PACKED_PANELS * row->tile.nr) {
        return "packs rows, which does not pay for so few channels";
    }
    return NULL;
}

// What decided for a row, first what only some layers have.
static const char *merit(const struct n8_conv_row *row) {
    if (row->products > 2) {
        return "sums as many products in int16 as were proved to fit";
    }
    if (row->depthwise != NULL) {
        return row->height == 0 ? "depthwise, of any size" : "depthwise, of this size and stride";
    }
    if (row->tile.mr == 1) {
        return "for a single pixel";
    }
    if (row->tile.packing == N8_PACKING_BOTH) {
        return "packs rows, which pays for so many channels";
    }
    return row->core == N8_CORE_ANY ? "the highest level with a kernel" : "ordered for this core";
}

// Whether `row`, which comes later, is preferred to `best`. Rows for several pixels waste most of
// their products on a single one; of one level, those that read packed rows are the fastest.
static bool is_better(const struct n8_conv_row *row, const struct n8_conv_row *best) {
    if (best == NULL || (row->igemm != NULL && (row->tile.mr == 1) != (best->tile.mr == 1))) {
        return best == NULL || row->tile.mr == 1;
    }
    if (row->level == best->level &&
        (row->tile.packing == N8_PACKING_BOTH) != (best->tile.packing == N8_PACKING_BOTH)) {
        return row->tile.packing == N8_PACKING_BOTH;
    }
    return row->level >= best->level;
}

const struct n8_conv_row *n8_choose_conv(const struct n8_conv_facts *facts,
                                         struct n8_conv_reasons *reasons) {
    const bool depthwise = is_depthwise(facts);
    const enum n8_conv_slot slot = igemm_slot(facts->epilogue);
    const struct n8_conv_row *best = NULL;   // that serves the layer
    const struct n8_conv_row *passed = NULL; // that lacks something
    const char *refusal = "no kernel of this kind";
    for (size_t i = 0; i < n8_conv_row_count; i++) {
        const struct n8_conv_row *row = &n8_conv_rows[i];
        if (depthwise ? row->depthwise == NULL : row->slot != slot) {
            continue;
        }
        const char *why = refuse(row, facts);
        if (why != NULL) {
            refusal = why;
        } else if (lack(row, facts) != NULL) {
            passed = is_better(row, passed) ? row : passed;
        } else if (is_better(row, best)) {
            best = row;
        }
    }
    *reasons = (struct n8_conv_reasons){.chosen = best == NULL ? refusal : merit(best)};
    const bool faster = passed != NULL && best != NULL &&
                        (passed < best ? !is_better(best, passed) : is_better(passed, best));
    if (faster) {
        reasons->passed = passed->name;
        reasons->lack = lack(passed, facts);
    }
    return best;
}
