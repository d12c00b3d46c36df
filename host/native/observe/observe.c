// SPDX-License-Identifier: Apache-2.0
#include "activate.h"
#include "scan.h"
#include "sum.h"

#include <string.h>

struct range {
    float minimum, maximum;
};

static const struct range NOTHING = {INFINITY, -INFINITY};

// Counts of one tensor and sample that are not in its histogram yet: small enough for the first
// cache, which the histograms of all tensors are not. The negative bins come first, backwards.
struct tally {
    uint32_t counters[2 * N8C_WAYS * N8C_BINS];
    uint64_t counted; // values in them, at most
};

// What bin 0 of the positive side has; n8c_piece.tally.
static uint32_t *tally_middle(struct tally *tally) {
    return tally->counters + N8C_WAYS * N8C_BINS;
}

enum { LOG_BINS = 11 };
_Static_assert(1 << LOG_BINS == N8C_BINS, "a power of two");

// 2^11 / 2^exponent: |x| times this is the bin.
static float histogram_factor(const struct n8c_statistics *statistics) {
    return ldexpf(1.0f, LOG_BINS - statistics->exponent);
}

// How many bins hold values up to `largest`.
static size_t reach(const struct n8c_statistics *statistics, float largest) {
    if (!(largest > 0))
        return 0;
    float bin = largest * histogram_factor(statistics);
    return bin < N8C_BINS ? (size_t)bin + 1 : N8C_BINS;
}

static uint64_t both(const uint32_t *counters) {
    return (uint64_t)counters[0] + counters[1];
}

// Moves the counts, which are all of values in the range, to the histogram.
static void histogram_drain(struct n8c_statistics *statistics, struct tally *tally,
                            struct range range) {
    _Static_assert(N8C_WAYS == 2, "both() adds all of a bin's counters");
    uint32_t *middle = tally_middle(tally);
    size_t above = reach(statistics, range.maximum), below = reach(statistics, -range.minimum);
    uint32_t *negative = middle - N8C_WAYS * below;
    for (size_t bin = 0; bin < above; bin++)
        statistics->positive[bin] += both(middle + N8C_WAYS * bin);
    for (size_t bin = 0; bin < below; bin++)
        statistics->negative[below - 1 - bin] += both(negative + N8C_WAYS * bin);
    memset(negative, 0, N8C_WAYS * (below + above) * sizeof *negative);
    tally->counted = 0;
}

static void fold(uint64_t *counts, int times) {
    size_t width = (size_t)1 << times, bins = N8C_BINS >> times;
    for (size_t bin = 0; bin < bins; bin++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += counts[bin * width + i];
        counts[bin] = sum;
    }
    memset(counts + bins, 0, (N8C_BINS - bins) * sizeof *counts);
}

// Makes the range hold values up to `largest`; the tally must be empty.
static void histogram_grow(struct n8c_statistics *statistics, float largest) {
    int exponent = N8C_EXPONENT_MIN;
    if (largest > 0)
        frexpf(largest, &exponent);
    if (exponent <= statistics->exponent)
        return;
    int times = exponent - statistics->exponent;
    times = times > LOG_BINS ? LOG_BINS : times;
    fold(statistics->positive, times);
    fold(statistics->negative, times);
    statistics->exponent = exponent;
}

// The values of a tensor before or after its activation, on their way into one n8c_statistics.
struct stream {
    struct n8c_statistics *out; // NULL: nothing
    // Sums of the current channels: so far, and with the piece at hand, which is taken only if it
    // needs no care. A channel of several pieces is alone.
    struct n8c_sums sums[2][N8C_GROUP];
    size_t finite[N8C_GROUP]; // values in them
    int now;                  // sums[now] are those so far
    int begun;                // are there any?
    struct range range;       // of all channels of this sample so far
    size_t argmin, argmax;
};

// One pass over a tensor of a sample.
struct pass {
    n8c_scan *scan;
    const struct n8c_tensor *tensor;
    struct stream raw, activated;
    struct stream *counted; // whose values go into a histogram; NULL: none
    float factor;           // of its bins
    struct range range;     // of the values that are counted there or pending
    struct tally *tally;
    int32_t bins[2][N8C_PIECE + N8C_LANES];
    int current;    // bins[current] are of the piece at hand, the other ones are pending
    size_t pending; // how many
};

