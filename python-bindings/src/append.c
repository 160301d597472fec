/* Python functions that append an op in Paddle's format (type, slots, attributes) to a program, or call one
 * eagerly on tensors. Uses ext.h, proa/program.h and proa/io.h. */
#include "ext.h"

#include <proa/io.h>
#include <proa/ops.h>
#include <proa/wire.h>

/* ---- attributes: memory ends with the scope ---------------------------------------------- */

static void *new_array(Py_ssize_t n, size_t item)
{
    void *at = proa_scope_alloc(((size_t)n + 1) * item);
    if (!at) py_raise();
    return at;
}

static bool int_of(PyObject *value, int64_t *to)
{
    *to = PyLong_AsLongLong(value);
    return *to != -1 || !PyErr_Occurred();
}

/* Converts a list of bools, ints, strings or floats (ints may be among floats) to an attribute's value. */
static bool list_to_attr(PyObject *list, proa_op_attr *a)
{
    Py_ssize_t n = PyList_GET_SIZE(list);
    int64_t *ints = new_array(n, sizeof *ints);
    double *floats = new_array(n, sizeof *floats);
    const char **strings = new_array(n, sizeof *strings);
    if (!ints || !floats || !strings) return false;
    *a = (proa_op_attr){.name = a->name, .count = n, .ints = ints, .floats = floats, .strings = strings};
    a->type = PROA_WIRE_LONGS;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *v = PyList_GET_ITEM(list, i);
        if (PyUnicode_Check(v)) {
            a->type = PROA_WIRE_STRINGS;
            if (!(strings[i] = PyUnicode_AsUTF8(v))) return false;
            continue;
        }
        floats[i] = PyFloat_AsDouble(v);
        if (floats[i] == -1 && PyErr_Occurred()) return false;
        if (PyFloat_Check(v)) a->type = PROA_WIRE_FLOATS;
        else if (!int_of(v, &ints[i])) return false;
        else if (PyBool_Check(v)) a->type = PROA_WIRE_BOOLEANS;
    }
    return true;
}

/* (name,) or ([name, …],): variables that supply the value. */
static bool variables_to_attr(PyObject *names, proa_op_attr *a)
{
    bool many = PyList_Check(names);
    if (many && !list_to_attr(names, a)) return false;
    a->type = many ? PROA_WIRE_VARS : PROA_WIRE_VAR;
    if (many) return true;
    const char **one = new_array(1, sizeof *one);
    a->count = 1;
    a->strings = one;
    return one && (*one = PyUnicode_AsUTF8(names)) != NULL;
}

static bool value_to_attr(PyObject *value, proa_op_attr *a)
{
    if (PyList_Check(value)) return list_to_attr(value, a);
    if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 1)
        return variables_to_attr(PyTuple_GET_ITEM(value, 0), a);
    if (PyUnicode_Check(value)) {
        a->type = PROA_WIRE_STRING;
        return (a->s = PyUnicode_AsUTF8(value)) != NULL;
    }
    a->type = PyFloat_Check(value)  ? PROA_WIRE_FLOAT
              : PyBool_Check(value) ? PROA_WIRE_BOOLEAN
                                    : PROA_WIRE_LONG;
    if (!PyFloat_Check(value)) return int_of(value, &a->i);
    a->f = PyFloat_AS_DOUBLE(value);
    return true;
}

static bool to_attrs(PyObject *dict, proa_op_desc *op)
{
    proa_op_attr *at = new_array(PyDict_GET_SIZE(dict), sizeof *at);
    PyObject *key, *value;
    Py_ssize_t place = 0;
    if (!at) return false;
    op->attrs = at;
    while (PyDict_Next(dict, &place, &key, &value)) {
        *at = (proa_op_attr){.name = PyUnicode_AsUTF8(key)};
        if (!at->name || !value_to_attr(value, at)) return false;
        at++;
        op->n_attrs++;
    }
    return true;
}

/* ---- slots ------------------------------------------------------------------------------- */

