// SPDX-License-Identifier: Apache-2.0
//
// n8c_scan in the vector extensions of GCC and Clang. The build compiles this file once for each
// instruction set and names the function N8C_SCAN; every one of them gives the same bits.
//
// A counter's increment waits for the one before it in the same place, and processors store one
// word in a cycle: counting is what takes the time. So this is a software pipeline of two stages:
// while a piece is loaded, summed and turned into bins, the bins of the piece before it, the
// pending ones, are counted, some after every N8C_LANES values. Neighbouring bins go to different
// counters, as neighbouring values are often equal.
#include "scan.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifndef N8C_SCAN
#define N8C_SCAN n8c_scan_baseline
#endif
#define INLINE static inline __attribute__((always_inline))
#define QUAD   4    // bins that are counted together
#define AHEAD  1024 // values that are prefetched before they are loaded

// Vectors are as wide as the registers: compilers keep wider ones in memory.
#if defined __AVX512F__
enum { WIDTH = 64 };
#elif defined __AVX2__
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
enum { EACH = WIDTH / 4, VECTORS = N8C_LANES / EACH };

typedef float f32_vector __attribute__((vector_size(WIDTH)));
typedef int32_t s32_vector __attribute__((vector_size(WIDTH)));
typedef double f64_vector __attribute__((vector_size(WIDTH)));
typedef double f64_pair __attribute__((vector_size(2 * WIDTH)));
typedef float f32_four __attribute__((vector_size(16)));
typedef int32_t s32_four __attribute__((vector_size(16)));
typedef double f64_two __attribute__((vector_size(16)));
// In the arrays of others, which are aligned to their elements.
typedef f32_vector f32_unaligned __attribute__((aligned(4), may_alias));
typedef f64_vector f64_unaligned __attribute__((aligned(8), may_alias));

typedef struct {
    f32_vector each[VECTORS];
} floats; // N8C_LANES of them
typedef struct {
    f64_vector each[2 * VECTORS];
} doubles;

#define VECTOR(i) for (size_t i = 0; i < VECTORS; i++)

// What the extensions have no word for, or compilers only a longer one: the smaller and the larger
// of two vectors, the second one where either is NaN; and
//     compress: writes the bins of the values that are not 0, and maybe others after them.
#if defined __AVX512F__
INLINE f32_vector smaller(f32_vector a, f32_vector b) {
    return (f32_vector)_mm512_min_ps((__m512)a, (__m512)b);
}

INLINE f32_vector larger(f32_vector a, f32_vector b) {
    return (f32_vector)_mm512_max_ps((__m512)a, (__m512)b);
}

INLINE size_t compress(int32_t *out, s32_vector bins, f32_vector x) {
    __mmask16 kept = _mm512_test_epi32_mask((__m512i)x, _mm512_set1_epi32(INT32_MAX));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(kept, (__m512i)bins));
    return (size_t)__builtin_popcount(kept);
}
#elif defined __AVX2__
INLINE f32_vector smaller(f32_vector a, f32_vector b) {
    return (f32_vector)_mm256_min_ps((__m256)a, (__m256)b);
}

INLINE f32_vector larger(f32_vector a, f32_vector b) {
    return (f32_vector)_mm256_max_ps((__m256)a, (__m256)b);
}

// The order that brings the lanes whose bit is set to the front.
#define LANE(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
static const uint8_t front[16][16] = {
    {0},
    {LANE(0)},
    {LANE(1)},
    {LANE(0), LANE(1)},
    {LANE(2)},
    {LANE(0), LANE(2)},
    {LANE(1), LANE(2)},
    {LANE(0), LANE(1), LANE(2)},
    {LANE(3)},
    {LANE(0), LANE(3)},
    {LANE(1), LANE(3)},
    {LANE(0), LANE(1), LANE(3)},
    {LANE(2), LANE(3)},
    {LANE(0), LANE(2), LANE(3)},
    {LANE(1), LANE(2), LANE(3)},
    {LANE(0), LANE(1), LANE(2), LANE(3)},
};

INLINE size_t compress_four(int32_t *out, __m128i bins, unsigned kept) {
    __m128i order = _mm_loadu_si128((const __m128i *)front[kept]);
    _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(bins, order));
    return (size_t)__builtin_popcount(kept);
}

INLINE size_t compress(int32_t *out, s32_vector bins, f32_vector x) {
    unsigned kept = (unsigned)_mm256_movemask_ps((__m256)(x != 0));
    size_t low = compress_four(out, _mm256_castsi256_si128((__m256i)bins), kept & 15);
    return low + compress_four(out + low, _mm256_extracti128_si256((__m256i)bins, 1), kept >> 4);
}
#else
INLINE f32_vector smaller(f32_vector a, f32_vector b) {
    s32_vector less = a < b;
    return (f32_vector)((less & (s32_vector)a) | (~less & (s32_vector)b));
}

INLINE f32_vector larger(f32_vector a, f32_vector b) {
    s32_vector more = a > b;
    return (f32_vector)((more & (s32_vector)a) | (~more & (s32_vector)b));
}

