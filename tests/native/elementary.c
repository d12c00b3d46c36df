// SPDX-License-Identifier: Apache-2.0
//
// (15): every bit of the elementary functions, as digests over many arguments. The same
// arguments and digests are in tests/host/quant/test_elementary.py, which makes them with numpy.
#include "ref/elementary.h"

#include <stdbool.h>
#include <stdio.h>

enum { ARGUMENTS = 20000 };

static const struct {
    const char *name;
    double (*function)(double);
    uint64_t digest;
    void (*all)(double *, size_t); // the same of many values, if there is such a function
} rows[] = {
    {"exp", n8_exp, 0xa35c5c3191e819a9, n8_exp_all},
    {"expm1", n8_expm1, 0xded130013a270f1e, NULL},
    {"log", n8_log, 0x559c874fccecd89c, NULL},
    {"log1p", n8_log1p, 0xaaedc69c058c887f, NULL},
    {"erf", n8_erf, 0x29a8a66db963a615, NULL},
    {"tanh", n8_tanh, 0xd733b344e5f1fb34, n8_tanh_all},
    {"sine", n8_sine, 0x3f776a7e498e2f0c, NULL},
    {"arctangent", n8_arctangent, 0x6e15b85e259f94fb, NULL},
    {"sigmoid", n8_sigmoid, 0x6f27eb04a4805451, n8_sigmoid_all},
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

// Whether many values at once are those one by one: small ones and large ones, 0 to MANY of them.
static bool same_at_once(size_t row) {
    enum { MANY = 40, ROUNDS = 4000 };
    uint64_t state = 2;
    for (size_t round = 0; round < ROUNDS; round++) {
        double one[MANY], all[MANY];
        const size_t count = round % (MANY + 1);
        const double factor = round % 3 == 0 ? 0.01 : round % 3 == 1 ? 0.5 : 18.0;
        for (size_t i = 0; i < count; i++) {
            const bool any = round % 4 == 0 && i % 16 == 3;
            const double x = argument(&state, any);
            all[i] = i % 16 == 5 ? -0.0 : any ? x : x * factor;
            one[i] = rows[row].function(all[i]);
        }
        rows[row].all(all, count);
        if (memcmp(one, all, count * sizeof *one) != 0)
            return false;
    }
    return true;
}

// Sigmoid or tanh of floats: every other argument is in -128 .. 128, the rest is any float. In
// place, in groups of 0 to MANY, which are the last of a block or a block of their own.
static uint64_t digest_of_floats(bool tanh) {
    enum { MANY = 40 };
    uint64_t state = 1, digest = 0;
    for (size_t i = 0, count = 0; i < ARGUMENTS; i += count, count = (count + 1) % (MANY + 1)) {
        float x[MANY];
        for (size_t j = 0; j < count; j++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            const uint32_t bits = (uint32_t)(state >> 32);
            memcpy(&x[j], &bits, sizeof bits);
            if ((i + j) % 2 == 0)
                x[j] = (float)(bits >> 8) * 0x1p-16f - 128.0f;
        }
        n8_sigmoid_or_tanh(x, x, count, tanh);
        for (size_t j = 0; j < count; j++) {
            uint32_t bits;
            memcpy(&bits, &x[j], sizeof bits);
            digest = i + j < ARGUMENTS ? (digest ^ bits) * 0x100000001b3 : digest;
        }
    }
    return digest;
}

int main(void) {
    int failures = 0;
    static const uint64_t of_floats[] = {0x2a2edf2c1a92df90, 0xd93055ff181e8c29};
    for (int tanh = 0; tanh < 2; tanh++) {
        const uint64_t digest = digest_of_floats(tanh);
        if (digest != of_floats[tanh]) {
            printf("%s of floats: digest %#llx\n", tanh ? "tanh" : "sigmoid",
                   (unsigned long long)digest);
            failures++;
        }
    }
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
        if (rows[row].all != NULL && !same_at_once(row)) {
            printf("%s: another result for many values at once\n", rows[row].name);
            failures++;
        }
    }
    return failures != 0;
}
