/* Layers: names, state, modes, initializers' statistics, shapes and gradients of every layer, export. */
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <string.h>

static proa_tensor *normal(proa_ints shape) { return proa_gaussian(shape); }

static void check_ok(void) { ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message()); }

static void check_shape(const proa_tensor *t, proa_ints shape)
{
    check_ok();
    ck_assert_int_eq(proa_ndim(t), (int)shape.count);
    for (int i = 0; i < proa_ndim(t); i++) ck_assert_int_eq(proa_dim(t, i), shape.at[i]);
}

/* Forward in both modes, backward to every parameter. Frees the layer. */
static void check_layer(proa_layer *layer, proa_tensor *x, proa_ints shape)
{
    check_ok();
    proa_eval(layer);
    check_shape(proa_forward(layer, x), shape);
    proa_train(layer);
    proa_tensor *y = proa_forward(layer, x);
    check_shape(y, shape);
    proa_tensors params = proa_parameters(layer);
    if (params.count > 0) {
        ck_assert_int_eq(proa_backward(proa_sum(proa_square(y))), PROA_OK);
        for (int64_t i = 0; i < params.count; i++)
            ck_assert_msg(proa_grad_of(params.at[i]) != PROA_NONE, "%s has no gradient",
                          proa_name_of(params.at[i]));
    }
    proa_layer_free(layer);
    check_ok();
}

START_TEST(every_layer_runs)
{
    proa_tensor *images = normal(PROA_SHAPE(2, 4, 8, 8)), *rows = normal(PROA_SHAPE(3, 4));
    proa_tensor *sequences = normal(PROA_SHAPE(2, 5, 4));
    check_layer(proa_linear_layer(4, 7), rows, PROA_SHAPE(3, 7));
    check_layer(proa_linear_layer(4, 7, .no_bias = true), sequences, PROA_SHAPE(2, 5, 7));
    check_layer(proa_conv2d_layer(4, 6, 3, .padding = 1), images, PROA_SHAPE(2, 6, 8, 8));
    check_layer(proa_conv2d_layer(4, 6, 3, .stride = 2, .groups = 2, .no_bias = true), images,
                PROA_SHAPE(2, 6, 3, 3));
    check_layer(proa_conv2d_transpose_layer(4, 3, 2, .stride = 2), images, PROA_SHAPE(2, 3, 16, 16));
    check_layer(proa_conv1d_layer(4, 2, 3), normal(PROA_SHAPE(2, 4, 9)), PROA_SHAPE(2, 2, 7));
    check_layer(proa_conv1d_transpose_layer(4, 2, 3), normal(PROA_SHAPE(2, 4, 9)), PROA_SHAPE(2, 2, 11));
    check_layer(proa_conv3d_layer(4, 2, 2), normal(PROA_SHAPE(1, 4, 3, 3, 3)), PROA_SHAPE(1, 2, 2, 2, 2));
    check_layer(proa_conv3d_transpose_layer(4, 2, 2), normal(PROA_SHAPE(1, 4, 3, 3, 3)),
                PROA_SHAPE(1, 2, 4, 4, 4));
    check_layer(proa_batch_norm_layer(4), images, PROA_SHAPE(2, 4, 8, 8));
    check_layer(proa_batch_norm_layer(4, .no_affine = true), rows, PROA_SHAPE(3, 4));
    check_layer(proa_layer_norm_layer(4), sequences, PROA_SHAPE(2, 5, 4));
    check_layer(proa_group_norm_layer(2, 4), images, PROA_SHAPE(2, 4, 8, 8));
    check_layer(proa_instance_norm_layer(4), images, PROA_SHAPE(2, 4, 8, 8));
    check_layer(proa_relu_layer(), rows, PROA_SHAPE(3, 4));
    check_layer(proa_softmax_layer(), rows, PROA_SHAPE(3, 4));
    check_layer(proa_flatten_layer(), images, PROA_SHAPE(2, 256));
    check_layer(proa_dropout_layer(0.5), rows, PROA_SHAPE(3, 4));
    check_layer(proa_max_pool2d_layer(2), images, PROA_SHAPE(2, 4, 4, 4));
    check_layer(proa_avg_pool2d_layer(2), images, PROA_SHAPE(2, 4, 4, 4));
    check_layer(proa_adaptive_avg_pool2d_layer(2), images, PROA_SHAPE(2, 4, 2, 2));
    check_layer(proa_lstm_layer(4, 6), sequences, PROA_SHAPE(2, 5, 6));
    check_layer(proa_gru_layer(4, 6, .layers = 2, .bidirectional = true), sequences, PROA_SHAPE(2, 5, 12));
    check_layer(proa_attention_layer(4, 2, .causal = true), sequences, PROA_SHAPE(2, 5, 4));
    check_layer(proa_transformer_layer(4, 2, 8, .norm_first = true, .dropout = 0.1), sequences,
                PROA_SHAPE(2, 5, 4));
    check_layer(proa_residual_layer(proa_linear_layer(4, 4), NULL), rows, PROA_SHAPE(3, 4));
    check_layer(proa_residual_layer(proa_linear_layer(4, 2), proa_linear_layer(4, 2)), rows,
                PROA_SHAPE(3, 2));
    check_layer(proa_branches_layer(1, proa_linear_layer(4, 2), proa_linear_layer(4, 3)), rows,
                PROA_SHAPE(3, 5));
    check_layer(proa_branches_layer(0, proa_relu_layer(), proa_relu_layer()), rows, PROA_SHAPE(6, 4));
    proa_tensor *ids = proa_from_data((int64_t[]){0, 2, 1}, PROA_SHAPE(3), PROA_I64);
    check_layer(proa_embedding_layer(3, 5, 0), ids, PROA_SHAPE(3, 5));
}
END_TEST

