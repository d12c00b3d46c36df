// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells of the machine. Whatever is not there is left out.
#include "runner.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { TEXT = 256, CACHES = 8, SENSORS = 64 };

// The first line of a file of the kernel; false if it cannot be read.
static bool read_line(char text[TEXT], const char *format, int number, const char *name) {
    char path[TEXT];
    snprintf(path, sizeof path, format, number, name);
    FILE *file = fopen(path, "r");
    const bool there = file != NULL && fgets(text, TEXT, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (there) {
        text[strcspn(text, "\n")] = '\0';
    }
    return there;
}

static void print_line(const char *key, const char *format, int number, const char *name) {
    char text[TEXT];
    if (read_line(text, format, number, name)) {
        printf(", \"%s\": ", key);
        n8_print_text(text);
    }
}

#define CPU "/sys/devices/system/cpu/cpu%d/%s"

static void print_caches(int cpu) {
    printf(", \"caches\": [");
    for (int i = 0, seen = 0; i < CACHES; i++) {
        char format[TEXT], level[TEXT];
        snprintf(format, sizeof format, "/sys/devices/system/cpu/cpu%d/cache/index%%d/%%s", cpu);
        if (read_line(level, format, i, "level")) {
            printf("%s{\"level\": ", seen++ == 0 ? "" : ", ");
            n8_print_text(level);
            print_line("type", format, i, "type");
            print_line("size", format, i, "size");
            print_line("shared", format, i, "shared_cpu_list");
            printf("}");
        }
    }
    printf("]");
}

// What /proc/cpuinfo says of each processor, where the kernel has no file for it.
static void print_cpuinfo(void) {
    static const char *const keys[] = {"processor",    "CPU implementer", "CPU part",
                                       "CPU revision", "model name",      "Hardware"};
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[TEXT];
    printf(", \"cpuinfo\": [");
    for (int seen = 0; file != NULL && fgets(line, sizeof line, file) != NULL;) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const size_t length = strlen(keys[i]);
            const char *colon = strchr(line, ':');
            if (strncmp(line, keys[i], length) == 0 && colon != NULL &&
                strspn(line + length, " \t:") >= (size_t)(colon - line) - length) {
                line[strcspn(line, "\n")] = '\0';
                printf("%s[\"%s\", ", seen++ == 0 ? "" : ", ", keys[i]);
                n8_print_text(colon + 1 + strspn(colon + 1, " \t"));
                printf("]");
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    printf("]");
}

void n8_print_facts(void) {
    struct utsname name;
    uname(&name);
    const long cores = sysconf(_SC_NPROCESSORS_CONF);
    printf("{\"runner\": ");
    n8_print_text(n8_version());
    printf(", \"machine\": ");
    n8_print_text(name.machine);
    printf(", \"system\": ");
    n8_print_text(name.sysname);
    printf(", \"release\": ");
    n8_print_text(name.release);
    print_line("board", "/proc/device-tree/model", 0, "");
    print_line("memory", "/proc/meminfo", 0, "");
    printf(", \"bits\": %zu, \"page\": %ld, \"hwcap\": %lu, \"hwcap2\": %lu, \"cores\": [",
           8 * sizeof(void *), sysconf(_SC_PAGESIZE), getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
    for (int cpu = 0; cpu < cores; cpu++) {
        printf("%s{\"cpu\": %d", cpu == 0 ? "" : ", ", cpu);
        print_line("online", CPU, cpu, "online");
        print_line("midr", CPU, cpu, "regs/identification/midr_el1");
        print_line("min_khz", CPU, cpu, "cpufreq/cpuinfo_min_freq");
        print_line("max_khz", CPU, cpu, "cpufreq/cpuinfo_max_freq");
        print_line("governor", CPU, cpu, "cpufreq/scaling_governor");
        print_caches(cpu);
        printf("}");
    }
    printf("]");
    print_cpuinfo();
    printf(", ");
    n8_print_state(NULL, 0);
    printf("}\n");
}

void n8_print_state(const int *cpus, size_t count) {
    char text[TEXT];
    printf("\"khz\": [");
    for (size_t i = 0, seen = 0; i < count; i++) {
        if (read_line(text, CPU, cpus[i], "cpufreq/scaling_cur_freq")) {
            printf("%s%ld", seen++ == 0 ? "" : ", ", strtol(text, NULL, 10));
        }
    }
    printf("], \"millicelsius\": [");
    for (int i = 0, seen = 0; i < SENSORS; i++) {
        if (read_line(text, "/sys/class/thermal/thermal_zone%d/%s", i, "temp")) {
            printf("%s%ld", seen++ == 0 ? "" : ", ", strtol(text, NULL, 10));
        }
    }
    printf("]");
}