INLINE size_t compress(int32_t *out, s32_vector bins, f32_vector x) {
    size_t found = 0;
    for (size_t i = 0; i < EACH; i++) {
        out[found] = bins[i];
        found += x[i] != 0;
    }
    return found;
}
#endif

INLINE floats load(const float *in) {
    floats x;
    VECTOR(i) x.each[i] = *(const f32_unaligned *)(in + i * EACH);
    return x;
}

INLINE doubles load_doubles(const double *in) {
    doubles x;
    for (size_t i = 0; i < 2 * VECTORS; i++)
        x.each[i] = *(const f64_unaligned *)(in + i * EACH / 2);
    return x;
}

INLINE void store_doubles(double *out, doubles x) {
    for (size_t i = 0; i < 2 * VECTORS; i++)
        *(f64_unaligned *)(out + i * EACH / 2) = x.each[i];
}

INLINE floats broadcast(float value) {
    floats x;
    VECTOR(i) x.each[i] = value - (f32_vector){0};
    return x;
}

INLINE floats min(floats a, floats b) {
    VECTOR(i) a.each[i] = smaller(a.each[i], b.each[i]);
    return a;
}

INLINE floats max(floats a, floats b) {
    VECTOR(i) a.each[i] = larger(a.each[i], b.each[i]);
    return a;
}

// Another value in the lanes from `count` on.
INLINE floats pad(floats x, size_t count, float with) {
    static const int32_t lanes[N8C_LANES] __attribute__((aligned(WIDTH))) = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    };
    s32_vector other = (s32_vector)broadcast(with).each[0];
    VECTOR(i) {
        s32_vector inside = *(const s32_vector *)(lanes + i * EACH) < (int32_t)count;
        x.each[i] = (f32_vector)((inside & (s32_vector)x.each[i]) | (~inside & other));
    }
    return x;
}

// Less than N8C_LANES values, then zeros.
INLINE floats load_part(const float *in, size_t count, const float *end) {
    if ((size_t)(end - in) >= N8C_LANES)
        return pad(load(in), count, 0);
    float values[N8C_LANES] = {0};
    memcpy(values, in, count * sizeof *in);
    return load(values);
}

// The vectors are halved, then the one that is left: lanes 8 apart meet first, then 4 apart, and
// so on.
INLINE float reduce_min(floats x) {
    for (size_t half = VECTORS / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++)
            x.each[i] = smaller(x.each[i], x.each[i + half]);
    }
    f32_four fours[WIDTH / 16];
    memcpy(fours, &x.each[0], sizeof fours);
    for (size_t half = WIDTH / 32; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            s32_four a = (s32_four)fours[i], b = (s32_four)fours[i + half];
            s32_four less = fours[i] < fours[i + half];
            fours[i] = (f32_four)((less & a) | (~less & b));
        }
    }
    float low = fours[0][0] < fours[0][1] ? fours[0][0] : fours[0][1];
    float high = fours[0][2] < fours[0][3] ? fours[0][2] : fours[0][3];
    return low < high ? low : high;
}

INLINE float reduce_max(floats x) {
    VECTOR(i) x.each[i] = -x.each[i];
    return -reduce_min(x);
}

INLINE double reduce_add(doubles x) {
    for (size_t half = VECTORS; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++)
            x.each[i] += x.each[i + half];
    }
    f64_two twos[WIDTH / 16];
    memcpy(twos, &x.each[0], sizeof twos);
    for (size_t half = WIDTH / 32; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++)
            twos[i] += twos[i + half];
    }
    return twos[0][0] + twos[0][1];
}

struct accumulators {
    doubles total, square;
    floats minimum, maximum;
};

// The part of the piece that is one channel.
struct state {
    struct accumulators raw, activated;
    floats factor, slope, lo, hi;
    int32_t *bins;
};

INLINE struct accumulators load_sums(const struct n8c_sums *before) {
    struct accumulators sums = {.minimum = broadcast(INFINITY), .maximum = broadcast(-INFINITY)};
    if (before != NULL) {
        sums.total = load_doubles(before->totals);
        sums.square = load_doubles(before->squares);
        sums.minimum = broadcast(before->minimum);
        sums.maximum = broadcast(before->maximum);
    }
    return sums;
}

INLINE void store_sums(struct n8c_sums *out, const struct accumulators *sums, int last) {
    if (!last) {
        store_doubles(out->totals, sums->total);
        store_doubles(out->squares, sums->square);
    }
    out->total = reduce_add(sums->total);
    out->square = reduce_add(sums->square);
    out->minimum = reduce_min(sums->minimum);
    out->maximum = reduce_max(sums->maximum);
}

INLINE void accumulate(struct accumulators *sums, floats x, size_t count) {
    VECTOR(i) {
        f64_pair wide = __builtin_convertvector(x.each[i], f64_pair);
        f64_vector halves[2];
        memcpy(halves, &wide, sizeof halves);
        for (size_t j = 0; j < 2; j++) {
            sums->total.each[2 * i + j] += halves[j];
            sums->square.each[2 * i + j] += halves[j] * halves[j];
        }
    }
    int part = count < N8C_LANES;
    sums->minimum = min(part ? pad(x, count, INFINITY) : x, sums->minimum);
    sums->maximum = max(part ? pad(x, count, -INFINITY) : x, sums->maximum);
}

