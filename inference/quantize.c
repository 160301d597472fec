/* Quantization after training: runs a program on samples, and replays it with fake quantizers at the operands
 * of convolutions and matrix products. May use core, ops and jit. */
#include "calibrate.h"
#include "runtime.h"

#include "core/args_visit.h"
#include "impl/matmul.h"
#include "jit/ir/program.h"

#include <proa/ops/create.h>
#include <proa/ops/quantize.h>

typedef struct watched {
    const proa_var *var;
    proa__observed seen;
    proa_tensor *quantized; /* in the replayed block; NULL: none yet */
} watched;

typedef struct quantizing {
    proa_program *program;
    const proa_quantize_opts *opts;
    int64_t bits;
    watched *activations;
    struct {
        const proa_var *var;
        proa_tensor *quantized;
    } * weights;
    int64_t n_activations, n_weights, n_ops;
} quantizing;

/* ---- which ops -------------------------------------------------------------------------- */

/* Products whose first input is an activation and whose second is a weight; the weight's axis of output
 * channels. */
static const struct product {
    const char *op;
    int axis;
} products[] = {{"conv2d", 0}, {"conv2d_transpose", 1}, {"linear", 1}, {"matmul", 1}};

static proa_var *operand(const proa_instr *instr, int i)
{
    return proa__slot_var(*proa_field_tensor(&instr->op->fields[i], instr->args));
}

static bool is_float(const proa_var *v) { return v && v->handle->dtype == PROA_F32; }

/* The entry of a product that is to be quantized; NULL for all other ops. */
static const struct product *product_of(const quantizing *q, const proa_instr *instr)
{
    proa__op_types types = {q->opts->n_op_types, q->opts->op_types};
    const char *skip = q->opts->skip;
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        if (strcmp(instr->op->name, products[k].op) != 0) continue;
        const proa_var *x = operand(instr, 0), *w = operand(instr, 1);
        bool fits = is_float(x) && is_float(w) && !x->persistable && w->persistable && w->value;
        bool fits_matmul = fits && (k < 3 || w->handle->ndim == 2);
        bool skipped = fits_matmul && skip && strcmp(w->name, skip) == 0;
        return fits_matmul && !skipped && proa__op_types_include(&types, products[k].op) ? &products[k]
                                                                                         : NULL;
    }
    return NULL;
}

static watched *activation(const quantizing *q, const proa_var *v)
{
    for (int64_t i = 0; i < q->n_activations; i++)
        if (q->activations[i].var == v) return &q->activations[i];
    return NULL;
}

static proa_status find_products(quantizing *q)
{
    const proa_block *root = proa__root(q->program);
    q->activations = proa_scope_alloc(((size_t)root->n_ops + 1) * sizeof *q->activations);
    q->weights = proa_scope_alloc(((size_t)root->n_ops + 1) * sizeof *q->weights);
    if (!q->activations || !q->weights) return proa_error();
    for (int32_t i = 0; i < root->n_ops; i++) {
        if (!product_of(q, &root->ops[i])) continue;
        const proa_var *x = operand(&root->ops[i], 0);
        if (!activation(q, x)) q->activations[q->n_activations++] = (watched){.var = x};
    }
    if (q->n_activations) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED,
                     "program_quantize: the program has no convolution or product of an activation and a "
                     "float32 weight");
}

/* ---- samples ---------------------------------------------------------------------------- */

static proa_status run_batches(quantizing *q, proa_executor *e, proa_samples samples, bool bins)
{
    for (int64_t i = 0; i < samples.count; i++) {
        PROA_SCOPED;
        proa_tensors feed = samples.batch(i, samples.context);
        PROA_TRY(proa_error());
        proa_tensors values = proa_executor_run(e, feed);
        PROA_TRY(proa_error());
        for (int64_t k = 0; k < values.count; k++) {
            proa__observed *seen = &q->activations[k].seen;
            PROA_TRY(bins ? proa__observe_bins(seen, values.at[k])
                          : proa__observe_largest(seen, values.at[k]));
        }
    }
    return PROA_OK;
}

/* Runs a copy of the program whose outputs are the activations. */
static proa_status calibrate(quantizing *q, proa_samples samples)
{
    proa_program *p = proa_program_clone(q->program, true);
    proa_tensors outs = {q->n_activations, proa_scope_alloc((size_t)q->n_activations * sizeof *outs.at)};
    proa_executor *e = NULL;
    for (int64_t i = 0; p && outs.at && i < outs.count; i++)
        outs.at[i] = proa_program_find(p, q->activations[i].var->name);
    if (p && outs.at && proa_program_set_outputs(p, outs) == PROA_OK) e = proa_executor_new(p);
    if (e) run_batches(q, e, samples, false);
    if (e && proa_error() == PROA_OK && q->opts->algo == PROA_SCALE_KL) run_batches(q, e, samples, true);
    proa_executor_free(e);
    proa_program_free(p);
    return proa_error();
}

