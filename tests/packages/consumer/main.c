// SPDX-License-Identifier: Apache-2.0
//
// Runs a model on the inputs in a file, one after another, and writes the outputs so.
//
//   main_c MODEL.n8 IN OUT
#include <neon8.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 16 };

static char *read_file(const char *path, size_t *size) {
    static char room[1 << 20];
    FILE *file = fopen(path, "rb");
    *size = file == NULL ? 0 : fread(room, 1, sizeof room, file);
    char *bytes = (char *)malloc(*size + 1);
    for (size_t i = 0; bytes != NULL && i < *size; i++) {
        bytes[i] = room[i];
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    size_t size, given;
    char *const content = read_file(argv[1], &size);
    char *const values = read_file(argv[2], &given);
    struct n8_model *model;
    struct n8_session *session;
    const struct n8_session_options options = {.threads = 2};
    struct n8_model_facts facts;
    if (n8_model_open(content, size, NULL, &model, NULL) != N8_OK ||
        n8_session_create(model, &options, &session) != N8_OK ||
        n8_model_describe(model, &facts) != N8_OK || facts.input_count > MOST ||
        facts.output_count > MOST) {
        return 3;
    }
    struct n8_tensor_info info;
    const void *inputs[MOST];
    void *outputs[MOST];
    size_t at = 0;
    for (size_t i = 0; n8_model_io(model, N8_INPUT, i, &info) == N8_OK; i++) {
        inputs[i] = values + at;
        at += info.size;
    }
    for (size_t i = 0; n8_model_io(model, N8_OUTPUT, i, &info) == N8_OK; i++) {
        outputs[i] = malloc(info.size);
    }
    if (at != given || n8_session_run(session, inputs, outputs) != N8_OK) {
        return 4;
    }
    FILE *file = fopen(argv[3], "wb");
    for (size_t i = 0; file != NULL && n8_model_io(model, N8_OUTPUT, i, &info) == N8_OK; i++) {
        fwrite(outputs[i], 1, info.size, file);
        free(outputs[i]);
    }
    n8_session_destroy(session);
    n8_model_close(model);
    free(content);
    free(values);
    printf("neon8 %s\n", n8_version());
    return file == NULL || fclose(file) != 0;
}
