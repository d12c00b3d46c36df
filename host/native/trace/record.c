// SPDX-License-Identifier: Apache-2.0
//
// The record of a run: its calls, each kind of them once, found by an open hash table.
#include "record.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 }; // a power of two

static struct {
    struct n8_trace_call *calls;
    uint32_t *slots; // 1 + the call's index, or 0: twice as many as there is room for calls
    size_t count, room;
    uint32_t parts;
    bool failed;
} it;

static uint64_t hash(const struct n8_trace_call *call) {
    uint64_t value = call->part ^ (uint64_t)(uintptr_t)call->kernel << 16;
    for (size_t i = 0; i < N8_TRACE_SIZES; i++) {
        value = (value ^ call->sizes[i]) * 0x9e3779b97f4a7c15;
        value ^= value >> 29;
    }
    return value;
}

// Where the call is, or is to be.
static uint32_t *find(const struct n8_trace_call *call) {
    const size_t mask = 2 * it.room - 1;
    for (size_t at = hash(call) & mask;; at = (at + 1) & mask) {
        if (it.slots[at] == 0) {
            return &it.slots[at];
        }
        const struct n8_trace_call *known = &it.calls[it.slots[at] - 1];
        if (known->part == call->part && known->kernel == call->kernel &&
            memcmp(known->sizes, call->sizes, sizeof known->sizes) == 0) {
            return &it.slots[at];
        }
    }
}

static bool grow(void) {
    const size_t room = it.room == 0 ? FIRST_ROOM : 2 * it.room;
    struct n8_trace_call *calls = realloc(it.calls, room * sizeof *calls);
    it.calls = calls == NULL ? it.calls : calls;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (calls == NULL || slots == NULL) {
        free(slots);
        return false;
    }
    free(it.slots);
    it.slots = slots;
    it.room = room;
    for (size_t i = 0; i < it.count; i++) {
        *find(&it.calls[i]) = (uint32_t)i + 1;
    }
    return true;
}

void n8_record(const char *kernel, const uint32_t sizes[N8_TRACE_SIZES]) {
    if (it.count == it.room && !grow()) {
        it.failed = true;
        return;
    }
    struct n8_trace_call call = {.part = it.parts == 0 ? 0 : it.parts - 1, .kernel = kernel};
    memcpy(call.sizes, sizes, sizeof call.sizes);
    uint32_t *slot = find(&call);
    if (*slot == 0) {
        it.calls[it.count++] = call;
        *slot = (uint32_t)it.count;
    }
    it.calls[*slot - 1].count++;
}

void n8_record_part(void) {
    it.parts++;
}

void n8_trace_begin(void) {
    it.count = 0;
    it.parts = 0;
    it.failed = false;
    if (it.slots != NULL) {
        memset(it.slots, 0, 2 * it.room * sizeof *it.slots);
    }
}

size_t n8_trace_count(size_t *parts) {
    *parts = it.parts;
    return it.failed ? SIZE_MAX : it.count;
}

const struct n8_trace_call *n8_trace_calls(void) {
    return it.calls;
}
