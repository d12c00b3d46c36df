// SPDX-License-Identifier: Apache-2.0
//
// What neon8 uses of Android's C library, bionic, at API level 21, for where there is no NDK. Types
// have the sizes that bionic promises; those that are opaque have its fields' sizes alone.
#ifndef N8_BIONIC_H
#define N8_BIONIC_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef long ssize_t;
typedef int32_t pid_t;
typedef long time_t;

// stdlib.h, string.h
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
char *getenv(const char *);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
unsigned long long strtoull(const char *, char **, int);
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const char *);
int strcmp(const char *, const char *);
double ldexp(double, int); // is in libc.so there

// stdio.h
typedef struct __sFILE FILE;
FILE *fopen(const char *, const char *);
int fclose(FILE *);
char *fgets(char *, int, FILE *);
int snprintf(char *, size_t, const char *, ...) __attribute__((__format__(printf, 3, 4)));
int vsnprintf(char *, size_t, const char *, va_list) __attribute__((__format__(printf, 3, 0)));

// math.h
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#define isnormal(x) __builtin_isnormal(x)
double ceil(double);
double copysign(double, double);
double fabs(double);
double floor(double);
double fmax(double, double);
double fmin(double, double);
double fmod(double, double);
double frexp(double, int *);
double rint(double);
double sqrt(double);
float ceilf(float);
float fabsf(float);
float floorf(float);
float fmodf(float, float);
float rintf(float);
float sqrtf(float);

// pthread.h
#ifdef __LP64__
#define N8_WORDS(wide, narrow) int32_t n8_private[wide]
#else
#define N8_WORDS(wide, narrow) int32_t n8_private[narrow]
#endif
typedef long pthread_t;
typedef struct pthread_attr pthread_attr_t;
typedef long pthread_condattr_t;
typedef long pthread_mutexattr_t;
typedef struct {
    N8_WORDS(12, 1);
} pthread_cond_t;
typedef struct {
    N8_WORDS(10, 1);
} pthread_mutex_t;
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
int pthread_mutex_init(pthread_mutex_t *, const pthread_mutexattr_t *);
int pthread_mutex_destroy(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
int pthread_cond_init(pthread_cond_t *, const pthread_condattr_t *);
int pthread_cond_destroy(pthread_cond_t *);
int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_signal(pthread_cond_t *);
int pthread_cond_broadcast(pthread_cond_t *);

// time.h, unistd.h, sys/auxv.h
#define CLOCK_MONOTONIC 1
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
int clock_gettime(int, struct timespec *);
pid_t getpid(void);
int raise(int); // by divisions on 32 bits
#define AT_HWCAP 16
#define AT_HWCAP2 26
unsigned long getauxval(unsigned long);

#ifdef __cplusplus
}
#endif

#endif // N8_BIONIC_H