START_TEST(ways_are_added_and_joined)
{
    proa_tensor *x = proa_randn(PROA_SHAPE(3, 4), PROA_F32);
    proa_layer *body = proa_linear_layer(4, 4), *net = proa_residual_layer(body, NULL);
    proa_tensor *y = proa_forward(net, x), *z = proa_add(proa_forward(body, x), x);
    ck_assert(memcmp(proa_data(y), proa_data(z), 12 * sizeof(float)) == 0);
    proa_layer_free(net);
    ck_assert_ptr_null(proa_residual_layer(NULL, proa_linear_layer(4, 4)));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    proa_layer *other = proa_branches_layer(0, proa_linear_layer(4, 2), proa_linear_layer(4, 3));
    ck_assert_ptr_null(proa_forward(other, x)); /* 2 and 3 columns lie in no common axis 0 */
    proa_clear_error();
    proa_layer_free(other);
}
END_TEST

START_TEST(accuracy_counts_the_best)
{
    proa_tensor *scores = proa_from_data((float[]){1, 2, 3, 9, 8, 7}, PROA_SHAPE(2, 3), PROA_F32);
    proa_tensor *label = proa_from_data((int64_t[]){2, 1}, PROA_SHAPE(2), PROA_I64);
    ck_assert_double_eq(proa_top_accuracy(scores, label, 1), 0.5);
    ck_assert_double_eq(proa_top_accuracy(scores, proa_unsqueeze(label, PROA_INTS(1)), 2), 1);
    ck_assert(isnan(proa_top_accuracy(scores, label, 4)));
    proa_clear_error();
    const float *u = proa_data(proa_rand(PROA_SHAPE(1000), PROA_F32));
    for (int i = 0; i < 1000; i++) ck_assert(u[i] >= 0 && u[i] < 1);
}
END_TEST

START_TEST(names_are_paddles)
{
    proa_layer *a = proa_linear_layer(2, 3),
               *b = proa_sequential(proa_batch_norm_layer(3), proa_linear_layer(3, 2));
    proa_named_list state = proa_layer_state(b);
    static const char *const paths[] = {"0.weight", "0.bias", "0._mean", "0._variance", "1.weight", "1.bias"};
    static const char *const names[] = {"batch_norm_0.w_0", "batch_norm_0.b_0", "batch_norm_0.w_1",
                                        "batch_norm_0.w_2", "linear_1.w_0",     "linear_1.b_0"};
    ck_assert_int_eq(state.count, 6);
    for (int i = 0; i < 6; i++) {
        ck_assert_str_eq(state.at[i].name, paths[i]);
        ck_assert_str_eq(proa_name_of(state.at[i].tensor), names[i]);
        ck_assert_int_eq(state.at[i].is_buffer, i == 2 || i == 3);
    }
    ck_assert_int_eq(proa_parameters(b).count, 4);
    ck_assert_int_eq(proa_parameter_count(a), 9);
    proa_layer_free(a);
    proa_layer_free(b);
}
END_TEST

/* Mean, standard deviation and largest magnitude of a layer's first parameter. */
static void check_spread(proa_layer *layer, double std, double limit)
{
    check_ok();
    proa_tensor *w = proa_parameters(layer).at[0];
    double sum = 0, squares = 0, largest = 0, n = (double)proa_numel(w);
    const float *v = proa_data(w);
    for (int64_t i = 0; i < proa_numel(w); i++) {
        sum += (double)v[i];
        squares += (double)v[i] * (double)v[i];
        largest = fmax(largest, fabs((double)v[i]));
    }
    ck_assert_double_lt(fabs(sum / n), 5 * std / sqrt(n));
    ck_assert_double_lt(fabs(sqrt(squares / n) / std - 1), 0.05);
    if (limit > 0) ck_assert_double_le(largest, limit * (1 + 1e-6));
    if (limit > 0) ck_assert_double_gt(largest, limit * 0.99);
    proa_layer_free(layer);
}

