/* Plans and executors: results equal eager ones for any shape, memory is planned and stays flat. */
#include "lists.h"
#include "suite.h"

#include "core/internal.h"
#include "jit/plan/plan.h"

#include <proa/ops.h>

static proa_tensor *rising(proa_ints shape, float start)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    for (int64_t i = 0; i < proa_numel(t); i++)
        ((float *)proa_data(t))[i] = start + 0.25f * (float)(i % 37) - 3.0f;
    return t;
}

static void assert_same(const proa_tensor *a, const proa_tensor *b)
{
    ck_assert_msg(a && b, "%s", proa_error_message());
    ck_assert_int_eq(proa_ndim(a), proa_ndim(b));
    for (int i = 0; i < proa_ndim(a); i++) ck_assert_int_eq(proa_dim(a, i), proa_dim(b, i));
    ck_assert_int_eq(proa_dtype_of(a), proa_dtype_of(b));
    size_t bytes = (size_t)proa_numel(a) * proa_dtype_size(proa_dtype_of(a));
    char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
    ck_assert_int_eq(proa_copy_out(a, x, bytes), PROA_OK);
    ck_assert_int_eq(proa_copy_out(b, y, bytes), PROA_OK);
    ck_assert_mem_eq(x, y, bytes);
    free(x);
    free(y);
}

typedef proa_tensors (*function)(proa_tensors in, void *context);

/* Runs fn eagerly and as a program, on all inputs given, with one executor. */
static void compare(function fn, void *context, const proa_input_spec *spec, proa_tensor *const *inputs,
                    int n)
{
    proa_program *p = proa_capture(fn, spec, 1, context);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_executor *e = proa_executor_new(p);
    ck_assert_msg(e != NULL, "%s", proa_error_message());
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            proa_tensors in = list_of(1, inputs[i], NULL);
            proa_tensors got = proa_executor_run(e, in), want = fn(in, context);
            ck_assert_msg(got.count == want.count, "%s", proa_error_message());
            for (int64_t k = 0; k < got.count; k++) assert_same(got.at[k], want.at[k]);
        }
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}

static proa_tensors network(proa_tensors in, void *context)
{
    proa_tensor **w = context;
    proa_tensor *h = proa_relu(proa_add(proa_matmul(in.at[0], w[0]), w[1]));
    proa_tensor *t = proa_transpose(h, PROA_INTS(1, 0));
    proa_tensor *gram = proa_matmul(h, t);
    proa_tensor *sum = proa_add(gram, gram);
    return list_of(2, proa_reshape(sum, PROA_SHAPE(1, -1)), proa_relu(h));
}

START_TEST(equals_eager)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_tensor *strided = proa_transpose(rising(PROA_SHAPE(4, 5), 0), PROA_INTS(1, 0));
    proa_tensor *in[] = {rising(PROA_SHAPE(2, 4), 0), rising(PROA_SHAPE(7, 4), 1),
                         rising(PROA_SHAPE(0, 4), 1), strided};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    compare(network, w, &spec, in, 3);
    (void)strided;
}
END_TEST

START_TEST(takes_strided_inputs)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_tensor *in[] = {proa_transpose(rising(PROA_SHAPE(4, 5), 0), PROA_INTS(1, 0))};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    compare(network, w, &spec, in, 1);
}
END_TEST

/* Outputs that are inputs, persistables, views of either, and one twice. */
static proa_tensors odd_outputs(proa_tensors in, void *context)
{
    proa_tensors list = {5, proa_scope_alloc(5 * sizeof(proa_tensor *))};
    proa_tensor *r = proa_relu(in.at[0]);
    list.at[0] = in.at[0];
    list.at[1] = context;
    list.at[2] = proa_transpose(in.at[0], PROA_INTS(1, 0));
    list.at[3] = r;
    list.at[4] = r;
    return list;
}

START_TEST(odd_outputs_are_fresh_tensors)
{
    proa_tensor *in[] = {rising(PROA_SHAPE(2, 4), 0), rising(PROA_SHAPE(3, 4), 0)};
    proa_tensor *w = rising(PROA_SHAPE(3), 1);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(odd_outputs, &spec, 1, w);
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, list_of(1, in[0], NULL));
    ck_assert_int_eq(out.count, 5);
    ck_assert(proa_data(out.at[0]) != proa_data(in[0]));
    ck_assert(proa_data(out.at[1]) != proa_data(w));
    ck_assert(proa_data(out.at[3]) != proa_data(out.at[4]));
    proa_executor_free(e);
    proa_program_free(p);
    compare(odd_outputs, w, &spec, in, 2);
}
END_TEST

/* The target shape is computed from the input's: known when planning, no cut. */
static proa_tensors shape_ops(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *s = proa_shape(in.at[0]);
    proa_ints shape = {.tensor = s};
    proa_tensor *flat = proa_reshape(in.at[0], PROA_SHAPE(-1));
    return list_of(1, proa_reshape(proa_relu(flat), shape), NULL);
}

