/* Steps of elementwise chains: their text and their records say the same, bad ones of either kind are
 * refused, and numbers arrive to the bit. */
#include "lists.h"
#include "suite.h"

#include "core/args.h"
#include "core/steps.h"
#include "jit/passes/passes.h"

#include <proa/ops.h>
#include <math.h>
#include <stdlib.h>

static char *printed(proa_steps steps)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    proa__print_steps(to, &steps);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

/* The steps of what print_steps gives for `steps`, without its quotes. */
static proa_steps again(proa_steps steps)
{
    char *text = printed(steps);
    text[strlen(text) - 1] = 0;
    const proa_steps read = proa_steps_read(text + 1);
    free(text);
    return read;
}

static proa_steps same_again(const char *text)
{
    const proa_steps steps = proa_steps_read(text), back = again(steps);
    ck_assert_msg(steps.at != NULL, "%s: %s", text, proa_error_message());
    ck_assert_msg(back.at != NULL, "%s: %s", text, proa_error_message());
    ck_assert_int_eq(steps.count, back.count);
    ck_assert_msg(!memcmp(steps.at, back.at, (size_t)back.count * sizeof *back.at), "%s", text);
    return steps;
}

START_TEST(text_and_steps_say_the_same)
{
    const proa_steps steps =
        same_again("t0 = add x0 x1; out leaky_relu t0 negative_slope=0.3; t2 = gelu t1 approximate=true; "
                   "t3 = cast t2 dtype=bfloat16; out lerp t0 t1 x127");
    ck_assert_int_eq(steps.count, 5);
    ck_assert_str_eq(steps.at[1].op->name, "leaky_relu");
    ck_assert(steps.at[1].out && !steps.at[0].out);
    ck_assert_int_eq(steps.at[1].in[0], ~0);
    ck_assert_int_eq(steps.at[4].in[2], 127);
    ck_assert_int_eq(steps.at[1].kinds[0], PROA_SCALAR_FLOAT);
    ck_assert(steps.at[1].values[0].f == 0.3);
    ck_assert_int_eq(steps.at[2].values[0].i, 1);
    ck_assert_int_eq(steps.at[3].values[0].i, PROA_BF16);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* A number that is not given, whole numbers beyond 2^53, and numbers that need 17 digits. */
START_TEST(numbers_keep_their_kind)
{
    proa_steps s =
        same_again("t0 = scale x0 scale=9007199254740993 bias=1e-300; out clip t0 min=-0.0 max=inf");
    ck_assert_int_eq(s.at[0].kinds[0], PROA_SCALAR_INT);
    ck_assert_int_eq(s.at[0].values[0].i, 9007199254740993);
    ck_assert(s.at[0].values[1].f == 1e-300);
    ck_assert_int_eq(s.at[0].values[2].i, 1); /* bias_after_scale, by default */
    ck_assert(s.at[1].values[0].f == 0 && signbit(s.at[1].values[0].f));
    ck_assert(isinf(s.at[1].values[1].f));
    s = same_again("t0 = scale x0 scale=2.0; t1 = scale t0 scale=true; out scale t1 scale=none");
    ck_assert_int_eq(s.at[0].kinds[0], PROA_SCALAR_FLOAT);
    ck_assert_int_eq(s.at[1].kinds[0], PROA_SCALAR_BOOL);
    ck_assert_int_eq(s.at[2].kinds[0], PROA_SCALAR_NONE);
    s = same_again("t0 = clip x0 max=0.1; out pow t0 y=3");
    ck_assert_int_eq(s.at[0].kinds[0], PROA_SCALAR_NONE);
    ck_assert(s.at[0].values[1].f == 0.1);
    ck_assert_int_eq(s.at[1].kinds[0], PROA_SCALAR_INT);
    s = same_again("t0 = scale x0 scale=9223372036854775807; out scale t0 scale=-9223372036854775809");
    ck_assert_int_eq(s.at[0].values[0].i, INT64_MAX);
    ck_assert_int_eq(s.at[1].kinds[0], PROA_SCALAR_FLOAT);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(bad_texts_are_refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {NULL, "step 0, at '': expected 't<i> =' or 'out'"},
        {"t0 = add x0 x1", "no step is an output"},
        {"t1 = add x0 x1; out relu t0", "step 0, at 't1': expected 't<i> =', i counting steps from 0"},
        {"out nothing x0", "step 0, at 'nothing': expected an elementwise op"},
        {"out conv2d x0 x1", "step 0, at 'conv2d': expected an elementwise op"},
        {"out add x0", "step 0, at 'add': has too few operands"},
        {"out add x0 x1 x2", "step 0, at 'x2': is one operand too many"},
        {"out add x0 t0", "step 0, at 't0': expected x<i>"},
        {"out add x0 x128", "step 0, at 'x128': expected x<i>"},
        {"out add x0 x99999999999999999999", "expected x<i>"},
        {"out add x0 x1 scale=1", "step 0, at 'scale': the op has no such attribute"},
        {"out scale x0 bias=x", "step 0, at 'x': expected a number, true or false"},
        {"out scale x0 bias=true", "step 0, at 'bias': expected a number"},
        {"out cast x0 dtype=float31", "step 0, at 'dtype': expected a dtype"},
        {"out cast x0", "step 0, at 'dtype': expected a dtype"},
        {"out relu x0; ", "step 1, at '': expected 't<i> =' or 'out'"},
        {"out relu "
         "x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "00",
         "has a word of more than 63 characters"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const proa_steps steps = proa_steps_read(bad[i].text);
        if (!proa_error()) { /* no fault of any step alone: the call refuses it */
            proa_tensor *x[] = {proa_ones(PROA_SHAPE(2), PROA_F32), proa_ones(PROA_SHAPE(2), PROA_F32)};
            ck_assert_int_eq(proa_fused_elementwise(((proa_tensors){2, x}), steps).count, 0);
        }
        ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(proa_error_message(), bad[i].says) != NULL, "%s", proa_error_message());
        proa_clear_error();
    }
    char many[PROA_STEPS_MAX * 16 + 16] = "out relu x0";
    for (int i = 0; i < PROA_STEPS_MAX; i++) strcat(many, "; out relu x0");
    ck_assert_int_eq(proa_steps_read(many).count, 0);
    ck_assert_msg(strstr(proa_error_message(), "step 32") != NULL, "%s", proa_error_message());
    proa_clear_error();
}
END_TEST

static void refuses(int64_t count, const proa_chain_step *at, const char *says)
{
    proa_tensor *x[] = {proa_ones(PROA_SHAPE(2), PROA_F32), proa_ones(PROA_SHAPE(2), PROA_F32)};
    ck_assert_int_eq(proa_fused_elementwise(((proa_tensors){2, x}), ((proa_steps){count, at})).count, 0);
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(proa_error_message(), says) != NULL, "%s", proa_error_message());
    proa_clear_error();
}

