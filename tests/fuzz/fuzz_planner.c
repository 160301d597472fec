/* Fuzzes capture, passes, planner and executor: bytes are a small program of ops on tiny tensors, which is
 * evaluated eagerly and as a program, without passes and with them, trained as a compiled function, or run
 * with an optimizer's steps in it. Values, gradients and parameters agree, to the bit without passes and
 * where a pass only moves steps, or the program is refused with a typed error. Never a crash or a leak.
 * Collectives are those of a group that spoils their memory while they run beside other steps. */
#include "tests/c/async_group.h"

#include <proa/autograd.h>
#include <proa/ops.h>
#include <proa/program.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 14, REGS = 4 + 2 * STEPS, OUTPUTS = 3, COLUMNS = 4, OPS = 46, GROUP = 1 };

/* Script that the bytes encode. Steps that fail when it is first played are skipped from then on, so that
 * eager and captured execution make the same choices. */
typedef struct script {
    uint8_t bytes[3 * STEPS];
    int n_steps, layout;
    bool settled, skip[STEPS];
    proa_tensor *w, *v; /* v: NULL where nothing steps */
} script;

typedef struct machine {
    proa_tensor *regs[REGS];
    int n;
} machine;

/* ---- ops --------------------------------------------------------------------------------- */

static proa_tensors one(proa_tensor *t)
{
    proa_tensors list = {0, proa_scope_alloc(sizeof *list.at)};
    if (list.at && t) list.at[list.count++] = t;
    return list;
}

static proa_tensors calm(proa_tensors in, void *context)
{
    (void)in;
    return one(proa_tanh(*(proa_tensor **)context));
}

static proa_tensors halve(proa_tensors in, void *context)
{
    (void)in;
    return one(proa_scale(*(proa_tensor **)context, .scale = PROA_SCALAR(0.5)));
}

static proa_tensors below_three(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_less_than(in.at[1], proa_full_like(in.at[1], 3)));
}

static proa_tensors step(proa_tensors in, void *context)
{
    (void)context;
    proa_tensors list = {2, proa_scope_alloc(2 * sizeof *list.at)};
    if (!list.at) return (proa_tensors){0, NULL};
    list.at[0] = proa_sigmoid(in.at[0]);
    list.at[1] = proa_add(in.at[1], proa_full_like(in.at[1], 1));
    return list;
}

static proa_tensor *first_of(proa_tensors list) { return list.count > 0 ? list.at[0] : NULL; }

static proa_tensor *loop(proa_tensor *a)
{
    proa_tensors vars = {2, proa_scope_alloc(2 * sizeof *vars.at)};
    if (!vars.at) return NULL;
    vars.at[0] = a;
    vars.at[1] = proa_full(PROA_SHAPE(1), 0, .dtype = PROA_I64);
    return first_of(proa_while_loop(below_three, step, vars, NULL));
}

static proa_tensor *positive(proa_tensor *a)
{
    proa_tensor *sum = proa_sum(a);
    return proa_greater_than(sum, proa_full_like(sum, 0));
}

/* A step that reads a value from outside of the loop, as that one lies. */
static proa_tensors lean(proa_tensors in, void *context)
{
    proa_tensors list = step(in, NULL);
    if (list.count) list.at[0] = proa_add(list.at[0], proa_tanh(*(proa_tensor **)context));
    return list;
}

/* A step with a branch on what it was given. */
static proa_tensors waver(proa_tensors in, void *context)
{
    (void)context;
    proa_tensors list = step(in, NULL);
    proa_tensor *x = in.at[0];
    if (list.count) list.at[0] = first_of(proa_cond(positive(x), calm, halve, &x));
    return list;
}

/* The branch on a, or the loop from a, of what lies as `view` does. */
static proa_tensor *chosen(proa_tensor *a, proa_tensor *view)
{
    return view ? first_of(proa_cond(positive(a), calm, halve, &view)) : NULL;
}