START_TEST(shapes_as_tensors)
{
    proa_tensor *in[] = {rising(PROA_SHAPE(2, 4), 0), rising(PROA_SHAPE(3, 4), 0)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, -1)};
    compare(shape_ops, NULL, &spec, in, 2);
}
END_TEST

/* The number of positive entries is known in the run only: the plan is cut there. */
static proa_tensors data_shapes(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *r = proa_relu(in.at[0]);
    proa_tensor *where = proa_nonzero(r);
    return list_of(2, proa_add(where, where), proa_add(r, r));
}

START_TEST(shapes_that_depend_on_data)
{
    proa_tensor *in[12];
    for (int i = 0; i < 12; i++) in[i] = rising(PROA_SHAPE(2, 9), (float)i * 0.5f - 3.0f);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 9)};
    compare(data_shapes, NULL, &spec, in, 12);
}
END_TEST

/* A fed shape: the plan is cut before the op that needs it. */
static proa_tensors fed_shape(proa_tensors in, void *context)
{
    proa_ints shape = {.tensor = in.at[0]};
    proa_tensor *r = proa_reshape(proa_relu(context), shape);
    return list_of(1, proa_add(r, r), NULL);
}

START_TEST(shapes_that_are_fed)
{
    int64_t shapes[][2] = {{2, 6}, {3, 4}, {-1, 1}, {12, 1}};
    proa_tensor *in[4];
    for (int i = 0; i < 4; i++) in[i] = proa_from_data(shapes[i], PROA_SHAPE(2), PROA_I64);
    proa_input_spec spec = {.shape = PROA_SHAPE(2), .dtype = PROA_I64};
    compare(fed_shape, rising(PROA_SHAPE(12), 0), &spec, in, 4);
}
END_TEST

static proa_tensors counts_up(proa_tensors in, void *context)
{
    proa_add_(context, in.at[0]);
    return list_of(1, proa_add(context, in.at[0]), NULL);
}

START_TEST(writes_persistables)
{
    float one[2] = {1, 1}, zero[2] = {0, 0};
    proa_tensor *x = proa_from_data(one, PROA_SHAPE(2), PROA_F32);
    proa_tensor *total = proa_from_data(zero, PROA_SHAPE(2), PROA_F32);
    proa_input_spec spec = {.shape = PROA_SHAPE(2)};
    proa_program *p = proa_capture(counts_up, &spec, 1, total);
    proa_executor *e = proa_executor_new(p);
    for (int i = 1; i <= 3; i++) {
        proa_tensors out = proa_executor_run(e, list_of(1, x, NULL));
        ck_assert_int_eq(out.count, 1);
        ck_assert(((float *)proa_data(total))[1] == (float)i);
        ck_assert(((float *)proa_data(out.at[0]))[0] == (float)i + 1.0f);
    }
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors chain(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *t = in.at[0];
    for (int i = 0; i < 40; i++) t = i % 2 ? proa_relu(t) : proa_add(t, in.at[0]);
    return list_of(1, t, NULL);
}

START_TEST(arena_is_reused)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1)};
    proa_program *p = proa_capture(chain, &spec, 1, NULL);
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, list_of(1, rising(PROA_SHAPE(1000), 0), NULL));
    ck_assert_int_eq(out.count, 1);
    ck_assert_int_le(proa_executor_get_stats(e).arena_bytes, 2 * 4032);
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(warm_runs_allocate_outputs_only)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1)};
    proa_program *p = proa_capture(chain, &spec, 1, NULL);
    proa_executor *e = proa_executor_new(p);
    proa_tensor *x = rising(PROA_SHAPE(1000), 0);
    int64_t most = 0;
    for (int i = 0; i < 6; i++) {
        PROA_SCOPE {
            proa_tensors in = list_of(1, x, NULL);
            int64_t before = proa_memory_get_stats().allocations;
            ck_assert_int_eq(proa_executor_run(e, in).count, 1);
            if (i >= 2) most = proa_memory_get_stats().allocations - before;
        }
    }
    ck_assert_int_le(most, 3); /* the list of outputs, a handle and its storage */
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(memory_is_flat_over_many_shapes)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(network, &spec, 1, w);
    proa_executor *e = proa_executor_new(p);
    int64_t live = 0;
    for (int i = 0; i < 3000; i++) {
        PROA_SCOPE {
            int64_t rows = 1 + (i * 7) % 150;
            proa_tensor *x = rising(PROA_SHAPE(rows, 4), 0);
            ck_assert_int_eq(proa_executor_run(e, list_of(1, x, NULL)).count, 2);
        }
        int64_t now = proa_memory_get_stats().live_bytes;
        if (i == 500) live = now;
        if (i > 500) ck_assert_int_le(now, live + live / 50);
    }
    ck_assert_int_eq(proa_executor_get_stats(e).plans, 64);
    ck_assert_int_eq(proa_set_flag("kept_plans", "5"), PROA_OK);
    PROA_SCOPE {
        (void)proa_executor_run(e, list_of(1, rising(PROA_SHAPE(200, 4), 0), NULL));
    }
    ck_assert_int_eq(proa_executor_get_stats(e).plans, 5);
    ck_assert_int_eq(proa_set_flag("kept_plans", "64"), PROA_OK);
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(watch_door_sees_every_op)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(network, &spec, 1, w);
    proa_executor *e = proa_executor_new(p);
    proa_tensor *x = rising(PROA_SHAPE(2, 4), 0);
    proa_set_flag("check_nan_inf", "1");
    proa_tensors in = list_of(1, x, NULL), got = proa_executor_run(e, in), want = network(in, w);
    ck_assert_int_eq(got.count, 2);
    assert_same(got.at[0], want.at[0]);
    ((float *)proa_data(x))[3] = 1.0f / 0.0f;
    ck_assert_int_eq(proa_executor_run(e, in).count, 0);
    ck_assert_int_eq(proa_error(), PROA_ERR_NUMERIC);
    proa_clear_error();
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(bad_inputs_are_typed_errors)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(network, &spec, 1, w);
    proa_executor *e = proa_executor_new(p);
    proa_tensor *bad[] = {rising(PROA_SHAPE(2, 5), 0), rising(PROA_SHAPE(4), 0), PROA_NONE, NULL,
                          proa_empty(PROA_SHAPE(2, 4), PROA_F64)};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(proa_executor_run(e, list_of(1, bad[i], NULL)).count, 0);
        ck_assert_int_eq(proa_error(), i == 4 ? PROA_ERR_WRONG_TYPE : PROA_ERR_INVALID_ARGUMENT);
        proa_clear_error();
    }
    ck_assert_int_eq(proa_executor_run(e, list_of(2, bad[0], bad[0])).count, 0);
    proa_clear_error();
    ck_assert_int_eq(proa_executor_run(e, list_of(1, rising(PROA_SHAPE(2, 4), 0), NULL)).count, 2);
    proa_executor_free(e);
    proa_program_free(p);
    ck_assert_ptr_null(proa_executor_new(NULL));
    proa_clear_error();
}
END_TEST

