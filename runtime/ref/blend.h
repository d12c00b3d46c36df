// SPDX-License-Identifier: Apache-2.0
//
// (17): between left and right above, the same below, then between the two.
#ifndef N8_REF_BLEND_H
#define N8_REF_BLEND_H

#include "epilogue.h"

N8_INLINE float n8_blend(float a, float b, float c, float d, const struct n8_blend_args *args) {
    const float above = a * args->left + b * args->right;
    const float below = c * args->left + d * args->right;
    return above * args->upper + below * args->lower;
}

#endif // N8_REF_BLEND_H
