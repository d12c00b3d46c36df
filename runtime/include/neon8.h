// SPDX-License-Identifier: Apache-2.0
//
// neon8: int8 inference on ARM, the same bytes on every back end.
//
// This header is the whole public interface and the only cffi cdef: the build runs
// it through `cc -E -P -DN8_CDEF`, so constants are enums and nothing here needs a
// compiler at run time.
//
// The library prints nothing, keeps no global state and never sets errno. Every
// fallible function returns enum n8_status and leaves *out NULL on error. Equation
// numbers refer to docs/numerics.md.
#ifndef NEON8_H
#define NEON8_H

#ifdef N8_CDEF
#define N8_API
#else
#include <stddef.h>
#include <stdint.h>
#define N8_API __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
#endif

enum n8_status {
    N8_OK = 0,
    N8_E_ARGUMENT = 1,    // a pointer, index or size of this call is wrong
    N8_E_MEMORY = 2,      // out of memory; nothing was kept
    N8_E_FORMAT = 3,      // not a neon8 model, truncated, or self-contradictory
    N8_E_VERSION = 4,     // a model file of a format version this library cannot read
    N8_E_CHECKSUM = 5,    // the bytes of the model are not the bytes that were written
    N8_E_OVERFLOW = 6,    // an accumulator could leave int32 (12); refused, never wrapped
    N8_E_UNSUPPORTED = 7, // valid, but this build or this processor cannot do it
};

enum n8_type {
    N8_TYPE_S8 = 1,
    N8_TYPE_F32 = 2,
    N8_TYPE_S32 = 3,
};

// Instruction set levels, in the order in which a later one is preferred.
enum n8_isa {
    N8_ISA_AUTO = 0,
    N8_ISA_C = 1,
    N8_ISA_NEON = 2, // Armv8-A Advanced SIMD
};

enum n8_io {
    N8_INPUT = 0,
    N8_OUTPUT = 1,
};

struct n8_model;
struct n8_session;
struct n8_conv2d;

// What a model takes or gives. A buffer holds `size` bytes, contiguous, in the order
// of `dims` (N, C, H, W as in the ONNX network; `rank` of them are meaningful).
// real = scale * (q - zero_point) and lo <= q <= hi for N8_TYPE_S8; scale 1, zero point 0,
// lo -128 and hi 127 otherwise.
struct n8_tensor_info {
    const char *name; // owned by the model
    enum n8_type type;
    int32_t rank;
    int32_t dims[4];
    float scale;
    int32_t zero_point, lo, hi;
    size_t size;
};

// One step of the plan, for those who want to look before they run.
struct n8_step_info {
    const char *name;      // of the layer; owned by the model
    const char *operation; // "conv2d", "add", ...
    const char *kernel;    // the chosen kernel's symbol
    uint64_t macs;         // multiply-accumulates of one run
};

struct n8_model_options {
    enum n8_isa isa; // N8_ISA_AUTO: the environment variable N8_ISA (c, neon), else the best
};

struct n8_session_options {
    int32_t threads; // 1 to 64; the result does not depend on it
};

// Version of the library, "major.minor.patch".
N8_API const char *n8_version(void);

// One line of English for a status; never NULL.
N8_API const char *n8_status_string(enum n8_status status);

// Checks a model file in memory, plans it and packs its weights. Nothing of `bytes` is
// needed afterwards. `options` may be NULL. Any byte of `bytes` may be hostile.
N8_API enum n8_status n8_model_open(const void *bytes, size_t size,
                                    const struct n8_model_options *options, struct n8_model **out);

// Ends a model; its sessions must have ended before. NULL is allowed.
N8_API void n8_model_close(struct n8_model *model);

// Describes input or output `index`; N8_E_ARGUMENT past the last one.
N8_API enum n8_status n8_model_io(const struct n8_model *model, enum n8_io which, size_t index,
                                  struct n8_tensor_info *out);

// Describes step `index` of the plan; N8_E_ARGUMENT past the last one.
N8_API enum n8_status n8_model_step(const struct n8_model *model, size_t index,
                                    struct n8_step_info *out);

