/* paddle.dtype and places: one object a dtype, made at import; places are compared by kind and number.
 * Uses ext.h. */
#include "ext.h"

/* ---- dtypes ---------------------------------------------------------------------------- */

typedef struct py_dtype {
    PyObject_HEAD proa_dtype dtype;
} py_dtype;

/* Filled by py_add_dtypes, alive as long as the process; the names are interned, as those in programs are. */
static PyObject *objects[PROA_DTYPE_COUNT], *texts[PROA_DTYPE_COUNT];

/* Paddle's enum names and VarType numbers. */
static const int wire_numbers[PROA_DTYPE_COUNT] = {
#define PROA_X(NAME, name, bytes, wire) [PROA_##NAME] = wire,
    PROA_DTYPES(PROA_X)
#undef PROA_X
};
static const char *const paddle_names[PROA_DTYPE_COUNT] = {
    [PROA_BOOL] = "BOOL", [PROA_U8] = "UINT8",  [PROA_I8] = "INT8",       [PROA_I16] = "INT16",
    [PROA_I32] = "INT32", [PROA_I64] = "INT64", [PROA_F16] = "FP16",      [PROA_BF16] = "BF16",
    [PROA_F32] = "FP32",  [PROA_F64] = "FP64",  [PROA_C64] = "COMPLEX64", [PROA_C128] = "COMPLEX128",
};

PyObject *py_dtype_object(proa_dtype dtype) { return objects[dtype]; }
PyObject *py_dtype_text(proa_dtype dtype) { return texts[dtype]; }

static PyObject *dtype_str(PyObject *self)
{
    return PyUnicode_FromFormat("paddle.%s", proa_dtype_name(((py_dtype *)self)->dtype));
}

static PyObject *dtype_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(paddle_names[((py_dtype *)self)->dtype]);
}

static PyObject *dtype_value(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(wire_numbers[((py_dtype *)self)->dtype]);
}

static PyObject *dtype_number(PyObject *self) { return dtype_value(self, NULL); }

/* Pickled by name: there is one object a dtype. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(proa_dtype_name(((py_dtype *)self)->dtype));
}

static PyGetSetDef dtype_getset[] = {
    {"name", dtype_name, NULL, "Paddle's enum name: FP32, …", NULL},
    {"value", dtype_value, NULL, "the number that model files write", NULL},
    {0},
};
static PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, "For pickle."}, {0}};
static PyNumberMethods dtype_numbers = {.nb_int = dtype_number, .nb_index = dtype_number};

PyTypeObject py_dtype_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa.dtype",
    .tp_basicsize = sizeof(py_dtype),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_repr = dtype_str,
    .tp_str = dtype_str,
    .tp_as_number = &dtype_numbers,
    .tp_getset = dtype_getset,
    .tp_methods = dtype_methods,
    .tp_doc = "An element type: paddle.float32, …",
};

static bool from_name(const char *name, proa_dtype *dtype)
{
    /* Python's own types, as NumPy takes them. */
    static const struct {
        const char *name;
        proa_dtype dtype;
    } own[] = {{"int", PROA_I64}, {"float", PROA_F64}, {"complex", PROA_C128}};
    if (!strncmp(name, "paddle.", 7)) name += 7;
    *dtype = proa_dtype_from_name(name);
    for (size_t i = 0; i < sizeof own / sizeof *own && *dtype == PROA_NODTYPE; i++)
        if (!strcmp(name, own[i].name)) *dtype = own[i].dtype;
    return *dtype != PROA_NODTYPE;
}

static bool from_text(PyObject *text, proa_dtype *dtype)
{
    const char *name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    return name && from_name(name, dtype);
}

bool py_to_dtype(PyObject *obj, proa_dtype *dtype)
{
    *dtype = PROA_NODTYPE;
    if (obj == Py_None) return true;
    if (Py_TYPE(obj) == &py_dtype_type) {
        *dtype = ((py_dtype *)obj)->dtype;
        return true;
    }
    if (PyUnicode_Check(obj)) {
        for (int d = 1; d < PROA_DTYPE_COUNT; d++)
            if (obj == texts[d]) {
                *dtype = (proa_dtype)d;
                return true;
            }
        if (from_text(obj, dtype)) return true;
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "%R is no dtype; expected one such as 'float32'", obj);
        return false;
    }
    /* numpy.dtype has .name; numpy.float32 (a class) and bool have __name__ */
    PyObject *name = PyObject_GetAttrString(obj, PyType_Check(obj) ? "__name__" : "name");
    PyErr_Clear();
    bool ok = from_text(name, dtype);
    Py_XDECREF(name);
    if (!ok && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "expected a dtype such as paddle.float32 or 'float32', got %R", obj);
    return ok;
}

/* ---- the module's part ----------------------------------------------------------------- */

bool py_add_dtypes(PyObject *module)
{
    if (PyType_Ready(&py_dtype_type) != 0 ||
        PyModule_AddObjectRef(module, "dtype", (PyObject *)&py_dtype_type) != 0)
        return false;
    for (int d = 1; d < PROA_DTYPE_COUNT; d++) {
        py_dtype *one = PyObject_New(py_dtype, &py_dtype_type);
        texts[d] = PyUnicode_InternFromString(proa_dtype_name((proa_dtype)d));
        if (!one || !texts[d]) return false;
        one->dtype = (proa_dtype)d;
        objects[d] = (PyObject *)one;
        if (PyModule_AddObjectRef(module, proa_dtype_name((proa_dtype)d), objects[d]) != 0) return false;
    }
    return true;
}
