// Made by `neon8 package`: {{ w.source | shown }}, {{ w.model | length }} bytes.
#include "{{ w.name }}.h"

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

// clang-format off
const unsigned char {{ w.name }}_model[] =
{{ w.model | c_bytes }};
// clang-format on

const size_t {{ w.name }}_model_size = sizeof {{ w.name }}_model - 1;
