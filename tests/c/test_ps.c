/* The parameter server: servers and workers are threads of this process. Entries, rules, steps, row files,
 * and what happens when somebody is late or gone. */
#define _GNU_SOURCE
#include "dist/ps/client.h"
#include "dist/ps/table.h"
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { W = 4 };

static void fine(proa_status status) { ck_assert_msg(status == PROA_OK, "%s", proa_error_message()); }

static void fails(proa_status status, proa_status code, const char *words)
{
    ck_assert_msg(status == code && strstr(proa_error_message(), words), "%d: %s", (int)status,
                  proa_error_message());
    proa_clear_error();
}

typedef struct job {
    proa_ps_server *servers[4];
    int n;
    char endpoints[256];
} job;

static job start(int servers, int workers)
{
    job j = {.n = servers};
    size_t at = 0;
    for (int i = 0; i < servers; i++) {
        j.servers[i] = proa_ps_serve(.index = i, .servers = servers, .workers = workers, .token = "t");
        ck_assert_msg(j.servers[i] != NULL, "%s", proa_error_message());
        at += (size_t)snprintf(j.endpoints + at, sizeof j.endpoints - at, "%s127.0.0.1:%d", i ? "," : "",
                               proa_ps_server_port(j.servers[i]));
    }
    return j;
}

static void end(job *j)
{
    for (int i = 0; i < j->n; i++) proa_ps_server_free(j->servers[i]);
}

static proa_ps_client *join(const job *j, int worker, int workers, proa_ps_mode mode)
{
    proa_ps_client *c = proa_ps_connect(.servers = j->endpoints, .worker = worker, .workers = workers,
                                        .mode = mode, .token = "t", .timeout = 5);
    ck_assert_msg(c != NULL, "%s", proa_error_message());
    return c;
}

static void close_to(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabsf(got[i] - want[i]) < 1e-6f, "%d: %g, not %g", i, (double)got[i], (double)want[i]);
}

/* ---- rows and rules -------------------------------------------------------------------- */

