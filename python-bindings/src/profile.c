/* Functions for paddle.profiler: start and stop recording, mark user ranges, and return rows, the text table
 * and the trace. Uses ext.h. */
#include "ext.h"

#include <proa/profile.h>

static PyObject *start(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return py_none_or_raise(proa_profile_start());
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return py_none_or_raise(proa_profile_stop());
}

static PyObject *begin(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLongLong(proa_profile_begin());
}

static PyObject *end(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    long long began;
    if (!PyArg_ParseTuple(args, "sL", &name, &began)) return NULL;
    return py_none_or_raise(proa_profile_end(name, began));
}

static PyObject *rows(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int64_t n = proa_profile_rows(NULL, 0);
    proa_profile_row *at = PyMem_Calloc((size_t)n + 1, sizeof *at);
    if (!at) return PyErr_NoMemory();
    PyObject *list = PyList_New(0);
    int64_t known = proa_profile_rows(at, n);
    for (int64_t i = 0; list && i < (known < n ? known : n); i++) {
        const proa_profile_row *r = &at[i];
        PyObject *row = Py_BuildValue("(sNLddddddz)", r->name, PyBool_FromLong(r->is_op), (long long)r->count,
                                      r->total, r->self, r->least, r->most, r->flops, r->bytes, r->kernel);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    PyMem_Free(at);
    return list;
}

static PyObject *text(PyObject *module, PyObject *args)
{
    (void)module;
    int order;
    const char *unit;
    if (!PyArg_ParseTuple(args, "is", &order, &unit)) return NULL;
    char *buffer = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&buffer, &bytes);
    if (!to) return PyErr_NoMemory();
    proa_status status = proa_profile_print(to, (proa_profile_order)order, unit);
    PyObject *result = NULL;
    if (fclose(to) != 0) PyErr_NoMemory();
    else result = status == PROA_OK ? PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)bytes, "replace") : py_raise();
    free(buffer);
    return result;
}

static proa_status write_to(const char *path, void *unused)
{
    (void)unused;
    return proa_profile_write_trace(path);
}

static PyObject *write_trace(PyObject *module, PyObject *arg)
{
    (void)module;
    return py_with_path(arg, write_to, NULL);
}

PyMethodDef py_profile_functions[] = {
    {"profile_start", start, METH_NOARGS, "Records every op call from now on."},
    {"profile_stop", stop, METH_NOARGS, "Ends recording."},
    {"profile_begin", begin, METH_NOARGS, "What profile_end takes; 0 while nothing is recorded."},
    {"profile_end", end, METH_VARARGS, "profile_end(name, began): a stretch of the user's"},
    {"profile_rows", rows, METH_NOARGS,
     "[(name, is_op, count, total, self, least, most, flops, bytes, kernel)]; times in seconds"},
    {"profile_text", text, METH_VARARGS, "profile_text(order, unit) -> the table"},
    {"profile_write_trace", write_trace, METH_O, "Writes Chrome's trace format."},
    {0},
};
