// SPDX-License-Identifier: Apache-2.0
//
// n8_igemm_s8_s8_add_i8mm_winograd without a residual, which that one looks for itself: the two
// share their code.
//
//   void n8_igemm_s8_s8_i8mm_winograd(const struct n8_igemm_args *args);
#include "asm.h"

func    n8_igemm_s8_s8_i8mm_winograd, I8MM
        b       n8_igemm_s8_s8_add_i8mm_winograd
endfunc n8_igemm_s8_s8_i8mm_winograd
