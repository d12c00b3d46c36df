// SPDX-License-Identifier: Apache-2.0
//
// What a kernel may rely on. Kernels are pure: they check nothing, allocate nothing and
// return void; whoever calls one has proved the preconditions written here.
//
// Wherever nothing else is said, multipliers and scales are 0 or from 1e-30 to 2^64, those of a
// residual or a second operand of either sign, slopes within +-2^30, and float biases 0 or normal:
// what limits.h checks. So nothing becomes infinite or NaN.
//
// Assembly includes this header for the offsets in the structs of arguments.
#ifndef N8_KERNEL_H
#define N8_KERNEL_H

// Bytes that may be read (never used) after the last pixel of any int8 activation.
#define N8_SLACK 64

// The fields of the structs of arguments, each listed once: WORD(offset, type, member) is as
// wide as a pointer, INT32 has four bytes. All words come first, so that no field needs
// padding, with 64-bit pointers as with 32-bit ones. From these lists come the structs, the
// offsets N8_OFF_... for C and for assembly, and the assertions that both agree.
//
// Implicit GEMM. `tile` is the geometry {mr, nr, kr, packing} of the kernel's row. With
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[p / mr][t][p % mr][k] * w[n][t][k],
// exact in int32 (12), the epilogue is what the kernel's name says:
//   igemm_s8_s32      out[p][n] = acc''
//   igemm_s8_f32      out[p][n] = fadd(fmul((float) acc'', multiplier[n]), bias_f32[n])      (4)
//   igemm_s8_s8       v = fmul((float) acc'', multiplier[n]);
//                     v = slope && v < 0 ? fmul(v, slope[n]) : v;
//                     out[p][n] = clamp(rne(v) + zero_point, lo, hi)                    (5)(5b)
//   igemm_s8_s8_add   the same with v = fadd(fmul((float) acc'', multiplier[n]),
//                     fmul((float)(residual[p][n] - residual_zero_point), residual_scale))   (6)
//
// Kernels with the packings WINOGRAD compute (23) of a row of tiles, each two pixels of acc''. With
// t of taps = 2 * (rows of the convolution's kernel) and two sides s of each tap,
//   m[s] = (s ? 0 : bias[n]) + sum over t < taps / 2 and k of rows[t][s][tile][k] * w[n][t][s][k],
//   m = {m[0] + m[1], m[0] - m[1]}, both >> 1 where `whole`, m[s] += the same sum over the other t,
// acc''[2 * tile + s] = m[s], all modulo 2^32 but for the sum that is shifted, which has all bits.
//
//   out            pixel p at out + p * out_stride; exactly `channels` are written
//   out_stride     bytes; s32 and f32: a multiple of 4
//   rows           [ceil(pixels / mr)][taps][mr]; the last tile repeats a valid row. Packed rows:
//                  rows[0] alone, 16-byte aligned: [ceil(pixels / mr)][taps][depth / kr][mr][kr].
//                  WINOGRAD: [taps][2], the first tile each; as many tiles as ceil(pixels / mr) *
//                  mr / 2 follow each other, [tile][depth] or [tile / 2][depth / kr][tile % 2][kr]
//   weights        [ceil(channels / nr)] panels in the order of `packing`, zero padded, 16-byte
//                  aligned; int16 holds two products of a channel (11). GROUPS_BY_4: N8_SLACK
//                  readable after the last
//   deep           GROUPS: [ceil(channels / nr)][taps][ceil(depth / (2 * kr))], words of 64 bits.
//                  From the lowest on 16 bits for each block of a group: twice the number of the
//                  block in the rows, and a mark of a quarter of the panel's channels: 1 where
//                  int16 holds the sum of any of the four products of each lane of each of them,
//                  else 0, as where a group has only two. GROUPS_BY_4: such a mark of all channels
//                  of a panel, in words of 32 bits. NULL for others
//   pixels, channels, taps   >= 1; pixels == 1 where mr is
//   depth          bytes of a row, a multiple of the packing's step; a row is readable to the next
//                  multiple of 8
//   bias, multiplier, bias_f32, slope   [channels rounded up to nr], 16-byte aligned; the
//                  slopes are finite, or `slope` is NULL
//   residual       NULL but for igemm_s8_s8_add: pixel p at residual + p * residual_stride,
//                  N8_SLACK readable after the last; or `out` itself: what a tile adds is read
//                  before the tile is written
//   tile           for the C kernels, which serve any geometry; assembly knows its own
//   zero_point, lo, hi   -128 <= lo <= hi <= 127, and -128 <= zero_point <= 127
//   small          whatever the input, N8_SMALL_RESULTS: |v| < 32639, and `slope` is NULL;
//                  N8_SMALL_SUMS: |acc''| < 2^22
//   start          NULL, or as `bias`, where `residual` and `slope` are NULL. Where the first of a
//                  panel is not 0, (5d) holds for its channels, for sums that begin with `start` in
//                  place of `bias`, and with `bias_f32` as what is added. All panels of a kernel of
//                  level dotprod that is IN_ORDER are alike where results are small
//   whole          WINOGRAD: 1 in the whole form of (23), 0 in the half form
//   windows        WINDOWS: where the rows lie, in place of `rows`; NULL for others
#define N8_SMALL_RESULTS 1
#define N8_SMALL_SUMS    2
#define N8_IGEMM_ARGS(WORD, INT32)                                                                 \
    WORD(IG_OUT, void *, out)                                                                      \
    WORD(IG_OUT_STRIDE, ptrdiff_t, out_stride)                                                     \
    WORD(IG_ROWS, const int8_t *const *, rows)                                                     \
    WORD(IG_WEIGHTS, const int8_t *, weights)                                                      \
    WORD(IG_PIXELS, size_t, pixels)                                                                \
    WORD(IG_CHANNELS, size_t, channels)                                                            \
    WORD(IG_TAPS, size_t, taps)                                                                    \
    WORD(IG_DEPTH, size_t, depth)                                                                  \
    WORD(IG_BIAS, const int32_t *, bias)                                                           \
    WORD(IG_MULTIPLIER, const float *, multiplier)                                                 \
    WORD(IG_BIAS_F32, const float *, bias_f32)                                                     \
    WORD(IG_START, const int32_t *, start)                                                         \
    WORD(IG_SLOPE, const float *, slope)                                                           \
    WORD(IG_RESIDUAL, const int8_t *, residual)                                                    \
    WORD(IG_RESIDUAL_STRIDE, ptrdiff_t, residual_stride)                                           \
    WORD(IG_TILE, const struct n8_tile *, tile)                                                    \
    WORD(IG_DEEP, const uint8_t *, deep)                                                           \
    WORD(IG_WINDOWS, const struct n8_windows_args *, windows)                                      \
    INT32(IG_RESIDUAL_SCALE, float, residual_scale)                                                \
    INT32(IG_RESIDUAL_ZERO_POINT, int32_t, residual_zero_point)                                    \
    INT32(IG_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(IG_LO, int32_t, lo)                                                                      \
    INT32(IG_HI, int32_t, hi)                                                                      \
    INT32(IG_SMALL, int32_t, small)                                                                \
    INT32(IG_WHOLE, int32_t, whole)

// The windows of output pixels that follow each other, row by row. All is in bytes: tap (t_y, t_x)
// of a pixel whose window begins at (y, x) is at image + y + t_y + x + t_x if 0 <= y + t_y < height
// and 0 <= x + t_x < width, else at `padding`.
//
//   image, padding  `depth` bytes of each pixel, and of padding, are readable
//   height, width   of the image: distances to the row and the pixel after the last
//   y, x            of the first window
//   left, columns   pixels left in its row of outputs, and those of a whole row
//   step, row_step   from a pixel's window to the next, and from that of a row's first to the next
//   tap, tap_row   from tap to tap; >= 1
//   taps, tap_rows   from the first to beyond the last of a row, and of a column
//   packed         memory for the rows of `block` pixels; 16-byte aligned
//   block          pixels that are packed together, a multiple of mr
//   next           what the same call computes after this, of the same taps, depth and epilogue:
//                  NULL, or arguments that differ in windows and in what is of pixels and channels
#define N8_WINDOWS_ARGS(WORD, INT32)                                                               \
    WORD(WN_IMAGE, const int8_t *, image)                                                          \
    WORD(WN_PADDING, const int8_t *, padding)                                                      \
    WORD(WN_HEIGHT, size_t, height)                                                                \
    WORD(WN_WIDTH, size_t, width)                                                                  \
    WORD(WN_Y, ptrdiff_t, y)                                                                       \
    WORD(WN_X, ptrdiff_t, x)                                                                       \
    WORD(WN_LEFT, size_t, left)                                                                    \
    WORD(WN_COLUMNS, size_t, columns)                                                              \
    WORD(WN_ROW_STEP, ptrdiff_t, row_step)                                                         \
    WORD(WN_STEP, ptrdiff_t, step)                                                                 \
    WORD(WN_TAP, ptrdiff_t, tap)                                                                   \
    WORD(WN_TAPS, ptrdiff_t, taps)                                                                 \
    WORD(WN_TAP_ROW, ptrdiff_t, tap_row)                                                           \
    WORD(WN_TAP_ROWS, ptrdiff_t, tap_rows)                                                         \
    WORD(WN_PACKED, int8_t *, packed)                                                              \
    WORD(WN_BLOCK, size_t, block)                                                                  \
    WORD(WN_NEXT, const struct n8_igemm_args *, next)

// One row of a depthwise convolution, or two:
//   acc''[r][p][c] = bias[c] + sum over y, x of
//                    rows[r * ratio + y][p * step + x * tap_stride + c] * w[y][x][c],
// then requantized as in igemm_s8_s8. A kernel for one size ignores kernel_height and
// kernel_width; one for a ratio relies on step == ratio * tap_stride. Only those have two rows.
//
//   out            pixel p of row r at out + r * out_row_stride + p * out_stride; `channels` are
//                  written
//   out_row_stride 0: what row 0 has there stays
//   rows           [kernel_height + (outputs - 1) * ratio]: the pixel under tap x = 0 of output 0;
//                  nothing beyond the channels of a pixel is read
//   tap_stride     bytes between the pixels under neighbouring taps
//   step           bytes between the pixels under tap 0 of neighbouring outputs
//   weights        [ceil(channels / block)][kernel_height][kernel_width][block], zero padded,
//                  aligned to 8; int16 holds two products of a channel (11)
//   pixels         >= 1
//   channels       a multiple of 8, >= 8: the padded count
//   bias, multiplier, slope   [channels rounded up to block], 16-byte aligned; the slopes are
//                  finite, or `slope` is NULL
//   start          NULL, or as `bias`, where `slope` is NULL: (5d) holds, for sums that begin with
//                  `start` in place of `bias`, and with `addend`, as `multiplier`, as what is added
//   block          of the kernel's row, a multiple of 8; for the C kernels, which serve any
//   small          1: `slope` is NULL, and whatever the input, |acc''| < 2^22 and |v| < 32639; else
//                  0
//   outputs        rows of them; of the kernel's row, for the C kernels, which serve any
//   left           1: tap 0 of output 0 is padding, rows[y] the pixel under tap 1; else 0. Kernels
//                  for one row of outputs rely on 0
//   right          1: the last tap of the last output is padding; else 0. Kernels for one row or
//                  for another ratio than 1 rely on 0
//   in_zero_point  what padding is, -128 .. 127
#define N8_DEPTHWISE_ARGS(WORD, INT32)                                                             \
    WORD(DW_OUT, int8_t *, out)                                                                    \
    WORD(DW_OUT_STRIDE, ptrdiff_t, out_stride)                                                     \
    WORD(DW_OUT_ROW_STRIDE, ptrdiff_t, out_row_stride)                                             \
    WORD(DW_ROWS, const int8_t *const *, rows)                                                     \
    WORD(DW_TAP_STRIDE, ptrdiff_t, tap_stride)                                                     \
    WORD(DW_STEP, ptrdiff_t, step)                                                                 \
    WORD(DW_WEIGHTS, const int8_t *, weights)                                                      \
    WORD(DW_PIXELS, size_t, pixels)                                                                \
    WORD(DW_CHANNELS, size_t, channels)                                                            \
    WORD(DW_BIAS, const int32_t *, bias)                                                           \
    WORD(DW_START, const int32_t *, start)                                                         \
    WORD(DW_MULTIPLIER, const float *, multiplier)                                                 \
    WORD(DW_SLOPE, const float *, slope)                                                           \
    WORD(DW_ADDEND, const float *, addend)                                                         \
    WORD(DW_BLOCK, size_t, block)                                                                  \
    INT32(DW_SMALL, int32_t, small)                                                                \
    INT32(DW_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(DW_LO, int32_t, lo)                                                                      \
    INT32(DW_HI, int32_t, hi)                                                                      \
    INT32(DW_KERNEL_HEIGHT, int32_t, kernel_height)                                                \
    INT32(DW_KERNEL_WIDTH, int32_t, kernel_width)                                                  \
    INT32(DW_OUTPUTS, int32_t, outputs)                                                            \
    INT32(DW_LEFT, int32_t, left)                                                                  \
    INT32(DW_RIGHT, int32_t, right)                                                                \
    INT32(DW_IN_ZERO_POINT, int32_t, in_zero_point)

// What (23) multiplies, of one row of the input: V1, V2, V0, V3 of tiles i of the four columns
// 2 i .. 2 i + 3, modulo 2^8.
//
//   out            four planes, each [tiles][depth] or, with `pairs`, [tiles / 2][depth / 8][2][8]
//   plane          bytes from one to the next
//   columns        [2 * tiles + 2]: `depth` bytes each
//   depth          a multiple of 8
//   offset         off of (23)
//   pairs          1: `tiles` is even, and two lie together; or 0
#define N8_WINOGRAD_ARGS(WORD, INT32)                                                              \
    WORD(WG_OUT, int8_t *, out)                                                                    \
    WORD(WG_PLANE, size_t, plane)                                                                  \
    WORD(WG_COLUMNS, const int8_t *const *, columns)                                               \
    WORD(WG_TILES, size_t, tiles)                                                                  \
    WORD(WG_DEPTH, size_t, depth)                                                                  \
    INT32(WG_OFFSET, int32_t, offset)                                                              \
    INT32(WG_PAIRS, int32_t, pairs)

// Exact Winograd (13) in three kernels, for tiles of 4x4 outputs of a 3x3 convolution of stride 1.
// A tile has 36 planes: i, j = 0 .. 5 number the points 1, -1, infinity, 0, 2, -2 of both
// directions; plane (i, j) is the 4 * i + j th where j < 4, else the 24 + 2 * i + j - 4 th.
//
// winograd_gemm_s32: sums[plane][tile][n] = sum over k of in[plane][tile][k] *
// weights[plane][k][n], modulo 2^32, for n < width.
//
//   sums           plane p at sums + p * sums_plane bytes: [tiles][width]; 16-byte aligned
//   in             plane p at in + p * in_plane bytes: [tiles][depth]; 16-byte aligned
//   weights        plane p at weights + p * weights_plane bytes: [depth][width]; 16-byte aligned
//   depth          a multiple of 8
//   tiles, planes  >= 1
//   width          for the C kernels; assembly knows its own
#define N8_WINOGRAD_GEMM_ARGS(WORD, INT32)                                                         \
    WORD(WS_SUMS, int32_t *, sums)                                                                 \
    WORD(WS_IN, const int16_t *, in)                                                               \
    WORD(WS_WEIGHTS, const int16_t *, weights)                                                     \
    WORD(WS_DEPTH, size_t, depth)                                                                  \
    WORD(WS_TILES, size_t, tiles)                                                                  \
    WORD(WS_PLANES, size_t, planes)                                                                \
    WORD(WS_SUMS_PLANE, size_t, sums_plane)                                                        \
    WORD(WS_IN_PLANE, size_t, in_plane)                                                            \
    WORD(WS_WEIGHTS_PLANE, size_t, weights_plane)                                                  \
    WORD(WS_WIDTH, size_t, width)

// winograd_output_s8: from the sums of tiles to acc'' of 16 outputs each (13), and from there as
// igemm_s8_s8 or, where `residual` is not NULL, as igemm_s8_s8_add.
//
//   places         [tiles][16]: the pixels of each tile, row by row, in bytes from `out`; exactly
//                  `channels` of each are written. What is beyond the edge of the image goes where
//                  it does no harm
//   residual_places   the same from `residual`, N8_SLACK readable after the last. `residual` may be
//                  `out`, with the places of that
//   sums           plane p at sums + p * plane bytes, a tile at `tile` bytes from the one before;
//                  16-byte aligned. Each output of (13) adds up to 576 * acc, |acc''| < 2^25
//   channels       1 .. tile / 4
//   bias, multiplier, slope   [channels rounded up to 4], 16-byte aligned; the slopes are finite,
//                  or `slope` is NULL
//   small          1: `slope` is NULL, and |v| < 32639 whatever the input; else 0
#define N8_WINOGRAD_OUTPUT_ARGS(WORD, INT32)                                                       \
    WORD(WO_OUT, int8_t *, out)                                                                    \
    WORD(WO_PLACES, const ptrdiff_t *, places)                                                     \
    WORD(WO_RESIDUAL, const int8_t *, residual)                                                    \
    WORD(WO_RESIDUAL_PLACES, const ptrdiff_t *, residual_places)                                   \
    WORD(WO_SUMS, const int32_t *, sums)                                                           \
    WORD(WO_PLANE, size_t, plane)                                                                  \
    WORD(WO_TILE, size_t, tile)                                                                    \
    WORD(WO_TILES, size_t, tiles)                                                                  \
    WORD(WO_CHANNELS, size_t, channels)                                                            \
    WORD(WO_BIAS, const int32_t *, bias)                                                           \
    WORD(WO_MULTIPLIER, const float *, multiplier)                                                 \
    WORD(WO_SLOPE, const float *, slope)                                                           \
    INT32(WO_RESIDUAL_SCALE, float, residual_scale)                                                \
    INT32(WO_RESIDUAL_ZERO_POINT, int32_t, residual_zero_point)                                    \
    INT32(WO_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(WO_LO, int32_t, lo)                                                                      \
    INT32(WO_HI, int32_t, hi)                                                                      \
    INT32(WO_SMALL, int32_t, small)

// `count` values, one after another; `out` may be an operand. With A = a - a_zero_point and
// B = b - b_zero_point:
//   add_s8          v = fadd(fmul((float) A, a_scale), fmul((float) B, b_scale))               (6)
//   requantize_s8   v = fmul((float) A, a_scale)
//   multiply_s8     v = fmul((float)(A * B), a_scale), or scales[i] in its place               (16)
//   divide_s8       v = fmul(fdiv((float) A, (float) B), a_scale)                             (16)
// and then v = v < 0 ? fmul(v, slope) : v; out = clamp(rne(v) + zero_point, lo, hi), and of the NaN
// that only divide_s8 meets, clamp(zero_point, lo, hi).
//
//   out            exactly `count` bytes are written; may be `a` or `b` itself
//   b              NULL for requantize_s8
//   scales         of multiply_s8 [count], readable up to the next multiple of 16; or NULL
#define N8_POINTWISE_ARGS(WORD, INT32)                                                             \
    WORD(PW_OUT, int8_t *, out)                                                                    \
    WORD(PW_A, const int8_t *, a)                                                                  \
    WORD(PW_B, const int8_t *, b)                                                                  \
    WORD(PW_SCALES, const float *, scales)                                                         \
    WORD(PW_COUNT, size_t, count)                                                                  \
    INT32(PW_A_SCALE, float, a_scale)                                                              \
    INT32(PW_B_SCALE, float, b_scale)                                                              \
    INT32(PW_SLOPE, float, slope)                                                                  \
    INT32(PW_A_ZERO_POINT, int32_t, a_zero_point)                                                  \
    INT32(PW_B_ZERO_POINT, int32_t, b_zero_point)                                                  \
    INT32(PW_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(PW_LO, int32_t, lo)                                                                      \
    INT32(PW_HI, int32_t, hi)

// The same of int16 values, -32768 <= lo <= zero_point <= hi <= 32767:
//   add_s16         v = fadd(fmul((float) A, a_scale), fmul((float) B, b_scale))               (6)
//   multiply_s16    v = fmul(fmul((float) A, (float) B), a_scale), or scales[i] in its place   (16)
//
//   out            exactly `count` values are written; may be `a` or `b` itself
//   scales         of multiply_s16 [count], readable up to the next multiple of 16; or NULL
//   a_zero_point, b_zero_point   -32768 .. 32767
#define N8_ADD_S16_ARGS(WORD, INT32)                                                               \
    WORD(AW_OUT, int16_t *, out)                                                                   \
    WORD(AW_A, const int16_t *, a)                                                                 \
    WORD(AW_B, const int16_t *, b)                                                                 \
    WORD(AW_COUNT, size_t, count)                                                                  \
    WORD(AW_SCALES, const float *, scales)                                                         \
    INT32(AW_A_SCALE, float, a_scale)                                                              \
    INT32(AW_B_SCALE, float, b_scale)                                                              \
    INT32(AW_SLOPE, float, slope)                                                                  \
    INT32(AW_A_ZERO_POINT, int32_t, a_zero_point)                                                  \
    INT32(AW_B_ZERO_POINT, int32_t, b_zero_point)                                                  \
    INT32(AW_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(AW_LO, int32_t, lo)                                                                      \
    INT32(AW_HI, int32_t, hi)

// From sums to int16 outputs: acc'' = sums[p][n] + bias[n] modulo 2^32, and from there as
// igemm_s8_s8 or, where `residual` is not NULL, as igemm_s8_s8_add, but for the range of the
// values.
//
//   out            pixel p at out + p * out_stride bytes; exactly `channels` values are written
//   sums           pixel p at sums + p * sums_stride bytes
//   residual       NULL, or pixel p at residual + p * residual_stride bytes; may be `out` itself
//   bias           NULL: all 0
//   slope          the slopes are finite, or it is NULL
//                  sums, residual, bias, multiplier and slope: of all channels, and readable up to
//                  the next multiple of 4
//   pixels, channels   >= 1
//   residual_zero_point, zero_point, lo, hi   -32768 .. 32767, lo <= hi
#define N8_OUTPUT_ARGS(WORD, INT32)                                                                \
    WORD(OW_OUT, int16_t *, out)                                                                   \
    WORD(OW_OUT_STRIDE, ptrdiff_t, out_stride)                                                     \
    WORD(OW_SUMS, const int32_t *, sums)                                                           \
    WORD(OW_SUMS_STRIDE, ptrdiff_t, sums_stride)                                                   \
    WORD(OW_RESIDUAL, const int16_t *, residual)                                                   \
    WORD(OW_RESIDUAL_STRIDE, ptrdiff_t, residual_stride)                                           \
    WORD(OW_BIAS, const int32_t *, bias)                                                           \
    WORD(OW_MULTIPLIER, const float *, multiplier)                                                 \
    WORD(OW_SLOPE, const float *, slope)                                                           \
    WORD(OW_PIXELS, size_t, pixels)                                                                \
    WORD(OW_CHANNELS, size_t, channels)                                                            \
    INT32(OW_RESIDUAL_SCALE, float, residual_scale)                                                \
    INT32(OW_RESIDUAL_ZERO_POINT, int32_t, residual_zero_point)                                    \
    INT32(OW_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(OW_LO, int32_t, lo)                                                                      \
    INT32(OW_HI, int32_t, hi)

// A row of sums of a depthwise convolution of int16 values, modulo 2^32:
//   sums[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// where step and tap_stride are in bytes.
//
//   sums           [pixels][channels], 16-byte aligned
//   rows           [kernel_height]: the pixel under tap x = 0 of output 0
//   weights        [channels / 8][kernel_height][kernel_width][8], 16-byte aligned
//   bias           [channels], 16-byte aligned
//   pixels         >= 1
//   channels       a multiple of 8, >= 8
#define N8_DEPTHWISE_S16_ARGS(WORD, INT32)                                                         \
    WORD(DS_SUMS, int32_t *, sums)                                                                 \
    WORD(DS_ROWS, const int16_t *const *, rows)                                                    \
    WORD(DS_WEIGHTS, const int16_t *, weights)                                                     \
    WORD(DS_BIAS, const int32_t *, bias)                                                           \
    WORD(DS_TAP_STRIDE, ptrdiff_t, tap_stride)                                                     \
    WORD(DS_STEP, ptrdiff_t, step)                                                                 \
    WORD(DS_PIXELS, size_t, pixels)                                                                \
    WORD(DS_CHANNELS, size_t, channels)                                                            \
    WORD(DS_KERNEL_HEIGHT, size_t, kernel_height)                                                  \
    WORD(DS_KERNEL_WIDTH, size_t, kernel_width)

// Output pixels of a pool. Max: the largest of `taps` bytes, clamped to lo .. hi; average:
// v = fmul((float)(sum - taps * in_zero_point), multiplier), then as (5), or v itself.
//
//   out            exactly `channels` values of each pixel are written, which are out_stride apart
//   rows           [taps]: a pixel each of output 0, N8_SLACK readable after the last; those of the
//                  next output lie `step` bytes on
//   taps           >= 1, and so few that 255 * taps is below 2^31
//   pixels         >= 1
//   multiplier     average: scale_in / (scale_out * count), (9)
//   real           average: 1 where `out` is of float32, else 0
#define N8_POOL_ARGS(WORD, INT32)                                                                  \
    WORD(PL_OUT, int8_t *, out)                                                                    \
    WORD(PL_ROWS, const int8_t *const *, rows)                                                     \
    WORD(PL_TAPS, size_t, taps)                                                                    \
    WORD(PL_CHANNELS, size_t, channels)                                                            \
    WORD(PL_PIXELS, size_t, pixels)                                                                \
    WORD(PL_STEP, size_t, step)                                                                    \
    WORD(PL_OUT_STRIDE, size_t, out_stride)                                                        \
    INT32(PL_MULTIPLIER, float, multiplier)                                                        \
    INT32(PL_IN_ZERO_POINT, int32_t, in_zero_point)                                                \
    INT32(PL_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(PL_LO, int32_t, lo)                                                                      \
    INT32(PL_HI, int32_t, hi)                                                                      \
    INT32(PL_REAL, int32_t, real)

// One output pixel of a linear resize, (17), of int8 or float values. For float, everything from
// `scale` on means nothing.
//
//   in             four pixels, above left and right, then below
//   channels       >= 1; of int8 a multiple of 8
//   left, right, upper, lower   weights, 0 .. 1
//   scale          scale_in / scale_out
#define N8_BLEND_ARGS(WORD, INT32)                                                                 \
    WORD(BL_OUT, void *, out)                                                                      \
    WORD(BL_IN, const void *const *, in)                                                           \
    WORD(BL_CHANNELS, size_t, channels)                                                            \
    INT32(BL_LEFT, float, left)                                                                    \
    INT32(BL_RIGHT, float, right)                                                                  \
    INT32(BL_UPPER, float, upper)                                                                  \
    INT32(BL_LOWER, float, lower)                                                                  \
    INT32(BL_SCALE, float, scale)                                                                  \
    INT32(BL_IN_ZERO_POINT, int32_t, in_zero_point)                                                \
    INT32(BL_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(BL_LO, int32_t, lo)                                                                      \
    INT32(BL_HI, int32_t, hi)

// A function of int16 values, (26): `out` may be `in`.
//
//   lines          of 2^shift values each, from in_lo on: the first's result and the rise
//   in_lo, in_hi   -32768 <= in_lo <= in_hi <= 32767; what is outside counts as they do
//   lo, hi         -32768 <= lo <= hi <= 32767
//   shift          0 .. 15
//   fraction       bits of it that results have, 0 .. 8
#define N8_INTERPOLATE_ARGS(WORD, INT32)                                                           \
    WORD(IP_OUT, int16_t *, out)                                                                   \
    WORD(IP_IN, const int16_t *, in)                                                               \
    WORD(IP_COUNT, size_t, count)                                                                  \
    WORD(IP_LINES, const int16_t *, lines)                                                         \
    INT32(IP_IN_LO, int32_t, in_lo)                                                                \
    INT32(IP_IN_HI, int32_t, in_hi)                                                                \
    INT32(IP_LO, int32_t, lo)                                                                      \
    INT32(IP_HI, int32_t, hi)                                                                      \
    INT32(IP_SHIFT, int32_t, shift)                                                                \
    INT32(IP_FRACTION, int32_t, fraction)

// The second half of (31), on values that follow one another:
//   v = fmul(fmul((float)(in[i] * factor - shift), rate), gain[i]);
//   out[i] = clamp(rne(leaky(fadd(v, offset[i]))) + zero_point, lo, hi), NaN as 0
//
//   count          >= 1
//   factor, shift  in[i] * factor - shift fits int32, and so does the product
//   rate, gain     0 or 1e-30 in magnitude, at least; like `offset` without upper limits
//   zero_point, lo, hi   -32768 .. 32767, lo <= hi
#define N8_NORMALIZE_ARGS(WORD, INT32)                                                             \
    WORD(NO_OUT, int16_t *, out)                                                                   \
    WORD(NO_IN, const int16_t *, in)                                                               \
    WORD(NO_GAIN, const float *, gain)                                                             \
    WORD(NO_OFFSET, const float *, offset)                                                         \
    WORD(NO_COUNT, size_t, count)                                                                  \
    INT32(NO_RATE, float, rate)                                                                    \
    INT32(NO_SLOPE, float, slope)                                                                  \
    INT32(NO_FACTOR, int32_t, factor)                                                              \
    INT32(NO_SHIFT, int32_t, shift)                                                                \
    INT32(NO_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(NO_LO, int32_t, lo)                                                                      \
    INT32(NO_HI, int32_t, hi)

// (18) over the channels of one pixel: S of channel c is the sum over c - reach .. c + reach.
//
//   out            exactly `channels` values
//   in             [channels], with `reach` zero points before and after them, and 8 bytes that may
//                  be read after those
//   numbers        bias > 0, factor >= 0, beta >= 0
#define N8_LRN_ARGS(WORD, INT32)                                                                   \
    WORD(LR_OUT, int8_t *, out)                                                                    \
    WORD(LR_IN, const int8_t *, in)                                                                \
    WORD(LR_CHANNELS, size_t, channels)                                                            \
    WORD(LR_REACH, size_t, reach)                                                                  \
    WORD(LR_NUMBERS, const struct n8_lrn_numbers *, numbers)                                       \
    INT32(LR_IN_ZERO_POINT, int32_t, in_zero_point)                                                \
    INT32(LR_ZERO_POINT, int32_t, zero_point)                                                      \
    INT32(LR_LO, int32_t, lo)                                                                      \
    INT32(LR_HI, int32_t, hi)

// All of them: the struct n8_<name>_args and the type n8_<name>_fn of its kernels.
#define N8_ALL_ARGS(X)                                                                             \
    X(igemm, N8_IGEMM_ARGS)                                                                        \
    X(windows, N8_WINDOWS_ARGS)                                                                    \
    X(depthwise, N8_DEPTHWISE_ARGS)                                                                \
    X(winograd, N8_WINOGRAD_ARGS)                                                                  \
    X(winograd_gemm, N8_WINOGRAD_GEMM_ARGS)                                                        \
    X(winograd_output, N8_WINOGRAD_OUTPUT_ARGS)                                                    \
    X(pointwise, N8_POINTWISE_ARGS)                                                                \
    X(add_s16, N8_ADD_S16_ARGS)                                                                    \
    X(output, N8_OUTPUT_ARGS)                                                                      \
    X(depthwise_s16, N8_DEPTHWISE_S16_ARGS)                                                        \
    X(interpolate, N8_INTERPOLATE_ARGS)                                                            \
    X(normalize, N8_NORMALIZE_ARGS)                                                                \
    X(lrn, N8_LRN_ARGS)                                                                            \
    X(pool, N8_POOL_ARGS)                                                                          \
    X(blend, N8_BLEND_ARGS)

#ifdef __ASSEMBLER__
// clang-format off

// The assembler adds up the sizes. Between statements it has no semicolon on macOS.
#ifdef __APPLE__
#define N8_AND %%
#else
#define N8_AND ;
#endif
#define N8_SET(offset, size)                                                                       \
    .set N8_OFF_##offset, n8_next N8_AND                                                           \
    .set n8_next, n8_next + size N8_AND
#define N8_SET_WORD(offset, type, member)  N8_SET(offset, __SIZEOF_POINTER__)
#define N8_SET_INT32(offset, type, member) N8_SET(offset, 4)
#define N8_SETS(name, FIELDS) .set n8_next, 0 N8_AND FIELDS(N8_SET_WORD, N8_SET_INT32)
N8_ALL_ARGS(N8_SETS)

// clang-format on
#else

#include <stddef.h>
#include <stdint.h>

// The order of the weights in a panel of nr channels: taps one after the other, each of them
// depth * nr bytes; the last brackets are contiguous. `step` divides every depth.
//   CHANNELS       [depth / kr][nr][kr]              step = kr
//   CHANNELS_BY_4  the same                          step = 4 * kr
//   GROUPS         as CHANNELS with kr = 16, but the blocks of 8 bytes of a tap come in any order,
//                  each panel's own; four of them, or the last two, are a group, of which each of
//                  eight lanes of int16 sums four products or two, a block apart (11)
//   GROUPS_BY_4    as CHANNELS_BY_4; a step is a group, of which each of kr lanes sums four
//                  products or two, kr bytes apart. The marks of a tap are words of
//                  N8_WORD_MARKS bits from the highest down, after the last of which comes a 1,
//                  then zeros
//   BOTH           as CHANNELS, mr and kr 8, and the rows of a tile are packed like the channels
//                  of a panel
//   WINDOWS        as CHANNELS; the kernel finds the rows, and packs them like that for itself
//   WINOGRAD       [depth / kr][2][nr][kr]           step = 2 * kr = 8, mr even: both sides of (23)
//   WINOGRAD_PAIRS the same, and the rows of two     step = kr = 8, mr / 2 even
//                  tiles are packed together
enum n8_packing {
    N8_PACKING_CHANNELS,
    N8_PACKING_CHANNELS_BY_4,
    N8_PACKING_GROUPS,
    N8_PACKING_GROUPS_BY_4,
    N8_PACKING_BOTH,
    N8_PACKING_WINDOWS,
    N8_PACKING_WINOGRAD,
    N8_PACKING_WINOGRAD_PAIRS,
};

// In the order GROUPS: parts of a panel, each with its own mark; bytes of a block, blocks of a
// group, and those of a row that have numbers.
#define N8_MARKED      4
#define N8_BLOCK       8
#define N8_BLOCKS      4
#define N8_MOST_BLOCKS 32768
// Marks of a word in the order GROUPS_BY_4.
#define N8_WORD_MARKS  31

// Geometry of an implicit GEMM: tiles of mr pixels x nr channels, kr bytes of each channel
// contiguous; kr is a power of two.
struct n8_tile {
    uint8_t mr, nr, kr;
    uint8_t packing; // enum n8_packing
};

// Bounds of all geometries, which the C kernels and N8_SLACK rely on. Steps are powers of two, so
// that channels of a multiple of N8_MAX_STEP bytes need no filling up for any kernel: nothing
// beyond them is read, and the plan of the memory relies on that.
enum { N8_MAX_MR = 16, N8_MAX_NR = 64, N8_MAX_STEP = 16 };

// What (18) computes with: factor = alpha / n * (scale_in * scale_in), multiplier = scale_in /
// scale_out.
struct n8_lrn_numbers {
    double bias, factor, beta, multiplier;
};

#define N8_FIELD(offset, type, member) type member;
#define N8_STRUCT(name, FIELDS)                                                                    \
    struct n8_##name##_args {                                                                      \
        FIELDS(N8_FIELD, N8_FIELD)                                                                 \
    };                                                                                             \
    typedef void n8_##name##_fn(const struct n8_##name##_args *args);
N8_ALL_ARGS(N8_STRUCT)

// The same sums as in assembly: an enumerator is one more than the one before it.
#define N8_SUM(offset, size) N8_OFF_##offset, N8_END_##offset = N8_OFF_##offset + (size) - 1,
#define N8_SUM_WORD(offset, type, member)  N8_SUM(offset, __SIZEOF_POINTER__)
#define N8_SUM_INT32(offset, type, member) N8_SUM(offset, 4)
#define N8_SUMS(name, FIELDS) enum n8_##name##_offset{FIELDS(N8_SUM_WORD, N8_SUM_INT32)};
N8_ALL_ARGS(N8_SUMS)

#define N8_PIN(offset, type, member)                                                               \
    _Static_assert(offsetof(n8_pinned, member) == N8_OFF_##offset &&                               \
                       sizeof(type) == N8_END_##offset - N8_OFF_##offset + 1,                      \
                   #member);
#define N8_PINS(name, FIELDS)                                                                      \
    static inline void n8_pins_of_##name(void) {                                                   \
        typedef struct n8_##name##_args n8_pinned;                                                 \
        FIELDS(N8_PIN, N8_PIN)                                                                     \
    }
N8_ALL_ARGS(N8_PINS)
#undef N8_PINS
#undef N8_PIN
#undef N8_SUMS
#undef N8_SUM_INT32
#undef N8_SUM_WORD
#undef N8_SUM
#undef N8_STRUCT
#undef N8_FIELD

// The input of a tile of winograd_gemm_s32: a window of 6x6 pixels, `row` and `pixel` bytes from
// one to the next, of each of which `channels`, a multiple of 8, are read. Plane p is at out + p *
// plane bytes, 16-byte aligned, and has `channels` values.
typedef void n8_winograd_input_fn(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
                                  ptrdiff_t pixel, size_t channels);

// From weights of eight channels of the output, [depth][3][3][8], to those of winograd_gemm_s32 at
// the planes (i, j) of two rows i, 2 * pair and the next: j = 0 .. 3 of the first and of the
// second, then j = 4, 5 of both. Value n of k of plane p is at out[p * plane + k * width + n];
// depth is a multiple of 8.
typedef void n8_winograd_weights_fn(int16_t *out, size_t plane, const int8_t *in, size_t depth,
                                    size_t width, size_t pair);

// (2) with inverse = float32(1 / scale). -128 <= lo <= zero_point <= hi <= 127.
typedef void n8_quantize_fn(int8_t *out, const float *in, size_t count, float inverse,
                            int32_t zero_point, int32_t lo, int32_t hi);
// (1): fmul((float)(in - zero_point), scale)
typedef void n8_dequantize_fn(float *out, const int8_t *in, size_t count, float scale,
                              int32_t zero_point);
// The same of int16 values. -32768 <= lo <= zero_point <= hi <= 32767.
typedef void n8_quantize_s16_fn(int16_t *out, const float *in, size_t count, float inverse,
                                int32_t zero_point, int32_t lo, int32_t hi);
typedef void n8_dequantize_s16_fn(float *out, const int16_t *in, size_t count, float scale,
                                  int32_t zero_point);
// (4): fadd(fmul((float) in, scale[c]), bias[c]); bias may be NULL, which adds 0
typedef void n8_dequantize_acc_fn(float *out, const int32_t *in, size_t pixels, size_t channels,
                                  const float *scale, const float *bias);
// (5)
typedef void n8_requantize_acc_fn(int8_t *out, const int32_t *in, size_t pixels, size_t channels,
                                  const float *multiplier, int32_t zero_point, int32_t lo,
                                  int32_t hi);

// (8): out[p * out_stride + i] = table[in[p * in_stride + i] + 128], p < pixels, i < count; either
// may be 0. `out` may be `in`, with the same stride.
typedef void n8_table_fn(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                         size_t pixels, size_t count, const int8_t *table);
// The same of 8 columns, of which each has a table: tables[i][in[p * in_stride + i] + 128], i < 8.
typedef void n8_tables_fn(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                          size_t pixels, const int8_t *const *tables);

// out[p][c] = clamp(rne(leaky(fadd(fmul((float)(in[p][c] - in_zero_point), multiplier[c]),
// offset[c]))) + zero_point, lo, hi), NaN as 0: the second half of (19).
struct n8_affine_args {
    int8_t *out;
    const int8_t *in;
    const float *multiplier, *offset; // [channels]
    ptrdiff_t out_stride, in_stride;  // bytes from pixel to pixel
    size_t pixels, channels;
    float slope;
    int32_t in_zero_point, zero_point, lo, hi;
};
typedef void n8_affine_fn(const struct n8_affine_args *args);

// sums[0] = the sum of `count` values, sums[1] = that of their squares; 1 <= count <= 65536.
typedef void n8_sums_fn(int64_t *sums, const int16_t *in, size_t count);

// (30) of int8: sums[0] = the largest of `count` values, sums[1] = the sum of powers[255 - sums[0]
// + in[i]]; 1 <= count <= 2^20, and the 256 powers are 0 .. 2^30.
typedef void n8_powers_fn(int64_t *sums, const int8_t *in, size_t count, const int32_t *powers);

// The same rows' results: out[i] = in[i] >= first ? table[in[i] - first] : rest, i < count, which
// may be 0. No value is above first + 127, and 128 bytes of the table are readable; `out` may be
// `in`.
typedef void n8_top_fn(int8_t *out, const int8_t *in, size_t count, const int8_t *table,
                       int32_t first, int32_t rest);

// Between planes and pixels of 8 bytes; 1 <= channels <= 8, and pixels are 8 bytes apart at least:
//   interleave_s8     out[p * out_stride + c] = c < channels ? in[c * in_stride + p] : 0, c < 8
//   deinterleave_s8   out[c * out_stride + p] = in[p * in_stride + c], c < channels; 8 bytes of
//                     each pixel are readable
typedef void n8_planes_fn(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
                          size_t channels, size_t pixels);
// out[c * out_stride + 4 * r] = in[r * in_stride + 4 * c], words that are aligned to nothing.
typedef void n8_transpose_fn(void *out, size_t out_stride, const void *in, size_t in_stride,
                             size_t rows, size_t columns);

// (14) over `count` contiguous floats, count >= 1.
typedef void n8_softmax_fn(float *out, const float *in, size_t count);

// The slots, one for each operation, with the type of its kernels. Convolutions have kernels
// of several geometries, so these are chosen for each layer (conv/choose.h); all others are chosen
// once for a model (cpu/dispatch.h).
#define N8_PLAIN_SLOTS(X)                                                                          \
    X(quantize_f32_s8, n8_quantize_fn)                                                             \
    X(dequantize_s8_f32, n8_dequantize_fn)                                                         \
    X(quantize_f32_s16, n8_quantize_s16_fn)                                                        \
    X(dequantize_s16_f32, n8_dequantize_s16_fn)                                                    \
    X(dequantize_s32_f32, n8_dequantize_acc_fn)                                                    \
    X(requantize_s32_s8, n8_requantize_acc_fn)                                                     \
    X(add_s8, n8_pointwise_fn)                                                                     \
    X(add_s16, n8_add_s16_fn)                                                                      \
    X(multiply_s16, n8_add_s16_fn)                                                                 \
    X(output_s32_s16, n8_output_fn)                                                                \
    X(depthwise_s16_s32, n8_depthwise_s16_fn)                                                      \
    X(requantize_s8, n8_pointwise_fn)                                                              \
    X(multiply_s8, n8_pointwise_fn)                                                                \
    X(divide_s8, n8_pointwise_fn)                                                                  \
    X(table_s8, n8_table_fn)                                                                       \
    X(interpolate_s16, n8_interpolate_fn)                                                          \
    X(tables_s8, n8_tables_fn)                                                                     \
    X(affine_s8, n8_affine_fn)                                                                     \
    X(lrn_s8, n8_lrn_fn)                                                                           \
    X(sums_s16, n8_sums_fn)                                                                        \
    X(normalize_s16, n8_normalize_fn)                                                              \
    X(maxpool_s8, n8_pool_fn)                                                                      \
    X(avgpool_s8, n8_pool_fn)                                                                      \
    X(winograd_s8, n8_winograd_fn)                                                                 \
    X(winograd_weights_s8, n8_winograd_weights_fn)                                                 \
    X(blend_s8, n8_blend_fn)                                                                       \
    X(blend_f32, n8_blend_fn)                                                                      \
    X(softmax_f32, n8_softmax_fn)                                                                  \
    X(powers_s8, n8_powers_fn)                                                                     \
    X(top_s8, n8_top_fn)                                                                           \
    X(interleave_s8, n8_planes_fn)                                                                 \
    X(deinterleave_s8, n8_planes_fn)                                                               \
    X(transpose_f32, n8_transpose_fn)
#define N8_CONV_SLOTS(X)                                                                           \
    X(igemm_s8_s32, n8_igemm_fn)                                                                   \
    X(igemm_s8_f32, n8_igemm_fn)                                                                   \
    X(igemm_s8_s8, n8_igemm_fn)                                                                    \
    X(igemm_s8_s8_add, n8_igemm_fn)                                                                \
    X(depthwise_s8, n8_depthwise_fn)                                                               \
    X(depthwise3x3s1_s8, n8_depthwise_fn)                                                          \
    X(depthwise3x3s2_s8, n8_depthwise_fn)                                                          \
    X(winograd_input_s8, n8_winograd_input_fn)                                                     \
    X(winograd_gemm_s32, n8_winograd_gemm_fn)                                                      \
    X(winograd_output_s8, n8_winograd_output_fn)
#define N8_SLOTS(X) N8_PLAIN_SLOTS(X) N8_CONV_SLOTS(X)

// Every row of kernels.inc that this build has is declared here, with its slot's type. That all of
// them are in the library lets their addresses be computed instead of loaded from a table.
#pragma GCC visibility push(hidden)
#define N8_TYPEDEF(slot, type)  typedef type n8_##slot##_slot;
#define N8_KERNEL(slot, suffix) n8_##slot##_slot n8_##slot##_##suffix;
N8_SLOTS(N8_TYPEDEF)
#include "kernels.inc"
#pragma GCC visibility pop
#undef N8_TYPEDEF

#endif // __ASSEMBLER__
#endif // N8_KERNEL_H
