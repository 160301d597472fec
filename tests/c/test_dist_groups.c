/* Groups: ranks are threads of this process, which meet at a store and share memory or talk by Gloo. Every
 * kind of message, dtype and subgroup against sums computed here; calls that do not match; ranks that leave,
 * die or are late. */
#define _GNU_SOURCE
#include "dist/reduce.h"
#include "dist_ranks.h"
#include "dist_values.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the store ------------------------------------------------------------------------- */

START_TEST(store_keys)
{
    proa__store_server *server = proa__store_serve("127.0.0.1", 0, "job/0/x");
    ck_assert_ptr_nonnull(server);
    int port = proa__store_server_port(server);
    proa__store *s = proa__store_connect("127.0.0.1", port, "job/0/x", 0, 2, 5);
    ck_assert_msg(s != NULL, "%s", proa_error_message());
    ck_assert_ptr_null(proa__store_connect("127.0.0.1", port, "job/0/y", 1, 2, 5));
    fails(proa_error(), PROA_ERR_INVALID_ARGUMENT, "refused");
    ck_assert_ptr_null(proa__store_connect("127.0.0.1", port, "job/0/x", 0, 2, 5));
    fails(proa_error(), PROA_ERR_INVALID_ARGUMENT, "rank 0");
    char *value = NULL;
    size_t bytes = 0;
    bool there = true;
    int64_t sum = 0;
    fine(proa__store_check(s, "a", &there));
    ck_assert(!there);
    fine(proa__store_set(s, "a", "one\0two", 7));
    fine(proa__store_get(s, "a", 0, &value, &bytes));
    ck_assert(bytes == 7 && memcmp(value, "one\0two", 7) == 0);
    proa__free(value);
    fine(proa__store_add(s, "n", 5, &sum));
    fine(proa__store_add(s, "n", -7, &sum));
    ck_assert_int_eq(sum, -2);
    fine(proa__store_delete(s, "a"));
    fails(proa__store_get(s, "a", 0.2, &value, &bytes), PROA_ERR_TIMEOUT, "\"a\"");
    ck_assert_str_eq(proa__store_silent(s), "");
    proa__store_close(s);
    proa__store_server_close(server, 0);
}
END_TEST

/* A host that never answers (a listener whose queue is full) keeps nobody beyond the time. */
START_TEST(connecting_ends_in_time)
{
    int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), waiting[8];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    ck_assert_int_eq(bind(full, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(full, 0), 0);
    ck_assert_int_eq(getsockname(full, (struct sockaddr *)&at, &bytes), 0);
    double began = proa__monotonic();
    for (int i = 0; i < 8; i++) waiting[i] = proa__tcp_connect("127.0.0.1", ntohs(at.sin_port), began + 0.3);
    ck_assert_int_eq(waiting[7], -1);
    ck_assert_double_lt(proa__monotonic() - began, 3);
    for (int i = 0; i < 8; i++)
        if (waiting[i] >= 0) close(waiting[i]);
    close(full);
}
END_TEST

/* Serves a store of token `token` at a port after `seconds`, in place of another. */
typedef struct successor {
    proa__store_server *server;
    const char *token;
    int port;
} successor;

static void *succeed(void *context)
{
    successor *s = context;
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    proa__store_server_close(s->server, 0);
    s->server = proa__store_serve("127.0.0.1", s->port, s->token);
    ck_assert_msg(s->server != NULL, "%s", proa_error_message());
    return NULL;
}

/* A rank that was started again waits for the store of its own start; one that was left behind is refused. */
START_TEST(store_of_another_start)
{
    successor next = {proa__store_serve("127.0.0.1", 0, "a/job/9/x"), "a/job/10/x", 0};
    pthread_t thread;
    next.port = proa__store_server_port(next.server);
    ck_assert_ptr_null(proa__store_connect("127.0.0.1", next.port, "a/job/10/x", 0, 2, 0.2));
    fails(proa_error(), PROA_ERR_TIMEOUT, "an earlier start of this job");
    ck_assert_ptr_null(proa__store_connect("127.0.0.1", next.port, "a/job/10/y", 0, 2, 5));
    fails(proa_error(), PROA_ERR_INVALID_ARGUMENT, "refused");
    ck_assert_int_eq(pthread_create(&thread, NULL, succeed, &next), 0);
    proa__store *s = proa__store_connect("127.0.0.1", next.port, "a/job/10/x", 0, 2, 20);
    ck_assert_msg(s != NULL, "%s", proa_error_message());
    pthread_join(thread, NULL);
    ck_assert_ptr_null(proa__store_connect("127.0.0.1", next.port, "a/job/9/x", 1, 2, 5));
    fails(proa_error(), PROA_ERR_INVALID_ARGUMENT, "of an earlier start");
    proa__store_close(s);
    proa__store_server_close(next.server, 0);
}
END_TEST

