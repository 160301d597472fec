/* The type Dim: an unknown dim of a program's variable, which `shape[i]` gives to Proa's own modules (users
 * get -1 or a number of the program). Arithmetic on a Dim builds ops (proa/framework/dims.py); conversion to
 * int, float or bool raises. Uses ext.h. */
#include "ext.h"

typedef struct py_dim {
    PyObject_HEAD PyObject *variable;
    int axis;
} py_dim;

static PyObject *ask(const char *function, PyObject *first, PyObject *second)
{
    PyObject *module = PyImport_ImportModule("proa.framework.dims");
    PyObject *result = module ? PyObject_CallMethod(module, function, "OO", first, second) : NULL;
    Py_XDECREF(module);
    return result;
}

PyObject *py_variable_shape(PyObject *variable, PyObject *dims)
{
    PyObject *shape = dims ? ask("shape_of", variable, dims) : NULL;
    Py_XDECREF(dims);
    return shape;
}

PyObject *py_open_size(PyObject *variable) { return ask("size_of", variable, Py_None); }

bool py_is_dim(PyObject *obj) { return Py_TYPE(obj) == &py_dim_type; }

PyObject *py_number_of(PyObject *obj)
{
    if (!py_is_dim(obj)) return Py_NewRef(obj);
    py_dim *self = (py_dim *)obj;
    PyObject *axis = PyLong_FromLong(self->axis),
             *number = axis ? ask("number_of", self->variable, axis) : NULL;
    Py_XDECREF(axis);
    if (number && !py_is_tensor(number)) {
        PyErr_Format(PyExc_TypeError, "dims: expected a number of the program, got %s",
                     Py_TYPE(number)->tp_name);
        Py_CLEAR(number);
    }
    return number;
}

proa_tensor *py_dim_tensor(PyObject *obj)
{
    PyObject *number = py_number_of(obj);
    if (!number) return NULL;
    proa_tensor *t = proa_scope_hold(py_tensor_of(number)) ? py_tensor_of(number) : NULL;
    Py_DECREF(number); /* the scope keeps the tensor */
    return t ? t : (py_raise(), NULL);
}

/* ---- arithmetic ------------------------------------------------------------------------ */

