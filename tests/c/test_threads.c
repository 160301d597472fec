/* Threads: how many there are and why, ranges of work, OpenMP regions of other libraries, and fork. */
#define _GNU_SOURCE
#include "core/colocate.h"
#include "core/cores.h"
#include "core/internal.h"
#include "core/openmp.h"
#include "core/tensor.h"
#include "core/wait.h"
#include "tests/c/openmp/user.h"
#include "suite.h"

#include <proa/threads.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void expect(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "'%s' lacks '%s'", proa_error_message(), part);
    proa_clear_error();
}

/* ---- ranges ---------------------------------------------------------------------------- */

enum { ITEMS = 100003 };

static atomic_int hits[ITEMS];
static void mark(int64_t begin, int64_t end, void *context)
{
    (void)context;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add_explicit(&hits[i], 1, memory_order_relaxed);
}

static int count_wrong(int64_t n, int want)
{
    int wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += atomic_exchange(&hits[i], 0) != want;
    return wrong;
}

START_TEST(ranges_cover_everything_once)
{
    static const int64_t grains[] = {-1, 1, 100, 50001, 50002, ITEMS, 1000000};
    for (int threads = 1; threads <= 7; threads++) {
        proa_set_threads(threads);
        ck_assert_int_eq(proa_threads(), threads);
        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
            proa__parallel(ITEMS, grains[g], mark, NULL);
            ck_assert_int_eq(count_wrong(ITEMS, 1), 0);
            ck_assert_int_eq(proa_error(), PROA_OK);
        }
        for (int64_t n = 1; n < 40; n++) {
            proa__parallel(n, 1, mark, NULL);
            ck_assert_int_eq(count_wrong(n + 1, 1), 1);
        }
    }
    proa__parallel(0, 1, mark, NULL);
    proa__parallel(-5, 1, mark, NULL);
    proa_set_threads(0);
    expect(PROA_ERR_INVALID_ARGUMENT, "at least 1");
}
END_TEST

typedef struct one_range {
    atomic_int calls;
    int64_t begin, end;
} one_range;

static void note(int64_t begin, int64_t end, void *context)
{
    one_range *r = context;
    atomic_fetch_add(&r->calls, 1);
    r->begin = begin, r->end = end;
}

START_TEST(small_ranges_start_no_thread)
{
    one_range r = {0};
    proa_set_threads(4);
    proa__parallel(1999, 1000, note, &r);
    ck_assert_int_eq(r.calls, 1);
    ck_assert_int_eq(r.begin, 0);
    ck_assert_int_eq(r.end, 1999);
    ck_assert_int_eq(proa_threads_info().workers, 0);
}
END_TEST

static void count_range(int64_t begin, int64_t end, void *context)
{
    (void)begin, (void)end;
    atomic_fetch_add((atomic_int *)context, 1);
}

START_TEST(scans_make_one_range_a_thread)
{
    for (int threads = 1; threads <= 5; threads++) {
        atomic_int ranges = 0;
        proa_set_threads(threads);
        proa__parallel_scans(ITEMS, 100, count_range, &ranges);
        ck_assert_int_eq(ranges, threads);
        proa__parallel_scans(ITEMS, 100, mark, NULL);
        ck_assert_int_eq(count_wrong(ITEMS, 1), 0);
        ranges = 0;
        proa__parallel_scans(199, 100, count_range, &ranges);
        ck_assert_int_eq(ranges, 1);
    }
}
END_TEST

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The thread that has item 0 gets no further until three quarters of all are done. */
static void stuck(int64_t begin, int64_t end, void *context)
{
    atomic_int *done = context;
    int64_t deadline = now_ms() + 60000;
    while (begin == 0 && atomic_load(done) < 48 && now_ms() < deadline) usleep(100);
    atomic_fetch_add(done, (int)(end - begin));
    if (begin == 0 && now_ms() >= deadline) proa_fail(PROA_ERR_INTERNAL, "nobody took the rest");
}

START_TEST(ranges_of_a_thread_that_is_held_up_are_taken)
{
    proa_set_threads(2);
    for (int i = 0; i < 20; i++) {
        atomic_int done = 0;
        proa__parallel(64, 1, stuck, &done);
        ck_assert_int_eq(proa_error(), PROA_OK);
        ck_assert_int_eq(done, 64);
    }
    ck_assert_int_gt(proa_threads_info().stolen, 0);
}
END_TEST

