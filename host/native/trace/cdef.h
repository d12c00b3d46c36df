// SPDX-License-Identifier: Apache-2.0
//
// What `cc -E -P -DN8_CDEF` turns into neon8_trace_cdef.h, the text that cffi reads.
#include "../../../runtime/include/cdef.h"
#include "neon8_trace.h"
