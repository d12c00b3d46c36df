// SPDX-License-Identifier: Apache-2.0
//
// The CRC of every length up to some words more than what is divided bit by bit, against its
// definition.
#include "model/checksum.h"

#include <stdio.h>

enum { LENGTHS = 400, OFFSETS = 9 };

static uint32_t plain_crc32(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < 8 * size; i++) {
        const uint32_t bit = (uint32_t)(bytes[i / 8] >> i % 8) & 1u;
        crc = (crc >> 1) ^ ((crc ^ bit) & 1u ? 0xedb88320u : 0u);
    }
    return ~crc;
}

int main(void) {
    uint8_t bytes[LENGTHS + OFFSETS];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
    int failures = n8_crc32((const uint8_t *)"123456789", 9) != 0xcbf43926u;
    for (size_t size = 0; size < LENGTHS; size++) {
        for (size_t offset = 0; offset < OFFSETS; offset++) {
            if (n8_crc32(bytes + offset, size) != plain_crc32(bytes + offset, size)) {
                printf("%zu bytes from offset %zu\n", size, offset);
                failures++;
            }
        }
    }
    return failures != 0;
}