START_TEST(rows_are_divided_and_updated)
{
    job j = start(3, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    fine(proa_ps_table(c, 0, .name = "emb", .width = W, .start_a = 1.5));
    int64_t ids[] = {7, 3, 7, 1000000007, 0}, rows = 0;
    float out[5 * W], grads[5 * W];
    fine(proa_ps_pull(c, 0, ids, 5, false, out));
    for (int i = 0; i < 5 * W; i++) ck_assert(out[i] == 1.5f);
    for (int i = 0; i < 5 * W; i++) grads[i] = (float)(i / W + 1);
    fine(proa_ps_push(c, 0, ids, grads, 5, 0.1));
    fine(proa_ps_pull(c, 0, ids, 5, false, out));
    const float want[] = {1.5f - 0.4f, 1.5f - 0.2f, 1.5f - 0.4f, 1.5f - 0.4f, 1.5f - 0.5f};
    for (int i = 0; i < 5; i++) ck_assert(fabsf(out[i * W] - want[i]) < 1e-6f);
    fine(proa_ps_rows(c, 0, &rows));
    ck_assert_int_eq(rows, 4);
    fine(proa_ps_pull(c, 0, ids, 0, false, out));
    fails(proa_ps_pull(c, 1, ids, 1, false, out), PROA_ERR_NOT_FOUND, "no table 1");
    fails(proa_ps_pull_dense(c, 0, out), PROA_ERR_INVALID_ARGUMENT, "sparse");
    fails(proa_ps_table(c, 0, .name = "emb", .width = W + 1), PROA_ERR_INVALID_ARGUMENT, "other options");
    fails(proa_ps_table(c, 2, .name = "../x", .width = W), PROA_ERR_INVALID_ARGUMENT, "name");
    proa_ps_close(c);
    end(&j);
}
END_TEST

START_TEST(rules_follow_their_formulas)
{
    job j = start(2, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    fine(proa_ps_table(c, 0, .name = "adam", .width = 1, .rule = PROA_PS_ADAM, .start_a = 1));
    fine(proa_ps_table(c, 1, .name = "adagrad", .width = 1, .rule = PROA_PS_ADAGRAD, .start_a = 1));
    fine(proa_ps_table(c, 2, .name = "sum", .width = 1, .rule = PROA_PS_SUM, .start_a = 1));
    double m = 0, v = 0, p = 1, moment = 0, q = 1;
    int64_t id = 5;
    float out, g = 0;
    for (int t = 0; t < 3; t++) fine(proa_ps_pull(c, t, &id, 1, false, &out));
    for (int step = 1; step < 4; step++) {
        g = (float)step - 0.5f;
        double x = (double)g;
        for (int t = 0; t < 3; t++) fine(proa_ps_push(c, t, &id, &g, 1, 0.1));
        m = 0.9 * m + 0.1 * x, v = 0.999 * v + 0.001 * x * x;
        p -= 0.1 * (m / (1 - pow(0.9, step))) / (sqrt(v / (1 - pow(0.999, step))) + 1e-8);
        moment += x * x;
        q -= 0.1 * x / (sqrt(moment) + 1e-6);
    }
    fine(proa_ps_pull(c, 0, &id, 1, true, &out));
    ck_assert_msg(fabs((double)out - p) < 2e-5, "%g %g", (double)out, p);
    fine(proa_ps_pull(c, 1, &id, 1, true, &out));
    ck_assert(fabs((double)out - q) < 1e-6);
    fine(proa_ps_pull(c, 2, &id, 1, true, &out));
    ck_assert(fabsf(out - 5.5f) < 1e-6f);
    proa_ps_close(c);
    end(&j);
}
END_TEST

START_TEST(rows_start_as_drawn)
{
    proa_ps_table_opts o = {
        .name = "x", .width = 2000, .start = PROA_PS_UNIFORM, .start_a = -1, .start_b = 3};
    static float a[2000], b[2000];
    proa__ps_draw(&o, 11, a);
    proa__ps_draw(&o, 11, b);
    ck_assert(memcmp(a, b, sizeof a) == 0);
    proa__ps_draw(&o, 12, b);
    double sum = 0, squares = 0;
    for (int i = 0; i < 2000; i++) {
        ck_assert(a[i] >= -1 && a[i] < 3 && a[i] != b[i]);
        sum += (double)a[i];
    }
    ck_assert(fabs(sum / 2000 - 1) < 0.15);
    o.start = PROA_PS_TRUNCATED_GAUSSIAN;
    proa__ps_draw(&o, 11, a);
    for (int i = 0; i < 2000; i++) ck_assert(fabsf(a[i] + 1) <= 6.00001f);
    o.start = PROA_PS_GAUSSIAN;
    proa__ps_draw(&o, 11, a);
    for (int i = 0; i < 2000; i++) squares += pow((double)a[i] + 1, 2);
    ck_assert(fabs(sqrt(squares / 2000) - 3) < 0.2);
}
END_TEST

START_TEST(rows_enter_by_count_and_chance)
{
    job j = start(2, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    fine(proa_ps_table(c, 0, .name = "count", .width = 1, .entry = PROA_PS_ENTRY_COUNT, .entry_value = 3,
                       .start_a = 2));
    int64_t id = 9;
    float out = 5, g = 1;
    for (int read = 1; read <= 3; read++) {
        fine(proa_ps_pull(c, 0, &id, 1, true, &out)); /* counts for nothing */
        fine(proa_ps_pull(c, 0, &id, 1, false, &out));
        ck_assert_msg(out == (read < 3 ? 0 : 2), "read %d: %g", read, (double)out);
        if (read < 3) fine(proa_ps_push(c, 0, &id, &g, 1, 1)); /* dropped */
    }
    fine(proa_ps_table(c, 1, .name = "chance", .width = 1, .entry = PROA_PS_ENTRY_PROBABILITY,
                       .entry_value = 0.25, .start_a = 1));
    static int64_t many[4000];
    static float values[4000];
    int entered = 0;
    for (int i = 0; i < 4000; i++) many[i] = i;
    for (int again = 0; again < 2; again++) fine(proa_ps_pull(c, 1, many, 4000, false, values));
    for (int i = 0; i < 4000; i++) entered += values[i] == 1;
    ck_assert_msg(entered > 850 && entered < 1150, "%d", entered);
    fails(
        proa_ps_table(c, 2, .name = "bad", .width = 1, .entry = PROA_PS_ENTRY_PROBABILITY, .entry_value = 1),
        PROA_ERR_INVALID_ARGUMENT, "probability");
    proa_ps_close(c);
    end(&j);
}
END_TEST

START_TEST(dense_tables_are_cut)
{
    for (int servers = 1; servers <= 3; servers++) {
        job j = start(servers, 1);
        proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
        fine(proa_ps_table(c, 4, .name = "dense", .dense = true, .width = 2, .rule = PROA_PS_SGD));
        float values[] = {1, 2}, out[2], grads[] = {10, 20}, want[] = {0, 0};
        fine(proa_ps_set_dense(c, 4, values));
        fine(proa_ps_push_dense(c, 4, grads, 0.1));
        fine(proa_ps_pull_dense(c, 4, out));
        close_to(out, want, 2);
        proa_ps_close(c);
        end(&j);
    }
}
END_TEST

/* ---- steps of several workers ---------------------------------------------------------- */

typedef struct worker {
    const job *job;
    int number, workers, steps;
    pthread_t thread;
    proa_status status;
    char message[512];
} worker;

/* Steps of gradients number + 1 for rows number and 100, and for a dense value. */
static void *train(void *context)
{
    worker *w = context;
    proa_ps_client *c = join(w->job, w->number, w->workers, PROA_PS_SYNC);
    int64_t ids[] = {w->number, 100};
    float out[2], grads[2] = {(float)w->number + 1, (float)w->number + 1};
    fine(proa_ps_table(c, 0, .name = "emb", .width = 1));
    fine(proa_ps_table(c, 1, .name = "dense", .dense = true, .width = 1));
    for (int step = 0; step < w->steps && w->status == PROA_OK; step++) {
        fine(proa_ps_pull(c, 0, ids, 2, false, out));
        ck_assert(fabsf(out[0] + 0.1f * (float)step * grads[0]) < 1e-5f);
        fine(proa_ps_push(c, 0, ids, grads, 2, 0.1));
        fine(proa_ps_push_dense(c, 1, grads, 0.1));
        w->status = proa_ps_step(c);
    }
    snprintf(w->message, sizeof w->message, "%s", proa_error_message());
    proa_clear_error();
    proa_ps_close(c);
    return NULL;
}

START_TEST(a_step_averages_the_workers)
{
    job j = start(2, 3);
    worker w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = (worker){.job = &j, .number = i, .workers = 3, .steps = 5};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, train, &w[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(w[i].thread, NULL);
        ck_assert_msg(w[i].status == PROA_OK, "%s", w[i].message);
    }
    proa_ps_client *c = join(&j, -1, 3, PROA_PS_ASYNC);
    int64_t ids[] = {0, 2, 100};
    float out[3], want[] = {-0.5f, -1.5f, -1}; /* row 100: the average gradient, 2, five times */
    fine(proa_ps_table(c, 0, .name = "emb", .width = 1));
    fine(proa_ps_table(c, 1, .name = "dense", .dense = true, .width = 1));
    fine(proa_ps_pull(c, 0, ids, 3, true, out));
    close_to(out, want, 3);
    fine(proa_ps_pull_dense(c, 1, out));
    close_to(out, want + 2, 1);
    fails(proa_ps_barrier(c), PROA_ERR_INVALID_ARGUMENT, "observer");
    proa_ps_close(c);
    end(&j);
}
END_TEST

/* A worker that left in good order is waited for no more; one that broke off is an error that names it. */
START_TEST(barriers_notice_who_is_gone)
{
    job j = start(1, 2);
    worker w = {.job = &j, .number = 1, .workers = 2, .steps = 0};
    ck_assert_int_eq(pthread_create(&w.thread, NULL, train, &w), 0);
    pthread_join(w.thread, NULL);
    proa_ps_client *c = join(&j, 0, 2, PROA_PS_SYNC), *other = NULL;
    fine(proa_ps_step(c));
    other = join(&j, 1, 2, PROA_PS_SYNC);
    fails(proa_ps_connect(.servers = j.endpoints, .worker = 1, .workers = 2, .token = "t") ? PROA_OK
                                                                                           : proa_error(),
          PROA_ERR_INVALID_ARGUMENT, "connected to server 0 already");
    shutdown(other->links[0].fd, SHUT_RDWR);
    fails(proa_ps_step(c), PROA_ERR_UNAVAILABLE, "worker 1 has died");
    fails(proa_ps_barrier(other), PROA_ERR_UNAVAILABLE, "server 0");
    proa_ps_close(other);
    proa_ps_close(c);
    end(&j);
}
END_TEST

/* A server that is there and does not answer, as one that is stopped or still reads its files. */
START_TEST(a_silent_server_is_named)
{
    proa_ps_server *s = proa_ps_serve(.token = "t", .paused = true);
    char at[64];
    snprintf(at, sizeof at, "127.0.0.1:%d", proa_ps_server_port(s));
    fails(proa_ps_connect(.servers = at, .token = "t", .timeout = 0.3) ? PROA_OK : proa_error(),
          PROA_ERR_TIMEOUT, "server 0 (127.0.0.1:");
    proa_ps_server_open(s);
    proa_ps_client *c = proa_ps_connect(.servers = at, .token = "t", .timeout = 5);
    ck_assert_msg(c != NULL, "%s", proa_error_message());
    proa_ps_close(c);
    proa_ps_server_free(s);
}
END_TEST

START_TEST(nobody_waits_for_ever)
{
    job j = start(2, 2);
    proa_ps_client *c = proa_ps_connect(.servers = j.endpoints, .worker = 0, .workers = 2,
                                        .mode = PROA_PS_SYNC, .token = "t", .timeout = 0.5);
    int64_t id = 1;
    float out;
    fine(proa_ps_table(c, 0, .name = "emb", .width = 1));
    fails(proa_ps_step(c), PROA_ERR_TIMEOUT, "worker 1 has not come");
    proa_ps_server_free(j.servers[1]);
    j.n = 1;
    fails(proa_ps_pull(c, 0, &id, 1, false, &out), PROA_ERR_UNAVAILABLE, "server 1 (127.0.0.1:");
    fails(proa_ps_pull(c, 0, &id, 1, false, &out), PROA_ERR_UNAVAILABLE, "server 1 (127.0.0.1:");
    id = 2;
    fine(proa_ps_pull(c, 0, &id, 1, false, &out));
    proa_ps_close(c);
    fails(proa_ps_connect(.servers = "127.0.0.1:1", .token = "t", .timeout = 0.2) ? PROA_OK : proa_error(),
          PROA_ERR_TIMEOUT, "nobody listens at server 0 (127.0.0.1:1)");
    fails(proa_ps_connect(.servers = "nowhere", .token = "t") ? PROA_OK : proa_error(),
          PROA_ERR_INVALID_ARGUMENT, "host:port");
    end(&j);
}
END_TEST

/* ---- what comes over the network ------------------------------------------------------- */

START_TEST(strangers_and_bad_messages_are_refused)
{
    job j = start(1, 1);
    fails(proa_ps_connect(.servers = j.endpoints, .token = "u", .timeout = 2) ? PROA_OK : proa_error(),
          PROA_ERR_INVALID_ARGUMENT, "token");
    fails(proa_ps_connect(.servers = j.endpoints, .token = "t", .workers = 3, .timeout = 2) ? PROA_OK
                                                                                            : proa_error(),
          PROA_ERR_INVALID_ARGUMENT, "worker 0 of 3");
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    fine(proa_ps_table(c, 0, .name = "emb", .width = W));
    proa__bytes *out = &c->links[0].out;
    static const uint64_t counts[] = {1, 3, (uint64_t)1 << 61, ~(uint64_t)0};
    for (int request = 0; request <= PROA__PS_REQUESTS + 1; request++)
        for (int i = 0; i < 4; i++) {
            if (request == PROA__PS_HELLO || request == PROA__PS_STOP || request == PROA__PS_BYE) continue;
            if (request == PROA__PS_BARRIER || request == PROA__PS_SHRINK || request == PROA__PS_ROWS)
                continue;
            if (request == PROA__PS_CHANGED) continue;
            ck_assert(proa__ps_begin(out, (proa__ps_request)request, 0, 0, 0));
            ck_assert(proa__ps_add_u64(out, counts[i]) && proa__ps_add_u64(out, 7));
            ck_assert(request == PROA__PS_PULL && i == 0 ? true : proa__ps_add_u32(out, 9));
            proa_status status = proa__ps_exchange(c, "test", 5);
            proa__ps_clear(c);
            ck_assert_msg(request == PROA__PS_PULL && i == 0 ? status == PROA_OK : status != PROA_OK,
                          "request %d", request);
            ck_assert(strstr(proa_error_message(), "is gone") == NULL);
            proa_clear_error();
        }
    proa_ps_close(c);
    end(&j);
}
END_TEST

/* Random requests of random bytes: each has a reply or ends its connection, and the server goes on. */
START_TEST(noise_is_survived)
{
    job j = start(1, 1);
    uint64_t state = 12345;
    for (int round = 0; round < 300; round++) {
        proa_ps_client *c = join(&j, -1, 1, PROA_PS_ASYNC);
        fine(proa_ps_table(c, 0, .name = "emb", .width = W));
        fine(proa_ps_table(c, 1, .name = "dense", .dense = true, .width = 5));
        for (int i = 0; i < 10; i++) {
            proa__bytes *out = &c->links[0].out;
            state = state * 6364136223846793005u + 1442695040888963407u;
            int request = (int)(state >> 40) % (PROA__PS_REQUESTS + 2);
            if (request == PROA__PS_STOP || request == PROA__PS_SAVE || request == PROA__PS_LOAD) continue;
            ck_assert(proa__ps_begin(out, (proa__ps_request)request, (int)(state >> 50) % 3,
                                     (int)(state >> 33) % 3, (double)(state % 7)));
            for (uint64_t n = state >> 60; n > 0; n--) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                ck_assert(proa__ps_add_u64(out, n % 3 ? state : state % 4));
            }
            (void)proa__ps_exchange(c, "noise", 5);
            proa__ps_clear(c);
            ck_assert_msg(proa_error() != PROA_ERR_TIMEOUT, "%s", proa_error_message());
            proa_clear_error();
        }
        proa_ps_close(c);
    }
    int fd = proa__tcp_connect("127.0.0.1", proa_ps_server_port(j.servers[0]), proa__monotonic() + 5);
    ck_assert_int_ge(fd, 0);
    char huge[8] = {-1, -1, -1, 0x7f, 0, 0, 0, 0}; /* a stranger's length */
    ck_assert(proa__ps_send(fd, huge, sizeof huge, proa__monotonic() + 5) == PROA__PS_IO_OK);
    ck_assert(proa__ps_receive(fd, huge, 1, proa__monotonic() + 5) == PROA__PS_IO_GONE);
    close(fd);
    end(&j);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------- */

static void folder_of(char *path, size_t n) { snprintf(path, n, "%s/ps_%d", test_folder(), (int)getpid()); }

static void write_text(const char *folder, const char *text)
{
    char path[512], command[600];
    snprintf(command, sizeof command, "rm -rf %s; mkdir -p %s/emb_txt", folder, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/emb_txt/emb.block0.txt", folder);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(rows_move_to_another_number_of_servers)
{
    char folder[256];
    folder_of(folder, sizeof folder);
    write_text(folder, "");
    for (int servers = 3; servers >= 1; servers--) {
        job j = start(servers, 1);
        proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
        static int64_t ids[500];
        static float out[500 * W], want[500 * W];
        fine(proa_ps_table(c, 0, .name = "emb", .width = W, .rule = PROA_PS_ADAM, .start = PROA_PS_UNIFORM,
                           .start_b = 1));
        for (int i = 0; i < 500; i++) ids[i] = 3 * i;
        if (servers == 3) {
            fine(proa_ps_pull(c, 0, ids, 500, false, want));
            fine(proa_ps_push(c, 0, ids, want, 500, 0.01));
            fine(proa_ps_pull(c, 0, ids, 500, false, want));
        } else {
            int64_t rows = 0;
            fine(proa_ps_load(c, 0, folder));
            fine(proa_ps_rows(c, 0, &rows));
            ck_assert_int_eq(rows, 500);
            fine(proa_ps_pull(c, 0, ids, 500, true, out));
            close_to(out, want, 500 * W);
        }
        fine(proa_ps_save(c, 0, folder, PROA_PS_SAVE_ALL));
        proa_ps_close(c);
        end(&j);
    }
}
END_TEST

START_TEST(deltas_and_days)
{
    char folder[256], path[512];
    folder_of(folder, sizeof folder);
    write_text(folder, "");
    snprintf(path, sizeof path, "%s/emb_txt/emb.block0.txt", folder);
    job j = start(1, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    int64_t ids[] = {1, 2, 3}, rows;
    float out[3], g = 2;
    char line[200];
    fine(proa_ps_table(c, 0, .name = "emb", .width = 1));
    fine(proa_ps_pull(c, 0, ids, 3, false, out));
    fine(proa_ps_save(c, 0, folder, PROA_PS_SAVE_BASE));
    fine(proa_ps_push(c, 0, ids + 1, &g, 1, 0.5));
    fine(proa_ps_save(c, 0, folder, PROA_PS_SAVE_DELTA));
    FILE *f = fopen(path, "re");
    ck_assert(f && fgets(line, sizeof line, f));
    ck_assert_str_eq(line, "2\t1\t0\t1\t-1,\n");
    ck_assert(!fgets(line, sizeof line, f));
    fclose(f);
    fine(proa_ps_shrink(c, 0, 2));
    fine(proa_ps_pull(c, 0, ids, 1, false, out));
    fine(proa_ps_shrink(c, 0, 2));
    fine(proa_ps_rows(c, 0, &rows));
    ck_assert_int_eq(rows, 1);
    proa_ps_close(c);
    end(&j);
}
END_TEST

START_TEST(malformed_rows_are_refused_by_line)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"1\t1\t0\t1\t1,2,\n2\t1\t0\t1\t1,\n", "block0.txt:2: "},
        {"x\t1\t0\t1\t1,2,\n", ":1: the line begins"},
        {"1\t1\t0\t2\t1,2,\n", ":1: the columns"},
        {"1\t-1\t0\t1\t1,2,\n", ":1: the columns"},
        {"1\t1\t0\t1\t1,2,3,\n", ":1: the values"},
        {"1\t1\t0\t1\t1,y,\n", ":1: the values"},
        {"1\t1\t0\t1\n", ":1: "},
        {"1\t1\t0\t1\t1,,2\n", ":1: the values"},
        {"99999999999999999999\t1,2,\n", ":1: the line begins"},
    };
    char folder[256];
    folder_of(folder, sizeof folder);
    job j = start(1, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    fine(proa_ps_table(c, 0, .name = "emb", .width = 2));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(folder, cases[i].text);
        fails(proa_ps_load(c, 0, folder), PROA_ERR_CORRUPT, cases[i].words);
    }
    write_text(folder, "5\t1.5,-2e3\n6\t7\t1\t0\t0,0,\n");
    fine(proa_ps_load(c, 0, folder));
    int64_t ids[] = {5, 6};
    float out[4], want[] = {1.5f, -2e3f, 0, 0};
    fine(proa_ps_pull(c, 0, ids, 2, true, out));
    close_to(out, want, 4);
    fails(proa_ps_load(c, 0, "/nowhere"), PROA_ERR_NO_FILE, "/nowhere/emb_txt");
    proa_ps_close(c);
    end(&j);
}
END_TEST

/* ---- GEO ------------------------------------------------------------------------------- */

START_TEST(changes_of_others_come_once)
{
    job j = start(2, 2);
    proa_ps_client *a = join(&j, 0, 2, PROA_PS_ASYNC), *b = join(&j, 1, 2, PROA_PS_ASYNC);
    int64_t ids[] = {4, 5}, *found, n;
    float values[] = {1, 2}, difference[] = {0.5f, 0.25f}, *rows;
    for (int i = 0; i < 2; i++)
        fine(proa_ps_table(i ? b : a, 0, .name = "emb", .width = 1, .rule = PROA_PS_SUM));
    fine(proa_ps_set(a, 0, ids, values, 2));
    fine(proa_ps_push(a, 0, ids, difference, 2, 0));
    fine(proa_ps_push(a, 0, ids, difference, 1, 0));
    fine(proa_ps_pull_changed(a, 0, &found, &rows, &n));
    ck_assert_int_eq(n, 0);
    proa_ps_free(found);
    proa_ps_free(rows);
    fine(proa_ps_pull_changed(b, 0, &found, &rows, &n));
    ck_assert_int_eq(n, 2);
    for (int i = 0; i < 2; i++) ck_assert(rows[i] == (found[i] == 4 ? 2 : 2.25f));
    proa_ps_free(found);
    proa_ps_free(rows);
    fine(proa_ps_pull_changed(b, 0, &found, &rows, &n));
    ck_assert_int_eq(n, 0);
    proa_ps_free(found);
    proa_ps_free(rows);
    proa_ps_close(a);
    proa_ps_close(b);
    end(&j);
}
END_TEST

/* ---- no memory ------------------------------------------------------------------------- */

/* One allocation of servers and worker fails: a call is made, or its error says so, and the next calls go on.
 * Returns how many calls failed. */
static int64_t train_with(int64_t at, int64_t *allocations)
{
    int64_t failed = 0;
    job j = start(2, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_SYNC);
    proa_memory_fail_after(at);
    for (int step = 0; step < 3; step++) {
        int64_t ids[] = {1, 2, 3, 4, 1}, rows;
        float out[5], grads[5] = {1, 1, 1, 1, 1}, dense[2];
        for (int call = 0; call < 8; call++) {
            proa_status status = call == 0
                                     ? proa_ps_table(c, 0, .name = "emb", .width = 1, .rule = PROA_PS_ADAM)
                                 : call == 1 ? proa_ps_table(c, 1, .name = "dense", .dense = true, .width = 2)
                                 : call == 2 ? proa_ps_pull(c, 0, ids, 5, false, out)
                                 : call == 3 ? proa_ps_push(c, 0, ids, grads, 5, 0.1)
                                 : call == 4 ? proa_ps_push_dense(c, 1, grads, 0.1)
                                 : call == 5 ? proa_ps_step(c)
                                 : call == 6 ? proa_ps_pull_dense(c, 1, dense)
                                             : proa_ps_rows(c, 0, &rows);
            bool follows = status == PROA_ERR_NOT_FOUND; /* a table that there was no memory for */
            ck_assert_msg(status == PROA_OK || status == PROA_ERR_OUT_OF_MEMORY || follows, "call %d: %s",
                          call, proa_error_message());
            failed += status != PROA_OK;
            proa_clear_error();
        }
    }
    *allocations = proa_memory_fail_after(-1);
    int64_t id = 1;
    float out;
    fine(proa_ps_table(c, 0, .name = "emb", .width = 1, .rule = PROA_PS_ADAM));
    fine(proa_ps_pull(c, 0, &id, 1, false, &out));
    proa_ps_close(c);
    end(&j);
    return failed;
}

START_TEST(memory_runs_out)
{
    int64_t count = 0, ignored = 0, failed = 0;
    ck_assert_int_eq(train_with(-1, &ignored), 0);
    ck_assert_int_eq(train_with(-1, &count), 0);
    int64_t live = proa_memory_get_stats().live_bytes;
    for (int64_t at = 0; at < count; at++) {
        failed += train_with(at, &ignored) > 0;
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
    }
    ck_assert_msg(failed > count / 2, "%d of %d", (int)failed, (int)count);
}
END_TEST

START_TEST(a_client_stops_the_servers)
{
    job j = start(2, 1);
    proa_ps_client *c = join(&j, 0, 1, PROA_PS_ASYNC);
    ck_assert(!proa_ps_server_wait(j.servers[0], 0.01));
    fine(proa_ps_stop_servers(c));
    for (int i = 0; i < 2; i++) ck_assert(proa_ps_server_wait(j.servers[i], 5));
    proa_ps_close(c);
    end(&j);
}
END_TEST

SUITE("parameter server", rows_are_divided_and_updated, rules_follow_their_formulas, rows_start_as_drawn,
      rows_enter_by_count_and_chance, dense_tables_are_cut, a_step_averages_the_workers,
      barriers_notice_who_is_gone, a_silent_server_is_named, nobody_waits_for_ever, noise_is_survived,
      strangers_and_bad_messages_are_refused, rows_move_to_another_number_of_servers, deltas_and_days,
      malformed_rows_are_refused_by_line, changes_of_others_come_once, memory_runs_out,
      a_client_stops_the_servers)