static float smaller(float a, float b) {
    return a < b ? a : b;
}

static float larger(float a, float b) {
    return a > b ? a : b;
}

static struct range join(struct range a, struct range b) {
    return (struct range){smaller(a.minimum, b.minimum), larger(a.maximum, b.maximum)};
}

static void begin_sample(struct stream *stream, struct n8c_statistics *out) {
    stream->out = out;
    stream->now = stream->begun = 0;
    stream->range = NOTHING;
    stream->argmin = stream->argmax = 0;
    if (out != NULL)
        out->sample_nans = out->sample_infs = 0;
}

static void end_sample(const struct stream *stream) {
    struct n8c_statistics *out = stream->out;
    if (out == NULL)
        return;
    out->sample_minimum = stream->range.minimum;
    out->sample_maximum = stream->range.maximum;
    out->sample_argmin = stream->argmin;
    out->sample_argmax = stream->argmax;
    out->minimum = smaller(out->minimum, stream->range.minimum);
    out->maximum = larger(out->maximum, stream->range.maximum);
}

static void end_channel(struct stream *stream, size_t index, size_t channel) {
    struct n8c_statistics *out = stream->out;
    const struct n8c_sums *sums = &stream->sums[stream->now][index];
    float minimum = sums->minimum + 0.0f, maximum = sums->maximum + 0.0f; // no -0
    if (minimum < stream->range.minimum) {
        stream->range.minimum = minimum;
        stream->argmin = channel;
    }
    if (maximum > stream->range.maximum) {
        stream->range.maximum = maximum;
        stream->argmax = channel;
    }
    if (out->count == NULL)
        return;
    out->count[channel] += (int64_t)stream->finite[index];
    out->minima[channel] = smaller(minimum, out->minima[channel]);
    out->maxima[channel] = larger(maximum, out->maxima[channel]);
    if (stream->finite[index] > 0)
        out->peaks[channel] = smaller(larger(0.0f - minimum, maximum), out->peaks[channel]);
    n8c_sum_add(out->total + channel * N8C_SUM_WORDS, sums->total);
    n8c_sum_add(out->squares + channel * N8C_SUM_WORDS, sums->square);
}

// The sums so far are complete; they are those of the channels first, first + 1, ...
static void end_channels(struct stream *stream, size_t first, size_t count) {
    for (size_t i = 0; stream->out != NULL && i < count; i++)
        end_channel(stream, i, first + i);
    stream->begun = 0;
}

static void count_pending(struct pass *pass) {
    uint32_t *tally = tally_middle(pass->tally);
    const int32_t *bins = pass->bins[!pass->current];
    for (size_t i = 0; i < pass->pending; i++)
        tally[(ptrdiff_t)bins[i] * N8C_WAYS]++;
    pass->pending = 0;
}

static void drain(struct pass *pass) {
    count_pending(pass);
    histogram_drain(pass->counted->out, pass->tally, pass->range);
}

// `channels` times `count` values.
static struct n8c_piece piece_of(struct pass *pass, const float *in, size_t channels,
                                 size_t count) {
    const struct n8c_tensor *tensor = pass->tensor;
    return (struct n8c_piece){
        .in = in,
        .end = tensor->values + tensor->channels * tensor->plane,
        .channels = channels,
        .count = count,
        .factor = pass->factor,
        .slope = tensor->slope,
        .lo = tensor->lo,
        .hi = tensor->hi,
        .bins = pass->bins[pass->current],
        .pending = pass->bins[!pass->current],
        .pending_count = pass->pending,
        .tally = tally_middle(pass->tally),
    };
}

static const struct n8c_sums *before(const struct stream *stream) {
    return stream->begun ? stream->sums[stream->now] : NULL;
}

// The sums with the piece at hand are those so far. `finite` values in each channel.
static void keep(struct stream *stream, size_t channels, size_t finite) {
    for (size_t i = 0; i < channels; i++)
        stream->finite[i] = finite + (stream->begun ? stream->finite[i] : 0);
    stream->now = !stream->now;
    stream->begun = 1;
}

// The piece's `found` bins are the pending ones now; of `count` values the others are 0.
static void take_bins(struct pass *pass, size_t found, size_t count, struct range range) {
    pass->current = !pass->current;
    pass->pending = found;
    pass->range = join(pass->range, range);
    pass->tally->counted += found;
    pass->counted->out->zeros += count - found;
    if (pass->tally->counted > UINT32_MAX - N8C_PIECE)
        drain(pass);
}

