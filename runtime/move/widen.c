// SPDX-License-Identifier: Apache-2.0
#include "widen.h"

#include <string.h>

enum { LANES = 8 }; // which take one operation where the processor has vectors

void n8_widen(int16_t *to, const void *from, size_t count, enum n8_type type) {
    if (type == N8_TYPE_S16) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    const int8_t *bytes = from;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        int8_t in[LANES];
        int16_t out[LANES];
        memcpy(in, bytes + i, sizeof in);
        for (size_t j = 0; j < LANES; j++) {
            out[j] = in[j];
        }
        memcpy(to + i, out, sizeof out);
    }
    for (; i < count; i++) {
        to[i] = bytes[i];
    }
}

void n8_narrow(void *to, const int16_t *from, size_t count, enum n8_type type) {
    if (type == N8_TYPE_S16) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    int8_t *bytes = to;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        int16_t in[LANES];
        int8_t out[LANES];
        memcpy(in, from + i, sizeof in);
        for (size_t j = 0; j < LANES; j++) {
            out[j] = (int8_t)in[j];
        }
        memcpy(bytes + i, out, sizeof out);
    }
    for (; i < count; i++) {
        bytes[i] = (int8_t)from[i];
    }
}
