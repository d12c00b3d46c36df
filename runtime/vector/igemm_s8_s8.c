// SPDX-License-Identifier: Apache-2.0
#include "igemm.h"

void N8_VECTOR_KERNEL(igemm_s8_s8)(const struct n8_igemm_args *args) {
    n8_igemm_all(args, N8_IGEMM_S8);
}
