/* The tensor object: attributes, NumPy through the buffer protocol without copies, backward.
 * Uses ext.h. */
#include "ext.h"

PyObject *py_raise(void)
{
    proa_status code = proa_error();
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *type = builtins ? PyObject_GetAttrString(builtins, proa_error_exception(code)) : NULL;
    Py_XDECREF(builtins);
    PyErr_Clear();
    PyErr_SetString(type ? type : PyExc_RuntimeError,
                    code ? proa_error_message() : "a call failed without an error");
    Py_XDECREF(type);
    proa_clear_error();
    return NULL;
}

PyObject *py_wrap(proa_tensor *t)
{
    if (!t) return py_raise();
    if (t == proa_none) Py_RETURN_NONE;
    py_tensor *self = PyObject_New(py_tensor, &py_tensor_type);
    if (self) self->tensor = proa_keep(t);
    return (PyObject *)self;
}

PyObject *py_from_tensors(proa_tensors list)
{
    if (proa_error()) return py_raise();
    PyObject *result = PyList_New((Py_ssize_t)list.count);
    for (Py_ssize_t i = 0; result && i < (Py_ssize_t)list.count; i++) {
        PyObject *one = py_wrap(list.at[i]);
        if (!one) Py_CLEAR(result);
        if (result) PyList_SET_ITEM(result, i, one);
    }
    return result;
}

static proa_tensor *self_tensor(PyObject *self) { return ((py_tensor *)self)->tensor; }

static void tensor_dealloc(PyObject *self)
{
    proa_release(self_tensor(self));
    PyObject_Free(self);
}

/* ---- buffers --------------------------------------------------------------------------- */

/* struct-module formats; bfloat16 has none and shows its bits. */
static const char *const formats[PROA_DTYPE_COUNT] = {
    [PROA_BOOL] = "?", [PROA_U8] = "B",  [PROA_I8] = "b",   [PROA_I16] = "h",
    [PROA_I32] = "i",  [PROA_I64] = "q", [PROA_F16] = "e",  [PROA_BF16] = "H",
    [PROA_F32] = "f",  [PROA_F64] = "d", [PROA_C64] = "Zf", [PROA_C128] = "Zd",
};

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    proa_tensor *t = self_tensor(self);
    view->obj = NULL;
    if (proa_is_symbolic(t)) {
        PyErr_SetString(PyExc_BufferError, "a program's variable has no data");
        return -1;
    }
    if (!(t->flags & PROA_T_STRIDED) || flags & PyBUF_STRIDES) {
        _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are handed over as they are");
        Py_INCREF(self);
        *view = (Py_buffer){.buf = t->data,
                            .obj = self,
                            .len = (Py_ssize_t)(t->numel * (int64_t)proa_dtype_size((proa_dtype)t->dtype)),
                            .itemsize = (Py_ssize_t)proa_dtype_size((proa_dtype)t->dtype),
                            .ndim = t->ndim,
                            .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)formats[t->dtype] : NULL,
                            .shape = flags & PyBUF_ND ? (Py_ssize_t *)t->shape : NULL,
                            .strides = flags & PyBUF_STRIDES ? (Py_ssize_t *)t->strides : NULL};
        return 0;
    }
    PyErr_SetString(PyExc_BufferError, "the tensor is strided; ask for strides or copy it");
    return -1;
}

static PyBufferProcs tensor_buffer = {tensor_getbuffer, NULL};

static PyObject *tensor_numpy(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", self) : NULL;
    Py_XDECREF(numpy);
    return array;
}

static proa_dtype dtype_of_format(const char *format, Py_ssize_t item)
{
    if (!format) return PROA_U8;
    if (strchr("@=<", *format)) format++;
    if (!strcmp(format, "l") || !strcmp(format, "q")) return item == 8 ? PROA_I64 : PROA_I32;
    for (int d = 1; d < PROA_DTYPE_COUNT; d++)
        if (d != PROA_BF16 && !strcmp(format, formats[d])) return (proa_dtype)d;
    return PROA_NODTYPE;
}

static void release_buffer(void *context)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyGILState_Release(gil);
}

/* from_numpy(array, bfloat16=False): shares the array's memory; uint16 arrays may be bfloat16 bits. */
static PyObject *from_numpy(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *array;
    int bits = 0;
    if (!PyArg_ParseTuple(args, "O|p", &array, &bits)) return NULL;
    Py_buffer *view = PyMem_Calloc(1, sizeof *view);
    if (!view) return PyErr_NoMemory();
    if (PyObject_GetBuffer(array, view, PyBUF_STRIDED | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        if (PyObject_GetBuffer(array, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
            PyMem_Free(view);
            return NULL;
        }
    }
    proa_dtype dtype =
        bits && view->itemsize == 2 ? PROA_BF16 : dtype_of_format(view->format, view->itemsize);
    PROA_SCOPED;
    proa_tensor *t = NULL;
    if (dtype == PROA_NODTYPE)
        proa_fail(PROA_ERR_WRONG_TYPE, "from_numpy: arrays of format '%s' have no dtype here", view->format);
    else
        t = proa_from_foreign(view->buf, (proa_ints){view->ndim, (const int64_t *)view->shape, NULL, NULL},
                              (const int64_t *)view->strides, dtype, release_buffer, view);
    if (!t) {
        PyBuffer_Release(view);
        PyMem_Free(view);
    }
    return py_wrap(t);
}

/* ---- attributes ------------------------------------------------------------------------ */

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    proa_tensor *t = self_tensor(self);
    PyObject *list = PyList_New(t->ndim);
    for (int i = 0; list && i < t->ndim; i++) PyList_SET_ITEM(list, i, PyLong_FromLongLong(t->shape[i]));
    return list;
}

static PyObject *get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(proa_dtype_name(proa_dtype_of(self_tensor(self))));
}

