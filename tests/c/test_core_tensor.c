/* Tensor handles: made, viewed, copied, printed, freed; bad input refused. */
#include "core/internal.h"
#include "core/tensor.h"
#include "suite.h"

#include <math.h>

static int64_t live(void) { return proa_memory_get_stats().live_blocks; }

static void expect(proa_status code, const char *part)
{
    ck_assert_int_eq(proa_error(), code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "'%s' lacks '%s'", proa_error_message(), part);
    proa_clear_error();
}

START_TEST(made_and_asked)
{
    int32_t data[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0};
    proa_tensor *t = proa_from_data(data, PROA_SHAPE(2, 3), PROA_I32);
    ck_assert_int_eq(proa_ndim(t), 2);
    ck_assert_int_eq(proa_dim(t, 0), 2);
    ck_assert_int_eq(proa_dim(t, -1), 3);
    ck_assert_int_eq(proa_numel(t), 6);
    ck_assert_int_eq(proa_dtype_of(t), PROA_I32);
    ck_assert_int_eq(proa_strides_of(t)[0], 12);
    ck_assert_int_eq(proa_strides_of(t)[1], 4);
    ck_assert(proa_is_contiguous(t) && !proa_is_symbolic(t));
    ck_assert_uint_eq((uintptr_t)proa_data(t) % 64, 0);
    ck_assert_uint_eq(proa__version(t), 0);
    ck_assert_int_eq(proa_copy_out(t, back, sizeof back), PROA_OK);
    ck_assert_int_eq(memcmp(data, back, sizeof data), 0);
    data[0] = 9;
    ck_assert_int_eq(proa_copy_in(t, data, sizeof data), PROA_OK);
    ck_assert_uint_eq(proa__version(t), 1);
    proa_touch(t);
    ck_assert_uint_eq(proa__version(t), 2);
    ck_assert_int_eq(((int32_t *)proa_data(t))[0], 9);
    ck_assert_ptr_null(proa_name_of(t));
    ck_assert_int_eq(proa_set_name(t, "mast"), PROA_OK);
    ck_assert_str_eq(proa_name_of(t), "mast");
    ck_assert_int_eq(proa_set_name(t, NULL), PROA_OK);
    ck_assert_ptr_null(proa_name_of(t));
    proa_tensor *scalar = proa_from_data(data, PROA_SCALAR_SHAPE, PROA_I32);
    ck_assert_int_eq(proa_numel(scalar), 1);
    ck_assert_int_eq(proa_item_int(scalar), 9);
    proa_tensor *empty = proa_from_data(NULL, PROA_SHAPE(3, 0, 2), PROA_F64);
    ck_assert_int_eq(proa_numel(empty), 0);
    ck_assert(proa_is_contiguous(empty));
    ck_assert_int_eq(proa_copy_out(empty, NULL, 0), PROA_OK);
    ck_assert_int_eq(proa_finish(NULL), 0);
}
END_TEST

