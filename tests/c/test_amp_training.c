/* Autocast in training: a character transformer under bfloat16 O1 learns, its captured forward agrees with
 * the eager one, and decorated parameters (O2) train by their float32 masters. */
#include "suite.h"

#include <proa.h>

#include <math.h>

enum { LETTERS = 12, WINDOW = 16, FEATURES = 32 };

static proa_layer *make_net(void)
{
    return proa_sequential(proa_embedding_layer(LETTERS, FEATURES, -1),
                           proa_transformer_layer(FEATURES, 4, 64, .causal = true, .norm_first = true),
                           proa_layer_norm_layer(FEATURES), proa_linear_layer(FEATURES, LETTERS));
}

/* Rows of a sequence in which every letter follows from the one before. */
static void make_batch(proa_tensor **x, proa_tensor **y)
{
    int64_t a[8 * WINDOW], b[8 * WINDOW];
    for (int row = 0; row < 8; row++)
        for (int i = 0; i < WINDOW; i++) {
            a[row * WINDOW + i] = (row + i) * 5 % LETTERS;
            b[row * WINDOW + i] = (row + i + 1) * 5 % LETTERS;
        }
    *x = proa_from_data(a, PROA_SHAPE(8, WINDOW), PROA_I64);
    *y = proa_from_data(b, PROA_SHAPE(8, WINDOW), PROA_I64);
}

static double train(proa_layer *net, proa_amp_level level, int steps)
{
    proa_optimizer *opt = proa_adamw(proa_parameters(net), .lr = 3e-3);
    proa_tensor *x, *y;
    double value = 0;
    make_batch(&x, &y);
    for (int i = 0; i < steps; i++)
        PROA_SCOPE {
            proa_tensor *scores = NULL;
            PROA_AUTOCAST(level, .dtype = PROA_BF16) scores = proa_forward(net, x);
            if (level) ck_assert_int_eq(proa_dtype_of(scores), PROA_BF16);
            proa_tensor *loss = proa_cross_entropy(proa_cast(scores, PROA_F32), y);
            ck_assert_int_eq(proa_backward(loss), PROA_OK);
            ck_assert_int_eq(proa_step(opt), PROA_OK);
            value = proa_item(loss);
        }
    proa_optimizer_free(opt);
    ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    return value;
}

START_TEST(o1_learns)
{
    proa_seed(1);
    proa_layer *net = make_net();
    double first = train(net, PROA_AMP_O1, 1), last = train(net, PROA_AMP_O1, 60);
    ck_assert_double_gt(first, 2);
    ck_assert_double_lt(last, 0.3);
    ck_assert_int_eq(proa_dtype_of(proa_parameters(net).at[0]), PROA_F32);
    proa_layer_free(net);
}
END_TEST

static proa_tensors forward(proa_tensors in, void *net)
{
    proa_tensors out = {1, proa_scope_alloc(sizeof(proa_tensor *))};
    PROA_AUTOCAST(PROA_AMP_O1, .dtype = PROA_BF16) out.at[0] = proa_forward(net, in.at[0]);
    return out;
}

START_TEST(captured_equals_eager)
{
    proa_seed(2);
    proa_layer *net = make_net();
    proa_eval(net);
    proa_tensor *x, *y;
    make_batch(&x, &y);
    proa_tensor *eager = proa_cast(forward(PROA_LIST(x), net).at[0], PROA_F32);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, WINDOW), .dtype = PROA_I64};
    proa_program *p = proa_capture(forward, &spec, 1, net);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, PROA_LIST(x));
    ck_assert_msg(out.count == 1, "%s", proa_error_message());
    ck_assert_int_eq(proa_dtype_of(out.at[0]), PROA_BF16);
    proa_tensor *apart = proa_max(proa_abs(proa_subtract(proa_cast(out.at[0], PROA_F32), eager)));
    ck_assert_double_eq(proa_item(apart), 0);
    proa_executor_free(e);
    proa_program_free(p);
    proa_layer_free(net);
}
END_TEST

START_TEST(o2_learns_by_masters)
{
    proa_seed(3);
    proa_layer *net = make_net();
    ck_assert_int_eq(proa_amp_decorate(proa_parameters(net), PROA_BF16), PROA_OK);
    double last = train(net, PROA_AMP_O2, 60);
    ck_assert_int_eq(proa_dtype_of(proa_parameters(net).at[0]), PROA_BF16);
    ck_assert_double_lt(last, 0.5);
    proa_layer_free(net);
}
END_TEST

START_TEST(wrong_dtype_is_an_error)
{
    proa_layer *net = proa_linear_layer(2, 2);
    ck_assert_int_eq(proa_amp_decorate(proa_parameters(net), PROA_I32), PROA_ERR_WRONG_TYPE);
    proa_clear_error();
    ck_assert_ptr_null(proa_scaler_new(.growth = 0.5));
    proa_clear_error();
    proa_layer_free(net);
}
END_TEST

SUITE("amp", o1_learns, captured_equals_eager, o2_learns_by_masters, wrong_dtype_is_an_error)
