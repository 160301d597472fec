/* Export of programs as ONNX models from C: the file, and the errors. What the models compute is tested in
 * tests/io/test_onnx.py. */
#include "lists.h"
#include "suite.h"

#include <proa.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static proa_tensors shifted(proa_tensors in, void *w)
{
    return one(proa_gelu(proa_add(proa_multiply(in.at[0], w), proa_full(PROA_SHAPE(3), 1.5))));
}

static proa_tensors unknown(proa_tensors in, void *w)
{
    (void)w;
    proa_tensor *first = proa_lgamma(in.at[0]);
    return one(proa_add(first, proa_digamma(in.at[0])));
}

static proa_program *captured(proa_tensors (*fn)(proa_tensors, void *))
{
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(-1, 3)};
    return proa_capture(fn, &spec, 1, ramp(PROA_SHAPE(3), 0));
}

static const char *file(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_folder(), name);
    return path;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* The export fails with this code and a message that has the text. */
static void refuses(const proa_program *p, const char *path, int64_t opset, proa_status code,
                    const char *text)
{
#if !defined(PROA_HAVE_PROTOBUF_C)
    code = PROA_ERR_UNAVAILABLE, text = "protobuf-c";
#endif
    ck_assert_int_eq(proa_onnx_export(p, path, opset), code);
    ck_assert_msg(strstr(proa_error_message(), text) != NULL, "%s", proa_error_message());
    proa_clear_error();
}

START_TEST(bad_arguments_are_errors)
{
    proa_program *p = captured(shifted), *empty = proa_program_new();
    refuses(NULL, file("a.onnx"), 9, PROA_ERR_INVALID_ARGUMENT, "program and path must be given");
    refuses(p, "", 9, PROA_ERR_INVALID_ARGUMENT, "program and path must be given");
    refuses(p, file("a.onnx"), 6, PROA_ERR_INVALID_ARGUMENT, "expected 7 to 20");
    refuses(p, file("a.onnx"), 21, PROA_ERR_INVALID_ARGUMENT, "opset_version is 21");
    refuses(empty, file("a.onnx"), 9, PROA_ERR_INVALID_ARGUMENT, "no outputs");
    ck_assert_int_eq(size_of(file("a.onnx")), -1);
    proa_program_free(empty);
    proa_program_free(p);
}
END_TEST

START_TEST(ops_without_a_mapping_are_named)
{
    proa_program *p = captured(unknown), *q = captured(shifted);
    refuses(p, file("b.onnx"), 20, PROA_ERR_UNSUPPORTED, "lgamma, digamma");
    refuses(q, file("b.onnx"), 7, PROA_ERR_UNSUPPORTED, "op 'gelu' needs at least opset 9");
    proa_program_free(p);
    proa_program_free(q);
}
END_TEST

START_TEST(a_path_that_cannot_be_written_is_an_error)
{
    proa_program *p = captured(shifted);
    refuses(p, file("no/such/folder.onnx"), 9, PROA_ERR_IO, "no/such/folder.onnx");
    refuses(p, test_folder(), 9, PROA_ERR_IO, test_folder());
    proa_program_free(p);
}
END_TEST

#if defined(PROA_HAVE_PROTOBUF_C)
static proa_tensors tripled(proa_tensors grads, void *context)
{
    (void)context;
    return one(proa_scale(grads.at[0], .scale = PROA_SCALAR(3.0)));
}

static proa_tensors with_backward(proa_tensors in, void *context)
{
    return proa_with_backward(one(proa_tanh(in.at[0])), in, tripled, context);
}

START_TEST(a_function_with_a_backward_is_its_results)
{
    proa_program *p = captured(with_backward);
    ck_assert_msg(proa_onnx_export(p, file("d.onnx"), 9) == PROA_OK, "%s", proa_error_message());
    proa_program_free(p);
}
END_TEST

START_TEST(a_refused_export_leaves_the_old_file)
{
    proa_program *p = captured(shifted), *q = captured(unknown);
    const char *path = file("c.onnx");
    ck_assert_msg(proa_onnx_export(p, path, 9) == PROA_OK, "%s", proa_error_message());
    int64_t size = size_of(path);
    ck_assert_int_gt(size, 100);
    refuses(q, path, 9, PROA_ERR_UNSUPPORTED, "lgamma");
    refuses(p, path, 7, PROA_ERR_UNSUPPORTED, "gelu");
    ck_assert_int_eq(size_of(path), size);
    ck_assert_int_eq(proa_onnx_export(p, path, 17), PROA_OK);
    proa_program_free(p);
    proa_program_free(q);
}
END_TEST
#endif

SUITE("onnx", bad_arguments_are_errors, ops_without_a_mapping_are_named,
      a_path_that_cannot_be_written_is_an_error,
#if defined(PROA_HAVE_PROTOBUF_C)
      a_function_with_a_backward_is_its_results, a_refused_export_leaves_the_old_file
#endif
)
