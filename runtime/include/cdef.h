// SPDX-License-Identifier: Apache-2.0
//
// What `cc -E -P -DN8_CDEF` turns into neon8_cdef.h, the text that cffi reads.
#include "neon8.h"
#include "neon8_format.h"
