// Made by `neon8 package` from {{ w.source | shown }}: its sample{{ " and its bytes" if embed }}.
#include <stddef.h>

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

extern const unsigned char *const samples[];
extern const size_t sample_sizes[];

// clang-format off
{% for v in w.values %}
static const unsigned char sample_{{ loop.index0 }}[] =
{{ v.sample.tobytes() | c_bytes }};
{% endfor %}
{% if embed %}

extern const unsigned char model[];
extern const size_t model_size;
const unsigned char model[] =
{{ w.model | c_bytes }};
const size_t model_size = sizeof model - 1;
{% endif %}
// clang-format on

const unsigned char *const samples[] = {
{% for v in w.values %}
    sample_{{ loop.index0 }},
{% endfor %}
};
const size_t sample_sizes[] = {
{% for v in w.values %}
    sizeof sample_{{ loop.index0 }} - 1,
{% endfor %}
};