START_TEST(bad_steps_are_refused)
{
    const proa_chain_step good[] = {{.op = proa_find_op("add"), .in = {0, 1}},
                                    {.op = proa_find_op("leaky_relu"),
                                     .in = {~0},
                                     .out = true,
                                     .kinds = {PROA_SCALAR_FLOAT},
                                     .values = {{.f = 0.5}}}};
    proa_chain_step s[2];
    proa_tensor *x[] = {proa_ones(PROA_SHAPE(2), PROA_F32), proa_full(PROA_SHAPE(2), -3, .dtype = PROA_F32)};
    proa_tensors out = proa_fused_elementwise(((proa_tensors){2, x}), ((proa_steps){2, good}));
    ck_assert_msg(out.count == 1, "%s", proa_error_message());
    ck_assert(((const float *)proa_data(out.at[0]))[1] == -1);

    refuses(0, good, "expected 1 to 32 steps, got 0");
    refuses(33, good, "expected 1 to 32 steps, got 33");
    refuses(2, NULL, "expected 1 to 32 steps, got 2 at");
    refuses(1, good, "no step is an output");
#define BAD(change, says)          \
    do {                           \
        memcpy(s, good, sizeof s); \
        change;                    \
        refuses(2, s, says);       \
    } while (0)
    BAD(s[0].op = NULL, "step 0, at 'NULL': expected an elementwise op");
    BAD(s[0].op = proa_find_op("split"), "step 0, at 'split': expected an elementwise op");
    BAD(s[0].op = proa_find_op("equal"), "step 0 is equal, no elementwise op");
    BAD(s[0].in[1] = 2, "step 0 reads input 2 of 2");
    BAD(s[0].in[2] = 1, "step 0, at 'add': an operand is no input");
    BAD(s[0].in[0] = ~0, "step 0, at 'add': an operand is no input");
    BAD(s[1].in[0] = ~1, "step 1, at 'leaky_relu': an operand is no input");
    BAD(s[1].in[0] = -128, "step 1, at 'leaky_relu': an operand is no input");
    BAD(s[1].kinds[0] = PROA_SCALAR_INT, "step 1, at 'negative_slope': expected a number");
    BAD((s[1].op = proa_find_op("gelu"), s[1].kinds[0] = PROA_SCALAR_BOOL), "expected true or false");
    BAD((s[1].op = proa_find_op("pow"), s[1].kinds[0] = PROA_SCALAR_TENSOR), "expected a real number");
    BAD((s[1].op = proa_find_op("cast"), s[1].kinds[0] = PROA_SCALAR_INT, s[1].values[0].i = 99), "a dtype");
    BAD((s[1].op = proa_find_op("cast"), s[1].kinds[0] = PROA_SCALAR_INT, s[1].values[0].i = PROA_I32),
        "step 1 makes int32 of float32");
    BAD((s[1].op = proa_find_op("polygamma"), s[1].kinds[0] = PROA_SCALAR_INT), "the attribute is no number");
#undef BAD
    ck_assert_int_eq(proa_fused_elementwise(((proa_tensors){0, NULL}), ((proa_steps){2, good})).count, 0);
    ck_assert_msg(strstr(proa_error_message(), "expected one tensor or more") != NULL, "%s",
                  proa_error_message());
    proa_clear_error();
}
END_TEST

