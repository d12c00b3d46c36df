// example FOLDER: runs {{ w.name }} on the stored sample and compares with the bytes of the PC.
// FOLDER is this one. Made by `neon8 package`; yours to change.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "{{ w.name }}.h"

/// Fills `bytes` from a file of exactly `size` bytes.
static int load(const char *folder, const char *name, void *bytes, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    int whole = file && fread(bytes, 1, size, file) == size && fgetc(file) == EOF;
    if (file)
        fclose(file);
    if (!whole)
        fprintf(stderr, "example: %s is not a file of %zu bytes\n", path, size);
    return whole;
}

/// Whether a result is the same, byte for byte, as the one in a file.
static int same(const char *folder, const char *name, const void *result, size_t size) {
    void *stored = malloc(size);
    int equal = stored && load(folder, name, stored, size) && memcmp(stored, result, size) == 0;
    free(stored);
    printf("%s: %s\n", name, equal ? "the same bytes as on the PC" : "DIFFERENT");
    return equal;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: example FOLDER\n");
        return 2;
    }
    const char *folder = argv[1];
{% for v in w.values %}
    static {{ v.info.dtype | ctype }} {{ v.identifier }}[{{ upper }}_{{ v.identifier | upper }}_SIZE];
{% endfor %}
{% for v in w.inputs %}
    if (!load(folder, "sample/{{ v.identifier }}.raw", {{ v.identifier }}, sizeof {{ v.identifier }}))
        return 2;
{% endfor %}

    struct {{ w.name }} net;
{% if embed %}
    enum n8_status status = {{ w.name }}_open(&net, 1);
{% else %}
    char path[4096];
    snprintf(path, sizeof path, "%s/{{ w.name }}.n8", folder);
    enum n8_status status = {{ w.name }}_open(&net, path, 1);
{% endif %}
{% if w.arguments %}
    if (status == N8_OK)
        status = {{ w.name }}_resize(&net, {{ w.arguments | map(attribute="usual") | join(", ") }});
{% endif %}
    if (status == N8_OK)
        status = {{ w.name }}_run(&net, {{ w.values | map(attribute="identifier") | join(", ") }});
    if (status != N8_OK) {
        fprintf(stderr, "example: %s\n", n8_status_string(status));
        return 1;
    }
{% if w.labelled %}

    size_t best = 0;
    for (size_t i = 1; i < {{ upper }}_CLASSES; i++)
        if ({{ w.labelled.identifier }}[i] > {{ w.labelled.identifier }}[best])
            best = i;
    printf("class %zu: %s\n", best, {{ w.name }}_labels[best]);
{% endif %}

    int equal = 1;
{% for v in w.outputs %}
    equal &= same(folder, "sample/{{ v.identifier }}.raw", {{ v.identifier }}, sizeof {{ v.identifier }});
{% endfor %}
    {{ w.name }}_close(&net);
    return equal ? 0 : 1;
}
