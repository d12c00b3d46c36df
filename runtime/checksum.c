// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

enum { SLICES = 8 };

// t[0][b] is the CRC of byte b; t[s][b] that of b followed by s zero bytes, so that eight
// bytes can be looked up side by side. Making the tables costs less than 2 KB of input.
static void make_tables(uint32_t t[SLICES][256]) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
        }
        t[0][byte] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            const uint32_t crc = t[slice - 1][byte];
            t[slice][byte] = (crc >> 8) ^ t[0][crc & 255u];
        }
    }
}

uint32_t n8_crc32(const uint8_t *bytes, size_t size) {
    uint32_t t[SLICES][256];
    make_tables(t);
    uint32_t crc = 0xffffffffu;
    for (; size >= SLICES; size -= SLICES, bytes += SLICES) {
        crc ^= (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
        crc = t[7][crc & 255u] ^ t[6][(crc >> 8) & 255u] ^ t[5][(crc >> 16) & 255u] ^
              t[4][crc >> 24] ^ t[3][bytes[4]] ^ t[2][bytes[5]] ^ t[1][bytes[6]] ^ t[0][bytes[7]];
    }
    for (; size > 0; size--, bytes++) {
        crc = (crc >> 8) ^ t[0][(crc ^ *bytes) & 255u];
    }
    return ~crc;
}
