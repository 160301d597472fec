/* The counterpart of train_steps.py: the same models, weights, data and optimizers; prints a loss a line.
 * Usage: train_steps FOLDER MODEL OPTIMIZER RATE STEPS */
#include <proa.h>

#include <stdlib.h>
#include <string.h>

static proa_layer *make(const char *model)
{
    if (strcmp(model, "mlp") == 0)
        return proa_sequential(proa_linear_layer(8, 16), proa_tanh_layer(), proa_linear_layer(16, 4));
    if (strcmp(model, "cnn") == 0)
        return proa_sequential(proa_conv2d_layer(1, 4, 3, .padding = 1), proa_batch_norm_layer(4),
                               proa_relu_layer(), proa_max_pool2d_layer(2), proa_flatten_layer(),
                               proa_linear_layer(64, 4));
    return proa_sequential(proa_transformer_layer(16, 2, 32), proa_linear_layer(16, 4));
}

static proa_tensor *load(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return proa_tensor_load(path);
}

static void fill(proa_layer *net, const char *folder)
{
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_named_list state = proa_layer_state(net);
    for (int64_t i = 0; i < state.count; i++) {
        proa_tensor *from = load(folder, state.at[i].name), *to = state.at[i].tensor;
        if (!from || proa_numel(from) != proa_numel(to)) {
            proa_fail(PROA_ERR_CORRUPT, "%s does not fit", state.at[i].name);
            return;
        }
        proa_copy_in(to, proa_data(from), (size_t)proa_numel(to) * sizeof(float));
    }
}

int main(int argc, char **argv)
{
    if (argc < 6) return 2;
    const char *folder = argv[1], *kind = argv[3];
    proa_layer *net = make(argv[2]);
    fill(net, folder);
    proa_tensor *x = load(folder, "x"), *y = load(folder, "y");
    bool own_decay = strcmp(kind, "adamw") == 0 || strcmp(kind, "lamb") == 0;
    proa_optimizer *opt = proa_optimizer_new(kind, proa_parameters(net),
                                             (proa_optimizer_opts){.lr = strtod(argv[4], NULL),
                                                                   .weight_decay = own_decay ? 0 : 0.01,
                                                                   .clip = {PROA_CLIP_GLOBAL_NORM, 1}});
    for (long step = strtol(argv[5], NULL, 10); step > 0 && !proa_error(); step--) {
        PROA_SCOPE {
            proa_tensor *loss = proa_cross_entropy(proa_forward(net, x), y);
            proa_backward(loss);
            proa_step(opt);
            if (loss) printf("%.9g\n", proa_item(loss));
        }
    }
    proa_optimizer_free(opt);
    proa_layer_free(net);
    return proa_finish(stderr);
}