START_TEST(survives_failing_allocations)
{
    proa_tensor *w[] = {rising(PROA_SHAPE(4, 3), 1), rising(PROA_SHAPE(3), 2)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(network, &spec, 1, w);
    proa_tensor *x = rising(PROA_SHAPE(2, 4), 0);
    proa_tensors in = list_of(1, x, NULL);
    PROA_SCOPE {
        network(in, w);
    }
    int64_t live = proa_memory_get_stats().live_bytes;
    bool done = false;
    for (int64_t n = 0; !done && n < 5000; n++) {
        PROA_SCOPE {
            proa_memory_fail_after(n);
            proa_executor *e = proa_executor_new(p);
            done = proa_executor_run(e, in).count == 2;
            if (!done && e) { /* the same executor works afterwards */
                proa_memory_fail_after(-1);
                ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
                proa_clear_error();
                ck_assert_int_eq(proa_executor_run(e, in).count, 2);
            }
            proa_memory_fail_after(-1);
            proa_executor_free(e);
            proa_clear_error();
        }
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
    }
    ck_assert(done);
    proa_program_free(p);
}
END_TEST

START_TEST(buffers_in_use_never_overlap)
{
    enum { N = 300 };
    static proa__buffer b[N];
    proa__buffer *list[N];
    uint32_t seed = 1;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        int32_t first = (int32_t)(seed >> 8) % 200;
        b[i] = (proa__buffer){.place = PROA__IN_ARENA,
                              .first = first,
                              .last = first + (int32_t)(seed >> 4) % 20,
                              .bytes = (int64_t)(seed >> 12) % 5000};
        list[i] = &b[i];
    }
    int64_t total = 0, all = 0;
    ck_assert_int_eq(proa__plan_memory(list, N, &total), PROA_OK);
    for (int i = 0; i < N; i++) {
        all += b[i].bytes;
        ck_assert_int_eq(b[i].offset % 64, 0);
        ck_assert_int_le(b[i].offset + b[i].bytes, total);
        for (int k = 0; k < i; k++) {
            bool together = b[i].first <= b[k].last && b[k].first <= b[i].last;
            bool apart = b[i].offset + b[i].bytes <= b[k].offset || b[k].offset + b[k].bytes <= b[i].offset;
            ck_assert(!together || apart);
        }
    }
    ck_assert_int_lt(total, all / 4);
}
END_TEST

SUITE("jit_executor", equals_eager, takes_strided_inputs, odd_outputs_are_fresh_tensors, shapes_as_tensors,
      shapes_that_depend_on_data, shapes_that_are_fed, writes_persistables, arena_is_reused,
      warm_runs_allocate_outputs_only, memory_is_flat_over_many_shapes, watch_door_sees_every_op,
      bad_inputs_are_typed_errors, survives_failing_allocations, buffers_in_use_never_overlap)
