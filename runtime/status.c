// SPDX-License-Identifier: Apache-2.0
#include "status.h"

const char *n8_version(void) {
    return N8_VERSION;
}

const char *n8_status_string(enum n8_status status) {
    switch (status) {
    case N8_OK:
        return "success";
    case N8_E_ARGUMENT:
        return "invalid argument";
    case N8_E_MEMORY:
        return "out of memory";
    case N8_E_FORMAT:
        return "not a neon8 model, or a damaged one";
    case N8_E_VERSION:
        return "a model format version that this library does not know";
    case N8_E_CHECKSUM:
        return "the checksum does not match: the model file was altered";
    case N8_E_OVERFLOW:
        return "an accumulator could exceed 32 bits";
    case N8_E_UNSUPPORTED:
        return "not supported by this build or this processor";
    case N8_E_LIMIT:
        return "the model takes more memory than max_bytes allows";
    case N8_E_ADDRESS:
        return "it takes more memory than this processor can address";
    case N8_E_SHAPE:
        return "the model does not run at these shapes";
    }
    return "unknown status";
}

bool n8_is_zero(const uint32_t *words, size_t bytes) {
    uint32_t any = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        any |= words[i];
    }
    return any == 0;
}
