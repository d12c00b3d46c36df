// SPDX-License-Identifier: Apache-2.0
//
// The model file, versions 2 and 3, as C structs: read by runtime/model/reader.c and, through
// cffi, written by host/neon8/compile/writer.py. docs/format.md describes it in words.
//
//   header | tensors | ops | links | strings | data                               version 2
//   header | shapes | tensors | ops | links | strings | symbols | sizes | forms | words | data   3
//
// Version 3 is that of a network some of whose dimensions are open. A dimension of a tensor and
// a field of an op's window that is negative, -1 - i, is size i; an array of an op whose offset is
// odd, 2 i + 1, is made by form i.
//
// Little-endian. Every table starts at a multiple of 8, every array in `data` at a multiple
// of 64. Offsets are in bytes from the start of the file. Parts and arrays follow one another
// without room for anything between; the gaps that alignment leaves are zero.
#ifndef NEON8_FORMAT_H
#define NEON8_FORMAT_H

#ifndef N8_CDEF
#include <stdint.h>
#endif

enum n8_format {
    N8_FORMAT_VERSION = 2,
    N8_FORMAT_VERSION_OPEN = 3,
    N8_FORMAT_ALIGN_DATA = 64,
    N8_FORMAT_MAX_COUNT = 16384, // of tensors, of ops, of links
    N8_FORMAT_MAX_DIM = 1 << 20, // of one tensor dimension
    N8_FORMAT_MAX_NAME = 1023,   // bytes of a name without its NUL
    N8_FORMAT_MAX_RANK = 8,      // dimensions of a tensor in the ONNX network
    N8_FORMAT_MAX_SYMBOLS = 16,
};

// q is s8 or s16, (24), of each operand and of the result by itself; x is s8, s16, f32 or s32, the
// same of all.
enum n8_op {
    N8_OP_QUANTIZE = 1,       // f32 -> q, (2)
    N8_OP_DEQUANTIZE = 2,     // q -> f32, (1)
    N8_OP_CONV2D = 3,         // q [, q residual] -> q (5)(6) or f32 (4)
    N8_OP_ADD = 4,            // q, q -> q, (6)
    N8_OP_REQUANTIZE = 5,     // q -> q with another scale, or a lone activation
    N8_OP_MAX_POOL = 6,       // q -> q of the same type, (9)
    N8_OP_AVERAGE_POOL = 7,   // q -> q of the same type or f32, (9)
    N8_OP_CONCAT = 8,         // x, x, ... -> x, moves values
    N8_OP_RESHAPE = 9,        // x -> x, moves values; N C H W order is kept
    N8_OP_SOFTMAX = 10,       // f32 -> f32 along an axis, (14)
    N8_OP_TABLE = 11,         // s8 -> s8, (8)
    N8_OP_MULTIPLY = 12,      // q, q -> q, (16)
    N8_OP_DIVIDE = 13,        // q, q -> q, (16)
    N8_OP_LRN = 14,           // s8 -> s8, (18)
    N8_OP_INSTANCE_NORM = 15, // s8 -> s8, (19)
    N8_OP_MAXIMUM = 16,       // q, q -> q of the same type, (9)
    N8_OP_MINIMUM = 17,       // q, q -> q of the same type, (9)
    N8_OP_SUM = 18,           // q, q, ... -> q, (6)
    N8_OP_INTERPOLATE = 19,   // q -> q, not both s8, (26)

    N8_OP_PERMUTE = 20, // x -> x, moves values; the axes of a view are permuted
    N8_OP_GATHER = 21,  // x -> x, moves values; lists of indices for N, C, H and W
    N8_OP_RESIZE = 22,  // s8 -> s8 or f32 -> f32, (17)
    N8_OP_MATMUL = 24,  // s8, s8 -> q or f32, (29)

    N8_OP_SOFTMAX_Q = 25,     // q -> q along an axis, (30)
    N8_OP_NORMALIZATION = 26, // q -> q, (31)

