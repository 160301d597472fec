/* Quantization after training: runs a program on samples, and replays it with fake quantizers at the operands
 * of convolutions and matrix products. At LSTMs and GRUs it quantizes the matrices alone, for which it needs
 * no samples: their INT8 kernel quantizes inputs and states in each run. Of embeddings it quantizes the
 * table. May use core, ops and jit. */
#include "calibrate.h"
#include "runtime.h"

#include "core/args_visit.h"
#include "core/deferred.h"
#include "impl/embedding.h"
#include "impl/matmul.h"
#include "impl/rnn.h"
#include "jit/ir/program.h"

#include <proa/ops/create.h>
#include <proa/ops/quantize.h>

typedef struct watched {
    const proa_var *var;
    proa__observed seen;
    proa_scale_algo algo;
    proa_tensor *quantized; /* in the replayed block; NULL: none yet */
} watched;

typedef struct quantizing {
    proa_program *program;
    const proa_instr *ops; /* of the main block, before the replay */
    const proa_quantize_opts *opts;
    int64_t bits;
    watched *activations;
    struct {
        const proa_var *var;
        proa_tensor *quantized;
    } * weights;
    int64_t n_activations, n_weights, n_ops;
    bool has_samples;
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

static bool is_weight_slot(const char *slot)
{
    return strcmp(slot, "Filter") == 0 || strcmp(slot, "Y") == 0 || strcmp(slot, "W") == 0;
}

/* The algorithm of an op's activation or weight. */
static proa_scale_algo algo_of(const quantizing *q, const char *op, bool weight)
{
    proa_scale_algo algo = !weight               ? q->opts->algo
                           : q->opts->per_tensor ? PROA_SCALE_ABS_MAX
                                                 : PROA_SCALE_CHANNELS;
    for (int64_t i = 0; i < q->opts->n_rules; i++) {
        const proa_scale_rule *rule = &q->opts->rules[i];
        if (is_weight_slot(rule->slot) == weight && proa__op_type_is(rule->op_type, op)) algo = rule->algo;
    }
    if (!weight) return algo == PROA_SCALE_CHANNELS ? PROA_SCALE_ABS_MAX : algo;
    return algo == PROA_SCALE_NONE || algo == PROA_SCALE_CHANNELS ? algo : PROA_SCALE_ABS_MAX;
}

static bool is_excluded(const quantizing *q, const proa_instr *instr)
{
    for (int64_t i = 0; i < q->opts->n_excluded; i++)
        if (instr - q->ops == q->opts->excluded[i]) return true;
    return algo_of(q, instr->op->name, true) == PROA_SCALE_NONE ||
           algo_of(q, instr->op->name, false) == PROA_SCALE_NONE;
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
        bool skipped = fits_matmul && ((skip && strcmp(w->name, skip) == 0) || is_excluded(q, instr));
        return fits_matmul && !skipped && proa__op_types_include(&types, products[k].op) ? &products[k]
                                                                                         : NULL;
    }
    return NULL;
}

int64_t proa__quantizable_matrices(const proa_instr *instr, const proa__op_types *types, const char *skip)
{
    const proa_rnn_args *a = strcmp(instr->op->name, "rnn") == 0 ? instr->args : NULL;
    if (!a || !proa__op_types_include(types, "rnn")) return 0;
    if (a->mode != PROA_RNN_MODE_LSTM && a->mode != PROA_RNN_MODE_GRU) return 0;
    for (int64_t i = 0; i < a->weight_list.count / 2; i++) {
        const proa_var *w = proa__slot_var(a->weight_list.at[i]);
        if (!is_float(w) || !w->persistable || !w->value) return 0;
        if (skip && strcmp(w->name, skip) == 0) return 0;
    }
    return a->weight_list.count / 2;
}

/* True for a lookup in a constant table that is to be quantized. */
static bool is_lookup(const quantizing *q, const proa_instr *instr)
{
    if (!q->opts->embeddings || strcmp(instr->op->name, "embedding") != 0) return false;
    const proa_var *w = operand(instr, 1);
    bool skipped = q->opts->skip && w && strcmp(w->name, q->opts->skip) == 0;
    return is_float(w) && w->persistable && w->value && !skipped && !is_excluded(q, instr);
}

