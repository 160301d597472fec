/* Collectives of programs beside later steps: when they are started and waited for, with a group that keeps
 * a log; the same bits as without overlap on two ranks, which are threads, in programs that average gradients
 * and in compiled functions with a reducer; errors. */
#define _GNU_SOURCE
#include "async_group.h"
#include "dist_ranks.h"
#include "lists.h"

#include "jit/ir/program.h"

static void overlap(bool on) { fine(proa_set_flag("passes", on ? "all" : "-overlap")); }

static void same_bits(const proa_tensor *a, const proa_tensor *b)
{
    ck_assert_msg(a && b, "%s", proa_error_message());
    ck_assert_int_eq(proa_numel(a), proa_numel(b));
    ck_assert_mem_eq(proa_data(a), proa_data(b), (size_t)proa_numel(a) * sizeof(float));
}

/* ---- order ------------------------------------------------------------------------------- */

enum { GROUP = 7, CALLS = 9 };
static async_group two;

typedef proa_tensors (*function)(proa_tensors in, void *context);

/* Runs fn as a program that waits, and with these passes: the same bits. Returns the log of a run
 * with them, and in *count how many calls ran beside later steps. */
static const char *logged(function fn, const char *passes, int64_t *count)
{
    static char log[ASYNC_LOG];
    proa_tensor *out[2] = {NULL, NULL};
    proa_input_spec spec = {.shape = PROA_SHAPE(4, 4)};
    async_enter(&two, GROUP);
    proa_program *p = proa_capture(fn, &spec, 1, NULL);
    for (int on = 0; on < 2; on++) {
        proa_executor *e =
            proa_executor_with(p, (proa_executor_opts){.passes = on ? passes : "none,-overlap"});
        for (int run = 0; run < 2; run++) {
            async_forget(&two);
            proa_tensors made = proa_executor_run(e, list_of(1, ramp(PROA_SHAPE(4, 4), 1), NULL));
            ck_assert_msg(made.count > 0, "%s", proa_error_message());
            out[on] = made.at[0];
            ck_assert_int_eq(two.under_way, 0);
        }
        *count = proa_executor_get_stats(e).overlapped;
        if (!on) ck_assert_int_eq(*count, 0);
        proa_executor_free(e);
    }
    same_bits(out[0], out[1]);
    proa_program_free(p);
    proa__set_group(GROUP, NULL);
    snprintf(log, sizeof log, "%s", two.log);
    return log;
}

static proa_tensor *reduced(proa_tensor *t) { return proa_all_reduce(t, .group = GROUP); }

static proa_tensor *met(proa_tensor *t) { return proa_barrier(proa_tanh(t), .group = GROUP); }

/* The result is read behind a barrier. */
static proa_tensors read_late(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *sum = reduced(proa_scale(in.at[0], .scale = PROA_SCALAR(0.5)));
    return list_of(1, proa_add(met(in.at[0]), sum), NULL);
}

/* The result is read before the barrier. */
static proa_tensors read_soon(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *positive = proa_relu(reduced(in.at[0]));
    return list_of(1, proa_add(positive, met(in.at[0])), NULL);
}

/* Everything behind the call reads its result. */
static proa_tensors read_at_once(proa_tensors in, void *context)
{
    (void)context;
    return list_of(1, met(reduced(in.at[0])), NULL);
}

/* An output of the program that no step reads. */
static proa_tensors read_never(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *sum = reduced(in.at[0]);
    return list_of(2, sum, met(in.at[0]));
}

/* The barrier's operand is overwritten by the call's input, in memory that must not be used again. */
static proa_tensors in_place(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *x = proa_tanh(in.at[0]);
    proa_all_reduce_(x, .group = GROUP);
    proa_tensor *y = met(met(met(in.at[0])));
    return list_of(1, proa_add(x, y), NULL);
}