static proa_tensor *looped(proa_tensor *a, proa_tensor *view, bool branches)
{
    proa_tensors vars = {2, proa_scope_alloc(2 * sizeof *vars.at)};
    if (!vars.at || !view || !a) return NULL;
    if (proa_ndim(view) > proa_ndim(a)) return NULL; /* ranks of empty vectors change, as empty lists may */
    vars.at[0] = a;
    vars.at[1] = proa_full(PROA_SHAPE(1), 0, .dtype = PROA_I64);
    return first_of(proa_while_loop(below_three, branches ? waver : lean, vars, &view));
}

static proa_tensors one_row(proa_tensors in, void *context)
{
    (void)in, (void)context;
    return one(proa_full(PROA_SHAPE(1), 1, .dtype = PROA_I64));
}

static proa_tensors two_rows(proa_tensors in, void *context)
{
    (void)in, (void)context;
    return one(proa_full(PROA_SHAPE(1), 2, .dtype = PROA_I64));
}

/* An attribute that a branch chooses, one op before it is needed. */
static proa_tensor *sized(proa_tensor *a, bool tiles)
{
    proa_tensor *rows = first_of(proa_cond(positive(a), one_row, two_rows, NULL));
    proa_ints n = {1, NULL, rows, NULL};
    if (!rows) return NULL;
    return tiles ? proa_tile(a, n) : proa_slice(a, PROA_INTS(0), PROA_INTS(0), n);
}

static proa_tensor *turn(proa_tensor *a)
{
    int64_t perm[PROA_MAX_DIMS], n = proa_ndim(a);
    for (int64_t i = 0; i < n; i++) perm[i] = n - 1 - i;
    return proa_transpose(a, ((proa_ints){n, perm, NULL, NULL}));
}

static proa_tensor *joined(proa_tensor *a, proa_tensor *b)
{
    proa_tensor *both[2] = {a, b};
    return proa_concat(((proa_tensors){2, both}));
}

static void put(machine *m, proa_tensor *t)
{
    if (t && t != PROA_NONE && m->n < REGS) m->regs[m->n++] = t;
}

static void put_halves(machine *m, proa_tensor *a)
{
    proa_tensors parts = proa_split(a, .num = 2, .axis = -1);
    for (int64_t i = 0; i < parts.count && i < 2; i++) put(m, parts.at[i]);
}

