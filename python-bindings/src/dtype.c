/* The class paddle.dtype (Paddle's enum VarType): one member a dtype or kind of variable (LOD_TENSOR, …),
 * made at import. Uses ext.h. */
#include "ext.h"

/* ---- dtypes ---------------------------------------------------------------------------- */

typedef struct py_dtype {
    PyObject_HEAD proa_dtype dtype; /* PROA_NODTYPE: a kind of variable */
    const char *name;               /* name in Paddle's enum, "FP32" */
    int number;                     /* VarType number in model files */
} py_dtype;

/* Members and interned names by dtype, filled by py_add_dtypes; alive as long as the process. */
static PyObject *objects[PROA_DTYPE_COUNT], *texts[PROA_DTYPE_COUNT];

/* Kinds of variables, which share the dtypes' enum in Paddle's format. */
static const struct {
    const char *name;
    int number;
} kinds[] = {
    {"LOD_TENSOR", 7},
    {"SELECTED_ROWS", 8},
    {"FEED_MINIBATCH", 9},
    {"FETCH_LIST", 10},
    {"STEP_SCOPES", 11},
    {"LOD_RANK_TABLE", 12},
    {"LOD_TENSOR_ARRAY", 13},
    {"PLACE_LIST", 14},
    {"READER", 15},
    {"RAW", 17},
    {"TUPLE", 18},
    {"STRING", 25},
    {"STRINGS", 26},
    {"VOCAB", 27},
    {"SPARSE_COO", 30},
};

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

static PyObject *dtype_repr(PyObject *self)
{
    const py_dtype *one = (py_dtype *)self;
    if (one->dtype) return PyUnicode_FromFormat("paddle.%s", proa_dtype_name(one->dtype));
    return PyUnicode_FromFormat("<VarType.%s: %d>", one->name, one->number);
}

static PyObject *dtype_str(PyObject *self)
{
    const py_dtype *one = (py_dtype *)self;
    return one->dtype ? dtype_repr(self) : PyUnicode_FromFormat("VarType.%s", one->name);
}

static PyObject *dtype_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((py_dtype *)self)->name);
}

static PyObject *dtype_value(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((py_dtype *)self)->number);
}

static PyObject *dtype_number(PyObject *self) { return dtype_value(self, NULL); }

static Py_hash_t dtype_hash(PyObject *self) { return ((py_dtype *)self)->number; }

/* Equal to itself and to its number, as Paddle's enum is. */
static PyObject *dtype_compare(PyObject *self, PyObject *other, int how)
{
    bool known = Py_TYPE(other) == &py_dtype_type || PyLong_Check(other);
    if (!known || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    bool same = self == other;
    if (PyLong_Check(other)) same = PyLong_AsLong(other) == ((py_dtype *)self)->number;
    if (PyErr_Occurred()) PyErr_Clear(); /* too large for long: unequal */
    return PyBool_FromLong(same == (how == Py_EQ));
}

/* dtype(5): the member of that number. */
static PyObject *dtype_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"value", NULL};
    PyObject *value, *member, *key;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O", names, &value)) return NULL;
    PyObject *members = PyDict_GetItemString(type->tp_dict, "__members__");
    for (Py_ssize_t at = 0; members && PyDict_Next(members, &at, &key, &member);)
        if (member == value || (PyLong_Check(value) && PyObject_RichCompareBool(member, value, Py_EQ) == 1))
            return Py_NewRef(member);
    return PyErr_Format(PyExc_ValueError, "dtype: %R is the number of no dtype or kind of variable", value);
}

/* Pickled by name, kinds by number: there is one object a member. */
static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    const py_dtype *one = (py_dtype *)self;
    if (!one->dtype) return Py_BuildValue("O(i)", (PyObject *)Py_TYPE(self), one->number);
    return PyUnicode_FromString(proa_dtype_name(one->dtype));
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
    .tp_new = dtype_new,
    .tp_repr = dtype_repr,
    .tp_str = dtype_str,
    .tp_hash = dtype_hash,
    .tp_richcompare = dtype_compare,
    .tp_as_number = &dtype_numbers,
    .tp_getset = dtype_getset,
    .tp_methods = dtype_methods,
    .tp_doc =
        "An element type (paddle.float32, …) or a kind of variable (dtype.LOD_TENSOR, …): Paddle's VarType.",
};