START_TEST(a_call_runs_until_it_is_read)
{
    int64_t n;
    ck_assert_str_eq(logged(read_late, "none,-overlap", &n), "Rb");
    ck_assert_int_eq(n, 0);
    ck_assert_str_eq(logged(read_late, "", &n), "sbf");
    ck_assert_int_eq(n, 2);
    ck_assert_str_eq(logged(read_soon, "overlap", &n), "sbf"); /* the pass moves the reader */
    ck_assert_str_eq(logged(read_soon, "all", &n), "sbf");
    ck_assert_str_eq(logged(read_at_once, "overlap", &n), "Rb"); /* nothing is there to move */
    ck_assert_int_eq(n, 0);
    ck_assert_str_eq(logged(read_never, "overlap", &n), "sfb");
    ck_assert_str_eq(logged(in_place, "overlap", &n), "sbbbf");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* A chain like a backward's: each link's result is also reduced, and what reads that follows at once. */
static proa_tensors chain(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *x = in.at[0], *total = NULL;
    for (int i = 0; i < CALLS; i++) {
        x = proa_matmul(x, in.at[0]);
        proa_tensor *part = proa_scale(reduced(x), .scale = PROA_SCALAR(0.25));
        total = total ? proa_add(total, part) : part;
    }
    return list_of(1, total, NULL);
}

START_TEST(several_calls_are_under_way)
{
    int64_t n;
    const char *log = logged(chain, "overlap", &n);
    ck_assert_str_eq(log, "ssssfsfsfsfsfsffff");
    ck_assert_int_eq(two.most, 4); /* so that buckets' memory is used again */
    ck_assert_int_eq(n, 2 * CALLS);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* A call's error is the run's, and all other calls are waited for; then the program runs again. */
START_TEST(an_error_of_a_call)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(4, 4)};
    async_enter(&two, GROUP);
    proa_program *p = proa_capture(chain, &spec, 1, NULL);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = "overlap"});
    for (int failing = 0; failing < 2; failing++) {
        two.fails = failing ? PROA_ERR_UNAVAILABLE : PROA_OK;
        proa_tensors made = proa_executor_run(e, list_of(1, ramp(PROA_SHAPE(4, 4), 1), NULL));
        ck_assert_int_eq(two.under_way, 0);
        if (failing) fails(proa_error(), PROA_ERR_UNAVAILABLE, "a rank has ended");
        else ck_assert_int_eq(made.count, 1);
    }
    ck_assert_int_eq(proa_executor_run(e, list_of(1, ramp(PROA_SHAPE(4, 4), 1), NULL)).count, 1);
    proa_executor_free(e);
    proa_program_free(p);
    proa__set_group(GROUP, NULL);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- two ranks --------------------------------------------------------------------------- */

enum { LAYERS = 6, WIDTH = 24, ROWS = 5, STEPS = 4, FIRST = 10 };

typedef struct weights {
    float at[LAYERS][WIDTH * WIDTH];
    int64_t overlapped;
} weights;

static weights of_rank[2][2]; /* without overlap, with it; by rank */
static int with;

typedef struct net {
    proa_tensor *w[LAYERS];
} net;

static void make(net *n)
{
    for (int i = 0; i < LAYERS; i++) {
        n->w[i] = proa_keep(ramp(PROA_SHAPE(WIDTH, WIDTH), i));
        proa_set_stop_gradient(n->w[i], false);
    }
}

static proa_tensors loss_of(proa_tensors in, void *context)
{
    const net *n = context;
    proa_tensor *x = in.at[0];
    for (int i = 0; i < LAYERS; i++) x = proa_tanh(proa_matmul(x, n->w[i]));
    return list_of(1, proa_mean(proa_square(x)), NULL);
}

static proa_tensors rows_of(const proa__ring *g, int step)
{
    return list_of(1, ramp(PROA_SHAPE(ROWS, WIDTH), 100 + 10 * step + g->rank), NULL);
}

/* Group ids are the process's, and ranks are threads: each has an id of its own. */
static void enter(proa__ring *g)
{
    g->id = FIRST + g->rank;
    proa__set_group(g->id, g->group);
    proa_set_threads(1);
}

static void leave(const proa__ring *g, net *n, int64_t overlapped)
{
    weights *to = &of_rank[with][g->rank];
    ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    for (int i = 0; i < LAYERS; i++) {
        memcpy(to->at[i], proa_data(n->w[i]), sizeof to->at[i]);
        proa_release(n->w[i]);
    }
    to->overlapped = overlapped;
    proa__set_group(g->id, NULL);
}

/* Trains on two ranks without overlap and with it; all have the same bits. Returns how much overlapped. */
static int64_t same_training(void (*body)(proa__ring *g, proa__store *store))
{
    for (with = 0; with < 2; with++) {
        overlap(with);
        with_ranks(2, 60, body);
    }
    for (int k = 1; k < 4; k++)
        ck_assert_mem_eq(of_rank[k / 2][k % 2].at, of_rank[0][0].at, sizeof of_rank[0][0].at);
    ck_assert_int_eq(of_rank[0][0].overlapped, 0);
    ck_assert_int_eq(of_rank[1][0].overlapped, of_rank[1][1].overlapped);
    return of_rank[1][0].overlapped;
}

