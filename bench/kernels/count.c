// SPDX-License-Identifier: Apache-2.0
//
// A plugin for qemu-aarch64 and qemu-arm that counts which translated block follows which:
//
//   -plugin count.so,out=FILE,begin=ADDRESS,part=ADDRESS,end=ADDRESS
//
// Counting begins when the block at `begin` has run and ends where the block at `end` would. What
// is counted consists of parts: the block at `part` ends one and begins the next.
// FILE gets one line for each pair of blocks that followed one another in a part: the part, the
// address of the first block and its instructions, the same of the second, and how often. What is
// before a part and after it is a block 0 0, so that every block is entered as often as left.
#include "qemu_plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Plugins of version 1 run from qemu 4.2 to 8.1, of version 2 from 8.2 on.
#ifndef VERSION
#define VERSION 1
#endif

QEMU_PLUGIN_EXPORT int qemu_plugin_version = VERSION;

struct edge {
    const struct block *to;
    unsigned part;
    uint64_t count;
    struct edge *next;
};

struct block {
    uint64_t address;
    size_t instructions;
    struct edge *edges;
    struct block *next;
};

enum { BUCKETS = 4096 };

static struct block outside;
static struct block *table[BUCKETS];
static struct block *last; // that ran; NULL: nothing is counted now
static uint64_t begin, part_begin, end;
static unsigned part;
static const char *out_name;

static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (memory == NULL) {
        fputs("count: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static void follow(struct block *from, struct block *to) {
    struct edge *edge = from->edges;
    while (edge != NULL && (edge->to != to || edge->part != part)) {
        edge = edge->next;
    }
    if (edge == NULL) {
        edge = allocate(sizeof *edge);
        edge->to = to;
        edge->part = part;
        edge->next = from->edges;
        from->edges = edge;
    }
    edge->count++;
    last = to;
}

static void executed(unsigned vcpu, void *context) {
    struct block *block = context;
    if (vcpu != 0) {
        fputs("count: the guest has more than one thread\n", stderr);
        exit(1);
    }
    if (block->address == begin) {
        last = &outside;
    } else if (block->address == end && last != NULL) {
        follow(last, &outside);
        last = NULL;
    } else if (block->address == part_begin && last != NULL) {
        follow(last, &outside);
        part++;
        last = &outside;
    } else if (last != NULL) {
        follow(last, block);
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    const uint64_t address = qemu_plugin_tb_vaddr(tb);
    const size_t instructions = qemu_plugin_tb_n_insns(tb);
    struct block **place = &table[address / 4 % BUCKETS];
    while (*place != NULL &&
           ((*place)->address != address || (*place)->instructions != instructions)) {
        place = &(*place)->next;
    }
    if (*place == NULL) {
        *place = allocate(sizeof **place);
        (*place)->address = address;
        (*place)->instructions = instructions;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, *place);
}

static void print_edges(FILE *file, const struct block *from) {
    for (const struct edge *edge = from->edges; edge != NULL; edge = edge->next) {
        fprintf(file, "%u %" PRIu64 " %zu %" PRIu64 " %zu %" PRIu64 "\n", edge->part, from->address,
                from->instructions, edge->to->address, edge->to->instructions, edge->count);
    }
}

static void exited(qemu_plugin_id_t id, void *context) {
    (void)id;
    (void)context;
    FILE *file = fopen(out_name, "w");
    if (file == NULL) {
        perror(out_name);
        return;
    }
    print_edges(file, &outside);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct block *block = table[i]; block != NULL; block = block->next) {
            print_edges(file, block);
        }
    }
    if (fclose(file) != 0) {
        perror(out_name);
    }
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info,
                                           int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0) {
            out_name = argv[i] + 4; // qemu keeps the words until it exits
        } else if (strncmp(argv[i], "begin=", 6) == 0) {
            begin = strtoull(argv[i] + 6, NULL, 0);
        } else if (strncmp(argv[i], "part=", 5) == 0) {
            part_begin = strtoull(argv[i] + 5, NULL, 0);
        } else if (strncmp(argv[i], "end=", 4) == 0) {
            end = strtoull(argv[i] + 4, NULL, 0);
        } else {
            fprintf(stderr, "count: unknown option %s\n", argv[i]);
            return -1;
        }
    }
    if (out_name == NULL || begin == 0 || part_begin == 0 || end == 0) {
        fputs("count: out=FILE, begin=ADDRESS, part=ADDRESS and end=ADDRESS are needed\n", stderr);
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, exited, NULL);
    return 0;
}
