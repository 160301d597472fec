/* Optimizers against their formulas written out here in double, schedules against known numbers, clipping,
 * groups, float32 masters, the scaler, and training states that resume bit for bit. */
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <string.h>

static void check_ok(void) { ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message()); }

static proa_tensor *parameter(const float *v, int64_t n)
{
    proa_tensor *t = proa_from_data(v, PROA_SHAPE(n), PROA_F32);
    proa_set_stop_gradient(t, false);
    return t;
}

static void set_grad(proa_tensor *p, const float *g)
{
    ck_assert_int_eq(proa_set_grad(p, proa_from_data(g, PROA_SHAPE(proa_numel(p)), PROA_F32)), PROA_OK);
}

/* One number's state; `step` says how it moves with gradient g at step t (1, 2, …) and rate 0.1. */
typedef struct number {
    double p, a, b;
} number;

static void sgd(number *n, double g, int t) { (void)t, n->p -= 0.1 * g; }
static void sgd_decay(number *n, double g, int t) { (void)t, n->p -= 0.1 * (g + 0.2 * n->p); }
static void momentum(number *n, double g, int t)
{
    (void)t;
    n->a = 0.9 * n->a + g;
    n->p -= 0.1 * n->a;
}
static void nesterov(number *n, double g, int t)
{
    (void)t;
    n->a = 0.8 * n->a + g;
    n->p -= 0.1 * (g + 0.8 * n->a);
}
static void adam(number *n, double g, int t)
{
    n->a = 0.9 * n->a + 0.1 * g;
    n->b = 0.999 * n->b + 0.001 * g * g;
    n->p -= 0.1 * (n->a / (1 - pow(0.9, t))) / (sqrt(n->b / (1 - pow(0.999, t))) + 1e-8);
}
static void adamw(number *n, double g, int t)
{
    n->p *= 1 - 0.1 * 0.01;
    adam(n, g, t);
}
static void adagrad(number *n, double g, int t)
{
    (void)t;
    n->a += g * g;
    n->p -= 0.1 * g / (sqrt(n->a) + 1e-6);
}
static void rmsprop(number *n, double g, int t)
{
    (void)t;
    n->a = 0.95 * n->a + 0.05 * g * g;
    n->p -= 0.1 * g / sqrt(n->a + 1e-6);
}
static void adadelta(number *n, double g, int t)
{
    (void)t;
    n->a = 0.95 * n->a + 0.05 * g * g;
    double u = g * sqrt(n->b + 1e-6) / sqrt(n->a + 1e-6);
    n->b = 0.95 * n->b + 0.05 * u * u;
    n->p -= 0.1 * u;
}
static void adamax(number *n, double g, int t)
{
    n->a = 0.9 * n->a + 0.1 * g;
    n->b = fmax(fabs(g), 0.999 * n->b + 1e-8);
    n->p -= 0.1 / (1 - pow(0.9, t)) * n->a / n->b;
}

static void follow(proa_optimizer *opt, proa_tensor *p, void (*step)(number *, double, int))
{
    check_ok();
    number n[3] = {{1, 0, 0}, {-2, 0, 0}, {0.5, 0, 0}};
    for (int t = 1; t <= 8; t++) {
        float g[3];
        for (int i = 0; i < 3; i++) g[i] = (float)sin(t * (i + 1));
        set_grad(p, g);
        ck_assert_int_eq(proa_step(opt), PROA_OK);
        ck_assert(proa_grad_of(p) == PROA_NONE);
        for (int i = 0; i < 3; i++) {
            step(&n[i], (double)g[i], t);
            ck_assert_double_eq_tol((double)((const float *)proa_data(p))[i], n[i].p, 2e-5);
        }
    }
    proa_optimizer_free(opt);
}
#define START ((const float[]){1, -2, 0.5F})

START_TEST(formulas)
{
    proa_tensor *p;
#define FOLLOW(step, make)   \
    p = parameter(START, 3); \
    follow(make, p, step)
    FOLLOW(sgd, proa_sgd(PROA_LIST(p), .lr = 0.1));
    FOLLOW(sgd_decay, proa_sgd(PROA_LIST(p), .lr = 0.1, .weight_decay = 0.2));
    FOLLOW(momentum, proa_momentum(PROA_LIST(p), .lr = 0.1));
    FOLLOW(nesterov, proa_momentum(PROA_LIST(p), .lr = 0.1, .momentum = 0.8, .nesterov = true));
    FOLLOW(adam, proa_adam(PROA_LIST(p), .lr = 0.1));
    FOLLOW(adamw, proa_adamw(PROA_LIST(p), .lr = 0.1));
    FOLLOW(adam, proa_adamw(PROA_LIST(p), .lr = 0.1, .weight_decay = PROA_ZERO));
    FOLLOW(adagrad, proa_adagrad(PROA_LIST(p), .lr = 0.1));
    FOLLOW(rmsprop, proa_rmsprop(PROA_LIST(p), .lr = 0.1));
    FOLLOW(adadelta, proa_adadelta(PROA_LIST(p), .lr = 0.1));
    FOLLOW(adamax, proa_adamax(PROA_LIST(p), .lr = 0.1));
}
END_TEST

