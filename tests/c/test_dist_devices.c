/* Groups whose tensors are on devices. Ranks are threads of this process, each with a device of its own
 * (tests/devices/several.c), so that the sanitizers see the communicators, what watches them, and NCCL's
 * stand-in. Every kind of call against values computed here; calls that differ; ranks that are late, leave or
 * die. */
#define _GNU_SOURCE
#include "core/copy.h"
#include "core/device.h"
#include "core/group.h"
#include "dist_ranks.h"
#include "dist_values.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLUGIN PROA_TEST_DEVICES "/libproa_several.so"

static void load(void)
{
    ck_assert_msg(proa_load_devices(PLUGIN) == 4, "%s", proa_error_message());
    fine(proa_set_flag("device_fallback", "1"));
}

static void on_devices(int size, double timeout, void (*body)(proa__ring *g, proa__store *store))
{
    load();
    with_ranks(size, timeout, body);
}

/* Makes the rank's device the thread's. */
static void use_device(const proa__ring *g)
{
    char name[32];
    snprintf(name, sizeof name, "several:%d", g->rank);
    fine(proa_set_device(name));
}

static int64_t communications(void)
{
    const proa_device_table *d = proa_find_device(proa_get_device());
    int64_t n = -1;
    ck_assert_int_eq(d->property(d->context, "communications", &n), 1);
    return n;
}

/* A tensor of n bytes or elements on the thread's device. */
static proa_tensor *there(const void *values, int64_t n, proa_dtype d)
{
    proa_tensor *t = proa_from_data(values, PROA_SHAPE(n), d);
    ck_assert_msg(t != NULL, "%s", proa_error_message());
    return t;
}

static void holds(const proa_tensor *t, const void *want, const char *what)
{
    enum { MAX_BYTES = 1 << 16 };
    static _Thread_local char got[MAX_BYTES];
    size_t bytes = (size_t)proa_numel(t) * proa_dtype_size(proa_dtype_of(t));
    ck_assert_uint_le(bytes, sizeof got);
    fine(proa_copy_out(t, got, bytes));
    ck_assert_msg(memcmp(got, want, bytes) == 0, "%s of %s differs", what, proa_dtype_name(proa_dtype_of(t)));
}

/* ---- reductions ------------------------------------------------------------------------ */

enum { COUNT = 600 };

typedef struct values {
    char in[COUNT * 8], out[COUNT * 8];
} values;

static values values_of(const proa__ring *g, proa_dtype d, proa_reduce_type op)
{
    values v;
    for (int64_t i = 0; i < COUNT; i++) {
        put(v.in, d, i, of(g->rank, i));
        put(v.out, d, i, reduced(g->size, i, d, op));
    }
    return v;
}

static void reduce_by(proa__ring *g, proa_dtype d, proa_reduce_type op)
{
    PROA_SCOPED;
    values v = values_of(g, d, op);
    int root = (int)d % g->size;
    int64_t part = COUNT / g->size;
    proa_tensor *x = there(v.in, COUNT, d), *y = there(v.in, COUNT, d), *z = there(v.in, part, d);
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = x, .op = op}));
    holds(x, v.out, "all_reduce");
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_REDUCE, g->group, .out = y, .op = op, .peer = root}));
    holds(y, g->rank == root ? v.out : v.in, "reduce");
    proa_tensor *in = there(v.in, part * g->size, d);
    fine(proa_communicate(
        &(proa_message){PROA_MESSAGE_REDUCE_SCATTER, g->group, .in = in, .out = z, .op = op}));
    holds(z, v.out + (size_t)(g->rank * part) * proa_dtype_size(d), "reduce_scatter");
}

static bool between_devices(proa_dtype d, proa_reduce_type op)
{
    bool floating = d == PROA_F16 || d == PROA_BF16 || d == PROA_F32 || d == PROA_F64;
    return d != PROA_I16 && d != PROA_BOOL && (floating || op != PROA_REDUCE_TYPE_AVG);
}

static void reduce_all(proa__ring *g, proa__store *store)
{
    static const proa_dtype dtypes[] = {PROA_F32, PROA_F64, PROA_F16, PROA_BF16, PROA_I8,
                                        PROA_U8,  PROA_I32, PROA_I64, PROA_I16,  PROA_BOOL};
    (void)store;
    use_device(g);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int op = 0; op < 5; op++) {
            bool floating = d < 4, products = op == PROA_REDUCE_TYPE_PROD && g->size > 3;
            if (products || (op == PROA_REDUCE_TYPE_AVG && !floating)) continue;
            int64_t before = communications();
            reduce_by(g, dtypes[d], (proa_reduce_type)op);
            ck_assert_int_eq(communications() - before,
                             between_devices(dtypes[d], (proa_reduce_type)op) ? 3 : 0);
        }
}

