/* Writes the CUDA source of a fused elementwise chain: one line per step, which calls the step's scalar
 * formula (ops/elementwise/formulas.h). */
#include "fuse.h"

#include "ops/elementwise/fused_steps.h"

#include <proa/ops.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define PROA_FORMULAS_CHAIN 1
#include "formulas_cuda.inc" /* cuda_chain_formulas: op, whether a flag chooses between two */

static const char *const names[] = {
#define PROA_X(name, flagged) #name,
    PROA_CHAIN_FORMULAS(PROA_X)
#undef PROA_X
        "scale",
    "clip", "pow", "cast", NULL};

const char *const *cuda_fuse_ops(void) { return names; }

static bool is_flagged(const char *op)
{
#define PROA_X(name, flagged) \
    if (!strcmp(op, #name)) return flagged;
    PROA_CHAIN_FORMULAS(PROA_X)
#undef PROA_X
    return false;
}

/* ---- text ---------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t n;
} text;

static void put(text *t, const char *format, ...) PROA_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->at + t->n, CUDA_FUSE_BYTES - t->n, format, list);
    va_end(list);
    if (n > 0) t->n += (size_t)n < CUDA_FUSE_BYTES - t->n ? (size_t)n : CUDA_FUSE_BYTES - 1 - t->n;
}

/* Writes v as a hexadecimal literal, so that the compiled constant has the same bits. */
static void put_number(text *t, double v)
{
    if (v != v) put(t, "(T)NAN");
    else if (isinf(v)) put(t, v < 0 ? "(T)-INFINITY" : "(T)INFINITY");
    else put(t, "(T)%a", v);
}

static double number(const proa_scalar *s, double fallback)
{
    if (s->kind == PROA_SCALAR_NONE) return fallback;
    return s->kind == PROA_SCALAR_FLOAT ? s->f : (double)s->i;
}

/* ---- steps --------------------------------------------------------------------------- */

static void put_operand(text *t, int in)
{
    if (in < 0) put(t, "t%d", ~in);
    else put(t, "x[%d]", in);
}

/* scale, clip and pow are functors that hold their numbers (ops/elementwise/cuda/numbers.h). */
static bool put_functor(text *t, const proa_chain_step *s, const void *args)
{
    if (!strcmp(s->op->name, "scale")) {
        const proa_scale_args *a = args;
        put(t, "scale_fn<T>{");
        put_number(t, number(&a->scale, 1));
        put(t, ", ");
        put_number(t, a->bias);
        put(t, ", %s}(", a->bias_after_scale ? "true" : "false");
    } else if (!strcmp(s->op->name, "clip")) {
        const proa_clip_args *a = args;
        put(t, "clip_fn<T>{");
        put_number(t, number(&a->min, -INFINITY));
        put(t, ", ");
        put_number(t, number(&a->max, INFINITY));
        put(t, "}(");
    } else if (!strcmp(s->op->name, "pow")) {
        const proa_pow_args *a = args;
        put(t, "power_fn<T>{");
        put_number(t, number(&a->y, 1));
        put(t, "}(");
    } else if (!strcmp(s->op->name, "cast")) {
        put(t, "("); /* a cast is the rounding that the caller writes around it */
    } else {
        return false;
    }
    put_operand(t, s->in[0]);
    put(t, ")");
    return true;
}

/* Whether the op has a formula for halves of its own (ops/elementwise/cuda/halves.h). */
static bool has_half_form(const char *op) { return !strcmp(op, "gelu") || !strcmp(op, "gelu_grad"); }

static void put_formula(text *t, const proa_chain_step *s, const void *args, proa_dtype made, bool wide)
{
    bool half = (made == PROA_F16 || made == PROA_BF16) && has_half_form(s->op->name);
    const char *suffix = half ? "half" : wide ? "F64" : "F32";
    bool flagged = is_flagged(s->op->name);
    const proa_field *attr = &s->op->fields[s->op->n_in];
    bool on = flagged && *(const bool *)proa_field_at(attr, args);
    put(t, "%s%s_%s(", s->op->name, flagged ? (on ? "_on" : "_off") : "", suffix);
    for (int i = 0; i < s->op->n_in; i++) {
        if (i) put(t, ", ");
        put_operand(t, s->in[i]);
    }
    for (int i = 0; i < s->op->n_attr && !flagged; i++) {
        put(t, ", ");
        const void *at = proa_field_at(&attr[i], args);
        put_number(t, attr[i].kind == PROA_FIELD_BOOL ? (double)*(const bool *)at : *(const double *)at);
    }
    put(t, ")");
}

static bool is_known(const char *name)
{
    for (const char *const *n = names; *n; n++)
        if (!strcmp(*n, name)) return true;
    return false;
}

static const char *c_type(proa_dtype d)
{
    return d == PROA_F16 ? "cuda_f16" : d == PROA_BF16 ? "cuda_bf16" : d == PROA_F32 ? "float" : "double";
}

/* Writes the chain's member `each`, which calls f.operand<dtype>(i) for its outputs, then its inputs. */
static void put_operands(text *t, const proa_steps *s, const proa_dtype *made, const proa_dtype *dtypes,
                         int n_inputs)
{
    int o = 0;
    put(t, "    template <class F> static CUDA_MEMBER void each(F &f)\n    {\n");
    for (int i = 0; i < s->count; i++)
        if (s->at[i].out) put(t, "        f.template operand<%s>(%d);\n", c_type(made[i]), o++);
    for (int i = 0; i < n_inputs; i++)
        put(t, "        f.template operand<%s>(%d);\n", c_type(dtypes[i]), o++);
    put(t, "    }\n");
}

/* One line of the chain; false for an op without formula, or an operand that is no input. */
static bool put_step(text *t, const proa_chain_step *step, int i, int n_inputs, proa_dtype made, bool wide)
{
    proa__step_args args;
    if (!is_known(step->op->name)) return false;
    for (int j = 0; j < step->op->n_in; j++)
        if (step->in[j] >= n_inputs) return false;
    proa__step_fill(step, &args);
    put(t, "        T t%d = fused_type<%s>::step(", i, c_type(made));
    if (!put_functor(t, step, &args)) put_formula(t, step, &args, made, wide);
    put(t, ");\n");
    return true;
}

proa_status cuda_fuse(const proa_steps *steps, int n_inputs, const proa_dtype *dtypes,
                      char to[CUDA_FUSE_BYTES])
{
    proa_dtype made[PROA_STEPS_MAX];
    bool wide = dtypes[0] == PROA_F64;
    int64_t item = wide ? 8 : 4;
    int n_out = 0;
    for (int i = 0; i < n_inputs; i++)
        if (dtypes[i] == PROA_F16 || dtypes[i] == PROA_BF16) item = 2;
    for (int i = 0; i < steps->count; i++) {
        int in = steps->at[i].in[0];
        if (in >= n_inputs) return PROA_DECLINED;
        made[i] = proa__step_dtype(&steps->at[i], in < 0 ? made[~in] : dtypes[in]);
        n_out += steps->at[i].out;
        if (steps->at[i].out && (made[i] == PROA_F16 || made[i] == PROA_BF16)) item = 2;
    }
    text t = {to, 0};
    put(&t,
        "#include \"ops/elementwise/cuda/fused.h\"\n"
        "struct chain {\n"
        "    typedef %s T;\n"
        "    enum { INPUTS = %d, OUTPUTS = %d, PACK = %d };\n",
        wide ? "double" : "float", n_inputs, n_out, (int)(16 / item));
    put_operands(&t, steps, made, dtypes, n_inputs);
    put(&t, "    static CUDA_MEMBER void run(const T *x, T *y)\n    {\n");
    for (int i = 0, out = 0; i < steps->count; i++) {
        if (!put_step(&t, &steps->at[i], i, n_inputs, made[i], wide)) return PROA_DECLINED;
        if (steps->at[i].out) put(&t, "        y[%d] = t%d;\n", out++, i);
    }
    put(&t, "    }\n};\nFUSED_KERNELS(chain)\n");
    return t.n == CUDA_FUSE_BYTES - 1 ? PROA_DECLINED : PROA_OK;
}
