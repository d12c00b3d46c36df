// SPDX-License-Identifier: Apache-2.0
#include "run.h"

#include <string.h>

// Where the walk through an N C H W buffer stands: image n, channel c, its `area` pixels.
void n8_copy_in(const struct n8_tensor *tensor, uint8_t *arena, const void *in) {
    const uint8_t *from = in;
    const size_t channels = (size_t)tensor->dims[1];
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    for (size_t n = 0; n < (size_t)tensor->dims[0]; n++) {
        uint8_t *image = arena + n * area * tensor->pixel_stride;
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < area; p++) {
                image[p * tensor->pixel_stride + c] = *from++;
            }
        }
    }
}

void n8_copy_out(const struct n8_tensor *tensor, const uint8_t *arena, void *out) {
    const size_t channels = (size_t)tensor->dims[1];
    const size_t area = tensor->pixels / (size_t)tensor->dims[0];
    const size_t entry = tensor->type == N8_TYPE_F32 ? sizeof(float) : 1;
    uint8_t *to = out;
    for (size_t n = 0; n < (size_t)tensor->dims[0]; n++) {
        const uint8_t *image = arena + n * area * tensor->pixel_stride;
        if (area == 1) {
            memcpy(to, image, channels * entry);
            to += channels * entry;
            continue;
        }
        for (size_t c = 0; c < channels; c++) {
            for (size_t p = 0; p < area; p++, to += entry) {
                memcpy(to, image + p * tensor->pixel_stride + c * entry, entry);
            }
        }
    }
}