// The slow path, for values of one channel of which some are not finite, or too large for the
// histogram's range so far: those that are not finite are counted and left out, and the range
// grows.
static void take_slow(struct pass *pass, struct stream *stream, const float *in, size_t count) {
    struct n8c_statistics *out = stream->out;
    float clean[N8C_PIECE] = {0};
    size_t finite = 0;
    struct range range = NOTHING;
    for (size_t i = 0; i < count; i++) {
        if (isnan(in[i])) {
            out->nans++;
            out->sample_nans++;
        } else if (isinf(in[i])) {
            out->infs++;
            out->sample_infs++;
        } else {
            clean[i] = in[i];
            range = join(range, (struct range){in[i], in[i]});
            finite++;
        }
    }
    if (stream == pass->counted) {
        drain(pass);
        histogram_grow(out, larger(range.maximum, -range.minimum));
        pass->factor = histogram_factor(out);
    }
    struct n8c_piece piece = piece_of(pass, clean, 1, count);
    struct n8c_sums *sums = stream->sums[!stream->now];
    piece.end = clean + N8C_PIECE;
    piece.pending_count = 0;
    piece.raw_before = before(stream);
    piece.raw = sums;
    size_t found = pass->scan(&piece);
    // The zeros in place of what was left out are right in the sums only.
    struct range both = range;
    if (piece.raw_before != NULL)
        both = join(both, (struct range){piece.raw_before->minimum, piece.raw_before->maximum});
    sums->minimum = both.minimum;
    sums->maximum = both.maximum;
    keep(stream, 1, finite);
    if (stream == pass->counted)
        take_bins(pass, found, finite, range);
}

static void take_piece_slow(struct pass *pass, const float *in, size_t count) {
    if (pass->raw.out != NULL)
        take_slow(pass, &pass->raw, in, count);
    if (pass->activated.out == NULL)
        return;
    const struct n8c_tensor *tensor = pass->tensor;
    float values[N8C_PIECE];
    for (size_t i = 0; i < count; i++)
        values[i] = n8c_activate(in[i], tensor->slope, tensor->lo, tensor->hi);
    take_slow(pass, &pass->activated, values, count);
}

// The range with the piece at hand. Not finite if a value is not.
static struct range range_of(const struct stream *stream, size_t channels) {
    struct range range = NOTHING;
    double squares = 0;
    for (size_t i = 0; i < channels; i++) {
        const struct n8c_sums *sums = &stream->sums[!stream->now][i];
        squares += sums->square;
        range = join(range, (struct range){sums->minimum, sums->maximum});
    }
    if (!isfinite(squares))
        range.maximum = INFINITY;
    return range;
}

// Returns 0, with nothing taken but the pending bins, if that takes the slow path.
static int take_piece_fast(struct pass *pass, const float *in, size_t channels, size_t count,
                           int last) {
    struct stream *raw = &pass->raw, *activated = &pass->activated;
    struct n8c_piece piece = piece_of(pass, in, channels, count);
    piece.last = last;
    piece.raw_before = before(raw);
    piece.raw = raw->sums[!raw->now];
    if (activated->out != NULL) {
        piece.activated_before = before(activated);
        piece.activated = activated->sums[!activated->now];
    }
    size_t found = pass->scan(&piece);
    pass->pending = 0;
    struct range range = range_of(raw, channels);
    int finite = isfinite(range.maximum);
    if (activated->out != NULL) {
        range = range_of(activated, channels);
        finite = finite && isfinite(range.maximum);
    }
    float largest = larger(range.maximum, -range.minimum);
    if (!finite || (pass->counted != NULL && !(largest * pass->factor < N8C_BINS)))
        return 0;
    keep(raw, channels, count);
    keep(activated, channels, count);
    if (pass->counted != NULL)
        take_bins(pass, found, channels * count, range);
    return 1;
}

