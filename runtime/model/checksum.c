// SPDX-License-Identifier: Apache-2.0
#include "checksum.h"

#include <string.h>

// The polynomial of the CRC divides x^300 + x^155 + x^117 + x^89 + 1. So a bit of the message may
// be cleared if those that come 145, 183, 211 and 300 bits later are flipped, and a word of 64 bits
// if it is shifted into the words 2 to 5 places on (the method is known as Chorba). No table is
// needed, and only the last bytes go through the division bit by bit.
enum {
    WORD = 8,
    AHEAD = 5, // words that one is shifted into
    LAST = 64, // bytes that are divided, at least AHEAD words and an unfinished one
};

// The first bit of the message is the lowest of a little-endian word.
static uint64_t load(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

// Clears words from the first on, until LAST bytes are left or a few less, and returns how many
// bytes were cleared; `flips` is what the next AHEAD words are to be combined with.
static size_t clear_words(const uint8_t *bytes, size_t size, uint64_t flips[AHEAD]) {
    uint64_t f0 = flips[0], f1 = flips[1], f2 = flips[2], f3 = flips[3], f4 = flips[4];
    size_t done = 0;
    for (; size - done > LAST; done += WORD) {
        const uint64_t w = load(bytes + done) ^ f0;
        f0 = f1;
        f1 = f2 ^ w << 17 ^ w << 55;
        f2 = f3 ^ w >> 47 ^ w >> 9 ^ w << 19;
        f3 = f4 ^ w >> 45 ^ w << 44;
        f4 = w >> 20;
    }
    const uint64_t left[AHEAD] = {f0, f1, f2, f3, f4};
    memcpy(flips, left, sizeof left);
    return done;
}

uint32_t n8_crc32(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xffffffffu;
    uint8_t last[LAST];
    if (size > LAST) {
        uint64_t flips[AHEAD] = {crc};
        const size_t done = clear_words(bytes, size, flips);
        size -= done;
        memcpy(last, bytes + done, size);
        for (size_t i = 0; i < AHEAD; i++) {
            const uint64_t word = load(last + i * WORD) ^ flips[i];
            memcpy(last + i * WORD, &word, sizeof word);
        }
        bytes = last;
        crc = 0;
    }
    for (; size > 0; size--, bytes++) {
        crc ^= *bytes;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}
