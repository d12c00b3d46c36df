// SPDX-License-Identifier: Apache-2.0
#include "activate.h"
#include "histogram.h"
#include "intake.h"

#include <string.h>

struct range {
    float minimum, maximum;
};

// One pass over a tensor of a sample.
struct pass {
    n8c_scan *scan;
    const struct n8c_tensor *tensor;
    struct n8c_intake raw, activated;
    struct n8c_intake *counted; // whose values go into a histogram; NULL: none
    float factor;               // of its bins
    float minimum, maximum;     // of the values that are counted there or pending
    struct n8c_tally *tally;
    int32_t bins[2][N8C_PIECE + N8C_LANES];
    int current;    // bins[current] are of the piece at hand, the other ones are pending
    size_t pending; // so many
};

static void count_pending(struct pass *pass) {
    uint32_t *tally = n8c_tally_middle(pass->tally);
    const int32_t *bins = pass->bins[!pass->current];
    for (size_t i = 0; i < pass->pending; i++)
        tally[(ptrdiff_t)bins[i] * N8C_WAYS]++;
    pass->pending = 0;
}

static void drain(struct pass *pass) {
    count_pending(pass);
    n8c_histogram_drain(pass->counted->out, pass->tally, pass->minimum, pass->maximum);
}

// Of `channels` times `count` values.
static struct n8c_piece piece_of(struct pass *pass, const float *in, size_t channels,
                                 size_t count) {
    const struct n8c_tensor *tensor = pass->tensor;
    return (struct n8c_piece){
        .in = in,
        .channels = channels,
        .count = count,
        .factor = pass->factor,
        .slope = tensor->slope,
        .lo = tensor->lo,
        .hi = tensor->hi,
        .bins = pass->bins[pass->current],
        .pending = pass->bins[!pass->current],
        .pending_count = pass->pending,
        .tally = n8c_tally_middle(pass->tally),
    };
}

static const struct n8c_sums *before(const struct n8c_intake *intake) {
    return intake->begun ? intake->sums[intake->now] : NULL;
}

// The sums with the piece at hand are those so far. `finite` values in each channel.
static void keep(struct n8c_intake *intake, size_t channels, size_t finite) {
    for (size_t i = 0; i < channels; i++)
        intake->finite[i] = finite + (intake->begun ? intake->finite[i] : 0);
    intake->now = !intake->now;
    intake->begun = 1;
}

// The piece's `found` bins are the pending ones now; of `count` values the others are 0.
static void take_bins(struct pass *pass, size_t found, size_t count, struct range range) {
    pass->current = !pass->current;
    pass->pending = found;
    pass->minimum = n8c_smaller(pass->minimum, range.minimum);
    pass->maximum = n8c_larger(pass->maximum, range.maximum);
    pass->tally->counted += found;
    pass->counted->out->zeros += count - found;
    if (pass->tally->counted > UINT32_MAX - N8C_PIECE)
        drain(pass);
}

// The slow path, for values of one channel of which some are not finite, or too large for the
// histogram's range so far: those that are not finite are counted and left out, and the range
// grows.
static void take_slow(struct pass *pass, struct n8c_intake *intake, const float *in, size_t count) {
    struct n8c_statistics *out = intake->out;
    float clean[N8C_PIECE] = {0};
    size_t finite = 0;
    struct range range = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        if (isnan(in[i])) {
            out->nans++;
            out->sample_nans++;
        } else if (isinf(in[i])) {
            out->infs++;
            out->sample_infs++;
        } else {
            clean[i] = in[i];
            range.minimum = n8c_smaller(range.minimum, in[i]);
            range.maximum = n8c_larger(range.maximum, in[i]);
            finite++;
        }
    }
    if (intake == pass->counted) {
        drain(pass);
        n8c_histogram_grow(out, n8c_larger(range.maximum, -range.minimum));
        pass->factor = n8c_histogram_factor(out);
    }
    struct n8c_piece piece = piece_of(pass, clean, 1, count);
    struct n8c_sums *sums = intake->sums[!intake->now];
    piece.pending_count = 0;
    piece.raw_before = before(intake);
    piece.raw = sums;
    size_t found = pass->scan(&piece);
    // The zeros in place of what was left out are right in the sums only.
    sums->minimum = range.minimum;
    sums->maximum = range.maximum;
    if (piece.raw_before != NULL) {
        sums->minimum = n8c_smaller(sums->minimum, piece.raw_before->minimum);
        sums->maximum = n8c_larger(sums->maximum, piece.raw_before->maximum);
    }
    keep(intake, 1, finite);
    if (intake == pass->counted)
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

