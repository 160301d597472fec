/* Tensors of kind rows: made, read, merged, densified; as gradients of embeddings, summed by the engine,
 * clipped, and taken by optimizers without the table ever being made. */
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <string.h>

static void check_ok(void) { ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message()); }

static void check_fails(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part), "no \"%s\" in: %s", part, proa_error_message());
    proa_clear_error();
}

static proa_tensor *index_of(const int64_t *v, int64_t n)
{
    return proa_from_data(v, PROA_SHAPE(n), PROA_I64);
}

/* Rows 4, 1, 4 of 6, two columns. */
static proa_tensor *sample(void)
{
    const int64_t rows[] = {4, 1, 4};
    const float values[] = {1, 2, 3, 4, 10, 20};
    return proa_rows_new(index_of(rows, 3), proa_from_data(values, PROA_SHAPE(3, 2), PROA_F32), 6);
}

static void check_floats(const proa_tensor *t, const float *expected, int64_t n)
{
    check_ok();
    ck_assert_int_eq(proa_numel(t), n);
    const float *v = proa_data(t);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(v[i] - expected[i]) < 1e-5f, "element %d is %g, expected %g", (int)i,
                      (double)v[i], (double)expected[i]);
}

START_TEST(rows_are_made_and_read)
{
    proa_tensor *t = sample();
    check_ok();
    ck_assert(proa_is_rows(t));
    ck_assert_int_eq(proa_rows_height(t), 6);
    ck_assert_int_eq(((const int64_t *)proa_data(proa_rows_index(t)))[1], 1);
    check_floats(proa_rows_values(t), (const float[]){1, 2, 3, 4, 10, 20}, 6);
    ck_assert(!proa_is_rows(proa_rows_values(t)));
    ck_assert(proa_is_rows(proa_detach(t)));
    check_floats(proa_rows_to_dense(t), (const float[]){0, 0, 3, 4, 0, 0, 0, 0, 11, 22, 0, 0}, 12);
    proa_tensor *merged = proa_rows_merge(t);
    check_floats(merged, (const float[]){3, 4, 11, 22}, 4);
    ck_assert_ptr_eq(proa_rows_merge(merged), merged);
    check_floats(proa_rows_add(t, merged), (const float[]){6, 8, 22, 44}, 4);
    float ones[12];
    for (int i = 0; i < 12; i++) ones[i] = 1;
    proa_tensor *dense = proa_from_data(ones, PROA_SHAPE(6, 2), PROA_F32);
    check_floats(proa_rows_add(dense, t), (const float[]){1, 1, 4, 5, 1, 1, 1, 1, 12, 23, 1, 1}, 12);
    check_floats(proa_rows_add(t, dense), (const float[]){1, 1, 4, 5, 1, 1, 1, 1, 12, 23, 1, 1}, 12);
    check_floats(dense, ones, 12);
}
END_TEST

START_TEST(bad_rows_are_refused)
{
    const int64_t rows[] = {0, 6}, below[] = {-1, 2};
    proa_tensor *values = proa_full(PROA_SHAPE(2, 3), 1.0, .dtype = PROA_F32);
    ck_assert_ptr_null(proa_rows_new(index_of(rows, 2), values, 6));
    check_fails(PROA_ERR_OUT_OF_RANGE, "entry 1 is 6");
    ck_assert_ptr_null(proa_rows_new(index_of(below, 2), values, 6));
    check_fails(PROA_ERR_OUT_OF_RANGE, "entry 0 is -1");
    ck_assert_ptr_null(proa_rows_new(index_of(rows, 1), values, 6));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "values is float32[2, 3]");
    ck_assert_ptr_null(proa_rows_new(values, values, 6));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "index is float32[2, 3]");
    ck_assert_ptr_null(proa_rows_new(NULL, values, 6));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "index is NULL");
    ck_assert_ptr_null(proa_rows_new(index_of(rows, 2), PROA_NONE, 6));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "values is PROA_NONE");
    ck_assert_ptr_null(proa_rows_new(index_of(rows, 2), values, -1));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "height is -1");
    ck_assert_ptr_null(proa_rows_index(values));
    check_fails(PROA_ERR_WRONG_TYPE, "float32[2, 3] is not a tensor of kind rows");
    ck_assert_ptr_null(proa_rows_merge(NULL));
    check_fails(PROA_ERR_WRONG_TYPE, "NULL");
    ck_assert_ptr_null(proa_rows_add(sample(), values));
    check_fails(PROA_ERR_INVALID_ARGUMENT, "is not of the table");
}
END_TEST

