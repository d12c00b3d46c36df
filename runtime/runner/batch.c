// SPDX-License-Identifier: Apache-2.0
#include "runner.h"

#include "model/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = sizeof(uint64_t), DIMS = 8 * sizeof(int32_t) };

// Whole numbers from 0 to INT32_MAX with commas between them.
static void read_numbers(const char *text, int32_t *numbers, size_t count) {
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        char *end;
        const long number = strtol(at, &end, 10);
        if (end == at || number < 0 || number > INT32_MAX || *end != (i + 1 < count ? ',' : '\0')) {
            n8_fail("--shapes %s: not 8 dimensions for each input", text);
        }
        numbers[i] = (int32_t)number;
        at = end + 1;
    }
}

static void read_exactly(FILE *in, void *bytes, size_t size) {
    if (fread(bytes, 1, size, in) != size) {
        n8_fail("the batch ends early");
    }
}

// Room for the arrays of a model's inputs or outputs, and all but their values.
static void lay_out(struct n8_record *record, const struct n8_model *model, enum n8_io which,
                    size_t count) {
    struct n8_tensor_info info;
    uint64_t values = 0;
    for (size_t i = 0; i < count; i++) {
        n8_model_io(model, which, i, &info);
        values += info.size; // each is below 2^32, and so is their number
    }
    const size_t head = COUNT + count * DIMS;
    if (values > SIZE_MAX - head) {
        n8_fail("out of memory");
    }
    free(record->bytes);
    record->size = head + (size_t)values;
    record->bytes = n8_room(record->size, 1);
    memcpy(record->bytes, &values, COUNT);
    size_t at = head;
    for (size_t i = 0; i < count; i++) {
        n8_model_io(model, which, i, &info);
        memcpy(record->bytes + COUNT + i * DIMS, info.dims, DIMS);
        record->arrays[i] = record->bytes + at;
        at += info.size;
    }
}

void n8_create_session(struct n8_network *network) {
    const struct n8_session_options options = {
        .threads = network->options->threads,
        .clock = network->clock,
        .clock_context = network->clock_context,
    };
    n8_session_destroy(network->session);
    const enum n8_status status = n8_session_create(network->model, &options, &network->session);
    if (status != N8_OK) {
        n8_fail("session: %s", n8_status_string(status));
    }
}

// Takes a model of other shapes, or the first one; its session is not there yet.
static void take(struct n8_network *network, struct n8_model *model) {
    n8_session_destroy(network->session);
    network->session = NULL;
    if (network->model != network->base) {
        n8_model_close(network->model);
    }
    network->model = model;
    lay_out(&network->in, model, N8_INPUT, network->inputs);
    lay_out(&network->out, model, N8_OUTPUT, network->outputs);
}

void n8_reshape(struct n8_network *network, const int32_t (*shapes)[8]) {
    struct n8_model *model;
    const enum n8_status status = n8_model_reshape(network->base, shapes, &model, NULL);
    if (status != N8_OK) {
        n8_fail("sample: %s", n8_status_string(status));
    }
    take(network, model);
}

static _Noreturn void refuse_size(const void *bytes, size_t size,
                                  const struct n8_model_options *options, enum n8_status status) {
    struct n8_memory least;
    if (n8_model_measure(bytes, size, options, &least, NULL) != N8_OK) {
        n8_fail("model: %s", n8_status_string(status));
    }
    const uint64_t sum = least.tables + least.packed + least.arena + least.scratch;
    const unsigned long long limit =
        options->max_bytes == 0 ? N8_DEFAULT_MAX_BYTES : options->max_bytes;
    if (status == N8_E_ADDRESS) {
        n8_fail("model: takes at least %llu bytes of memory, more than this machine can address",
                (unsigned long long)sum);
    }
    n8_fail(
        "model: takes %llu bytes of memory, more than the limit of %llu; raise it (--max-bytes) "
        "if you trust the file",
        (unsigned long long)sum, limit);
}