static void run_step(const script *s, machine *m, const uint8_t *code)
{
    proa_tensor *a = m->regs[code[1] % m->n], *b = m->regs[code[2] % m->n], *w = s->w;
    proa_tensor *old = a;
    switch (code[0] % OPS) {
    case 0: put(m, proa_add(a, b)); break;
    case 1: put(m, proa_multiply(a, b)); break;
    case 2: put(m, proa_subtract(a, b)); break;
    case 3: put(m, proa_maximum(a, b)); break;
    case 4: put(m, proa_relu(a)); break;
    case 5: put(m, proa_tanh(a)); break;
    case 6: put(m, proa_scale(a, .scale = PROA_SCALAR(0.5), .bias = code[2] / 64.0)); break;
    case 7: put(m, proa_sigmoid(a)); break;
    case 8: put(m, proa_matmul(a, w)); break;
    case 9: put(m, proa_linear(a, w, b)); break;
    case 10: put(m, proa_reshape(a, PROA_INTS(-1))); break;
    case 11: put(m, proa_reshape(a, PROA_INTS(2, -1))); break;
    case 12: put(m, turn(a)); break;
    case 13: put(m, proa_unsqueeze(a, PROA_INTS(0))); break;
    case 14: put(m, proa_squeeze(proa_unsqueeze(a, PROA_INTS(1)), .axis = PROA_INTS(1))); break;
    case 15: put(m, proa_slice(a, PROA_INTS(0), PROA_INTS(code[2] & 1), PROA_INTS(2))); break;
    case 16: put(m, proa_slice(a, PROA_INTS(-1), PROA_INTS(1), PROA_INTS(3))); break;
    case 17: put(m, joined(a, b)); break;
    case 18: put_halves(m, a); break;
    case 19: put(m, proa_topk(a, 1).out); break;
    case 20: put(m, proa_softmax(a)); break;
    case 21: put(m, proa_sum(a, .axis = PROA_INTS(-1), .keepdim = code[2] & 1)); break;
    case 22: put(m, proa_sum(a)); break;
    case 23: proa_add_(a, b); break;
    case 24: proa_relu_(a); break;
    case 25: proa_tanh_(a); break;
    case 26: put(m, proa_assign(a)); break;
    case 27: put(m, proa_masked_select(a, proa_greater_than(a, proa_full_like(a, 0)))); break;
    case 28: put(m, first_of(proa_cond(positive(a), calm, halve, &old))); break;
    case 29: put(m, loop(a)); break;
    case 30: put(m, proa_where(proa_greater_than(a, b), a, b)); break;
    case 31: put(m, proa_matmul(a, b, .transpose_y = true)); break;
    case 32: put(m, proa_expand(a, PROA_INTS(2, COLUMNS))); break;
    case 34: put(m, chosen(a, turn(b))); break;
    case 35: put(m, chosen(a, proa_slice(b, PROA_INTS(-1), PROA_INTS(1), PROA_INTS(3)))); break;
    case 36: put(m, chosen(a, proa_expand(b, PROA_INTS(2, COLUMNS)))); break;
    case 37: put(m, loop(turn(a))); break;
    case 38: put(m, looped(a, turn(b), false)); break;
    case 39: put(m, looped(proa_slice(a, PROA_INTS(-1), PROA_INTS(1), PROA_INTS(3)), b, true)); break;
    case 40: put(m, looped(turn(a), turn(b), code[2] & 32)); break;
    case 41: put(m, sized(a, false)); break;
    case 42: put(m, sized(a, true)); break;
    case 43: put(m, proa_all_reduce(a, .group = GROUP)); break;
    case 44: proa_all_reduce_(a, .op = PROA_REDUCE_TYPE_AVG, .group = GROUP); break;
    case 45: put(m, proa_reduce_to(a, .dst = code[2] & 1, .op = PROA_REDUCE_TYPE_MAX, .group = GROUP)); break;
    case 33: put(m, proa_multiply(proa_tanh(a), proa_add(a, proa_assign(b)))); break;
    }
}

/* The whole script; its results are the last registers. */
static proa_tensors play(proa_tensors in, void *context)
{
    script *s = context;
    machine m = {{in.at[0], in.at[1], s->w, s->v}, s->v ? 4 : 3};
    proa_tensors out = {0, proa_scope_alloc(OUTPUTS * sizeof *out.at)};
    for (int i = 0; i < s->n_steps; i++) {
        if (s->skip[i]) continue;
        run_step(s, &m, &s->bytes[3 * i]);
        if (s->settled || proa_error() == PROA_OK) continue;
        proa_clear_error();
        s->skip[i] = true;
    }
    s->settled = true;
    if (!out.at || proa_error() != PROA_OK) return (proa_tensors){0, NULL};
    for (int i = m.n - 1; i >= 0 && out.count < OUTPUTS; i--) out.at[out.count++] = m.regs[i];
    return out;
}

/* ---- both ways --------------------------------------------------------------------------- */

static proa_tensor *ramp(proa_ints shape, int64_t n, float start)
{
    float data[64];
    for (int64_t i = 0; i < n; i++) data[i] = start + (float)((i * 7) % 5) * 0.25f;
    return proa_from_data(data, shape, PROA_F32);
}

/* Layouts of the matrix that a program is fed: row-major, column-major, or part of a larger one. */
enum { DENSE, TURNED, PART, LAYOUTS };