START_TEST(ops_that_do_not_know_rows_name_themselves)
{
    proa_tensor *t = sample();
    ck_assert_ptr_null(proa_sum(t));
    check_fails(PROA_ERR_UNSUPPORTED, "sum: x is float32[3, 2] (rows of 6)");
    ck_assert_ptr_null(proa_reshape(t, PROA_INTS(6)));
    check_fails(PROA_ERR_UNSUPPORTED, "reshape");
    ck_assert_ptr_null(proa_add_(t, t));
    check_fails(PROA_ERR_UNSUPPORTED, "add");
    ck_assert_ptr_null(proa_concat(PROA_LIST(t, t)));
    check_fails(PROA_ERR_UNSUPPORTED, "concat");
    ck_assert_ptr_null(proa_multiply(t, t));
    check_fails(PROA_ERR_UNSUPPORTED, "multiply");
    ck_assert_ptr_null(proa_scale(t, .bias = 1.0));
    check_fails(PROA_ERR_UNSUPPORTED, "scale: bias");
    ck_assert_int_ne(proa_set_stop_gradient(t, false), PROA_OK);
    check_fails(PROA_ERR_UNSUPPORTED, "cannot have a gradient");
    proa_tensor *twice = proa_scale(t, .scale = PROA_SCALAR(2.0));
    check_floats(twice, (const float[]){2, 4, 6, 8, 20, 40}, 6);
    ck_assert(proa_is_rows(twice) && proa_rows_height(twice) == 6);
    proa_tensor *wide = proa_cast(t, PROA_F64);
    ck_assert(proa_is_rows(wide) && proa_dtype_of(wide) == PROA_F64);
    ck_assert(proa_is_rows(proa_assign(t)));
    check_ok();
}
END_TEST

static proa_tensor *table_of(int64_t rows, int64_t length)
{
    proa_tensor *w = proa_full(PROA_SHAPE(rows, length), 1.0, .dtype = PROA_F32);
    proa_set_stop_gradient(w, false);
    return w;
}

static proa_tensor *lookup(proa_tensor *w, const int64_t *ids, int64_t n)
{
    return proa_sum(proa_embedding(index_of(ids, n), w, .sparse = true));
}

START_TEST(gradients_add_up)
{
    const int64_t a[] = {3, 1, 3}, b[] = {0, 1};
    proa_tensor *w = table_of(4, 2);
    ck_assert_int_eq(proa_backward(lookup(w, a, 3)), PROA_OK);
    ck_assert(proa_is_rows(proa_grad_of(w)));
    ck_assert_int_eq(proa_dim(proa_grad_of(w), 0), 3);
    ck_assert_int_eq(proa_backward(lookup(w, b, 2)), PROA_OK);
    check_floats(proa_grad_of(w), (const float[]){1, 1, 2, 2, 2, 2}, 6); /* rows 0, 1, 3 */
    ck_assert_int_eq(proa_backward(proa_sum(w)), PROA_OK);
    ck_assert(!proa_is_rows(proa_grad_of(w)));
    check_floats(proa_grad_of(w), (const float[]){2, 2, 3, 3, 1, 1, 3, 3}, 8);
    ck_assert_int_eq(proa_backward(lookup(w, b, 2)), PROA_OK); /* dense and rows, in place */
    check_floats(proa_grad_of(w), (const float[]){3, 3, 4, 4, 1, 1, 3, 3}, 8);
    proa_clear_grad(w);
    ck_assert_int_eq(proa_backward(lookup(proa_scale(w, .scale = PROA_SCALAR(2.0)), a, 3)), PROA_OK);
    check_floats(proa_grad_of(w), (const float[]){0, 0, 2, 2, 0, 0, 4, 4}, 8); /* not a leaf: dense */
    proa_clear_grad(w);
    ck_assert_int_eq(proa_backward(lookup(w, a, 3)), PROA_OK);
    ck_assert_int_eq(proa_zero_grad(w), PROA_OK);
    ck_assert_ptr_eq(proa_grad_of(w), PROA_NONE);
}
END_TEST

/* One step on a table with rows and one with the same gradient made dense. */
static void compare_step(const char *kind, proa_optimizer_opts opts)
{
    const int64_t ids[] = {5, 0, 5};
    proa_tensor *w[2] = {table_of(8, 3), table_of(8, 3)};
    proa_optimizer *opt[2];
    for (int k = 0; k < 2; k++) opt[k] = proa_optimizer_new(kind, (proa_tensors){1, &w[k]}, opts);
    for (int step = 0; step < 3; step++) {
        for (int k = 0; k < 2; k++) {
            ck_assert_int_eq(proa_backward(lookup(w[k], ids, 3)), PROA_OK);
            if (k == 1) proa_set_grad(w[k], proa_rows_to_dense(proa_grad_of(w[k])));
            ck_assert_int_eq(proa_step(opt[k]), PROA_OK);
        }
    }
    check_floats(w[0], proa_data(w[1]), 24);
    for (int k = 0; k < 2; k++) proa_optimizer_free(opt[k]);
}

