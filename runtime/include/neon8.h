// SPDX-License-Identifier: Apache-2.0
///
/// neon8: int8 inference on ARM, the same bytes on every back end.
///
/// This header is the whole public interface and the only cffi cdef: the build runs
/// it through `cc -E -P -DN8_CDEF`, so constants are enums and nothing here needs a
/// compiler at run time.
///
/// The library prints nothing, keeps no global state and never sets errno. Every
/// fallible function returns enum n8_status and leaves *out NULL on error. Equation
/// numbers refer to docs/numerics.md.
///
/// Structs end in room for later releases, `reserved`. What a caller fills in holds zeros there,
/// as it does after `= {0}`, or the call returns N8_E_ARGUMENT; what the library fills in does,
/// too. docs/howto/c-library.md promises what no release of this ABI changes.
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
    N8_E_ARGUMENT = 1,    ///< a pointer, index or size of this call is wrong
    N8_E_MEMORY = 2,      ///< out of memory; nothing was kept
    N8_E_FORMAT = 3,      ///< not a neon8 model, truncated, or self-contradictory
    N8_E_VERSION = 4,     ///< a model file of a format version this library cannot read
    N8_E_CHECKSUM = 5,    ///< the bytes of the model are not the bytes that were written
    N8_E_OVERFLOW = 6,    ///< an accumulator could leave int32 (12); refused, never wrapped
    N8_E_UNSUPPORTED = 7, ///< valid, but this build or this processor cannot do it
    N8_E_LIMIT = 8,       ///< valid, but takes more memory than max_bytes allows
    N8_E_ADDRESS = 9,     ///< valid, but takes more memory than pointers of this processor reach
    N8_E_SHAPE = 10,      ///< valid, but not at shapes that a caller asked for
};

enum n8_type {
    N8_TYPE_S8 = 1,
    N8_TYPE_F32 = 2,
    N8_TYPE_S32 = 3, ///< integers that are no quantized values: token ids, masks, indices; (27)
    N8_TYPE_U8 = 4,  ///< the bytes of an image, which an input may have
    N8_TYPE_S16 = 5, ///< an activation of 9 to 16 bits, (24)
};

/// Instruction set levels, in the order in which a later one is preferred.
enum n8_isa {
    N8_ISA_AUTO = 0,
    N8_ISA_C = 1,
    N8_ISA_VECTOR = 2,  ///< vectors as compilers know them: SSE4.1, or NEON on ARM computers
    N8_ISA_AVX2 = 3,    ///< the same of 256 bits
    N8_ISA_AVX512 = 4,  ///< and of 512: F, BW, DQ, VL and VNNI
    N8_ISA_NEON = 5,    ///< Advanced SIMD of Armv7-A and Armv8-A
    N8_ISA_DOTPROD = 6, ///< its dot products: sdot
    N8_ISA_I8MM = 7,    ///< and its products of int8 matrices: smmla
    N8_ISA_SME = 8,     ///< outer products of the Scalable Matrix Extension: smopa
};

enum n8_io {
    N8_INPUT = 0,
    N8_OUTPUT = 1,
};

struct n8_model;
struct n8_session;
struct n8_threads;
struct n8_conv2d;

/// How a tensor shares memory with another one. A result written over an operand that is no longer
/// needed, a view and a slice take no memory of their own.
enum n8_sharing {
    N8_SHARES_NOTHING = 0, ///< a place of its own
    N8_SHARES_PLACE = 1,   ///< it is written over an operand of the step that makes it
    N8_SHARES_VIEW = 2,    ///< it is its operand, or a part of that, under another shape
    N8_SHARES_SLICE = 3,   ///< it is written into its part of a concatenation
    N8_SHARES_TAIL = 4,   ///< it lies at the end of a concatenation, and is moved to its part of it
    N8_SHARES_CALLER = 5, ///< it stays with the caller, as a float32 input or output may
};

