/* The smoke test: a little of everything against answers known beforehand, in one program that needs nothing
 * but Proa, so that it runs wherever Proa is built: minimal builds, arm64 and old x86 under qemu.
 * Uses the public headers only. */
#include <proa.h>

#include <math.h>
#include <stdio.h>

static int failures, checks;

static void check(bool ok, const char *what)
{
    checks++;
    if (ok) return;
    failures++;
    fprintf(stderr, "smoke: wrong: %s%s%s\n", what, proa_error() == PROA_OK ? "" : ": ",
            proa_error_message());
    proa_clear_error();
}

/* True if every element of a float32 tensor is within 1e-5 (relative, at least absolute) of `expected`. */
static bool is_close(proa_tensor *t, const double *expected, int64_t n)
{
    float got[64];
    if (!t || n > 64 || proa_numel(t) != n || proa_copy_out(t, got, (size_t)n * sizeof *got) != PROA_OK) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double tolerance = 1e-5 * fmax(1, fabs(expected[i]));
        if (!(fabs((double)got[i] - expected[i]) <= tolerance)) return false;
    }
    return true;
}
#define IS(t, ...) \
    is_close((t), (const double[]){__VA_ARGS__}, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

static proa_tensor *vector(int64_t n, const float *values)
{
    return proa_from_data(values, PROA_SHAPE(n), PROA_F32);
}

static void test_elementwise(void)
{
    proa_tensor *x = vector(4, (float[]){-1, 0, 0.5F, 2}), *y = vector(4, (float[]){3, -2, 0.25F, 4});
    check(IS(proa_add(x, y), 2, -2, 0.75, 6), "add");
    check(IS(proa_subtract(x, y), -4, 2, 0.25, -2), "subtract");
    check(IS(proa_multiply(x, y), -3, 0, 0.125, 8), "multiply");
    check(IS(proa_divide(x, y), -1.0 / 3, 0, 2, 0.5), "divide");
    check(IS(proa_maximum(x, y), 3, 0, 0.5, 4), "maximum");
    check(IS(proa_relu(x), 0, 0, 0.5, 2), "relu");
    check(IS(proa_exp(x), exp(-1), 1, exp(0.5), exp(2)), "exp");
    check(IS(proa_tanh(x), tanh(-1), 0, tanh(0.5), tanh(2)), "tanh");
    check(IS(proa_sigmoid(x), 1 / (1 + exp(1)), 0.5, 1 / (1 + exp(-0.5)), 1 / (1 + exp(-2))), "sigmoid");
    check(IS(proa_erf(x), erf(-1), 0, erf(0.5), erf(2)), "erf");
    check(IS(proa_sin(x), sin(-1), 0, sin(0.5), sin(2)), "sin");
    check(IS(proa_log1p(proa_square(x)), log1p(1), 0, log1p(0.25), log1p(4)), "log1p");
    proa_tensor *column = proa_reshape(x, PROA_SHAPE(4, 1)), *row = proa_reshape(y, PROA_SHAPE(1, 4));
    check(IS(proa_add(proa_slice(column, PROA_INTS(0), PROA_INTS(2), PROA_INTS(4)), row), 3.5, -1.5, 0.75,
             4.5, 5, 0, 2.25, 6),
          "broadcasting over a view");
}

static void test_dtypes(void)
{
    const proa_dtype dtypes[] = {PROA_U8,   PROA_I8,  PROA_I16, PROA_I32, PROA_I64, PROA_F16,
                                 PROA_BF16, PROA_F32, PROA_F64, PROA_C64, PROA_C128};
    proa_tensor *x = vector(5, (float[]){1, 2, 3, 4, 5});
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        proa_tensor *t = proa_cast(x, dtypes[i]);
        t = proa_cast(proa_multiply(t, t), PROA_F32);
        check(IS(t, 1, 4, 9, 16, 25), proa_dtype_name(dtypes[i]));
    }
}