/* Bytes that are no requests end the connection they came by, and nothing else. */
START_TEST(store_survives_strangers)
{
    proa__store_server *server = proa__store_serve("127.0.0.1", 0, "job/0/x");
    int port = proa__store_server_port(server);
    proa__store *s = proa__store_connect("127.0.0.1", port, "job/0/x", 0, 1, 5);
    uint64_t state = 9;
    for (int i = 0; i < 200; i++) {
        char noise[64];
        int fd = proa__tcp_connect("127.0.0.1", port, proa__monotonic() + 5);
        ck_assert_int_ge(fd, 0);
        for (size_t k = 0; k < sizeof noise; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            noise[k] = (char)(state >> 56);
        }
        if (i & 1) proa__put_u32(noise, (uint32_t)(i % 80));
        if (i & 2) noise[4] = (char)(i % 9);
        ck_assert_int_ge(send(fd, noise, sizeof noise, MSG_NOSIGNAL), 0);
        close(fd);
    }
    fine(proa__store_set(s, "a", "b", 1));
    proa__store_close(s);
    proa__store_server_close(server, 0);
}
END_TEST

/* ---- collectives ----------------------------------------------------------------------- */

enum { MOST = 300000 };

static void same(const void *a, const void *b, proa_dtype d, int64_t n, const char *what)
{
    size_t bytes = (size_t)n * proa_dtype_size(d);
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s of %lld %s differs", what, (long long)n, proa_dtype_name(d));
}

static void reduce_dtype(proa__ring *g, proa_dtype d, int64_t n)
{
    char *data = proa__alloc(MOST * 16), *want = proa__alloc(MOST * 16), *in = proa__alloc(MOST * 16);
    for (int op = 0; op < 5; op++) {
        proa_reduce_type o = (proa_reduce_type)op;
        if (proa__reduce_check("all_reduce", d, o) != PROA_OK) {
            proa_clear_error();
            continue;
        }
        bool products = o == PROA_REDUCE_TYPE_PROD && g->size > 3;
        if (products) continue; /* round differently by order */
        for (int64_t i = 0; i < n; i++) {
            put(data, d, i, of(g->rank, i));
            put(want, d, i, reduced(g->size, i, d, o));
        }
        memcpy(in, data, (size_t)n * proa_dtype_size(d));
        fine(g->engine->all_reduce(g, data, n, d, o));
        same(data, want, d, n, "all_reduce");
        memcpy(data, in, (size_t)n * proa_dtype_size(d));
        int root = (int)(n % g->size);
        fine(g->engine->reduce(g, data, n, d, o, root));
        same(data, g->rank == root ? want : in, d, n, "reduce");
        int64_t part = n / g->size;
        fine(g->engine->reduce_scatter(g, in, data, part, d, o));
        same(data, want + (size_t)(g->rank * part) * proa_dtype_size(d), d, part, "reduce_scatter");
    }
    proa__free(data);
    proa__free(want);
    proa__free(in);
}

static void reduce_all(proa__ring *g, proa__store *store)
{
    (void)store;
    static const proa_dtype dtypes[] = {PROA_F32, PROA_F64, PROA_F16, PROA_BF16, PROA_I8,
                                        PROA_U8,  PROA_I16, PROA_I32, PROA_I64,  PROA_BOOL};
    static const int64_t counts[] = {0, 1, 5, 1000, 4099, MOST};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
            if (n < 5 || d < 3) reduce_dtype(g, dtypes[d], counts[n]);
}

static void is_filled(const uint8_t *at, int rank, size_t first, size_t n, const char *what)
{
    size_t i = 0;
    while (i < n && at[i] == byte_of(rank, first + i)) i++;
    ck_assert_msg(i == n, "%s: byte %zu of rank %d is wrong", what, i, rank);
}