INLINE size_t store_bins(int32_t *out, floats x, floats factor) {
    size_t found = 0;
    VECTOR(i) {
        s32_vector bits = (s32_vector)x.each[i];
        f32_vector scaled = (f32_vector)(bits & INT32_MAX) * factor.each[i];
        s32_vector bins = __builtin_convertvector(scaled, s32_vector) ^ (bits >> 31);
        found += compress(out + found, bins, x.each[i]);
    }
    return found;
}

// x: the next `count` values, 0 after them.
INLINE void take(struct state *state, floats x, size_t count, int activates) {
    accumulate(&state->raw, x, count);
    if (activates) {
        // One of the two is 0, so their sum is exact. NaN stays NaN.
        floats below = min(x, broadcast(0)), above = max(broadcast(0), x);
        VECTOR(i) x.each[i] = below.each[i] * state->slope.each[i] + above.each[i];
        x = min(state->hi, max(state->lo, x));
        if (count < N8C_LANES)
            x = pad(x, count, 0);
        accumulate(&state->activated, x, count);
    }
    state->bins += store_bins(state->bins, x, state->factor);
}

INLINE void tally_quad(uint32_t *tally, const int32_t *bins) {
    for (size_t i = 0; i < QUAD; i++)
        tally[(ptrdiff_t)bins[i] * N8C_WAYS + (ptrdiff_t)(i % N8C_WAYS)]++;
}

struct pending {
    const int32_t *next;
    size_t each, steps; // quads in each of the next steps
};

// Takes count * N8C_LANES values; after every N8C_LANES of them, counts `quads` quads.
INLINE void scan_steps(struct state *out, const float *in, size_t count, uint32_t *tally,
                       struct pending *pending, size_t quads, int activates) {
    struct state state = *out; // in registers
    const int32_t *next = pending->next;
    for (size_t i = 0; i < count; i++, in += N8C_LANES) {
        // The processor's own prefetching stops at every page. The address may lie after the
        // values; it is not read.
        __builtin_prefetch((const void *)((uintptr_t)in + AHEAD * sizeof *in));
        take(&state, load(in), N8C_LANES, activates);
        for (size_t quad = 0; quad < quads; quad++, next += QUAD)
            tally_quad(tally, next);
    }
    pending->next = next;
    *out = state;
}

INLINE void scan_channel(struct state *state, const struct n8c_piece *piece, size_t channel,
                         struct pending *pending, int activates) {
    const float *in = piece->in + channel * piece->count;
    uint32_t *tally = piece->tally;
    size_t count = piece->count / N8C_LANES, rest = piece->count % N8C_LANES;
    size_t first = pending->steps < count ? pending->steps : count;
    pending->steps -= first;
    switch (pending->each) { // loops of a fixed length are unrolled
    case 1:
        scan_steps(state, in, first, tally, pending, 1, activates);
        break;
    case 2:
        scan_steps(state, in, first, tally, pending, 2, activates);
        break;
    case 3:
        scan_steps(state, in, first, tally, pending, 3, activates);
        break;
    default:
        scan_steps(state, in, first, tally, pending, 4, activates);
        break;
    }
    scan_steps(state, in + first * N8C_LANES, count - first, tally, pending, 0, activates);
    if (rest != 0)
        take(state, load_part(in + count * N8C_LANES, rest, piece->end), rest, activates);
}

INLINE size_t scan(const struct n8c_piece *piece, int activates) {
    struct state state = {.factor = broadcast(piece->factor), .bins = piece->bins};
    if (activates) {
        state.slope = broadcast(piece->slope);
        state.lo = broadcast(piece->lo);
        state.hi = broadcast(piece->hi);
    }
    struct pending pending = {.next = piece->pending};
    // As many quads in each step as it takes for all to be done at the end, but at most 4.
    size_t count = piece->channels * (piece->count / N8C_LANES);
    size_t quads = piece->pending_count / QUAD;
    if (quads != 0 && count != 0) {
        pending.each = (quads + count - 1) / count;
        pending.each = pending.each < 4 ? pending.each : 4;
        pending.steps = quads / pending.each;
    }
    for (size_t i = 0; i < piece->channels; i++) {
        state.raw = load_sums(piece->raw_before);
        if (activates)
            state.activated = load_sums(piece->activated_before);
        scan_channel(&state, piece, i, &pending, activates);
        store_sums(&piece->raw[i], &state.raw, piece->last);
        if (activates)
            store_sums(&piece->activated[i], &state.activated, piece->last);
    }
    const int32_t *end = piece->pending + piece->pending_count;
    for (; end - pending.next >= QUAD; pending.next += QUAD)
        tally_quad(piece->tally, pending.next);
    for (; pending.next < end; pending.next++)
        piece->tally[(ptrdiff_t)*pending.next * N8C_WAYS]++;
    return (size_t)(state.bins - piece->bins);
}

size_t N8C_SCAN(const struct n8c_piece *piece) {
    return piece->activated == NULL ? scan(piece, 0) : scan(piece, 1);
}