static bool to_slots(PyObject *dict, const proa_op_slot **slots, int64_t *count)
{
    proa_op_slot *at = new_array(PyDict_GET_SIZE(dict), sizeof *at);
    PyObject *key, *list;
    Py_ssize_t place = 0;
    *slots = at;
    *count = 0;
    while (at && PyDict_Next(dict, &place, &key, &list)) {
        if (!PyList_Check(list)) {
            PyErr_SetString(PyExc_TypeError, "append: a slot holds a list of names");
            return false;
        }
        Py_ssize_t n = PyList_GET_SIZE(list);
        const char **names = new_array(n, sizeof *names);
        *at = (proa_op_slot){PyUnicode_AsUTF8(key), n, names};
        if (!names || !at->name) return false;
        for (Py_ssize_t i = 0; i < n; i++)
            if (!(names[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i)))) return false;
        at++;
        ++*count;
    }
    return at != NULL;
}

/* append(program, type, inputs, outputs, attributes, before): adds an op of Paddle's format. Slots are
 * {slot: [name]}; before is the index of the root block's op to insert it in front of, -1 for the end. */
static PyObject *append(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *in, *out, *attrs;
    proa_op_desc op = {0};
    long long before;
    if (!PyArg_ParseTuple(args, "O!sO!O!O!L:append", &py_program_type, &program, &op.type, &PyDict_Type, &in,
                          &PyDict_Type, &out, &PyDict_Type, &attrs, &before))
        return NULL;
    PROA_SCOPED;
    if (!to_slots(in, &op.inputs, &op.n_inputs) || !to_slots(out, &op.outputs, &op.n_outputs) ||
        !to_attrs(attrs, &op))
        return NULL;
    return py_none_or_raise(proa_program_append(py_program_of(program), &op, before));
}

/* ---- calls at once ------------------------------------------------------------------------ */

/* Names each tensor of an eager call by its address, so that a tensor that is input and output has one
 * name. */
static bool name_tensors(PyObject *dict, const proa_op_slot **slots, int64_t *count, proa_named_tensor *named,
                         int64_t *n_named)
{
    proa_op_slot *at = new_array(PyDict_GET_SIZE(dict), sizeof *at);
    PyObject *key, *list;
    Py_ssize_t place = 0;
    *slots = at;
    *count = 0;
    while (at && PyDict_Next(dict, &place, &key, &list)) {
        Py_ssize_t n = PyList_GET_SIZE(list);
        const char **names = new_array(n, sizeof *names);
        *at = (proa_op_slot){PyUnicode_AsUTF8(key), n, names};
        if (!names || !at->name) return false;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *one = PyList_GET_ITEM(list, i);
            char *name = new_array(24, 1);
            if (!name) return false;
            if (!py_is_tensor(one)) {
                PyErr_Format(PyExc_TypeError, "%s: expected a Tensor, got %s", at->name,
                             Py_TYPE(one)->tp_name);
                return false;
            }
            snprintf(name, 24, "%p", (void *)py_tensor_of(one));
            names[i] = name;
            named[(*n_named)++] = (proa_named_tensor){name, py_tensor_of(one)};
        }
        at++;
        ++*count;
    }
    return at != NULL;
}

static Py_ssize_t count_tensors(PyObject *dict)
{
    Py_ssize_t n = 0, place = 0;
    PyObject *key, *list;
    while (PyDict_Next(dict, &place, &key, &list)) {
        if (!PyList_Check(list)) {
            PyErr_SetString(PyExc_TypeError, "call: a slot holds a list of tensors");
            return -1;
        }
        n += PyList_GET_SIZE(list);
    }
    return n;
}

/* Makes each output Tensor show the op's result; the elements of one that was an input, or that a layer owns,
 * are overwritten instead. */
