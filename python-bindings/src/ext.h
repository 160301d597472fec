/* Shared parts of the extension: the tensor object, dtypes, errors, conversions by field descriptor. Uses
 * the CPython API and Proa's headers. */
#ifndef PROA_PYTHON_BINDINGS_SRC_EXT_H
#define PROA_PYTHON_BINDINGS_SRC_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/blocked.h"

#include <proa/autograd.h>
#include <proa/op.h>
#include <proa/ops.h>
#include <proa/threads.h>

/* ---- objects --------------------------------------------------------------------------- */

typedef struct py_tensor {
    PyObject_HEAD proa_tensor *tensor; /* kept */
    PyObject *weak;
    bool persistable;
} py_tensor;

/* Made by PyInit__core, alive as long as the process. */
extern PyTypeObject *py_tensor_type;
extern PyTypeObject py_writer_type;
extern PyTypeObject py_op_type, py_dim_type, py_dtype_type, py_program_type, py_executor_type,
    py_compiled_type, py_config_type, py_predictor_type, py_handle_type, py_cipher_type;

static inline bool py_is_tensor(PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (type == py_tensor_type) return true;
    /* the type and its subclasses are heap types: a fast "no" for ints, lists and the like */
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && PyType_IsSubtype(type, py_tensor_type);
}
static inline proa_tensor *py_tensor_of(PyObject *obj) { return ((py_tensor *)obj)->tensor; }

/* Raises this thread's Proa error as the Python exception for its code, with Paddle's category
 * ("(InvalidArgument) …") in front of the text, and clears the error. Returns NULL. */
PyObject *py_raise(void);
/* py_refuse raises the Python exception of a code, led by Paddle's category; py_refuse_type that of
 * INVALID_ARGUMENT or, while a program is built, a bare TypeError, as Paddle does. Formats are
 * PyErr_Format's. Both return NULL. */
PyObject *py_refuse(proa_status code, const char *format, ...);
PyObject *py_refuse_type(const char *format, ...);
/* Returns None for PROA_OK; otherwise raises this thread's error. */
PyObject *py_none_or_raise(proa_status status);
/* Calls `call` with a path (a str, whose bytes need not be UTF-8, or a path object); None, or raises. */
PyObject *py_with_path(PyObject *path, proa_status (*call)(const char *path, void *context), void *context);
/* A new object that keeps t; NULL with an exception when t is NULL; None for PROA_NONE. */
PyObject *py_wrap(proa_tensor *t);
/* py_wrap that takes over the scope's reference: for a result that nothing else in the scope uses. */
PyObject *py_wrap_new(proa_tensor *t);
/* A new list of py_wrap's objects for the tensors. */
PyObject *py_from_tensors(proa_tensors list);

/* A call whose input has at least this many elements releases the GIL. */
#define PY_LONG_WORK 65536 /* elements */
static inline bool py_is_long(const proa_tensor *t) { return t && t->numel >= PY_LONG_WORK; }

/* ---- dtypes (dtype.c), places and devices (place.c)
 * ------------------------------------------------------- */

/* Borrowed reference: the paddle.dtype member of a dtype. */
PyObject *py_dtype_object(proa_dtype dtype);
/* Borrowed reference: the dtype's interned name. */
PyObject *py_dtype_text(proa_dtype dtype);
bool py_has_gradients(const proa_tensor *t); /* by its dtype: floating or complex */
/* Converts a dtype object, a name ("float32"), or NumPy's dtype or scalar type; None gives PROA_NODTYPE.
 * False with an exception otherwise. */
bool py_to_dtype(PyObject *obj, proa_dtype *dtype);
bool py_add_dtypes(PyObject *module);
bool py_add_places(PyObject *module);
/* Device name of a string or a place; valid as long as obj. False with an exception. */
bool py_to_device_name(const char *who, PyObject *obj, const char **name);
/* New reference: the place (device) of a tensor. */
PyObject *py_place_of(const proa_tensor *t);

/* ---- lengths that only the run knows (dims.c) ------------------------------------------- */

/* The `shape` of a program's variable in the form for the calling code (Proa's or the user's, see dims.py),
 * for which it steals the list of ints `dims`; and `size` where dims are unknown. New references. */
PyObject *py_variable_shape(PyObject *variable, PyObject *dims);
PyObject *py_open_size(PyObject *variable);
bool py_is_dim(PyObject *obj);
/* New reference: for a Dim the Tensor of its value in the program; any other object itself. */
PyObject *py_number_of(PyObject *obj);
/* Borrowed: the tensor of a Dim's value, owned by the scope. NULL with an exception. */
proa_tensor *py_dim_tensor(PyObject *obj);
bool py_add_dims(PyObject *module);

/* ---- conversions (convert.c) ----------------------------------------------------------- */

