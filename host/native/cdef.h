// SPDX-License-Identifier: Apache-2.0
//
// What `cc -E -P -DN8_CDEF` turns into neon8_calibrate_cdef.h, the text that cffi reads.
#include "neon8_calibrate.h"