// Of the sums with the piece at hand. Not finite if a value is not.
static struct range range_of(const struct n8c_intake *intake, size_t channels) {
    struct range range = {INFINITY, -INFINITY};
    double squares = 0;
    for (size_t i = 0; i < channels; i++) {
        const struct n8c_sums *sums = &intake->sums[!intake->now][i];
        squares += sums->square;
        range.minimum = n8c_smaller(range.minimum, sums->minimum);
        range.maximum = n8c_larger(range.maximum, sums->maximum);
    }
    if (!isfinite(squares))
        range.maximum = INFINITY;
    return range;
}

// Returns 0, with nothing taken but the pending bins, if that takes the slow path.
static int take_piece_fast(struct pass *pass, const float *in, size_t channels, size_t count,
                           int last) {
    struct n8c_intake *raw = &pass->raw, *activated = &pass->activated;
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
    float largest = n8c_larger(range.maximum, -range.minimum);
    if (!finite || (pass->counted != NULL && !(largest * pass->factor < N8C_BINS)))
        return 0;
    keep(raw, channels, count);
    keep(activated, channels, count);
    if (pass->counted != NULL)
        take_bins(pass, found, channels * count, range);
    return 1;
}

static void take_channels(struct pass *pass, size_t first, size_t channels) {
    size_t plane = pass->tensor->plane, all = pass->tensor->channels;
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
    n8c_end_channels(&pass->raw, first, channels, all);
    n8c_end_channels(&pass->activated, first, channels, all);
}

static void observe(const struct n8c_tensor *tensor, n8c_scan *scan, struct n8c_tally *tally) {
    struct pass pass;
    pass.scan = scan;
    pass.tensor = tensor;
    pass.minimum = INFINITY;
    pass.maximum = -INFINITY;
    pass.tally = tally;
    pass.current = 0;
    pass.pending = 0;
    n8c_begin_sample(&pass.raw, tensor->raw, tensor->channels);
    n8c_begin_sample(&pass.activated, tensor->activated, tensor->channels);
    struct n8c_intake *last = tensor->activated != NULL ? &pass.activated : &pass.raw;
    pass.counted = last->out != NULL && last->out->positive != NULL ? last : NULL;
    pass.factor = pass.counted == NULL ? 0 : n8c_histogram_factor(pass.counted->out);
    size_t group = tensor->plane < N8C_PIECE ? N8C_PIECE / tensor->plane : 1;
    group = group < N8C_GROUP ? group : N8C_GROUP;
    for (size_t channel = 0; channel < tensor->channels; channel += group) {
        size_t rest = tensor->channels - channel;
        take_channels(&pass, channel, rest < group ? rest : group);
    }
    if (pass.counted != NULL)
        drain(&pass);
    n8c_end_sample(&pass.raw);
    n8c_end_sample(&pass.activated);
}

// The scan counts bins of activated values if there are such, so raw ones take a pass of their own.
static void observe_each(const struct n8c_tensor *tensor, n8c_scan *scan, struct n8c_tally *tally) {
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

enum n8c_status n8c_observe(const struct n8c_tensor *tensors, size_t count, enum n8c_isa isa) {
    if (tensors == NULL && count != 0)
        return N8C_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        const struct n8c_tensor *tensor = &tensors[i];
        if (tensor->values == NULL || tensor->channels == 0 || tensor->plane == 0)
            return N8C_E_ARGUMENT;
        if ((tensor->raw != NULL && !n8c_valid(tensor->raw)) ||
            (tensor->activated != NULL && !n8c_valid(tensor->activated)))
            return N8C_E_ARGUMENT;
    }
    n8c_scan *scan;
    enum n8c_status status = n8c_scan_select(isa, &scan);
    if (status != N8C_OK)
        return status;
    struct n8c_tally tally;
    memset(&tally, 0, sizeof tally);
    for (size_t i = 0; i < count; i++)
        observe_each(&tensors[i], scan, &tally);
    return N8C_OK;
}
