/* proa quantize: calibrates a model on samples and writes it with fake quantizers at the operands of
 * convolutions and matrix products. Uses cli.h. */
#include "cli.h"

#include <proa/inference.h>

#include <string.h>

typedef struct job {
    const char *model, *output;
    proa_quantize_opts opts;
    int64_t n_data;
    const char **data;
    cli_model m;
} job;

/* The arrays of a file, in the order of the program's inputs. */
static proa_tensors read_batch(int64_t i, void *context)
{
    const job *j = context;
    const char *path = j->data[i];
    cli_named *items = NULL;
    int64_t n = 0, count = proa_program_input_count(j->m.program);
    proa_tensors feed = {count, cli_array((size_t)count + 1, sizeof *feed.at)};
    if (!feed.at || cli_npz_load(path, &items, &n) != PROA_OK) return feed;
    for (int64_t k = 0; k < count; k++) {
        const proa_tensor *spec = proa_program_input(j->m.program, k);
        for (int64_t at = 0; at < n; at++)
            if (strcmp(items[at].name, proa_name_of(spec)) == 0) feed.at[k] = items[at].tensor;
        if (feed.at[k]) continue;
        proa_fail(PROA_ERR_NOT_FOUND, "'%s' has no array '%s', which the model expects (%s)", path,
                  proa_name_of(spec), cli_shape(spec));
        break;
    }
    return feed;
}

static proa_status quantize(job *j)
{
    proa_quantize_counts made;
    PROA_TRY(cli_model_load(&j->m, j->model));
    proa_samples samples = {j->n_data, read_batch, j};
    PROA_TRY(proa_program_quantize(j->m.program, samples, j->opts, &made));
    PROA_TRY(proa_program_save(j->m.program, j->output));
    printf("%s: %lld operators, %lld activations and %lld weights of %lld bits\n", j->output,
           (long long)made.ops, (long long)made.activations, (long long)made.weights,
           (long long)j->opts.bits);
    return PROA_OK;
}

static proa_status choose(job *j, const char *algo, const char *weights)
{
    static const char *const names[] = {"abs_max", "avg", "KL"}; /* by proa_scale_algo */
    int at = 0;
    while (at < 3 && strcmp(algo, names[at]) != 0) at++;
    j->opts.algo = (proa_scale_algo)at;
    j->opts.per_tensor = strcmp(weights, "tensor") == 0;
    if (!j->model || !j->output)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "expected proa quantize MODEL --data FILE.npz --output PREFIX; only LSTM and GRU need no "
            "data");
    if (at == 3) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--algo %s: expected abs_max, avg or KL", algo);
    if (!j->opts.per_tensor && strcmp(weights, "channel") != 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--weights %s: expected channel or tensor", weights);
    return PROA_OK;
}

int cli_quantize(cli_args *a)
{
    job j = {.opts.bits = 8, .data = cli_array((size_t)a->count + 1, sizeof *j.data)};
    const char *algo = "abs_max", *weights = "channel";
    proa_status status = proa_error();
    for (cli_kind kind; status == PROA_OK && (kind = cli_next(a)) != CLI_END;) {
        if (kind == CLI_FILE && !j.model) j.model = a->value;
        else if (cli_is(a, "data")) status = cli_value(a, &j.data[j.n_data++]);
        else if (cli_is(a, "output")) status = cli_value(a, &j.output);
        else if (cli_is(a, "algo")) status = cli_value(a, &algo);
        else if (cli_is(a, "weights")) status = cli_value(a, &weights);
        else if (cli_is(a, "skip")) status = cli_value(a, &j.opts.skip);
        else if (cli_is(a, "embeddings")) j.opts.embeddings = true;
        else if (cli_is(a, "bits")) status = cli_int(a, 2, &j.opts.bits);
        else status = cli_model_option(a);
    }
    if (status == PROA_OK) status = choose(&j, algo, weights);
    if (status == PROA_OK) status = quantize(&j);
    cli_model_free(&j.m);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
