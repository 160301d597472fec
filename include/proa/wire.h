/* Wire forms: how an op is serialized in Paddle's program format, without naming protobuf. The op table fills
 * proa_wire, and io/ interprets it. An irregular form names a C function of the op's folder that reads
 * through proa_wire_reader (calling ops, which the open capture door records) or writes through
 * proa_wire_writer. Uses proa/op.h. */
#ifndef PROA_WIRE_H
#define PROA_WIRE_H

#include <proa/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* AttrType numbers of the format. */
typedef enum proa_wire_type {
    PROA_WIRE_INT,
    PROA_WIRE_FLOAT,
    PROA_WIRE_STRING,
    PROA_WIRE_INTS,
    PROA_WIRE_FLOATS,
    PROA_WIRE_STRINGS,
    PROA_WIRE_BOOLEAN,
    PROA_WIRE_BOOLEANS,
    PROA_WIRE_BLOCK,
    PROA_WIRE_LONG,
    PROA_WIRE_BLOCKS,
    PROA_WIRE_LONGS,
    PROA_WIRE_FLOAT64S,
    PROA_WIRE_VAR,
    PROA_WIRE_VARS,
    PROA_WIRE_FLOAT64,
    PROA_WIRE_SCALAR,
    PROA_WIRE_SCALARS
} proa_wire_type;

typedef struct proa_wire_slot {
    const char *slot; /* "X" */
    int field;        /* index among the op's fields: a tensor or list of tensors */
} proa_wire_slot;

typedef struct proa_wire_attr {
    const char *name;
    int field;            /* −1: a constant, written and checked on reading */
    int type;             /* proa_wire_type */
    const char *constant; /* text of the constant (lists: comma-separated) */
    const char
        *missing; /* value when a program leaves it out; NULL: the field's own default. Of a constant: not
                             NULL if it is only written, and any value is read */
    const char *tensor;  /* slot of the tensor that supplies the value ("ShapeTensor"), or NULL; the
                            attribute's own name if it names variables itself (types VAR and VARS) */
    const char *tensors; /* slot of the list of tensors that supply it ("ShapeTensorList"), or NULL */
    int of; /* 1 + the index of the tensor field whose axes the value numbers; a negative axis is then written
             * counted from dim 0. 0: written as it is */
} proa_wire_attr;

typedef struct proa_wire_reader proa_wire_reader;
typedef struct proa_wire_writer proa_wire_writer;

typedef struct proa_wire {
    const char *type; /* "matmul_v2" */
    const proa_wire_slot *slots;
    const proa_wire_attr *attrs;
    int n_slots, n_attrs;
    proa_status (*read)(proa_wire_reader *r);
    proa_status (*write)(const void *args, proa_wire_writer *w);
    bool no_gradient; /* a form of several ops through which nothing flows back */
} proa_wire;

/* Ops of Paddle that are no op here: their reader calls several ops. */
extern const proa_wire proa_composed_table[];
extern const uint32_t proa_composed_count;

/* ---- reading ---- */
/* The tensor in an input slot; PROA_NONE when the slot is empty. */
PROA_API proa_tensor *proa_wire_input(proa_wire_reader *r, const char *slot);
/* All tensors in an input slot. */
PROA_API proa_tensors proa_wire_inputs(proa_wire_reader *r, const char *slot);
/* Whether the op has an attribute of that name. */
PROA_API bool proa_wire_has(proa_wire_reader *r, const char *attr);
/* The value of an attribute (integers: BOOLEAN, INT or LONG), `missing` when the op has none of that name.
 * One of another type is CORRUPT. */
PROA_API int64_t proa_wire_int(proa_wire_reader *r, const char *attr, int64_t missing);
PROA_API double proa_wire_float(proa_wire_reader *r, const char *attr, double missing);
PROA_API const char *proa_wire_string(proa_wire_reader *r, const char *attr, const char *missing);
/* The string at an index of a list of strings; NULL if there is none. Borrowed. */
PROA_API const char *proa_wire_string_at(proa_wire_reader *r, const char *attr, int64_t index);
/* The value of a list attribute (INTS, LONGS; FLOATS), empty if missing. Borrowed. */
PROA_API proa_ints proa_wire_ints(proa_wire_reader *r, const char *attr);
PROA_API proa_floats proa_wire_floats(proa_wire_reader *r, const char *attr);
/* The value of a list attribute that tensors may supply: one in slot `tensor`, one an entry in slot `tensors`
 * (NULL: no such slot), or variables that the attribute names itself. */