// Allocates everything that runs of `model` need. Several sessions may share a model and
// run at the same time; one session serves one thread at a time. `options` may be NULL.
N8_API enum n8_status n8_session_create(const struct n8_model *model,
                                        const struct n8_session_options *options,
                                        struct n8_session **out);
N8_API void n8_session_destroy(struct n8_session *session);

// Runs the model once. inputs[i] and outputs[i] are laid out as n8_model_io says and must
// not overlap. Neither allocates nor fails once the pointers are not NULL.
N8_API enum n8_status n8_session_run(struct n8_session *session, const void *const *inputs,
                                     void *const *outputs);

// Single layers -----------------------------------------------------------------------
//
// The steps of a network one by one, with the kernels that the models use. Activations
// here are NHWC: pixel p, channel c of an int8 tensor lies at base[p * stride + c].

// (2): out[i] = clamp(rne(in[i] * (1 / scale)) + zero_point, lo, hi); NaN gives zero_point.
N8_API enum n8_status n8_quantize_f32_s8(int8_t *out, const float *in, size_t count, float scale,
                                         int32_t zero_point, int32_t lo, int32_t hi);

// (1): out[i] = scale * (in[i] - zero_point).
N8_API enum n8_status n8_dequantize_s8_f32(float *out, const int8_t *in, size_t count, float scale,
                                           int32_t zero_point);

// (4): out[p][c] = in[p][c] * scale[c] + bias[c], two roundings. `bias` may be NULL.
N8_API enum n8_status n8_dequantize_s32_f32(float *out, const int32_t *in, size_t pixels,
                                            size_t channels, const float *scale, const float *bias);

// (5): out[p][c] = clamp(rne(in[p][c] * multiplier[c]) + zero_point, lo, hi).
N8_API enum n8_status n8_requantize_s32_s8(int8_t *out, const int32_t *in, size_t pixels,
                                           size_t channels, const float *multiplier,
                                           int32_t zero_point, int32_t lo, int32_t hi);

// Geometry of a convolution; a fully connected layer is one with a 1x1 kernel on 1x1 pixels.
struct n8_conv2d_shape {
    int32_t batch;
    int32_t in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width;
    int32_t dilation_height, dilation_width;
    int32_t pad_top, pad_left; // the pad at the far ends follows from the output size
    int32_t groups;
};

// What happens to the int32 sums. `type` selects: N8_TYPE_S32 stores acc'' = acc + bias (3);
// N8_TYPE_F32 stores (float) acc'' * multiplier + bias_f32 (4); N8_TYPE_S8 requantizes (5),
// with a residual added if there is one (6) and a leaky slope if there is one (5b).
// Arrays have out_channels entries; NULL means all 0 (bias, bias_f32) or none (slope).
// residual_scale is 0 where there is no residual. lo <= hi clamp the result.
struct n8_conv2d_epilogue {
    enum n8_type type;
    const int32_t *bias;
    const float *multiplier;
    const float *bias_f32;
    const float *slope;
    float residual_scale;
    int32_t residual_zero_point;
    int32_t zero_point, lo, hi;
};

// Packs weights [O][kh][kw][I / groups] (values -127..127) for this processor.
// `in_zero_point` is what padding is filled with. Everything is copied.
N8_API enum n8_status n8_conv2d_create(const struct n8_conv2d_shape *shape, const int8_t *weights,
                                       int32_t in_zero_point,
                                       const struct n8_conv2d_epilogue *epilogue, enum n8_isa isa,
                                       struct n8_conv2d **out);
N8_API void n8_conv2d_destroy(struct n8_conv2d *conv);

// Runs it. in_stride, out_stride, residual_stride: bytes between pixels. For int8 tensors they
// are at least the channel count rounded up to 8, and the 64 bytes behind the last pixel of
// `in` and `residual` are readable. Bytes between the channels of a pixel and the next multiple
// of 8 may be written. `residual` is NULL unless residual_scale is not 0. One call at a time
// for each object.
N8_API enum n8_status n8_conv2d_run(struct n8_conv2d *conv, void *out, ptrdiff_t out_stride,
                                    const int8_t *in, ptrdiff_t in_stride, const int8_t *residual,
                                    ptrdiff_t residual_stride);

#ifndef N8_CDEF
#ifdef __cplusplus
}
#endif
#endif

#endif // NEON8_H
