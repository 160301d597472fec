/* The functions of GCC's OpenMP runtime that oneDNN and OpenBLAS call, implemented on Proa's worker teams.
 * They have internal linkage, so a program's own OpenMP code keeps using libgomp. Uses team.h; relink.c binds
 * the libraries to these functions. */
#include "core/openmp.h"

#include "core/relink.h"
#include "core/team.h"
#include "core/thread.h"

PROA__TLS proa__position proa__position_self;

/* An OpenMP parallel region: every member (thread) runs the outlined function. */
struct proa__region {
    proa__job job;
    void (*function)(void *);
    void *data;
    int members;
    atomic_int arrived; /* members that have reached the barrier */
    proa__signal barrier;
};

static void run_member(proa__job *job, int index)
{
    struct proa__region *r = (struct proa__region *)job;
    proa__position before = proa__position_self;
    proa__position_self =
        (proa__position){.inside = true, .member = index, .members = r->members, .region = r};
    r->function(r->data);
    proa__position_self = before;
}

/* ---- regions --------------------------------------------------------------------------- */

int proa__openmp_limit(int threads)
{
    int before = proa__position_self.limit;
    proa__position_self.limit = threads;
    return before;
}

int proa__openmp_reserve(int threads) { return proa__team_reserve(threads); }

static int omp_max_threads(void)
{
    int limit = proa__position_self.limit;
    return limit > 0 ? limit : proa_threads();
}

static void omp_set_threads(int n)
{
    if (n > 0) proa__position_self.limit = n > PROA__MAX_THREADS ? PROA__MAX_THREADS : n;
}

/* Number of members of a region that asks for n (0: the default). Nested regions have one. */
static int members_of(unsigned n)
{
    if (proa__position_self.inside) return 1;
    if (n > PROA__MAX_THREADS) n = PROA__MAX_THREADS;
    return proa__team_reserve(n ? (int)n : omp_max_threads());
}

static void enter_serial(void)
{
    proa__position *p = &proa__position_self;
    if (p->serial++ > 0) return;
    p->outer_member = p->member, p->outer_members = p->members;
    p->member = p->members = 0;
}

static void leave_serial(void)
{
    proa__position *p = &proa__position_self;
    if (--p->serial == 0) p->member = p->outer_member, p->members = p->outer_members;
}

static void start_region(struct proa__region *r, void (*function)(void *), void *data, int members)
{
    *r = (struct proa__region){.job.run = run_member, .function = function, .data = data, .members = members};
    proa__team_begin(&r->job, members);
}

static void gomp_parallel(void (*function)(void *), void *data, unsigned n, unsigned flags)
{
    (void)flags; /* thread affinity (proc_bind), ignored */
    int members = members_of(n);
    if (members == 1) {
        enter_serial();
        function(data);
        leave_serial();
        return;
    }
    struct proa__region r;
    start_region(&r, function, data, members);
    run_member(&r.job, 0);
    proa__team_end(&r.job, members);
}

/* GOMP_parallel_start and _end, called by code of GCC before 4.9: the compiled code itself runs member 0
 * between the two. A thread has at most one such region at a time, since nested ones are serial. */
static void gomp_parallel_start(void (*function)(void *), void *data, unsigned n)
{
    int members = members_of(n);
    proa__thread *me = members > 1 ? proa__thread_self : NULL;
    if (me && !me->region) me->region = proa__calloc(sizeof *me->region);
    if (!me || !me->region) {
        enter_serial();
        return;
    }
    start_region(me->region, function, data, members);
    proa__position *p = &proa__position_self;
    p->inside = true, p->member = 0, p->members = members, p->region = me->region, p->trip = 0;
}

static void gomp_parallel_end(void)
{
    proa__position *p = &proa__position_self;
    if (p->serial > 0) {
        leave_serial();
        return;
    }
    struct proa__region *r = p->region;
    p->inside = false, p->members = 0, p->region = NULL;
    proa__team_end(&r->job, r->members);
}

/* ---- within a region ------------------------------------------------------------------- */

static int omp_member(void) { return proa__position_self.member; }
static int omp_members(void)
{
    int n = proa__position_self.members;
    return n ? n : 1;
}
static int omp_inside(void) { return proa__position_self.inside; }

static void gomp_barrier(void)
{
    const proa__position *p = &proa__position_self;
    if (p->members < 2 || !p->region) return;
    struct proa__region *r = p->region;
    unsigned phase = atomic_load(&r->barrier.word);
    if (atomic_fetch_add(&r->arrived, 1) + 1 < r->members) {
        proa__wait_while(&r->barrier, phase, &proa__team_count.caller_sleeps);
        return;
    }
    atomic_store(&r->arrived, 0);
    atomic_fetch_add(&r->barrier.word, 1);
    proa__wake_sleepers(&r->barrier);
}

/* Gives this member its next chunk [*from, *until) of a loop with schedule(static, chunk). chunk 0:
 * iterations are split evenly, one chunk per member. */
static bool loop_next(long start, long end, long step, long chunk, long *from, long *until)
{
    long member = omp_member(), members = omp_members(), trip = proa__position_self.trip++;
    long n = step > 0 ? (end - start + step - 1) / step : (end - start + step + 1) / step;
    if (n <= 0) return false;
    long first, last;
    if (chunk <= 0) {
        if (trip > 0) return false;
        long each = n / members, more = n % members;
        first = member * each + (member < more ? member : more);
        last = first + each + (member < more);
    } else {
        first = (trip * members + member) * chunk;
        last = first + chunk < n ? first + chunk : n;
    }
    if (first >= last) return false;
    *from = start + first * step, *until = start + last * step;
    return true;
}

static PROA__TLS struct {
    long start, end, step, chunk;
} loop; /* the loop that this member is in */

static bool gomp_loop_next(long *from, long *until)
{
    return loop_next(loop.start, loop.end, loop.step, loop.chunk, from, until);
}

static bool gomp_loop_start(long start, long end, long step, long chunk, long *from, long *until)
{
    loop.start = start, loop.end = end, loop.step = step, loop.chunk = chunk;
    proa__position_self.trip = 0;
    return gomp_loop_next(from, until);
}

static void gomp_loop_end(void) {}

/* ---- binding the libraries --------------------------------------------------------------- */

bool proa__openmp_serve(void (*function)(void))
{
#define SERVE(name, f)            \
    {                             \
        name, (void (*)(void))(f) \
    }
    static const proa__binding bindings[] = {
        SERVE("GOMP_parallel", gomp_parallel),
        SERVE("GOMP_parallel_start", gomp_parallel_start),
        SERVE("GOMP_parallel_end", gomp_parallel_end),
        SERVE("GOMP_barrier", gomp_barrier),
        SERVE("GOMP_loop_static_start", gomp_loop_start),
        SERVE("GOMP_loop_static_next", gomp_loop_next),
        SERVE("GOMP_loop_end_nowait", gomp_loop_end),
        SERVE("omp_get_max_threads", omp_max_threads),
        SERVE("omp_set_num_threads", omp_set_threads),
        SERVE("omp_get_num_threads", omp_members),
        SERVE("omp_get_thread_num", omp_member),
        SERVE("omp_in_parallel", omp_inside),
        SERVE("omp_get_num_places", NULL), /* asked once, when the library loads */
    };
#undef SERVE
    static const char *const prefixes[] = {"GOMP_", "omp_", NULL};
    return proa__relink(function, bindings, sizeof bindings / sizeof *bindings, prefixes);
}