static void move_all(proa__ring *g, proa__store *store)
{
    (void)store;
    static const size_t sizes[] = {0, 1, 100, 70001, 1500000};
    size_t ranks = (size_t)g->size;
    uint8_t *in = proa__alloc(ranks * 1500000), *out = proa__alloc(ranks * 1500000);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        int root = (int)(k % ranks);
        fill_bytes(in, g->rank, n);
        fine(g->engine->all_gather(g, in, out, n));
        for (size_t r = 0; r < ranks; r++) is_filled(out + r * n, (int)r, 0, n, "all_gather");
        fine(g->engine->broadcast(g, in, n, root));
        is_filled(in, root, 0, n, "broadcast");
        fill_bytes(in, g->rank, n * ranks);
        fine(g->engine->scatter(g, in, out, n, root));
        is_filled(out, root, n * (size_t)g->rank, n, "scatter");
        size_t to[8], from[8], at = 0; /* rank a sends rank b n / (a + b + 1) bytes */
        for (size_t r = 0; r < ranks; r++) to[r] = from[r] = n / (r + (size_t)g->rank + 1);
        for (size_t r = 0; r < ranks; at += to[r++]) fill_bytes(in + at, g->rank * 8 + (int)r, to[r]);
        fine(g->engine->all_to_all(g, in, to, out, from));
        at = 0;
        for (size_t r = 0; r < ranks; at += from[r++])
            is_filled(out + at, (int)r * 8 + g->rank, 0, from[r], "all_to_all");
        int next = (g->rank + 1) % g->size, before = (g->rank + g->size - 1) % g->size;
        fill_bytes(in, g->rank, n);
        if (g->rank == 0) fine(g->engine->send(g, in, n, next));
        fine(g->engine->recv(g, out, n, before));
        if (g->rank != 0) fine(g->engine->send(g, in, n, next));
        is_filled(out, before, 0, n, "recv");
        fine(g->engine->barrier(g));
    }
    proa__free(in);
    proa__free(out);
}

START_TEST(reduces_two) { with_ranks(2, 60, reduce_all); }
END_TEST
START_TEST(reduces_three) { with_ranks(3, 60, reduce_all); }
END_TEST
START_TEST(moves_two) { with_ranks(2, 60, move_all); }
END_TEST
START_TEST(moves_four) { with_ranks(4, 60, move_all); }
END_TEST

#ifdef PROA_HAVE_GLOO
START_TEST(reduces_by_gloo)
{
    setenv("PROA_SHM", "0", 1);
    with_ranks(3, 60, reduce_all);
}
END_TEST
START_TEST(moves_by_gloo)
{
    setenv("PROA_SHM", "0", 1);
    with_ranks(3, 60, move_all);
}
END_TEST
#endif

/* ---- messages of tensors --------------------------------------------------------------- */

static void messages(proa__ring *g, proa__store *store)
{
    (void)store;
    PROA_SCOPED;
    int next = (g->rank + 1) % g->size, before = (g->rank + g->size - 1) % g->size;
    proa_tensor *x = proa_full(PROA_SHAPE(64, 1000), g->rank + 1.0),
                *y = proa_empty(PROA_SHAPE(64, 1000), PROA_F32);
    proa_tensor *s = proa_transpose(proa_full(PROA_SHAPE(3, 5), g->rank + 1.0), PROA_SHAPE(1, 0));
    /* everybody sends before anybody receives */
    proa_task *sent =
        proa_communicate_later(&(proa_message){PROA_MESSAGE_SEND, g->group, .in = x, .peer = next});
    proa_task *got =
        proa_communicate_later(&(proa_message){PROA_MESSAGE_RECV, g->group, .out = y, .peer = before});
    proa_task *sums[20];
    proa_tensor *z = proa_full(PROA_SHAPE(1000), 1);
    for (int i = 0; i < 20; i++)
        sums[i] = proa_communicate_later(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = z});
    fine(proa_task_wait(sent));
    fine(proa_task_wait(got));
    ck_assert_double_eq(proa_item(proa_max(y)), before + 1.0);
    for (int i = 0; i < 20; i++) {
        fine(proa_task_wait(sums[i]));
        ck_assert(proa_task_done(sums[i]));
        proa_task_free(sums[i]);
    }
    proa_task_free(sent);
    proa_task_free(got);
    fine(proa_communicate(
        &(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = s, .op = PROA_REDUCE_TYPE_MAX}));
    ck_assert_double_eq(proa_item(proa_min(s)), g->size);
    fails(proa_communicate(&(proa_message){PROA_MESSAGE_SEND, g->group, .in = x, .peer = g->rank}),
          PROA_ERR_INVALID_ARGUMENT, "itself");
    fails(proa_communicate(&(proa_message){PROA_MESSAGE_RECV, g->group, .out = x, .peer = 99}),
          PROA_ERR_OUT_OF_RANGE, "rank 99");
    fails(proa_communicate(&(proa_message){PROA_MESSAGE_ALL_GATHER, g->group, .in = x, .out = x}),
          PROA_ERR_INVALID_ARGUMENT, "do not fit");
}

START_TEST(tensors_and_tasks) { with_ranks(3, 60, messages); }
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------- */

