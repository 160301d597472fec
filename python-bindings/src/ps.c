/* The parameter server for Python: servers, a worker's client, programs whose look-ups pull. Calls that wait
 * release the GIL. Uses ext.h. */
#include "ext.h"

#include "core/device.h"

#include <proa/ps.h>

static const char server_name[] = "proa.ps_server", client_name[] = "proa.ps_client";

/* Runs a call without the GIL. */
#define WITHOUT_GIL(status, call)                    \
    do {                                             \
        PyThreadState *state_ = PyEval_SaveThread(); \
        status = (call);                             \
        PyEval_RestoreThread(state_);                \
    } while (0)

/* ---- a server -------------------------------------------------------------------------- */

/* ps_serve(host, port, index, servers, workers) → (server, port), which lets clients in after
 * ps_server_open(server) */
static PyObject *ps_serve(PyObject *module, PyObject *args)
{
    (void)module;
    proa_ps_server_opts o = {.paused = true};
    if (!PyArg_ParseTuple(args, "siiii:ps_serve", &o.host, &o.port, &o.index, &o.servers, &o.workers))
        return NULL;
    proa_ps_server *s = proa_ps_serve_opt(o);
    if (!s) return py_raise();
    PyObject *capsule = PyCapsule_New(s, server_name, NULL);
    return capsule ? Py_BuildValue("Ni", capsule, proa_ps_server_port(s)) : NULL;
}

static PyObject *ps_server_open(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_ps_server *s = PyCapsule_GetPointer(capsule, server_name);
    if (!s) return NULL;
    proa_ps_server_open(s);
    Py_RETURN_NONE;
}

/* A table's options: (name, dense, width, rule, beta1, beta2, epsilon, entry, entry_value, start, a, b,
 * seed) */
static bool read_opts(PyObject *tuple, proa_ps_table_opts *o)
{
    int dense, rule, entry, start;
    long long width;
    unsigned long long seed;
    if (!PyArg_ParseTuple(tuple, "spLidddididdK", &o->name, &dense, &width, &rule, &o->beta1, &o->beta2,
                          &o->epsilon, &entry, &o->entry_value, &start, &o->start_a, &o->start_b, &seed))
        return false;
    o->dense = dense;
    o->width = width;
    o->rule = (proa_ps_rule)rule;
    o->entry = (proa_ps_entry)entry;
    o->start = (proa_ps_start)start;
    o->seed = seed;
    return true;
}

/* ps_server_table(server, table, options) */
static PyObject *ps_server_table(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *options;
    int table;
    proa_ps_table_opts o = {0};
    if (!PyArg_ParseTuple(args, "OiO!:ps_server_table", &capsule, &table, &PyTuple_Type, &options))
        return NULL;
    proa_ps_server *s = PyCapsule_GetPointer(capsule, server_name);
    if (!s || !read_opts(options, &o)) return NULL;
    return py_none_or_raise(proa_ps_server_table_opt(s, table, o));
}

/* ps_server_load(server, table, folder) */
static PyObject *ps_server_load(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    const char *folder;
    int table;
    if (!PyArg_ParseTuple(args, "Ois:ps_server_load", &capsule, &table, &folder)) return NULL;
    proa_ps_server *s = PyCapsule_GetPointer(capsule, server_name);
    if (!s) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_server_load(s, table, folder));
    return py_none_or_raise(status);
}

/* ps_server_wait(server, seconds) → whether a client has stopped it */
static PyObject *ps_server_wait(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od:ps_server_wait", &capsule, &seconds)) return NULL;
    proa_ps_server *s = PyCapsule_GetPointer(capsule, server_name);
    if (!s) return NULL;
    bool stopped;
    WITHOUT_GIL(stopped, proa_ps_server_wait(s, seconds));
    return PyBool_FromLong(stopped);
}

/* ps_server_end(server): the capsule is of no use any more */
static PyObject *ps_server_end(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_ps_server *s = PyCapsule_GetPointer(capsule, server_name);
    if (!s || PyCapsule_SetName(capsule, "ended") != 0) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_ps_server_free(s);
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* ---- a worker's client ----------------------------------------------------------------- */

/* ps_connect(servers, worker, workers, sync, timeout) → client; timeout 0: the environment's */
static PyObject *ps_connect(PyObject *module, PyObject *args)
{
    (void)module;
    proa_ps_client_opts o = {0};
    int sync;
    if (!PyArg_ParseTuple(args, "siipd:ps_connect", &o.servers, &o.worker, &o.workers, &sync, &o.timeout))
        return NULL;
    o.mode = sync ? PROA_PS_SYNC : PROA_PS_ASYNC;
    proa_ps_client *c;
    WITHOUT_GIL(c, proa_ps_connect_opt(o));
    return c ? PyCapsule_New(c, client_name, NULL) : py_raise();
}

/* ps_close(client): the capsule is of no use any more */
static PyObject *ps_close(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c || PyCapsule_SetName(capsule, "closed") != 0) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_ps_close(c);
    PyEval_RestoreThread(state);
    return py_none_or_raise(proa_error());
}