static bool hand_out(PyObject *out, const proa_named_tensor *named, int64_t first, PyObject *made)
{
    PyObject *key, *list;
    Py_ssize_t place = 0;
    for (int64_t at = first; PyDict_Next(out, &place, &key, &list);)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++, at++) {
            py_tensor *one = (py_tensor *)PyList_GET_ITEM(list, i);
            proa_tensor *now = named[at].tensor;
            bool held = one->persistable;
            for (int64_t k = 0; k < first; k++) held |= strcmp(named[k].name, named[at].name) == 0;
            if (PyList_Append(made, now == one->tensor ? Py_False : Py_True) < 0) return false;
            if (now == one->tensor) continue;
            if (held && proa_is_symbolic(one->tensor) && !proa_is_symbolic(now)) {
                PyErr_SetString(PyExc_ValueError,
                                "call: an output is a program's variable, which an operator that runs at "
                                "once cannot write; give it a tensor");
                return false;
            }
            if (held) {
                proa_assign_args write = {.x = now, .out = one->tensor};
                if (proa_call_op(proa_find_op("assign"), &write) != PROA_OK) return py_raise() != NULL;
                continue;
            }
            proa_tensor *before = one->tensor;
            const char *name = proa_name_of(before); /* of a placeholder, by which the caller finds it */
            if (name && !proa_name_of(now) && proa_set_name(now, name) != PROA_OK) return py_raise() != NULL;
            one->tensor = proa_keep(now);
            proa_release(before);
        }
    return true;
}

enum { LOD_LEVELS = 4 };

/* Adds a tensor's LoD offsets under the names "<tensor>@LOD_<level>"; with offsets NULL, only the names, for
 * LoD that the op makes. */
static bool name_levels(const char *tensor, PyObject *offsets, proa_named_tensor *named, int64_t *n_named)
{
    Py_ssize_t n = offsets ? PyTuple_GET_SIZE(offsets) : LOD_LEVELS;
    for (Py_ssize_t i = 0; i < n && i < LOD_LEVELS; i++) {
        char *name = new_array(48, 1);
        if (!name) return false;
        snprintf(name, 48, "%s@LOD_%d", tensor, (int)i);
        PyObject *level = offsets ? PyTuple_GET_ITEM(offsets, i) : NULL;
        named[(*n_named)++] = (proa_named_tensor){name, level ? py_tensor_of(level) : NULL};
    }
    return true;
}

/* Adds the LoD of inputs, {index of the input: (offsets, …)}, and the names under which the outputs' LoD is
 * returned. */
static bool name_lods(PyObject *lods, int64_t first, int64_t last, proa_named_tensor *named, int64_t *n_named)
{
    PyObject *key, *offsets;
    Py_ssize_t place = 0;
    while (PyDict_Next(lods, &place, &key, &offsets)) {
        Py_ssize_t of = PyLong_AsSsize_t(key);
        if (of < 0 || of >= first || !PyTuple_Check(offsets)) {
            PyErr_SetString(PyExc_TypeError, "call: sequences are {number of an input: (offsets, …)}");
            return false;
        }
        if (!name_levels(named[of].name, offsets, named, n_named)) return false;
    }
    for (int64_t i = first; i < last; i++)
        if (!name_levels(named[i].name, NULL, named, n_named)) return false;
    return true;
}

/* Stores the outputs' LoD in the dict: {index of the output: (offsets, …)}. They may be offsets of inputs,
 * which the dict holds. */
static bool lods_made(PyObject *lods, int64_t n_out, const proa_named_tensor *levels)
{
    PyObject *made = PyDict_New();
    if (!made) return false;
    bool good = true;
    for (int64_t i = 0; good && i < n_out; i++, levels += LOD_LEVELS) {
        Py_ssize_t n = 0;
        while (n < LOD_LEVELS && levels[n].tensor) n++;
        if (!n) continue;
        PyObject *key = PyLong_FromLongLong(i), *all = PyTuple_New(n);
        good = key && all;
        for (Py_ssize_t k = 0; good && k < n; k++) {
            PyObject *level = py_wrap(levels[k].tensor);
            if (level) PyTuple_SET_ITEM(all, k, level);
            else good = false;
        }
        good = good && PyDict_SetItem(made, key, all) == 0;
        Py_XDECREF(key);
        Py_XDECREF(all);
    }
    PyDict_Clear(lods);
    good = good && PyDict_Update(lods, made) == 0;
    Py_DECREF(made);
    return good;
}

/* call(type, {slot: [Tensor]}, {slot: [Tensor]}, {attribute: value}, {input's number: (offsets, …)}) → one
 * bool an output tensor: whether the op made it. The dict of LoD, if given, becomes {output's number:
 * (offsets, …)}. */