static void test_products(void)
{
    float a[6], b[12];
    for (int i = 0; i < 6; i++) a[i] = (float)(i + 1);
    for (int i = 0; i < 12; i++) b[i] = (float)(i - 4);
    proa_tensor *x = proa_from_data(a, PROA_SHAPE(2, 3), PROA_F32);
    proa_tensor *y = proa_from_data(b, PROA_SHAPE(3, 4), PROA_F32);
    check(IS(proa_matmul(x, y), 8, 14, 20, 26, 8, 23, 38, 53), "matmul");
    check(IS(proa_matmul(y, x, .transpose_x = true, .transpose_y = true), 8, 8, 14, 23, 20, 38, 26, 53),
          "matmul, both transposed");
    /* A size at which kernels use their blocks and vectors: the product of ones counts. */
    enum { N = 131 };
    static float ones[N * N];
    for (int i = 0; i < N * N; i++) ones[i] = 1;
    proa_tensor *square = proa_from_data(ones, PROA_SHAPE(N, N), PROA_F32);
    proa_tensor *counted = proa_matmul(square, square);
    check(proa_copy_out(counted, ones, sizeof ones) == PROA_OK && ones[N * N - 1] == (float)N, "matmul 131");
    check(IS(proa_softmax(x), 0.09003057, 0.24472847, 0.66524096, 0.09003057, 0.24472847, 0.66524096),
          "softmax");
}

static void test_gradient(void)
{
    proa_tensor *x = vector(3, (float[]){1, 2, 3});
    check(proa_set_stop_gradient(x, false) == PROA_OK, "wants a gradient");
    proa_tensor *y = proa_multiply(proa_multiply(x, x), x);
    check(proa_backward_all(PROA_LIST(y), (proa_tensors){0, NULL}, (proa_backward_opts){0}) == PROA_OK,
          "backward");
    check(IS(proa_grad_of(x), 3, 12, 27), "gradient of x cubed");
}

/* A small convolutional network must learn to tell a horizontal bar from a vertical one. */
static void test_training(void)
{
    enum { COUNT = 16, SIDE = 6 };
    static float images[COUNT][SIDE][SIDE];
    int64_t labels[COUNT];
    for (int i = 0; i < COUNT; i++) {
        labels[i] = i % 2;
        for (int j = 0; j < SIDE; j++) {
            if (labels[i]) images[i][(i / 2) % SIDE][j] = 1;
            else images[i][j][(i / 2) % SIDE] = 1;
        }
    }
    proa_seed(7);
    proa_tensor *x = proa_from_data(images, PROA_SHAPE(COUNT, 1, SIDE, SIDE), PROA_F32);
    proa_tensor *y = proa_from_data(labels, PROA_SHAPE(COUNT, 1), PROA_I64);
    proa_layer *net =
        proa_sequential(proa_conv2d_layer(1, 4, 3, .padding = 1), proa_relu_layer(), proa_max_pool2d_layer(2),
                        proa_flatten_layer(), proa_linear_layer(36, 2));
    proa_optimizer *opt = proa_adamw(proa_parameters(net), .lr = 0.02);
    double first = 0, last = 0;
    for (int step = 0; step < 60 && proa_error() == PROA_OK; step++) {
        PROA_SCOPE {
            proa_tensor *loss = proa_mean(proa_softmax_with_cross_entropy(proa_forward(net, x), y).loss);
            last = proa_item(loss);
            if (step == 0) first = last;
            proa_backward(loss);
            proa_step(opt);
        }
    }
    check(proa_error() == PROA_OK && last < 0.25 * first, "a network learns");
    proa_optimizer_free(opt);
    proa_layer_free(net);
}

static void test_errors(void)
{
    proa_tensor *x = vector(3, (float[]){1, 2, 3}), *y = vector(2, (float[]){1, 2});
    check(proa_add(x, y) == NULL && proa_error() == PROA_ERR_INVALID_ARGUMENT, "shapes that do not fit");
    proa_clear_error();
    check(proa_empty(PROA_SHAPE(INT64_MAX, 2), PROA_F64) == NULL && proa_error() == PROA_ERR_OVERFLOW,
          "a size beyond memory");
    proa_clear_error();
}

/* smoke [device]: where it runs; the CPU if none is named. */
int main(int argc, char **argv)
{
    if (argc > 1) check(proa_set_device(argv[1]) == PROA_OK, "the device is there");
    test_elementwise();
    test_dtypes();
    test_products();
    test_gradient();
    test_training();
    test_errors();
    printf("smoke: %d of %d checks passed; %s\n", checks - failures, checks, proa_build_info());
    return proa_finish(stderr) || failures != 0;
}
