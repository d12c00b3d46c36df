// SPDX-License-Identifier: Apache-2.0
//
// Where the values of a float32 tensor lie, by the axes that ONNX knows.
#ifndef N8_STRIDES_H
#define N8_STRIDES_H

#include "model.h"

// stride[axis], axis < rank: from one index to the next, in floats. Memory is N H W C, and W all
// axes from the fourth on.
static inline void n8_axis_strides(const struct n8_tensor *tensor, size_t *stride) {
    size_t size = (size_t)tensor->dims[1];
    for (int32_t axis = tensor->rank - 1; axis >= 0; axis--) {
        stride[axis] = axis == 1 ? 1 : size;
        size *= axis == 1 ? 1 : (size_t)tensor->onnx_dims[axis];
    }
}

#endif // N8_STRIDES_H
