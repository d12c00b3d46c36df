// SPDX-License-Identifier: Apache-2.0
//
// (15): every bit of the elementary functions, as digests over many arguments. The same
// arguments and digests are in tests/host/quant/test_elementary.py, which makes them with numpy.
#include "ref/elementary.h"

#include <stdio.h>

enum { ARGUMENTS = 20000 };

static const struct {
    const char *name;
    double (*function)(double);
    uint64_t digest;
} rows[] = {
    {"exp", n8_exp, 0xa35c5c3191e819a9},         {"expm1", n8_expm1, 0xded130013a270f1e},
    {"log", n8_log, 0x559c874fccecd89c},         {"log1p", n8_log1p, 0xaaedc69c058c887f},
    {"erf", n8_erf, 0x29a8a66db963a615},         {"tanh", n8_tanh, 0xd733b344e5f1fb34},
    {"sigmoid", n8_sigmoid, 0x6f27eb04a4805451},
};

// Every other argument is in -40 .. 40, the rest is any double: NaN, infinite, subnormal.
static double argument(uint64_t *state, int i) {
    *state = *state * 6364136223846793005 + 1442695040888963407;
    if (i % 2 == 0)
        return (double)(*state >> 11) * (80.0 / 9007199254740992.0) - 40.0;
    double x;
    memcpy(&x, state, sizeof x);
    return x;
}

int main(void) {
    int failures = 0;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        uint64_t state = 1, digest = 0;
        for (int i = 0; i < ARGUMENTS; i++) {
            double x = argument(&state, i);
            if (rows[row].function == n8_log1p && x < 0.0)
                x = -x;
            const double y = rows[row].function(x);
            uint64_t bits;
            memcpy(&bits, &y, sizeof bits);
            digest = (digest ^ bits) * 0x100000001b3;
        }
        if (digest != rows[row].digest) {
            printf("%s: digest %#llx\n", rows[row].name, (unsigned long long)digest);
            failures++;
        }
    }
    return failures != 0;
}
