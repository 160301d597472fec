/* proa quantize: calibrates a model on samples and writes it with fake quantizers at the operands of
 * convolutions and matrix products: one scale a tensor for activations, one a channel for weights. Uses
 * cli.h. */
#include "cli.h"

#include <proa/wire.h>

#include <string.h>

typedef struct job {
    const char *model, *output, *skip;
    bool average, whole;
    int64_t bits, n_data;
    const char **data;
    cli_model m;
    struct watched {
        const char *name;
        double sum, most;
    } * watched; /* activations that are quantized */
    int64_t n_watched, n_weights, n_ops;
} job;

/* ---- which operators --------------------------------------------------------------------- */

static const struct kind {
    const char *type, *act, *weight;
    int64_t axis; /* the weight's axis of output channels */
} kinds[] = {{"conv2d", "Input", "Filter", 0},
             {"depthwise_conv2d", "Input", "Filter", 0},
             {"conv2d_transpose", "Input", "Filter", 1},
             {"mul", "X", "Y", 1},
             {"matmul", "X", "Y", 1},
             {"matmul_v2", "X", "Y", 1}};

static const char *slot_var(const cli_op *op, const char *slot)
{
    for (int64_t i = 0; i < op->n_inputs; i++)
        if (strcmp(op->inputs[i].name, slot) == 0)
            return op->inputs[i].count == 1 ? op->inputs[i].vars[0] : NULL;
    return NULL;
}

static bool is_float(const proa_var_info *v) { return v && proa_dtype_of(v->tensor) == PROA_F32; }

/* The kind of an op with one activation and one weight that is quantized; NULL for other ops and those that
 * --skip names. */
static const struct kind *kind_of(const job *j, const cli_op *op)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(op->type, kinds[k].type) != 0) continue;
        const char *act = slot_var(op, kinds[k].act), *weight = slot_var(op, kinds[k].weight);
        if (!act || !weight || (j->skip && strcmp(weight, j->skip) == 0)) return NULL;
        const proa_var_info *a = cli_find(&j->m, 0, act), *w = cli_find(&j->m, 0, weight);
        bool fits = is_float(a) && is_float(w) && !a->persistable && w->persistable && w->has_value;
        return fits ? &kinds[k] : NULL;
    }
    return NULL;
}

static bool transposed(const cli_op *op)
{
    const proa_op_attr *a = cli_attr(op, "trans_y");
    if (!a) a = cli_attr(op, "transpose_Y");
    return a && a->i;
}

/* ---- scales ---------------------------------------------------------------------------- */

static int64_t watched_index(const job *j, const char *name)
{
    for (int64_t i = 0; i < j->n_watched; i++)
        if (strcmp(j->watched[i].name, name) == 0) return i;
    return -1;
}

static proa_status watch(job *j)
{
    const cli_block *b = &j->m.blocks[0];
    j->watched = cli_array((size_t)b->n_ops + 1, sizeof *j->watched);
    if (!j->watched) return proa_error();
    for (int64_t i = 0; i < b->n_ops; i++) {
        const struct kind *k = kind_of(j, b->ops[i]);
        const char *name = k ? slot_var(b->ops[i], k->act) : NULL;
        if (name && watched_index(j, name) < 0) j->watched[j->n_watched++].name = name;
    }
    if (j->n_watched) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED,
                     "'%s' has no convolution or product of an activation and a float32 weight", j->model);
}

static proa_status see(job *j, proa_tensors values)
{
    for (int64_t i = 0; i < values.count; i++) {
        double v = 0;
        if (proa_numel(values.at[i]) == 0) continue;
        PROA_TRY(proa_copy_out(proa_cast(proa_max(proa_abs(values.at[i])), PROA_F64), &v, sizeof v));
        j->watched[i].sum += v;
        if (v > j->watched[i].most) j->watched[i].most = v;
    }
    return PROA_OK;
}

