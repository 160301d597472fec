/* Capture: what the door records, what it refuses, names and versions of variables, pruning. */
#include "lists.h"
#include "suite.h"

#include "jit/ir/program.h"

#include <proa/ops.h>
#include <string.h>

static proa_tensor *filled(proa_ints shape, float value)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    for (int64_t i = 0; i < proa_numel(t); i++) ((float *)proa_data(t))[i] = value;
    return t;
}

static proa_tensors affine(proa_tensors in, void *context)
{
    proa_tensor **w = context;
    proa_tensor *unused = proa_multiply(in.at[0], in.at[0]);
    (void)unused;
    return one(proa_relu(proa_add(proa_matmul(in.at[0], w[0]), w[1])));
}

static proa_program *capture_affine(proa_tensor **w)
{
    proa_input_spec spec = {.name = "image", .shape = PROA_SHAPE(-1, 4)};
    return proa_capture(affine, &spec, 1, w);
}

START_TEST(records_ops_and_persistables)
{
    proa_tensor *w[] = {filled(PROA_SHAPE(4, 3), 1), filled(PROA_SHAPE(3), 2)};
    proa_set_name(w[0], "weight");
    proa_program *p = capture_affine(w);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    ck_assert_int_eq(p->blocks[0]->n_ops, 3); /* the unused product is pruned */
    ck_assert_str_eq(p->blocks[0]->ops[0].op->name, "matmul");
    ck_assert_int_eq(proa_program_input_count(p), 1);
    ck_assert_int_eq(proa_program_output_count(p), 1);
    const proa_tensor *out = proa_program_output(p, 0);
    ck_assert(proa_is_symbolic(out));
    ck_assert_int_eq(proa_dim(out, 0), -1);
    ck_assert_int_eq(proa_dim(out, 1), 3);
    ck_assert_str_eq(proa_name_of(proa_program_input(p, 0)), "image");
    const proa_var *v = proa__var_find(p->blocks[0], "weight");
    ck_assert(v && v->persistable && v->value == w[0]);
    ck_assert(proa__var_of_concrete(p->blocks[0], w[0]) == v);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(prints_one_line_an_op)
{
    proa_tensor *w[] = {filled(PROA_SHAPE(4, 3), 1), filled(PROA_SHAPE(3), 2)};
    proa_program *p = capture_affine(w);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    ck_assert_int_eq(proa_program_print(p, to), PROA_OK);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "input image: float32[-1, 4]"));
    ck_assert_ptr_nonnull(strstr(text, "= matmul(x=image, y=param_"));
    ck_assert_ptr_nonnull(strstr(text, "transpose_x=false"));
    ck_assert_ptr_nonnull(strstr(text, "output tmp_"));
    free(text);
    proa_program_free(p);
}
END_TEST

static proa_tensors reads_data(proa_tensors in, void *context)
{
    (void)context;
    proa_item(in.at[0]);
    return in;
}

START_TEST(reading_symbolic_data_is_an_error)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(1)};
    ck_assert_ptr_null(proa_capture(reads_data, &spec, 1, NULL));
    ck_assert_int_ne(proa_error(), PROA_OK);
    proa_clear_error();
    ck_assert(!proa_door_is_open(PROA_DOOR_CAPTURE));
}
END_TEST

static proa_tensor *leaked;

static proa_tensors leaks(proa_tensors in, void *context)
{
    (void)context;
    leaked = proa_keep(proa_relu(in.at[0]));
    return one(leaked);
}

static proa_tensors uses_leaked(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_add(in.at[0], leaked));
}