struct n8_network n8_open_network(const struct n8_runner_options *options) {
    struct n8_network network = {.options = options};
    size_t size;
    void *bytes = n8_read_file(options->model, &size);
    const struct n8_model_options opening = {.isa = options->isa, .max_bytes = options->max_bytes};
    struct n8_model_error error;
    const enum n8_status status = n8_model_open(bytes, size, &opening, &network.base, &error);
    if (status == N8_E_LIMIT || status == N8_E_ADDRESS) {
        refuse_size(bytes, size, &opening, status);
    } else if (status != N8_OK) {
        n8_fail("model: %s: %s", n8_status_string(status), error.reason);
    }
    free(bytes);
    struct n8_model_facts facts;
    n8_model_describe(network.base, &facts);
    network.inputs = facts.input_count;
    network.outputs = facts.output_count;
    network.steps = facts.step_count;
    network.in.arrays = n8_room(network.inputs, sizeof(void *));
    network.out.arrays = n8_room(network.outputs, sizeof(void *));
    network.model = network.base;
    take(&network, network.base);
    if (options->shapes != NULL) {
        int32_t (*shapes)[8] = n8_room(network.inputs, DIMS);
        read_numbers(options->shapes, &shapes[0][0], 8 * network.inputs);
        n8_reshape(&network, (const int32_t (*)[8])shapes);
        free(shapes);
    }
    return network;
}

uint32_t n8_begin_batch(FILE *in) {
    char magic[8];
    uint32_t count;
    read_exactly(in, magic, sizeof magic);
    read_exactly(in, &count, sizeof count);
    if (memcmp(magic, N8_BATCH, sizeof magic) != 0) {
        n8_fail("what comes in is no batch, or that of another version");
    }
    return count;
}

void n8_read_sample(struct n8_network *network, FILE *in) {
    const size_t dims = network->inputs * DIMS, head = COUNT + dims;
    uint8_t *given = n8_room(head, 1);
    read_exactly(in, given, head);
    if (memcmp(given + COUNT, network->in.bytes + COUNT, dims) != 0) {
        int32_t (*shapes)[8] = n8_room(network->inputs, DIMS);
        memcpy(shapes, given + COUNT, dims);
        n8_reshape(network, (const int32_t (*)[8])shapes);
        free(shapes);
    }
    if (memcmp(given, network->in.bytes, head) != 0) {
        n8_fail("a sample has another size than its dimensions say");
    }
    free(given);
    uint32_t checksum;
    read_exactly(in, network->in.bytes + head, network->in.size - head);
    read_exactly(in, &checksum, sizeof checksum);
    if (checksum != n8_crc32(network->in.bytes, network->in.size)) {
        n8_fail("a sample was damaged on its way");
    }
    if (network->session == NULL) {
        n8_create_session(network);
    }
}

void n8_run_network(struct n8_network *network) {
    const enum n8_status status = n8_session_run(
        network->session, (const void *const *)network->in.arrays, network->out.arrays);
    if (status != N8_OK) {
        n8_fail("run: %s", n8_status_string(status));
    }
}

static void write_all(FILE *out, const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, out) != size) {
        n8_fail("the results cannot be written: %s", strerror(errno));
    }
}

void n8_run_batch(struct n8_network *network, FILE *in, FILE *out) {
    const uint32_t count = n8_begin_batch(in);
    write_all(out, N8_BATCH, strlen(N8_BATCH));
    write_all(out, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        n8_read_sample(network, in);
        n8_run_network(network);
        const uint32_t checksum = n8_crc32(network->out.bytes, network->out.size);
        write_all(out, network->out.bytes, network->out.size);
        write_all(out, &checksum, sizeof checksum);
        fflush(out); // somebody may send the next sample when this one has come back
    }
    if (fgetc(in) != EOF) {
        n8_fail("the batch goes on after its last sample");
    }
}