/// A value that flows through a model. A buffer of an input or output holds `size` bytes,
/// contiguous, in the order of `dims` (as in the ONNX network; `rank` of them are meaningful, the
/// others are 1). real = scale * (q - zero_point) and lo <= q <= hi for N8_TYPE_S8 and
/// N8_TYPE_S16; scale 1, zero point 0, lo -128 and hi 127 otherwise. Results of a run whose int16
/// inputs are not in lo .. hi are wrong.
struct n8_tensor_info {
    const char *name;   ///< owned by the model, as is
    const char *reason; ///< why it is N8_TYPE_F32 inside the network; NULL if the file does not say
    enum n8_type type;
    int32_t rank;
    int32_t dims[8];
    float scale;
    int32_t zero_point, lo, hi;
    int32_t code_lo, code_hi; ///< bounds of q that follow from the steps before
    size_t size;
    enum n8_sharing sharing;
    uint32_t shared; ///< number of the tensor that it shares with, or its own
    size_t offset;   ///< of its first value in the arena
    size_t stride;   ///< bytes from pixel to pixel, whose channels are neighbours
    uint32_t reserved[8];
};

/// One step of the plan, for those who want to look before they run. Fields that an operation
/// does not have hold 1 (kernel, stride, groups) or 0.
struct n8_step_info {
    const char *name;      ///< of the layer; owned by the model
    const char *operation; ///< "conv2d", "add", ...
    const char *kernel;    ///< its kernel's symbol; without one "copy" ..., without work "none"
    uint64_t macs;         ///< multiply-accumulates of one run
    uint64_t cost; ///< in int8 multiply-accumulates: one of int16 counts as 2, of float32 as 8,
                   ///< a byte of an operand or a result as 4; kernels are not looked at
    size_t packed; ///< bytes of its packed weights and other arrays
    const uint32_t *inputs; ///< tensor numbers for n8_model_tensor; owned by the model
    size_t input_count;
    uint32_t output;
    int32_t kernel_size[2], stride[2]; ///< height, width
    int32_t groups;
    int32_t weights_lo, weights_hi; ///< conv2d: the smallest and the largest weight
    uint64_t acc_bound;             ///< conv2d: (12), computed from the weights
    uint32_t int16_depth;           ///< conv2d: (11), checked against the weights
    uint32_t winograd;  ///< conv2d: the form of (23) that the weights prove: 1 whole, 2 half; or 0
    int64_t spread;     ///< tensor that is moved into a concatenation before, or -1
    const char *chosen; ///< conv2d: what decided for its kernel; NULL of other steps
    const char *passed; ///< conv2d: a kernel that would be preferred to it, or NULL
    const char *lack;   ///< what the layer lacks for that one
    size_t tables;      ///< table, image: how many, one for all channels or some for each
    size_t spared;      ///< bytes of packed weights that it gave up to fit max_bytes, and speed
    uint32_t reserved[16];
};

/// What is known of a model file as a whole.
struct n8_model_facts {
    uint32_t version;          ///< of the format
    uint32_t checksum;         ///< CRC-32, correct
    uint64_t file_size;        ///< bytes
    uint64_t data_size;        ///< of its arrays
    uint8_t source_digest[32]; ///< SHA-256 of the ONNX file
    size_t tensor_count, step_count, input_count, output_count;
    uint32_t reserved[8];
};

/// Memory in bytes. An opened model takes tables + packed; each of its sessions takes arena +
/// scratch for each of its threads, and less than 2 KB beside. arena_least is the largest sum of
/// values that are needed at the same time: no placement needs less. The arena depends on the file
/// alone; tables, packed and scratch depend on the processor, too.
struct n8_memory {
    uint64_t tables; ///< names, tensors and steps
    uint64_t packed; ///< weights in the order of the kernels
    uint64_t arena;  ///< activations
    uint64_t arena_least;
    uint64_t scratch; ///< of one thread
    uint32_t reserved[8];
};

enum n8_limits {
    N8_DEFAULT_MAX_BYTES = 1 << 30, ///< 1 GiB
};

