/* Errors, flags, devices, groups and the random generator: a thread's state and settings. */
#include "core/device.h"
#include "core/internal.h"
#include "core/philox.h"
#include "core/tensor.h"
#include "suite.h"

#include <float.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "'%s' lacks '%s'", proa_error_message(), part);
    proa_clear_error();
}

/* ---- errors ---------------------------------------------------------------------------- */

START_TEST(the_first_error_wins)
{
    ck_assert_int_eq(proa_error(), PROA_OK);
    ck_assert_str_eq(proa_error_message(), "");
    ck_assert_int_eq(proa_fail(PROA_ERR_IO, "file %d of %s", 3, "hull"), PROA_ERR_IO);
    ck_assert_int_eq(proa_fail(PROA_ERR_NUMERIC, "second"), PROA_ERR_IO);
    ck_assert_str_eq(proa_error_message(), "file 3 of hull");
    FILE *f = tmpfile();
    ck_assert_int_eq(proa_finish(f), 1);
    char line[200];
    rewind(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    ck_assert_str_eq(line, "proa: input/output failed: file 3 of hull\n");
    fclose(f);
    ck_assert_int_eq(proa_finish(NULL), 0);
    ck_assert_int_eq(proa_fail(PROA_OK, "none"), PROA_OK);
    ck_assert_int_eq(proa_fail((proa_status)1000, "odd"), PROA_ERR_INTERNAL);
    proa_clear_error();
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    proa_fail(PROA_ERR_IO, "%s", text);
    ck_assert_uint_gt(strlen(proa_error_message()), 1000);
    proa_clear_error();
    proa_op op = {.name = "matmul"};
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, &op, "y", "has %d axes", 0);
    ck_assert_str_eq(proa_error_message(), "matmul: y has 0 axes");
    ck_assert_int_eq(proa__op_fail(PROA_ERR_IO, NULL, NULL, "later"), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    proa__op_fail(PROA_ERR_UNSUPPORTED, &op, NULL, "no kernel");
    ck_assert_str_eq(proa_error_message(), "matmul: no kernel");
    proa_clear_error();
    proa__op_fail(PROA_ERR_IO, &op, text, "%s", text);
    ck_assert_uint_lt(strlen(proa_error_message()), sizeof text);
    proa_clear_error();
    ck_assert_str_eq(proa_error_exception(PROA_ERR_OUT_OF_MEMORY), "MemoryError");
    ck_assert_str_eq(proa_error_exception((proa_status)-5), "SystemError");
    ck_assert_str_eq(proa_error_text(PROA_ERR_CORRUPT), "corrupt data");
}
END_TEST

START_TEST(errors_may_show_where_they_were_raised)
{
    proa_set_flag("call_stack_level", "2");
    proa_fail(PROA_ERR_IO, "deep");
#if defined(__GLIBC__)
    expect(PROA_ERR_IO, "deep\n  at ");
#endif
}
END_TEST

/* ---- flags, devices, groups ------------------------------------------------------------ */

/* The environment is read once, by the latest when kernels are chosen at load: so a process of its own. */
static __attribute__((constructor)) void look_at_flags(void)
{
    if (!getenv("PROA_TEST_FLAGS")) return;
    bool ok = proa__flag_int(PROA_FLAG_check_nan_inf) == 1 && /* "nonsense" is as if not set */
              proa__flag_int(PROA_FLAG_cpu_level) == 9 && strcmp(proa_get_flag("cpu_level"), "9") == 0 &&
              !proa__alloc(5000) && proa_error() == PROA_ERR_OUT_OF_MEMORY;
    _exit(ok ? 0 : 1);
}

START_TEST(flags_from_the_environment)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("PROA_TEST_FLAGS", "1", 1);
        setenv("FLAGS_check_nan_inf", "True", 1);
        setenv("FLAGS_cpu_level", "nonsense", 1);
        setenv("FLAGS_memory_cap", "4096", 1);
        execl("/proc/self/exe", "flags", (char *)NULL);
        _exit(2);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(flags_can_be_set)
{
    ck_assert_int_eq(proa_set_flag("check_nan_inf", "true"), PROA_OK);
    ck_assert_int_eq(proa__flag_int(PROA_FLAG_check_nan_inf), 1);
    ck_assert_int_eq(proa_set_flag("FLAGS_check_nan_inf", "0"), PROA_OK);
    ck_assert_int_eq(proa__flag_int(PROA_FLAG_check_nan_inf), 0);
    ck_assert_int_eq(proa_set_flag("cpu_level", "0"), PROA_OK);
    ck_assert_int_eq(proa__cpu_level(), 0);
    proa_set_flag("sails", "1");
    expect(PROA_ERR_NOT_FOUND, "FLAGS_sails");
    ck_assert_ptr_null(proa_get_flag("sails"));
    expect(PROA_ERR_NOT_FOUND, "cpu_level");
    proa_set_flag("cpu_level", "high");
    expect(PROA_ERR_INVALID_ARGUMENT, "'high'");
    proa_set_flag("cpu_level", NULL);
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
    proa_set_flag(NULL, "1");
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
}
END_TEST

START_TEST(backends_can_be_left_out)
{
    proa_kernel onednn = {.name = "matmul_onednn"}, cpu = {.name = "matmul_cpu"},
                blas = {.name = "matmul_openblas"};
    ck_assert(proa__backend_allowed(&onednn) && proa__backend_allowed(&cpu) && proa__backend_allowed(&blas));
    proa_set_flag("backends", "cpu");
    ck_assert(!proa__backend_allowed(&onednn) && proa__backend_allowed(&cpu) &&
              !proa__backend_allowed(&blas));
    proa_set_flag("backends", "openblas, onednn");
    ck_assert(proa__backend_allowed(&onednn) && proa__backend_allowed(&cpu) && proa__backend_allowed(&blas));
    proa_set_flag("backends", "open");
    ck_assert(!proa__backend_allowed(&blas));
    ck_assert_str_eq(proa_get_flag("FLAGS_backends"), "open");
}
END_TEST

static char heap[4][4096]; /* of a device whose memory only its own functions may touch */
static int taken;
static void *toy_alloc(void *context, size_t bytes)
{
    (void)context;
    return bytes <= 4096 && taken < 4 ? heap[taken++] : NULL;
}
static void toy_free(void *context, void *p, size_t bytes)
{
    (void)context, (void)bytes;
    taken -= p != NULL;
}
static proa_status toy_copy(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memmove(to, from, bytes);
    return PROA_OK;
}
static proa_status toy_strided(void *context, const proa_strided_copy *c)
{
    int64_t at[PROA_MAX_DIMS] = {0};
    (void)context;
    for (;;) {
        int64_t to = 0, from = 0;
        for (int i = 0; i < c->ndim; i++) to += at[i] * c->to[i], from += at[i] * c->from[i];
        memcpy(c->dst + to, c->src + from, c->item);
        int d = c->ndim - 1;
        while (d >= 0 && ++at[d] == c->shape[d]) at[d--] = 0;
        if (d < 0) return PROA_OK;
    }
}
static proa_status toy_fill(void *context, void *to, const void *value, size_t item, int64_t count)
{
    (void)context;
    for (int64_t i = 0; i < count; i++) memcpy((char *)to + (size_t)i * item, value, item);
    return PROA_OK;
}
static proa_status toy_wait(void *context) { return context == heap ? PROA_OK : PROA_ERR_INTERNAL; }

START_TEST(devices)
{
    ck_assert_str_eq(proa_get_device(), "cpu");
    proa_set_device("gpu");
    expect(PROA_ERR_UNAVAILABLE, "cuda");
    proa_set_device("");
    expect(PROA_ERR_UNAVAILABLE, "only cpu");
    proa_set_device(NULL);
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
    static const proa_device_table toy = {.name = "toy:0",
                                          .context = heap,
                                          .alloc = toy_alloc,
                                          .free = toy_free,
                                          .copy_in = toy_copy,
                                          .copy_out = toy_copy,
                                          .copy = toy_copy,
                                          .copy_strided = toy_strided,
                                          .fill = toy_fill,
                                          .synchronize = toy_wait};
    ck_assert_int_eq(proa_add_device(&toy), 1);
    ck_assert_int_eq(proa_add_device(&toy), -1);
    expect(PROA_ERR_INVALID_ARGUMENT, "already");
    ck_assert_int_eq(proa_set_device("toy"), PROA_OK);
    ck_assert_str_eq(proa_get_device(), "toy:0");
    PROA_SCOPE {
        int32_t data[6] = {0, 1, 2, 3, 4, 5}, out[6];
        proa_tensor *t = proa_from_data(data, PROA_SHAPE(2, 3), PROA_I32);
        ck_assert_ptr_eq(proa_data(t), heap[0]);
        proa_tensor *v = proa__tensor_view(t, 2, (int64_t[]){3, 2}, (int64_t[]){-4, 12}, 8);
        ck_assert_int_eq(proa_copy_out(v, out, sizeof out), PROA_OK);
        ck_assert_int_eq(memcmp(out, (int32_t[]){2, 5, 1, 4, 0, 3}, sizeof out), 0);
        ck_assert_int_eq(proa_copy_in(v, (int32_t[]){12, 15, 11, 14, 10, 13}, sizeof out), PROA_OK);
        ck_assert_int_eq(proa_copy_out(t, out, sizeof out), PROA_OK);
        for (int i = 0; i < 6; i++) ck_assert_int_eq(out[i], 10 + i);
        ck_assert_ptr_null(proa_empty(PROA_SHAPE(5000), PROA_F32));
        expect(PROA_ERR_OUT_OF_MEMORY, "toy:0");
        ck_assert_int_eq(proa_synchronize(), PROA_OK);
    }
    ck_assert_int_eq(taken, 0);
    ck_assert_int_eq(proa_set_device("cpu"), PROA_OK);
}
END_TEST

START_TEST(the_group_of_one)
{
    proa_group *g = proa__default_group();
    float in[2] = {1, 2}, out[2] = {0, 0};
    ck_assert(g->size == 1 && g->rank == 0);
    ck_assert_int_eq(g->all_reduce(g, in, 2, PROA_F32, PROA_REDUCE_SUM), PROA_OK);
    ck_assert_int_eq(g->all_gather(g, in, out, sizeof in), PROA_OK);
    ck_assert(in[0] == 1 && out[1] == 2);
    ck_assert_int_eq(g->barrier(g), PROA_OK);
    ck_assert_int_eq(g->broadcast(g, in, sizeof in, 0), PROA_OK);
    g->broadcast(g, in, sizeof in, 1);
    expect(PROA_ERR_OUT_OF_RANGE, "root");
    proa_group other = *g;
    proa__set_default_group(&other);
    ck_assert_ptr_eq(proa__default_group(), &other);
    proa__set_default_group(NULL);
    ck_assert_ptr_eq(proa__default_group(), g);
}
END_TEST

/* ---- denormals -------------------------------------------------------------------------- */

static void halve(int64_t begin, int64_t end, void *context)
{
    volatile float *x = context;
    for (int64_t i = begin; i < end; i++) x[i] = x[i] * 0.5f;
}

START_TEST(denormals_can_be_flushed)
{
#if defined(__SSE__) || defined(__aarch64__)
    static float x[4000];
    proa_set_threads(4);
    for (int on = 1; on >= 0; on--) {
        proa_flush_denormals(on);
        for (int i = 0; i < 4000; i++) x[i] = FLT_MIN;
        proa__parallel(4000, 1, halve, x);
        proa_flush_denormals(false); /* comparing would flush, too */
        for (int i = 0; i < 4000; i++) ck_assert((x[i] == 0) == (on == 1));
    }
#endif
}
END_TEST

START_TEST(the_build_says_what_it_is)
{
    ck_assert_ptr_nonnull(strstr(proa_build_info(), proa_version()));
    ck_assert_ptr_null(strchr(proa_build_info(), '\n'));
}
END_TEST

/* ---- random numbers -------------------------------------------------------------------- */

static void known(proa__philox_block counter, uint32_t k0, uint32_t k1, proa__philox_block want)
{
    proa__philox_block got = proa__philox_raw(counter, k0, k1);
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(got.v[i], want.v[i]);
}

/* The vectors that the authors of Philox publish. */
START_TEST(philox_known_answers)
{
    const uint32_t f = 0xffffffffu;
    known((proa__philox_block){{0, 0, 0, 0}}, 0, 0,
          (proa__philox_block){{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    known((proa__philox_block){{f, f, f, f}}, f, f,
          (proa__philox_block){{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    known((proa__philox_block){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
          (proa__philox_block){{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
    proa__philox_block a = proa__philox(0x1234567890abcdefu, 0x111122223333u);
    known((proa__philox_block){{0x22223333, 0x1111, 0, 0}}, 0x90abcdef, 0x12345678, a);
}
END_TEST

START_TEST(the_state_can_be_saved)
{
    proa_seed(42);
    proa_rng_state a = proa__rng_reserve(10);
    ck_assert(a.seed == 42 && a.offset == 0);
    proa_rng_state saved = proa_rng_get(), b = proa__rng_reserve(7);
    ck_assert(b.seed == 42 && b.offset == 10);
    proa_rng_set(saved);
    proa_rng_state again = proa__rng_reserve(7);
    ck_assert_uint_eq(again.offset, b.offset);
    proa__philox_block x = proa__philox(b.seed, b.offset), y = proa__philox(again.seed, again.offset);
    ck_assert_int_eq(memcmp(&x, &y, sizeof x), 0);
    proa_seed(42);
    ck_assert_uint_eq(proa_rng_get().offset, 0);
}
END_TEST

START_TEST(numbers_have_the_right_distribution)
{
    enum { BLOCKS = 100000 };
    double sum = 0, squares = 0, low = 1, high = 0, mean = 0, cross = 0, wide = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        proa__philox_block r = proa__philox(7, i);
        float x, y;
        double p, q;
        proa__normal_f32(r.v[0], r.v[1], &x, &y);
        proa__normal_f64(r, &p, &q);
        sum += (double)x + (double)y;
        squares += (double)x * (double)x + (double)y * (double)y;
        cross += (double)x * (double)y;
        wide += p * p + q * q;
        double u = (double)proa__uniform_f32(r.v[2]), v = proa__uniform_f64(r.v[2], r.v[3]);
        low = u < low ? u : low, high = u > high ? u : high;
        mean += u;
        ck_assert(u - v < 1e-7 && v - u < 1e-7);
    }
    ck_assert(low >= 0 && low < 1e-4 && high < 1 && high > 1 - 1e-4);
    ck_assert_double_eq_tol(mean / BLOCKS, 0.5, 0.005);
    ck_assert_double_eq_tol(sum / (2 * BLOCKS), 0, 0.01);
    ck_assert_double_eq_tol(squares / (2 * BLOCKS), 1, 0.015);
    ck_assert_double_eq_tol(wide / (2 * BLOCKS), 1, 0.015);
    ck_assert_double_eq_tol(cross / BLOCKS, 0, 0.015);
    float x, y;
    proa__normal_f32(0xffffffffu, 0, &x, &y); /* the ends of the range stay finite */
    ck_assert(x == 0 && y == 0);
    proa__normal_f32(0, 0, &x, &y);
    ck_assert(x > 5 && x < 6);
    ck_assert(proa__uniform_f32(0xffffffffu) < 1 && proa__uniform_f64(0xffffffffu, 0xffffffffu) < 1);
}
END_TEST

SUITE("core_settings", the_first_error_wins, errors_may_show_where_they_were_raised,
      flags_from_the_environment, flags_can_be_set, backends_can_be_left_out, devices, the_group_of_one,
      denormals_can_be_flushed, the_build_says_what_it_is, philox_known_answers, the_state_can_be_saved,
      numbers_have_the_right_distribution)