START_TEST(bad_input_is_refused)
{
    float data[2] = {1, 2};
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(2, -1), PROA_F32));
    expect(PROA_ERR_INVALID_ARGUMENT, "[2, -1]");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(2), PROA_NODTYPE));
    expect(PROA_ERR_WRONG_TYPE, "empty: dtype");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(2), (proa_dtype)77));
    expect(PROA_ERR_WRONG_TYPE, "unknown");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1), PROA_F32));
    expect(PROA_ERR_INVALID_ARGUMENT, "0 to 9");
    ck_assert_ptr_null(proa_empty((proa_ints){2, NULL, NULL, NULL}, PROA_F32));
    proa_clear_error();
    ck_assert_ptr_null(proa_empty((proa_ints){-2, NULL, NULL, NULL}, PROA_F32));
    proa_clear_error();
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), PROA_F32));
    expect(PROA_ERR_OVERFLOW, "2^63");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(INT64_C(1) << 61), PROA_F64));
    expect(PROA_ERR_OVERFLOW, "2^63");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(INT64_C(1) << 50), PROA_F64));
    expect(PROA_ERR_OUT_OF_MEMORY, "out of memory");
    ck_assert_ptr_nonnull(proa_empty(PROA_SHAPE(INT64_C(1) << 40, 0, INT64_C(1) << 40), PROA_F32));
    ck_assert_ptr_null(proa_from_data(NULL, PROA_SHAPE(2), PROA_F32));
    expect(PROA_ERR_INVALID_ARGUMENT, "float32[2]");
    ck_assert_ptr_null(proa_from_foreign(NULL, PROA_SHAPE(2), NULL, PROA_F32, NULL, NULL));
    expect(PROA_ERR_INVALID_ARGUMENT, "from_foreign");
    proa_tensor *t = proa_from_data(data, PROA_SHAPE(2), PROA_F32);
    ck_assert_int_eq(proa_dim(t, 1), -1);
    expect(PROA_ERR_OUT_OF_RANGE, "axis 1");
    ck_assert_int_eq(proa_dim(t, -2), -1);
    expect(PROA_ERR_OUT_OF_RANGE, "axis -2");
    ck_assert(isnan(proa_item(t)));
    expect(PROA_ERR_INVALID_ARGUMENT, "one element");
    ck_assert_int_ne(proa_copy_out(t, data, 4), PROA_OK);
    expect(PROA_ERR_INVALID_ARGUMENT, "expected 8 bytes");
    ck_assert_int_ne(proa_copy_in(t, NULL, 8), PROA_OK);
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
    ck_assert_int_ne(proa_copy_in(NULL, data, 8), PROA_OK);
    expect(PROA_ERR_INVALID_ARGUMENT, "NULL");
    ck_assert_int_ne(proa_set_name(proa_none, "x"), PROA_OK);
    expect(PROA_ERR_INVALID_ARGUMENT, "PROA_NONE");
    ck_assert_int_eq(proa_ndim(NULL), 0);
    ck_assert_int_eq(proa_numel(NULL), 0);
    ck_assert_ptr_null(proa_data(NULL));
    ck_assert_ptr_null(proa_shape_of(NULL));
    ck_assert(!proa_is_contiguous(NULL) && !proa_is_symbolic(NULL));
    proa_release(NULL);
    proa_release(proa_none);
    ck_assert_ptr_null(proa_retain(NULL));
    ck_assert_ptr_eq(proa_retain(proa_none), proa_none);
    ck_assert_int_eq(proa_error(), PROA_OK);
}
END_TEST

START_TEST(while_an_error_stands_nothing_happens)
{
    float one = 1, two = 2;
    proa_tensor *t = proa_from_data(&one, PROA_SHAPE(1), PROA_F32);
    proa_fail(PROA_ERR_IO, "first");
    ck_assert_ptr_null(proa_empty(PROA_SHAPE(1), PROA_F32));
    ck_assert_ptr_null(proa_from_data(&one, PROA_SHAPE(1), PROA_F32));
    ck_assert_int_eq(proa_copy_in(t, &two, 4), PROA_ERR_IO);
    ck_assert_int_eq(proa_set_name(t, "x"), PROA_ERR_IO);
    ck_assert_int_eq(proa_set_flag("cpu_level", "0"), PROA_ERR_IO);
    expect(PROA_ERR_IO, "first");
    ck_assert_float_eq((float)proa_item(t), 1);
    ck_assert_ptr_null(proa_name_of(t));
}
END_TEST

