// SPDX-License-Identifier: Apache-2.0
#include "checkasm.h"

#include <string.h>

// SplitMix64.
uint64_t rng_next(struct rng *rng) {
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t rng_below(struct rng *rng, uint32_t bound) {
    return (uint32_t)(((rng_next(rng) >> 32) * bound) >> 32);
}

int32_t rng_range(struct rng *rng, int32_t low, int32_t high) {
    const uint32_t span = (uint32_t)high - (uint32_t)low + 1;
    return (int32_t)((uint32_t)low + rng_below(rng, span));
}

float rng_float(struct rng *rng, float low, float high) {
    return low + (high - low) * ((float)rng_below(rng, 1u << 24) / 16777216.0f);
}

void rng_bytes(struct rng *rng, void *out, size_t size) {
    uint8_t *bytes = out;
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        const uint64_t value = rng_next(rng);
        memcpy(bytes, &value, sizeof value);
    }
    if (size > 0) {
        const uint64_t value = rng_next(rng);
        memcpy(bytes, &value, size);
    }
}
