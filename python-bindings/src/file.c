/* _core.FileWriter: the atomic file writer (proa_writer) as a Python object with write, commit and abort; a
 * with block commits, or aborts if it raises. Uses ext.h. */
#include "ext.h"

#include <errno.h>
#include <proa/io.h>

enum { LONG_WRITE = 1 << 16 }; /* bytes from which a write releases the GIL */

typedef struct py_writer {
    PyObject_HEAD proa_writer *writer; /* NULL: committed or aborted */
    PyObject *path;
    bool busy; /* a call of another thread is inside the writer */
} py_writer;

/* Raises the Proa error as an OSError with its errno, for which Python chooses the subclass (PermissionError,
 * …). */
static PyObject *raise_io(int number, PyObject *path)
{
    if (proa_error() != PROA_ERR_IO || !number) return py_raise();
    PyObject *value = Py_BuildValue("(isO)", number, proa_error_message(), path);
    proa_clear_error();
    if (value) PyErr_SetObject(PyExc_OSError, value);
    Py_XDECREF(value);
    return NULL;
}

PyObject *py_with_path(PyObject *path, proa_status (*call)(const char *path, void *context), void *context)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    proa_status status = call(PyBytes_AS_STRING(bytes), context);
    Py_DECREF(bytes);
    return py_none_or_raise(status);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", NULL};
    PyObject *path, *bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:FileWriter", names, &path)) return NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    py_writer *self = (py_writer *)type->tp_alloc(type, 0);
    if (self) {
        int number = 0;
        Py_BEGIN_ALLOW_THREADS;
        self->writer = proa_writer_open(PyBytes_AS_STRING(bytes));
        number = errno;
        Py_END_ALLOW_THREADS;
        self->path = Py_NewRef(path);
        if (!self->writer) {
            raise_io(number, path);
            Py_CLEAR(self);
        }
    }
    Py_DECREF(bytes);
    return (PyObject *)self;
}

static void writer_dealloc(PyObject *obj)
{
    py_writer *self = (py_writer *)obj;
    proa_writer_abort(self->writer);
    Py_XDECREF(self->path);
    Py_TYPE(obj)->tp_free(obj);
}

static bool is_usable(const py_writer *self)
{
    if (self->busy) PyErr_SetString(PyExc_RuntimeError, "FileWriter: another thread is using it");
    else if (!self->writer) PyErr_SetString(PyExc_ValueError, "FileWriter: it was committed or aborted");
    return self->writer && !self->busy;
}

static PyObject *writer_write(PyObject *obj, PyObject *data)
{
    py_writer *self = (py_writer *)obj;
    Py_buffer view;
    if (!is_usable(self) || PyObject_GetBuffer(data, &view, PyBUF_C_CONTIGUOUS) != 0) return NULL;
    Py_ssize_t bytes = view.len;
    proa_status status;
    int number = 0;
    if (bytes < LONG_WRITE) {
        status = proa_writer_put(self->writer, view.buf, (size_t)bytes);
        number = errno;
    } else {
        self->busy = true;
        Py_BEGIN_ALLOW_THREADS;
        status = proa_writer_put(self->writer, view.buf, (size_t)bytes);
        number = errno;
        Py_END_ALLOW_THREADS;
        self->busy = false;
    }
    PyBuffer_Release(&view);
    if (status != PROA_OK) {
        proa_writer_abort(self->writer);
        self->writer = NULL;
    }
    return status == PROA_OK ? PyLong_FromSsize_t(bytes) : raise_io(number, self->path);
}

static PyObject *writer_commit(PyObject *obj, PyObject *unused)
{
    (void)unused;
    py_writer *self = (py_writer *)obj;
    if (!is_usable(self)) return NULL;
    proa_writer *writer = self->writer;
    proa_status status;
    int number;
    self->writer = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = proa_writer_commit(writer);
    number = errno;
    Py_END_ALLOW_THREADS;
    if (status == PROA_OK) Py_RETURN_NONE;
    return raise_io(number, self->path);
}

static PyObject *writer_abort(PyObject *obj, PyObject *unused)
{
    (void)unused;
    py_writer *self = (py_writer *)obj;
    if (self->writer && !is_usable(self)) return NULL;
    proa_writer_abort(self->writer);
    self->writer = NULL;
    Py_RETURN_NONE;
}

static PyObject *writer_enter(PyObject *obj, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(obj);
}

/* __exit__: commits, or aborts if the with block raised. */
static PyObject *writer_exit(PyObject *obj, PyObject *args)
{
    PyObject *kind, *value, *trace;
    if (!PyArg_ParseTuple(args, "OOO", &kind, &value, &trace)) return NULL;
    return Py_IsNone(kind) ? writer_commit(obj, NULL) : writer_abort(obj, NULL);
}

static PyMethodDef methods[] = {
    {"write", writer_write, METH_O, "Appends bytes."},
    {"commit", writer_commit, METH_NOARGS, "Makes the file appear: synced, then renamed."},
    {"abort", writer_abort, METH_NOARGS, "Leaves the old file as it is."},
    {"__enter__", writer_enter, METH_NOARGS, NULL},
    {"__exit__", writer_exit, METH_VARARGS, NULL},
    {0},
};

PyTypeObject py_writer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.FileWriter",
    .tp_basicsize = sizeof(py_writer),
    .tp_dealloc = writer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A file that appears whole or not at all: write, then commit or abort; a context manager.",
    .tp_methods = methods,
    .tp_new = writer_new,
};
