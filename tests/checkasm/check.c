// SPDX-License-Identifier: Apache-2.0
//
// Runs one case: the reference, then the kernel through the shim, same memory, same canaries
// around and between the outputs, and compares everything.
#include "checkasm.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum {
    MARGIN = 64,       // bytes before and after the output that are compared, too
    SPAN = 1 << 16,    // largest output, margins included
    THREADS = 2,       // at once
    THREAD_RUNS = 100, // of each
    PRINTED = 5,       // failures of one kernel
    FIRE_TICKS = 3,    // signals that must have hit a kernel
    FIRE_SECONDS = 30, // before giving up on that
    FIRE_PERIOD = 500, // microseconds between two signals
    UNUSED = 128,      // bytes of a signal's frame on 32-bit ARM
};

volatile unsigned long check_ticks;
static volatile unsigned long ticks_inside;
static volatile sig_atomic_t inside;
static sigjmp_buf escape;
static const void *volatile fault_address;

// Uses the interrupted stack, as any handler without a stack of its own does.
static void on_timer(int number, siginfo_t *info, void *machine) {
    (void)number;
    (void)info;
#if defined(__arm__)
    // The upper end of the frame that Linux makes for a handler is room that it leaves alone.
    const ucontext_t *interrupted = machine;
    memset((uint8_t *)interrupted->uc_mcontext.arm_sp - UNUSED, 0x5a, UNUSED);
#else
    (void)machine;
#endif
    volatile uint8_t scratch[256];
    for (size_t i = 0; i < sizeof scratch; i++)
        scratch[i] = 0x5a;
    check_ticks++;
    if (inside)
        ticks_inside++;
}

static void on_fault(int number, siginfo_t *info, void *machine) {
    (void)machine;
    if (!inside) {
        signal(number, SIG_DFL);
        return;
    }
    fault_address = info->si_addr;
    siglongjmp(escape, number);
}

void check_signals_init(void) {
    static uint8_t stack[1 << 16];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction timer = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    const struct itimerval period = {{0, FIRE_PERIOD}, {0, FIRE_PERIOD}};
    if (sigaltstack(&alternative, NULL) || sigaction(SIGSEGV, &fault, NULL) ||
        sigaction(SIGBUS, &fault, NULL) || sigaction(SIGILL, &fault, NULL) ||
        sigaction(SIGALRM, &timer, NULL) || setitimer(ITIMER_REAL, &period, NULL)) {
        perror("checkasm: signals");
        exit(1);
    }
}

static void report(struct context *context, const struct test_case *test, const char *reason) {
    if (context->failures++ == 0)
        snprintf(context->reason, sizeof context->reason, "%s", reason);
    if (!context->quiet && context->failures <= PRINTED)
        printf("FAIL %s_%s: %s: %s\n", context->kernel->slot, context->kernel->suffix, test->text,
               reason);
}

// NULL, or what is wrong.
static const char *run_kernel(struct context *context, struct test_case *test) {
    const char *reason;
    switch (sigsetjmp(escape, 1)) {
    case 0:
        inside = 1;
        reason = call_checked(&test->call, rng_next(&context->rng));
        inside = 0;
        return reason;
    case SIGILL:
        inside = 0;
        return "illegal instruction";
    case SIGBUS:
        inside = 0;
        return "used memory that is not aligned for it";
    default:
        inside = 0;
        return guard_contains(fault_address) ? "touched a guard page" : "touched wild memory";
    }
}

// The output and what is compared around it: `size` bytes from `begin` on, `before` and after.
struct view {
    uint8_t *begin;
    size_t size;
    uint8_t before[SPAN], expected[SPAN];
};

static void set_expected(struct context *context, struct test_case *test, struct view *view) {
    memcpy(view->begin, view->before, view->size);
    test->call.fn = context->kernel->reference;
    call_plain(&test->call);
    memcpy(view->expected, view->begin, view->size);
}

static void check_output(struct context *context, struct test_case *test, const struct view *view) {
    static char message[sizeof context->reason];
    const uint8_t *begin = view->begin, *expected = view->expected;
    memcpy(view->begin, view->before, view->size);
    test->call.fn = context->kernel->run;
    const char *reason = run_kernel(context, test);
    context->cases++;
    if (!reason && memcmp(begin, expected, view->size) != 0) {
        size_t i = 0;
        while (begin[i] == expected[i])
            i++;
        snprintf(message, sizeof message, "byte %td of the output is %d, expected %d",
                 begin + i - test->out, (int8_t)begin[i], (int8_t)expected[i]);
        reason = message;
    }
    if (reason)
        report(context, test, reason);
}

static const void *get_operand(const struct operand *operand) {
    if (operand->field != NULL)
        return *operand->field;
    return operand->argument != NULL ? (const void *)(uintptr_t)*operand->argument : NULL;
}

