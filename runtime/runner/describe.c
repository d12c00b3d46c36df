// SPDX-License-Identifier: Apache-2.0
#include "runner.h"

static void print_field(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    n8_print_text(text == NULL ? "" : text);
}

// What the processor decides of a model; all else is the same everywhere.
void n8_describe(const struct n8_network *network) {
    struct n8_memory memory;
    n8_model_memory(network->model, &memory);
    printf(
        "{\"version\": \"%s\", \"memory\": {\"tables\": %llu, \"packed\": %llu, \"arena\": %llu, "
        "\"arena_least\": %llu, \"scratch\": %llu}, \"steps\": [",
        n8_version(), (unsigned long long)memory.tables, (unsigned long long)memory.packed,
        (unsigned long long)memory.arena, (unsigned long long)memory.arena_least,
        (unsigned long long)memory.scratch);
    for (size_t i = 0; i < network->steps; i++) {
        struct n8_step_info step;
        n8_model_step(network->model, i, &step);
        printf("%s{\"packed\": %zu, \"spared\": %zu", i == 0 ? "" : ", ", step.packed, step.spared);
        print_field("kernel", step.kernel);
        print_field("chosen", step.chosen);
        print_field("passed", step.passed);
        print_field("lack", step.lack);
        printf("}");
    }
    printf("]}\n");
}
