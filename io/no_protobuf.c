/* Stubs for builds without protobuf-c: each function on Paddle's format or ONNX's fails with the error
 * UNAVAILABLE. */
#if !defined(PROA_HAVE_PROTOBUF_C)

#include <proa/io.h>

static proa_status unavailable(void)
{
    return proa_fail(PROA_ERR_UNAVAILABLE,
                     "this build of Proa cannot read or write Paddle's format, or ONNX's: build it with "
                     "protobuf-c");
}

typedef proa_status (*proa__put)(const void *data, size_t bytes, void *context);
typedef proa_status (*proa__see)(const proa_op_desc *op, void *context);
#define NONE(type, name, parameters, result) \
    type name parameters                     \
    {                                        \
        unavailable();                       \
        return result;                       \
    }
#define U(type) __attribute__((unused)) type

NONE(proa_status, proa_program_save, (U(const proa_program *) p, U(const char *) path), proa_error())
NONE(proa_program *, proa_program_load, (U(const char *) path), NULL)
NONE(proa_program *, proa_program_load_files, (U(const char *) model, U(const char *) params), NULL)
NONE(proa_program *, proa_program_load_memory,
     (U(const void *) m, U(size_t) n, U(const void *) p, U(size_t) k), NULL)
NONE(proa_status, proa_program_encode,
     (U(const proa_program *) p, U(bool) plain, U(proa__put) put, U(void *) context), proa_error())
NONE(proa_status, proa_onnx_export, (U(const proa_program *) p, U(const char *) path, U(int64_t) opset),
     proa_error())
NONE(proa_program *, proa_program_decode, (U(const void *) m, U(size_t) n), NULL)
NONE(proa_status, proa_program_describe,
     (U(const proa_program *) p, U(int64_t) block, U(int64_t) i, U(proa__see) see, U(void *) context),
     proa_error())
bool proa_op_type_is_known(U(const char *) type) { return false; } /* no error: none is */
NONE(bool, proa_op_type_has_gradient, (U(const char *) type), false)
NONE(proa_status, proa_op_call,
     (U(const proa_op_desc *) op, U(proa_named_tensor *) named, U(int64_t) n_named), proa_error())
NONE(proa_status, proa_program_append, (U(proa_program *) p, U(const proa_op_desc *) op, U(int64_t) before),
     proa_error())
NONE(proa_status, proa_tensor_save, (U(const proa_tensor *) t, U(const char *) path), proa_error())
NONE(proa_tensor *, proa_tensor_load, (U(const char *) path), NULL)
NONE(proa_tensor *, proa_tensor_load_memory, (U(const void *) p, U(size_t) n), NULL)

#else
typedef int proa__has_protobuf; /* C wants a declaration in every file */
#endif
