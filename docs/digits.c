// SPDX-License-Identifier: Apache-2.0
//
// digits MODEL.n8 IMAGE.raw: says which digit an image of 8 x 8 grey levels shows.
#include <stdio.h>
#include <stdlib.h>

#include "neon8.h"

// Reads a whole file; the caller frees it.  NULL on any failure.
static void *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    void *bytes = length > 0 ? malloc((size_t)length) : NULL;
    if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    *size = bytes ? (size_t)length : 0;
    return bytes;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: digits MODEL.n8 IMAGE.raw\n");
        return 2;
    }
    size_t model_size, image_size;
    void *file = load(argv[1], &model_size);
    void *image = load(argv[2], &image_size);
    if (!file || !image) {
        fprintf(stderr, "digits: cannot read %s\n", file ? argv[2] : argv[1]);
        return 2;
    }

    // Opening checks the file and packs its weights; nothing of `file` is needed afterwards.
    struct n8_model *model = NULL;
    struct n8_model_error error;
    enum n8_status status = n8_model_open(file, model_size, NULL, &model, &error);
    if (status != N8_OK) {
        fprintf(stderr, "digits: %s: %s\n", argv[1], error.reason);
        return 1;
    }
    free(file);

    struct n8_tensor_info input, output;
    n8_model_io(model, N8_INPUT, 0, &input);
    n8_model_io(model, N8_OUTPUT, 0, &output);
    float scores[10];
    if (input.size != image_size || output.size != sizeof scores) {
        fprintf(stderr, "digits: the model wants an image of %zu bytes\n", input.size);
        return 1;
    }

    // A session has the memory of a run; a run allocates nothing and cannot fail.
    struct n8_session *session = NULL;
    status = n8_session_create(model, NULL, &session);
    if (status == N8_OK)
        status = n8_session_run(session, (const void *[]){image}, (void *[]){scores});
    if (status != N8_OK) {
        fprintf(stderr, "digits: %s\n", n8_status_string(status));
        return 1;
    }

    int best = 0;
    for (int digit = 1; digit < 10; digit++)
        if (scores[digit] > scores[best]) best = digit;
    printf("this is a %d\n", best);

    n8_session_destroy(session);
    n8_model_close(model);
    free(image);
    return 0;
}