/// Options of opening and measuring a model; zeros are the defaults.
struct n8_model_options {
    enum n8_isa isa;            ///< N8_ISA_AUTO: the level that N8_ISA names, else the best
    uint64_t max_bytes;         ///< of the model and one session together; 0: N8_DEFAULT_MAX_BYTES.
                                ///< To fit, layers give up weights that are packed larger for speed
    const int32_t (*shapes)[8]; ///< dimensions of each input, for a model some of which are open;
                                ///< NULL: the usual ones
    int32_t largest; ///< not 0: the largest that open dimensions may be; no `shapes` then
    uint32_t reserved[9];
};

/// What a dimension of an input may be.
struct n8_dimension {
    int32_t lo, hi, step;
    size_t same;
    uint32_t reserved[4];
};

/// Why a model was refused. `name` is that of the layer or tensor at fault, or NULL: it points
/// into the bytes of the file and may hold anything up to its NUL.
struct n8_model_error {
    const char *reason; ///< one line of English, never freed
    const char *name;   ///< of the layer if step >= 0, else of the tensor
    int32_t step;       ///< its index, or -1
    int32_t axis;       ///< of an input: the dimension that it may not have, or -1
    uint32_t reserved[8];
};

/// Options of a session. The result of a run depends on none of them.
struct n8_session_options {
    int32_t threads;                  ///< of the session's own, 1 to 64; 0 with a pool
    struct n8_threads *pool;          ///< runs on these threads instead, or NULL
    uint64_t (*clock)(void *context); ///< what n8_session_profile tells of runs, or NULL; called by
                                      ///< the thread that runs, in ticks of whatever it counts
    void *clock_context;
    uint32_t reserved[8];
};

/// Version of the library, "major.minor.patch".
N8_API const char *n8_version(void);

/// One line of English for a status; never NULL.
N8_API const char *n8_status_string(enum n8_status status);

/// Checks a model file in memory, plans it and packs its weights. Nothing of `bytes` is
/// needed afterwards. `options` may be NULL. Any byte of `bytes` may be hostile: N8_E_FORMAT,
/// N8_E_VERSION, N8_E_CHECKSUM or N8_E_OVERFLOW refuse it, N8_E_LIMIT and N8_E_ADDRESS do before
/// anything large is allocated. `error` may be NULL; it is filled in whatever the status is not
/// N8_OK.
N8_API enum n8_status n8_model_open(const void *bytes, size_t size,
                                    const struct n8_model_options *options, struct n8_model **out,
                                    struct n8_model_error *error);

/// What opening and running the model would take, without packing its weights: all of
/// n8_model_open's checks but those of the weights' values. options->max_bytes refuses nothing
/// here, and 0 is no limit: beyond it, `out` is the least that the model takes.
/// What is beyond the reach of pointers is no less than `out` says.
N8_API enum n8_status n8_model_measure(const void *bytes, size_t size,
                                       const struct n8_model_options *options,
                                       struct n8_memory *out, struct n8_model_error *error);

/// The same model at other shapes: dimensions of each input, of which as many count as it has. It
/// shares the weights that `model` has packed and has all else of its own, so it is described and
/// measured, and sessions are made of it, as of a model that was compiled for these shapes; they
/// give the same bytes. `model` may be the result of such a call, too, and several threads may make
/// some at a time; all must be closed before the one that was opened. N8_E_SHAPE: a dimension is
/// outside its bounds, or a layer cannot run; N8_E_LIMIT as for n8_model_open. `error` may be NULL.
N8_API enum n8_status n8_model_reshape(const struct n8_model *model, const int32_t (*shapes)[8],
                                       struct n8_model **out, struct n8_model_error *error);

/// What the dimension `axis` of input `index` may be: lo, lo + step .. hi; it has its only value
/// in both, and step 1, where it is not open. `same` is the first input dimension, 8 * index +
/// axis, that it is always equal to, or itself. N8_E_ARGUMENT past the last of either.
N8_API enum n8_status n8_model_bounds(const struct n8_model *model, size_t index, size_t axis,
                                      struct n8_dimension *out);

