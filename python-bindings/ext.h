/* What the files of the extension share: the tensor object, errors, conversions by field descriptor.
 * Uses the CPython API and Proa's headers. */
#ifndef PROA_PYTHON_EXT_H
#define PROA_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/tensor.h"
#include "core/internal.h"

#include <proa/autograd.h>
#include <proa/op.h>

typedef struct py_tensor {
    PyObject_HEAD proa_tensor *tensor; /* kept */
} py_tensor;

extern PyTypeObject py_tensor_type;
extern PyTypeObject py_op_type;

/* Raises this thread's Proa error as its Python exception and clears it. Always returns NULL. */
PyObject *py_raise(void);
/* A new object that keeps t; NULL with an exception when t is NULL; None for PROA_NONE. */
PyObject *py_wrap(proa_tensor *t);
/* A tuple or list of tensors as a list that ends with the scope. False with an exception. */
bool py_to_tensors(PyObject *obj, const char *what, bool optional, proa_tensors *list);
PyObject *py_from_tensors(proa_tensors list);
/* dtype from its name; PROA_NODTYPE and no exception for None; false with an exception. */
bool py_to_dtype(PyObject *obj, proa_dtype *dtype);
bool py_to_ints(PyObject *obj, const char *what, proa_ints *out);

/* Converts obj into field f of args; memory that it needs ends with the scope. */
bool py_to_field(const proa_op *op, const proa_field *f, PyObject *obj, void *args);
/* Parses a default's text into the field; memory is owned by the caller's arena. */
bool py_default_field(const proa_op *op, const proa_field *f, void *args);

/* Adds one callable an op to the module. */
bool py_add_ops(PyObject *module);
extern PyMethodDef py_tensor_functions[];  /* from_numpy, … */
extern PyMethodDef py_program_functions[]; /* capture, load, save */
extern PyTypeObject py_program_type;

#endif
