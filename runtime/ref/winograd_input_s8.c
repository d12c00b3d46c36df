// SPDX-License-Identifier: Apache-2.0
#include "winograd.h"

enum { SIDE = N8_WINOGRAD_SIDE };

void n8_winograd_input_s8_c(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
                            ptrdiff_t pixel, size_t channels) {
    for (size_t c = 0; c < channels; c++) {
        int32_t d[SIDE * SIDE], columns[SIDE * SIDE], v[SIDE];
        for (size_t i = 0; i < SIDE; i++) {
            for (size_t j = 0; j < SIDE; j++)
                d[i * SIDE + j] = in[(ptrdiff_t)i * row + (ptrdiff_t)j * pixel + (ptrdiff_t)c];
        }
        for (size_t j = 0; j < SIDE; j++) {
            n8_winograd_input(v, d + j, SIDE);
            for (size_t i = 0; i < SIDE; i++)
                columns[i * SIDE + j] = v[i];
        }
        for (size_t i = 0; i < SIDE; i++) {
            n8_winograd_input(v, columns + i * SIDE, 1);
            for (size_t j = 0; j < SIDE; j++) {
                char *to = (char *)out + n8_winograd_plane(i, j) * plane;
                ((int16_t *)(void *)to)[c] = (int16_t)v[j];
            }
        }
    }
}
