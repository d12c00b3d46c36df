// SPDX-License-Identifier: Apache-2.0
//
// The activation as the compiler vectorizes it for the file that includes this.
#include "kernels.h"

static inline void n8c_activate(float *out, const float *in, size_t count, float slope, float lo,
                                float hi) {
    for (size_t i = 0; i < count; i++) {
        // One of the two is 0, so the sum is exact, and there is no branch to mispredict.
        float below = in[i] < 0 ? in[i] : 0;
        float above = in[i] < 0 ? 0 : in[i];
        float x = below * slope + above;
        x = x < lo ? lo : x;
        out[i] = x > hi ? hi : x;
    }
}