enum { MANY = 7, STEPS = 3 };

/* What `STEPS` steps over parameters of many sizes make of them, one behind the other at `to`. */
static void step_many(int threads, bool half, float *to)
{
    static const int64_t sizes[MANY] = {40000, 1, 300, 8200, 2047, 5000, 70};
    static float values[40000];
    proa_set_threads(threads);
    PROA_SCOPE {
        proa_tensor *p[MANY];
        for (int i = 0; i < MANY; i++) {
            for (int64_t k = 0; k < sizes[i]; k++) values[k] = (float)sin((double)(k + i));
            p[i] = proa_from_data(values, PROA_SHAPE(sizes[i]), PROA_F32);
            if (half && i % 2) p[i] = proa_cast(p[i], PROA_BF16);
            proa_set_stop_gradient(p[i], false);
        }
        proa_optimizer *opt = proa_adamw(((proa_tensors){MANY, p}), .lr = 0.1);
        for (int t = 0; t < STEPS; t++) {
            for (int i = 0; i < MANY; i++)
                ck_assert_int_eq(proa_set_grad(p[i], proa_scale(p[i], .scale = PROA_SCALAR(0.3))), PROA_OK);
            ck_assert_int_eq(proa_step(opt), PROA_OK);
        }
        for (int i = 0; i < MANY; i++) {
            proa_tensor *f = proa_cast(proa_detach(p[i]), PROA_F32);
            ck_assert_int_eq(proa_copy_out(f, to, (size_t)sizes[i] * sizeof *to), PROA_OK);
            to += sizes[i];
        }
        proa_optimizer_free(opt);
    }
    check_ok();
}

/* Every element is updated once, whoever shares in the work. */
START_TEST(steps_do_not_depend_on_threads)
{
    static float one[60000], many[60000];
    for (int half = 0; half < 2; half++) {
        step_many(1, half, one);
        for (int threads = 2; threads < 6; threads++) {
            step_many(threads, half, many);
            ck_assert(memcmp(one, many, sizeof one) == 0);
        }
    }
    proa_set_threads(1);
}
END_TEST