static void set_operand(const struct operand *operand, const void *place) {
    if (operand->field != NULL) {
        *operand->field = place;
    } else {
        *operand->argument = (uintptr_t)place;
    }
}

// The reference finds the operand apart from the output, even where the kernel does not; so it
// need not be able to work in place, and gaps are to stay what they are in the operand.
static void check_in_place(struct context *context, struct test_case *test, struct view *view,
                           const struct operand *operand) {
    const void *apart = get_operand(operand);
    if (apart == NULL || test->out_size == 0)
        return;
    memcpy(view->before + (test->out - view->begin), apart, test->out_size);
    set_expected(context, test, view);
    set_operand(operand, test->out);
    check_output(context, test, view);
    set_operand(operand, apart);
}

void check_case(struct context *context, struct test_case *test) {
    static struct view view;
    uint8_t *begin = test->out, *end = test->out + test->out_size;
    if ((size_t)(begin - guard_begin(REGION_OUT)) >= MARGIN)
        begin -= MARGIN;
    if ((size_t)(guard_end(REGION_OUT) - end) >= MARGIN)
        end += MARGIN;
    view.begin = begin;
    view.size = (size_t)(end - begin);
    if (view.size > SPAN) {
        fprintf(stderr, "checkasm: %s: the output is too large\n", test->text);
        exit(1);
    }
    rng_bytes(&context->rng, view.before, view.size);
    set_expected(context, test, &view);
    check_output(context, test, &view);
    for (size_t i = 0; i < sizeof test->operands / sizeof test->operands[0]; i++)
        check_in_place(context, test, &view, &test->operands[i]);
}

// This and the next do nothing once a case has failed: there is no escape from a thread.
static void check_under_fire(struct context *context, struct test_case *test) {
    const time_t end = time(NULL) + FIRE_SECONDS;
    ticks_inside = 0;
    while (ticks_inside < FIRE_TICKS && context->failures == 0) {
        check_case(context, test);
        if (time(NULL) > end) {
            report(context, test, "no signal arrived while it ran");
            return;
        }
    }
}

// The arguments of a struct call, of any kind; `out` is the first member of each.
union any_args {
    void *out;
#define MEMBER(signature, name) struct n8_##name##_args name;
    CALL_STRUCTS(MEMBER)
#undef MEMBER
};

// 0 if a call has none.
static size_t args_size(enum signature signature) {
    switch (signature) {
#define SIZE(signature, name)                                                                      \
    case SIGNATURE_##signature:                                                                    \
        return sizeof(struct n8_##name##_args);
        CALL_STRUCTS(SIZE)
#undef SIZE
    default:
        return 0;
    }
}

struct job {
    const struct test_case *test;
    const uint8_t *expected; // of the whole output, its gaps 0
    pthread_barrier_t *start;
    bool failed;
};

static void *work(void *argument) {
    struct job *job = argument;
    struct call call = job->test->call;
    const size_t size = job->test->out_size;
    union any_args args;
    struct n8_windows_args windows;
    void *out; // aligned as kernels of int32 sums demand: malloc promises 8 bytes on 32-bit ARM
    void *packed = NULL;
    if (posix_memalign(&out, 16, size + 1) != 0)
        abort();
    if (args_size(call.signature) > 0) {
        memcpy(&args, (void *)(uintptr_t)call.x[0], args_size(call.signature));
        args.out = out;
        call.x[0] = (uintptr_t)&args;
        if (call.signature == SIGNATURE_IGEMM && args.igemm.windows != NULL) {
            windows = *args.igemm.windows;
            if (posix_memalign(&packed, 16, windows.block * args.igemm.taps * args.igemm.depth) !=
                0)
                abort();
            windows.packed = packed;
            args.igemm.windows = &windows;
        }
    } else {
        call.x[0] = (uintptr_t)out;
    }
    pthread_barrier_wait(job->start);
    for (int run = 0; run < THREAD_RUNS; run++) {
        memset(out, 0, size);
        call_plain(&call);
        job->failed |= memcmp(out, job->expected, size) != 0;
    }
    free(out);
    free(packed);
    return NULL;
}

static void check_in_threads(struct context *context, struct test_case *test) {
    static uint8_t expected[SPAN];
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    pthread_barrier_t start;
    if (context->failures > 0)
        return;
    memset(test->out, 0, test->out_size);
    test->call.fn = context->kernel->reference;
    call_plain(&test->call);
    memcpy(expected, test->out, test->out_size);
    test->call.fn = context->kernel->run;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){test, expected, &start, false};
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) {
            fprintf(stderr, "checkasm: cannot start a thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        context->cases += THREAD_RUNS;
        if (jobs[i].failed)
            report(context, test, "wrong when two threads run it at once");
    }
    pthread_barrier_destroy(&start);
}

void check_step(struct context *context, struct test_case *test, bool last) {
    check_case(context, test);
    if (last) {
        check_under_fire(context, test);
        check_in_threads(context, test);
    }
}
