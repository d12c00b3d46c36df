// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200112L

#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct n8_pool {
    pthread_mutex_t lock;
    pthread_cond_t start; // a new round, or the end
    pthread_cond_t done;  // the last worker left the round
    size_t round;
    size_t busy; // workers still in this round
    bool ending;
    atomic_size_t next; // first unit that nobody has taken
    size_t units;
    n8_work_fn *work;
    void *context;
    size_t worker_count;
    struct worker {
        struct n8_pool *pool;
        size_t number;
        pthread_t thread;
    } workers[];
};

static void take_units(struct n8_pool *pool, size_t worker) {
    // Small chunks balance unequal cores; an eighth of a fair share costs few atomics.
    const size_t chunk = pool->units / ((pool->worker_count + 1) * 8) + 1;
    for (;;) {
        const size_t begin = atomic_fetch_add(&pool->next, chunk);
        if (begin >= pool->units) {
            return;
        }
        const size_t rest = pool->units - begin;
        pool->work(pool->context, begin, begin + (rest < chunk ? rest : chunk), worker);
    }
}

static void *run_worker(void *argument) {
    struct worker *self = argument;
    struct n8_pool *pool = self->pool;
    size_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->ending) {
            pthread_cond_wait(&pool->start, &pool->lock);
        }
        if (pool->ending) {
            break;
        }
        seen = pool->round;
        pthread_mutex_unlock(&pool->lock);
        take_units(pool, self->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0) {
            pthread_cond_signal(&pool->done);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void n8_pool_destroy(struct n8_pool *pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->start);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct n8_pool *n8_pool_create(size_t threads) {
    const size_t workers = threads - 1;
    struct n8_pool *pool = calloc(1, sizeof *pool + workers * sizeof pool->workers[0]);
    if (pool == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        free(pool);
        return NULL;
    }
    if (pthread_cond_init(&pool->start, NULL) != 0) {
        pthread_mutex_destroy(&pool->lock);
        free(pool);
        return NULL;
    }
    if (pthread_cond_init(&pool->done, NULL) != 0) {
        pthread_cond_destroy(&pool->start);
        pthread_mutex_destroy(&pool->lock);
        free(pool);
        return NULL;
    }
    for (size_t i = 0; i < workers; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->number = i + 1;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            n8_pool_destroy(pool); // joins those that did start
            return NULL;
        }
        pool->worker_count++;
    }
    return pool;
}

void n8_pool_run(struct n8_pool *pool, size_t units, n8_work_fn *work, void *context) {
    if (pool == NULL || units < 2) {
        work(context, 0, units, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->units = units;
    pool->work = work;
    pool->context = context;
    atomic_store(&pool->next, 0);
    pool->busy = pool->worker_count;
    pool->round++;
    pthread_cond_broadcast(&pool->start);
    pthread_mutex_unlock(&pool->lock);
    take_units(pool, 0);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0) {
        pthread_cond_wait(&pool->done, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}
