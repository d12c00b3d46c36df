// SPDX-License-Identifier: Apache-2.0
#include "frugal.h"

#include "memory/allocate.h"
#include "model/operator.h"
#include "size.h"

#include <stdlib.h>

// A step with a frugal plan, and how often a run would transform its weights by that.
struct candidate {
    size_t step, worth;
};

// The best first; equals in the order of the steps, as qsort is not stable.
static int by_worth(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->worth != y->worth) {
        return x->worth > y->worth ? -1 : 1;
    }
    return x->step < y->step ? -1 : 1;
}

static void add(struct n8_memory *memory, size_t packed, size_t scratch) {
    const size_t rounded = n8_round_up(scratch, N8_ALIGN);
    memory->packed += n8_round_up(packed, N8_ALIGN);
    memory->scratch = rounded > memory->scratch ? rounded : memory->scratch;
}

static void take(struct n8_model *model, struct n8_step *step, const struct n8_conv *conv) {
    step->conv = *conv;
    step->kernel_name = conv->kernel_name;
    step->units = conv->units;
    step->scratch_size = conv->scratch_size;
    step->spared = step->packed_size - conv->packed_size;
    step->packed_size = conv->packed_size;
    step->grain = n8_grain(model, step);
}

enum n8_status n8_plan_weights(struct n8_model *model, uint64_t max_bytes) {
    const size_t steps = model->facts.step_count;
    struct n8_memory *memory = &model->memory;
    for (size_t s = 0; s < steps; s++) {
        add(memory, model->steps[s].packed_size, model->steps[s].scratch_size);
    }
    if (n8_check_memory(memory, 1, max_bytes) == N8_OK) {
        return N8_OK;
    }
    struct candidate *candidates = n8_allocate(n8_mul(steps, sizeof *candidates));
    if (candidates == NULL) {
        return N8_E_MEMORY;
    }
    size_t count = 0;
    struct n8_conv frugal;
    memory->packed = memory->scratch = 0;
    for (size_t s = 0; s < steps; s++) {
        const struct n8_step *step = &model->steps[s];
        if (n8_conv_plan_frugal(&step->conv, &model->kernels, &frugal)) {
            candidates[count++] =
                (struct candidate){.step = s, .worth = step->conv.units / step->conv.slices};
            add(memory, frugal.packed_size, frugal.scratch_size);
        } else {
            add(memory, step->packed_size, step->scratch_size);
        }
    }
    qsort(candidates, count, sizeof *candidates, by_worth);
    for (size_t i = 0; i < count; i++) {
        struct n8_step *step = &model->steps[candidates[i].step];
        n8_conv_plan_frugal(&step->conv, &model->kernels, &frugal);
        struct n8_memory with = *memory;
        with.packed -= n8_round_up(frugal.packed_size, N8_ALIGN);
        add(&with, step->packed_size, step->scratch_size);
        if (n8_check_memory(&with, 1, max_bytes) == N8_OK) {
            *memory = with;
        } else {
            take(model, step, &frugal);
        }
    }
    n8_free(candidates);
    return N8_OK;
}
