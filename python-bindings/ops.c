/* One callable object an op: arguments by position or keyword straight into the args struct. */
#include "ext.h"

#include <stddef.h>

typedef struct py_op {
    PyObject_HEAD vectorcallfunc call;
    const proa_op *op;
    bool in_place;    /* output 0 is input 0's memory */
    char *defaults;   /* an args struct with every default filled in */
    PyObject **names; /* interned, one a field that is no output */
} py_op;

static int find_keyword(const py_op *self, PyObject *name)
{
    int n = self->op->n_in + self->op->n_attr;
    for (int i = 0; i < n; i++)
        if (self->names[i] == name) return i;
    for (int i = 0; i < n; i++)
        if (PyUnicode_Compare(self->names[i], name) == 0) return i;
    return -1;
}

static bool fill_args(const py_op *self, void *args, PyObject *const *values, Py_ssize_t n,
                      PyObject *keywords)
{
    const proa_op *op = self->op;
    int n_fields = op->n_in + op->n_attr;
    uint64_t given = 0;
    if (n > n_fields) {
        PyErr_Format(PyExc_TypeError, "%s: takes %d arguments, got %zd", op->name, n_fields, n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++, given = given << 1 | 1)
        if (!py_to_field(op, &op->fields[i], values[i], args)) return false;
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        int i = find_keyword(self, name);
        if (i < 0 || given >> i & 1) {
            PyErr_Format(PyExc_TypeError,
                         i < 0 ? "%s: there is no argument %U" : "%s: argument %U was given twice", op->name,
                         name);
            return false;
        }
        given |= (uint64_t)1 << i;
        if (!py_to_field(op, &op->fields[i], values[n + k], args)) return false;
    }
    for (int i = 0; i < n_fields; i++) {
        const proa_field *f = &op->fields[i];
        if (given >> i & 1) continue;
        if (f->role == PROA_IN && f->kind == PROA_FIELD_TENSOR && f->flags & PROA_FIELD_OPTIONAL) {
            *proa_field_tensor(f, args) = proa_none;
        } else if (f->role == PROA_IN ? !(f->flags & PROA_FIELD_OPTIONAL) : !f->fallback) {
            PyErr_Format(PyExc_TypeError, "%s: argument %s is missing", op->name, f->name);
            return false;
        }
    }
    return true;
}

static PyObject *one_result(const proa_field *f, const void *args)
{
    return f->kind == PROA_FIELD_TENSOR ? py_wrap(*proa_field_tensor(f, args))
                                        : py_from_tensors(*proa_field_tensors(f, args));
}

static PyObject *results(const proa_op *op, const void *args)
{
    const proa_field *outs = &op->fields[op->n_in + op->n_attr];
    int n = 0, last = -1;
    for (int i = 0; i < op->n_out; i++)
        if (!(outs[i].flags & PROA_FIELD_MUTATED)) n++, last = i;
    if (n == 0) Py_RETURN_NONE;
    if (n == 1) return one_result(&outs[last], args);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0, k = 0; tuple && i < op->n_out; i++) {
        if (outs[i].flags & PROA_FIELD_MUTATED) continue;
        PyObject *one = one_result(&outs[i], args);
        if (!one) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, k++, one);
    }
    return tuple;
}

static PyObject *op_call(PyObject *callable, PyObject *const *values, size_t flagged, PyObject *keywords)
{
    const py_op *self = (py_op *)callable;
    const proa_op *op = self->op;
    _Alignas(16) char args[1024];
    memcpy(args, self->defaults, op->args_size);
    PROA_SCOPED;
    if (!fill_args(self, args, values, PyVectorcall_NARGS(flagged), keywords)) {
        proa_clear_error();
        return NULL;
    }
    if (self->in_place)
        for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
            const proa_field *f = &op->fields[i];
            if (f->alias >= 0 && f->kind == PROA_FIELD_TENSOR)
                *proa_field_tensor(f, args) = *proa_field_tensor(&op->fields[f->alias], args);
        }
    if (proa_call_op(op, args) != PROA_OK) return py_raise();
    return results(op, args);
}

static PyObject *op_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<proa op %s>", ((py_op *)self)->op->name);
}

static PyObject *op_doc(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((py_op *)self)->op->doc);
}

static PyGetSetDef op_getset[] = {{"__doc__", op_doc, NULL, NULL, NULL}, {0}};

PyTypeObject py_op_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Op",
    .tp_basicsize = sizeof(py_op),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(py_op, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = op_repr,
    .tp_getset = op_getset,
};

/* Op objects live as long as the process: their memory is never given back. */
static PyObject *op_new(const proa_op *op, bool in_place)
{
    py_op *self = PyObject_New(py_op, &py_op_type);
    if (!self) return NULL;
    int n = op->n_in + op->n_attr;
    self->call = op_call;
    self->op = op;
    self->in_place = in_place;
    self->defaults = PyMem_Calloc(1, op->args_size + 1u);
    self->names = PyMem_Calloc((size_t)n + 1, sizeof(PyObject *));
    bool ok = self->defaults && self->names && op->args_size <= 1024;
    for (int i = 0; ok && i < n; i++) {
        self->names[i] = PyUnicode_InternFromString(op->fields[i].name);
        ok = self->names[i] &&
             (!op->fields[i].fallback || py_default_field(op, &op->fields[i], self->defaults));
    }
    if (ok) return (PyObject *)self;
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return NULL;
}

bool py_add_ops(PyObject *module)
{
    for (uint32_t i = 0; i < proa_op_count; i++) {
        const proa_op *op = proa_op_table[i];
        if (PyModule_AddObject(module, op->name, op_new(op, false)) < 0) return false;
        if (!(op->flags & PROA_OP_INPLACE)) continue;
        char name[80];
        snprintf(name, sizeof name, "%s_", op->name);
        if (PyModule_AddObject(module, name, op_new(op, true)) < 0) return false;
    }
    return true;
}
