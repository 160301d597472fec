/* An embedding on parameter servers. Two servers and two workers are threads of this program, and would be
 * processes of several machines: workers pull the rows that a batch reads and push their gradients, which the
 * servers apply at once. The model learns whether two items are of one kind.
 * Short run: 400 */
#define _POSIX_C_SOURCE 200809L
#include <proa.h>

#include <pthread.h>
#include <stdlib.h>

enum { SERVERS = 2, WORKERS = 2, ITEMS = 60, KINDS = 3, WIDTH = 8, BATCH = 64 };

typedef struct worker {
    const char *servers;
    int number, steps;
    double loss; /* mean of the last tenth of the steps */
    int failed;
    pthread_t thread;
} worker;

/* Trains on one batch; returns its loss. */
static double train_step(proa_ps_client *client, unsigned *seed)
{
    PROA_SCOPED;
    int64_t ids[2 * BATCH];
    float rows[2 * BATCH * WIDTH], same[BATCH];
    for (int i = 0; i < 2 * BATCH; i++) ids[i] = rand_r(seed) % ITEMS;
    for (int i = 0; i < BATCH; i++) same[i] = ids[i] % KINDS == ids[BATCH + i] % KINDS ? 1 : -1;
    proa_ps_pull(client, 0, ids, 2 * BATCH, false, rows);
    proa_tensor *left = proa_from_data(rows, PROA_INTS(BATCH, WIDTH), PROA_F32);
    proa_tensor *right = proa_from_data(rows + BATCH * WIDTH, PROA_INTS(BATCH, WIDTH), PROA_F32);
    proa_set_stop_gradient(left, false);
    proa_set_stop_gradient(right, false);
    proa_tensor *likeness = proa_sum(proa_multiply(left, right), .axis = PROA_INTS(-1));
    proa_tensor *wrong = proa_subtract(likeness, proa_from_data(same, PROA_INTS(BATCH), PROA_F32));
    proa_tensor *loss = proa_mean(proa_square(wrong));
    proa_backward(loss);
    proa_tensor *parts[] = {proa_grad_of(left), proa_grad_of(right)};
    const proa_tensor *gradients = proa_concat(((proa_tensors){2, parts}));
    if (gradients) proa_ps_push(client, 0, ids, proa_data(gradients), 2 * BATCH, 0.02);
    return proa_error() == PROA_OK ? proa_item(loss) : 0;
}

static void *train(void *context)
{
    worker *w = context;
    unsigned seed = (unsigned)w->number + 1;
    proa_ps_client *client =
        proa_ps_connect(.servers = w->servers, .worker = w->number, .workers = WORKERS, .token = "example");
    if (client)
        proa_ps_table(client, 0, .name = "items", .width = WIDTH, .rule = PROA_PS_ADAM,
                      .start = PROA_PS_UNIFORM, .start_a = -0.5, .start_b = 0.5);
    for (int step = 0; client && step < w->steps && proa_error() == PROA_OK; step++) {
        double loss = train_step(client, &seed);
        if (step >= w->steps - w->steps / 10) w->loss += loss / (w->steps / 10);
    }
    proa_ps_close(client);
    w->failed = proa_finish(stderr);
    return NULL;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 1000, failed = 0;
    char endpoints[128] = "";
    proa_ps_server *servers[SERVERS];
    worker workers[WORKERS];
    for (int i = 0, at = 0; i < SERVERS; i++) {
        servers[i] = proa_ps_serve(.index = i, .servers = SERVERS, .workers = WORKERS, .token = "example");
        if (!servers[i]) return proa_finish(stderr);
        at += snprintf(endpoints + at, sizeof endpoints - (size_t)at, "%s127.0.0.1:%d", i ? "," : "",
                       proa_ps_server_port(servers[i]));
    }
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.servers = endpoints, .number = i, .steps = steps < 10 ? 10 : steps};
        if (pthread_create(&workers[i].thread, NULL, train, &workers[i]) != 0) return 1;
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        failed |= workers[i].failed;
        printf("worker %d: loss %.4f\n", i, workers[i].loss);
        failed |= !(workers[i].loss < 0.5);
    }
    for (int i = 0; i < SERVERS; i++) proa_ps_server_free(servers[i]);
    return failed | proa_finish(stderr);
}
