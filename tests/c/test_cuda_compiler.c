/* The sources of fused elementwise chains: NVRTC, where it is installed, compiles every op of the chain
 * table in every floating dtype, for GPUs that it knows and for one that it does not. No GPU is needed. */
#include "devices/cuda/compiler.h"
#include "devices/cuda/fuse.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether there is a compiler; says so, that a run without it is seen. */
static bool there(void)
{
    static bool said;
    const char *why, *name = cuda_compiler(&why);
    if (!said) printf("%s%s\n", name ? name : "sources are written, not compiled: ", name ? "" : why);
    said = true;
    return name != NULL;
}

static void compile(const char *source, int major, int minor)
{
    void *image = NULL;
    size_t bytes = 0;
    char why[4096] = "";
    bool done = cuda_compile(source, major, minor, &image, &bytes, why, sizeof why);
    ck_assert_msg(done, "%s\n%s", why, source);
    ck_assert_uint_gt(bytes, 0);
    free(image);
}

static const proa_dtype floats[] = {PROA_F32, PROA_F32}, doubles[] = {PROA_F64};

static proa_status fuse(const char *text, int n_inputs, const proa_dtype *dtypes, char *source)
{
    const proa_steps steps = proa_steps_read(text);
    return steps.at ? cuda_fuse(&steps, n_inputs, dtypes, source) : proa_error();
}

/* A chain of the next ops of the table, each of which takes x0, x1, x2 and is handed out; how many there
 * are. */
static int write_chain(const char *const **next, char *to, size_t capacity)
{
    enum { MAX = 9 }; /* results beside three operands */
    size_t n = 0;
    int steps = 0;
    for (; **next && steps < MAX; (*next)++, steps++) {
        const proa_op *op = proa_find_op(**next);
        ck_assert_msg(op != NULL, "%s is no op", **next);
        n += (size_t)snprintf(to + n, capacity - n, "%sout %s", steps ? "; " : "", op->name);
        for (int i = 0; i < op->n_in; i++) n += (size_t)snprintf(to + n, capacity - n, " x%d", i);
        if (!strcmp(op->name, "clip")) n += (size_t)snprintf(to + n, capacity - n, " min=-0.5");
        if (!strcmp(op->name, "cast")) n += (size_t)snprintf(to + n, capacity - n, " dtype=float32");
        if (!strcmp(op->name, "pow")) n += (size_t)snprintf(to + n, capacity - n, " y=2.5");
        ck_assert_uint_lt(n, capacity);
    }
    return steps;
}

START_TEST(every_op_of_the_table_compiles)
{
    static const proa_dtype dtypes[] = {PROA_F32, PROA_F64, PROA_F16, PROA_BF16};
    char steps[4096], *source = malloc(CUDA_FUSE_BYTES);
    int n = 0;
    for (const char *const *next = cuda_fuse_ops(); *next;) {
        n += write_chain(&next, steps, sizeof steps);
        for (int d = 0; d < 4; d++) {
            const proa_dtype of[] = {dtypes[d], dtypes[d], dtypes[d]};
            ck_assert_msg(fuse(steps, 3, of, source) == PROA_OK, "%s", steps);
            if (there()) compile(source, 9, 0);
        }
    }
    ck_assert_int_gt(n, 60);
    free(source);
}
END_TEST

START_TEST(casts_within_a_chain_compile)
{
    static const proa_dtype of[] = {PROA_F32, PROA_BF16, PROA_F16};
    char *source = malloc(CUDA_FUSE_BYTES);
    const char *steps = "t0 = cast x0 dtype=bfloat16; out multiply t0 x1; t2 = cast x2 dtype=float32; "
                        "t3 = cast t0 dtype=float32; t4 = add t2 t3; out gelu t4; out cast t4 dtype=float16";
    ck_assert_int_eq(fuse(steps, 3, of, source), PROA_OK);
    ck_assert_ptr_nonnull(strstr(source, "f.template operand<cuda_f16>(2);"));  /* the third output */
    ck_assert_ptr_nonnull(strstr(source, "f.template operand<cuda_bf16>(4);")); /* the second input */
    ck_assert_ptr_nonnull(strstr(source, "T t0 = fused_type<cuda_bf16>::step((x[0]));"));
    if (there()) compile(source, 9, 0);
    free(source);
}
END_TEST

