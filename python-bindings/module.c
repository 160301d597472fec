/* The module proa._core: ops, tensors, programs and the switches that tests need. Uses ext.h. */
#include "ext.h"

#include <proa/amp.h>

static PyObject *status(proa_status code)
{
    if (code != PROA_OK) return py_raise();
    Py_RETURN_NONE;
}

static PyObject *seed(PyObject *module, PyObject *arg)
{
    (void)module;
    unsigned long long s = PyLong_AsUnsignedLongLong(arg);
    if (PyErr_Occurred()) return NULL;
    proa_seed(s);
    Py_RETURN_NONE;
}

static PyObject *set_recording(PyObject *module, PyObject *arg)
{
    (void)module;
    return PyBool_FromLong(proa_set_recording(PyObject_IsTrue(arg) == 1));
}

static PyObject *set_flag(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name, *value;
    if (!PyArg_ParseTuple(args, "ss", &name, &value)) return NULL;
    return status(proa_set_flag(name, value));
}

static PyObject *set_threads(PyObject *module, PyObject *arg)
{
    (void)module;
    long n = PyLong_AsLong(arg);
    if (PyErr_Occurred()) return NULL;
    proa_set_threads((int)n);
    return status(proa_error());
}

static PyObject *live_bytes(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLongLong(proa_memory_get_stats().live_bytes);
}

static PyObject *build_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(proa_build_info());
}

/* grad(outputs, inputs, grads=None, retain_graph=False, create_graph=False, allow_unused=False) */
static PyObject *grad(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"outputs",      "inputs",       "grads", "retain_graph",
                            "create_graph", "allow_unused", NULL};
    PyObject *outputs, *inputs, *given = Py_None;
    int retain = 0, create = 0, unused = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|Oppp", names, &outputs, &inputs, &given, &retain,
                                     &create, &unused))
        return NULL;
    PROA_SCOPED;
    proa_tensors out, in, g = {0, NULL};
    if (!py_to_tensors(outputs, "outputs", false, &out) || !py_to_tensors(inputs, "inputs", false, &in))
        return NULL;
    if (given != Py_None && !py_to_tensors(given, "grads", true, &g)) return NULL;
    return py_from_tensors(
        proa_grad(out, in, g,
                  (proa_grad_opts){.retain_graph = retain, .create_graph = create, .allow_unused = unused}));
}

/* autocast(level, dtype, fn): calls fn() under autocast. */
static PyObject *autocast(PyObject *module, PyObject *args)
{
    (void)module;
    int level;
    PyObject *dtype_name, *fn;
    proa_dtype dtype;
    if (!PyArg_ParseTuple(args, "iOO", &level, &dtype_name, &fn) || !py_to_dtype(dtype_name, &dtype))
        return NULL;
    proa_autocast_state before =
        proa_autocast_enter((proa_amp_level)level, (proa_autocast_opts){.dtype = dtype});
    if (proa_error()) return py_raise();
    PyObject *result = PyObject_CallNoArgs(fn);
    proa_autocast_leave(&before);
    return result;
}

static PyMethodDef functions[] = {
    {"seed", seed, METH_O, "Seeds the random generator."},
    {"set_recording", set_recording, METH_O, "Switches recording; returns what it was."},
    {"set_flag", set_flag, METH_VARARGS, "Sets a FLAGS_ value."},
    {"set_threads", set_threads, METH_O, "Threads that kernels use."},
    {"live_bytes", live_bytes, METH_NOARGS, "Bytes handed out by the allocator."},
    {"build_info", build_info, METH_NOARGS, "What this build has."},
    {"grad", (PyCFunction)(void (*)(void))grad, METH_VARARGS | METH_KEYWORDS, "d(outputs)/d(inputs)."},
    {"autocast", autocast, METH_VARARGS, "Calls a function under autocast."},
    {0},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "proa._core", .m_doc = "Proa's core for Python.",
    .m_size = -1,          .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    if (PyType_Ready(&py_tensor_type) < 0 || PyType_Ready(&py_op_type) < 0 ||
        PyType_Ready(&py_program_type) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    Py_INCREF(&py_tensor_type);
    bool ok = PyModule_AddObject(module, "Tensor", (PyObject *)&py_tensor_type) == 0 &&
              PyModule_AddFunctions(module, py_tensor_functions) == 0 &&
              PyModule_AddFunctions(module, py_program_functions) == 0 && py_add_ops(module);
    if (!ok) Py_CLEAR(module);
    return module;
}
