// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"
#include "limbs.h"

#include <string.h>

// What one sample adds to one n8c_statistics, block by block while it is in the first cache.
struct task {
    const struct n8c_kernels *kernels;
    struct n8c_statistics *out;
    size_t channel;
    struct n8c_sums sums; // of that channel, so far
    size_t finite;        // values in them
};

struct range {
    float least, most;
};

static void begin_channel(struct task *task, size_t channel) {
    task->channel = channel;
    task->finite = 0;
    memset(&task->sums, 0, sizeof task->sums);
    for (size_t lane = 0; lane < N8C_LANES; lane++) {
        task->sums.least[lane] = INFINITY;
        task->sums.most[lane] = -INFINITY;
    }
}

static double over_lanes(const double *lanes) {
    double four[4];
    for (size_t i = 0; i < 4; i++)
        four[i] = lanes[i] + lanes[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

// The part of add() for values some of which are not finite: those are left out.
static size_t add_finite(struct task *task, const float *in, size_t count) {
    struct n8c_sums *sums = &task->sums;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(in[i])) {
            size_t lane = i % N8C_LANES;
            double x = in[i];
            sums->total[lane] += x;
            sums->squares[lane] += x * x;
            sums->least[lane] = fminf(sums->least[lane], in[i]);
            sums->most[lane] = fmaxf(sums->most[lane], in[i]);
            finite++;
        } else if (isnan(in[i])) {
            task->out->nans++;
            task->out->sample_nans++;
        } else {
            task->out->infs++;
            task->out->sample_infs++;
        }
    }
    return finite;
}

// Adds values to the sums of the channel. Returns how many of them are finite.
static size_t add(struct task *task, const float *in, size_t count) {
    struct n8c_sums before = task->sums;
    task->kernels->add(&task->sums, in, count);
    double squares = over_lanes(task->sums.squares);
    size_t finite = count;
    if (!isfinite(squares)) {
        task->sums = before;
        finite = add_finite(task, in, count);
    }
    task->finite += finite;
    return finite;
}

static struct range range(const struct n8c_sums *sums) {
    struct range range = {sums->least[0], sums->most[0]};
    for (size_t lane = 1; lane < N8C_LANES; lane++) {
        range.least = sums->least[lane] < range.least ? sums->least[lane] : range.least;
        range.most = sums->most[lane] > range.most ? sums->most[lane] : range.most;
    }
    return range;
}

static void end_channel(struct task *task, struct range range) {
    struct n8c_statistics *out = task->out;
    float least = range.least + 0.0f, most = range.most + 0.0f; // no -0
    out->sample_minimum = least < out->sample_minimum ? least : out->sample_minimum;
    out->sample_maximum = most > out->sample_maximum ? most : out->sample_maximum;
    size_t c = task->channel;
    if (out->count == NULL)
        return;
    out->count[c] += (int64_t)task->finite;
    out->minima[c] = least < out->minima[c] ? least : out->minima[c];
    out->maxima[c] = most > out->maxima[c] ? most : out->maxima[c];
    n8c_limbs_add(out->total + c * N8C_LIMBS, over_lanes(task->sums.total));
    n8c_limbs_add(out->squares + c * N8C_LIMBS, over_lanes(task->sums.squares));
}

// Takes `count` values: whole channels of `plane` values, or a part of one channel of which
// `done` came before.
static void take(struct task *task, const float *in, size_t count, size_t first_channel,
                 size_t plane, size_t done) {
    size_t finite = 0;
    float largest = 0;
    for (size_t start = 0; start < count;) {
        size_t position = done + start;
        size_t rest = plane - position % plane;
        size_t part = rest < count - start ? rest : count - start;
        if (position % plane == 0)
            begin_channel(task, first_channel + position / plane);
        finite += add(task, in + start, part);
        struct range found = range(&task->sums);
        largest = found.most > largest ? found.most : largest;
        largest = -found.least > largest ? -found.least : largest;
        if (part == rest)
            end_channel(task, found);
        start += part;
    }
    struct n8c_statistics *out = task->out;
    if (out->positive == NULL)
        return;
    n8c_histogram_grow(out, largest);
    if (finite == count) {
        n8c_histogram_add(out, task->kernels, in, count);
        return;
    }
    float clean[N8C_BLOCK];
    for (size_t i = 0; i < count; i++)
        clean[i] = isfinite(in[i]) ? in[i] : 0;
    n8c_histogram_add(out, task->kernels, clean, count);
    out->zeros -= count - finite;
}

static void begin_sample(struct task *task, const struct n8c_kernels *kernels,
                         struct n8c_statistics *out, size_t channels) {
    task->kernels = kernels;
    task->out = out;
    if (out == NULL)
        return;
    out->sample_minimum = INFINITY;
    out->sample_maximum = -INFINITY;
    out->sample_nans = out->sample_infs = 0;
    if (out->count != NULL && ++out->sums > N8C_SUMS_MAX) {
        n8c_settle(out, channels);
        out->sums = 1;
    }
}

static void end_sample(const struct task *task) {
    struct n8c_statistics *out = task->out;
    if (out == NULL)
        return;
    out->minimum = fminf(out->minimum, out->sample_minimum);
    out->maximum = fmaxf(out->maximum, out->sample_maximum);
}

static void observe(const struct n8c_tensor *tensor, const struct n8c_kernels *kernels) {
    struct task raw, activated;
    float block[N8C_BLOCK];
    begin_sample(&raw, kernels, tensor->raw, tensor->channels);
    begin_sample(&activated, kernels, tensor->activated, tensor->channels);
    size_t total = tensor->channels * tensor->plane;
    // As many whole channels as fit, else a part of one.
    size_t step = tensor->plane < N8C_BLOCK ? N8C_BLOCK / tensor->plane * tensor->plane : N8C_BLOCK;
    for (size_t start = 0; start < total;) {
        size_t channel = start / tensor->plane, done = start % tensor->plane;
        size_t rest = tensor->plane < N8C_BLOCK ? total - start : tensor->plane - done;
        size_t count = rest < step ? rest : step;
        const float *in = tensor->values + start;
        if (raw.out != NULL)
            take(&raw, in, count, channel, tensor->plane, done);
        if (activated.out != NULL) {
            kernels->activate(block, in, count, tensor->slope, tensor->lo, tensor->hi);
            take(&activated, block, count, channel, tensor->plane, done);
        }
        start += count;
    }
    end_sample(&raw);
    end_sample(&activated);
}

static int valid(const struct n8c_statistics *s) {
    int histogram = s->positive != NULL;
    int channels = s->count != NULL;
    return histogram == (s->negative != NULL) && histogram == (s->tally != NULL) &&
           channels == (s->minima != NULL) && channels == (s->maxima != NULL) &&
           channels == (s->total != NULL) && channels == (s->squares != NULL);
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
    if (statistics->count != NULL) {
        for (size_t c = 0; c < channels; c++) {
            n8c_limbs_settle(statistics->total + c * N8C_LIMBS);
            n8c_limbs_settle(statistics->squares + c * N8C_LIMBS);
        }
        statistics->sums = 0;
    }
    return N8C_OK;
}