/// Ends a model; its sessions must have ended before. NULL is allowed.
N8_API void n8_model_close(struct n8_model *model);

/// Describes input or output `index`; N8_E_ARGUMENT past the last one.
N8_API enum n8_status n8_model_io(const struct n8_model *model, enum n8_io which, size_t index,
                                  struct n8_tensor_info *out);

/// Describes tensor `index`, of which inputs and outputs are some; N8_E_ARGUMENT past the last.
N8_API enum n8_status n8_model_tensor(const struct n8_model *model, size_t index,
                                      struct n8_tensor_info *out);

/// Describes step `index` of the plan; N8_E_ARGUMENT past the last one.
N8_API enum n8_status n8_model_step(const struct n8_model *model, size_t index,
                                    struct n8_step_info *out);

/// Describes the file that the model was opened from.
N8_API enum n8_status n8_model_describe(const struct n8_model *model, struct n8_model_facts *out);

/// What the model takes, and what each of its sessions will.
N8_API enum n8_status n8_model_memory(const struct n8_model *model, struct n8_memory *out);

/// Threads that several sessions, of any models, may share: runs at the same time take turns with
/// them, step by step, instead of having more threads than there are cores. A run uses the
/// thread that calls it and count - 1 of the pool, 1 <= count <= 64. They sleep when there is
/// nothing to do. In a child made by fork() there are none, and its runs use one thread.
N8_API enum n8_status n8_threads_create(int32_t count, struct n8_threads **out);

/// Ends the threads; sessions that use them must have ended before. NULL is allowed.
N8_API void n8_threads_destroy(struct n8_threads *threads);

/// Allocates everything that runs of `model` need. Several sessions may share a model and
/// run at the same time; one session serves one thread at a time. `options` may be NULL.
/// N8_E_LIMIT, N8_E_ADDRESS: with its threads' scratch, model and session are beyond the model's
/// max_bytes, or beyond what pointers reach.
/// Memory is touched when a run first needs it. After fork() the child may go on with a session:
/// its threads have stayed with the parent, so it runs on the calling thread alone.
N8_API enum n8_status n8_session_create(const struct n8_model *model,
                                        const struct n8_session_options *options,
                                        struct n8_session **out);
N8_API void n8_session_destroy(struct n8_session *session);

/// Runs the model once. inputs[i] and outputs[i] are laid out as n8_model_io says, aligned to
/// anything, and must not overlap. Neither allocates nor fails once the pointers are not NULL.
N8_API enum n8_status n8_session_run(struct n8_session *session, const void *const *inputs,
                                     void *const *outputs);

/// n8_session_run in two calls, for callers that pay for every argument, such as foreign function
/// interfaces. The first says which arrays of pointers later runs read; both must stay where they
/// are. The second runs with the pointers that are in them at that time, and returns N8_E_ARGUMENT
/// if nothing was bound.
N8_API enum n8_status n8_session_bind(struct n8_session *session, const void *const *inputs,
                                      void *const *outputs);
N8_API enum n8_status n8_session_run_bound(struct n8_session *session);

/// What the clock of n8_session_options showed in the last run: step_count + 3 values, the first
/// when inputs began to be copied, one when each step began, one when outputs began to be copied,
/// and one at the end. They stay where they are until the session is destroyed, and take 8 bytes
/// each beside what n8_model_memory says. NULL without a clock, which costs nothing.
N8_API const uint64_t *n8_session_profile(const struct n8_session *session);

/// Single layers -----------------------------------------------------------------------
///
/// The steps of a network one by one, with the kernels that the models use. Activations
/// here are NHWC: pixel p, channel c of an int8 tensor lies at base[p * stride + c]. Arrays of
/// float and int32_t are aligned to 4; N8_E_ARGUMENT says that one is not.