/* Python's own types, the names of C's, and NumPy's codes, with or without a mark of this byte order. */
static bool from_numpy_name(const char *name, proa_dtype *dtype)
{
    static const struct {
        const char *names[8];
        proa_dtype dtype;
    } known[] = {{{"bool_", "bool8", "b1", "?"}, PROA_BOOL},
                 {{"ubyte", "u1", "B"}, PROA_U8},
                 {{"byte", "i1", "b"}, PROA_I8},
                 {{"short", "i2", "h"}, PROA_I16},
                 {{"intc", "i4", "i"}, PROA_I32},
                 {{"int", "int_", "long", "longlong", "i8", "l", "q"}, PROA_I64},
                 {{"half", "f2", "e"}, PROA_F16},
                 {{"uint16", "u2", "H"}, PROA_BF16}, /* Paddle's arrays of bfloat16 */
                 {{"single", "f4", "f"}, PROA_F32},
                 {{"float", "double", "f8", "d"}, PROA_F64},
                 {{"csingle", "c8", "F"}, PROA_C64},
                 {{"complex", "cdouble", "c16", "D"}, PROA_C128}};
    bool coded = strchr("<=|", *name) && name[0];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (const char *const *one = known[i].names; *one; one++)
            if (!strcmp(name + coded, *one)) *dtype = known[i].dtype;
    return *dtype != PROA_NODTYPE;
}

static bool from_name(const char *name, proa_dtype *dtype)
{
    if (!strncmp(name, "paddle.", 7)) name += 7;
    *dtype = proa_dtype_from_name(name);
    return *dtype != PROA_NODTYPE || from_numpy_name(name, dtype);
}

static bool from_text(PyObject *text, proa_dtype *dtype)
{
    const char *name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    return name && from_name(name, dtype);
}

/* True for what NumPy takes for a dtype, but Paddle does not have: bytes, classes, records. */
static bool is_other_dtype(PyObject *obj)
{
    bool empty = PyList_Check(obj) && PyList_GET_SIZE(obj) == 0;
    return PyBytes_Check(obj) || PyDict_Check(obj) || PyType_Check(obj) || empty;
}

bool py_to_dtype(PyObject *obj, proa_dtype *dtype)
{
    *dtype = PROA_NODTYPE;
    if (obj == Py_None) return true;
    if (Py_TYPE(obj) == &py_dtype_type) {
        *dtype = ((py_dtype *)obj)->dtype;
        if (*dtype) return true;
        PyErr_Format(PyExc_TypeError, "expected a dtype such as paddle.float32, got the kind of variable %S",
                     obj);
        return false;
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
        PyErr_Format(is_other_dtype(obj) ? PyExc_ValueError : PyExc_TypeError,
                     "expected a dtype such as paddle.float32 or 'float32', got %R", obj);
    return ok;
}

/* ---- the module's part ----------------------------------------------------------------- */

/* A new member of the enum, in the class and in its __members__. */
static PyObject *add_member(PyObject *members, proa_dtype dtype, const char *name, int number)
{
    py_dtype *one = PyObject_New(py_dtype, &py_dtype_type);
    if (!one) return NULL;
    one->dtype = dtype, one->name = name, one->number = number;
    bool ok = PyDict_SetItemString(members, name, (PyObject *)one) == 0 &&
              PyDict_SetItemString(py_dtype_type.tp_dict, name, (PyObject *)one) == 0;
    if (!ok) Py_CLEAR(one);
    return (PyObject *)one;
}

bool py_add_dtypes(PyObject *module)
{
    PyObject *members = PyDict_New();
    bool ok = members && PyType_Ready(&py_dtype_type) == 0 &&
              PyModule_AddObjectRef(module, "dtype", (PyObject *)&py_dtype_type) == 0 &&
              PyDict_SetItemString(py_dtype_type.tp_dict, "__members__", members) == 0;
    for (int d = 1; d < PROA_DTYPE_COUNT && ok; d++) {
        const char *name = proa_dtype_name((proa_dtype)d);
        texts[d] = PyUnicode_InternFromString(name);
        objects[d] = add_member(members, (proa_dtype)d, paddle_names[d], wire_numbers[d]);
        ok = texts[d] && objects[d] && PyModule_AddObjectRef(module, name, objects[d]) == 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && ok; i++) {
        PyObject *kind = add_member(members, PROA_NODTYPE, kinds[i].name, kinds[i].number);
        ok = kind != NULL;
        Py_XDECREF(kind); /* the class keeps it */
    }
    PyType_Modified(&py_dtype_type);
    Py_XDECREF(members);
    return ok;
}