static PyObject *call(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *in, *out, *attrs, *lods = NULL;
    proa_op_desc op = {0};
    if (!PyArg_ParseTuple(args, "sO!O!O!|O!:call", &op.type, &PyDict_Type, &in, &PyDict_Type, &out,
                          &PyDict_Type, &attrs, &PyDict_Type, &lods))
        return NULL;
    PROA_SCOPED;
    Py_ssize_t n_in = count_tensors(in), n_out = count_tensors(out);
    if (n_in < 0 || n_out < 0) return NULL;
    proa_named_tensor *named = new_array((n_in + n_out) * (1 + LOD_LEVELS), sizeof *named);
    int64_t n = 0, first;
    if (!named || !name_tensors(in, &op.inputs, &op.n_inputs, named, &n)) return NULL;
    first = n;
    if (!name_tensors(out, &op.outputs, &op.n_outputs, named, &n) || !to_attrs(attrs, &op)) return NULL;
    int64_t last = n;
    if (lods && !name_lods(lods, first, last, named, &n)) return NULL;
    if (proa_op_call(&op, named, n) != PROA_OK) return py_raise();
    if (lods && !lods_made(lods, last - first, &named[n - (last - first) * LOD_LEVELS])) return NULL;
    PyObject *made = PyList_New(0);
    if (made && !hand_out(out, named, first, made)) Py_CLEAR(made);
    return made;
}

static PyObject *has_gradient(PyObject *module, PyObject *type)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(type);
    return text ? PyBool_FromLong(proa_op_type_has_gradient(text)) : NULL;
}

/* declare(program, name, shape, dtype): adds a variable that an op appended later is to make. */
static PyObject *declare(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *shape, *dtype;
    proa_input_spec spec = {0};
    if (!PyArg_ParseTuple(args, "O!sOO:declare", &py_program_type, &program, &spec.name, &shape, &dtype))
        return NULL;
    PROA_SCOPED;
    if (!py_to_ints(shape, "shape is a list of ints", &spec.shape) || !py_to_dtype(dtype, &spec.dtype))
        return NULL;
    return py_wrap(proa_program_declare(py_program_of(program), &spec));
}

static PyObject *is_declared(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program;
    const char *name;
    if (!PyArg_ParseTuple(args, "Oz:is_declared", &program, &name)) return NULL;
    if (program != Py_None && Py_TYPE(program) != &py_program_type)
        return PyErr_Format(PyExc_TypeError, "is_declared: expected a Program or None, got %R", program);
    const proa_program *of = program == Py_None ? proa_program_current() : py_program_of(program);
    return PyBool_FromLong(proa_program_is_declared(of, name));
}

/* define(program, name, tensor): gives an op's result the name of a declared variable. */
static PyObject *define(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *tensor;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!sO!:define", &py_program_type, &program, &name, py_tensor_type, &tensor))
        return NULL;
    return py_none_or_raise(proa_program_define(py_program_of(program), name, py_tensor_of(tensor)));
}

/* follow(program, tensor, name): makes the tensor denote the variable that now has the name. */
static PyObject *follow(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *program, *tensor;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!O!s:follow", &py_program_type, &program, py_tensor_type, &tensor, &name))
        return NULL;
    return py_none_or_raise(proa_program_follow(py_program_of(program), py_tensor_of(tensor), name));
}

PyMethodDef py_append_functions[] = {
    {"append", append, METH_VARARGS, "Appends an op in Paddle's spelling to a program."},
    {"call", call, METH_VARARGS, "Calls an op in Paddle's spelling on tensors at once."},
    {"has_gradient", has_gradient, METH_O, "Whether an op in Paddle's spelling has a gradient."},
    {"declare", declare, METH_VARARGS, "A variable that an op appended later makes."},
    {"is_declared", is_declared, METH_VARARGS,
     "is_declared(program, name): no op makes the variable yet; None: of the open program."},
    {"define", define, METH_VARARGS, "What an op made takes a declared variable's name."},
    {"follow", follow, METH_VARARGS, "Makes a tensor denote the variable that has the name now."},
    {0},
};
