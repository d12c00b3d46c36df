// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"
#include "limbs.h"

#include <string.h>

// What one sample adds to one n8c_statistics, block by block while it is in the first cache.
struct task {
    const struct n8c_kernels *kernels;
    struct n8c_statistics *out; // NULL: nothing
    size_t channels;
    struct n8c_sums sums; // of the current channel
    size_t finite;        // values in them
};

// Part of a tensor: `length` values of each of `channels` channels, the first of which has the
// number `channel`; only whole channels come together.
struct block {
    const float *in;
    size_t channel, channels, length;
    int first, last; // are these the first, the last values of their channels?
};

struct range {
    float minimum, maximum; // of finite values
    size_t finite;
};

// add() where some values are not finite: those are left out. Returns how many are finite.
static size_t add_finite(struct task *task, const struct n8c_sums *before, const float *in,
                         size_t count) {
    float clean[N8C_BLOCK] = {0};
    size_t finite = 0;
    float least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        int nan = isnan(in[i]), inf = isinf(in[i]);
        clean[i] = nan || inf ? 0 : in[i];
        if (nan) {
            task->out->nans++;
            task->out->sample_nans++;
        } else if (inf) {
            task->out->infs++;
            task->out->sample_infs++;
        } else {
            least = in[i] < least ? in[i] : least;
            most = in[i] > most ? in[i] : most;
            finite++;
        }
    }
    float minimum = before == NULL ? INFINITY : before->minimum;
    float maximum = before == NULL ? -INFINITY : before->maximum;
    task->kernels->add(&task->sums, before, clean, count);
    // The zeros in place of what was left out are right in the sums only.
    task->sums.minimum = least < minimum ? least : minimum;
    task->sums.maximum = most > maximum ? most : maximum;
    for (size_t lane = 0; lane < N8C_LANES; lane++) {
        task->sums.minima[lane] = task->sums.minimum;
        task->sums.maxima[lane] = task->sums.maximum;
    }
    return finite;
}

static void end_channel(const struct task *task, size_t channel) {
    struct n8c_statistics *out = task->out;
    float minimum = task->sums.minimum + 0.0f, maximum = task->sums.maximum + 0.0f; // no -0
    out->count[channel] += (int64_t)task->finite;
    if (minimum < out->minima[channel])
        out->minima[channel] = minimum;
    if (maximum > out->maxima[channel])
        out->maxima[channel] = maximum;
    double *staged = out->staged + 2 * task->channels * out->staged_samples;
    staged[channel] = task->sums.total;
    staged[task->channels + channel] = task->sums.square;
}

// Takes the block into the channels' sums. Returns the range of its values, or of more values
// of the same channel.
static struct range take_sums(struct task *task, const struct block *block) {
    struct range range = {INFINITY, -INFINITY, 0};
    struct n8c_sums copy;
    for (size_t i = 0; i < block->channels; i++) {
        const float *in = block->in + i * block->length;
        const struct n8c_sums *before = NULL;
        if (!block->first) {
            copy = task->sums;
            before = &copy;
        }
        size_t finite = block->length;
        task->kernels->add(&task->sums, before, in, block->length);
        if (!isfinite(task->sums.square))
            finite = add_finite(task, before, in, block->length);
        task->finite = finite + (block->first ? 0 : task->finite);
        range.finite += finite;
        range.minimum = task->sums.minimum < range.minimum ? task->sums.minimum : range.minimum;
        range.maximum = task->sums.maximum > range.maximum ? task->sums.maximum : range.maximum;
        if (block->last && task->out != NULL && task->out->count != NULL)
            end_channel(task, block->channel + i);
    }
    return range;
}

static void take_histogram(const struct task *task, const struct block *block,
                           const struct range *range) {
    struct n8c_statistics *out = task->out;
    size_t count = block->channels * block->length;
    float largest = range->maximum > -range->minimum ? range->maximum : -range->minimum;
    n8c_histogram_grow(out, largest);
    if (range->finite == count) {
        n8c_histogram_add(out, task->kernels, block->in, count);
        return;
    }
    float clean[N8C_BLOCK] = {0};
    for (size_t i = 0; i < count; i++)
        clean[i] = isfinite(block->in[i]) ? block->in[i] : 0;
    n8c_histogram_add(out, task->kernels, clean, count);
    out->zeros -= count - range->finite;
}

static void take(struct task *task, const struct block *block, struct range range) {
    struct n8c_statistics *out = task->out;
    if (out == NULL)
        return;
    float minimum = range.minimum + 0.0f, maximum = range.maximum + 0.0f; // no -0
    out->sample_minimum = minimum < out->sample_minimum ? minimum : out->sample_minimum;
    out->sample_maximum = maximum > out->sample_maximum ? maximum : out->sample_maximum;
    if (out->positive != NULL)
        take_histogram(task, block, &range);
}

// Adds the sums that wait. So a channel's limbs are fetched once for many samples.
static void add_staged(struct n8c_statistics *out, size_t channels) {
    for (size_t channel = 0; channel < channels; channel++) {
        for (size_t sample = 0; sample < out->staged_samples; sample++) {
            const double *staged = out->staged + 2 * channels * sample + channel;
            n8c_limbs_add(out->total + channel * N8C_LIMBS, staged[0]);
            n8c_limbs_add(out->squares + channel * N8C_LIMBS, staged[channels]);
        }
    }
    out->added_samples += out->staged_samples;
    out->staged_samples = 0;
}

