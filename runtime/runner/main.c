// SPDX-License-Identifier: Apache-2.0
//
//   neon8-runner facts
//   neon8-runner digest FILE...
//   neon8-runner describe MODEL.n8 [OPTION VALUE...]
//   neon8-runner run MODEL.n8 [OPTION VALUE...] <batch >batch
//   neon8-runner bench MODEL.n8 [OPTION VALUE...] <batch
//
// Options are those of struct n8_runner_options. What it prints is JSON, but for batches.
#include "runner.h"

#include "model/checksum.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void n8_fail(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c != '\0'; c++) {
        *c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
    }
    fprintf(stderr, "neon8-runner: %s\n", text);
    exit(2);
}

void *n8_room(size_t count, size_t size) {
    void *memory = calloc(count + (count == 0), size);
    if (memory == NULL) {
        n8_fail("out of memory");
    }
    return memory;
}

void n8_print_text(const char *text) {
    putchar('"');
    for (; *text != '\0'; text++) {
        const char c = *text;
        putchar(c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c);
    }
    putchar('"');
}

void *n8_read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        n8_fail("%s: %s", path, strerror(errno));
    }
    size_t room = 1 << 16, used = 0;
    char *bytes = n8_room(room, 1);
    while (true) {
        used += fread(bytes + used, 1, room - used, file);
        if (used < room) {
            break;
        }
        char *more = room > SIZE_MAX / 2 ? NULL : realloc(bytes, 2 * room);
        if (more == NULL) {
            n8_fail("%s: out of memory", path);
        }
        bytes = more;
        room *= 2;
    }
    if (ferror(file)) {
        n8_fail("%s: cannot be read", path);
    }
    fclose(file);
    *size = used;
    return bytes;
}

static void print_digests(char **paths) {
    printf("{\"files\": [");
    for (size_t i = 0; paths[i] != NULL; i++) {
        size_t size;
        void *bytes = n8_read_file(paths[i], &size);
        printf("%s[%zu, %u]", i == 0 ? "" : ", ", size, (unsigned)n8_crc32(bytes, size));
        free(bytes);
    }
    printf("]}\n");
}

static double number(const char *name, const char *word, double most) {
    char *end;
    const double value = strtod(word, &end);
    if (end == word || *end != '\0' || !(value >= 0 && value <= most)) {
        n8_fail("%s %s: no number from 0 to %.0f", name, word, most);
    }
    return value;
}

static enum n8_isa isa_of(const char *word) {
    static const char *const names[] = {"auto", "c",       "vector", "avx2", "avx512",
                                        "neon", "dotprod", "i8mm",   "sme"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(word, names[i]) == 0) {
            return (enum n8_isa)i;
        }
    }
    n8_fail("--isa %s: unknown", word);
}

static struct n8_runner_options read_options(char **words) {
    struct n8_runner_options options = {.threads = 1, .runs = 100, .seconds = 1};
    options.model = words[0];
    for (size_t i = 1; words[i] != NULL; i += 2) {
        const char *name = words[i], *value = words[i + 1];
        if (value == NULL) {
            n8_fail("%s: lacks a value", name);
        } else if (strcmp(name, "--threads") == 0) {
            options.threads = (int32_t)number(name, value, 64);
        } else if (strcmp(name, "--isa") == 0) {
            options.isa = isa_of(value);
        } else if (strcmp(name, "--max-bytes") == 0) {
            options.max_bytes = (uint64_t)number(name, value, 9e15);
        } else if (strcmp(name, "--shapes") == 0) {
            options.shapes = value;
        } else if (strcmp(name, "--cpus") == 0) {
            options.cpus = value;
        } else if (strcmp(name, "--runs") == 0) {
            options.runs = (size_t)number(name, value, 1e6);
        } else if (strcmp(name, "--seconds") == 0) {
            options.seconds = number(name, value, 1e6);
        } else if (strcmp(name, "--evict") == 0) {
            options.evict = (size_t)number(name, value, 1 << 30);
        } else if (strcmp(name, "--counters") == 0) {
            options.counters = number(name, value, 1) > 0;
        } else {
            n8_fail("%s: unknown option", name);
        }
    }
    return options;
}

// Threads that are made later inherit it.
static void pin(const char *list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const char *at = list; *at != '\0';) {
        char *end;
        const long first = strtol(at, &end, 10);
        long last = first;
        if (end != at && *end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
        }
        if (end == at || (*end != ',' && *end != '\0') || first < 0 || last >= CPU_SETSIZE ||
            first > last) {
            n8_fail("--cpus %s: no list of processors", list);
        }
        for (long cpu = first; cpu <= last; cpu++) {
            CPU_SET((size_t)cpu, &set);
        }
        at = *end == ',' ? end + 1 : end;
    }
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        n8_fail("--cpus %s: %s", list, strerror(errno));
    }
}

int main(int count, char **words) {
    const char *command = count > 1 ? words[1] : "";
    if (strcmp(command, "facts") == 0) {
        n8_print_facts();
    } else if (strcmp(command, "digest") == 0) {
        print_digests(words + 2);
    } else if (count > 2 && (strcmp(command, "describe") == 0 || strcmp(command, "run") == 0 ||
                             strcmp(command, "bench") == 0)) {
        const struct n8_runner_options options = read_options(words + 2);
        if (options.cpus != NULL) {
            pin(options.cpus);
        }
        struct n8_network network = n8_open_network(&options);
        if (strcmp(command, "describe") == 0) {
            n8_describe(&network);
        } else if (strcmp(command, "run") == 0) {
            n8_run_batch(&network, stdin, stdout);
        } else {
            n8_bench(&network, stdin);
        }
    } else {
        n8_fail("one of: facts; digest FILE...; describe MODEL; run MODEL; bench MODEL");
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        n8_fail("standard output: %s", strerror(errno));
    }
    return 0;
}
