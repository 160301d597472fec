/* One model, two processes: each trains on its half of every batch, gradients are averaged, and both hold the
 * same weights at every step. Without PROA_RANK the program starts the processes itself; with it (and
 * PROA_SIZE, PROA_STORE) it is one of them, as a cluster's launcher would run it.
 * Usage: data_parallel [data folder] */
#define _POSIX_C_SOURCE 200809L
#include <proa.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int train(const char *data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/digits_train.csv", data);
    if (proa_dist_start() != PROA_OK) return proa_finish(stderr);
    proa_seed(1 + (uint64_t)proa_dist_rank()); /* even so, all begin with the weights of rank 0 */
    proa_loader *batches =
        proa_load_csv(path, .shape = PROA_SHAPE(64), .scale = 1.0 / 16, .batch = 32, .shuffle = true,
                      .drop_last = true, .rank = proa_dist_rank(), .size = proa_dist_size());
    proa_layer *net =
        proa_sequential(proa_linear_layer(64, 64), proa_relu_layer(), proa_linear_layer(64, 10));
    proa_optimizer *opt = proa_adam(proa_parameters(net), .lr = 3e-3);
    proa_sync_layer(net);
    double sum = 0, steps = 0;
    for (int epoch = 0; epoch < 6 && proa_error() == PROA_OK; epoch++) {
        sum = steps = 0;
        proa_each (batch, batches) {
            proa_tensor *loss = proa_cross_entropy(proa_forward(net, batch->x), batch->y);
            proa_backward(loss);
            proa_sync_gradients(opt);
            proa_step(opt);
            sum += proa_item(loss);
            steps++;
        }
    }
    proa_tensor *weight = proa_error() ? NULL : proa_parameters(net).at[0];
    double size = weight ? proa_item(proa_sum(proa_abs(weight))) : 0;
    printf("rank %d of %d: loss %.4f, sum of weights %.6f\n", proa_dist_rank(), proa_dist_size(), sum / steps,
           size);
    fflush(stdout);
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(batches);
    proa_dist_stop();
    return proa_finish(stderr);
}

int main(int argc, char **argv)
{
    const char *data = argc > 1 ? argv[1] : getenv("PROA_DATA") ? getenv("PROA_DATA") : "examples/data";
    if (getenv("PROA_RANK")) return train(data);

    char store[] = "/tmp/data_parallel_XXXXXX", rank[16];
    if (!mkdtemp(store)) return 1;
    setenv("PROA_STORE", store, 1);
    setenv("PROA_SIZE", "2", 1);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        snprintf(rank, sizeof rank, "%d", i);
        setenv("PROA_RANK", rank, 1);
        children[i] = fork();
        if (children[i] == 0) {
            execl("/proc/self/exe", argv[0], data, (char *)NULL);
            _exit(127);
        }
    }
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        int status = 1;
        waitpid(children[i], &status, 0);
        failed += status != 0;
    }
    return failed != 0;
}