    N8_OP_CONSTANT = 30,         // -> x, the same in every run
    N8_OP_UNARY = 31,            // f32 -> f32, a function of each value, (22)
    N8_OP_BINARY = 32,           // f32, f32 -> f32, broadcast as in ONNX, (22)
    N8_OP_CONV2D_F32 = 33,       // f32 -> f32, (20)
    N8_OP_MAX_POOL_F32 = 34,     // f32 -> f32, (20)
    N8_OP_AVERAGE_POOL_F32 = 35, // f32 -> f32, (20)
    N8_OP_GRU = 36,              // f32 [, f32 state] -> f32, (21)
    N8_OP_LSTM = 37,             // f32 [, f32 state, f32 cell] -> f32, (21)
    N8_OP_RNN = 38,              // f32 [, f32 state] -> f32, (21)
    N8_OP_IMAGE = 39,            // u8, an input that is N H W C -> s8, (8)

    N8_OP_TO_INTEGER = 40, // f32 -> s32, (27)
    N8_OP_TO_FLOAT = 41,   // s32 -> f32, (27)
    N8_OP_INTEGER = 42,    // s32, s32 -> s32, broadcast as in ONNX, (27)
    N8_OP_COMPARE = 43,    // f32, f32 -> s32, the same
    N8_OP_WHERE = 44,      // s32, x, x -> x, moves values, the same

    N8_OP_TOP = 50,  // x -> s32, (36)
    N8_OP_TAKE = 51, // x, s32 -> x, (37)
    N8_OP_PUT = 52,  // x, s32, x -> x, (37)
    N8_OP_NMS = 53,  // f32, f32 -> s32, (38)
};

// What the arithmetic of (22) and (27) is made of. Those before MINIMUM serve the functions of
// unary steps; those of two values serve binary, integer and compare steps, as their checks say.
enum n8_function {
    N8_FUNCTION_NONE = 0,
    N8_FUNCTION_X = 1,        // the value
    N8_FUNCTION_CONSTANT = 2, // the parameter
    N8_FUNCTION_ADD = 3,
    N8_FUNCTION_SUBTRACT = 4,
    N8_FUNCTION_MULTIPLY = 5,
    N8_FUNCTION_DIVIDE = 6,
    N8_FUNCTION_ABSOLUTE = 7,
    N8_FUNCTION_EXP = 8,
    N8_FUNCTION_LOG = 9,
    N8_FUNCTION_SQRT = 10,
    N8_FUNCTION_POWER = 11, // to the parameter
    N8_FUNCTION_ERF = 12,
    N8_FUNCTION_SIGMOID = 13,
    N8_FUNCTION_TANH = 14,
    N8_FUNCTION_SOFTPLUS = 15,
    N8_FUNCTION_ELU = 16,       // the parameter is alpha
    N8_FUNCTION_LEAKY = 17,     // ... the slope
    N8_FUNCTION_CLIP = 18,      // the parameters are the bounds
    N8_FUNCTION_THRESHOLD = 19, // x if it is above the parameter, else 0
    N8_FUNCTION_FLOOR = 20,
    N8_FUNCTION_CEIL = 21,
    N8_FUNCTION_ROUND = 22, // half to even
    N8_FUNCTION_MINIMUM = 23,
    N8_FUNCTION_MAXIMUM = 24,
    N8_FUNCTION_PRELU = 25, // a < 0 ? a * b : a
    N8_FUNCTION_EQUAL = 26,
    N8_FUNCTION_LESS = 27,
    N8_FUNCTION_LESS_EQUAL = 28,
    N8_FUNCTION_REMAINDER = 29, // of a division towards 0
    N8_FUNCTION_MODULO = 30,    // ... towards -infinity
    N8_FUNCTION_AND = 31,       // bit by bit, as the next two
    N8_FUNCTION_OR = 32,
    N8_FUNCTION_XOR = 33,
    N8_FUNCTION_SHIFT_LEFT = 34,
    N8_FUNCTION_SHIFT_RIGHT = 35, // of signed integers
    N8_FUNCTION_SINE = 36,
    N8_FUNCTION_ARCTANGENT = 37,
    N8_FUNCTION_NARROW = 38, // rounded to bits of a significand and a least exponent
};

enum n8_function_size {
    N8_FUNCTION_MOST = 64, // in the function of one unary step
};

enum n8_op_flags {
    N8_OP_COUNT_PAD = 1,           // average pool: padding counts as taps
    N8_OP_REVERSE = 2,             // gru, lstm, rnn of one direction: from the last step on;
                                   // top: of equal values the last one comes first
    N8_OP_LINEAR_BEFORE_RESET = 4, // gru: the reset gate scales R h + b, not h
    N8_OP_WINOGRAD_WHOLE = 8,      // conv2d: proof (23) for int8 Winograd on whole weights
    N8_OP_WINOGRAD_HALF = 16,      // ... or on halved ones; never both
    N8_OP_WEIGHTS_S16 = 32,        // conv2d: its weights are int16
};