/* ps_table(client, table, options) */
static PyObject *ps_table(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *options;
    int table;
    proa_ps_table_opts o = {0};
    if (!PyArg_ParseTuple(args, "OiO!:ps_table", &capsule, &table, &PyTuple_Type, &options)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c || !read_opts(options, &o)) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_table_opt(c, table, o));
    return py_none_or_raise(status);
}

/* The elements of a contiguous tensor of this dtype on the host; NULL with a Python error. */
static void *elements(PyObject *obj, proa_dtype dtype, int64_t *n)
{
    static char nothing;
    if (!py_is_tensor(obj)) {
        PyErr_Format(PyExc_TypeError, "parameter server: expected a Tensor, got %s", Py_TYPE(obj)->tp_name);
        return NULL;
    }
    const proa_tensor *t = py_tensor_of(obj);
    if (t->dtype != dtype || proa_is_symbolic(t) || !proa_is_contiguous(t) || proa__on_device(t)) {
        PyErr_Format(PyExc_ValueError, "parameter server: expected a contiguous %s tensor on the CPU",
                     proa_dtype_name(dtype));
        return NULL;
    }
    *n = t->numel;
    void *data = *n ? proa_data(t) : &nothing;
    return data ? data : py_raise();
}

/* ids, and as many rows of `width` values */
static bool ids_and_rows(PyObject *ids, PyObject *rows, const int64_t **i, const float **r, int64_t *n)
{
    int64_t values;
    *i = elements(ids, PROA_I64, n);
    *r = *i ? elements(rows, PROA_F32, &values) : NULL;
    if (!*r) return false;
    if (*n == 0 ? values == 0 : values % *n == 0) return true;
    PyErr_Format(PyExc_ValueError, "parameter server: %lld values for %lld ids", (long long)values,
                 (long long)*n);
    return false;
}

/* ps_pull(client, table, ids, width, test) → rows [n, width] */
static PyObject *ps_pull(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule, *ids;
    int table, test;
    long long width;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OiOLp:ps_pull", &capsule, &table, &ids, &width, &test)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    const int64_t *at = c ? elements(ids, PROA_I64, &n) : NULL;
    if (!at) return NULL;
    proa_tensor *out = proa_empty(PROA_INTS(n, width), PROA_F32);
    if (!out) return py_raise();
    proa_status status;
    WITHOUT_GIL(status, proa_ps_pull(c, table, at, n, test, (float *)(void *)out->data));
    return status == PROA_OK ? py_wrap(out) : py_raise();
}

/* ps_push(client, table, ids, gradients, lr), and ps_set(client, table, ids, values) */
static PyObject *ps_push(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule, *ids, *rows;
    int table;
    double lr;
    const int64_t *i;
    const float *r;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OiOOd:ps_push", &capsule, &table, &ids, &rows, &lr)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c || !ids_and_rows(ids, rows, &i, &r, &n)) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_push(c, table, i, r, n, lr));
    return py_none_or_raise(status);
}

static PyObject *ps_set(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule, *ids, *rows;
    int table;
    const int64_t *i;
    const float *r;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OiOO:ps_set", &capsule, &table, &ids, &rows)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c || !ids_and_rows(ids, rows, &i, &r, &n)) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_set(c, table, i, r, n));
    return py_none_or_raise(status);
}

/* ps_pull_changed(client, table, width) → (ids, rows) */
static PyObject *ps_pull_changed(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule;
    int table;
    long long width;
    int64_t *ids, n;
    float *values;
    if (!PyArg_ParseTuple(args, "OiL:ps_pull_changed", &capsule, &table, &width)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_pull_changed(c, table, &ids, &values, &n));
    if (status != PROA_OK) return py_raise();
    proa_tensor *i = proa_from_data(ids, PROA_INTS(n), PROA_I64);
    proa_tensor *v = proa_from_data(values, PROA_INTS(n, width), PROA_F32);
    proa_ps_free(ids);
    proa_ps_free(values);
    return i && v ? Py_BuildValue("NN", py_wrap(i), py_wrap(v)) : py_raise();
}

/* ps_pull_dense(client, table, width) → values */
static PyObject *ps_pull_dense(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule;
    int table;
    long long width;
    if (!PyArg_ParseTuple(args, "OiL:ps_pull_dense", &capsule, &table, &width)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_tensor *out = proa_empty(PROA_INTS(width), PROA_F32);
    if (!out) return py_raise();
    proa_status status;
    WITHOUT_GIL(status, proa_ps_pull_dense(c, table, (float *)(void *)out->data));
    return status == PROA_OK ? py_wrap(out) : py_raise();
}

/* ps_push_dense(client, table, gradient, lr); ps_set_dense(client, table, values) */
static PyObject *ps_push_dense(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule, *values;
    int table;
    double lr;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OiOd:ps_push_dense", &capsule, &table, &values, &lr)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    const float *at = c ? elements(values, PROA_F32, &n) : NULL;
    if (!at) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_push_dense(c, table, at, lr));
    return py_none_or_raise(status);
}

