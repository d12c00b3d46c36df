// SPDX-License-Identifier: Apache-2.0
#include "neon8_calibrate.h"

const char *n8c_version(void) {
    return N8_VERSION;
}
