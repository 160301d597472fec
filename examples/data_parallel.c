/* One model, several processes: each trains on its share of every batch, gradients are averaged while
 * backward runs, and all hold the same weights at every step. Without PROA_RANK the program starts the
 * processes itself; with it (and PROA_SIZE, PROA_STORE) it is one of them, as a launcher would run it. With
 * a checkpoint it goes on from there, whatever number of ranks wrote it: a batch has 64 samples over all
 * ranks. Usage: data_parallel [data folder [ranks [checkpoint]]] */
#define _POSIX_C_SOURCE 200809L
#include <proa.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 64, EPOCHS = 6, MAX_RANKS = 16 };

static int train(const char *data, const char *checkpoint)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/digits_train.csv", data);
    if (proa_dist_start() != PROA_OK) return proa_finish(stderr);
    proa_seed(1 + (uint64_t)proa_dist_rank()); /* even so, all begin with the weights of rank 0 */
    proa_loader *batches =
        proa_load_csv(path, .shape = PROA_SHAPE(64), .scale = 1.0 / 16, .batch = BATCH / proa_dist_size(),
                      .shuffle = true, .drop_last = true, .rank = proa_dist_rank(), .size = proa_dist_size());
    proa_layer *net =
        proa_sequential(proa_linear_layer(64, 64), proa_relu_layer(), proa_linear_layer(64, 10));
    proa_optimizer *opt = proa_adam(proa_parameters(net), .lr = 3e-3);
    /* every rank reads the checkpoint; without one all begin with the weights of rank 0 */
    bool resumes = checkpoint && access(checkpoint, R_OK) == 0;
    if (resumes && proa_checkpoint_load(checkpoint, net, opt) != PROA_OK) return proa_finish(stderr);
    proa_sync_layer(net);
    proa_reducer *reducer = proa_reducer_new(proa_parameters(net));
    double sum = 0, steps = 0;
    for (int epoch = 0; epoch < EPOCHS && proa_error() == PROA_OK; epoch++) {
        sum = steps = 0;
        proa_each (batch, batches) {
            proa_tensor *loss = proa_cross_entropy(proa_forward(net, batch->x), batch->y);
            proa_backward(loss);
            proa_step(opt);
            sum += proa_item(loss);
            steps++;
        }
        if (checkpoint && proa_dist_rank() == 0 && proa_checkpoint_save(checkpoint, net, opt) != PROA_OK)
            break;
    }
    proa_tensor *weight = proa_error() ? NULL : proa_parameters(net).at[0];
    double size = weight ? proa_item(proa_sum(proa_abs(weight))) : 0;
    printf("rank %d of %d: loss %.4f, sum of weights %.6f\n", proa_dist_rank(), proa_dist_size(), sum / steps,
           size);
    fflush(stdout);
    proa_reducer_free(reducer);
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(batches);
    proa_dist_stop();
    return proa_finish(stderr);
}

int main(int argc, char **argv)
{
    const char *data = argc > 1 ? argv[1] : getenv("PROA_DATA") ? getenv("PROA_DATA") : "examples/data";
    const char *checkpoint = argc > 3 ? argv[3] : NULL;
    if (getenv("PROA_RANK")) return train(data, checkpoint);

    int ranks = argc > 2 ? atoi(argv[2]) : 2;
    char store[] = "/tmp/data_parallel_XXXXXX", rank[16];
    if (ranks < 1 || ranks > MAX_RANKS || !mkdtemp(store)) return 1;
    snprintf(rank, sizeof rank, "%d", ranks);
    setenv("PROA_STORE", store, 1);
    setenv("PROA_SIZE", rank, 1);
    pid_t children[MAX_RANKS];
    for (int i = 0; i < ranks; i++) {
        snprintf(rank, sizeof rank, "%d", i);
        setenv("PROA_RANK", rank, 1);
        children[i] = fork();
        if (children[i] == 0) {
            execl("/proc/self/exe", argv[0], data, rank, checkpoint, (char *)NULL);
            _exit(127);
        }
    }
    int failed = 0;
    for (int i = 0; i < ranks; i++) {
        int status = 1;
        waitpid(children[i], &status, 0);
        failed += status != 0;
    }
    rmdir(store);
    return failed != 0;
}
