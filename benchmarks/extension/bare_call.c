/* A CPython extension that does nothing: bare_call.add(x, y) adds two floats. What a call of it costs from
 * Python is the floor of every call into C. Python's C interface only. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *add(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 2 || !PyFloat_Check(args[0]) || !PyFloat_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "add: takes two floats");
        return NULL;
    }
    return PyFloat_FromDouble(PyFloat_AS_DOUBLE(args[0]) + PyFloat_AS_DOUBLE(args[1]));
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL, "add(x, y): their sum"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "bare_call", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bare_call(void) { return PyModule_Create(&module); }
