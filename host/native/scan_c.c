// SPDX-License-Identifier: Apache-2.0
//
// As plain loops, for any processor.
#include "scan.h"

#define SCAN    n8c_scan_c
#define EACH(i) for (size_t i = 0; i < N8C_LANES; i++)

typedef struct {
    float each[N8C_LANES];
} floats;
typedef struct {
    double each[N8C_LANES];
} doubles;

static inline floats load_part(const float *in, size_t count) {
    floats x;
    EACH(i) x.each[i] = i < count ? in[i] : 0;
    return x;
}

static inline floats load(const float *in) {
    return load_part(in, N8C_LANES);
}

static inline floats broadcast(float value) {
    floats x;
    EACH(i) x.each[i] = value;
    return x;
}

static inline floats pad(floats x, size_t count, float with) {
    for (size_t i = count; i < N8C_LANES; i++)
        x.each[i] = with;
    return x;
}

static inline floats min(floats a, floats b) {
    EACH(i) a.each[i] = a.each[i] < b.each[i] ? a.each[i] : b.each[i];
    return a;
}

static inline floats max(floats a, floats b) {
    EACH(i) a.each[i] = a.each[i] > b.each[i] ? a.each[i] : b.each[i];
    return a;
}

static inline float reduce_min(floats x) {
    float result = x.each[0];
    EACH(i) result = x.each[i] < result ? x.each[i] : result;
    return result;
}

static inline float reduce_max(floats x) {
    float result = x.each[0];
    EACH(i) result = x.each[i] > result ? x.each[i] : result;
    return result;
}

static inline floats mul(floats a, floats b) {
    EACH(i) a.each[i] *= b.each[i];
    return a;
}

static inline floats add(floats a, floats b) {
    EACH(i) a.each[i] += b.each[i];
    return a;
}

static inline floats magnitude(floats x) {
    EACH(i) x.each[i] = fabsf(x.each[i]);
    return x;
}

static inline doubles widen(floats x) {
    doubles wide;
    EACH(i) wide.each[i] = (double)x.each[i];
    return wide;
}

static inline doubles zeros(void) {
    return (doubles){{0}};
}

static inline doubles load_doubles(const double *in) {
    doubles x;
    EACH(i) x.each[i] = in[i];
    return x;
}

static inline void store_doubles(double *out, doubles x) {
    EACH(i) out[i] = x.each[i];
}

static inline doubles add_doubles(doubles a, doubles b) {
    EACH(i) a.each[i] += b.each[i];
    return a;
}

static inline doubles add_squares(doubles a, doubles x) {
    EACH(i) a.each[i] += x.each[i] * x.each[i];
    return a;
}

static inline double reduce_add(doubles x) {
    for (size_t half = N8C_LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++)
            x.each[i] += x.each[i + half];
    }
    return x.each[0];
}

static inline size_t store_bins(int32_t *out, floats scaled, floats x) {
    size_t found = 0;
    EACH(i) {
        // What is too large or NaN means nothing, but its conversion would be undefined.
        int32_t bin = scaled.each[i] < N8C_BINS ? (int32_t)scaled.each[i] : 0;
        out[found] = x.each[i] < 0 ? ~bin : bin;
        found += x.each[i] != 0;
    }
    return found;
}

#include "scan.inc"