static void nothing(int64_t begin, int64_t end, void *context) { (void)begin, (void)end, (void)context; }

static void fail_late(int64_t begin, int64_t end, void *context)
{
    for (int64_t i = begin; i < end; i++)
        if (i >= 1000) proa_fail(PROA_ERR_NUMERIC, "item %lld", (long long)i);
    proa__parallel(10000, 1, nothing, context); /* nested: on this thread alone */
}

START_TEST(errors_of_workers_arrive)
{
    for (int threads = 1; threads <= 4; threads++) {
        proa_set_threads(threads);
        for (int i = 0; i < 20; i++) {
            proa__parallel(4000, 1, fail_late, NULL);
            expect(PROA_ERR_NUMERIC, "item 1000");
        }
    }
}
END_TEST

/* ---- who has how many ------------------------------------------------------------------ */

static void *own_settings(void *p)
{
    (void)p;
    proa_set_threads(3);
    proa_seed(5);
    proa_fail(PROA_ERR_IO, "here");
    return proa_threads() == 3 ? (void *)hits : NULL;
}

START_TEST(settings_belong_to_a_thread)
{
    proa_set_threads(2);
    proa_seed(1);
    pthread_t thread;
    void *got = NULL;
    pthread_create(&thread, NULL, own_settings, NULL);
    pthread_join(thread, &got);
    ck_assert_ptr_nonnull(got);
    ck_assert_int_eq(proa_threads(), 2);
    ck_assert_str_eq(proa_threads_info().reason, "set for this thread");
    ck_assert_uint_eq(proa_rng_get().seed, 1);
    ck_assert_int_eq(proa_error(), PROA_OK);
}
END_TEST