static PyObject *both(PyObject *a, PyObject *b, binaryfunc fn)
{
    PyObject *x = py_number_of(a), *y = x ? py_number_of(b) : NULL, *result = y ? fn(x, y) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *one(PyObject *a, unaryfunc fn)
{
    PyObject *x = py_number_of(a), *result = x ? fn(x) : NULL;
    Py_XDECREF(x);
    return result;
}

#define BINARY(name, fn) \
    static PyObject *name(PyObject *a, PyObject *b) { return both(a, b, fn); }
BINARY(dim_add, PyNumber_Add)
BINARY(dim_subtract, PyNumber_Subtract)
BINARY(dim_multiply, PyNumber_Multiply)
BINARY(dim_divide, PyNumber_TrueDivide)
BINARY(dim_floor_divide, PyNumber_FloorDivide)
BINARY(dim_remainder, PyNumber_Remainder)
BINARY(dim_divmod, PyNumber_Divmod)
BINARY(dim_lshift, PyNumber_Lshift)
BINARY(dim_rshift, PyNumber_Rshift)

#define UNARY(name, fn) \
    static PyObject *name(PyObject *a) { return one(a, fn); }
UNARY(dim_negative, PyNumber_Negative)
UNARY(dim_positive, PyNumber_Positive)

static PyObject *raised(PyObject *a, PyObject *b) { return PyNumber_Power(a, b, Py_None); }
static PyObject *dim_power(PyObject *a, PyObject *b, PyObject *modulo)
{
    if (modulo != Py_None) return PyErr_Format(PyExc_TypeError, "pow: a length of the run takes no modulus");
    return both(a, b, raised);
}

/* Comparisons of Dims. Decided here: with negative numbers, >= 0 and < 0, and of one axis with itself; others
 * build an op. */
static PyObject *dim_compare(PyObject *a, PyObject *b, int how)
{
    const py_dim *x = (py_dim *)a, *y = (py_dim *)b;
    if (py_is_dim(b) && x->axis == y->axis && py_tensor_of(x->variable) == py_tensor_of(y->variable))
        Py_RETURN_RICHCOMPARE(0, 0, how);
    if (PyLong_Check(b)) {
        int overflow; /* −1, 1: the value is below, above a long, and `value` is −1 */
        long value = PyLong_AsLongAndOverflow(b, &overflow);
        if (overflow < 0 || (!overflow && value < 0)) Py_RETURN_RICHCOMPARE(0, -1, how);
        if (value == 0 && (how == Py_GE || how == Py_LT)) return PyBool_FromLong(how == Py_GE);
    }
    if (!PyLong_Check(b) && !PyFloat_Check(b) && !py_is_dim(b) && !py_is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *number = py_number_of(a), *other = number ? py_number_of(b) : NULL;
    PyObject *result = other ? PyObject_RichCompare(number, other, how) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(other);
    return result;
}

/* ---- as a Python number: it is none ---------------------------------------------------- */

static PyObject *dim_refused(PyObject *self)
{
    PyObject *result = ask("refuse_number", self, Py_None);
    Py_XDECREF(result); /* an op's result, if the conversion did not raise */
    return NULL;
}

static int dim_truth(PyObject *self)
{
    dim_refused(self);
    return -1;
}

static Py_hash_t dim_hash(PyObject *self)
{
    dim_refused(self);
    return -1;
}

static PyObject *dim_repr(PyObject *self)
{
    (void)self;
    return PyUnicode_FromString("-1"); /* as in printed shapes */
}

/* ---- the type -------------------------------------------------------------------------- */

static PyObject *dim_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"variable", "axis", NULL};
    PyObject *variable;
    int axis;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!i:Dim", names, py_tensor_type, &variable, &axis))
        return NULL;
    py_dim *self = (py_dim *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->variable = Py_NewRef(variable);
    self->axis = axis;
    return (PyObject *)self;
}

static void dim_dealloc(PyObject *self)
{
    Py_DECREF(((py_dim *)self)->variable);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *dim_number(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_number_of(self);
}

static PyNumberMethods dim_numbers = {
    .nb_add = dim_add,
    .nb_subtract = dim_subtract,
    .nb_multiply = dim_multiply,
    .nb_true_divide = dim_divide,
    .nb_floor_divide = dim_floor_divide,
    .nb_remainder = dim_remainder,
    .nb_divmod = dim_divmod,
    .nb_lshift = dim_lshift,
    .nb_rshift = dim_rshift,
    .nb_power = dim_power,
    .nb_negative = dim_negative,
    .nb_positive = dim_positive,
    .nb_absolute = dim_positive,
    .nb_bool = dim_truth,
    .nb_int = dim_refused,
    .nb_index = dim_refused,
    .nb_float = dim_refused,
};

static PyMethodDef dim_methods[] = {
    {"number", dim_number, METH_NOARGS,
     "number($self, /)\n--\n\nThe number of the program that it stands for."},
    {0},
};

PyTypeObject py_dim_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa.Dim",
    .tp_basicsize = sizeof(py_dim),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The length of an axis that only the run knows.",
    .tp_new = dim_new,
    .tp_dealloc = dim_dealloc,
    .tp_repr = dim_repr,
    .tp_hash = dim_hash,
    .tp_richcompare = dim_compare,
    .tp_as_number = &dim_numbers,
    .tp_methods = dim_methods,
};

bool py_add_dims(PyObject *module)
{
    return PyType_Ready(&py_dim_type) == 0 &&
           PyModule_AddObjectRef(module, "Dim", (PyObject *)&py_dim_type) == 0;
}
