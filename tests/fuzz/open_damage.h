// SPDX-License-Identifier: Apache-2.0
#ifndef FUZZ_OPEN_DAMAGE_H
#define FUZZ_OPEN_DAMAGE_H

#include <stdint.h>

// Damages what a file of version 3 says of its open dimensions, in 1 to 3 places; `bytes` is a file
// that was valid. The checksum is left as it is.
void damage_open(uint8_t *bytes, uint64_t (*next_random)(void));

#endif // FUZZ_OPEN_DAMAGE_H
