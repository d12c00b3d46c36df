// SPDX-License-Identifier: Apache-2.0
//
// An opened model: immutable, shared by its sessions, and one allocation.
#ifndef N8_MODEL_H
#define N8_MODEL_H

#include "conv/conv.h"
#include "cpu/dispatch.h"
#include "include/neon8.h"
#include "include/neon8_format.h"
#include "size.h"
#include "status.h"

#include <stdbool.h>

enum { N8_ALIGN = 64 };

struct n8_tensor {
    const char *name;
    const char *reason; // why it is float32, or NULL
    enum n8_type type;
    int32_t rank;
    int32_t onnx_dims[N8_FORMAT_MAX_RANK];
    int32_t dims[4]; // N C H W
    float scale;
    int32_t zero_point, lo, hi;
    int32_t value_lo, value_hi; // of int8 and int16: no value is outside, whatever the inputs
    size_t pixels;              // N * H * W
    size_t pixel_stride;        // bytes: n8_own_stride, or more in a slice of another tensor
    bool caller;                // it lies where the caller has it, not in the arena
    bool last;                  // the caller has it as the input `input`, N H W C
    size_t bytes;               // of the buffer, N8_SLACK included; 0 if the caller has it
    size_t offset;              // in the arena
    bool slice;                 // bytes between its pixels' channels belong to other tensors
    enum n8_sharing sharing;    // what its memory is to it
    uint32_t shared;            // the tensor that it shares with, or its own number
    size_t born, dies;          // steps between which the buffer is in use, both included
    int32_t input, output;      // number of the network's input or output that it is, or -1
    bool constant;              // never written: it lies in the packed memory and takes no arena
    uint8_t *fixed;             // where; NULL until it is packed
};

// A piece of a concatenation that waits at the end of the whole until this one is needed, and is
// then moved to where it is read.
struct n8_spread {
    bool wanted;
    uint32_t tensor;
    size_t offset, stride; // where it goes
};

struct n8_step {
    const struct n8_operator *op;
    struct n8_file_op row; // as in the file, checked
    const char *name;
    const uint32_t *inputs;     // tensor numbers
    const struct n8_tensor *in; // the first of them, or NULL
    const struct n8_tensor *out;
    // What the operator's plan fills in.
    const char *kernel_name;
    size_t units;        // of work, each may run on another thread
    uint32_t placing;    // enum n8_placing, as of the operator unless said otherwise
    size_t scratch_size; // of one thread
    size_t packed_size;
    size_t tables; // (8) of 256 entries each, or 0
    size_t spared; // of packed_size, to fit max_bytes
    uint64_t macs;
    uint32_t mac_cost;   // of one of them, in those of int8; 0 for 1
    struct n8_conv conv; // of a conv2d
    struct n8_conv_proof proof;
    struct n8_spread spread; // before the step
    size_t grain;            // units that are worth the call of a thread, >= 1
    const void *arrays[5];   // in the file, aligned to nothing, until the operator packs them
    const void *packed;      // what it made of them
};

struct n8_origin;

struct n8_model {
    struct n8_origin *origin; // of a model with open dimensions, the same at all shapes; or NULL
    bool opened;              // it closes the origin
    struct n8_kernels kernels;
    struct n8_model_facts facts;
    struct n8_memory memory;
    uint64_t max_bytes;
    struct n8_tensor *tensors;
    struct n8_step *steps;
    uint32_t *links;
    const uint32_t *inputs, *outputs; // into links
};

static inline size_t n8_value_size(const struct n8_tensor *tensor) {
    switch (tensor->type) {
    case N8_TYPE_F32:
    case N8_TYPE_S32:
        return sizeof(int32_t);
    case N8_TYPE_S16:
        return sizeof(int16_t);
    default:
        return 1;
    }
}

// Values without the padding of the channels.
static inline size_t n8_value_count(const struct n8_tensor *tensor) {
    return tensor->pixels * (size_t)tensor->dims[1];
}

// The bytes between the pixels of a tensor that lies in a buffer of its own.
static inline size_t n8_own_stride(const struct n8_tensor *tensor) {
    const size_t channels = (size_t)tensor->dims[1];
    const size_t size = n8_value_size(tensor);
    return (size == sizeof(float) ? channels : n8_round_up(channels, N8_PIXEL)) * size;
}

static inline const struct n8_tensor *n8_input(const struct n8_model *model,
                                               const struct n8_step *step, size_t index) {
    return &model->tensors[step->inputs[index]];
}

#endif // N8_MODEL_H