static proa_status run_batch(job *j, proa_executor *e, const char *path)
{
    cli_named *items = NULL;
    int64_t n = 0, count = proa_program_input_count(j->m.program);
    PROA_TRY(cli_npz_load(path, &items, &n));
    proa_tensors feed = {count, cli_array((size_t)count + 1, sizeof *feed.at)};
    if (!feed.at) return proa_error();
    for (int64_t i = 0; i < count; i++) {
        const proa_tensor *spec = proa_program_input(j->m.program, i);
        for (int64_t k = 0; k < n; k++)
            if (strcmp(items[k].name, proa_name_of(spec)) == 0) feed.at[i] = items[k].tensor;
        if (!feed.at[i])
            return proa_fail(PROA_ERR_NOT_FOUND, "'%s' has no array '%s', which the model expects (%s)", path,
                             proa_name_of(spec), cli_shape(spec));
    }
    proa_tensors values = proa_executor_run(e, feed);
    return proa_error() ? proa_error() : see(j, values);
}

/* Runs a copy of the program, with the activations as outputs, on all samples, and records their largest
 * magnitudes. */
static proa_status calibrate(job *j)
{
    proa_program *p = proa_program_clone(j->m.program, true);
    if (!p) return proa_error();
    proa_tensors outs = {j->n_watched, cli_array((size_t)j->n_watched, sizeof *outs.at)};
    for (int64_t i = 0; outs.at && i < j->n_watched; i++)
        outs.at[i] = proa_program_find(p, j->watched[i].name);
    proa_executor *e = NULL;
    if (outs.at && proa_program_set_outputs(p, outs) == PROA_OK) e = proa_executor_new(p);
    for (int64_t i = 0; e && i < j->n_data && proa_error() == PROA_OK; i++)
        PROA_SCOPE {
            if (run_batch(j, e, j->data[i]) != PROA_OK) break;
        }
    proa_executor_free(e);
    proa_program_free(p);
    return proa_error();
}

static double scale_of(const job *j, int64_t i)
{
    double v = j->average ? j->watched[i].sum / (double)j->n_data : j->watched[i].most;
    return v > 0 ? v : 1e-8;
}

/* ---- the quantized program ------------------------------------------------------------------ */

typedef struct builder {
    const job *j;
    proa_program *to;
    const char **renamed; /* by activation: name of its quantized variable; NULL: none yet */
    struct pair {
        const char *name, *quantized;
    } * weights;
    int64_t n_weights;
} builder;

static proa_op_slot slot(const char *name, const char *const *var) { return (proa_op_slot){name, 1, var}; }

static proa_op_attr number(const char *name, int type, int64_t i, double f)
{
    return (proa_op_attr){.name = name, .type = type, .i = i, .f = f};
}

static proa_status append(const builder *b, const char *type, const proa_op_slot *in, int64_t n_in,
                          const proa_op_slot *out, const proa_op_attr *attrs, int64_t n_attrs)
{
    proa_op_desc op = {.type = type,
                       .n_inputs = n_in,
                       .n_outputs = 2,
                       .n_attrs = n_attrs,
                       .inputs = in,
                       .outputs = out,
                       .attrs = attrs};
    return proa_program_append(b->to, &op, -1);
}

/* The name of an activation's quantized variable, for which it adds a quantizer once. NULL on error. */
static const char *quantized_activation(builder *b, int64_t i)
{
    const char *name = b->j->watched[i].name;
    if (b->renamed[i]) return b->renamed[i];
    const char *scale = cli_format("%s@scale", name), *out = cli_format("%s.quantized.dequantized", name);
    if (!scale || !out || !proa_program_persistable(b->to, scale, PROA_SHAPE(1), PROA_F32)) return NULL;
    proa_tensor *value = proa_full(PROA_SHAPE(1), PROA_SCALAR(scale_of(b->j, i)), .dtype = PROA_F32);
    if (!value || proa_program_bind(b->to, scale, value) != PROA_OK) return NULL;
    proa_op_slot in[] = {slot("X", &name), slot("InScale", &scale)};
    proa_op_slot made[] = {slot("Out", &out), slot("OutScale", &scale)};
    proa_op_attr attrs[] = {number("bit_length", PROA_WIRE_INT, b->j->bits, 0),
                            number("is_test", PROA_WIRE_BOOLEAN, 1, 0)};
    if (append(b, "fake_quantize_dequantize_moving_average_abs_max", in, 2, made, attrs, 2)) return NULL;
    return b->renamed[i] = out;
}