START_TEST(other_gpus_are_compiled_for)
{
    char *source = malloc(CUDA_FUSE_BYTES);
    ck_assert_int_eq(fuse("t0 = add x0 x1; out gelu t0", 2, floats, source), PROA_OK);
    if (there()) {
        compile(source, 8, 0);
        compile(source, 99, 9); /* later than any that it knows: as text, for the driver */
    }
    free(source);
}
END_TEST

START_TEST(numbers_are_to_the_bit)
{
    char *source = malloc(CUDA_FUSE_BYTES);
    ck_assert_int_eq(
        fuse("t0 = scale x0 scale=0.1 bias=-3; out clip t0 min=-inf max=1e300", 1, doubles, source), PROA_OK);
    ck_assert_ptr_nonnull(strstr(source, "scale_fn<T>{(T)0x1.999999999999ap-4, (T)-0x1.8p+1, true}(x[0])"));
    ck_assert_ptr_nonnull(strstr(source, "clip_fn<T>{(T)-INFINITY, (T)0x1.7e43c8800759cp+996}(t0)"));
    ck_assert_ptr_nonnull(strstr(source, "y[0] = t1;"));
    free(source);
}
END_TEST

/* An op's product and the next one's sum are rounded each for itself: in the text for a later GPU there is no
 * fused operation, and every step ends in a sum that says how it rounds, which none may be made across. */
START_TEST(steps_are_not_contracted)
{
    static const struct {
        proa_dtype dtype;
        const char *fused, *step;
    } of[] = {{PROA_F32, "fma.rn.f32", "add.rn.f32"}, {PROA_F64, "fma.rn.f64", "add.rn.f64"}};
    char *source = malloc(CUDA_FUSE_BYTES);
    for (int i = 0; i < 2; i++) {
        const proa_dtype dtypes[] = {of[i].dtype, of[i].dtype, of[i].dtype};
        void *text = NULL;
        size_t bytes = 0;
        char why[4096] = "";
        ck_assert_int_eq(fuse("t0 = multiply x0 x1; out add t0 x2", 3, dtypes, source), PROA_OK);
        if (!there()) continue;
        ck_assert_msg(cuda_compile(source, 99, 9, &text, &bytes, why, sizeof why), "%s", why);
        ck_assert_int_eq(((const char *)text)[bytes - 1], 0);
        ck_assert_ptr_null(strstr(text, of[i].fused));
        ck_assert_ptr_nonnull(strstr(text, of[i].step));
        free(text);
    }
    free(source);
}
END_TEST

START_TEST(what_has_no_formula_is_declined)
{
    char *source = malloc(CUDA_FUSE_BYTES);
    ck_assert_int_eq(fuse("out matmul x0 x1", 2, floats, source), PROA_DECLINED);
    ck_assert_int_eq(fuse("out equal x0 x1", 2, floats, source), PROA_DECLINED);
    ck_assert_int_eq(fuse("out add x0 x2", 2, floats, source), PROA_DECLINED);
    ck_assert_int_eq(proa_error(), PROA_OK);
    free(source);
}
END_TEST

START_TEST(a_source_that_is_wrong_is_refused_with_its_log)
{
    void *image = NULL;
    size_t bytes = 0;
    char why[4096] = "";
    if (!there()) return;
    ck_assert(!cuda_compile("extern \"C\" __global__ void f() { nowhere(); }", 9, 0, &image, &bytes, why,
                            sizeof why));
    ck_assert_msg(strstr(why, "nowhere") != NULL, "%s", why);
}
END_TEST

SUITE("cuda compiler", every_op_of_the_table_compiles, casts_within_a_chain_compile,
      other_gpus_are_compiled_for, numbers_are_to_the_bit, steps_are_not_contracted,
      what_has_no_formula_is_declined, a_source_that_is_wrong_is_refused_with_its_log)