static void take_channels(struct pass *pass, size_t first, size_t channels) {
    size_t plane = pass->tensor->plane;
    const float *in = pass->tensor->values + first * plane;
    for (size_t done = 0; done < plane; done += N8C_PIECE) {
        size_t count = plane - done < N8C_PIECE ? plane - done : N8C_PIECE;
        if (take_piece_fast(pass, in + done, channels, count, done + count == plane))
            continue;
        if (channels == 1) {
            take_piece_slow(pass, in + done, count);
            continue;
        }
        for (size_t i = 0; i < channels; i++)
            take_channels(pass, first + i, 1);
        return;
    }
    end_channels(&pass->raw, first, channels);
    end_channels(&pass->activated, first, channels);
}

static void observe(const struct n8c_tensor *tensor, n8c_scan *scan, struct tally *tally) {
    struct pass pass;
    pass.scan = scan;
    pass.tensor = tensor;
    pass.range = NOTHING;
    pass.tally = tally;
    pass.current = 0;
    pass.pending = 0;
    begin_sample(&pass.raw, tensor->raw);
    begin_sample(&pass.activated, tensor->activated);
    if (tensor->plane == 0) { // as what a network selected from nothing
        end_sample(&pass.raw);
        end_sample(&pass.activated);
        return;
    }
    struct stream *last = tensor->activated != NULL ? &pass.activated : &pass.raw;
    pass.counted = last->out != NULL && last->out->positive != NULL ? last : NULL;
    pass.factor = pass.counted == NULL ? 0 : histogram_factor(pass.counted->out);
    size_t group = tensor->plane < N8C_PIECE ? N8C_PIECE / tensor->plane : 1;
    group = group < N8C_GROUP ? group : N8C_GROUP;
    for (size_t channel = 0; channel < tensor->channels; channel += group) {
        size_t rest = tensor->channels - channel;
        take_channels(&pass, channel, rest < group ? rest : group);
    }
    if (pass.counted != NULL)
        drain(&pass);
    end_sample(&pass.raw);
    end_sample(&pass.activated);
}

// The scan counts bins of activated values if there are such, so raw ones take a pass of their own.
static void observe_each(const struct n8c_tensor *tensor, n8c_scan *scan, struct tally *tally) {
    if (tensor->raw == NULL || tensor->raw->positive == NULL || tensor->activated == NULL) {
        observe(tensor, scan, tally);
        return;
    }
    struct n8c_tensor one = *tensor;
    one.activated = NULL;
    observe(&one, scan, tally);
    one.activated = tensor->activated;
    one.raw = NULL;
    observe(&one, scan, tally);
}

// Has it either all of a histogram or nothing, and the same of channels?
static int is_valid(const struct n8c_statistics *s) {
    int channels = s->count != NULL;
    return (s->positive != NULL) == (s->negative != NULL) && channels == (s->minima != NULL) &&
           channels == (s->maxima != NULL) && channels == (s->peaks != NULL) &&
           channels == (s->total != NULL) && channels == (s->squares != NULL);
}

// The best instruction set that this processor has.
static enum n8c_isa best(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return N8C_ISA_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return N8C_ISA_AVX2;
#endif
    return N8C_ISA_BASELINE;
}

static n8c_scan *scan_for(enum n8c_isa isa) {
#ifdef __x86_64__
    if (isa == N8C_ISA_AVX512)
        return n8c_scan_avx512;
    if (isa == N8C_ISA_AVX2)
        return n8c_scan_avx2;
#endif
    return isa == N8C_ISA_BASELINE ? n8c_scan_baseline : NULL;
}

enum n8c_status n8c_observe(const struct n8c_tensor *tensors, size_t count, enum n8c_isa isa) {
    if (tensors == NULL && count != 0)
        return N8C_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        const struct n8c_tensor *tensor = &tensors[i];
        if (tensor->channels == 0 || (tensor->values == NULL && tensor->plane != 0))
            return N8C_E_ARGUMENT;
        if ((tensor->raw != NULL && !is_valid(tensor->raw)) ||
            (tensor->activated != NULL && !is_valid(tensor->activated)))
            return N8C_E_ARGUMENT;
    }
    isa = isa == N8C_ISA_AUTO ? best() : isa;
    if (isa > best())
        return N8C_E_UNSUPPORTED;
    n8c_scan *scan = scan_for(isa);
    if (scan == NULL)
        return N8C_E_ARGUMENT;
    struct tally tally;
    memset(&tally, 0, sizeof tally);
    for (size_t i = 0; i < count; i++)
        observe_each(&tensors[i], scan, &tally);
    return N8C_OK;
}