START_TEST(optimizers_take_rows)
{
    static const char *const kinds[] = {"sgd",     "momentum", "adamw",  "adagrad",
                                        "rmsprop", "adadelta", "adamax", "lamb"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        compare_step(kinds[i], (proa_optimizer_opts){.lr = 0.1});
        compare_step(kinds[i], (proa_optimizer_opts){.lr = 0.1, .clip = {PROA_CLIP_NORM, 0.5}});
        compare_step(kinds[i], (proa_optimizer_opts){.lr = 0.1, .clip = {PROA_CLIP_GLOBAL_NORM, 0.5}});
        compare_step(kinds[i], (proa_optimizer_opts){.lr = 0.1, .clip = {PROA_CLIP_VALUE, 0.5}});
    }
    compare_step("sgd", (proa_optimizer_opts){.lr = 0.1, .weight_decay = 0.1});
}
END_TEST

/* Paddle's CPU kernel of Adam moves β^t on before it uses it, of rows. */
START_TEST(adam_of_rows_is_paddles)
{
    const int64_t ids[] = {2};
    for (int lazy = 0; lazy < 2; lazy++) {
        proa_tensor *w = table_of(4, 1);
        proa_optimizer *opt = proa_adam(PROA_LIST(w), .lr = 0.1, .lazy_mode = lazy, .epsilon = 0.01);
        double p = 1, m = 0, v = 0;
        for (int t = 2; t < 5; t++) {
            ck_assert_int_eq(proa_backward(lookup(w, ids, 1)), PROA_OK);
            ck_assert_int_eq(proa_step(opt), PROA_OK);
            m = 0.9 * m + 0.1;
            v = 0.999 * v + 0.001;
            double root = sqrt(1 - pow(0.999, t));
            p -= 0.1 * root / (1 - pow(0.9, t)) * m / (sqrt(v) + 0.01 * root);
            ck_assert_double_eq_tol((double)((float *)proa_data(w))[2], p, 1e-5);
            ck_assert_double_eq((double)((float *)proa_data(w))[1], 1);
        }
        proa_optimizer_free(opt);
    }
}
END_TEST

/* Backward, the sum of two gradients, clipping and a step, in which each allocation fails once. */
START_TEST(every_allocation_may_fail)
{
    const int64_t a[] = {3, 1, 3}, b[] = {0, 1};
    proa_set_threads(1);
    proa_tensor *w = table_of(5, 3);
    proa_optimizer *opt =
        proa_adam(PROA_LIST(w), .lr = 0.1, .lazy_mode = true, .clip = {PROA_CLIP_GLOBAL_NORM, 0.5});
    int64_t n = 0, before = 0;
    for (bool failed = true; failed; n++) {
        if (n == 1) before = proa_memory_get_stats().live_bytes; /* what is made once is there */
        proa_memory_fail_after(n);
        PROA_SCOPE {
            proa_backward(lookup(w, a, 3));
            proa_backward(proa_add(lookup(w, b, 2), lookup(w, a, 3)));
            proa_step(opt);
        }
        proa_memory_fail_after(-1);
        failed = proa_error() != PROA_OK;
        ck_assert_msg(!failed || proa_error() == PROA_ERR_OUT_OF_MEMORY, "%s", proa_error_message());
        proa_clear_error();
        proa_clear_grads(opt);
        if (n > 1) ck_assert_int_le(proa_memory_get_stats().live_bytes, before + 65536);
    }
    ck_assert_int_gt(n, 100);
    proa_optimizer_free(opt);
}
END_TEST

/* Memory goes with the rows that are touched, not with the table. */
START_TEST(a_large_table_costs_its_rows)
{
    const int64_t rows = 200000, length = 64;
    int64_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = (i * 7919) % rows;
    proa_tensor *w = table_of(rows, length);
    proa_optimizer *opt[] = {proa_sgd(PROA_LIST(w), .lr = 0.1), proa_adagrad(PROA_LIST(w), .lr = 0.1),
                             proa_adam(PROA_LIST(w), .lr = 0.1, .lazy_mode = true)};
    for (int k = 0; k < 3; k++) {
        int64_t before = proa_memory_get_stats().live_bytes;
        proa_memory_reset_peak();
        PROA_SCOPE {
            ck_assert_int_eq(proa_backward(lookup(w, ids, 100)), PROA_OK);
            ck_assert_int_eq(proa_step(opt[k]), PROA_OK);
        }
        ck_assert_int_lt(proa_memory_get_stats().peak_bytes - before, rows * length * 4 / 50);
        proa_optimizer_free(opt[k]);
    }
}
END_TEST

SUITE("rows", rows_are_made_and_read, bad_rows_are_refused, ops_that_do_not_know_rows_name_themselves,
      gradients_add_up, optimizers_take_rows, adam_of_rows_is_paddles, every_allocation_may_fail,
      a_large_table_costs_its_rows)
