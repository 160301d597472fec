/* Victim of resume.py: trains a small network with everything that a training state holds,
 * saves it after every step, and writes the final state. Sees internals: it dies inside a save when told
 * to. Usage: trainer FOLDER STEPS [STAGE SAVE]   (0 written, 1 synced, 2 renamed, in save number SAVE) */
#define _POSIX_C_SOURCE 200809L
#include "io/file.h"

#include <proa.h>

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static int die_stage = -1;
static long die_save, saves;

static void on_stage(proa__write_stage stage)
{
    if ((int)stage == 0) saves++;
    if ((int)stage == die_stage && saves == die_save) kill(getpid(), SIGKILL);
}

static proa_loader *make_data(void)
{
    PROA_SCOPED;
    proa_tensor *x = proa_gaussian(PROA_SHAPE(120, 1, 8, 8)), *y = proa_randint(0, 4, PROA_SHAPE(120));
    return proa_loader_new(proa_tensor_dataset(PROA_LIST(x, y)), .batch = 16, .shuffle = true, .seed = 5);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    char state[4096], last[4096];
    snprintf(state, sizeof state, "%s/state", argv[1]);
    snprintf(last, sizeof last, "%s/final", argv[1]);
    int64_t steps = strtoll(argv[2], NULL, 10), step = 0;
    if (argc > 4) {
        die_stage = (int)strtol(argv[3], NULL, 10);
        die_save = strtol(argv[4], NULL, 10);
        proa__write_hook = on_stage;
    }
    proa_seed(1);
    proa_loader *data = make_data();
    proa_layer *net =
        proa_sequential(proa_conv2d_layer(1, 8, 3), proa_batch_norm_layer(8), proa_relu_layer(),
                        proa_flatten_layer(), proa_dropout_layer(0.2), proa_linear_layer(288, 4));
    proa_optimizer *opt = proa_adamw(proa_parameters(net), .schedule = proa_cosine_decay(0.01, 200, 0));
    proa_scaler *scaler = proa_scaler_new(.growth_interval = 7);
    if (access(state, F_OK) == 0)
        proa_checkpoint_load(state, net, opt, .scaler = scaler, .loader = data, .numbers = &step,
                             .n_numbers = 1);
    printf("from %lld\n", (long long)step);
    fflush(stdout);
    while (step < steps && proa_error() == PROA_OK) {
        proa_each (batch, data) {
            proa_tensor *loss = proa_cross_entropy(proa_forward(net, batch->x), batch->y);
            proa_backward(proa_scaler_scale(scaler, loss));
            proa_scaler_step(scaler, opt);
            proa_schedule_step(proa_optimizer_schedule(opt));
            step++;
            proa_checkpoint_save(state, net, opt, .scaler = scaler, .loader = data, .numbers = &step,
                                 .n_numbers = 1);
            if (step >= steps) break;
        }
    }
    proa_checkpoint_save(last, net, opt, .scaler = scaler, .loader = data, .numbers = &step, .n_numbers = 1);
    proa_optimizer_free(opt);
    proa_scaler_free(scaler);
    proa_layer_free(net);
    proa_loader_free(data);
    return proa_finish(stderr);
}