struct n8_file_header {
    uint8_t magic[8];  // 89 'N' '8' 0d 0a 1a 0a 00
    uint32_t version;  // N8_FORMAT_VERSION, N8_FORMAT_VERSION_OPEN where dimensions are open
    uint32_t checksum; // CRC-32 (IEEE 802.3) of all bytes after this field
    uint64_t file_size;
    uint8_t source_digest[32]; // SHA-256 of the ONNX file
    uint32_t tensor_count;
    uint32_t op_count;
    uint32_t link_count;
    uint32_t input_count;  // links[0 .. input_count) are the graph's inputs,
    uint32_t output_count; // the output_count links after them its outputs
    uint32_t strings_size;
    uint64_t tensors; // offset of n8_file_tensor[tensor_count]
    uint64_t ops;     // offset of n8_file_op[op_count], in order of execution
    uint64_t links;   // offset of uint32_t[link_count]: tensor numbers
    uint64_t strings; // offset of NUL-terminated UTF-8 names
    uint64_t data;    // offset of the arrays
    uint64_t data_size;
};

struct n8_file_tensor {
    uint32_t name; // offset in strings
    uint32_t type; // enum n8_type
    uint32_t rank; // 0 .. N8_FORMAT_MAX_RANK
    // As in the ONNX network; after `rank` they are 1. The first three are N C H, the product of
    // the others is W.
    int32_t dims[8];
    float scale; // (1); 1 for F32, S32 and U8
    int32_t zero_point;
    int32_t lo, hi;  // range of q, within [-128, 127], of S16 within [-32768, 32767]
    uint32_t reason; // why it is F32: offset in strings; 0 if nothing is said
};

// A field that a kind does not use holds 1 (kernel, stride, dilation, groups, slope), -128 (lo),
// 127 (hi), 2 (int16_depth) or 0.
struct n8_file_op {
    uint32_t kind;   // enum n8_op
    uint32_t name;   // offset in strings
    uint32_t inputs; // first link
    uint32_t input_count;
    uint32_t output;   // tensor number
    uint32_t flags;    // enum n8_op_flags
    int32_t kernel[2]; // height, width: conv2d, pools
    int32_t stride[2];
    int32_t dilation[2];
    int32_t pad[2];       // top, left; the far ends follow from the output's size
    int32_t pad_end[2];   // bottom, right; an average pool with N8_OP_COUNT_PAD needs them
    int32_t groups;       // interpolate: values of a line, a power of 2; resize: taps - 1
    int32_t axis;         // concat: 0 N, 1 C, 2 H, 3 W; softmax, softmax_q: of those of ONNX
    int32_t lo, hi;       // clamp of the result (the activation is in here)
    float scale;          // requantize, add, resize: A = scale_a / scale_out; multiply, divide,
                          // matmul: M
    float residual_scale; // conv2d with residual, add: R = scale_r / scale_out, or -R
    float slope;          // leaky slope of a step without slopes, 1 for none
    float fill;           // gather: what stands where nothing is taken
    uint32_t function;    // binary, integer, compare, top, put: enum n8_function
    uint32_t int16_depth; // proof (11): products that may be summed in int16, >= 2
    uint64_t weights;     // conv2d: int8, or int16 by its flag, [O][kh][kw][I / groups];
                          // gru ...: see docs/format.md
    uint64_t bias;        // conv2d: int32 [O], B of (5) or -zp * sum(w) of (4)
    uint64_t multiplier;  // conv2d: float [O], M of (5) or S of (4); multiply: 0, or float [C] of
                          // the output, M of (16)
    uint64_t bias_f32;    // conv2d to F32: float [O]; 0 otherwise
    uint64_t slopes;      // conv2d with a leaky activation: float [O]; 0 otherwise
    uint64_t table;       // table: int8[256], the results for -128 .. 127, or int8[T][256];
                          // image: int8[C][256], those for 0 .. 255; interpolate: int16[][2]
    uint64_t indices;     // table: 0, or int32[C], which of T tables a channel has; permute:
                          // int32[16]; gather: int32[N + C + H + W] of the output; constant of
                          // s32: its values;
                          // resize: int32[H + W][taps]; matmul: int32[63]; take, put: int32[14]
    uint64_t values;      // float, as many as the kind says
    uint64_t acc_bound;   // proof (12): max over n of sum|w| * Q + |B|, < 2^31, where Q is 128 or,
                          // of an S16 input, max(-lo, hi)
};

