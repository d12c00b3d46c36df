// SPDX-License-Identifier: Apache-2.0
#include "activate.h"
#include "neon8_calibrate.h"

#include <math.h>

// Of one channel: `plane` is where it begins.
static int gather(float *out, const float *plane, const struct n8c_window *w) {
    int finite = 1;
    for (size_t i = 0; i < w->rows; i++) {
        int64_t row = w->top + (int64_t)(i * w->row_step);
        int inside = row >= 0 && row < (int64_t)w->height;
        for (size_t j = 0; j < w->columns; j++) {
            int64_t column = w->left + (int64_t)(j * w->column_step);
            float x = 0;
            if (inside && column >= 0 && column < (int64_t)w->width) {
                x = plane[(size_t)row * w->width + (size_t)column];
                x = n8c_activate(x, w->slope, w->lo, w->hi) + 0.0f; // no -0
            }
            finite &= isfinite(x) != 0;
            out[i * w->columns + j] = x;
        }
    }
    return finite;
}

enum n8c_status n8c_gather(struct n8c_window *windows, size_t count) {
    if (windows == NULL && count != 0)
        return N8C_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        struct n8c_window *w = &windows[i];
        if (w->out == NULL)
            continue;
        if (w->values == NULL)
            return N8C_E_ARGUMENT;
        w->finite = 1;
        for (size_t channel = 0; channel < w->channels; channel++) {
            float *out = w->out + channel * w->rows * w->columns;
            w->finite &= gather(out, w->values + channel * w->height * w->width, w);
        }
    }
    return N8C_OK;
}
