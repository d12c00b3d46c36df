// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200112L

#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

// Work that some caller waits for; it lives on the caller's stack, in the pool's list.
struct job {
    struct job *next;
    atomic_size_t taken; // units that somebody has begun
    size_t units;
    size_t chunk; // units taken at once
    n8_work_fn *work;
    void *context;
    atomic_size_t busy; // workers in it; changed under the pool's lock
};

// Steps follow each other within microseconds, and a thread that sleeps takes tens of them to
// wake up. So whoever waits keeps looking for so long before it sleeps.
enum { PATIENCE = 20000 }; // nanoseconds

struct n8_threads {
    pthread_mutex_t lock;
    pthread_cond_t start; // a new job, or the end
    pthread_cond_t left;  // the last worker left some job
    struct job *jobs;     // first come, first served
    atomic_size_t posted; // jobs so far, and the end: rises where somebody may look again
    bool ending;
    pid_t owner; // the process that has the workers; a child made by fork() has none
    size_t worker_count;
    struct worker {
        struct n8_threads *threads;
        size_t number;
        pthread_t thread;
    } workers[];
};

static void take_units(struct job *job, size_t worker) {
    for (;;) {
        const size_t begin = atomic_fetch_add(&job->taken, job->chunk);
        if (begin >= job->units) {
            return;
        }
        const size_t rest = job->units - begin;
        job->work(job->context, begin, begin + (rest < job->chunk ? rest : job->chunk), worker);
    }
}

// The first job with units that nobody has taken, or NULL.
static struct job *find_job(const struct n8_threads *threads) {
    struct job *job = threads->jobs;
    while (job != NULL && atomic_load(&job->taken) >= job->units) {
        job = job->next;
    }
    return job;
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Waits for the next job or the end, of which there were `posted` when the lock was held.
static void look_for_job(struct n8_threads *threads, size_t posted) {
    const int64_t end = nanoseconds() + PATIENCE;
    while (atomic_load(&threads->posted) == posted && nanoseconds() < end) {
    }
}

// Waits for the workers in the job to leave it.
static void look_for_end(struct job *job) {
    const int64_t end = nanoseconds() + PATIENCE;
    while (atomic_load(&job->busy) > 0 && nanoseconds() < end) {
    }
}

static void *run_worker(void *argument) {
    struct worker *self = argument;
    struct n8_threads *threads = self->threads;
    pthread_mutex_lock(&threads->lock);
    while (!threads->ending) {
        struct job *job = find_job(threads);
        if (job == NULL) {
            const size_t posted = atomic_load(&threads->posted);
            pthread_mutex_unlock(&threads->lock);
            look_for_job(threads, posted);
            pthread_mutex_lock(&threads->lock);
            if (atomic_load(&threads->posted) == posted) {
                pthread_cond_wait(&threads->start, &threads->lock);
            }
            continue;
        }
        atomic_fetch_add(&job->busy, 1);
        pthread_mutex_unlock(&threads->lock);
        take_units(job, self->number);
        pthread_mutex_lock(&threads->lock);
        if (atomic_fetch_sub(&job->busy, 1) == 1) {
            pthread_cond_broadcast(&threads->left); // callers of several jobs may wait
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
    atomic_fetch_add(&threads->posted, 1);
    pthread_cond_broadcast(&threads->start);
    pthread_mutex_unlock(&threads->lock);
    for (size_t i = 0; i < threads->worker_count; i++) {
        pthread_join(threads->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&threads->left);
    pthread_cond_destroy(&threads->start);
    pthread_mutex_destroy(&threads->lock);
    free(threads);
}

static bool make_locks(struct n8_threads *threads) {
    if (pthread_mutex_init(&threads->lock, NULL) != 0) {
        return false;
    }
    if (pthread_cond_init(&threads->start, NULL) != 0) {
        pthread_mutex_destroy(&threads->lock);
        return false;
    }
    if (pthread_cond_init(&threads->left, NULL) != 0) {
        pthread_cond_destroy(&threads->start);
        pthread_mutex_destroy(&threads->lock);
        return false;
    }
    return true;
}

enum n8_status n8_threads_create(int32_t count, struct n8_threads **out) {
    if (out == NULL) {
        return N8_E_ARGUMENT;
    }
    *out = NULL;
    if (count < 1 || count > N8_MAX_THREADS) {
        return N8_E_ARGUMENT;
    }
    const size_t workers = (size_t)count - 1;
    struct n8_threads *threads = calloc(1, sizeof *threads + workers * sizeof threads->workers[0]);
    if (threads == NULL || !make_locks(threads)) {
        free(threads);
        return N8_E_MEMORY;
    }
    threads->owner = getpid();
    for (size_t i = 0; i < workers; i++) {
        struct worker *worker = &threads->workers[i];
        worker->threads = threads;
        worker->number = i + 1;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            n8_threads_destroy(threads); // joins those that did start
            return N8_E_MEMORY;
        }
        threads->worker_count++;
    }
    *out = threads;
    return N8_OK;
}

size_t n8_threads_count(const struct n8_threads *threads) {
    return threads == NULL ? 1 : threads->worker_count + 1;
}

static void add_job(struct n8_threads *threads, struct job *job) {
    struct job **end = &threads->jobs;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = job;
}

static void remove_job(struct n8_threads *threads, const struct job *job) {
    struct job **at = &threads->jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
}

void n8_threads_run(struct n8_threads *threads, size_t units, size_t grain, n8_work_fn *work,
                    void *context) {
    if (units == 0) {
        return;
    }
    if (threads == NULL || threads->worker_count == 0 || units <= grain ||
        threads->owner != getpid()) {
        work(context, 0, units, 0);
        return;
    }
    // Small chunks balance unequal cores; an eighth of a fair share costs few atomics.
    const size_t share = units / ((threads->worker_count + 1) * 8) + 1;
    struct job job = {
        .units = units,
        .chunk = share > grain ? share : grain,
        .work = work,
        .context = context,
    };
    const size_t others = (units - 1) / job.chunk; // chunks that the caller can leave
    pthread_mutex_lock(&threads->lock);
    add_job(threads, &job);
    atomic_fetch_add(&threads->posted, 1);
    if (others < threads->worker_count) {
        for (size_t i = 0; i < others; i++) {
            pthread_cond_signal(&threads->start);
        }
    } else {
        pthread_cond_broadcast(&threads->start);
    }
    pthread_mutex_unlock(&threads->lock);
    take_units(&job, 0);
    look_for_end(&job);
    pthread_mutex_lock(&threads->lock);
    remove_job(threads, &job);
    while (atomic_load(&job.busy) > 0) {
        pthread_cond_wait(&threads->left, &threads->lock);
    }
    pthread_mutex_unlock(&threads->lock);
}