START_TEST(reduces_two) { on_devices(2, 60, reduce_all); }
END_TEST
START_TEST(reduces_four) { on_devices(4, 60, reduce_all); }
END_TEST

/* ---- moves ----------------------------------------------------------------------------- */

enum { PART = 700 };

/* Rank a sends PART / (a + b + 1) bytes to rank b. */
static void exchange(const proa__ring *g)
{
    char in[4 * PART], want[4 * PART];
    int64_t to[4], from[4], sent = 0, came = 0;
    for (int r = 0; r < g->size; r++) {
        to[r] = from[r] = PART / (r + g->rank + 1);
        fill_bytes(in + sent, g->rank * 8 + r, (size_t)to[r]);
        fill_bytes(want + came, r * 8 + g->rank, (size_t)from[r]);
        sent += to[r], came += from[r];
    }
    proa_tensor *x = there(in, sent, PROA_U8), *y = there(in, came, PROA_U8);
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_TO_ALL, g->group, .in = x, .out = y,
                                          .in_counts = to, .out_counts = from}));
    holds(y, want, "all_to_all");
}

static void move_all(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    char in[4 * PART], want[4 * PART];
    int next = (g->rank + 1) % g->size, before = (g->rank + g->size - 1) % g->size, root = g->size - 1;
    (void)store;
    use_device(g);
    int64_t done = communications();
    fill_bytes(in, g->rank, sizeof in);
    for (int r = 0; r < g->size; r++) fill_bytes(want + r * PART, r, PART);
    proa_tensor *x = there(in, PART, PROA_U8), *all = there(in, g->size * PART, PROA_U8);
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_GATHER, g->group, .in = x, .out = all}));
    holds(all, want, "all_gather");
    fine(
        proa_communicate(&(proa_message){PROA_MESSAGE_SCATTER, g->group, .in = all, .out = x, .peer = root}));
    holds(x, want + g->rank * PART, "scatter");
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_BROADCAST, g->group, .out = x, .peer = root}));
    holds(x, want + root * PART, "broadcast");
    exchange(g);
    ck_assert_int_eq(communications() - done, 4);
    proa_tensor *mine = there(in, PART, PROA_U8); /* everybody sends before anybody receives */
    proa_task *sent =
        proa_communicate_later(&(proa_message){PROA_MESSAGE_SEND, g->group, .in = mine, .peer = next});
    proa_task *got =
        proa_communicate_later(&(proa_message){PROA_MESSAGE_RECV, g->group, .out = x, .peer = before});
    fine(proa_task_wait(got));
    holds(x, want + before * PART, "recv");
    fine(proa_task_wait(sent));
    proa_task_free(sent);
    proa_task_free(got);
    float rows[6] = {1, 2, 3, 4, 5, 6}, sums[6];
    for (int i = 0; i < 6; i++) sums[i] = rows[i] * (float)g->size;
    proa_tensor *t = proa_from_data(rows, PROA_SHAPE(2, 3), PROA_F32);
    fine(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group,
                                          .out = proa_transpose(t, PROA_INTS(1, 0))})); /* strided */
    holds(t, sums, "all_reduce of a transposed view");
    ck_assert_int_eq(communications() - done, 7);
}

START_TEST(moves_two) { on_devices(2, 60, move_all); }
END_TEST
START_TEST(moves_three) { on_devices(3, 60, move_all); }
END_TEST

/* ---- tasks beside other work ------------------------------------------------------------ */

/* A second group of the same ranks, used by a thread of its own beside the first one. */
typedef struct beside {
    proa__ring *ring;
    float values[COUNT], sums[COUNT];
} beside;

static void *sum_beside(void *context)
{
    beside *b = context;
    use_device(b->ring);
    for (int i = 0; i < 10; i++) {
        PROA_SCOPED;
        proa_tensor *x = there(b->values, COUNT, PROA_F32);
        fine(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, b->ring->group, .out = x}));
        holds(x, b->sums, "all_reduce beside another");
    }
    return NULL;
}

