// SPDX-License-Identifier: Apache-2.0
#ifndef N8_CHECKSUM_H
#define N8_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

// CRC-32 of IEEE 802.3, as zlib's crc32(). It finds every altered byte and every burst of
// up to 32 bits; it is no protection against an author, which is why the reader trusts
// nothing after it.
uint32_t n8_crc32(const uint8_t *bytes, size_t size);

#endif // N8_CHECKSUM_H
