// SPDX-License-Identifier: Apache-2.0
//
// Which fields and flags of a step a file may set: those of every family that its operator has,
// though no operator of today has two families of flags.
#include "model/reader.c"

#include <stdio.h>

int main(void) {
    enum { ALL_FLAGS = 31 };
    struct n8_file_op row;
    memset(&row, 1, sizeof row);
    row.flags = ALL_FLAGS;
    const uint32_t count_pad = without_others(&row, N8_FIELD_COUNT_PAD).flags;
    const uint32_t recurrent = without_others(&row, N8_FIELD_RECURRENT).flags;
    const uint32_t weights = without_others(&row, N8_FIELD_WEIGHTS).flags;
    const struct n8_file_op all = without_others(&row, UINT32_MAX);
    const struct n8_file_op none = without_others(&row, 0);
    const bool apart = (count_pad & recurrent) == 0 && ((count_pad | recurrent) & weights) == 0;
    if (!apart || none.flags != 0 || all.flags != (count_pad | recurrent | weights)) {
        printf("flags: %x %x %x, together %x\n", count_pad, recurrent, weights, all.flags);
        return 1;
    }
    row.flags = all.flags;
    if (memcmp(&row, &all, sizeof row) != 0) {
        printf("a field belongs to no family\n");
        return 1;
    }
    return memcmp(&row, &none, sizeof row) == 0;
}
