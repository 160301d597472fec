/* Function tables of wire readers and writers (proa/wire.h): io implements them, and the op mappings in ops
 * call through them without linking io. A reader or writer begins with a pointer to its table. May use
 * proa/wire.h. */
#ifndef PROA_CORE_WIRE_TABLE_H
#define PROA_CORE_WIRE_TABLE_H

#include <proa/wire.h>

/* X(result, name, (parameters), (arguments)) for every function through which an op mapping reads. */
#define PROA__WIRE_READER(X)                                                                               \
    X(proa_tensor *, input, (proa_wire_reader * r, const char *slot), (r, slot))                           \
    X(proa_tensors, inputs, (proa_wire_reader * r, const char *slot), (r, slot))                           \
    X(bool, has, (proa_wire_reader * r, const char *attr), (r, attr))                                      \
    X(int64_t, int, (proa_wire_reader * r, const char *attr, int64_t missing), (r, attr, missing))         \
    X(double, float, (proa_wire_reader * r, const char *attr, double missing), (r, attr, missing))         \
    X(const char *, string, (proa_wire_reader * r, const char *attr, const char *missing),                 \
      (r, attr, missing))                                                                                  \
    X(const char *, string_at, (proa_wire_reader * r, const char *attr, int64_t index), (r, attr, index))  \
    X(proa_ints, ints, (proa_wire_reader * r, const char *attr), (r, attr))                                \
    X(proa_ints, list, (proa_wire_reader * r, const char *attr, const char *tensor, const char *tensors),  \
      (r, attr, tensor, tensors))                                                                          \
    X(proa_ints, variables, (proa_wire_reader * r, const char *attr), (r, attr))                           \
    X(proa_floats, floats, (proa_wire_reader * r, const char *attr), (r, attr))                            \
    X(proa_dtype, dtype, (proa_wire_reader * r, const char *attr, proa_dtype missing), (r, attr, missing)) \
    X(proa_tensor *, output_now, (proa_wire_reader * r, const char *slot), (r, slot))                      \
    X(bool, stops_gradient, (proa_wire_reader * r, const char *slot), (r, slot))                           \
    X(proa_status, result, (proa_wire_reader * r, const char *slot, proa_tensor *t), (r, slot, t))         \
    X(proa_status, results, (proa_wire_reader * r, const char *slot, proa_tensors ts), (r, slot, ts))

/* X(result, name, (parameters), (arguments)) for every function through which an op mapping writes. */
#define PROA__WIRE_WRITER(X)                                                                               \
    X(proa_status, op, (proa_wire_writer * w, const char *type), (w, type))                                \
    X(proa_status, put_form, (proa_wire_writer * w, const proa_op *op, int form, const void *args),        \
      (w, op, form, args))                                                                                 \
    X(proa_status, put_input, (proa_wire_writer * w, const char *slot, proa_tensor *t), (w, slot, t))      \
    X(proa_status, put_number, (proa_wire_writer * w, const char *slot, int64_t v), (w, slot, v))          \
    X(proa_status, put_output, (proa_wire_writer * w, const char *slot, proa_tensor *t), (w, slot, t))     \
    X(proa_status, put_output_raw, (proa_wire_writer * w, const char *slot, proa_tensor *t), (w, slot, t)) \
    X(proa_tensor *, temporary, (proa_wire_writer * w, const proa_meta *meta), (w, meta))                  \
    X(proa_status, put_int, (proa_wire_writer * w, const char *attr, proa_wire_type type, int64_t v),      \
      (w, attr, type, v))                                                                                  \
    X(proa_status, put_float, (proa_wire_writer * w, const char *attr, double v), (w, attr, v))            \
    X(proa_status, put_string, (proa_wire_writer * w, const char *attr, const char *v), (w, attr, v))      \
    X(proa_status, put_strings, (proa_wire_writer * w, const char *attr, const char *v), (w, attr, v))     \
    X(proa_status, put_ints, (proa_wire_writer * w, const char *attr, proa_wire_type type, proa_ints v),   \
      (w, attr, type, v))                                                                                  \
    X(proa_status, put_floats, (proa_wire_writer * w, const char *attr, proa_floats v), (w, attr, v))      \
    X(proa_status, put_variables, (proa_wire_writer * w, const char *attr, proa_ints v), (w, attr, v))

#define PROA__WIRE_SLOT(result, name, parameters, arguments) result(*name##_) parameters;
typedef struct proa__wire_reader_table {
    PROA__WIRE_READER(PROA__WIRE_SLOT)
} proa__wire_reader_table;
typedef struct proa__wire_writer_table {
    PROA__WIRE_WRITER(PROA__WIRE_SLOT)
} proa__wire_writer_table;
#undef PROA__WIRE_SLOT

#endif