/* The name of a weight's quantized variable; the quantizer op computes the channels' scales itself. */
static const char *quantized_weight(builder *b, const cli_op *op, const struct kind *k)
{
    const char *name = slot_var(op, k->weight);
    for (int64_t i = 0; i < b->n_weights; i++)
        if (strcmp(b->weights[i].name, name) == 0) return b->weights[i].quantized;
    const char *scale = cli_format("%s@scale", name), *out = cli_format("%s.quantized.dequantized", name);
    if (!scale || !out) return NULL;
    int64_t axis = k->axis && transposed(op) ? 0 : k->axis;
    proa_op_slot in[] = {slot("X", &name)}, made[] = {slot("Out", &out), slot("OutScale", &scale)};
    proa_op_attr attrs[] = {number("bit_length", PROA_WIRE_INT, b->j->bits, 0),
                            number("quant_axis", PROA_WIRE_INT, axis, 0)};
    if (append(b,
               b->j->whole ? "fake_quantize_dequantize_abs_max"
                           : "fake_channel_wise_quantize_dequantize_abs_max",
               in, 1, made, attrs, b->j->whole ? 1 : 2))
        return NULL;
    b->weights[b->n_weights++] = (struct pair){name, out};
    return out;
}

/* Makes the input slot `name` of an op read the variable *var. */
static void read_instead(cli_op *op, const char *name, const char *const *var)
{
    for (int64_t i = 0; i < op->n_inputs; i++)
        if (strcmp(op->inputs[i].name, name) == 0) op->inputs[i].vars[0] = *var;
}

static proa_status add_op(builder *b, cli_op *op)
{
    const struct kind *k = kind_of(b->j, op);
    if (k) {
        int64_t i = watched_index(b->j, slot_var(op, k->act));
        const char *act = quantized_activation(b, i), *weight = act ? quantized_weight(b, op, k) : NULL;
        if (!weight) return proa_error();
        read_instead(op, k->act, &act);
        read_instead(op, k->weight, &weight);
    }
    proa_op_slot *in = cli_array((size_t)op->n_inputs + 1, sizeof *in);
    proa_op_slot *out = cli_array((size_t)op->n_outputs + 1, sizeof *out);
    if (!in || !out) return proa_error();
    for (int64_t i = 0; i < op->n_inputs; i++)
        in[i] = (proa_op_slot){op->inputs[i].name, op->inputs[i].count, op->inputs[i].vars};
    for (int64_t i = 0; i < op->n_outputs; i++)
        out[i] = (proa_op_slot){op->outputs[i].name, op->outputs[i].count, op->outputs[i].vars};
    proa_op_desc desc = {op->type, op->role, op->n_inputs, op->n_outputs, op->n_attrs, in, out, op->attrs};
    return proa_program_append(b->to, &desc, -1);
}

static proa_status add_inputs(const builder *b)
{
    const proa_program *from = b->j->m.program;
    for (int64_t i = 0; i < proa_program_input_count(from); i++) {
        const proa_tensor *t = proa_program_input(from, i);
        proa_ints shape = {proa_ndim(t), proa_shape_of(t), NULL, NULL};
        proa_input_spec spec = {proa_name_of(t), shape, proa_dtype_of(t)};
        if (!proa_program_data(b->to, &spec)) return proa_error();
    }
    return PROA_OK;
}

static proa_status add_parameters(const builder *b)
{
    const cli_block *root = &b->j->m.blocks[0];
    for (int64_t i = 0; i < root->n_vars; i++) {
        const proa_var_info *v = &root->vars[i];
        if (!v->persistable || !v->has_value) continue;
        proa_ints shape = {proa_ndim(v->tensor), proa_shape_of(v->tensor), NULL, NULL};
        if (!proa_program_persistable(b->to, v->name, shape, proa_dtype_of(v->tensor))) return proa_error();
        PROA_TRY(proa_program_bind(b->to, v->name, proa_program_value(b->j->m.program, v->name)));
        PROA_TRY(proa_program_mark_parameter(b->to, v->name, v->is_parameter));
    }
    return PROA_OK;
}