PROA_API proa_ints proa_wire_list(proa_wire_reader *r, const char *attr, const char *tensor,
                                  const char *tensors);
/* The variables that an attribute of any type names as its value; none if it has a value of its own. */
PROA_API proa_ints proa_wire_variables(proa_wire_reader *r, const char *attr);
/* An attribute that is a dtype (INT, a VarType number), as proa_dtype; `missing` when absent or −1. */
PROA_API proa_dtype proa_wire_dtype(proa_wire_reader *r, const char *attr, proa_dtype missing);
/* The variable in an output slot as it was before the op, for ops that write a variable in place. */
PROA_API proa_tensor *proa_wire_output_now(proa_wire_reader *r, const char *slot);
/* Whether the file says that no gradient passes through the variable that an output slot names. */
PROA_API bool proa_wire_stops_gradient(proa_wire_reader *r, const char *slot);
/* Binds a result to the name in an output slot; slots that the program leaves empty are ignored. After the
 * result of slot "X", that of "X@LOD" is the offsets of its sequences. */
PROA_API proa_status proa_wire_result(proa_wire_reader *r, const char *slot, proa_tensor *t);
PROA_API proa_status proa_wire_results(proa_wire_reader *r, const char *slot, proa_tensors ts);

/* ---- writing ---- */
/* Starts an op of Paddle's format; the functions below add to it until the next one starts. */
PROA_API proa_status proa_wire_op(proa_wire_writer *w, const char *type);
/* Writes a whole op: form number `form` of an op's forms, with its slots and attributes. */
PROA_API proa_status proa_wire_put_form(proa_wire_writer *w, const proa_op *op, int form, const void *args);
/* Writes t's variable to an input slot of the op; PROA_NONE writes an empty slot. */
PROA_API proa_status proa_wire_put_input(proa_wire_writer *w, const char *slot, proa_tensor *t);
/* An input that is one number: writes a constant op before the op, and its result as the input. */
PROA_API proa_status proa_wire_put_number(proa_wire_writer *w, const char *slot, int64_t v);
PROA_API proa_status proa_wire_put_output(proa_wire_writer *w, const char *slot, proa_tensor *t);
/* An output that is no tensor in Paddle: its variable is of type RAW. */
PROA_API proa_status proa_wire_put_output_raw(proa_wire_writer *w, const char *slot, proa_tensor *t);
/* A fresh variable between two ops of Paddle's format that one op is written as. */
PROA_API proa_tensor *proa_wire_temporary(proa_wire_writer *w, const proa_meta *meta);
/* Attributes of the op; type says how an integer, or a list of them, is spelled. */
PROA_API proa_status proa_wire_put_int(proa_wire_writer *w, const char *attr, proa_wire_type type, int64_t v);
PROA_API proa_status proa_wire_put_float(proa_wire_writer *w, const char *attr, double v);
PROA_API proa_status proa_wire_put_string(proa_wire_writer *w, const char *attr, const char *v);
/* A list of strings, which commas separate in v. */
PROA_API proa_status proa_wire_put_strings(proa_wire_writer *w, const char *attr, const char *v);
PROA_API proa_status proa_wire_put_ints(proa_wire_writer *w, const char *attr, proa_wire_type type,
                                        proa_ints v);
PROA_API proa_status proa_wire_put_floats(proa_wire_writer *w, const char *attr, proa_floats v);
/* An attribute whose value variables supply, which it names itself (types VAR and VARS). */
PROA_API proa_status proa_wire_put_variables(proa_wire_writer *w, const char *attr, proa_ints v);

#ifdef __cplusplus
}
#endif
#endif