START_TEST(a_flag_of_zero_goes_back_to_all_threads)
{
    int all = proa_threads();
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(proa_set_flag("num_threads", "3"), PROA_OK);
        ck_assert_int_eq(proa_threads(), 3);
        ck_assert_str_eq(proa_threads_info().reason, "FLAGS_num_threads");
        ck_assert_int_eq(proa_set_flag("num_threads", "0"), PROA_OK);
        ck_assert_int_eq(proa_threads(), all);
    }
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(quotas_and_the_environment_decide)
{
    char root[300];
    snprintf(root, sizeof root, "%s/cgroup-XXXXXX", test_folder());
    ck_assert_ptr_nonnull(mkdtemp(root));
    unsetenv("PROA_NUM_THREADS"), unsetenv("OMP_NUM_THREADS");
    proa__cores none = proa__cores_look(root);
    ck_assert_int_eq(none.threads, none.affinity);
    ck_assert(none.quota == 0 && none.affinity >= 1);

    write_file(root, "proc/self/cgroup", "0::/a/b\n"); /* version 2; the parent is tighter */
    write_file(root, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    write_file(root, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    proa__cores half = proa__cores_look(root);
    ck_assert_double_eq(half.quota, 0.5);
    ck_assert_int_eq(half.threads, 1);
    write_file(root, "sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    proa__cores more = proa__cores_look(root);
    ck_assert_double_eq(more.quota, 1.5);
    ck_assert_int_eq(more.threads, more.affinity < 2 ? more.affinity : 2);
    if (more.affinity >= 2) ck_assert_ptr_nonnull(strstr(more.reason, "cgroup quota of 1.5"));

    write_file(root, "proc/self/cgroup",
               "4:memory:/x\n3:cpuacct,cpu:/host/path\n"); /* version 1, no namespace */
    write_file(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n");
    write_file(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_double_eq(proa__cores_look(root).quota, 0.25);
    write_file(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    ck_assert_double_eq(proa__cores_look(root).quota, 0);

    setenv("OMP_NUM_THREADS", "5,2", 1);
    ck_assert_int_eq(proa__cores_look(root).threads, 5);
    ck_assert_str_eq(proa__cores_look(root).reason, "OMP_NUM_THREADS");
    setenv("PROA_NUM_THREADS", "7", 1);
    ck_assert_int_eq(proa__cores_look(root).threads, 7);
    setenv("PROA_NUM_THREADS", "many", 1);
    ck_assert_int_eq(proa__cores_look(root).threads, 5);
}
END_TEST

/* ---- many threads, their ends, fork ------------------------------------------------------ */

static void add(int64_t begin, int64_t end, void *context)
{
    atomic_fetch_add((atomic_llong *)context, end - begin);
}

static void *many_ranges(void *p)
{
    atomic_llong sum = 0;
    int rounds = 200;
    (void)p;
    proa_set_threads(3);
    for (int i = 0; i < rounds; i++) proa__parallel(1000 + i, 7, add, &sum);
    return sum == (long long)rounds * 1000 + rounds * (rounds - 1) / 2 ? (void *)hits : NULL;
}

START_TEST(user_threads_have_teams_of_their_own)
{
    enum { THREADS = 8 };
    for (int round = 0; round < 5; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, many_ranges, NULL);
        for (int i = 0; i < THREADS; i++) {
            void *right = NULL;
            pthread_join(threads[i], &right);
            ck_assert_ptr_nonnull(right);
        }
        /* those of threads that ended serve the next ones */
        ck_assert_int_le(proa_threads_info().workers, 2 * THREADS);
    }
}
END_TEST

START_TEST(workers_that_slept_come_back)
{
    proa_set_threads(3);
    for (int i = 0; i < 3; i++) {
        proa__parallel(ITEMS, 1, mark, NULL);
        ck_assert_int_eq(count_wrong(ITEMS, 1), 0);
        usleep(100000);
    }
    ck_assert_int_ge(proa_threads_info().worker_sleeps, 2);
    ck_assert_int_eq(proa_threads_info().workers, 2);
}
END_TEST

/* The n-th core of `may`. */
static int core_of(const cpu_set_t *may, int n)
{
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, may) && n-- == 0) return core;
    return -1;
}

static void bind_to(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

static pid_t spin_on(int core)
{
    pid_t child = fork();
    if (child != 0) return child;
    bind_to(core);
    alarm(60); /* it does not outlive a test that fails */
    for (volatile int i = 0;; i++)
        ;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Calls join_core(to) on core `from`; returns the core that the thread is on then, which it may leave. */
static int joined(const cpu_set_t *may, int from, int to)
{
    cpu_set_t after;
    bind_to(from);
    ck_assert_int_eq(sched_setaffinity(0, sizeof *may, may), 0);
    proa__join_core(to);
    int core = sched_getcpu();
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&after, may));
    return core;
}

static void *toggle(void *p)
{
    proa__signal *s = p;
    while (atomic_load(&s->word) < 2) {
        usleep(1000);
        unsigned one = 1;
        if (atomic_compare_exchange_strong(&s->word, &one, 0)) proa__wake_sleepers(s);
    }
    return NULL;
}

START_TEST(a_thread_on_a_crowded_core_moves_and_is_free_to_leave)
{
    cpu_set_t may;
    ck_assert_int_eq(sched_getaffinity(0, sizeof may, &may), 0);
    if (CPU_COUNT(&may) < 2 || proa__cores_here()->threads < CPU_COUNT(&may))
        return; /* no quota is the cause */
    int here = core_of(&may, 0), there = core_of(&may, 1);
    pid_t spinner = spin_on(here);
    atomic_llong sleeps = 0;
    proa__signal s = {0};
    pthread_t changer;
    bool moved = false;
    ck_assert_int_eq(pthread_create(&changer, NULL, toggle, &s), 0);
    bind_to(here);
    for (double end = seconds() + 20; !moved && seconds() < end;) {
        for (double until = seconds() + 0.005; seconds() < until;) /* half of it waiting for the core */
            ;
        atomic_store(&s.word, 1);
        proa__wait_while(&s, 1, &sleeps);
        bool crowded = proa__waited_part() >= 0.3F;
        ck_assert_int_eq(proa__crowded_core(), crowded ? here : -1);
        if (crowded) moved = joined(&may, here, there) == there;
        bind_to(here);
    }
    atomic_store(&s.word, 2);
    pthread_join(changer, NULL);
    kill(spinner, SIGKILL);
    waitpid(spinner, NULL, 0);
    ck_assert(moved);
}
END_TEST

START_TEST(a_forked_child_runs_one_thread)
{
    proa_set_threads(4);
    proa__parallel(ITEMS, 1, mark, NULL);
    pid_t child = fork();
    if (child == 0) {
        bool ok = proa_threads() == 1;
        proa__parallel(ITEMS, 1, mark, NULL); /* must not wait for workers that are not there */
        proa__free(proa__alloc(100));
        ok = ok && count_wrong(ITEMS, 2) == 0;
#if !defined(__SANITIZE_THREAD__) /* which follows no thread that is started after fork */
        proa_set_threads(3);      /* it has workers of its own, when it asks */
        proa__parallel(ITEMS, 1, mark, NULL);
        ok = ok && count_wrong(ITEMS, 1) == 0 && proa_threads_info().workers == 2;
#endif
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(proa_threads(), 4);
}
END_TEST

/* ---- OpenMP regions ---------------------------------------------------------------------- */

static void need_service(void)
{
    static bool served;
    if (!served) served = proa__openmp_serve((void (*)(void))user_region);
    ck_assert(served);
}

START_TEST(regions_run_every_member_once)
{
    need_service();
    for (int threads = 1; threads <= 5; threads++) {
        for (int round = 0; round < 50; round++) {
            atomic_int seen[8] = {0};
            int members = 0, in_parallel = -1;
            user_region(threads, &members, &in_parallel, seen);
            ck_assert_int_eq(members, threads);
            ck_assert_int_eq(in_parallel, threads > 1);
            for (int i = 0; i < 8; i++) ck_assert_int_eq(seen[i], i < threads);
        }
        ck_assert_int_eq(user_barriers(threads, 100), 0);
        ck_assert_int_eq(user_nested(threads), 0);
    }
    proa_set_threads(3);
    ck_assert_int_eq(user_threads(), 3);
    int before = proa__openmp_limit(2);
    ck_assert_int_eq(user_threads(), 2);
    ck_assert_int_eq(proa__openmp_limit(before), 2);
    ck_assert_int_eq(user_threads(), 3);
}
END_TEST

static void check_loop(int threads, long start, long end, long step, long chunk)
{
    user_loop l = {start, end, step, chunk, hits};
    user_old_loop(threads, &l);
    for (long i = start; step > 0 ? i < end : i > end; i += step)
        ck_assert_int_eq(atomic_exchange(&hits[i], 0), 1);
    ck_assert_int_eq(count_wrong(1000, 0), 0);
}

START_TEST(loops_of_the_old_interface_are_covered)
{
    need_service();
    for (int threads = 1; threads <= 4; threads++)
        for (long chunk = 0; chunk < 4; chunk++) {
            check_loop(threads, 0, 100, 1, chunk);
            check_loop(threads, 5, 98, 7, chunk);
            check_loop(threads, 99, 3, -5, chunk);
            check_loop(threads, 10, 10, 1, chunk);
            check_loop(threads, 10, 12, 1, chunk);
        }
}
END_TEST

static void region_within(int64_t begin, int64_t end, void *context)
{
    (void)begin, (void)end;
    atomic_int seen[8] = {0};
    int members = 0, in_parallel = -1;
    user_region(4, &members, &in_parallel, seen);
    if (members != 1 || seen[0] != 1) atomic_fetch_add((atomic_int *)context, 1);
}

START_TEST(regions_within_ranges_are_serial)
{
    need_service();
    atomic_int wrong = 0;
    proa_set_threads(3);
    proa__parallel(300, 1, region_within, &wrong);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static void *many_regions(void *p)
{
    (void)p;
    return user_barriers(3, 100) == 0 ? (void *)hits : NULL;
}

START_TEST(regions_of_many_threads_meet_at_their_own_barriers)
{
    enum { THREADS = 6 };
    need_service();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, many_regions, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *right = NULL;
        pthread_join(threads[i], &right);
        ck_assert_ptr_nonnull(right);
    }
}
END_TEST

START_TEST(what_cannot_be_served_whole_keeps_its_own_threads)
{
    ck_assert(!proa__openmp_serve((void (*)(void))other_clock));
    ck_assert(!proa__openmp_serve((void (*)(void))proa_threads)); /* the program itself */
#if !defined(__SANITIZE_THREAD__)                                 /* libgomp's threads cannot be followed */
    ck_assert_double_gt(other_clock(), 4);
#endif
}
END_TEST

SUITE("threads", ranges_cover_everything_once, small_ranges_start_no_thread, scans_make_one_range_a_thread,
      ranges_of_a_thread_that_is_held_up_are_taken, errors_of_workers_arrive, settings_belong_to_a_thread,
      a_flag_of_zero_goes_back_to_all_threads, quotas_and_the_environment_decide,
      user_threads_have_teams_of_their_own, workers_that_slept_come_back,
      a_thread_on_a_crowded_core_moves_and_is_free_to_leave, a_forked_child_runs_one_thread,
      regions_run_every_member_once, loops_of_the_old_interface_are_covered, regions_within_ranges_are_serial,
      regions_of_many_threads_meet_at_their_own_barriers, what_cannot_be_served_whole_keeps_its_own_threads)