static proa_status set_outputs(const builder *b)
{
    int64_t n = proa_program_output_count(b->j->m.program);
    proa_tensors outs = {n, cli_array((size_t)n + 1, sizeof *outs.at)};
    for (int64_t i = 0; outs.at && i < n; i++) {
        const char *name = proa_name_of(proa_program_output(b->j->m.program, i));
        if (!(outs.at[i] = proa_program_find(b->to, name)))
            return proa_error() ? proa_error() : proa_fail(PROA_ERR_INTERNAL, "output '%s' is lost", name);
    }
    return outs.at ? proa_program_set_outputs(b->to, outs) : proa_error();
}

static proa_status build(job *j, builder *b)
{
    cli_block *root = &j->m.blocks[0];
    b->renamed = cli_array((size_t)j->n_watched + 1, sizeof *b->renamed);
    b->weights = cli_array((size_t)root->n_ops + 1, sizeof *b->weights);
    if (!b->renamed || !b->weights || !(b->to = proa_program_new())) return proa_error();
    PROA_TRY(add_inputs(b));
    PROA_TRY(add_parameters(b));
    for (int64_t i = 0; i < root->n_ops; i++) {
        j->n_ops += kind_of(j, root->ops[i]) != NULL;
        PROA_TRY(add_op(b, root->ops[i]));
    }
    PROA_TRY(set_outputs(b));
    PROA_TRY(proa_program_save(b->to, j->output));
    printf("%s: %lld operators, %lld activations and %lld weights of %lld bits\n", j->output,
           (long long)j->n_ops, (long long)j->n_watched, (long long)b->n_weights, (long long)j->bits);
    return PROA_OK;
}

static proa_status quantize(job *j)
{
    PROA_TRY(cli_model_load(&j->m, j->model));
    if (j->m.n_blocks > 1)
        return proa_fail(PROA_ERR_UNSUPPORTED, "'%s' has branches or loops, which are not quantized",
                         j->model);
    PROA_TRY(watch(j));
    PROA_TRY(calibrate(j));
    builder b = {.j = j};
    proa_status status = build(j, &b);
    proa_program_free(b.to);
    return status;
}

int cli_quantize(cli_args *a)
{
    job j = {.bits = 8, .data = cli_array((size_t)a->count + 1, sizeof *j.data)};
    const char *algo = "abs_max", *weights = "channel";
    proa_status status = proa_error();
    for (cli_kind kind; status == PROA_OK && (kind = cli_next(a)) != CLI_END;) {
        if (kind == CLI_FILE && !j.model) j.model = a->value;
        else if (cli_is(a, "data")) status = cli_value(a, &j.data[j.n_data++]);
        else if (cli_is(a, "output")) status = cli_value(a, &j.output);
        else if (cli_is(a, "algo")) status = cli_value(a, &algo);
        else if (cli_is(a, "weights")) status = cli_value(a, &weights);
        else if (cli_is(a, "skip")) status = cli_value(a, &j.skip);
        else if (cli_is(a, "bits")) status = cli_int(a, 2, &j.bits);
        else status = cli_unknown(a);
    }
    j.average = strcmp(algo, "avg") == 0, j.whole = strcmp(weights, "tensor") == 0;
    if (status == PROA_OK && (!j.model || !j.output || !j.n_data))
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT,
                           "expected proa quantize MODEL --data FILE.npz --output PREFIX");
    if (status == PROA_OK && !j.average && strcmp(algo, "abs_max") != 0)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "--algo %s: expected abs_max or avg", algo);
    if (status == PROA_OK && !j.whole && strcmp(weights, "channel") != 0)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "--weights %s: expected channel or tensor", weights);
    if (status == PROA_OK && j.bits > 16)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "--bits %lld: expected 2 to 16", (long long)j.bits);
    if (status == PROA_OK) status = quantize(&j);
    cli_model_free(&j.m);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