static void differing(proa__ring *g, proa__store *store)
{
    (void)store;
    float data[8] = {0};
    fails(g->engine->all_reduce(g, data, g->rank == 1 ? 7 : 8, PROA_F32, PROA_REDUCE_TYPE_SUM),
          PROA_ERR_INVALID_ARGUMENT, "rank 1");
    fine(g->engine->barrier(g)); /* the group goes on */
    if (g->rank == 0) fails(g->engine->broadcast(g, data, 4, 0), PROA_ERR_INVALID_ARGUMENT, "barrier");
    else fails(g->engine->barrier(g), PROA_ERR_INVALID_ARGUMENT, "broadcast");
    if (g->rank == 0) fine(g->engine->send(g, data, 8, 1));
    else if (g->rank == 1) fails(g->engine->recv(g, data, 4, 0), PROA_ERR_INVALID_ARGUMENT, "sent 8 bytes");
}

START_TEST(calls_that_differ) { with_ranks(3, 60, differing); }
END_TEST

static void one_leaves(proa__ring *g, proa__store *store)
{
    (void)store;
    float data[8] = {0};
    if (g->rank == 2) return;
    fails(g->engine->all_reduce(g, data, 8, PROA_F32, PROA_REDUCE_TYPE_SUM), PROA_ERR_UNAVAILABLE,
          "rank 2 has left the job");
    fails(g->engine->barrier(g), PROA_ERR_UNAVAILABLE, "cannot be used any more");
}

START_TEST(a_rank_that_leaves) { with_ranks(3, 60, one_leaves); }
END_TEST

static void one_is_late(proa__ring *g, proa__store *store)
{
    (void)store;
    if (g->rank != 1) fails(g->engine->barrier(g), PROA_ERR_TIMEOUT, "rank 1 did not come within 0.5 s");
    else nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

START_TEST(a_rank_that_is_late) { with_ranks(3, 0.5, one_is_late); }
END_TEST

/* A process that meets rank 0 at a barrier and then waits to be killed. */
static pid_t second_rank(const char *folder)
{
    pid_t child = fork();
    if (child == 0) {
        if (proa_dist_start(.store = folder, .rank = 1, .size = 2, .timeout = 20) == PROA_OK &&
            !proa_dist_barrier())
            pause();
        _exit(1);
    }
    return child;
}

/* Two processes; the second is killed or stopped while the first waits. */
static void process_ends(int signal, proa_status code, const char *part)
{
    char folder[] = "/tmp/proa_dist_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pid_t child = second_rank(folder);
    fine(proa_dist_start(.store = folder, .rank = 0, .size = 2, .timeout = 3));
    fine(proa_dist_barrier());
    kill(child, signal);
    double began = proa__monotonic();
    fails(proa_dist_barrier(), code, part);
    ck_assert_double_lt(proa__monotonic() - began, signal == SIGKILL ? 2 : 5);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    proa_dist_stop();
    ck_assert_int_eq(rmdir(folder), 0); /* nothing is left in it */
}

START_TEST(a_rank_that_is_killed) { process_ends(SIGKILL, PROA_ERR_UNAVAILABLE, "rank 1 has died"); }
END_TEST
START_TEST(a_rank_that_is_stopped) { process_ends(SIGSTOP, PROA_ERR_TIMEOUT, "rank 1"); }
END_TEST

/* Rank 0's sockets are cut: it learns nothing of the others any more, and does not wait for the time. */
START_TEST(rank_0_is_cut_off)
{
    char folder[] = "/tmp/proa_dist_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pid_t child = second_rank(folder);
    fine(proa_dist_start(.store = folder, .rank = 0, .size = 2, .timeout = 20));
    fine(proa_dist_barrier());
    for (int fd = 3; fd < 64; fd++) shutdown(fd, SHUT_RDWR);
    double began = proa__monotonic();
    fails(proa_dist_barrier(), PROA_ERR_UNAVAILABLE, "this rank's connection to the store is gone");
    ck_assert_double_lt(proa__monotonic() - began, 5);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    proa_dist_stop();
}
END_TEST

#ifdef PROA_HAVE_GLOO
#define BY_GLOO , reduces_by_gloo, moves_by_gloo
#else
#define BY_GLOO
#endif

SUITE("dist_groups", store_keys, connecting_ends_in_time, store_of_another_start, store_survives_strangers,
      reduces_two, reduces_three, moves_two, moves_four, tensors_and_tasks, calls_that_differ,
      a_rank_that_leaves, a_rank_that_is_late, a_rank_that_is_killed, a_rank_that_is_stopped,
      rank_0_is_cut_off BY_GLOO)
