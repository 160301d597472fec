/* A minimal CPython extension: bare_call.add(x, y) adds two floats. The cost of calling it from Python is
 * the lower bound for every call into C. Uses the CPython API only. */
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