static int64_t matrices_of(const quantizing *q, const proa_instr *instr)
{
    if (is_lookup(q, instr)) return 1;
    proa__op_types types = {q->opts->n_op_types, q->opts->op_types};
    return is_excluded(q, instr) ? 0 : proa__quantizable_matrices(instr, &types, q->opts->skip);
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
    int64_t matrices = 0;
    q->ops = root->ops;
    for (int32_t i = 0; i < root->n_ops; i++) matrices += matrices_of(q, &root->ops[i]);
    q->activations = proa_scope_alloc(((size_t)root->n_ops + 1) * sizeof *q->activations);
    q->weights = proa_scope_alloc(((size_t)(root->n_ops + matrices) + 1) * sizeof *q->weights);
    if (!q->activations || !q->weights) return proa_error();
    bool has_products = false;
    for (int32_t i = 0; i < root->n_ops; i++) {
        if (!product_of(q, &root->ops[i])) continue;
        has_products = true;
        const proa_var *x = operand(&root->ops[i], 0);
        if (!q->has_samples || activation(q, x)) continue;
        q->activations[q->n_activations++] =
            (watched){.var = x, .algo = algo_of(q, root->ops[i].op->name, false)};
    }
    if (q->n_activations || matrices) return PROA_OK;
    if (has_products)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "program_quantize: expected samples, got none: only LSTM and GRU do without, and the "
            "program has no such op with float32 weights");
    return proa_fail(
        PROA_ERR_UNSUPPORTED,
        "program_quantize: the program has no convolution, product of an activation and a float32 "
        "weight, LSTM or GRU");
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
            if (bins && q->activations[k].algo != PROA_SCALE_KL) continue;
            PROA_TRY(bins ? proa__observe_bins(seen, values.at[k])
                          : proa__observe_largest(seen, values.at[k]));
        }
    }
    return PROA_OK;
}

/* Gives a copy of a program weights of its own where the file's have not been read, so that their floats are
 * freed with the copy. */
static proa_status read_again(proa_program *copy)
{
    PROA_SCOPED;
    proa_block *root = proa__root(copy);
    for (int32_t i = 0; i < root->n_vars; i++) {
        proa_var *v = root->vars[i];
        proa_tensor *again = v->persistable && v->value ? proa__deferred_again(v->value) : v->value;
        if (again != v->value) PROA_TRY(proa_error() ? proa_error() : proa__var_set_value(root, v, again));
    }
    return PROA_OK;
}

/* Runs a copy of the program whose outputs are the activations. */
static proa_status calibrate(quantizing *q, proa_samples samples)
{
    proa_program *p = proa_program_clone(q->program, true);
    proa_tensors outs = {q->n_activations, proa_scope_alloc((size_t)q->n_activations * sizeof *outs.at)};
    proa_executor *e = NULL;
    if (p && read_again(p) != PROA_OK) outs.at = NULL;
    for (int64_t i = 0; p && outs.at && i < outs.count; i++)
        outs.at[i] = proa_program_find(p, q->activations[i].var->name);
    if (p && outs.at && proa_program_set_outputs(p, outs) == PROA_OK) e = proa_executor_new(p);
    if (e) run_batches(q, e, samples, false);
    bool bins = false;
    for (int64_t i = 0; i < q->n_activations; i++) bins |= q->activations[i].algo == PROA_SCALE_KL;
    if (e && proa_error() == PROA_OK && bins) run_batches(q, e, samples, true);
    proa_executor_free(e);
    proa_program_free(p);
    return proa_error();
}