static void settle_sums(struct n8c_statistics *out, size_t channels) {
    add_staged(out, channels);
    for (size_t channel = 0; channel < channels; channel++) {
        n8c_limbs_settle(out->total + channel * N8C_LIMBS);
        n8c_limbs_settle(out->squares + channel * N8C_LIMBS);
    }
    out->added_samples = 0;
}

static void begin_sample(const struct task *task) {
    struct n8c_statistics *out = task->out;
    if (out == NULL)
        return;
    out->sample_minimum = INFINITY;
    out->sample_maximum = -INFINITY;
    out->sample_nans = out->sample_infs = 0;
    if (out->count != NULL && out->staged_samples == N8C_STAGED)
        add_staged(out, task->channels);
    if (out->count != NULL && out->added_samples > N8C_SUMS_MAX)
        settle_sums(out, task->channels);
}

static void end_sample(const struct task *task) {
    struct n8c_statistics *out = task->out;
    if (out == NULL)
        return;
    if (out->sample_minimum < out->minimum)
        out->minimum = out->sample_minimum;
    if (out->sample_maximum > out->maximum)
        out->maximum = out->sample_maximum;
    if (out->count != NULL)
        out->staged_samples++;
}

static void observe_block(const struct n8c_tensor *tensor, struct task *raw, struct task *activated,
                          struct block block) {
    struct range range = {INFINITY, -INFINITY, 0};
    if (raw->out != NULL) {
        range = take_sums(raw, &block);
        take(raw, &block, range);
    }
    if (activated->out == NULL)
        return;
    float values[N8C_BLOCK];
    size_t count = block.channels * block.length;
    const struct n8c_kernels *kernels = activated->kernels;
    kernels->activate(values, block.in, count, tensor->slope, tensor->lo, tensor->hi);
    block.in = values;
    if (range.finite == count && activated->out->count == NULL && tensor->slope >= 0) {
        // It never decreases, so its range follows; and there are no sums to take.
        float ends[2] = {range.minimum, range.maximum};
        kernels->activate(ends, ends, 2, tensor->slope, tensor->lo, tensor->hi);
        range.minimum = ends[0];
        range.maximum = ends[1];
    } else {
        range.finite = 0;
    }
    // A steep slope makes infinities of finite values.
    if (range.finite != count || !isfinite(range.minimum) || !isfinite(range.maximum))
        range = take_sums(activated, &block);
    take(activated, &block, range);
}

static void observe(const struct n8c_tensor *tensor, const struct n8c_kernels *kernels) {
    struct task raw = {.kernels = kernels, .out = tensor->raw, .channels = tensor->channels};
    struct task activated = raw;
    activated.out = tensor->activated;
    begin_sample(&raw);
    begin_sample(&activated);
    size_t plane = tensor->plane, group = plane < N8C_BLOCK ? N8C_BLOCK / plane : 1;
    for (size_t channel = 0; channel < tensor->channels; channel += group) {
        size_t channels = tensor->channels - channel;
        channels = channels < group ? channels : group;
        for (size_t done = 0; done < plane; done += N8C_BLOCK) {
            size_t length = plane - done < N8C_BLOCK ? plane - done : N8C_BLOCK;
            struct block block = {
                .in = tensor->values + channel * plane + done,
                .channel = channel,
                .channels = channels,
                .length = length,
                .first = done == 0,
                .last = done + length == plane,
            };
            observe_block(tensor, &raw, &activated, block);
        }
    }
    end_sample(&raw);
    end_sample(&activated);
}

static int valid(const struct n8c_statistics *s) {
    int histogram = s->positive != NULL;
    int channels = s->count != NULL;
    return histogram == (s->negative != NULL) && histogram == (s->tally != NULL) &&
           channels == (s->minima != NULL) && channels == (s->maxima != NULL) &&
           channels == (s->total != NULL) && channels == (s->squares != NULL) &&
           channels == (s->staged != NULL) && s->staged_samples <= N8C_STAGED;
}

enum n8c_status n8c_observe(const struct n8c_tensor *tensors, size_t count, enum n8c_isa isa) {
    if (tensors == NULL && count != 0)
        return N8C_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        const struct n8c_tensor *tensor = &tensors[i];
        if (tensor->values == NULL || tensor->channels == 0 || tensor->plane == 0)
            return N8C_E_ARGUMENT;
        if ((tensor->raw != NULL && !valid(tensor->raw)) ||
            (tensor->activated != NULL && !valid(tensor->activated)))
            return N8C_E_ARGUMENT;
    }
    struct n8c_kernels kernels;
    enum n8c_status status = n8c_kernels_select(isa, &kernels);
    if (status != N8C_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        observe(&tensors[i], &kernels);
    return N8C_OK;
}

enum n8c_status n8c_settle(struct n8c_statistics *statistics, size_t channels) {
    if (statistics == NULL || !valid(statistics))
        return N8C_E_ARGUMENT;
    if (statistics->positive != NULL)
        n8c_histogram_settle(statistics);
    if (statistics->count != NULL)
        settle_sums(statistics, channels);
    return N8C_OK;
}