/* The spread of real Paddle 2.6.2's defaults: Xavier, normal √(2/(k·in)), N(0, 1), uniform 1/√hidden. */
START_TEST(defaults_spread_like_paddles)
{
    proa_seed(3);
    double xavier = sqrt(6.0 / 300), hidden = 1 / sqrt(64.0), transposed = sqrt(6.0 / (9 * 96));
    check_spread(proa_linear_layer(100, 200), xavier / sqrt(3), xavier);
    check_spread(proa_conv2d_layer(32, 64, 3), sqrt(2.0 / (9 * 32)), 0);
    check_spread(proa_conv2d_layer(32, 64, 3, .groups = 2), sqrt(2.0 / (9 * 32)), 0);
    check_spread(proa_conv2d_transpose_layer(32, 64, 3), transposed / sqrt(3), transposed);
    check_spread(proa_embedding_layer(100, 100, -1), 1, 0);
    check_spread(proa_lstm_layer(64, 64), hidden / sqrt(3), hidden);
    check_spread(proa_linear_layer(50, 80, .weight = {.kind = PROA_INIT_KAIMING_NORMAL}), sqrt(2.0 / 50), 0);
    check_spread(proa_linear_layer(80, 80, .weight = {.kind = PROA_INIT_TRUNCATED_NORMAL, .b = 0.5}),
                 0.5 * 0.8796, 1);
}
END_TEST

START_TEST(same_seed_same_parameters)
{
    float a[12], b[12];
    for (int i = 0; i < 2; i++) {
        proa_seed(11);
        proa_layer *l = proa_linear_layer(3, 4);
        ck_assert_int_eq(proa_copy_out(proa_parameters(l).at[0], i ? b : a, sizeof a), PROA_OK);
        proa_layer_free(l);
    }
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

START_TEST(causal_attention_sees_no_later_step)
{
    proa_layer *l = proa_transformer_layer(8, 2, 16, .causal = true);
    proa_tensor *x = normal(PROA_SHAPE(1, 6, 8));
    float before[48], after[48];
    ck_assert_int_eq(proa_copy_out(proa_forward(l, x), before, sizeof before), PROA_OK);
    float *v = proa_data(x);
    v[5 * 8] += 3; /* the last step */
    ck_assert_int_eq(proa_copy_out(proa_forward(l, x), after, sizeof after), PROA_OK);
    for (int i = 0; i < 40; i++) ck_assert_float_eq_tol(before[i], after[i], 1e-6F);
    float moved = 0;
    for (int i = 40; i < 48; i++) moved += fabsf(after[i] - before[i]);
    ck_assert_float_gt(moved, 0.01F);
    proa_layer_free(l);
}
END_TEST

START_TEST(batch_norm_learns_statistics)
{
    proa_layer *l = proa_batch_norm_layer(2, .momentum = 0.5);
    proa_tensor *x = proa_from_data((float[]){1, 10, 3, 30}, PROA_SHAPE(2, 2), PROA_F32);
    proa_forward(l, x);
    check_ok();
    const float *mean = proa_data(proa_layer_state(l).at[2].tensor);
    ck_assert_float_eq_tol(mean[0], 1, 1e-6F); /* 0.5·0 + 0.5·2 */
    ck_assert_float_eq_tol(mean[1], 10, 1e-5F);
    proa_eval(l);
    proa_forward(l, x);
    ck_assert_float_eq_tol(mean[0], 1, 1e-6F);
    proa_layer_free(l);
}
END_TEST

START_TEST(rnn_states)
{
    proa_layer *l = proa_lstm_layer(3, 4, .layers = 2);
    proa_tensor *x = normal(PROA_SHAPE(2, 5, 3));
    proa_tensor *lengths = proa_from_data((int32_t[]){5, 2}, PROA_SHAPE(2), PROA_I32);
    proa_rnn_output y = proa_rnn_forward(l, x, PROA_NONE, PROA_NONE, lengths);
    check_shape(y.out, PROA_SHAPE(2, 5, 4));
    check_shape(y.h, PROA_SHAPE(2, 2, 4));
    check_shape(y.c, PROA_SHAPE(2, 2, 4));
    float out[40];
    ck_assert_int_eq(proa_copy_out(y.out, out, sizeof out), PROA_OK);
    for (int i = 2 * 4; i < 5 * 4; i++) ck_assert_float_eq(out[20 + i], 0); /* past the second's length */
    proa_layer_free(l);
}
END_TEST

START_TEST(bad_layers_are_errors)
{
    ck_assert_ptr_null(proa_conv2d_layer(3, 4, 3, .groups = 2));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(proa_attention_layer(5, 2));
    proa_clear_error();
    ck_assert_ptr_null(proa_dropout_layer(1.5));
    proa_clear_error();
    ck_assert_ptr_null(proa_linear_layer(-2, 3));
    proa_clear_error();
    ck_assert_ptr_null(proa_group_norm_layer(3, 4));
    proa_clear_error();
    ck_assert_ptr_null(proa_sequential(proa_relu_layer(), NULL));
    proa_clear_error();
    ck_assert_ptr_null(proa_sequential_of(2, NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    const int64_t huge = INT64_C(1) << 61;
    ck_assert_ptr_null(proa_lstm_layer(3, huge));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(proa_conv3d_layer(1, 1, huge));
    ck_assert_int_ne(proa_error(), PROA_OK);
    proa_clear_error();
    proa_layer *l = proa_linear_layer(2, 3);
    ck_assert_ptr_null(proa_forward(l, normal(PROA_SHAPE(4, 5))));
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "linear"));
    proa_clear_error();
    proa_layer_free(l);
}
END_TEST

static void refused(const char *says)
{
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(proa_error_message(), says), "%s", proa_error_message());
    proa_clear_error();
}