static double scale_of(const quantizing *q, const watched *a, int64_t batches)
{
    const proa__observed *seen = &a->seen;
    double v = a->algo == PROA_SCALE_AVG  ? seen->sum / (double)batches
               : a->algo == PROA_SCALE_KL ? proa__scale_of_divergence(seen, q->bits)
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

static proa_tensor *quantize_weight(quantizing *q, const proa_instr *instr, const proa_var *v, proa_tensor *w,
                                    int axis)
{
    for (int64_t i = 0; i < q->n_weights; i++)
        if (q->weights[i].var == v) return q->weights[i].quantized;
    proa_tensor *made =
        algo_of(q, instr->op->name, true) == PROA_SCALE_ABS_MAX
            ? proa_fake_quantize_dequantize_abs_max(w, .bit_length = q->bits).out
            : proa_fake_channel_wise_quantize_dequantize_abs_max(w, .bit_length = q->bits, .quant_axis = axis)
                  .out;
    q->weights[q->n_weights].var = v;
    q->weights[q->n_weights++].quantized = made;
    return made;
}

static proa_status quantize_table(quantizing *q, const proa_instr *instr, proa_embedding_args *a)
{
    a->weight = quantize_weight(q, instr, operand(instr, 1), a->weight, 0);
    q->n_ops++;
    return a->weight ? proa_call_op(instr->op, a) : proa_error();
}

static proa_status quantize_matrices(quantizing *q, const proa_instr *instr, proa_rnn_args *a, int64_t n)
{
    const proa_rnn_args *old = instr->args;
    proa_tensor **list = proa_scope_alloc((size_t)a->weight_list.count * sizeof *list);
    if (!list) return proa_error();
    for (int64_t i = 0; i < a->weight_list.count; i++) {
        proa_tensor *w = a->weight_list.at[i];
        list[i] = i < n ? quantize_weight(q, instr, proa__slot_var(old->weight_list.at[i]), w, 0) : w;
        if (!list[i]) return proa_error();
    }
    a->weight_list.at = list; /* the replay owns the list that was there */
    q->n_ops++;
    return proa_call_op(instr->op, a);
}

static proa_status add_quantizers(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    quantizing *q = context;
    bool in_root = block == proa__root(q->program);
    if (in_root && is_lookup(q, instr)) return quantize_table(q, instr, args);
    int64_t matrices = in_root ? matrices_of(q, instr) : 0;
    if (matrices) return quantize_matrices(q, instr, args, matrices);
    const struct product *kind = in_root && q->has_samples ? product_of(q, instr) : NULL;
    if (!kind) return proa_call_op(instr->op, args);
    const proa_matmul_args *matmul = strcmp(kind->op, "matmul") == 0 ? args : NULL;
    proa_tensor **x = proa_field_tensor(&instr->op->fields[0], args);
    proa_tensor **w = proa_field_tensor(&instr->op->fields[1], args);
    proa_tensor *quantized = quantize_activation(q, activation(q, operand(instr, 0)), *x);
    proa_tensor *weight = quantized ? quantize_weight(q, instr, operand(instr, 1), *w,
                                                      matmul && matmul->transpose_y ? 0 : kind->axis)
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
    if (q->n_activations) PROA_TRY(calibrate(q, samples));
    for (int64_t i = 0; i < q->n_activations; i++)
        q->activations[i].seen.largest = scale_of(q, &q->activations[i], samples.count);
    q->program->version++;
    return proa__program_replay(q->program, &(proa__replay_hook){add_quantizers, q});
}

static proa_status check(const proa_program *p, const proa_quantize_opts *opts, int64_t bits)
{
    PROA_TRY(proa_error());
    if (!p) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "program_quantize: expected a program, got NULL");
    bool divergence = opts->algo == PROA_SCALE_KL;
    for (int64_t i = 0; i < opts->n_rules; i++) divergence |= opts->rules[i].algo == PROA_SCALE_KL;
    int64_t most = divergence ? 11 : 16;
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
    quantizing q = {.program = p,
                    .opts = &opts,
                    .bits = opts.bits ? opts.bits : 8,
                    .has_samples = samples.batch && samples.count > 0};
    PROA_TRY(check(p, &opts, q.bits));
    PROA_SCOPED;
    proa_status status = quantize(&q, samples);
    for (int64_t i = 0; i < q.n_activations; i++) proa__free(q.activations[i].seen.bins);
    if (counts) *counts = (proa_quantize_counts){q.n_ops, q.n_activations, q.n_weights};
    return status;
}
