/* Loads any model in Paddle's format, says what it takes and gives, and runs it.
 * Usage: load_and_predict <prefix or .pdmodel> [numbers.csv]
 * The file's numbers fill the first input, row by row (one sample a line); without one the inputs are zeros.
 * Short run: --made-here */
#include <proa.h>

#include <stdlib.h>
#include <string.h>

static void describe(const char *role, const proa_tensor *t)
{
    printf("%s %-24s %s [", role, proa_name_of(t) ? proa_name_of(t) : "?", proa_dtype_name(proa_dtype_of(t)));
    for (int i = 0; i < proa_ndim(t); i++) printf("%s%lld", i ? ", " : "", (long long)proa_dim(t, i));
    printf("]\n");
}

/* Zeros in the shape of an input, with `n` for what it leaves open. */
static proa_tensor *zeros_for(const proa_tensor *input, int64_t n)
{
    int64_t shape[PROA_MAX_DIMS];
    for (int i = 0; i < proa_ndim(input); i++) {
        shape[i] = proa_dim(input, i) < 0 ? n : proa_dim(input, i);
    }
    proa_ints dims = {proa_ndim(input), shape, NULL, NULL};
    return proa_zeros(dims, proa_dtype_of(input));
}

/* All samples of a CSV file in the shape of an input whose first dim is open. */
static proa_tensor *read_input(const char *path, const proa_tensor *input)
{
    proa_dataset *d = proa_csv_dataset(path, .label = PROA_NO_LABEL);
    if (!d) return NULL;
    int64_t n = proa_dataset_count(d), shape[PROA_MAX_DIMS], *indices = proa_scope_alloc((size_t)n * 8 + 8);
    for (int64_t i = 0; indices && i < n; i++) indices[i] = i;
    proa_tensors samples = proa_dataset_batch(d, indices, n);
    proa_dataset_free(d);
    if (samples.count == 0) return NULL;
    for (int i = 0; i < proa_ndim(input); i++) shape[i] = proa_dim(input, i);
    proa_ints dims = {proa_ndim(input), shape, NULL, NULL};
    return proa_cast(proa_reshape(samples.at[0], dims), proa_dtype_of(input));
}

/* A small model, so that the example runs by itself. */
static void make_model(const char *prefix)
{
    proa_layer *net = proa_sequential(proa_linear_layer(4, 8), proa_tanh_layer(), proa_linear_layer(8, 3),
                                      proa_softmax_layer());
    proa_export(net, prefix, PROA_INPUT(-1, 4));
    proa_layer_free(net);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: load_and_predict <prefix or .pdmodel> [numbers.csv]\n");
        return 2;
    }
    const char *path = argv[1];
    if (strcmp(path, "--made-here") == 0) make_model(path = "made_here");
    proa_program *p = proa_program_load(path);
    if (!p) return proa_finish(stderr);
    int64_t n_in = proa_program_input_count(p), n_out = proa_program_output_count(p);
    for (int64_t i = 0; i < n_in; i++) describe("input ", proa_program_input(p, i));
    for (int64_t i = 0; i < n_out; i++) describe("output", proa_program_output(p, i));

    proa_tensors inputs = {n_in, proa_scope_alloc((size_t)(n_in + 1) * sizeof(proa_tensor *))};
    for (int64_t i = 0; inputs.at && i < n_in; i++)
        inputs.at[i] = i == 0 && argc > 2 ? read_input(argv[2], proa_program_input(p, i))
                                          : zeros_for(proa_program_input(p, i), 1);
    proa_executor *e = proa_executor_new(p);
    proa_tensors outputs = proa_executor_run(e, inputs);
    for (int64_t i = 0; i < outputs.count; i++) proa_print(outputs.at[i], stdout);
    proa_executor_free(e);
    proa_program_free(p);
    return proa_finish(stderr);
}
