/* Initializes the module proa._core with the types and functions of the other files, and defines functions
 * for flags, the random state, the default dtype, threads and memory. Uses ext.h. */
#include "ext.h"

static PyObject *seed(PyObject *module, PyObject *arg)
{
    (void)module;
    unsigned long long s = PyLong_AsUnsignedLongLong(arg);
    if (PyErr_Occurred()) return NULL;
    proa_seed(s);
    Py_RETURN_NONE;
}

static PyObject *set_flag(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name, *value;
    if (!PyArg_ParseTuple(args, "ss", &name, &value)) return NULL;
    return py_none_or_raise(proa_set_flag(name, value));
}

static PyObject *set_threads(PyObject *module, PyObject *arg)
{
    (void)module;
    long n = PyLong_AsLong(arg);
    if (PyErr_Occurred()) return NULL;
    proa_set_threads((int)n);
    return py_none_or_raise(proa_error());
}

static PyObject *live_bytes(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLongLong(proa_memory_get_stats().live_bytes);
}

/* peak_bytes(reset): the most bytes since the last reset; `reset` begins again at live_bytes. */
static PyObject *peak_bytes(PyObject *module, PyObject *reset)
{
    (void)module;
    int again = PyObject_IsTrue(reset);
    if (again < 0) return NULL;
    long long peak = proa_memory_get_stats().peak_bytes;
    if (again) proa_memory_reset_peak();
    return PyLong_FromLongLong(peak);
}

/* set_memory_cap(bytes): limits the memory allocated at one time; 0: no limit. */
static PyObject *set_memory_cap(PyObject *module, PyObject *arg)
{
    (void)module;
    long long bytes = PyLong_AsLongLong(arg);
    if (bytes == -1 && PyErr_Occurred()) return NULL;
    proa_memory_set_cap(bytes);
    Py_RETURN_NONE;
}

static PyObject *build_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(proa_build_info());
}

/* get_default_dtype(): the dtype of floating results when none is given. */
static PyObject *get_default_dtype(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_NewRef(py_dtype_text(proa_default_dtype()));
}

static PyObject *set_default_dtype(PyObject *module, PyObject *obj)
{
    (void)module;
    proa_dtype dtype;
    if (!py_to_dtype(obj, &dtype)) return NULL;
    if (dtype < PROA_F16 || dtype > PROA_F64)
        return PyErr_Format(PyExc_TypeError, "set_default_dtype: expected a floating dtype, got %R", obj);
    proa_set_default_dtype(dtype);
    Py_RETURN_NONE;
}

static PyObject *get_rng_state(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    proa_rng_state state = proa_rng_get();
    return Py_BuildValue("KK", (unsigned long long)state.seed, (unsigned long long)state.offset);
}

static PyObject *set_rng_state(PyObject *module, PyObject *state)
{
    (void)module;
    unsigned long long seed_value, offset;
    if (!PyTuple_Check(state) || !PyArg_ParseTuple(state, "KK", &seed_value, &offset)) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "set_rng_state: expected what get_rng_state returned");
    }
    proa_rng_set((proa_rng_state){seed_value, offset});
    Py_RETURN_NONE;
}

static PyObject *get_flag(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *name = PyUnicode_Check(arg) ? PyUnicode_AsUTF8(arg) : NULL;
    if (!name) return PyErr_Format(PyExc_TypeError, "get_flag: expected a name");
    const char *value = proa_get_flag(name);
    return value ? PyUnicode_FromString(value) : py_raise();
}

static PyObject *get_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(proa_threads());
}

static PyObject *threads_info(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    proa_thread_stats s = proa_threads_info();
    return Py_BuildValue("{s:i,s:s,s:i,s:L,s:L,s:L,s:O}", "threads", s.threads, "reason", s.reason, "workers",
                         s.workers, "worker_sleeps", (long long)s.worker_sleeps, "caller_sleeps",
                         (long long)s.caller_sleeps, "stolen", (long long)s.stolen, "contended",
                         s.contended ? Py_True : Py_False);
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(proa_version());
}

static PyMethodDef functions[] = {
    {"seed", seed, METH_O, "Seeds the random generator."},
    {"set_flag", set_flag, METH_VARARGS, "Sets a FLAGS_ value."},
    {"set_threads", set_threads, METH_O, "Threads that kernels use."},
    {"live_bytes", live_bytes, METH_NOARGS, "Bytes handed out by the allocator."},
    {"peak_bytes", peak_bytes, METH_O, "The most bytes handed out since the last reset; true resets."},
    {"set_memory_cap", set_memory_cap, METH_O, "Live bytes allowed; more is a MemoryError. 0: no cap."},
    {"build_info", build_info, METH_NOARGS, "What this build has."},
    {"get_flag", get_flag, METH_O, "The value of a FLAGS_ setting."},
    {"get_threads", get_threads, METH_NOARGS, "Threads that kernels use."},
    {"threads_info", threads_info, METH_NOARGS, "How many threads there are, why, and how often they slept."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "Name of the dtype of results that name none."},
    {"set_default_dtype", set_default_dtype, METH_O, "Sets it: float16, bfloat16, float32 or float64."},
    {"get_rng_state", get_rng_state, METH_NOARGS, "The random generator's state: (seed, offset)."},
    {"set_rng_state", set_rng_state, METH_O, "Puts the random generator back to a state."},
    {"version", version, METH_NOARGS, "The library's version."},
    {0},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "proa._core", .m_doc = "Proa's core for Python.",
    .m_size = -1,          .m_methods = functions,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    if (!py_ready_ops() || !py_ready_asks() || PyType_Ready(&py_program_type) < 0 ||
        PyType_Ready(&py_executor_type) < 0 || PyType_Ready(&py_compiled_type) < 0 ||
        PyType_Ready(&py_writer_type) < 0 || PyType_Ready(&py_config_type) < 0 ||
        PyType_Ready(&py_predictor_type) < 0 || PyType_Ready(&py_handle_type) < 0 ||
        PyType_Ready(&py_cipher_type) < 0 || !py_ready_graph())
        return NULL;
    PyObject *module = PyModule_Create(&module_def);
    if (!module) return NULL;
    PyMethodDef *const lists[] = {
        py_op_functions,        py_asks_functions,    py_array_functions,       py_autograd_functions,
        py_program_functions,   py_execute_functions, py_describe_functions,    py_append_functions,
        py_extension_functions, py_crash_functions,   py_rows_functions,        py_host_functions,
        py_device_functions,    py_profile_functions, py_inference_functions,   py_dist_functions,
        py_ps_functions,        py_plan_functions,    py_dist_tensor_functions, py_unpickle_functions,
        py_cipher_functions,    py_share_functions,   py_inspect_functions};
    bool ok = py_add_dtypes(module) && py_add_places(module) && py_make_tensor_type(module) &&
              py_add_dims(module) && py_add_ops(module) && py_add_layer(module);
    for (size_t i = 0; ok && i < sizeof lists / sizeof *lists; i++)
        ok = PyModule_AddFunctions(module, lists[i]) == 0;
    PyTypeObject *const types[] = {&py_program_type, &py_executor_type,  &py_compiled_type, &py_writer_type,
                                   &py_config_type,  &py_predictor_type, &py_handle_type,   &py_cipher_type};
    for (size_t i = 0; ok && i < sizeof types / sizeof *types; i++)
        ok = PyModule_AddType(module, types[i]) == 0;
    if (!ok) Py_CLEAR(module);
    else py_crash_report_start();
    return module;
}
