/* A convolutional network learns to read handwritten digits, and is written as a file that Paddle loads.
 * Usage: digits_cnn [data folder] [output folder] [seed] [epochs]
 * Leaves digits.pdmodel, digits.pdiparams and loss.csv in the output folder. A run that was stopped goes on
 * from digits.ckpt, to the same end bit for bit. */
#include <proa.h>

#include <stdlib.h>
#include <string.h>

static proa_layer *make_net(void)
{
    return proa_sequential(proa_conv2d_layer(1, 32, 3, .padding = 1), proa_batch_norm_layer(32),
                           proa_relu_layer(), proa_conv2d_layer(32, 32, 3, .padding = 1),
                           proa_batch_norm_layer(32), proa_relu_layer(), proa_max_pool2d_layer(2),
                           proa_conv2d_layer(32, 64, 3, .padding = 1), proa_relu_layer(),
                           proa_max_pool2d_layer(2), proa_flatten_layer(), proa_dropout_layer(0.3),
                           proa_linear_layer(64 * 2 * 2, 10));
}

/* Share of the samples whose largest score is at their label. */
static double accuracy(proa_layer *net, proa_loader *data)
{
    double right = 0, all = 0;
    proa_eval(net);
    proa_each (batch, data) {
        PROA_NO_GRAD;
        proa_tensor *guess = proa_argmax(proa_forward(net, batch->x), .axis = PROA_SCALAR(1));
        right += proa_item(proa_sum(proa_cast(proa_equal(guess, batch->y), PROA_F32)));
        all += (double)batch->size;
    }
    proa_train(net);
    return right / all;
}

/* Returns the mean loss of the epoch. */
static double train_epoch(proa_layer *net, proa_optimizer *opt, proa_loader *data, proa_progress *bar)
{
    double sum = 0, batches = 0;
    proa_each (batch, data) {
        /* a digit stays what it is a pixel further left or right: two batches of three are moved */
        proa_tensor *x = proa_roll(batch->x, PROA_INTS(batch->index % 3 - 1), .axis = PROA_INTS(3));
        proa_tensor *loss = proa_cross_entropy(proa_forward(net, x), batch->y);
        proa_backward(loss);
        proa_step(opt);
        proa_schedule_step(proa_optimizer_schedule(opt));
        sum += proa_item(loss);
        batches++;
        proa_progress_value(bar, "loss", sum / batches);
        proa_progress_step(bar, 1);
    }
    return sum / batches;
}

/* Some digits side by side, and what the network takes them for. */
static void draw(proa_layer *net, proa_loader *data)
{
    enum { SHOWN = 5, SIDE = 8 };
    const char shades[] = " .:-=+*#%@";
    proa_eval(net);
    proa_each (batch, data) {
        PROA_NO_GRAD;
        proa_tensor *guess = proa_argmax(proa_forward(net, batch->x), .axis = PROA_SCALAR(1));
        const float *pixels = proa_data(batch->x);
        const int64_t *guesses = proa_data(guess), *labels = proa_data(batch->y);
        if (!pixels || !guesses || !labels) break;
        for (int row = 0; row < SIDE; row++) {
            for (int i = 0; i < SHOWN; i++) {
                for (int column = 0; column < SIDE; column++) {
                    char c = shades[(int)(pixels[(i * SIDE + row) * SIDE + column] * 9.0F)];
                    printf("%c%c", c, c);
                }
                printf("  ");
            }
            printf("\n");
        }
        for (int i = 0; i < SHOWN; i++)
            printf("%lld, read as %lld%*s", (long long)labels[i], (long long)guesses[i], 7, "");
        printf("\n");
        break;
    }
    proa_train(net);
}

static const char *join(char to[4096], const char *folder, const char *file)
{
    snprintf(to, 4096, "%s/%s", folder, file);
    return to;
}

int main(int argc, char **argv)
{
    const char *data = argc > 1 ? argv[1] : getenv("PROA_DATA"), *out = argc > 2 ? argv[2] : ".";
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int64_t epochs = argc > 4 ? strtoll(argv[4], NULL, 10) : getenv("PROA_SHORT") ? 2 : 30, epoch = 0;
    char path[4096], checkpoint[4096];
    if (!data) data = "examples/data";
    proa_seed(seed);

    proa_loader *train = proa_load_csv(join(path, data, "digits_train.csv"), .shape = PROA_SHAPE(1, 8, 8),
                                       .scale = 1.0 / 16, .batch = 64, .shuffle = true, .seed = seed);
    proa_loader *test = proa_load_csv(join(path, data, "digits_test.csv"), .shape = PROA_SHAPE(1, 8, 8),
                                      .scale = 1.0 / 16, .batch = 360);
    proa_layer *net = make_net();
    proa_optimizer *opt =
        proa_adamw(proa_parameters(net), .weight_decay = 0.05,
                   .schedule = proa_cosine_decay(3e-3, epochs * proa_loader_batches(train), 1e-5));

    FILE *found = fopen(join(checkpoint, out, "digits.ckpt"), "rb");
    if (found) {
        fclose(found);
        proa_checkpoint_load(checkpoint, net, opt, .loader = train, .numbers = &epoch, .n_numbers = 1);
        printf("going on after epoch %lld\n", (long long)epoch);
    }
    FILE *log = fopen(join(path, out, "loss.csv"), epoch > 0 ? "a" : "w");
    if (log && epoch == 0) fprintf(log, "epoch,loss,test error\n");

    printf("%lld parameters\n", (long long)proa_parameter_count(net));
    proa_progress *bar = proa_progress_new(stdout, "digits", (epochs - epoch) * proa_loader_batches(train));
    while (epoch < epochs && proa_error() == PROA_OK) {
        double loss = train_epoch(net, opt, train, bar), right = accuracy(net, test);
        proa_progress_value(bar, "accuracy", right);
        epoch++;
        proa_checkpoint_save(checkpoint, net, opt, .loader = train, .numbers = &epoch, .n_numbers = 1);
        if (log) fprintf(log, "%lld,%.6f,%.6f\n", (long long)epoch, loss, 1 - right + 1e-4);
    }
    proa_progress_end(bar);
    if (log) fclose(log);
    if (proa_error() == PROA_OK) {
        draw(net, test);
        printf("test accuracy: %.1f %%\n", 100 * accuracy(net, test));
        proa_export(net, join(path, out, "digits"), PROA_INPUT(-1, 1, 8, 8));
        remove(checkpoint); /* the run is over: the next begins anew */
    }
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(train);
    proa_loader_free(test);
    return proa_finish(stderr);
}
