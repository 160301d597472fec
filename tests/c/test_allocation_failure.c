/* Every allocation of a training step fails once, in the first and in the second step of a small network:
 * the step ends with OUT_OF_MEMORY (or does without the memory), nothing leaks, and the repeated step ends
 * where an undisturbed one ends. */
#include "lists.h"
#include "suite.h"

#include "core/kernel_cache.h"

#include <proa.h>

#include <math.h>

typedef struct trainee {
    proa_layer *net;
    proa_optimizer *opt;
    proa_tensor *x, *y; /* kept */
} trainee;

typedef trainee (*maker)(void);

static trainee make_conv_net(void)
{
    proa_seed(3);
    trainee t = {0};
    t.net = proa_sequential(proa_conv2d_layer(1, 4, 3, .padding = 1), proa_batch_norm_layer(4),
                            proa_relu_layer(), proa_max_pool2d_layer(2), proa_flatten_layer(),
                            proa_dropout_layer(0.25), proa_linear_layer(4 * 2 * 2, 3));
    t.opt = proa_adamw(proa_parameters(t.net), .lr = 0.01, .clip = {PROA_CLIP_GLOBAL_NORM, 1.0});
    t.x = proa_keep(ramp(PROA_SHAPE(2, 1, 4, 4), 0));
    t.y = proa_keep(proa_from_data((int64_t[]){0, 2}, PROA_SHAPE(2), PROA_I64));
    return t;
}

/* Channels and tiles enough for F(2×2, 3×3). */
static trainee make_wide_conv_net(void)
{
    proa_seed(5);
    trainee t = {0};
    t.net = proa_sequential(proa_conv2d_layer(32, 32, 3, .padding = 1), proa_relu_layer(),
                            proa_conv2d_layer(32, 32, 3, .padding = 1), proa_flatten_layer(),
                            proa_linear_layer(32 * 8 * 8, 3));
    t.opt = proa_momentum(proa_parameters(t.net), .lr = 0.01);
    t.x = proa_keep(ramp(PROA_SHAPE(4, 32, 8, 8), 0));
    t.y = proa_keep(proa_from_data((int64_t[]){0, 2, 1, 1}, PROA_SHAPE(4), PROA_I64));
    return t;
}

static trainee make_transformer(void)
{
    proa_seed(4);
    trainee t = {0};
    t.net = proa_sequential(proa_transformer_layer(8, 2, 16, .causal = true), proa_linear_layer(8, 5));
    t.opt = proa_adamw(proa_parameters(t.net), .lr = 0.01);
    t.x = proa_keep(ramp(PROA_SHAPE(2, 3, 8), 0));
    t.y = proa_keep(proa_from_data((int64_t[]){0, 2, 4, 1, 3, 0}, PROA_SHAPE(2, 3), PROA_I64));
    return t;
}

static void unmake(trainee *t)
{
    proa_layer_free(t->net);
    proa_optimizer_free(t->opt);
    proa_release(t->x);
    proa_release(t->y);
}

/* The loss, or NaN after an error. */
static double step(trainee *t)
{
    PROA_SCOPED;
    proa_clear_grads(t->opt);
    proa_tensor *loss = proa_cross_entropy(proa_forward(t->net, t->x), t->y);
    double value = loss ? proa_item(loss) : NAN;
    proa_backward(loss);
    proa_step(t->opt);
    return proa_error() == PROA_OK ? value : NAN;
}

static int64_t live(void) { return proa_memory_get_stats().live_bytes; }

/* Fresh start: `before` undisturbed steps, then one in which allocation `fails` fails (−1: none does). */
typedef struct outcome {
    int64_t allocations, live_after;
    double loss;
    bool failed;
} outcome;

static outcome attempt(maker make, int before, int64_t fails)
{
    outcome o = {0};
    proa__kernel_cache_clear();
    int64_t at_start = live();
    PROA_SCOPE {
        trainee t = make();
        ck_assert_int_eq(proa_error(), PROA_OK);
        int64_t made = live(); /* names grow with the numbers of layers */
        for (int i = 0; i < before; i++) step(&t);
        proa_rng_state rng = proa_rng_get();
        proa_memory_fail_after(fails);
        double loss = step(&t);
        o.allocations = proa_memory_fail_after(-1);
        o.failed = proa_error() != PROA_OK;
        if (o.failed) {
            ck_assert_msg(proa_error() == PROA_ERR_OUT_OF_MEMORY, "allocation %lld: %s", (long long)fails,
                          proa_error_message());
            proa_clear_error();
            ck_assert(proa_recording() && proa_door_is_open(PROA_DOOR_CONVERT));
            proa_rng_set(rng);
            loss = step(&t);
        }
        ck_assert_msg(proa_error() == PROA_OK, "after allocation %lld failed: %s", (long long)fails,
                      proa_error_message());
        proa__kernel_cache_clear();
        o.live_after = live() - made;
        o.loss = loss;
        unmake(&t);
    }
    static bool warm; /* what a process makes once stays after the first attempt */
    ck_assert_msg(!warm || live() == at_start, "allocation %lld of a step: %lld bytes leak", (long long)fails,
                  (long long)(live() - at_start));
    warm = true;
    return o;
}

static void fail_each(maker make)
{
    proa_set_threads(1);
    attempt(make, 1, -1);
    for (int before = 0; before < 2; before++) {
        outcome whole = attempt(make, before, -1);
        ck_assert_int_gt(whole.allocations, 100);
        int64_t failed = 0;
        for (int64_t i = 0; i < whole.allocations; i++) {
            outcome o = attempt(make, before, i);
            ck_assert_msg(o.live_after == whole.live_after,
                          "allocation %lld of step %d: %lld bytes more stay", (long long)i, before + 1,
                          (long long)(o.live_after - whole.live_after));
            ck_assert_msg(o.loss == whole.loss, "allocation %lld of step %d: loss %.9g, not %.9g",
                          (long long)i, before + 1, o.loss, whole.loss);
            failed += o.failed;
        }
        /* the others were for what a step does without: a remembered kernel */
        ck_assert_int_gt(failed, whole.allocations * 3 / 4);
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}

START_TEST(conv_net) { fail_each(make_conv_net); }
END_TEST

START_TEST(wide_conv_net) { fail_each(make_wide_conv_net); }
END_TEST

START_TEST(transformer) { fail_each(make_transformer); }
END_TEST

SUITE("allocation_failure", conv_net, wide_conv_net, transformer)
