/* Weights of INT8 kernels, which oneDNN packs into layouts of its own: who asks for the elements later gets
 * their bits, unpacked. */
#include "lists.h"
#include "suite.h"

#include "core/deferred.h"
#include "core/internal.h"

#include <proa.h>
#include <proa/ops/int8.h>

#include <string.h>

typedef struct layer {
    enum { LINEAR, CONV, TRANSPOSED } op;
    proa_dtype x;
    int64_t rows; /* of a linear layer; images of a convolution */
    int64_t weight[4], groups, side;
    bool channels_last;
} layer;

typedef struct constants {
    const layer *of;
    proa_tensor *weight, *scale;
} constants;

static proa_ints weight_shape(const layer *l)
{
    return (proa_ints){l->op == LINEAR ? 2 : 4, l->weight, NULL, NULL};
}

static int64_t channels_of(const layer *l) { return l->weight[l->op == CONV ? 0 : 1]; }

static int64_t channels_in(const layer *l) { return l->op == CONV ? l->weight[1] * l->groups : l->weight[0]; }

static proa_tensors forward(proa_tensors in, void *context)
{
    const constants *c = context;
    const layer *l = c->of;
    proa_data_format format = l->channels_last ? PROA_DATA_FORMAT_NHWC : PROA_DATA_FORMAT_NCHW;
    proa_tensor *x = in.at[0], *none = PROA_NONE;
    if (l->op == LINEAR) return one(proa_linear_int8(x, c->weight, c->scale, none, none));
    if (l->op == TRANSPOSED)
        return one(proa_conv2d_transpose_int8(x, c->weight, c->scale, none, .data_format = format));
    return one(proa_conv2d_int8(x, c->weight, c->scale, none, none, .padding = PROA_INTS(1, 1),
                                .groups = l->groups, .data_format = format));
}

static proa_tensor *input_of(const layer *l)
{
    int64_t n = channels_in(l), s = l->side;
    proa_ints shape = l->op == LINEAR    ? PROA_SHAPE(l->rows, n)
                      : l->channels_last ? PROA_SHAPE(l->rows, s, s, n)
                                         : PROA_SHAPE(l->rows, n, s, s);
    return proa_full(shape, PROA_SCALAR(3), .dtype = l->x);
}

/* Runs the layer on a weight that nobody else refers to, and compares what is unpacked. True if the kernel
 * packed it; false if it read the elements. */
static bool returns_its_bits(const layer *l, int8_t *bytes)
{
    PROA_SCOPED;
    proa_tensor *x = input_of(l);
    constants c = {l, proa_from_data(bytes, weight_shape(l), PROA_I8),
                   proa_full(PROA_SHAPE(channels_of(l)), PROA_SCALAR(0.5), .dtype = PROA_F32)};
    size_t n = (size_t)proa_numel(c.weight);
    ck_assert_int_eq(proa__defer(c.weight), PROA_OK);
    ck_assert(proa__is_unread(c.weight));
    proa_input_spec spec = {"x", {proa_ndim(x), proa_shape_of(x), NULL, NULL}, l->x};
    proa_program *p = proa_capture(forward, &spec, 1, &c);
    proa_executor *e = p ? proa_executor_with(p, (proa_executor_opts){.frozen = true}) : NULL;
    ck_assert_msg(e && proa_executor_run(e, one(x)).count == 1, "%s", proa_error_message());
    bool packed = proa__is_unread(c.weight);
    const void *elements = proa_data(c.weight);
    ck_assert_msg(elements && memcmp(elements, bytes, n) == 0, "op %d, x %s, weight [%lld, %lld, %lld, %lld]",
                  (int)l->op, proa_dtype_name(l->x), (long long)l->weight[0], (long long)l->weight[1],
                  (long long)l->weight[2], (long long)l->weight[3]);
    proa_executor_free(e);
    proa_program_free(p);
    return packed;
}

/* Sizes that fill blocks of oneDNN's layouts and sizes that do not; depthwise and grouped filters. */
static const layer layers[] = {
    {LINEAR, PROA_U8, 1, {1280, 1000}, 1, 0, false},
    {LINEAR, PROA_U8, 128, {768, 768}, 1, 0, false},
    {LINEAR, PROA_U8, 40, {133, 70}, 1, 0, false},
    {LINEAR, PROA_U8, 7, {64, 47}, 1, 0, false},
    {CONV, PROA_U8, 1, {32, 3, 3, 3}, 1, 32, true},
    {CONV, PROA_U8, 1, {96, 16, 1, 1}, 1, 28, true},
    {CONV, PROA_U8, 1, {24, 144, 1, 1}, 1, 28, true},
    {CONV, PROA_U8, 2, {64, 64, 3, 3}, 1, 14, true},
    {CONV, PROA_U8, 1, {33, 17, 3, 3}, 1, 14, false},
    {CONV, PROA_U8, 1, {96, 1, 3, 3}, 96, 28, true},
    {CONV, PROA_U8, 1, {19, 1, 5, 5}, 19, 20, true},
    {CONV, PROA_U8, 1, {64, 8, 3, 3}, 4, 14, true},
    {TRANSPOSED, PROA_U8, 1, {32, 24, 2, 2}, 1, 14, true},
    {TRANSPOSED, PROA_U8, 1, {17, 9, 3, 3}, 1, 14, false},
};

static void pack_all(void)
{
    enum { N = sizeof layers / sizeof *layers, MOST = 1280 * 1000 };
    static int8_t bytes[MOST];
    for (int i = 0; i < MOST; i++) bytes[i] = (int8_t)(i * 37 % 255 - 127);
    int packed = 0;
    for (int i = 0; i < 2 * N; i++) {
        layer l = layers[i / 2];
        if (i % 2) l.x = PROA_I8; /* sums of signed bytes have a compensation behind the packed weight */
        packed += returns_its_bits(&l, bytes);
    }
#if defined(PROA_HAVE_ONEDNN) && defined(__x86_64__)
    if (proa__cpu_level() > 0) ck_assert_int_ge(packed, N / 2);
#endif
    ck_assert_int_eq(proa_finish(stderr), 0);
}

START_TEST(packed_bytes_keep_their_bits) { pack_all(); }
END_TEST

/* Packs as a lesser CPU does: oneDNN reads the limit when it is first used, in this test's own process. */
static void pack_all_as(const char *isa)
{
    ck_assert_int_eq(setenv("ONEDNN_MAX_CPU_ISA", isa, 1), 0);
    pack_all();
}

START_TEST(layouts_of_avx512) { pack_all_as("AVX512_CORE"); }
END_TEST

START_TEST(layouts_of_avx2) { pack_all_as("AVX2"); }
END_TEST

SUITE("packed INT8 weights", packed_bytes_keep_their_bits, layouts_of_avx512, layouts_of_avx2)
