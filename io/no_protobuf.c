/* A build without protobuf-c: Paddle's format is a typed error, everything else is there. */
#if !defined(PROA_HAVE_PROTOBUF_C)

#include <proa/io.h>
#include <proa/wire.h>

static proa_status unavailable(void)
{
    return proa_fail(PROA_ERR_UNAVAILABLE,
                     "this build of Proa cannot read or write Paddle's format: build it with protobuf-c");
}

typedef proa_status (*proa__put)(const void *data, size_t bytes, void *context);
typedef proa_status (*proa__see)(const proa_op_desc *op, void *context);
#define NONE(type, name, parameters, result) \
    type name parameters                     \
    {                                        \
        unavailable();                       \
        return result;                       \
    }
#define R __attribute__((unused)) proa_wire_reader *r
#define W __attribute__((unused)) proa_wire_writer *w
#define U(type) __attribute__((unused)) type

NONE(proa_status, proa_program_save, (U(const proa_program *) p, U(const char *) path), proa_error())
NONE(proa_program *, proa_program_load, (U(const char *) path), NULL)
NONE(proa_program *, proa_program_load_files, (U(const char *) model, U(const char *) params), NULL)
NONE(proa_program *, proa_program_load_memory,
     (U(const void *) m, U(size_t) n, U(const void *) p, U(size_t) k), NULL)
NONE(proa_status, proa_program_encode,
     (U(const proa_program *) p, U(bool) plain, U(proa__put) put, U(void *) context), proa_error())
NONE(proa_program *, proa_program_decode, (U(const void *) m, U(size_t) n), NULL)
NONE(proa_status, proa_program_describe,
     (U(const proa_program *) p, U(int64_t) block, U(int64_t) i, U(proa__see) see, U(void *) context),
     proa_error())
NONE(bool, proa_op_type_has_gradient, (U(const char *) type), false)
NONE(proa_status, proa_op_call,
     (U(const proa_op_desc *) op, U(proa_named_tensor *) named, U(int64_t) n_named), proa_error())
NONE(proa_status, proa_program_append, (U(proa_program *) p, U(const proa_op_desc *) op, U(int64_t) before),
     proa_error())
NONE(proa_status, proa_tensor_save, (U(const proa_tensor *) t, U(const char *) path), proa_error())
NONE(proa_tensor *, proa_tensor_load, (U(const char *) path), NULL)
NONE(proa_tensor *, proa_tensor_load_memory, (U(const void *) p, U(size_t) n), NULL)

NONE(proa_tensor *, proa_wire_input, (R, U(const char *) slot), NULL)
NONE(proa_tensors, proa_wire_inputs, (R, U(const char *) slot), ((proa_tensors){0, NULL}))
NONE(bool, proa_wire_has, (R, U(const char *) attr), false)
NONE(int64_t, proa_wire_int, (R, U(const char *) attr, U(int64_t) missing), missing)
NONE(double, proa_wire_float, (R, U(const char *) attr, U(double) missing), missing)
NONE(const char *, proa_wire_string, (R, U(const char *) attr, U(const char *) missing), missing)
NONE(proa_ints, proa_wire_ints, (R, U(const char *) attr), ((proa_ints){0, NULL, NULL, NULL}))
NONE(proa_floats, proa_wire_floats, (R, U(const char *) attr), ((proa_floats){0, NULL}))
NONE(proa_dtype, proa_wire_dtype, (R, U(const char *) attr, U(proa_dtype) missing), missing)
NONE(proa_tensor *, proa_wire_output_now, (R, U(const char *) slot), NULL)
NONE(proa_status, proa_wire_result, (R, U(const char *) slot, U(proa_tensor *) t), proa_error())
NONE(proa_status, proa_wire_results, (R, U(const char *) slot, U(proa_tensors) t), proa_error())
NONE(proa_status, proa_wire_op, (W, U(const char *) type), proa_error())
NONE(proa_status, proa_wire_put_input, (W, U(const char *) slot, U(proa_tensor *) t), proa_error())
NONE(proa_status, proa_wire_put_number, (W, U(const char *) slot, U(int64_t) v), proa_error())
NONE(proa_status, proa_wire_put_output, (W, U(const char *) slot, U(proa_tensor *) t), proa_error())
NONE(proa_tensor *, proa_wire_temporary, (W, U(const proa_meta *) meta), NULL)
NONE(proa_status, proa_wire_put_int, (W, U(const char *) attr, U(proa_wire_type) type, U(int64_t) v),
     proa_error())
NONE(proa_status, proa_wire_put_float, (W, U(const char *) attr, U(double) v), proa_error())
NONE(proa_status, proa_wire_put_string, (W, U(const char *) attr, U(const char *) v), proa_error())
NONE(proa_status, proa_wire_put_ints, (W, U(const char *) attr, U(proa_wire_type) type, U(proa_ints) v),
     proa_error())
NONE(proa_status, proa_wire_put_floats, (W, U(const char *) attr, U(proa_floats) v), proa_error())

#else
typedef int proa__has_protobuf; /* C wants a declaration in every file */
#endif
