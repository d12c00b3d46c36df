// SPDX-License-Identifier: Apache-2.0
#include "intake.h"

#include "limbs.h"

static void end_channel(struct n8c_intake *intake, size_t index, size_t channel, size_t channels) {
    struct n8c_statistics *out = intake->out;
    const struct n8c_sums *sums = &intake->sums[intake->now][index];
    float minimum = sums->minimum + 0.0f, maximum = sums->maximum + 0.0f; // no -0
    if (minimum < intake->minimum) {
        intake->minimum = minimum;
        intake->argmin = channel;
    }
    if (maximum > intake->maximum) {
        intake->maximum = maximum;
        intake->argmax = channel;
    }
    if (out->count == NULL)
        return;
    out->count[channel] += (int64_t)intake->finite[index];
    out->minima[channel] = n8c_smaller(minimum, out->minima[channel]);
    out->maxima[channel] = n8c_larger(maximum, out->maxima[channel]);
    double *staged = out->staged + 2 * channels * out->staged_samples;
    staged[channel] = sums->total;
    staged[channels + channel] = sums->square;
}

void n8c_end_channels(struct n8c_intake *intake, size_t first, size_t count, size_t channels) {
    for (size_t i = 0; intake->out != NULL && i < count; i++)
        end_channel(intake, i, first + i, channels);
    intake->begun = 0;
}

// Adds the sums that wait. So a channel's limbs are fetched once for many samples.
static void add_staged(struct n8c_statistics *out, size_t channels) {
    size_t count = out->staged_samples, stride = 2 * channels;
    for (size_t channel = 0; channel < channels; channel++) {
        const double *staged = out->staged + channel;
        n8c_limbs_add_all(out->total + channel * N8C_LIMBS, staged, stride, count);
        n8c_limbs_add_all(out->squares + channel * N8C_LIMBS, staged + channels, stride, count);
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

void n8c_begin_sample(struct n8c_intake *intake, struct n8c_statistics *out, size_t channels) {
    intake->out = out;
    intake->now = intake->begun = 0;
    intake->minimum = INFINITY;
    intake->maximum = -INFINITY;
    intake->argmin = intake->argmax = 0;
    if (out == NULL)
        return;
    out->sample_nans = out->sample_infs = 0;
    if (out->count != NULL && out->staged_samples == N8C_STAGED)
        add_staged(out, channels);
    if (out->count != NULL && out->added_samples > N8C_SUMS_MAX)
        settle_sums(out, channels);
}

void n8c_end_sample(const struct n8c_intake *intake) {
    struct n8c_statistics *out = intake->out;
    if (out == NULL)
        return;
    out->sample_minimum = intake->minimum;
    out->sample_maximum = intake->maximum;
    out->sample_argmin = intake->argmin;
    out->sample_argmax = intake->argmax;
    out->minimum = n8c_smaller(out->minimum, intake->minimum);
    out->maximum = n8c_larger(out->maximum, intake->maximum);
    if (out->count != NULL)
        out->staged_samples++;
}

int n8c_valid(const struct n8c_statistics *s) {
    int histogram = s->positive != NULL;
    int channels = s->count != NULL;
    return histogram == (s->negative != NULL) && channels == (s->minima != NULL) &&
           channels == (s->maxima != NULL) && channels == (s->total != NULL) &&
           channels == (s->squares != NULL) && channels == (s->staged != NULL) &&
           s->staged_samples <= N8C_STAGED;
}

enum n8c_status n8c_settle(struct n8c_statistics *statistics, size_t channels) {
    if (statistics == NULL || !n8c_valid(statistics))
        return N8C_E_ARGUMENT;
    if (statistics->count != NULL)
        settle_sums(statistics, channels);
    return N8C_OK;
}