static void two_groups(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    proa__engine_setup setup = {store, "group/1", NULL, 60};
    beside b = {.ring = proa__ring_connect(&setup, 1, g->rank, g->size, NULL)};
    pthread_t thread;
    ck_assert_msg(b.ring != NULL, "%s", proa_error_message());
    use_device(g);
    for (int64_t i = 0; i < COUNT; i++) {
        b.values[i] = of(g->rank, i);
        b.sums[i] = (float)reduced(g->size, i, PROA_F32, PROA_REDUCE_TYPE_SUM);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, sum_beside, &b), 0);
    proa_task *tasks[10];
    proa_tensor *x[10];
    for (int i = 0; i < 10; i++) { /* each begins when what was queued before it is done */
        x[i] = proa_empty(PROA_SHAPE(COUNT), PROA_F32);
        fine(proa__copy(x[i], there(b.values, COUNT, PROA_F32)));
        tasks[i] = proa_communicate_later(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = x[i]});
    }
    for (int i = 0; i < 10; i++) {
        fine(proa_task_wait(tasks[i]));
        holds(x[i], b.sums, "a task");
        proa_task_free(tasks[i]);
    }
    pthread_join(thread, NULL);
    proa__ring_close(b.ring);
}

START_TEST(two_groups_at_once) { on_devices(3, 60, two_groups); }
END_TEST

/* ---- training -------------------------------------------------------------------------- */

/* Gradients in buckets on the devices, averaged while backward goes on. */
static void train(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    proa_set_threads(1);
    use_device(g);
    proa_tensor *w[6];
    for (int i = 0; i < 6; i++) {
        w[i] = proa_full(PROA_SHAPE(40), 1.0 + i);
        proa_set_stop_gradient(proa_keep(w[i]), false);
    }
    proa_tensors all = {6, w};
    int64_t before = communications();
    proa_reducer *reducer =
        proa_reducer_new(all, .group = g->group, .bucket_bytes = 320, .last_bucket_bytes = 160);
    for (int step = 0; step < 4; step++) {
        PROA_SCOPED;
        proa_tensor *loss = proa_full(PROA_SHAPE(1), 0.0);
        for (int i = 0; i < 6; i++) /* the gradient of w[i] is (rank + 1) (i + 1) */
            loss =
                proa_add(loss, proa_scale(proa_sum(w[i]), .scale = PROA_SCALAR((g->rank + 1.0) * (i + 1))));
        proa_backward(loss);
        fine(proa_error());
        for (int i = 0; i < 6; i++) {
            proa_tensor *grad = proa_grad_of(w[i]);
            ck_assert_double_eq(proa_item(proa_max(grad)), (g->size + 1) / 2.0 * (i + 1));
            ck_assert_double_eq(proa_item(proa_min(grad)), (g->size + 1) / 2.0 * (i + 1));
            proa_clear_grad(w[i]);
        }
    }
    ck_assert_int_gt(communications(), before + 4);
    proa_reducer_free(reducer);
    for (int i = 0; i < 6; i++) proa_release(w[i]);
}

START_TEST(training) { on_devices(3, 60, train); }
END_TEST

/* ---- programs ---------------------------------------------------------------------------- */

/* 3 x and twice the sum of all ranks' x, beside which 3 x is computed. */
static proa_tensors summed(proa_tensors in, void *context)
{
    const proa__ring *g = context;
    proa_tensors out = {1, proa_scope_alloc(sizeof *out.at)};
    proa_tensor *x = in.at[0], *sum = proa_all_reduce(proa_add(x, x), .group = g->id);
    out.at[0] = proa_add(proa_add(proa_add(x, x), x), sum);
    return out;
}

static void run_program(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    proa_set_threads(1);
    use_device(g);
    g->id = 20 + g->rank; /* ranks are threads, and ids are the process's */
    proa__set_group(g->id, g->group);
    proa_input_spec spec = {.shape = PROA_SHAPE(600)};
    proa_program *p = proa_capture(summed, &spec, 1, g);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = "overlap"});
    int64_t before = communications();
    for (int run = 0; run < 4; run++) {
        PROA_SCOPED;
        proa_tensor *x = proa_full(PROA_SHAPE(600), g->rank + 1.0);
        proa_tensors out = proa_executor_run(e, (proa_tensors){1, &x});
        ck_assert_msg(out.count == 1, "%s", proa_error_message());
        ck_assert_double_eq(proa_item(proa_max(out.at[0])), 3 * (g->rank + 1) + g->size * (g->size + 1));
        ck_assert_double_eq(proa_item(proa_min(out.at[0])), 3 * (g->rank + 1) + g->size * (g->size + 1));
    }
    ck_assert_int_eq(communications() - before, 4);
    ck_assert_int_eq(proa_executor_get_stats(e).overlapped, 4);
    proa_executor_free(e);
    proa_program_free(p);
    proa__set_group(g->id, NULL);
}