/* "[2, 3]", for messages. The thread's, until the fourth call after this one. */
const char *py_shape_text(const proa_tensor *t);
/* Converts a tuple or list of Tensors. The scope owns the list and keeps the tensors, as other code may empty
 * the Python list meanwhile. False with an exception. */
bool py_to_tensors(PyObject *obj, const char *what, bool optional, proa_tensors *list);
/* Converts an integer, a list of integers and one-element tensors, or an integer tensor. False with an
 * exception. */
bool py_to_ints(PyObject *obj, const char *what, proa_ints *out);
/* Converts a number (also NumPy's) or a one-element tensor. False without an exception if obj is neither. */
bool py_to_scalar(PyObject *obj, proa_scalar *out);
/* A buffer in the caller's frame for a call's lists; those that do not fit are allocated in the scope. */
typedef struct py_arena {
    char *at, *end;
    const char *name; /* the call's argument `name`, where a program is built; or NULL */
} py_arena;
/* Converts obj into field f of args; memory that it needs comes from `arena` or ends with the scope. */
bool py_to_field(const char *who, const proa_field *f, const char *name, PyObject *obj, void *args,
                 py_arena *arena);
/* Reads a default's text into the field; the memory lives as long as the process. */
bool py_default_field(const char *who, const proa_field *f, const char *text, void *args);

/* ---- from and to arrays (array.c) ------------------------------------------------------ */

/* New tensor with a copy of anything array-like: numbers, nested lists, arrays, tensors. device NULL:
 * where new tensors are made; a tensor's copy stays where it is. */
proa_tensor *py_to_new_tensor(PyObject *data, proa_dtype dtype, const char *device);
PyObject *py_tensor_numpy(PyObject *self, PyObject *unused);
extern PyMethodDef py_array_functions[];
extern PyMethodDef py_unpickle_functions[];

/* ---- operators (operators.c) and indexing (index.c) ------------------------------------ */

extern PyType_Slot py_operator_slots[]; /* ends with {0} */
PyObject *py_getitem(PyObject *self, PyObject *key);
int py_setitem(PyObject *self, PyObject *key, PyObject *value);
Py_ssize_t py_tensor_len(PyObject *self);
PyObject *py_tensor_row(PyObject *self, Py_ssize_t i); /* x[i] */
PyObject *py_tensor_iter(PyObject *self);              /* over the rows */

/* ---- callables of the op table (ops.c, doc.c) ------------------------------------------ */

typedef struct py_param {
    const char *name;
    int8_t field;         /* index of the op's field; −1: accepted, must be None */
    const char *fallback; /* default's text where it is not the field's own */
    bool required;
    bool none; /* None stands for the default */
} py_param;

/* A condition on an argument (`checks:` of the op table): of a float, with the exception if it fails; of a
 * tensor, its dtype among those of Paddle's CPU kernel and half types (PY_OPERAND: if it is not the first
 * one's), its rank, or that it has elements. */
typedef struct py_check {
    int8_t field;
    enum { PY_NOT, PY_AT_LEAST, PY_ABOVE, PY_KERNEL, PY_OPERAND, PY_RANK, PY_FILLED } kind;
    double bound; /* of PY_RANK the largest rank; of PY_OPERAND 1: eagerly alone; of PY_FILLED the last dims,
                              * or −1: of a call without axes */
    PyObject *const *raises; /* NULL: Paddle's category for the kind */
    uint32_t dtypes;         /* of PY_KERNEL and PY_OPERAND, a mask */
} py_check;

typedef struct py_entry {
    const char *const *names; /* "paddle.sum", "Tensor.sum"; NULL-terminated */
    const py_param *params;   /* n_params, then n_fixed hidden ones, set to their fallback */
    const char *signature;
    uint16_t op; /* in proa_op_table */
    uint8_t n_params, n_fixed;
    int8_t result;  /* field of the one output returned; −1: all new outputs */
    bool in_place;  /* output 0 is input 0's memory */
    uint8_t floats; /* a py_floats */
    uint8_t n_checks;
    const py_check *checks;
    const char *asks; /* rules of proa/_asks.py for calls that fail; NULL: none */
} py_entry;

/* Modes of a callable for operands of two floating dtypes, which the op itself brings together. */
typedef enum py_floats { PY_FLOATS_MIX, PY_FLOATS_MIX_EAGERLY, PY_FLOATS_SAME } py_floats;

/* New reference: the docstring. */
PyObject *py_op_doc(const proa_op *op, const py_entry *entry);

/* ---- tensors divided among processes (dist_tensor.c) ------------------------------------ */

/* True if one of a call's n arguments, or of those by keyword behind them, is a divided tensor or has one. */
bool py_takes_dist(PyObject *const *values, Py_ssize_t n, PyObject *keywords);
/* Hands the call to Python's dispatch. */
PyObject *py_call_dist(PyObject *function, PyObject *const *values, Py_ssize_t n, PyObject *keywords);
extern PyMethodDef py_dist_tensor_functions[];

/* ---- refusals (asks.c) ----------------------------------------------------------------- */

