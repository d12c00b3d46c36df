// SPDX-License-Identifier: Apache-2.0
//
// neon8_calibrate: the calibrator's inner loops, for the machine that calibrates.
//
// This header is the whole interface; `cc -E -P -DN8_CDEF` makes of it what cffi reads. The library
// prints nothing, keeps no state, allocates nothing but what a solver needs for a call, and never
// sets errno. Its results depend on no instruction set. tests/host/shared/numpy_statistics.py says
// the same in numpy.
#ifndef NEON8_CALIBRATE_H
#define NEON8_CALIBRATE_H

#ifdef N8_CDEF
#define N8C_API
#else
#include <stddef.h>
#include <stdint.h>
#define N8C_API __attribute__((visibility("default")))
#endif

enum n8c_status {
    N8C_OK = 0,
    N8C_E_ARGUMENT = 1,    // a pointer or size of this call is wrong
    N8C_E_MEMORY = 2,      // out of memory
    N8C_E_UNSUPPORTED = 3, // this processor has not that instruction set
};

enum n8c_isa {
    N8C_ISA_AUTO = 0,     // the best one there is
    N8C_ISA_BASELINE = 1, // what every processor of its kind has
    N8C_ISA_AVX2 = 2,
    N8C_ISA_AVX512 = 3,
};

enum {
    N8C_BINS = 2048,
    N8C_SUM_WORDS = 4, // of 64 bits, the least significant first, in two's complement: a sum
                       // counts 2^-96
    N8C_EXPONENT_MIN = -100,
    N8C_ROWS = 64,  // kept of each layer
    N8C_PIXELS = 2, // drawn of each sample and layer
};

// The statistics of one tensor so far; every array belongs to the caller.
//
// Bin i of `positive` and of `negative` counts i <= |x| * 2048 / 2^exponent < i + 1;
// `exponent` grows as values need it, from N8C_EXPONENT_MIN. Exact zeros, NaN and infinities
// are counted apart; all else is about the finite values. To begin: all zero, but
// exponent = N8C_EXPONENT_MIN, minimum, minima and peaks = INFINITY, maximum and maxima =
// -INFINITY.
struct n8c_statistics {
    uint64_t *positive, *negative; // [N8C_BINS]; both NULL: no histogram
    uint64_t zeros, nans, infs;
    float minimum, maximum;
    float sample_minimum, sample_maximum;  // of the last sample
    uint64_t sample_argmin, sample_argmax; // the first channels that have them, 0 if none has
    uint64_t sample_nans, sample_infs;
    int32_t exponent;
    int64_t *count;         // [channels], of finite values; NULL: no channels
    float *minima, *maxima; // [channels]
    float *peaks;           // [channels], of the largest magnitudes in a sample the least
    uint64_t *total;        // [channels][N8C_SUM_WORDS]
    uint64_t *squares;      // the same
};

// One tensor of a sample: `channels` planes of `plane` values. What `activated` takes is
// min(max(x < 0 ? x * slope : x, lo), hi). Either of the two may be NULL.
struct n8c_tensor {
    const float *values;
    size_t channels, plane;
    float slope, lo, hi;
    struct n8c_statistics *raw, *activated;
};

// The version of the library, "major.minor.patch".
N8C_API const char *n8c_version(void);

// Adds one sample: `count` tensors, no n8c_statistics in more than one of them. A channel's
// sum over a sample is taken in float64: lane j of 16 adds the values j, j + 16, ... in this
// order; then lanes j and j + 8 are added, of those j and j + 4, and so on. It is clamped to
// +-2^127, rounded to a multiple of 2^-96, ties to even, and added exactly: fewer than 2^32
// samples cannot overflow. N8C_E_ARGUMENT: a NULL pointer.
N8C_API enum n8c_status n8c_observe(const struct n8c_tensor *tensors, size_t count,
                                    enum n8c_isa isa);

// Part of what a layer reads: `channels` planes of height * width values, each then put through
// the activation, min(max(x < 0 ? x * slope : x, lo), hi).
struct n8c_source {
    const float *values;
    size_t channels, height, width;
    size_t at; // where its values begin in a row
    float slope, lo, hi;
};

// Rows: what a layer reads for some pixels of its output, of the samples so far. To begin: used
// and largest 0; slots[i] = i.
struct n8c_rows {
    uint64_t words[2 * N8C_PIXELS];             // to mix with the sample's
    size_t pixels, columns;                     // of the output
    size_t kernel[2], strides[2], dilations[2]; // height, width
    size_t spread[2]; // rows and columns are so far apart, with zeros between them
    int64_t pads[2];  // top, left; negative ones crop
    const struct n8c_source *sources;
    size_t source_count, size; // of a row
    float *rows;               // [N8C_ROWS + 1][size]; those in use are slots[0] .. slots[used - 1]
    uint64_t *keys;            // [N8C_ROWS + 1]: of the row in each slot
    uint64_t *slots;           // [N8C_ROWS + 1]
    size_t used, largest;      // slots[largest] has the largest key
};

// Draws N8C_PIXELS different pixels of each layer's output, or the only one there is, and keeps
// what the layer reads there, 0 outside of the planes, if all of it is finite and its key is one
// of the N8C_ROWS smallest so far. With x[i] = mix(words[i] ^ layer.words[i]) of SplitMix64, the
// pixels are x[0] and x[1] modulo their number, the second one moved by one if they are the same,
// and their keys the others. Rows of equal keys are kept by their bytes. words: [2 * N8C_PIXELS],
// of the sample. N8C_E_ARGUMENT: a NULL pointer, or a size of 0.
N8C_API enum n8c_status n8c_draw(struct n8c_rows *layers, size_t count, const uint64_t *words);

// Solvers. Every sum below runs from the first bin or group to the last, in float64.

// Relative entropy of histograms cut off after `first`, first + 1, ... `last` of N8C_BINS bins,
// where all that is above goes into the last bin kept, against the same bins without that,
// merged into `levels` groups (a power of two) and spread again over the bins of each group that
// are not empty; see thresholds/kl.py. out: [last - first + 1], INFINITY where it is not finite.
// counts: [N8C_BINS]. 1 <= levels <= first <= last <= N8C_BINS, else N8C_E_ARGUMENT.
N8C_API enum n8c_status n8c_divergence(double *out, const double *counts, size_t first, size_t last,
                                       size_t levels);

// Expected squared error, in bins squared, of values quantized to grids of steps[i] bins, of which
// levels[j] steps lie on the side that `counts` is of: rounding inside, clipping outside; see
// thresholds/mse.py. out[i * level_count + j] += that. counts: [N8C_BINS]. Steps are > 0.
N8C_API enum n8c_status n8c_squared_error(double *out, const double *counts, const double *steps,
                                          size_t step_count, const int64_t *levels,
                                          size_t level_count);

#endif // NEON8_CALIBRATE_H
