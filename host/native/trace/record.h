// SPDX-License-Identifier: Apache-2.0
#ifndef N8_TRACE_RECORD_H
#define N8_TRACE_RECORD_H

#include "neon8_trace.h"

// The next part of the run begins.
void n8_record_part(void);

// A call of `kernel`, whose name stays where it is; sizes that it does not have are 0.
void n8_record(const char *kernel, const uint32_t sizes[N8_TRACE_SIZES]);

#endif // N8_TRACE_RECORD_H
