// SPDX-License-Identifier: Apache-2.0
//
// n8_igemm_s8_s8_add_dotprod_winograd_a55 without a residual, which that one looks for itself: the two
// share their code.
//
//   void n8_igemm_s8_s8_dotprod_winograd_a55(const struct n8_igemm_args *args);
#include "asm.h"

func    n8_igemm_s8_s8_dotprod_winograd_a55, DOTPROD
        b       n8_igemm_s8_s8_add_dotprod_winograd_a55
endfunc n8_igemm_s8_s8_dotprod_winograd_a55