static proa_program *training_step(net *n, const proa_group *group)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(ROWS, WIDTH)};
    proa_program *p = proa_capture(loss_of, &spec, 1, n);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_tensor *loss = (proa_tensor *)(uintptr_t)proa_program_output(p, 0);
    proa_tensors none = {0, NULL}, all = {LAYERS, n->w};
    proa_tensors grads = proa_program_gradients(p, list_of(1, loss, NULL), all, none, none);
    proa_program *open = proa_program_open(p);
    int32_t role = proa_program_set_role(p, 2);
    proa_sgd_step(all, grads, proa_full(PROA_SHAPE(1), 0.5), none, PROA_NONE);
    proa_program_set_role(p, role);
    proa_program_open(open);
    fine(proa_program_average_gradients(p, grads, group, WIDTH * WIDTH * sizeof(float)));
    return p;
}

static void train_program(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    net n;
    (void)store;
    enter(g);
    make(&n);
    proa_program *p = training_step(&n, g->group);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = NULL});
    for (int step = 0; step < STEPS; step++) {
        PROA_SCOPED;
        proa_executor_run(e, rows_of(g, step));
    }
    int64_t overlapped = proa_executor_get_stats(e).overlapped;
    proa_executor_free(e);
    proa_program_free(p);
    leave(g, &n, overlapped);
}

/* Every bucket but the last, behind which no work is left but what reads it. */
START_TEST(a_program_averages_beside_backward)
{
    ck_assert_int_ge(same_training(train_program), STEPS * (LAYERS - 1));
}
END_TEST

static bool twice, zeroes;

static void train_compiled(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    net n;
    (void)store;
    enter(g);
    make(&n);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, WIDTH)};
    proa_tensors all = {LAYERS, n.w};
    proa_compiled *c = proa_compile(loss_of, &spec, 1, &n, true);
    proa_optimizer *opt = proa_momentum(all, .lr = 0.5);
    proa_reducer *r =
        proa_reducer_new(all, .group = g->group, .bucket_bytes = 4096, .last_bucket_bytes = 1024);
    for (int step = 0; step < STEPS; step++) {
        PROA_SCOPED;
        proa_tensor *loss = proa_compiled_call(c, rows_of(g, step)).at[0];
        if (twice) loss = proa_add(loss, proa_compiled_call(c, rows_of(g, step + 50)).at[0]);
        proa_backward(loss);
        proa_step(opt);
        for (int i = 0; i < LAYERS; i++)
            if (zeroes) proa_zero_grad(n.w[i]);
            else proa_clear_grad(n.w[i]);
    }
    int64_t overlapped = proa_compiled_get_stats(c).overlapped;
    proa_reducer_free(r);
    proa_optimizer_free(opt);
    proa_compiled_free(c);
    leave(g, &n, overlapped);
}

/* The gradients of all layers but the first, which is the last that backward makes. Where the function was
 * called twice, the last of the two backwards hands them over. */
START_TEST(a_compiled_backward_feeds_the_reducer)
{
    for (int k = 0; k < 4; k++) {
        twice = k & 1, zeroes = k & 2;
        ck_assert_int_eq(same_training(train_compiled), STEPS * (LAYERS - 1));
    }
}
END_TEST

/* ---- a rank that leaves ------------------------------------------------------------------ */

static void lose_a_rank(proa__ring *g, proa__store *store)
{
    PROA_SCOPED;
    net n;
    (void)store;
    enter(g);
    if (g->rank) return;
    make(&n);
    proa_program *p = training_step(&n, g->group);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = NULL});
    ck_assert_int_eq(proa_executor_run(e, rows_of(g, 0)).count, 0);
    fails(proa_error(), PROA_ERR_UNAVAILABLE, "rank 1");
    proa_executor_free(e);
    proa_program_free(p);
    for (int i = 0; i < LAYERS; i++) proa_release(n.w[i]);
}

START_TEST(a_rank_that_leaves_is_named)
{
    overlap(true);
    with_ranks(2, 20, lose_a_rank);
}
END_TEST

SUITE("dist overlap", a_call_runs_until_it_is_read, several_calls_are_under_way, an_error_of_a_call,
      a_program_averages_beside_backward, a_compiled_backward_feeds_the_reducer, a_rank_that_leaves_is_named)