START_TEST(trees_stay_trees)
{
    proa_layer *inner = proa_sequential(proa_linear_layer(2, 2)), *outer = proa_sequential(inner);
    ck_assert_ptr_null(proa_layer_add(outer, "self", outer));
    refused("contain itself");
    proa_layer *root = proa_sequential(outer);
    ck_assert_ptr_null(proa_layer_add(inner, "root", root));
    refused("contain itself");
    ck_assert_ptr_null(proa_layer_add(root, "again", inner));
    refused("has a parent already");
    ck_assert_int_eq(proa_parameters(root).count, 2);
    proa_layer_free(inner); /* its parent's: nothing happens */
    ck_assert_int_eq(proa_parameters(root).count, 2);

    proa_layer *child = proa_relu_layer(), *other = proa_relu_layer();
    ck_assert_ptr_null(proa_sequential(child, child, other, other, inner));
    refused("has a parent already");
    ck_assert_ptr_null(proa_sequential(inner));
    refused("has a parent already");
    proa_layer_free(root);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(exported_layer_predicts_the_same)
{
    char prefix[4096];
    snprintf(prefix, sizeof prefix, "%s/exported", test_folder());
    proa_layer *l = proa_sequential(proa_conv2d_layer(1, 4, 3, .padding = 1), proa_batch_norm_layer(4),
                                    proa_relu_layer(), proa_max_pool2d_layer(2), proa_flatten_layer(),
                                    proa_dropout_layer(0.5), proa_linear_layer(64, 3));
    proa_tensor *x = normal(PROA_SHAPE(5, 1, 8, 8));
    proa_forward(l, x); /* running statistics that are not the first */
#if !defined(PROA_HAVE_PROTOBUF_C)
    ck_assert_int_eq(proa_export(l, prefix, PROA_INPUT(-1, 1, 8, 8)), PROA_ERR_UNAVAILABLE);
    proa_clear_error();
    proa_layer_free(l);
    return;
#endif
    ck_assert_int_eq(proa_export(l, prefix, PROA_INPUT(-1, 1, 8, 8)), PROA_OK);
    ck_assert(!l->eval && !l->children[5]->eval);
    proa_eval(l);
    proa_tensor *expected = proa_forward(l, x);
    proa_program *p = proa_program_load(prefix);
    check_ok();
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, PROA_LIST(x));
    check_ok();
    const float *a = proa_data(expected), *b = proa_data(out.at[0]);
    for (int i = 0; i < 15; i++) ck_assert_float_eq_tol(a[i], b[i], 1e-5F);
    proa_executor_free(e);
    proa_program_free(p);
    proa_layer_free(l);
}
END_TEST

SUITE("nn", every_layer_runs, ways_are_added_and_joined, accuracy_counts_the_best, names_are_paddles,
      defaults_spread_like_paddles, same_seed_same_parameters, causal_attention_sees_no_later_step,
      batch_norm_learns_statistics, rnn_states, bad_layers_are_errors, trees_stay_trees,
      exported_layer_predicts_the_same)