// After the header of version 3. Each part starts at a multiple of 8.
struct n8_file_shapes {
    uint32_t symbol_count; // 1 .. N8_FORMAT_MAX_SYMBOLS
    uint32_t size_count;   // sizes, forms and words: at most 2^20 each
    uint32_t form_count;
    uint32_t word_count;
    uint64_t symbols; // offset of n8_file_symbol[symbol_count]
    uint64_t sizes;   // offset of n8_file_size[size_count]
    uint64_t forms;   // offset of n8_file_form[form_count]
    uint64_t words;   // offset of int32_t[word_count]
};

// An open dimension of an input, or of several that must agree: lo, lo + step .. hi.
struct n8_file_symbol {
    int32_t lo, hi, step;
    int32_t usual; // where a caller gives none
};

enum n8_size_kind {
    N8_SIZE_SYMBOL = 1,   // symbol a
    N8_SIZE_NUMBER = 2,   // a itself
    N8_SIZE_ADD = 3,      // of sizes a and b, which stand before it
    N8_SIZE_SUBTRACT = 4, // ...
    N8_SIZE_MULTIPLY = 5,
    N8_SIZE_DIVIDE = 6, // towards -infinity; b is above 0
    N8_SIZE_MAXIMUM = 7,
    N8_SIZE_MINIMUM = 8,
};

// A whole number that follows from the symbols, within +-(2^31 - 1).
struct n8_file_size {
    uint32_t kind; // enum n8_size_kind
    int32_t a, b;  // b is 0 where it is not used
};

// Arrays that depend on the symbols. Numbers among the words of a form stand for themselves if they
// are not negative; -1 - i is size i.
enum n8_form_kind {
    N8_FORM_NUMBERS = 1,  // int32: the words, which are numbers, one by one
    N8_FORM_INTEGERS = 2, // int32: segments one after another, of N8_SEGMENT_WORDS words each
    N8_FORM_FLOATS = 3,   // float: the same
};

// Its words: the kind, a number `count`, and four more. Rounding modes and coordinates are those of
// ONNX's Resize, computed in float32 as (17) says; a scale is the bits of a float, of which 0
// stands for (float) count / (float) in.
enum n8_segment_kind {
    // first, step, repeat, period: entry k is first + j * step, where j is k / repeat % period, or
    // k / repeat if period is 0. repeat and period are numbers; first and step, too, of an int32
    // array, and the bits of floats of an array of those, where both operations round.
    N8_SEGMENT_RUN = 1,
    N8_SEGMENT_NEAREST = 2, // in, scale, enum n8_coordinates, enum n8_nearest: int32 entries
    // in, scale, enum n8_coordinates with enum n8_taps, the bits of a float, a of cubic weights:
    // the
    // taps of each of `count`, indices of an int32 array, weights of a float array
    N8_SEGMENT_TAPS = 3,
};

// What is added to the coordinates, and the number of taps, 2 to 256, times N8_TAPS_COUNT.
enum n8_taps {
    N8_TAPS_CUBIC = 8,
    N8_TAPS_ANTIALIAS = 16,
    N8_TAPS_EXCLUDE_OUTSIDE = 32,
    N8_TAPS_COUNT = 256,
};

enum n8_form_size {
    N8_SEGMENT_WORDS = 6,
};

enum n8_coordinates {
    N8_COORDINATES_HALF_PIXEL = 1,
    N8_COORDINATES_PYTORCH_HALF_PIXEL = 2,
    N8_COORDINATES_ALIGN_CORNERS = 3,
    N8_COORDINATES_ASYMMETRIC = 4,
};

enum n8_nearest {
    N8_NEAREST_PREFER_FLOOR = 1,
    N8_NEAREST_PREFER_CEIL = 2,
    N8_NEAREST_FLOOR = 3,
    N8_NEAREST_CEIL = 4,
};

struct n8_file_form {
    uint32_t kind;       // enum n8_form_kind
    uint32_t word_count; // of its words, which follow those of the form before
};

#endif // NEON8_FORMAT_H