static proa_tensor *matrix(int64_t rows, int layout)
{
    if (layout == TURNED)
        return proa_transpose(ramp(PROA_SHAPE(COLUMNS, rows), rows * COLUMNS, -0.6f), PROA_INTS(1, 0));
    if (layout == PART)
        return proa_slice(ramp(PROA_SHAPE(rows, COLUMNS + 2), rows * (COLUMNS + 2), -0.6f), PROA_INTS(1),
                          PROA_INTS(1), PROA_INTS(1 + COLUMNS));
    return ramp(PROA_SHAPE(rows, COLUMNS), rows * COLUMNS, -0.6f);
}

static proa_tensors inputs_of(const script *s, int64_t rows, bool trains)
{
    proa_tensors in = {2, proa_scope_alloc(2 * sizeof *in.at)};
    if (!in.at) abort();
    in.at[0] = matrix(rows, s->layout);
    in.at[1] = ramp(PROA_SHAPE(COLUMNS), COLUMNS, 0.1f);
    if (!in.at[0] || !in.at[1]) abort();
    if (trains && proa_set_stop_gradient(in.at[0], false) != PROA_OK) abort();
    return in;
}

/* The parameter as it was before any step wrote to it. */
static void reset(proa_tensor *w)
{
    float data[COLUMNS * COLUMNS];
    for (int i = 0; i < COLUMNS * COLUMNS; i++) data[i] = (float)(i % 7) * 0.2f - 0.5f;
    if (proa_copy_in(w, data, sizeof data) != PROA_OK) abort();
    proa_clear_grad(w);
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "fuzz_planner: %s: %s\n", what, proa_error_message());
    abort();
}

/* Distance of the two, relative to the range of `want`; negative where that is beyond comparing. */
static double distance(const proa_tensor *got, const proa_tensor *want)
{
    static float a[1 << 16], b[1 << 16];
    if (proa_dtype_of(got) != proa_dtype_of(want) || proa_ndim(got) != proa_ndim(want)) return INFINITY;
    for (int d = 0; d < proa_ndim(want); d++)
        if (proa_dim(got, d) != proa_dim(want, d)) return INFINITY;
    int64_t n = proa_numel(want);
    if (proa_dtype_of(want) != PROA_F32 || n > 1 << 16) return -1;
    if (proa_copy_out(got, a, (size_t)n * sizeof *a) != PROA_OK ||
        proa_copy_out(want, b, (size_t)n * sizeof *b) != PROA_OK)
        fail("reading");
    double far = 0, range = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(b[i]) || fabsf(b[i]) > 1e4f) return -1;
        far = fmax(far, fabs((double)a[i] - b[i]));
        if (isnan(a[i])) far = INFINITY;
        range = fmax(range, fabs((double)b[i]));
    }
    return far / range;
}

static void compare(proa_tensors got, proa_tensors want, double limit, const char *what)
{
    if (got.count != want.count) fail(what);
    for (int64_t i = 0; i < want.count; i++)
        if (distance(got.at[i], want.at[i]) > limit) fail(what);
}

static void run_program(const proa_program *p, const char *passes, script *s, double limit)
{
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = passes});
    if (!e) fail("executor");
    for (int round = 0; round < 4; round++) {
        PROA_SCOPED;
        int64_t rows = 2 + round / 2;
        reset(s->w);
        proa_tensors want = play(inputs_of(s, rows, false), s);
        proa_status eager = proa_error();
        proa_clear_error();
        proa_tensor *wrote = proa_assign(s->w);
        reset(s->w);
        proa_tensors got = proa_executor_run(e, inputs_of(s, rows, false));
        if (proa_error() != PROA_OK) {
            if (eager == PROA_OK) fail("only the program refuses");
            proa_clear_error();
            continue;
        }
        if (eager != PROA_OK) continue; /* something that no output needs */
        compare(got, want, limit, passes ? passes : "all passes");
        if (distance(s->w, wrote) > limit) fail("what is written to the parameter");
    }
    proa_executor_free(e);
}

