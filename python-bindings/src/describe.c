/* Programs in Paddle's format for Python: lists a block's ops in wire form, converts programs to and from
 * bytes, and reads and sets properties of variables for static mode. Uses ext.h and proa/program.h,
 * proa/io.h. */
#include "ext.h"

#include <proa/io.h>
#include <proa/wire.h>

/* ---- ops in wire form ------------------------------------------------------------------ */

static PyObject *names_list(const proa_op_slot *slot)
{
    PyObject *list = PyList_New((Py_ssize_t)slot->count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)slot->count; i++) {
        PyObject *name = PyUnicode_FromString(slot->vars[i]);
        if (!name) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, name);
    }
    return list;
}

static bool put_new(PyObject *dict, const char *key, PyObject *value)
{
    bool ok = dict && value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static PyObject *slots_dict(const proa_op_slot *slots, int64_t n)
{
    PyObject *dict = PyDict_New();
    for (int64_t i = 0; dict && i < n; i++)
        if (!put_new(dict, slots[i].name, names_list(&slots[i]))) Py_CLEAR(dict);
    return dict;
}

/* New reference: entry i of a list attribute. */
static PyObject *entry_of(const proa_op_attr *a, int64_t i)
{
    switch ((proa_wire_type)a->type) {
    case PROA_WIRE_BOOLEANS: return PyBool_FromLong(a->ints[i] != 0);
    case PROA_WIRE_FLOATS:
    case PROA_WIRE_FLOAT64S: return PyFloat_FromDouble(a->floats[i]);
    case PROA_WIRE_STRINGS:
    case PROA_WIRE_VAR:
    case PROA_WIRE_VARS: return PyUnicode_FromString(a->strings[i]);
    default: return PyLong_FromLongLong(a->ints[i]);
    }
}

static PyObject *list_of(const proa_op_attr *a)
{
    PyObject *list = PyList_New((Py_ssize_t)a->count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)a->count; i++) {
        PyObject *one = entry_of(a, i);
        if (!one) Py_CLEAR(list);
        if (list) PyList_SET_ITEM(list, i, one);
    }
    return list;
}

/* Variables that supply a value are (name,) or ([name, …],). */
static PyObject *value_of(const proa_op_attr *a)
{
    switch ((proa_wire_type)a->type) {
    case PROA_WIRE_INT:
    case PROA_WIRE_LONG:
    case PROA_WIRE_BLOCK: return PyLong_FromLongLong(a->i);
    case PROA_WIRE_BOOLEAN: return PyBool_FromLong(a->i != 0);
    case PROA_WIRE_FLOAT:
    case PROA_WIRE_FLOAT64: return PyFloat_FromDouble(a->f);
    case PROA_WIRE_STRING: return PyUnicode_FromString(a->s);
    case PROA_WIRE_VAR: return Py_BuildValue("(s)", a->count ? a->strings[0] : "");
    case PROA_WIRE_VARS: return Py_BuildValue("(N)", list_of(a));
    default: return list_of(a);
    }
}

static PyObject *attrs_dict(const proa_op_attr *attrs, int64_t n)
{
    PyObject *dict = PyDict_New();
    for (int64_t i = 0; dict && i < n; i++)
        if (!put_new(dict, attrs[i].name, value_of(&attrs[i]))) Py_CLEAR(dict);
    return dict;
}

/* Appends (type, inputs, outputs, attributes, role) of a wire op to a Python list. */
static proa_status see(const proa_op_desc *op, void *list)
{
    PyObject *in = slots_dict(op->inputs, op->n_inputs), *out = slots_dict(op->outputs, op->n_outputs);
    PyObject *attrs = attrs_dict(op->attrs, op->n_attrs);
    PyObject *one =
        in && out && attrs ? Py_BuildValue("sOOOi", op->type, in, out, attrs, (int)op->role) : NULL;
    bool ok = one && PyList_Append(list, one) == 0;
    Py_XDECREF(one);
    Py_XDECREF(attrs);
    Py_XDECREF(out);
    Py_XDECREF(in);
    return ok ? PROA_OK : proa_fail(PROA_ERR_OUT_OF_MEMORY, "describe: no memory for the lists");
}

/* describe(program, block): one list an op of the block, with the wire op or ops that represent it. */
static PyObject *describe(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program;
    int block;
    if (!PyArg_ParseTuple(args, "O!i:describe", &py_program_type, &program, &block)) return NULL;
    const proa_program *p = py_program_of(program);
    int64_t n = proa_program_op_count(p, block);
    PyObject *all = proa_error() ? py_raise() : PyList_New((Py_ssize_t)n);
    for (Py_ssize_t i = 0; all && i < (Py_ssize_t)n; i++) {
        PyObject *one = PyList_New(0);
        if (!one || proa_program_describe(p, block, i, see, one) != PROA_OK) {
            Py_XDECREF(one);
            Py_DECREF(all);
            return py_raise();
        }
        PyList_SET_ITEM(all, i, one);
    }
    return all;
}

/* ---- bytes ----------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t n, capacity;
} text;

static proa_status put(const void *data, size_t bytes, void *context)
{
    text *t = context;
    if (t->capacity - t->n < bytes) {
        size_t capacity = (t->n + bytes) * 2 + 1024;
        char *grown = PyMem_Realloc(t->at, capacity);
        if (!grown) return proa_fail(PROA_ERR_OUT_OF_MEMORY, "encode: no memory for %zu bytes", capacity);
        t->at = grown;
        t->capacity = capacity;
    }
    memcpy(t->at + t->n, data, bytes);
    t->n += bytes;
    return PROA_OK;
}

/* encode(program, plain) → the program as bytes of a .pdmodel; plain: without the feed, fetch and scale ops
 * of a model for inference. */