/* [[0 1 2] [3 4 5]] seen transposed, reversed, stepped, broadcast, as its diagonal. */
START_TEST(views_show_the_same_memory)
{
    int16_t data[6] = {0, 1, 2, 3, 4, 5}, out[12];
    proa_tensor *t = proa_from_data(data, PROA_SHAPE(2, 3), PROA_I16);
    int64_t before = live();
    PROA_SCOPE {
        proa_tensor *v = proa__tensor_view(t, 2, (int64_t[]){3, 2}, (int64_t[]){2, 6}, 0);
        ck_assert(!proa_is_contiguous(v));
        ck_assert_int_eq(proa_numel(v), 6);
        ck_assert_int_eq(proa_copy_out(v, out, 12), PROA_OK);
        ck_assert_int_eq(memcmp(out, (int16_t[]){0, 3, 1, 4, 2, 5}, 12), 0);
        proa_tensor *reversed = proa__tensor_view(t, 1, (int64_t[]){6}, (int64_t[]){-2}, 10);
        ck_assert_int_eq(proa_copy_out(reversed, out, 12), PROA_OK);
        ck_assert_int_eq(memcmp(out, (int16_t[]){5, 4, 3, 2, 1, 0}, 12), 0);
        proa_tensor *stepped = proa__tensor_view(v, 2, (int64_t[]){2, 1}, (int64_t[]){4, 6}, 6);
        ck_assert_int_eq(proa_copy_out(stepped, out, 4), PROA_OK);
        ck_assert_int_eq(memcmp(out, (int16_t[]){3, 5}, 4), 0);
        proa_tensor *wide = proa__tensor_view(t, 2, (int64_t[]){4, 3}, (int64_t[]){0, 2}, 6);
        ck_assert(!proa_is_contiguous(wide));
        ck_assert_int_eq(proa_copy_out(wide, out, 24), PROA_OK);
        ck_assert_int_eq(memcmp(out, (int16_t[]){3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}, 24), 0);
        ck_assert_ptr_null(
            proa__tensor_view(t, 2, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, (int64_t[]){0, 0}, 0));
        expect(PROA_ERR_OVERFLOW, "more than 2^63 elements");
        proa_tensor *row = proa__tensor_view(t, 2, (int64_t[]){1, 3}, (int64_t[]){999, 2}, 6);
        ck_assert(proa_is_contiguous(row)); /* the stride of an axis of length 1 does not count */
        uint32_t version = proa__version(t);
        ck_assert_int_eq(proa_copy_in(v, (int16_t[]){10, 13, 11, 14, 12, 15}, 12), PROA_OK);
        ck_assert_uint_eq(proa__version(t), version + 1);
        for (int i = 0; i < 6; i++) ck_assert_int_eq(((int16_t *)proa_data(t))[i], 10 + i);
        proa_tensor *alias = proa__tensor_alias(v);
        ck_assert_ptr_eq(proa_data(alias), proa_data(v));
        ck_assert(!proa_is_contiguous(alias));
    }
    ck_assert_int_eq(live(), before);
}
END_TEST

START_TEST(a_view_keeps_the_memory)
{
    float data[4] = {1, 2, 3, 4};
    int64_t before = live();
    proa_tensor *v = NULL;
    PROA_SCOPE {
        proa_tensor *t = proa_from_data(data, PROA_SHAPE(4), PROA_F32);
        v = proa_keep(proa__tensor_view(t, 0, NULL, NULL, 8));
    }
    ck_assert_float_eq((float)proa_item(v), 3);
    proa_release(v);
    ck_assert_int_eq(live(), before);
}
END_TEST

START_TEST(assign_shows_the_other)
{
    float a[4] = {1, 2, 3, 4};
    double b[2] = {5, 6};
    int64_t before = live();
    PROA_SCOPE {
        proa_tensor *t = proa_from_data(a, PROA_SHAPE(2, 2), PROA_F32);
        proa_tensor *u = proa_from_data(b, PROA_SHAPE(2), PROA_F64);
        proa_set_name(t, "stays");
        proa__tensor_assign(t, u);
        proa__tensor_assign(t, t);
        proa_drop(u);
        ck_assert_int_eq(proa_dtype_of(t), PROA_F64);
        ck_assert_int_eq(proa_ndim(t), 1);
        ck_assert_int_eq(proa_numel(t), 2);
        ck_assert_double_eq(((double *)proa_data(t))[1], 6);
        ck_assert_str_eq(proa_name_of(t), "stays");
        ck_assert_int_eq(live(), before + 3);
    }
    ck_assert_int_eq(live(), before);
}
END_TEST

static void count_release(void *context) { ++*(int *)context; }