/* Eagerly, a write in place leaves a strided input strided; in a program its new value is dense, and products
 * may sum in another order. */
static bool writes_strided(const script *s)
{
    bool writes = false;
    for (int i = 0; i < s->n_steps; i++) {
        int op = s->bytes[3 * i] % OPS;
        writes |= !s->skip[i] && ((op >= 23 && op <= 25) || op == 44);
    }
    return writes && s->layout != DENSE;
}

static void execute(script *s)
{
    proa_input_spec specs[2] = {{.shape = PROA_SHAPE(-1, COLUMNS)}, {.shape = PROA_SHAPE(COLUMNS)}};
    PROA_NO_GRAD;
    reset(s->w);
    play(inputs_of(s, 2, false), s);
    reset(s->w);
    proa_program *p = proa_capture(play, specs, 2, s);
    if (p) {
        run_program(p, "", s, writes_strided(s) ? 1e-6 : 0);
        run_program(p, "none,-overlap", s, writes_strided(s) ? 1e-6 : 0);
        run_program(p, NULL, s, 1e-5);
    }
    proa_program_free(p);
    proa_clear_error();
}

/* ---- training ---------------------------------------------------------------------------- */

static proa_status backward(proa_tensors out, bool twice)
{
    proa_tensor *loss = NULL;
    for (int64_t i = 0; i < out.count; i++) {
        proa_tensor *part = proa_sum(proa_multiply(out.at[i], proa_tanh(out.at[i])));
        loss = loss ? proa_add(loss, part) : part;
    }
    if (!loss || proa_stop_gradient(loss)) return proa_error();
    proa_tensors roots = {1, &loss}, none = {0, NULL};
    if (twice) PROA_TRY(proa_backward_all(roots, none, (proa_backward_opts){.retain_graph = true}));
    return proa_backward(loss);
}

static proa_tensor *copy_of(proa_tensor *grad) { return grad == PROA_NONE ? grad : proa_assign(grad); }

static void train(script *s, bool twice)
{
    proa_input_spec specs[2] = {{.shape = PROA_SHAPE(-1, COLUMNS)}, {.shape = PROA_SHAPE(COLUMNS)}};
    if (proa_set_stop_gradient(s->w, false) != PROA_OK) fail("parameter");
    play(inputs_of(s, 2, true), s);
    proa_compiled *c = proa_compile(play, specs, 2, s, true);
    for (int round = 0; c && round < 4; round++) {
        PROA_SCOPED;
        int64_t rows = 2 + round / 2;
        proa_clear_grad(s->w);
        proa_tensors in = inputs_of(s, rows, true), mine = inputs_of(s, rows, true);
        if (backward(play(in, s), twice) != PROA_OK) {
            proa_clear_error();
            break;
        }
        proa_tensor *dw = copy_of(proa_grad_of(s->w));
        if (round & 1) proa_clear_grad(s->w);
        else (void)proa_zero_grad(s->w);
        proa_tensors got = proa_compiled_call(c, mine);
        if (proa_error() != PROA_OK ||
            backward(got, twice) != PROA_OK) { /* refused: so be it, with a reason */
            proa_clear_error();
            break;
        }
        proa_tensor *pairs[2][2] = {{proa_grad_of(mine.at[0]), proa_grad_of(in.at[0])},
                                    {proa_grad_of(s->w), dw}};
        for (int k = 0; k < 2; k++)
            if (pairs[k][0] != PROA_NONE && pairs[k][1] != PROA_NONE &&
                distance(pairs[k][0], pairs[k][1]) > 1e-3)
                fail("gradients of a compiled call");
    }
    proa_compiled_free(c);
    proa_clear_error();
}

/* ---- steps within a program ---------------------------------------------------------------- */