static PyObject *get_grad(PyObject *self, void *closure)
{
    (void)closure;
    return py_wrap(proa_grad_of(self_tensor(self)));
}

static PyObject *get_stop_gradient(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(proa_stop_gradient(self_tensor(self)));
}

static int set_stop_gradient(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    int stop = value ? PyObject_IsTrue(value) : -1;
    if (stop < 0) return -1;
    if (proa_set_stop_gradient(self_tensor(self), stop) == PROA_OK) return 0;
    py_raise();
    return -1;
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    const char *name = proa_name_of(self_tensor(self));
    if (!name) Py_RETURN_NONE;
    return PyUnicode_FromString(name);
}

static int set_name(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    const char *name = value && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;
    if (!name) {
        PyErr_SetString(PyExc_TypeError, "a name is a string");
        return -1;
    }
    if (proa_set_name(self_tensor(self), name) == PROA_OK) return 0;
    py_raise();
    return -1;
}

static PyObject *get_contiguous(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(proa_is_contiguous(self_tensor(self)));
}

static PyGetSetDef tensor_getset[] = {
    {"shape", get_shape, NULL, "list of ints", NULL},
    {"dtype", get_dtype, NULL, "name of the dtype", NULL},
    {"grad", get_grad, NULL, "the accumulated gradient, or None", NULL},
    {"stop_gradient", get_stop_gradient, set_stop_gradient, "False: a gradient is wanted", NULL},
    {"name", get_name, set_name, "name of a parameter or variable", NULL},
    {"is_contiguous", get_contiguous, NULL, "row-major without gaps", NULL},
    {0},
};

/* ---- methods --------------------------------------------------------------------------- */

static PyObject *none_or_error(proa_status status)
{
    if (status != PROA_OK) return py_raise();
    Py_RETURN_NONE;
}

static PyObject *tensor_backward(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"grad", "retain_graph", NULL};
    PyObject *grad = Py_None;
    int retain = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Op", names, &grad, &retain)) return NULL;
    proa_tensor *t = self_tensor(self), *given = proa_none;
    if (PyObject_TypeCheck(grad, &py_tensor_type)) given = self_tensor(grad);
    return none_or_error(proa_backward_all((proa_tensors){1, &t}, (proa_tensors){1, &given},
                                           (proa_backward_opts){.retain_graph = retain}));
}

static PyObject *tensor_clear_grad(PyObject *self, PyObject *unused)
{
    (void)unused;
    proa_clear_grad(self_tensor(self));
    Py_RETURN_NONE;
}

static PyObject *tensor_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    PROA_SCOPED;
    return py_wrap(proa_detach(self_tensor(self)));
}

static PyObject *tensor_item(PyObject *self, PyObject *unused)
{
    (void)unused;
    proa_tensor *t = self_tensor(self);
    bool whole = t->dtype <= PROA_I64;
    int64_t i = whole ? proa_item_int(t) : 0;
    double d = whole ? 0 : proa_item(t);
    if (proa_error()) return py_raise();
    return whole ? PyLong_FromLongLong(i) : PyFloat_FromDouble(d);
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    PyObject *text =
        shape ? PyUnicode_FromFormat("Tensor(%s%R)", proa_dtype_name(proa_dtype_of(self_tensor(self))), shape)
              : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyMethodDef tensor_methods[] = {
    {"numpy", tensor_numpy, METH_NOARGS, "An array on the same memory (bfloat16: its bits as uint16)."},
    {"backward", (PyCFunction)(void (*)(void))tensor_backward, METH_VARARGS | METH_KEYWORDS,
     "Adds d(self)/d(leaf) to every leaf's gradient."},
    {"clear_grad", tensor_clear_grad, METH_NOARGS, "Drops the gradient."},
    {"detach", tensor_detach, METH_NOARGS, "The same memory without history."},
    {"item", tensor_item, METH_NOARGS, "The one element as a number."},
    {0},
};

PyTypeObject py_tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Tensor",
    .tp_basicsize = sizeof(py_tensor),
    .tp_dealloc = tensor_dealloc,
    .tp_repr = tensor_repr,
    .tp_as_buffer = &tensor_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = tensor_methods,
    .tp_getset = tensor_getset,
    .tp_doc = "A tensor of Proa's core.",
};

PyMethodDef py_tensor_functions[] = {
    {"from_numpy", from_numpy, METH_VARARGS, "A tensor on an array's memory."},
    {0},
};