static void check_rates(proa_schedule *s, const double *expected, int n)
{
    ck_assert_ptr_nonnull(s);
    for (int i = 0; i < n; i++, proa_schedule_step(s))
        ck_assert_double_eq_tol(proa_schedule_lr(s), expected[i], 1e-9);
    proa_schedule_seek(s, 1);
    ck_assert_double_eq_tol(proa_schedule_lr(s), expected[1], 1e-9);
    proa_schedule_free(s);
}
#define RATES(s, ...)                               \
    check_rates((s), (const double[]){__VA_ARGS__}, \
                (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* The numbers are real Paddle 2.6.2's. */
START_TEST(schedules)
{
    RATES(proa_step_decay(0.5, 2, 0.1), 0.5, 0.5, 0.05, 0.05, 0.005);
    RATES(proa_multi_step_decay(1, PROA_INTS(2, 3), 0.5), 1, 1, 0.5, 0.25, 0.25);
    RATES(proa_exponential_decay(2, 0.5), 2, 1, 0.5, 0.25);
    RATES(proa_polynomial_decay(1, 4, 0.1, 2), 1, 0.60625, 0.325, 0.15625, 0.1, 0.1);
    RATES(proa_cosine_decay(1, 4, 0.2), 1, 0.8828427124746191, 0.6, 0.3171572875253811, 0.2,
          0.3171572875253811);
    RATES(proa_noam_decay(100, 2, 1), 0, 0.035355339059327376, 0.07071067811865475, 0.05773502691896258,
          0.05);
    RATES(proa_linear_warmup(proa_step_decay(1, 1, 0.5), 2, 0, 1), 0, 0.5, 1, 0.5, 0.25);
    RATES(proa_linear_warmup(NULL, 2, 0.1, 0.3), 0.1, 0.2, 0.3, 0.3);
    RATES(proa_natural_exp_decay(0.5, 0.1), 0.5, 0.452418709, 0.409365377, 0.37040911);
    RATES(proa_inverse_time_decay(0.5, 0.1), 0.5, 0.454545455, 0.416666667, 0.384615385);
    RATES(proa_piecewise_decay(PROA_INTS(3, 6), PROA_FLOATS(0.1, 0.05, 0.01)), 0.1, 0.1, 0.1, 0.05, 0.05,
          0.05, 0.01);
    RATES(proa_one_cycle(1, 20, 25, 1e-4, 0.3), 0.04, 0.131671843, 0.371671843, 0.668328157, 0.908328157, 1,
          0.98746521, 0.950489386, 0.89092665, 0.811763726, 0.716970175, 0.611299341, 0.50005, 0.388800659,
          0.283129825, 0.188336274, 0.10917335, 0.0496106145, 0.0126347903, 0.0001);
    RATES(proa_cyclic(0.1, 1, 4, 6), 0.1, 0.325, 0.55, 0.775, 1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.325);
    RATES(proa_linear_decay(0.5, 10, 0.25, 1), 0.125, 0.1625, 0.2, 0.2375, 0.275, 0.3125, 0.35, 0.3875, 0.425,
          0.4625, 0.5, 0.5);
    RATES(proa_cosine_restarts(0.5, 4, 2, 0.01), 0.5, 0.428241161, 0.255, 0.0817588386, 0.5, 0.481350485,
          0.428241161, 0.348757441, 0.255, 0.161242559, 0.0817588386, 0.0286495145, 0.5, 0.495292394);
    RATES(proa_cosine_restarts(0.5, 2, 1, 0), 0.5, 0.25, 0.5, 0.25);
    ck_assert_ptr_null(proa_piecewise_decay(PROA_INTS(3, 6), PROA_FLOATS(0.1, 0.05)));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(proa_cyclic(0.1, 1, 4, 0));
    proa_clear_error();
    ck_assert_ptr_null(proa_one_cycle(1, 20, 0, 0, 0.3));
    proa_clear_error();
}
END_TEST

START_TEST(clipping)
{
    static const proa_clip clips[] = {
        {PROA_CLIP_VALUE, 2}, {PROA_CLIP_NORM, 2}, {PROA_CLIP_GLOBAL_NORM, 6.5}};
    static const double expected[3][3] = {{-2, -2, 2}, {-1.2, -1.6, 2}, {-1.5, -2, 6}};
    for (int i = 0; i < 3; i++) {
        proa_tensor *a = parameter((float[]){0, 0}, 2), *b = parameter((float[]){0}, 1);
        proa_optimizer *opt = proa_sgd(PROA_LIST(a, b), .lr = 1, .clip = clips[i]);
        set_grad(a, (float[]){3, 4});
        set_grad(b, (float[]){-12});
        ck_assert_int_eq(proa_step_keep(opt), PROA_OK);
        const float *va = proa_data(a), *vb = proa_data(b), *g = proa_data(proa_grad_of(a));
        ck_assert_double_eq_tol((double)va[0], expected[i][0], 1e-5);
        ck_assert_double_eq_tol((double)va[1], expected[i][1], 1e-5);
        ck_assert_double_eq_tol((double)vb[0], expected[i][2], 1e-5);
        ck_assert_float_eq(g[0], 3); /* gradients stay as backward left them */
        proa_optimizer_free(opt);
    }
}
END_TEST

START_TEST(groups)
{
    proa_tensor *a = parameter((float[]){1}, 1), *b = parameter((float[]){1}, 1);
    proa_optimizer *opt = proa_sgd(PROA_LIST(a), .lr = 0.5, .weight_decay = 0.1);
    ck_assert_int_eq(proa_add_group(opt, PROA_LIST(b), .lr_scale = 0.1, .weight_decay = PROA_ZERO), PROA_OK);
    set_grad(a, (float[]){1});
    set_grad(b, (float[]){1});
    proa_step(opt);
    ck_assert_double_eq_tol(proa_item(a), 1 - 0.5 * 1.1, 1e-6);
    ck_assert_double_eq_tol(proa_item(b), 1 - 0.05, 1e-6);
    ck_assert_int_eq(proa_optimizer_parameters(opt).count, 2);
    ck_assert_int_ne(proa_add_group(opt, PROA_LIST(a)), PROA_OK); /* twice */
    proa_clear_error();
    proa_tensor *c = parameter((float[]){1}, 1);
    ck_assert_int_ne(proa_add_group(opt, PROA_LIST(c, c)), PROA_OK); /* twice in one list */
    proa_clear_error();
    ck_assert_int_eq(proa_optimizer_parameters(opt).count, 2);
    proa_optimizer_free(opt);
}
END_TEST

/* A group whose state finds no memory is not there, whichever allocation it was. */
START_TEST(a_group_is_added_whole_or_not_at_all)
{
    proa_tensor *a = parameter((float[]){1}, 1), *b = parameter((float[]){1}, 1),
                *c = parameter((float[]){1}, 1);
    proa_optimizer *opt = proa_adam(PROA_LIST(a));
    int64_t live = proa_memory_get_stats().live_blocks;
    bool added = false;
    for (int64_t n = 0; !added && n < 200; n++) {
        proa_memory_fail_after(n);
        added = proa_add_group(opt, PROA_LIST(b, c)) == PROA_OK;
        proa_memory_fail_after(-1);
        proa_clear_error();
        ck_assert_int_eq(proa_optimizer_parameters(opt).count, added ? 3 : 1);
        set_grad(a, (float[]){1});
        ck_assert_int_eq(proa_step(opt), PROA_OK);
    }
    ck_assert(added);
    ck_assert_int_gt(proa_memory_get_stats().live_blocks, live);
    proa_optimizer_free(opt);
}
END_TEST

/* Steps too small for bfloat16 add up in the master. */
START_TEST(masters)
{
    proa_tensor *p = proa_full(PROA_SHAPE(2), 1, .dtype = PROA_F32);
    proa_set_stop_gradient(p, false);
    ck_assert_int_eq(proa_amp_decorate(PROA_LIST(p), PROA_BF16), PROA_OK);
    ck_assert_int_eq(proa_dtype_of(p), PROA_BF16);
    proa_optimizer *opt = proa_sgd(PROA_LIST(p), .lr = 0.001);
    for (int i = 0; i < 100; i++) {
        PROA_SCOPE {
            proa_set_grad(p, proa_full(PROA_SHAPE(2), 1, .dtype = PROA_BF16));
            proa_step(opt);
        }
    }
    check_ok();
    ck_assert_double_eq_tol(proa_item(proa_mean(proa_cast(p, PROA_F32))), 0.9, 0.005);
    proa_named_list state = proa_optimizer_state(opt);
    ck_assert_int_eq(state.count, 1);
    ck_assert_ptr_nonnull(strstr(state.at[0].name, "fp32_master"));
    proa_optimizer_free(opt);
}
END_TEST

START_TEST(scaler)
{
    proa_tensor *p = parameter((float[]){1}, 1);
    proa_optimizer *opt = proa_sgd(PROA_LIST(p), .lr = 1);
    proa_scaler *s = proa_scaler_new(.init_scale = 8, .growth_interval = 2);
    set_grad(p, (float[]){INFINITY});
    ck_assert_int_eq(proa_scaler_step(s, opt), PROA_OK);
    ck_assert(proa_scaler_skipped(s) && proa_grad_of(p) == PROA_NONE);
    ck_assert_double_eq(proa_scaler_get(s), 4);
    ck_assert_double_eq(proa_item(p), 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(proa_backward(proa_scaler_scale(s, proa_sum(p))), PROA_OK);
        ck_assert_int_eq(proa_scaler_step(s, opt), PROA_OK);
    }
    ck_assert_double_eq(proa_item(p), -1); /* the scale cancels */
    ck_assert_double_eq(proa_scaler_get(s), 8);
    proa_scaler_free(s);
    proa_optimizer_free(opt);
}
END_TEST

/* ---- training states ------------------------------------------------------------------- */

typedef struct run {
    proa_layer *net;
    proa_optimizer *opt;
    proa_scaler *scaler;
    proa_loader *data;
    int64_t step;
} run;

static run start(uint64_t seed)
{
    run r = {0};
    proa_seed(seed);
    PROA_SCOPED;
    r.net = proa_sequential(proa_linear_layer(4, 16), proa_batch_norm_layer(16), proa_relu_layer(),
                            proa_dropout_layer(0.3), proa_linear_layer(16, 3));
    r.opt = proa_adamw(proa_parameters(r.net), .schedule = proa_cosine_decay(0.01, 30, 0));
    r.scaler = proa_scaler_new(.growth_interval = 3);
    proa_tensor *x = proa_gaussian(PROA_SHAPE(40, 4)), *y = proa_randint(0, 3, PROA_SHAPE(40));
    r.data = proa_loader_new(proa_tensor_dataset(PROA_LIST(x, y)), .batch = 8, .shuffle = true, .seed = seed);
    check_ok();
    return r;
}

static void advance(run *r, int64_t until, const char *save_at, int64_t when)
{
    while (r->step < until && !proa_error()) {
        proa_each (batch, r->data) {
            proa_backward(
                proa_scaler_scale(r->scaler, proa_cross_entropy(proa_forward(r->net, batch->x), batch->y)));
            proa_scaler_step(r->scaler, r->opt);
            proa_schedule_step(proa_optimizer_schedule(r->opt));
            if (++r->step == when)
                proa_checkpoint_save(save_at, r->net, r->opt, .scaler = r->scaler, .loader = r->data,
                                     .numbers = &r->step, .n_numbers = 1);
            if (r->step >= until) break;
        }
    }
    check_ok();
}

static void finish(run *r)
{
    proa_optimizer_free(r->opt);
    proa_layer_free(r->net);
    proa_scaler_free(r->scaler);
    proa_loader_free(r->data);
}

START_TEST(resumes_bit_for_bit)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/resume.ckpt", test_folder());
    run a = start(5);
    advance(&a, 17, path, 8);
    run b = start(5);
    proa_seed(99);
    ck_assert_int_eq(proa_checkpoint_load(path, b.net, b.opt, .scaler = b.scaler, .loader = b.data,
                                          .numbers = &b.step, .n_numbers = 1),
                     PROA_OK);
    ck_assert_int_eq(b.step, 8);
    advance(&b, 17, NULL, -1);
    proa_named_list x = proa_layer_state(a.net), y = proa_layer_state(b.net);
    for (int64_t i = 0; i < x.count; i++)
        ck_assert_mem_eq(proa_data(x.at[i].tensor), proa_data(y.at[i].tensor),
                         (size_t)proa_numel(x.at[i].tensor) * sizeof(float));
    ck_assert_double_eq(proa_get_lr(a.opt), proa_get_lr(b.opt));
    ck_assert_double_eq(proa_scaler_get(a.scaler), proa_scaler_get(b.scaler));
    finish(&a);
    finish(&b);
}
END_TEST

START_TEST(foreign_checkpoint_changes_nothing)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/foreign.ckpt", test_folder());
    proa_layer *a = proa_sequential(proa_linear_layer(2, 2), proa_linear_layer(2, 4));
    proa_layer *b = proa_sequential(proa_linear_layer(2, 2), proa_linear_layer(2, 3));
    ck_assert_int_eq(proa_checkpoint_save(path, a, NULL), PROA_OK);
    float before[4], after[4];
    proa_copy_out(proa_parameters(b).at[0], before, sizeof before);
    ck_assert_int_eq(proa_checkpoint_load(path, b, NULL), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    proa_copy_out(proa_parameters(b).at[0], after, sizeof after);
    ck_assert_mem_eq(before, after, sizeof before);
    proa_layer_free(a);
    proa_layer_free(b);
}
END_TEST

START_TEST(bad_optimizers_are_errors)
{
    proa_tensor *p = parameter(START, 3), *ids = proa_from_data((int64_t[]){1}, PROA_SHAPE(1), PROA_I64);
    ck_assert_ptr_null(proa_optimizer_new("adm", PROA_LIST(p), (proa_optimizer_opts){0}));
    ck_assert_int_eq(proa_error(), PROA_ERR_NOT_FOUND);
    proa_clear_error();
    ck_assert_ptr_null(proa_adam(PROA_LIST(ids)));
    proa_clear_error();
    ck_assert_ptr_null(proa_adam(PROA_LIST(p), .beta1 = 1));
    proa_clear_error();
    proa_optimizer *opt = proa_sgd(PROA_LIST(p), .schedule = proa_exponential_decay(1, 0.5));
    ck_assert_int_eq(proa_set_lr(opt, 0.1), PROA_ERR_BAD_STATE);
    proa_clear_error();
    proa_optimizer_free(opt);
    ck_assert_ptr_null(proa_multi_step_decay(1, PROA_INTS(3, 2), 0.1));
    proa_clear_error();
}
END_TEST

SUITE("optim", formulas, steps_do_not_depend_on_threads, schedules, clipping, groups,
      a_group_is_added_whole_or_not_at_all, masters, scaler, resumes_bit_for_bit,
      foreign_checkpoint_changes_nothing, bad_optimizers_are_errors)