/* A copy of the args owns its steps; keys tell steps apart by all that the ops use. */
START_TEST(args_are_copied_and_told_apart)
{
    const proa_op *op = proa_find_op("fused_elementwise");
    proa_tensor *x[] = {proa_ones(PROA_SHAPE(2), PROA_F64)};
    const char *texts[] = {"out scale x0 scale=9007199254740992",
                           "out scale x0 scale=9007199254740993",
                           "out scale x0 scale=1.0",
                           "out scale x0 scale=1",
                           "out scale x0 scale=1 bias=-1",
                           "out clip x0 min=1",
                           "t0 = scale x0; out scale t0"};
    enum { N = sizeof texts / sizeof *texts };
    char keys[N][256];
    size_t bytes[N];
    for (int i = 0; i < N; i++) {
        proa_fused_elementwise_args args = {.x = {1, x}, .steps = proa_steps_read(texts[i])};
        proa_fused_elementwise_args *copy = proa__args_copy(op, &args);
        ck_assert_ptr_nonnull(copy);
        bytes[i] = proa__args_key(op, copy, keys[i], sizeof keys[i]);
        ck_assert_uint_gt(bytes[i], 0);
        ck_assert_ptr_ne(copy->steps.at, args.steps.at);
        ck_assert(!memcmp(copy->steps.at, args.steps.at, (size_t)args.steps.count * sizeof(proa_chain_step)));
        proa__args_free(op, copy);
        for (int j = 0; j < i; j++)
            ck_assert_msg(bytes[i] != bytes[j] || memcmp(keys[i], keys[j], bytes[i]), "%s: %s", texts[i],
                          texts[j]);
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors scaled(proa_tensors in, void *context)
{
    const proa_scalar *by = context;
    return one(proa_tanh(proa_scale(in.at[0], .scale = *by, .bias = 0.1)));
}

/* The pass takes numbers as they are: the chain prints the integer, the default for a number that is not
 * given, and computes what the ops do. */
START_TEST(the_pass_keeps_numbers)
{
    const proa_scalar by[] = {proa_scalar_int(9007199254740993), proa_scalar_float(0.1),
                              proa_scalar_bool(true), proa_scalar_float(2)};
    static const char *const says[] = {"scale=9007199254740993 ", "scale=0.10000000000000001 ", "scale=true ",
                                       "scale=2.0 "};
    for (int i = 0; i < 4; i++) {
        proa_input_spec spec = {.shape = PROA_SHAPE(3), .dtype = PROA_F64};
        proa_scalar number = by[i];
        proa_program *p = proa_capture(scaled, &spec, 1, &number);
        ck_assert_msg(p != NULL, "%s", proa_error_message());
        ck_assert_msg(proa__passes_run(p, "elementwise", false) == PROA_OK, "%s", proa_error_message());
        char *text = NULL;
        size_t n = 0;
        FILE *to = open_memstream(&text, &n);
        ck_assert_int_eq(proa_program_print(p, to), PROA_OK);
        fclose(to);
        ck_assert_msg(strstr(text, says[i]) != NULL, "%s", text);
        free(text);
        proa_tensor *x = proa_full(PROA_SHAPE(3), 1e-17, .dtype = PROA_F64);
        proa_executor *e = proa_executor_new(p);
        proa_tensors got = proa_executor_run(e, (proa_tensors){1, &x});
        proa_tensors want = scaled((proa_tensors){1, &x}, &number);
        ck_assert_msg(got.count == 1, "%s", proa_error_message());
        ck_assert(!memcmp(proa_data(got.at[0]), proa_data(want.at[0]), 3 * sizeof(double)));
        proa_executor_free(e);
        proa_program_free(p);
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("steps", text_and_steps_say_the_same, numbers_keep_their_kind, bad_texts_are_refused,
      bad_steps_are_refused, args_are_copied_and_told_apart, the_pass_keeps_numbers)
