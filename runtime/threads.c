// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200112L

#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

struct n8_threads {
    pthread_mutex_t lock;
    pthread_cond_t start; // a new round, or the end
    pthread_cond_t done;  // the last worker left the round
    size_t round;
    size_t busy; // workers still in this round
    bool ending;
    atomic_size_t next; // first unit that nobody has taken
    size_t units;
    size_t chunk; // units taken at once
    n8_work_fn *work;
    void *context;
    pid_t owner; // the process that has the workers; a child made by fork() has none
    size_t worker_count;
    struct worker {
        struct n8_threads *threads;
        size_t number;
        pthread_t thread;
    } workers[];
};

static void take_units(struct n8_threads *threads, size_t worker) {
    const size_t chunk = threads->chunk;
    for (;;) {
        const size_t begin = atomic_fetch_add(&threads->next, chunk);
        if (begin >= threads->units) {
            return;
        }
        const size_t rest = threads->units - begin;
        threads->work(threads->context, begin, begin + (rest < chunk ? rest : chunk), worker);
    }
}

static void *run_worker(void *argument) {
    struct worker *self = argument;
    struct n8_threads *threads = self->threads;
    size_t seen = 0;
    pthread_mutex_lock(&threads->lock);
    for (;;) {
        while (threads->round == seen && !threads->ending) {
            pthread_cond_wait(&threads->start, &threads->lock);
        }
        if (threads->ending) {
            break;
        }
        seen = threads->round;
        pthread_mutex_unlock(&threads->lock);
        take_units(threads, self->number);
        pthread_mutex_lock(&threads->lock);
        if (--threads->busy == 0) {
            pthread_cond_signal(&threads->done);
        }
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

void n8_threads_destroy(struct n8_threads *threads) {
    if (threads == NULL) {
        return;
    }
    if (threads->owner != getpid()) { // nobody to join, and the lock may be held for ever
        free(threads);
        return;
    }
    pthread_mutex_lock(&threads->lock);
    threads->ending = true;
    pthread_cond_broadcast(&threads->start);
    pthread_mutex_unlock(&threads->lock);
    for (size_t i = 0; i < threads->worker_count; i++) {
        pthread_join(threads->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&threads->done);
    pthread_cond_destroy(&threads->start);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
}

struct n8_threads *n8_threads_create(size_t count) {
    const size_t workers = count - 1;
    struct n8_threads *threads = calloc(1, sizeof *threads + workers * sizeof threads->workers[0]);
    if (threads == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&threads->lock, NULL) != 0) {
        free(threads);
        return NULL;
    }
    if (pthread_cond_init(&threads->start, NULL) != 0) {
        pthread_mutex_destroy(&threads->lock);
        free(threads);
        return NULL;
    }
    if (pthread_cond_init(&threads->done, NULL) != 0) {
        pthread_cond_destroy(&threads->start);
        pthread_mutex_destroy(&threads->lock);
        free(threads);
        return NULL;
    }
    threads->owner = getpid();
    for (size_t i = 0; i < workers; i++) {
        struct worker *worker = &threads->workers[i];
        worker->threads = threads;
        worker->number = i + 1;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            n8_threads_destroy(threads); // joins those that did start
            return NULL;
        }
        threads->worker_count++;
    }
    return threads;
}

void n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                    void *context) {
    if (threads == NULL || units <= grain || threads->owner != getpid()) {
        work(context, 0, units, 0);
        return;
    }
    // Small chunks balance unequal cores; an eighth of a fair share costs few atomics.
    const size_t share = units / ((threads->worker_count + 1) * 8) + 1;
    pthread_mutex_lock(&threads->lock);
    threads->units = units;
    threads->chunk = share > grain ? share : grain;
    threads->work = work;
    threads->context = context;
    atomic_store(&threads->next, 0);
    threads->busy = threads->worker_count;
    threads->round++;
    pthread_cond_broadcast(&threads->start);
    pthread_mutex_unlock(&threads->lock);
    take_units(threads, 0);
    pthread_mutex_lock(&threads->lock);
    while (threads->busy > 0) {
        pthread_cond_wait(&threads->done, &threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);
}
