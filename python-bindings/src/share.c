/* Functions that let tensors share memory, as buffers for all parameters or gradients need. Uses ext.h. */
#include "ext.h"

static bool are_tensors(const char *who, PyObject *args, proa_tensor **a, proa_tensor **b)
{
    PyObject *first, *second;
    if (!PyArg_UnpackTuple(args, who, 2, 2, &first, &second)) return false;
    if (!py_is_tensor(first) || !py_is_tensor(second)) {
        PyErr_Format(PyExc_TypeError, "%s: expected two Tensors, got %s and %s", who, Py_TYPE(first)->tp_name,
                     Py_TYPE(second)->tp_name);
        return false;
    }
    *a = py_tensor_of(first), *b = py_tensor_of(second);
    return true;
}

/* share_buffer(source, to): `to` keeps its shape and has the elements and dtype of source from then on, in
 * the same memory. */
static PyObject *share_buffer(PyObject *module, PyObject *args)
{
    (void)module;
    proa_tensor *source, *to;
    if (!are_tensors("_share_buffer_to", args, &source, &to)) return NULL;
    return py_none_or_raise(proa_share_memory(to, source));
}

static PyObject *is_shared(PyObject *module, PyObject *args)
{
    (void)module;
    proa_tensor *a, *b;
    if (!are_tensors("_is_shared_buffer_with", args, &a, &b)) return NULL;
    return PyBool_FromLong(proa_shares_memory(a, b));
}

/* bind_grad(leaf, grad): gradients of leaf are added in the memory of grad from then on. */
static PyObject *bind_grad(PyObject *module, PyObject *args)
{
    (void)module;
    proa_tensor *leaf, *grad;
    if (!are_tensors("_copy_gradient_from", args, &leaf, &grad)) return NULL;
    return py_none_or_raise(proa_bind_grad(leaf, grad));
}

PyMethodDef py_share_functions[] = {
    {"share_buffer", share_buffer, METH_VARARGS, "Makes the second tensor one on the first one's memory."},
    {"is_shared", is_shared, METH_VARARGS, "True if two tensors are in the same memory block."},
    {"bind_grad", bind_grad, METH_VARARGS, "Adds a tensor's gradients in the memory of another."},
    {0},
};