typedef struct py_error {
    PyObject *type, *value, *trace;
} py_error;

/* Names the results of a call in the program that is built after the call's argument `name` (names.c): those
 * of an op, or of a Python function `who`, in tuples and lists, too, but none of the n arguments `given`. */
proa_status py_name_results(const proa_op *op, const void *args, const char *name);
proa_status py_name_objects(const char *who, PyObject *result, PyObject *const *given, Py_ssize_t n,
                            const char *name);

/* The current exception, which is then none; py_drop or py_restore_unless_raised takes its references. */
py_error py_fetch(void);
void py_drop(py_error error);
/* Sets it again if no other exception was raised in between. */
void py_restore_unless_raised(py_error error);
/* Raises what `answer` of proa/_asks.py raises, if anything, for the arguments of a call (a dict by name)
 * that failed with `error`; NULL before the call. */
void py_answer(PyObject *rules, PyObject *name, PyObject *given, const py_error *error);
/* True if the rules are asked before the call, too: it goes to a Program, outside of autocast. */
bool py_asks_first(const char *rules);
extern PyMethodDef py_asks_functions[];
bool py_ready_asks(void);

/* ---- programs (program.c) -------------------------------------------------------------- */

struct proa_program;
struct proa_input_spec;
/* A new Program that owns p; NULL with an exception when p is NULL. */
PyObject *py_wrap_program(struct proa_program *p);
/* A Program object on p, which `owner` keeps alive. */
PyObject *py_view_program(struct proa_program *p, PyObject *owner);
/* Whether the open program belongs to a function under capture rather than to a Program object. */
bool py_captures_function(void);
/* The program of an object of py_program_type. */
struct proa_program *py_program_of(PyObject *obj);
/* [(name, shape, dtype), ...] as specs that end with the scope. False with an exception. */
bool py_to_specs(PyObject *specs, const struct proa_input_spec **out, int64_t *count);
/* Calls a Python callable with tensors; an exception stays set, and becomes the thread's error, too. */
proa_tensors py_call_back(proa_tensors inputs, void *callable);
/* py_raise, or the exception that a callback left. */
PyObject *py_raise_callback(void);

/* ---- the module ------------------------------------------------------------------------ */

/* py_ready_ops readies the callables' type; py_add_ops makes a callable for each entry and sets those that
 * are methods of Tensor or functions of the module. */
bool py_ready_ops(void);
bool py_add_ops(PyObject *module);
/* New reference: a callable of a custom op, which is not in the table. Entry and op live as long as the
 * process. All results are returned, several as a list. */
PyObject *py_function_of(PyObject *module, const py_entry *entry, const proa_op *op);
extern PyMethodDef py_extension_functions[]; /* load_extension, extension_function, extension_slots */
bool py_make_tensor_type(PyObject *module);
/* Adds the class LayerBase, the base of nn.Layer (layer.c). */
bool py_add_layer(PyObject *module);
/* py_raise, or the exception that a Python callback raised in backward (autograd.c). */
PyObject *py_raise_backward(void);
/* Runs backward without the GIL; None or an exception. */
PyObject *py_run_backward(proa_tensors outputs, proa_tensors grads, bool retain_graph);
extern PyMethodDef py_op_functions[];       /* api */
extern PyMethodDef py_autograd_functions[]; /* grad, hooks, PyLayer, autocast */
extern PyMethodDef py_rows_functions[];     /* tensors of kind rows */
extern PyMethodDef py_share_functions[];    /* tensors on the same memory (share.c) */
extern PyMethodDef py_dist_functions[];     /* several processes (dist.c) */
extern PyMethodDef py_ps_functions[];       /* the parameter server (ps.c) */
extern PyMethodDef py_plan_functions[];     /* schedules of pipelines, simulated jobs (plan.c) */
extern PyMethodDef py_program_functions[];  /* capture, load, open */
extern PyMethodDef py_execute_functions[];  /* compile, cond, while_loop */
extern PyMethodDef py_profile_functions[];  /* profile_start, … */
/* Getter of Tensor.grad_fn (graph.c). */
PyObject *py_grad_fn(PyObject *self, void *closure);
bool py_ready_graph(void);
extern PyMethodDef py_inspect_functions[]; /* results of calls (inspect.c) */
extern PyMethodDef py_append_functions[];
extern PyMethodDef py_describe_functions[];  /* programs in Paddle's format, for static mode */
extern PyMethodDef py_host_functions[];      /* ops that call Python */
extern PyMethodDef py_device_functions[];    /* place.c */
extern PyMethodDef py_cipher_functions[];    /* keys */
extern PyMethodDef py_inference_functions[]; /* predictors' passes */
extern PyMethodDef py_crash_functions[];     /* crash.c */
/* Installs the handlers of fatal signals, unless the environment has PROA_CRASH_REPORT=0. */
void py_crash_report_start(void);

#endif