START_TEST(variables_stay_in_their_program)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(2)};
    proa_program *p = proa_capture(leaks, &spec, 1, NULL);
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_null(proa_relu(leaked)); /* no capture is open */
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    ck_assert_ptr_null(proa_capture(uses_leaked, &spec, 1, NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    proa_program_free(p);
    ck_assert_ptr_null(proa_capture(uses_leaked, &spec, 1, NULL)); /* its variable is freed */
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    proa_release(leaked);
}
END_TEST

/* The allocator hands a freed variable's memory to the next one: the address alone says nothing. */
START_TEST(a_new_program_does_not_know_old_handles)
{
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(2)};
    proa_program *gone = proa_program_new();
    proa_tensor *old = proa_keep(proa_program_data(gone, &spec));
    proa_program_free(gone);
    proa_program *p = proa_program_new();
    proa_tensor *fresh = proa_program_data(p, &spec);
    old->var = fresh->var; /* as it mostly is by itself; a sanitizer's allocator hands out others */
    proa_program_open(p);
    ck_assert_ptr_null(proa_relu(old));
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    ck_assert_ptr_nonnull(proa_relu(fresh));
    proa_program_open(NULL);
    ck_assert_ptr_null(proa_program_name_of(p, old));
    ck_assert_int_eq(proa_program_set_outputs(p, PROA_LIST(old)), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    proa_program_free(p);
    proa_release(old);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors leaks_a_branch(proa_tensors in, void *context)
{
    (void)in;
    leaked = proa_keep(proa_relu(context));
    return one(leaked);
}

static proa_tensors plain_branch(proa_tensors in, void *context)
{
    (void)in;
    return one(proa_relu(context));
}

static proa_tensors branches(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *yes = proa_less_than(proa_sum(in.at[0]), proa_full(PROA_SCALAR_SHAPE, 1));
    return proa_cond(yes, leaks_a_branch, plain_branch, in.at[0]);
}

START_TEST(ends_are_variables_of_the_root_block)
{
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(2)};
    proa_program *p = proa_capture(branches, &spec, 1, NULL);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(proa_program_set_outputs(p, PROA_LIST(leaked)), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_int_eq(proa_program_set_inputs(p, PROA_LIST(leaked)), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    proa_tensor *x = proa_program_find(p, "x");
    ck_assert_int_eq(proa_program_set_inputs(p, PROA_LIST(x, x)), PROA_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "both x"));
    proa_clear_error();
    proa_program_free(p);
    proa_release(leaked);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* The result of an op may be fed as well: a transform keeps both. */
START_TEST(a_fed_result_survives_transforms)
{
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(2)};
    proa_program *p = proa_program_new();
    proa_program_open(p);
    proa_tensor *x = proa_program_data(p, &spec), *h = proa_relu(x), *y = proa_add(h, h);
    proa_program_open(NULL);
    ck_assert_int_eq(proa_program_set_inputs(p, PROA_LIST(x, h)), PROA_OK);
    ck_assert_int_eq(proa_program_set_outputs(p, PROA_LIST(y)), PROA_OK);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(proa_program_recast(p, false), PROA_OK);
    ck_assert_int_eq(proa_program_input_count(p), 2);
    ck_assert_int_eq(p->blocks[0]->n_ops, 2);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(freeing_an_open_program_closes_it)
{
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(2)};
    proa_program *p = proa_program_new();
    proa_program_open(p);
    proa_program_data(p, &spec);
    proa_program_free(p);
    ck_assert_ptr_null(proa_program_current());
    ck_assert(!proa_is_symbolic(proa_relu(filled(PROA_SHAPE(2), 1)))); /* eager again */
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors in_place(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *h = proa_add(in.at[0], in.at[0]);
    const struct proa_var *before = h->var;
    proa_tensor *r = proa_relu_(h);
    ck_assert_ptr_eq(r, h);
    ck_assert(h->var != before);
    return one(proa_add(h, in.at[0]));
}

START_TEST(in_place_makes_a_new_version)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1)};
    proa_program *p = proa_capture(in_place, &spec, 1, NULL);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    proa_block *b = p->blocks[0];
    ck_assert_int_eq(b->n_ops, 3);
    const proa_relu_args *relu = b->ops[1].args;
    const proa_add_args *last = b->ops[2].args;
    ck_assert(relu->x->var != relu->out->var);
    ck_assert(last->x->var == relu->out->var);
    proa_program_free(p);
}
END_TEST