static PyObject *encode(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program;
    int plain;
    if (!PyArg_ParseTuple(args, "O!p:encode", &py_program_type, &program, &plain)) return NULL;
    text t = {0};
    proa_status status = proa_program_encode(py_program_of(program), plain, put, &t);
    PyObject *bytes = status == PROA_OK ? PyBytes_FromStringAndSize(t.at, (Py_ssize_t)t.n) : py_raise();
    PyMem_Free(t.at);
    return bytes;
}

/* decode(model, params=None): a program from the bytes of a .pdmodel and, optionally, a .pdiparams; without
 * params persistable variables have no values. */
static PyObject *decode(PyObject *module, PyObject *args)
{
    (void)module;
    const char *model, *params = NULL;
    Py_ssize_t n = 0, k = 0;
    if (!PyArg_ParseTuple(args, "y#|z#:decode", &model, &n, &params, &k)) return NULL;
    return py_wrap_program(params ? proa_program_load_memory(model, (size_t)n, params, (size_t)k)
                                  : proa_program_decode(model, (size_t)n));
}

/* ---- variables ------------------------------------------------------------------------- */

/* variable_name(program, tensor): the name of the variable that the tensor denotes now, or None. program
 * None: the program under construction. */
static PyObject *variable_name(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *tensor;
    if (!PyArg_ParseTuple(args, "OO!:variable_name", &program, py_tensor_type, &tensor)) return NULL;
    if (program != Py_None && !PyObject_TypeCheck(program, &py_program_type))
        return PyErr_Format(PyExc_TypeError, "variable_name: expected a program, got %R", program);
    const proa_program *of = program == Py_None ? proa_program_current() : py_program_of(program);
    const char *name = of ? proa_program_name_of(of, py_tensor_of(tensor)) : NULL;
    if (!name) Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

/* mark_parameter(program, name, on): sets whether a persistable variable is a parameter. */
static PyObject *mark_parameter(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program;
    const char *name;
    int on;
    if (!PyArg_ParseTuple(args, "O!sp:mark_parameter", &py_program_type, &program, &name, &on)) return NULL;
    return py_none_or_raise(proa_program_mark_parameter(py_program_of(program), name, on));
}

/* parameter_names(program): the names of persistable variables that are marked as parameters. */
static PyObject *parameter_names(PyObject *module, PyObject *program)
{
    (void)module;
    if (!PyObject_TypeCheck(program, &py_program_type))
        return PyErr_Format(PyExc_TypeError, "parameter_names: expected a Program");
    const proa_program *p = py_program_of(program);
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < proa_program_var_count(p, 0); i++) {
        proa_var_info info;
        if (proa_program_var(p, 0, i, &info) != PROA_OK) {
            Py_DECREF(list);
            return py_raise();
        }
        if (!info.is_parameter) continue;
        PyObject *name = PyUnicode_FromString(info.name);
        if (!name || PyList_Append(list, name) != 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* trim(program): removes ops that the outputs do not depend on, and variables that no op names. */
static PyObject *trim(PyObject *module, PyObject *program)
{
    (void)module;
    if (!PyObject_TypeCheck(program, &py_program_type))
        return PyErr_Format(PyExc_TypeError, "trim: expected a Program");
    return py_none_or_raise(proa_program_trim(py_program_of(program)));
}

/* stop_gradient(program, tensor, on): sets whether append_backward stops at a variable. */
static PyObject *stop_gradient(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *tensor;
    int on;
    if (!PyArg_ParseTuple(args, "O!O!p:stop_gradient", &py_program_type, &program, py_tensor_type, &tensor,
                          &on))
        return NULL;
    return py_none_or_raise(proa_program_stop_gradient(py_program_of(program), py_tensor_of(tensor), on));
}

/* assign_to(x, out): a copy of x's elements into out's memory; in a program, an op that writes
 * variable out. */
static PyObject *assign_to(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *x, *out;
    if (!PyArg_ParseTuple(args, "O!O!:assign_to", py_tensor_type, &x, py_tensor_type, &out)) return NULL;
    PROA_SCOPED;
    PROA_NO_GRAD;
    proa_assign_args call = {.x = py_tensor_of(x), .out = py_tensor_of(out)};
    const proa_op *op = proa_find_op("assign");
    if (proa_call_op(op, &call) != PROA_OK) return py_raise();
    return Py_NewRef(out);
}

PyMethodDef py_describe_functions[] = {
    {"describe", describe, METH_VARARGS, "The ops of a program's block as Paddle's format spells them."},
    {"encode", encode, METH_VARARGS, "A program in Paddle's format, as bytes."},
    {"decode", decode, METH_VARARGS, "The program that bytes in Paddle's format hold."},
    {"variable_name", variable_name, METH_VARARGS, "The variable that a tensor stands for in a program."},
    {"mark_parameter", mark_parameter, METH_VARARGS, "Marks a persistable variable as a parameter."},
    {"parameter_names", parameter_names, METH_O, "The persistable variables that are marked so."},
    {"trim", trim, METH_O, "Keeps what the program's outputs need."},
    {"stop_gradient_of", stop_gradient, METH_VARARGS, "Sets whether gradients stop at a variable."},
    {"assign_to", assign_to, METH_VARARGS, "Copies a tensor into another one's memory or variable."},
    {0},
};