static PyObject *ps_set_dense(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *capsule, *values;
    int table;
    int64_t n;
    if (!PyArg_ParseTuple(args, "OiO:ps_set_dense", &capsule, &table, &values)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    const float *at = c ? elements(values, PROA_F32, &n) : NULL;
    if (!at) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_set_dense(c, table, at));
    return py_none_or_raise(status);
}

static PyObject *ps_barrier(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_barrier(c));
    return py_none_or_raise(status);
}

/* ps_save(client, table, folder, mode); ps_load(client, table, folder) */
static PyObject *ps_save(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    const char *folder;
    int table, mode;
    if (!PyArg_ParseTuple(args, "Oisi:ps_save", &capsule, &table, &folder, &mode)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_save(c, table, folder, (proa_ps_save_mode)mode));
    return py_none_or_raise(status);
}

static PyObject *ps_load(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    const char *folder;
    int table;
    if (!PyArg_ParseTuple(args, "Ois:ps_load", &capsule, &table, &folder)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_load(c, table, folder));
    return py_none_or_raise(status);
}

/* ps_shrink(client, table, threshold) */
static PyObject *ps_shrink(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    int table, threshold;
    if (!PyArg_ParseTuple(args, "Oii:ps_shrink", &capsule, &table, &threshold)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_shrink(c, table, threshold));
    return py_none_or_raise(status);
}

/* ps_rows(client, table) → how many rows the servers have */
static PyObject *ps_rows(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    int table;
    int64_t rows;
    if (!PyArg_ParseTuple(args, "Oi:ps_rows", &capsule, &table)) return NULL;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_rows(c, table, &rows));
    return status == PROA_OK ? PyLong_FromLongLong(rows) : py_raise();
}

static PyObject *ps_stop_servers(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_ps_client *c = PyCapsule_GetPointer(capsule, client_name);
    if (!c) return NULL;
    proa_status status;
    WITHOUT_GIL(status, proa_ps_stop_servers(c));
    return py_none_or_raise(status);
}

/* pull_rows(program, weights, tables, test) → how many look-ups pull now */
static PyObject *pull_rows(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *program, *list, *numbers;
    int test;
    int64_t replaced;
    proa_tensors weights;
    proa_ints tables;
    if (!PyArg_ParseTuple(args, "O!OOp:pull_rows", &py_program_type, &program, &list, &numbers, &test))
        return NULL;
    if (!py_to_tensors(list, "weights", false, &weights) || !py_to_ints(numbers, "tables", &tables))
        return NULL;
    if (proa_program_pull_rows(py_program_of(program), weights, tables, test, &replaced) != PROA_OK)
        return py_raise();
    return PyLong_FromLongLong(replaced);
}

PyMethodDef py_ps_functions[] = {
    {"ps_serve", ps_serve, METH_VARARGS, "Serves tables; (server, port)."},
    {"ps_server_open", ps_server_open, METH_O, "Lets clients in."},
    {"ps_server_table", ps_server_table, METH_VARARGS, "Makes a table."},
    {"ps_server_load", ps_server_load, METH_VARARGS, "Reads a table's rows from files."},
    {"ps_server_wait", ps_server_wait, METH_VARARGS, "Whether a client has stopped the server."},
    {"ps_server_end", ps_server_end, METH_O, "Ends a server."},
    {"ps_connect", ps_connect, METH_VARARGS, "Connects to servers."},
    {"ps_close", ps_close, METH_O, "Leaves them."},
    {"ps_table", ps_table, METH_VARARGS, "Makes a table on all servers."},
    {"ps_pull", ps_pull, METH_VARARGS, "Rows of ids."},
    {"ps_push", ps_push, METH_VARARGS, "Sends gradients of rows."},
    {"ps_set", ps_set, METH_VARARGS, "Sets rows."},
    {"ps_pull_changed", ps_pull_changed, METH_VARARGS, "(ids, rows) that other workers changed."},
    {"ps_pull_dense", ps_pull_dense, METH_VARARGS, "A dense table's values."},
    {"ps_push_dense", ps_push_dense, METH_VARARGS, "Sends their gradient."},
    {"ps_set_dense", ps_set_dense, METH_VARARGS, "Sets them."},
    {"ps_barrier", ps_barrier, METH_O, "Waits for all workers."},
    {"ps_save", ps_save, METH_VARARGS, "Servers write a table's rows."},
    {"ps_load", ps_load, METH_VARARGS, "Servers read a table's rows."},
    {"ps_shrink", ps_shrink, METH_VARARGS, "Drops rows that nobody read for some days."},
    {"ps_rows", ps_rows, METH_VARARGS, "The number of rows."},
    {"ps_stop_servers", ps_stop_servers, METH_O, "Ends the servers."},
    {"pull_rows", pull_rows, METH_VARARGS, "Puts pulls in place of a program's look-ups."},
    {0},
};