START_TEST(foreign_memory_is_given_back_once)
{
    double data[6] = {0, 1, 2, 3, 4, 5}, out[3];
    int released = 0;
    proa_tensor *v = NULL;
    PROA_SCOPE {
        const int64_t stride = 16;
        proa_tensor *t = proa_from_foreign(data, PROA_SHAPE(3), &stride, PROA_F64, count_release, &released);
        ck_assert_ptr_eq(proa_data(t), data);
        ck_assert(!proa_is_contiguous(t));
        ck_assert_int_eq(proa_copy_out(t, out, sizeof out), PROA_OK);
        ck_assert_double_eq(out[2], 4);
        v = proa_keep(proa__tensor_alias(t));
    }
    ck_assert_int_eq(released, 0);
    proa_release(v);
    ck_assert_int_eq(released, 1);
    PROA_SCOPE {
        ck_assert_ptr_nonnull(proa_from_foreign(data, PROA_SHAPE(6), NULL, PROA_F64, NULL, NULL));
    }
    for (int64_t n = 0; n < 2; n++) { /* on failure the memory stays the caller's */
        proa_memory_fail_after(n);
        ck_assert_ptr_null(proa_from_foreign(data, PROA_SHAPE(6), NULL, PROA_F64, count_release, &released));
        proa_clear_error();
    }
    ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(meta_handles_have_no_memory)
{
    proa_meta meta = {.dtype = PROA_F32, .ndim = 2, .shape = {-1, 3}};
    PROA_SCOPE {
        proa_tensor *t = proa__tensor_bare(&meta, PROA_T_SYMBOLIC);
        ck_assert(proa_is_symbolic(t));
        ck_assert_int_eq(proa_numel(t), -1);
        ck_assert_int_eq(proa_dim(t, 0), -1);
        ck_assert_ptr_null(proa_data(t));
        float x;
        ck_assert_int_ne(proa_copy_out(t, &x, 4), PROA_OK);
        expect(PROA_ERR_BAD_STATE, "float32[-1, 3]");
        proa_tensor *alias = proa__tensor_alias(t);
        ck_assert(proa_is_symbolic(alias));
        ck_assert_int_eq(proa_numel(alias), -1);
        ck_assert_ptr_null(proa__tensor_new(&meta));
        expect(PROA_ERR_INTERNAL, "unknown length");
    }
}
END_TEST

START_TEST(every_dtype_has_an_item)
{
    const uint16_t half = 0x4100, brain = 0xc020;
    const float f[2] = {1.5f, -2}, *const complex = f;
    PROA_SCOPE {
        ck_assert_double_eq(proa_item(proa_from_data(&half, PROA_SHAPE(1), PROA_F16)), 2.5);
        ck_assert_double_eq(proa_item(proa_from_data(&brain, PROA_SHAPE(1, 1), PROA_BF16)), -2.5);
        ck_assert_double_eq(proa_item(proa_from_data(complex, PROA_SHAPE(1), PROA_C64)), 1.5);
        ck_assert_double_eq(proa_item(proa_from_data(&(bool){true}, PROA_SHAPE(1), PROA_BOOL)), 1);
        ck_assert_double_eq(proa_item(proa_from_data(&(int8_t){-3}, PROA_SHAPE(1), PROA_I8)), -3);
        ck_assert_double_eq(proa_item(proa_from_data(&(uint8_t){200}, PROA_SHAPE(1), PROA_U8)), 200);
        int64_t big = INT64_MAX - 1;
        ck_assert_int_eq(proa_item_int(proa_from_data(&big, PROA_SHAPE(1), PROA_I64)), big);
        ck_assert_int_eq(proa_item_int(proa_from_data(&(double){-7.9}, PROA_SHAPE(1), PROA_F64)), -7);
        proa_item_int(proa_from_data(&(double){1e30}, PROA_SHAPE(1), PROA_F64));
        expect(PROA_ERR_OVERFLOW, "1e+30");
        proa_item_int(proa_from_data(&(double){(double)NAN}, PROA_SHAPE(1), PROA_F64));
        expect(PROA_ERR_OVERFLOW, "nan");
    }
    for (int i = 1; i < PROA_DTYPE_COUNT; i++) {
        ck_assert_int_eq(proa_dtype_from_name(proa_dtype_name((proa_dtype)i)), i);
        ck_assert_uint_gt(proa_dtype_size((proa_dtype)i), 0);
    }
    ck_assert_int_eq(proa_dtype_from_name("float31"), PROA_NODTYPE);
    ck_assert_int_eq(proa_dtype_from_name(NULL), PROA_NODTYPE);
    ck_assert_uint_eq(proa_dtype_size(PROA_NODTYPE), 0);
    ck_assert_str_eq(proa_dtype_name(PROA_NODTYPE), "none");
    ck_assert_int_eq(proa_default_dtype(), PROA_F32);
    proa_set_default_dtype(PROA_F64);
    ck_assert_int_eq(proa_default_dtype(), PROA_F64);
    proa_set_default_dtype(PROA_I32);
    expect(PROA_ERR_WRONG_TYPE, "int32");
    ck_assert_int_eq(proa_default_dtype(), PROA_F64);
}
END_TEST

/* A node as autograd has them: it owns the tensor before it. */
struct proa_node {
    proa_tensor *input;
};
static int nodes_freed;
static void free_test_node(struct proa_node *node)
{
    proa_release(node->input);
    proa__free(node);
    nodes_freed++;
}

START_TEST(long_chains_are_freed_without_recursion)
{
    enum { LONG = 300000 };
    PROA_SCOPE {
        proa_empty(PROA_SHAPE(1), PROA_F32);
    }
    int64_t before = live();
    proa__tensor_hooks.free_node = free_test_node;
    proa_tensor *last = NULL, *view = NULL;
    for (int i = 0; i < LONG; i++)
        PROA_SCOPE {
            proa_tensor *t = proa_empty(PROA_SHAPE(1), PROA_F32);
            if (last) {
                t->node = proa__alloc(sizeof *t->node);
                t->node->input = last;
            }
            last = proa_keep(t);
        }
    proa_release(last);
    ck_assert_int_eq(nodes_freed, LONG - 1);
    for (int i = 0; i < LONG; i++)
        PROA_SCOPE {
            proa_tensor *t = proa_empty(PROA_SHAPE(1), PROA_F32);
            t->base = view;
            view = proa_keep(t);
        }
    proa_release(view);
    ck_assert_int_eq(live(), before);
}
END_TEST

static const char *printed(const proa_tensor *t)
{
    static char text[4096];
    FILE *f = tmpfile();
    proa_print(t, f);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

START_TEST(printing)
{
    float data[6] = {1, 2.5f, (float)NAN, -(float)INFINITY, 0.1f, 1e10f};
    PROA_SCOPE {
        proa_tensor *t = proa_from_data(data, PROA_SHAPE(2, 3), PROA_F32);
        ck_assert_str_eq(printed(t),
                         "Tensor(shape=[2, 3], dtype=float32)\n  [[1., 2.5, nan],\n   [-inf, 0.1, 1e+10]]\n");
        ck_assert_str_eq(printed(proa_from_data(&(bool){true}, PROA_SCALAR_SHAPE, PROA_BOOL)),
                         "Tensor(shape=[], dtype=bool)\n  True\n");
        ck_assert_str_eq(printed(proa_from_data(data, PROA_SHAPE(1), PROA_C64)),
                         "Tensor(shape=[1], dtype=complex64)\n  [(1.+2.5j)]\n");
        ck_assert_str_eq(printed(proa_empty(PROA_SHAPE(0, 2), PROA_I32)),
                         "Tensor(shape=[0, 2], dtype=int32)\n  []\n");
        ck_assert_ptr_nonnull(strstr(printed(proa_empty(PROA_SHAPE(100, 100), PROA_I64)), "..., "));
        ck_assert_str_eq(printed(NULL), "NULL\n");
        ck_assert_str_eq(printed(proa_none), "PROA_NONE\n");
    }
    proa_print(NULL, NULL);
}
END_TEST

START_TEST(shape_texts_do_not_overwrite_each_other)
{
    const char *text[8];
    int64_t shape[9] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN,
                        INT64_MIN, INT64_MIN, INT64_MIN, 5};
    for (int64_t i = 0; i < 8; i++) text[i] = proa__shape_text(&i, 1);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(text[i][1], '0' + i);
    ck_assert_str_eq(proa__shape_text(NULL, 0), "[]");
    const char *longest = proa__shape_text(shape, 9);
    ck_assert_str_eq(longest + strlen(longest) - 3, " 5]");
}
END_TEST

SUITE("core_tensor", made_and_asked, bad_input_is_refused, while_an_error_stands_nothing_happens,
      views_show_the_same_memory, a_view_keeps_the_memory, assign_shows_the_other,
      foreign_memory_is_given_back_once, meta_handles_have_no_memory, every_dtype_has_an_item,
      long_chains_are_freed_without_recursion, printing, shape_texts_do_not_overwrite_each_other)
