/* Transforms: replay keeps identity or leaves the program alone, folding computes what is constant. */
#include "lists.h"
#include "suite.h"

#include "jit/ir/program.h"

#include <proa/ops.h>
#include <string.h>

static proa_tensor *filled(proa_ints shape, float value)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    for (int64_t i = 0; i < proa_numel(t); i++) ((float *)proa_data(t))[i] = value + (float)i;
    return t;
}

static proa_tensors with_constants(proa_tensors in, void *context)
{
    proa_tensor *w = context;
    proa_tensor *scale = proa_add(proa_full(PROA_SHAPE(3), 2.0), proa_full(PROA_SHAPE(3), 1.0));
    proa_tensor *turned = proa_multiply(proa_transpose(w, PROA_INTS(1, 0)), scale);
    return one(proa_relu(proa_matmul(in.at[0], turned)));
}

static float run_first(proa_program *p)
{
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, one(filled(PROA_SHAPE(2, 4), 1)));
    ck_assert_msg(out.count == 1, "%s", proa_error_message());
    float v = ((float *)proa_data(out.at[0]))[4];
    proa_executor_free(e);
    return v;
}

static proa_program *make(proa_tensor *w)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    proa_program *p = proa_capture(with_constants, &spec, 1, w);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    return p;
}

START_TEST(replay_keeps_names_and_results)
{
    proa_tensor *w = filled(PROA_SHAPE(3, 4), 1);
    proa_program *p = make(w);
    float before = run_first(p);
    int32_t ops = p->blocks[0]->n_ops;
    const proa_var *out = proa__root(p)->outputs[0], *in = proa__root(p)->inputs[0];
    char *name = strdup(out->name);
    ck_assert_int_eq(proa__program_replay(p, NULL), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, ops);
    ck_assert(proa__root(p)->outputs[0] == out && proa__root(p)->inputs[0] == in);
    ck_assert_str_eq(proa__root(p)->outputs[0]->name, name);
    ck_assert_str_eq(proa_name_of(proa_program_output(p, 0)), name);
    ck_assert(proa__var_find(p->blocks[0], name) == out);
    ck_assert(run_first(p) == before);
    free(name);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* Puts an addition of x to itself behind each relu. */
static proa_status doubling(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    (void)block;
    ++*(int *)context;
    PROA_TRY(proa_call_op(instr->op, args));
    if (strcmp(instr->op->name, "relu") != 0) return PROA_OK;
    proa_relu_args *a = args;
    a->out = proa_add(a->out, a->out);
    return a->out ? PROA_OK : proa_error();
}

START_TEST(replay_may_insert_ops)
{
    proa_program *p = make(filled(PROA_SHAPE(3, 4), 1));
    float before = run_first(p);
    int32_t ops = p->blocks[0]->n_ops, seen = 0;
    const proa_var *out = proa__root(p)->outputs[0];
    ck_assert_int_eq(proa__program_replay(p, &(proa__replay_hook){doubling, &seen}), PROA_OK);
    ck_assert_int_eq(seen, ops);
    ck_assert_int_eq(p->blocks[0]->n_ops, ops + 1);
    ck_assert(proa__root(p)->outputs[0] == out);
    ck_assert(run_first(p) == 2 * before);
    proa_program_free(p);
}
END_TEST

static proa_status failing(proa_block *block, const proa_instr *instr, void *args, void *context)
{
    (void)block;
    if (++*(int *)context == 4) return proa_fail(PROA_ERR_UNSUPPORTED, "no");
    return proa_call_op(instr->op, args);
}

START_TEST(failed_replay_changes_nothing)
{
    proa_program *p = make(filled(PROA_SHAPE(3, 4), 1));
    float before = run_first(p);
    int32_t ops = p->blocks[0]->n_ops, vars = p->blocks[0]->n_vars, seen = 0;
    ck_assert_int_eq(proa__program_replay(p, &(proa__replay_hook){failing, &seen}), PROA_ERR_UNSUPPORTED);
    proa_clear_error();
    ck_assert_int_eq(p->blocks[0]->n_ops, ops);
    ck_assert_int_eq(p->blocks[0]->n_vars, vars);
    for (int32_t i = 0; i < vars; i++) ck_assert_int_eq(p->blocks[0]->vars[i]->index, i);
    ck_assert(run_first(p) == before);
    proa_program_free(p);
}
END_TEST

START_TEST(folds_constants)
{
    proa_tensor *w = filled(PROA_SHAPE(3, 4), 1);
    proa_program *p = make(w);
    float before = run_first(p);
    ck_assert_int_eq(proa__program_fold(p, false), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, 4); /* transpose, multiply, matmul, relu */
    ck_assert(run_first(p) == before);
    for (int i = 0; i < 12; i++) ((float *)proa_data(w))[i] *= 2; /* w is no constant */
    ck_assert(run_first(p) == 2 * before);
    ck_assert_int_eq(proa__program_fold(p, true), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, 2); /* matmul, relu */
    ck_assert(run_first(p) == 2 * before);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors all_constant(proa_tensors in, void *context)
{
    (void)in, (void)context;
    return one(proa_add(proa_full(PROA_SHAPE(2), 2.0), proa_full(PROA_SHAPE(2), 1.0)));
}

START_TEST(folds_whole_programs)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(2, 4)};
    proa_program *p = proa_capture(all_constant, &spec, 1, NULL);
    ck_assert_int_eq(proa__program_fold(p, true), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, 0);
    proa_executor *e = proa_executor_new(p);
    proa_tensors out = proa_executor_run(e, one(filled(PROA_SHAPE(2, 4), 1)));
    ck_assert_msg(out.count == 1, "%s", proa_error_message());
    ck_assert(((float *)proa_data(out.at[0]))[1] == 3.0f);
    proa_executor_free(e);
    proa_program_free(p);
}
END_TEST

START_TEST(survives_failing_allocations)
{
    proa_tensor *w = filled(PROA_SHAPE(3, 4), 1);
    int64_t live = 0;
    for (int64_t n = 0;; n++) {
        ck_assert_int_lt(n, 5000);
        proa_status status = PROA_OK;
        PROA_SCOPE {
            proa_program *p = make(w);
            proa_memory_fail_after(n);
            status = proa__program_fold(p, true);
            proa_memory_fail_after(-1);
            proa_clear_error();
            ck_assert_float_gt(run_first(p), 0);
            proa_program_free(p);
        }
        if (n == 0) live = proa_memory_get_stats().live_bytes;
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
        if (status == PROA_OK) break;
        ck_assert_int_eq(status, PROA_ERR_OUT_OF_MEMORY);
    }
}
END_TEST

SUITE("jit_passes", replay_keeps_names_and_results, replay_may_insert_ops, failed_replay_changes_nothing,
      folds_constants, folds_whole_programs, survives_failing_allocations)