static double scale_of(const quantizing *q, const proa__observed *seen, int64_t batches)
{
    double v = q->opts->algo == PROA_SCALE_AVG  ? seen->sum / (double)batches
               : q->opts->algo == PROA_SCALE_KL ? proa__scale_of_divergence(seen, q->bits)
                                                : seen->largest;
    return v > 0 ? v : 1e-8;
}

/* ---- the quantized program -------------------------------------------------------------- */

/* A concrete scale, named after the variable that it belongs to. */
static proa_tensor *scale_tensor(const quantizing *q, const proa_var *v, double scale)
{
    proa_program *open = proa_program_open(NULL);
    proa_tensor *t = proa_full(PROA_SHAPE(1), PROA_SCALAR(scale), .dtype = PROA_F32);
    proa_program_open(open);
    char name[256];
    int n = snprintf(name, sizeof name, "%s@scale", v->name);
    bool is_free = n > 0 && n < (int)sizeof name && !proa__var_find(proa__root(q->program), name);
    return t && is_free && proa_set_name(t, name) != PROA_OK ? NULL : t;
}

static proa_tensor *quantize_activation(const quantizing *q, watched *a, proa_tensor *x)
{
    if (a->quantized) return a->quantized;
    proa_tensor *scale = scale_tensor(q, a->var, a->seen.largest);
    if (!scale) return NULL;
    a->quantized = proa_fake_quantize_dequantize_moving_average_abs_max(
        x, scale, PROA_NONE, PROA_NONE, .bit_length = q->bits, .is_test = true);
    return a->quantized;
}

static proa_tensor *quantize_weight(quantizing *q, const proa_var *v, proa_tensor *w, int axis)
{
    for (int64_t i = 0; i < q->n_weights; i++)
        if (q->weights[i].var == v) return q->weights[i].quantized;
    proa_tensor *made =
        q->opts->per_tensor
            ? proa_fake_quantize_dequantize_abs_max(w, .bit_length = q->bits).out
            : proa_fake_channel_wise_quantize_dequantize_abs_max(w, .bit_length = q->bits, .quant_axis = axis)
                  .out;
    q->weights[q->n_weights].var = v;
    q->weights[q->n_weights++].quantized = made;
    return made;
}

static proa_status add_quantizers(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    quantizing *q = context;
    const struct product *kind = block == proa__root(q->program) ? product_of(q, instr) : NULL;
    if (!kind) return proa_call_op(instr->op, args);
    const proa_matmul_args *matmul = strcmp(kind->op, "matmul") == 0 ? args : NULL;
    proa_tensor **x = proa_field_tensor(&instr->op->fields[0], args);
    proa_tensor **w = proa_field_tensor(&instr->op->fields[1], args);
    proa_tensor *quantized = quantize_activation(q, activation(q, operand(instr, 0)), *x);
    proa_tensor *weight =
        quantized ? quantize_weight(q, operand(instr, 1), *w, matmul && matmul->transpose_y ? 0 : kind->axis)
                  : NULL;
    if (!weight) return proa_error();
    *x = quantized; /* the replay owns a copy of args, not these slots */
    *w = weight;
    q->n_ops++;
    return proa_call_op(instr->op, args);
}

static proa_status quantize(quantizing *q, proa_samples samples)
{
    PROA_TRY(find_products(q));
    PROA_TRY(calibrate(q, samples));
    for (int64_t i = 0; i < q->n_activations; i++)
        q->activations[i].seen.largest = scale_of(q, &q->activations[i].seen, samples.count);
    q->program->version++;
    return proa__program_replay(q->program, &(proa__replay_hook){add_quantizers, q});
}

static proa_status check(const proa_program *p, proa_samples samples, const proa_quantize_opts *opts,
                         int64_t bits)
{
    PROA_TRY(proa_error());
    if (!p || !samples.batch || samples.count < 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "program_quantize: expected a program and samples, got %s",
                         p ? "no samples" : "NULL");
    int64_t most = opts->algo == PROA_SCALE_KL ? 11 : 16;
    if (bits < 2 || bits > most)
        return proa_fail(PROA_ERR_OUT_OF_RANGE, "program_quantize: bits %lld; expected 2 to %lld",
                         (long long)bits, (long long)most);
    if (proa_program_block_count(p) > 1)
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "program_quantize: the program has branches or loops, which are not quantized");
    return PROA_OK;
}

proa_status proa_program_quantize(proa_program *p, proa_samples samples, proa_quantize_opts opts,
                                  proa_quantize_counts *counts)
{
    quantizing q = {.program = p, .opts = &opts, .bits = opts.bits ? opts.bits : 8};
    PROA_TRY(check(p, samples, &opts, q.bits));
    PROA_SCOPED;
    proa_status status = quantize(&q, samples);
    for (int64_t i = 0; i < q.n_activations; i++) proa__free(q.activations[i].seen.bins);
    if (counts) *counts = (proa_quantize_counts){q.n_ops, q.n_activations, q.n_weights};
    return status;
}