enum { PARAMETERS = 2, ROUNDS = 3 };

/* Features of a step: bits of the first byte. */
enum { MOMENTUM = 16, DECAYS = 32, CLIPS = 64, APART = 128 };

int64_t fuzz_planner_stepped; /* programs that stepped all parameters: stress.c wants some */

typedef struct stepped {
    proa_tensor *params[PARAMETERS], *velocities[PARAMETERS];
} stepped;

/* The sum of squares of what the outputs are, within bounds. */
static proa_tensor *loss_of(const proa_program *p)
{
    proa_tensor *loss = NULL;
    for (int64_t i = 0; i < proa_program_output_count(p); i++) {
        proa_tensor *out = (proa_tensor *)(uintptr_t)proa_program_output(p, i);
        proa_tensor *part = proa_sum(proa_square(proa_tanh(out)));
        loss = loss ? proa_add(loss, part) : part;
    }
    return loss;
}

/* The gradients as a step takes them: the first with decay, all over their common length. */
static void prepare(const stepped *t, proa_tensor **g, int64_t n, int how)
{
    if (how & DECAYS) g[0] = proa_add(g[0], proa_scale(t->params[0], .scale = PROA_SCALAR(0.1)));
    if (!(how & CLIPS)) return;
    proa_tensor *length = proa_sum(proa_square(g[0]));
    for (int64_t i = 1; i < n; i++) length = proa_add(length, proa_sum(proa_square(g[i])));
    proa_tensor *by = proa_rsqrt(proa_scale(length, .bias = 1));
    for (int64_t i = 0; i < n; i++) g[i] = proa_multiply(g[i], by);
}

static void step_by(const stepped *t, proa_tensor **g, int64_t first, int64_t n, int how)
{
    proa_tensor *rate = proa_full(PROA_SHAPE(1), 0.1);
    proa_tensors none = {0, NULL}, params = {n, (proa_tensor **)(uintptr_t)t->params + first},
                 velocities = {n, (proa_tensor **)(uintptr_t)t->velocities + first}, grads = {n, g + first};
    if (how & MOMENTUM) proa_momentum_step(params, grads, rate, velocities, none, PROA_NONE, 0.9);
    else proa_sgd_step(params, grads, rate, none, PROA_NONE);
}

/* Appends the steps, and a reader of what they wrote. */
static proa_status append_steps(proa_program *p, const stepped *t, int how)
{
    proa_program *open = proa_program_open(p);
    proa_tensor *loss = loss_of(p), *g[PARAMETERS];
    proa_program_open(open);
    proa_tensors none = {0, NULL}, targets = {1, &loss};
    proa_tensors found = proa_program_gradients(
        p, targets, (proa_tensors){PARAMETERS, (proa_tensor **)(uintptr_t)t->params}, none, none);
    PROA_TRY(proa_error());
    stepped some = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < found.count; i++) {
        if (found.at[i] == PROA_NONE) continue;
        some.params[n] = t->params[i], some.velocities[n] = t->velocities[i], g[n++] = found.at[i];
    }
    if (!n) return PROA_OK;
    fuzz_planner_stepped += n == PARAMETERS;
    open = proa_program_open(p);
    int32_t role = proa_program_set_role(p, 2);
    prepare(&some, g, n, how);
    if (how & APART)
        for (int64_t i = 0; i < n; i++) step_by(&some, g, i, 1, how);
    else step_by(&some, g, 0, n, how);
    (void)proa_program_set_role(p, role);
    proa_tensor *out[OUTPUTS + 2] = {proa_sum(t->params[0]), loss};
    int64_t outs = 2;
    for (int64_t i = 0; i < proa_program_output_count(p); i++)
        out[outs++] = (proa_tensor *)(uintptr_t)proa_program_output(p, i);
    proa_program_open(open);
    return proa_program_set_outputs(p, (proa_tensors){outs, out});
}