/// (2): out[i] = clamp(rne(in[i] * (1 / scale)) + zero_point, lo, hi); NaN gives zero_point.
N8_API enum n8_status n8_quantize_f32_s8(int8_t *out, const float *in, size_t count, float scale,
                                         int32_t zero_point, int32_t lo, int32_t hi);

/// (1): out[i] = scale * (in[i] - zero_point).
N8_API enum n8_status n8_dequantize_s8_f32(float *out, const int8_t *in, size_t count, float scale,
                                           int32_t zero_point);

/// (4): out[p][c] = in[p][c] * scale[c] + bias[c], two roundings. `bias` may be NULL; else each is
/// 0 or normal.
N8_API enum n8_status n8_dequantize_s32_f32(float *out, const int32_t *in, size_t pixels,
                                            size_t channels, const float *scale, const float *bias);

/// (5): out[p][c] = clamp(rne(in[p][c] * multiplier[c]) + zero_point, lo, hi).
N8_API enum n8_status n8_requantize_s32_s8(int8_t *out, const int32_t *in, size_t pixels,
                                           size_t channels, const float *multiplier,
                                           int32_t zero_point, int32_t lo, int32_t hi);

/// Geometry of a convolution and what is known of its input; a fully connected layer is one with a
/// 1x1 kernel on 1x1 pixels. Every value of the input lies in in_lo .. in_hi; both 0: in -128 ..
/// 127. Where it does not, results are wrong. Kernels for inputs of 128 values, as after ReLU, are
/// faster.
struct n8_conv2d_shape {
    int32_t batch;
    int32_t in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width;
    int32_t dilation_height, dilation_width;
    int32_t pad_top, pad_left; ///< the pad at the far ends follows from the output size
    int32_t groups;
    int32_t in_lo, in_hi;
    uint32_t reserved[6];
};

/// What becomes of the int32 accumulators. `type` selects: N8_TYPE_S32 stores acc'' = acc + bias
/// (3); N8_TYPE_F32 stores (float) acc'' * multiplier + bias_f32 (4); N8_TYPE_S8 requantizes (5),
/// with a residual added if there is one (6) and a leaky slope if there is one (5b).
/// Arrays have out_channels entries; NULL means all 0 (bias, bias_f32) or none (slope).
/// residual_scale is 0 where there is no residual, and below 0 where it is subtracted. lo <= hi
/// clamp the result.
struct n8_conv2d_epilogue {
    enum n8_type type;
    const int32_t *bias;
    const float *multiplier;
    const float *bias_f32;
    const float *slope;
    float residual_scale;
    int32_t residual_zero_point;
    int32_t zero_point, lo, hi;
    uint32_t reserved[7];
};

/// Packs weights [O][kh][kw][I / groups] for this processor. They are -127 .. 127, or -128 where
/// no other weight of its channel is (11).
/// `in_zero_point` is what padding is filled with. Everything is copied.
N8_API enum n8_status n8_conv2d_create(const struct n8_conv2d_shape *shape, const int8_t *weights,
                                       int32_t in_zero_point,
                                       const struct n8_conv2d_epilogue *epilogue, enum n8_isa isa,
                                       struct n8_conv2d **out);
N8_API void n8_conv2d_destroy(struct n8_conv2d *conv);

/// Runs it. in_stride, out_stride, residual_stride: bytes between pixels. For int8 tensors they
/// are at least the channel count rounded up to 8, and the 64 bytes after the last pixel of
/// `in` and `residual` are readable. Bytes between the channels of a pixel and the next multiple
/// of 8 may be written. `residual` is NULL unless residual_scale is not 0. One call at a time
/// for each object.
N8_API enum n8_status n8_conv2d_run(struct n8_conv2d *conv, void *out, ptrdiff_t out_stride,
                                    const int8_t *in, ptrdiff_t in_stride, const int8_t *residual,
                                    ptrdiff_t residual_stride);

#ifndef N8_CDEF
#ifdef __cplusplus
}
#endif
#endif

#endif // NEON8_H