static proa_tensors stale_view(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *h = proa_relu(in.at[0]);
    proa_tensor *view = proa_reshape(h, PROA_SHAPE(2, 2));
    proa_relu_(h);
    return one(proa_add(view, view));
}

static proa_tensors view_of_parameter(proa_tensors in, void *context)
{
    proa_tensor *view = proa_reshape(context, PROA_SHAPE(4));
    proa_add_(view, in.at[0]);
    return one(view);
}

START_TEST(in_place_through_views_is_refused)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(4)};
    ck_assert_ptr_null(proa_capture(stale_view, &spec, 1, NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "in place"));
    proa_clear_error();
    ck_assert_ptr_null(proa_capture(view_of_parameter, &spec, 1, filled(PROA_SHAPE(2, 2), 1)));
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
}
END_TEST

static proa_tensors adds_to_buffer(proa_tensors in, void *context)
{
    proa_add_(context, in.at[0]);
    return one(proa_relu(in.at[0]));
}

START_TEST(persistables_keep_one_name)
{
    proa_tensor *buffer = filled(PROA_SHAPE(4), 1);
    proa_input_spec spec = {.shape = PROA_SHAPE(4)};
    proa_program *p = proa_capture(adds_to_buffer, &spec, 1, buffer);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    ck_assert_int_eq(p->blocks[0]->n_ops, 2); /* a write to a persistable is needed */
    const proa_add_args *add = p->blocks[0]->ops[0].args;
    ck_assert(add->x->var == add->out->var);
    ck_assert(((float *)proa_data(buffer))[0] == 1.0f); /* capture runs nothing */
    ck_assert_int_eq(proa__program_prune(p, false), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, 1);
    proa_program_free(p);
}
END_TEST

static proa_tensors wrong_shapes(proa_tensors in, void *context)
{
    return one(proa_matmul(in.at[0], context));
}

START_TEST(checks_are_those_of_the_run_door)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 4)};
    ck_assert_ptr_null(proa_capture(wrong_shapes, &spec, 1, filled(PROA_SHAPE(5, 3), 1)));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "matmul"));
    proa_clear_error();
    proa_input_spec bad = {.shape = PROA_SHAPE(-2)};
    ck_assert_ptr_null(proa_capture(leaks, &bad, 1, NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_ptr_null(proa_capture(NULL, NULL, 0, NULL));
    proa_clear_error();
    proa_input_spec twice[] = {{.name = "a", .shape = PROA_SHAPE(1)}, {.name = "a", .shape = PROA_SHAPE(1)}};
    ck_assert_ptr_null(proa_capture(leaks, twice, 2, NULL));
    ck_assert_int_eq(proa_error(), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
}
END_TEST

/* Every allocation fails once: a typed error, and live memory is where it was. */
START_TEST(survives_failing_allocations)
{
    proa_tensor *w[] = {filled(PROA_SHAPE(4, 3), 1), filled(PROA_SHAPE(3), 2)};
    proa_program_free(capture_affine(w));
    int64_t live = proa_memory_get_stats().live_bytes;
    bool done = false;
    for (int64_t n = 0; !done && n < 2000; n++) {
        proa_memory_fail_after(n);
        proa_program *p = capture_affine(w);
        proa_memory_fail_after(-1);
        done = p != NULL;
        if (!p) ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
        proa_program_free(p);
        proa_clear_error();
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
    }
    ck_assert(done);
}
END_TEST

SUITE("jit_capture", records_ops_and_persistables, prints_one_line_an_op, reading_symbolic_data_is_an_error,
      variables_stay_in_their_program, a_new_program_does_not_know_old_handles,
      freeing_an_open_program_closes_it, in_place_makes_a_new_version, in_place_through_views_is_refused,
      persistables_keep_one_name, checks_are_those_of_the_run_door, ends_are_variables_of_the_root_block,
      a_fed_result_survives_transforms, survives_failing_allocations)