static void restart(const stepped *t)
{
    static const float zeros[COLUMNS * COLUMNS];
    for (int i = 0; i < PARAMETERS; i++) {
        reset(t->params[i]);
        if (proa_copy_in(t->velocities[i], zeros, sizeof zeros) != PROA_OK) abort();
    }
}

/* Rounds from the start; what came and what is left of the parameters. Its error: the executor's. */
static proa_status follow(const proa_program *p, const char *passes, const script *s, const stepped *t,
                          proa_tensors *came, proa_tensor **left)
{
    restart(t);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.passes = passes});
    for (int i = 0; i < ROUNDS && proa_error() == PROA_OK; i++)
        came[i] = proa_executor_run(e, inputs_of(s, 2 + i / 2, false));
    proa_executor_free(e);
    for (int i = 0; i < PARAMETERS && proa_error() == PROA_OK; i++) left[i] = proa_assign(t->params[i]);
    return proa_error();
}

static void compare_steps(const proa_program *p, const script *s, const stepped *t)
{
    static const char *const passes[] = {"optimizer_interleaving,-overlap", "optimizer_interleaving", NULL};
    static const double limits[] = {0, 0, 1e-3};
    proa_tensors want[ROUNDS], got[ROUNDS];
    proa_tensor *wrote[PARAMETERS], *left[PARAMETERS];
    if (follow(p, "none,-overlap", s, t, want, wrote) != PROA_OK) return;
    for (int k = 0; k < 3; k++) {
        const char *what = passes[k] ? "steps that moved" : "steps, all passes";
        if (follow(p, passes[k], s, t, got, left) != PROA_OK) fail(what);
        for (int i = 0; i < ROUNDS; i++) compare(got[i], want[i], limits[k], what);
        compare((proa_tensors){PARAMETERS, left}, (proa_tensors){PARAMETERS, wrote}, limits[k], what);
    }
}

static void step_within(script *s, int how, int together)
{
    proa_input_spec specs[2] = {{.shape = PROA_SHAPE(-1, COLUMNS)}, {.shape = PROA_SHAPE(COLUMNS)}};
    PROA_NO_GRAD;
    static const char *const bytes[] = {"0", "128", "1048576"};
    stepped t = {{s->w, s->v},
                 {proa_full(PROA_SHAPE(COLUMNS, COLUMNS), 0), proa_full(PROA_SHAPE(COLUMNS, COLUMNS), 0)}};
    if (!t.velocities[1] || proa_set_flag("update_bytes", bytes[together % 3]) != PROA_OK) abort();
    restart(&t);
    play(inputs_of(s, 2, false), s);
    proa_program *p = proa_capture(play, specs, 2, s);
    if (p && append_steps(p, &t, how) == PROA_OK) compare_steps(p, s, &t);
    proa_program_free(p);
    proa_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static async_group two;
    if (size < 4) return 0;
    async_enter(&two, GROUP);
    PROA_SCOPE {
        script s = {.n_steps = (int)((size - 1) / 3), .layout = (data[0] >> 2) % LAYOUTS};
        if (s.n_steps > STEPS) s.n_steps = STEPS;
        memcpy(s.bytes, data + 1, (size_t)s.n_steps * 3);
        s.w = proa_full(PROA_SHAPE(COLUMNS, COLUMNS), 0);
        if (!s.w) abort();
        script again = s;
        if (data[0] & 1) {
            reset(s.w);
            train(&s, data[0] & 2);
        } else {
            execute(&s);
        }
        if ((data[0] & 3) == 2) {
            again.v = proa_full(PROA_SHAPE(COLUMNS, COLUMNS), 0);
            if (!again.v) abort();
            step_within(&again, data[0], data[size - 1]);
        }
    }
    (void)!proa_finish(NULL);
    if (proa_memory_get_stats().live_bytes > (1 << 20)) abort();
    return 0;
}