START_TEST(a_program_sums_beside_other_steps) { on_devices(3, 60, run_program); }
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------- */

static proa_status sum_of(proa__ring *g, proa_tensor *x)
{
    return proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = x});
}

static void shared_device(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    use_device(g);
    proa_tensor *x = proa_full(PROA_SHAPE(5), g->rank + 1.0);
    fine(sum_of(g, x));
    ck_assert_double_eq(proa_item(proa_max(x)), 3);
    ck_assert_int_eq(communications(), 0); /* through the host */
}

START_TEST(ranks_that_share_a_device)
{
    setenv("PROA_EMULATE_IDENTITY", "one device", 1);
    on_devices(2, 60, shared_device);
}
END_TEST

static void differing(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    use_device(g);
    proa_tensor *x = proa_full(PROA_SHAPE(5), 1.0), *y = proa_full(PROA_SHAPE(50000), 1.0);
    fine(sum_of(g, x));
    if (g->rank == 0) fails(sum_of(g, x), PROA_ERR_INVALID_ARGUMENT, "rank 1 calls broadcast");
    else
        fails(proa_communicate(&(proa_message){PROA_MESSAGE_BROADCAST, g->group, .out = y}),
              PROA_ERR_INVALID_ARGUMENT, "rank 0 calls all_reduce");
    fails(sum_of(g, x), PROA_ERR_BAD_STATE, "has ended");
}

START_TEST(calls_that_differ) { on_devices(2, 60, differing); }
END_TEST

static void one_is_late(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    use_device(g);
    proa_tensor *x = proa_full(PROA_SHAPE(5), 1.0);
    fine(sum_of(g, x));
    if (g->rank != 1) fails(sum_of(g, x), PROA_ERR_TIMEOUT, "these ranks have not called it: 1");
    else nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
}

START_TEST(a_rank_that_is_late) { on_devices(3, 2, one_is_late); }
END_TEST

static void one_is_on_the_host(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    use_device(g);
    proa_tensor *x = proa_full(PROA_SHAPE(5), 1.0);
    if (g->rank == 0) fails(sum_of(g, x), PROA_ERR_TIMEOUT, "with a tensor on a device");
    else { /* of the time, or of rank 0's end then */
        proa_status status = sum_of(g, proa_to_device(x, "cpu"));
        fails(status, status == PROA_ERR_TIMEOUT ? status : PROA_ERR_UNAVAILABLE, "rank 0");
    }
}

START_TEST(a_tensor_on_the_host) { on_devices(2, 1, one_is_on_the_host); }
END_TEST

static void one_leaves(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    (void)store;
    use_device(g);
    proa_tensor *x = proa_full(PROA_SHAPE(5), 1.0);
    fine(sum_of(g, x));
    if (g->rank != 2) fails(sum_of(g, x), PROA_ERR_UNAVAILABLE, "rank 2 has left the job");
}

START_TEST(a_rank_that_leaves) { on_devices(3, 60, one_leaves); }
END_TEST

/* Two processes; the second is killed while the first waits for it. `how`: whether NCCL notices. */
static void process_dies(const char *how)
{
    char folder[] = "/tmp/proa_dist_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("PROA_EMULATE_NCCL", how, 1);
    pid_t child = fork();
    load();
    fine(proa_set_device(child ? "several:0" : "several:1"));
    fine(proa_dist_start(.store = folder, .rank = child == 0, .size = 2, .timeout = 20));
    proa_tensor *x = proa_full(PROA_SHAPE(5), 1.0);
    proa_message sum = {PROA_MESSAGE_ALL_REDUCE, .out = x};
    fine(proa_communicate(&sum));
    if (child == 0) raise(SIGKILL);
    double began = proa__monotonic();
    fails(proa_communicate(&sum), PROA_ERR_UNAVAILABLE, "rank 1 has died");
    ck_assert_double_lt(proa__monotonic() - began, 2);
    waitpid(child, NULL, 0);
    proa_release(x);
    proa_dist_stop();
    ck_assert_int_eq(rmdir(folder), 0); /* nothing is left in it */
}

START_TEST(a_rank_that_is_killed) { process_dies(""); }
END_TEST
START_TEST(a_rank_that_is_killed_and_missed) { process_dies("notices"); }
END_TEST

SUITE("dist_devices", reduces_two, reduces_four, moves_two, moves_three, two_groups_at_once, training,
      a_program_sums_beside_other_steps, ranks_that_share_a_device, calls_that_differ, a_rank_that_is_late,
      a_tensor_on_the_host, a_rank_that_leaves, a_rank_that_is_killed, a_rank_that_is_killed_and_missed)
