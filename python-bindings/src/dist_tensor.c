/* Ops on tensors that are divided among processes: calls with such a Tensor go to a function of Python, which
 * runs them on each process's part. Uses ext.h, core/tensor.h. */
#include "ext.h"

#include "core/tensor.h"

static PyTypeObject *dist_type; /* owned; NULL until the first such tensor is made */
static PyObject *dist_call;     /* owned: dispatch(function, args, keywords) */

static bool is_dist(PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && PyType_IsSubtype(type, dist_type);
}

static bool holds_dist(PyObject *obj)
{
    if (!PyList_CheckExact(obj) && !PyTuple_CheckExact(obj)) return is_dist(obj);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(obj); i++)
        if (is_dist(PySequence_Fast_GET_ITEM(obj, i))) return true;
    return false;
}

bool py_takes_dist(PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    if (!dist_type) return false;
    Py_ssize_t all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    for (Py_ssize_t i = 0; i < all; i++)
        if (holds_dist(values[i])) return true;
    return false;
}

PyObject *py_call_dist(PyObject *function, PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    PyObject *args = PyTuple_New(n), *named = PyDict_New(), *result = NULL;
    bool ok = args && named;
    for (Py_ssize_t i = 0; ok && i < n; i++) PyTuple_SET_ITEM(args, i, Py_NewRef(values[i]));
    for (Py_ssize_t i = 0; ok && keywords && i < PyTuple_GET_SIZE(keywords); i++)
        ok = PyDict_SetItem(named, PyTuple_GET_ITEM(keywords, i), values[n + i]) == 0;
    if (ok) result = PyObject_CallFunctionObjArgs(dist_call, function, args, named, NULL);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return result;
}

/* set_dist(type, dispatch): calls with tensors of the class go to dispatch(function, args, keywords). */
static PyObject *set_dist(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *dispatch;
    if (!PyArg_ParseTuple(args, "O!O:set_dist", &PyType_Type, &type, &dispatch)) return NULL;
    Py_XSETREF(dist_call, Py_NewRef(dispatch));
    Py_XSETREF(dist_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

/* without_memory(shape, dtype): a Tensor with shape and dtype alone; whatever wants its elements fails. */
static PyObject *without_memory(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *kind;
    proa_ints shape;
    proa_meta meta = {0};
    PROA_SCOPED;
    if (!PyArg_ParseTuple(args, "OO:without_memory", &list, &kind)) return NULL;
    if (!py_to_ints(list, "shape", &shape) || !py_to_dtype(kind, &meta.dtype)) return NULL;
    if (shape.count > PROA_MAX_DIMS || !shape.at)
        return PyErr_Format(PyExc_ValueError, "without_memory: %lld axes, at most %d", (long long)shape.count,
                            PROA_MAX_DIMS);
    meta.ndim = (int8_t)shape.count;
    for (int64_t i = 0; i < shape.count; i++) meta.shape[i] = shape.at[i];
    return py_wrap(proa_tensor_without_memory(&meta));
}

PyMethodDef py_dist_tensor_functions[] = {
    {"set_dist", set_dist, METH_VARARGS,
     "The class of divided tensors, and the function that gets calls with them."},
    {"without_memory", without_memory, METH_VARARGS, "A Tensor with shape and dtype alone."},
    {0},
};
