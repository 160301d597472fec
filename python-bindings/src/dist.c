/* Distributed training for Python: joining a job, process groups, collectives, the gradient reducer, and
 * sharded parameters. Calls that wait for other ranks release the GIL. Uses ext.h. */
#include "ext.h"

#include <proa/dist.h>

static const char group_name[] = "proa.group", task_name[] = "proa.task", reducer_name[] = "proa.reducer",
                  shard_name[] = "proa.shard";

/* ---- joining --------------------------------------------------------------------------- */

/* dist_start(store, job, rank, size, timeout, interface): joins the job as a rank; returns when all ranks
 * have joined. size 0: rank and size from the environment. timeout: seconds */
static PyObject *dist_start(PyObject *module, PyObject *args)
{
    (void)module;
    proa_dist_opts opts = {0};
    if (!PyArg_ParseTuple(args, "zziidz:dist_start", &opts.store, &opts.job, &opts.rank, &opts.size,
                          &opts.timeout, &opts.interface))
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_status status = proa_dist_start_opt(opts);
    PyEval_RestoreThread(state);
    return py_none_or_raise(status);
}

static PyObject *dist_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyThreadState *state = PyEval_SaveThread();
    proa_dist_stop();
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* dist_place() → (global rank, number of ranks of the job) */
static PyObject *dist_place(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("ii", proa_dist_rank(), proa_dist_size());
}

static PyObject *store_serve(PyObject *module, PyObject *args)
{
    (void)module;
    const char *host, *token;
    int port;
    if (!PyArg_ParseTuple(args, "sis:store_serve", &host, &port, &token)) return NULL;
    int got = proa_store_serve(host, port, token);
    return got < 0 ? py_raise() : PyLong_FromLong(got);
}

static PyObject *store_stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyThreadState *state = PyEval_SaveThread();
    proa_store_stop();
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* ---- groups ---------------------------------------------------------------------------- */

/* A group as a tuple (handle, id, this process's rank in the group, engine's name) */
static PyObject *describe_group(proa_group *g)
{
    if (!g) return py_raise();
    PyObject *handle = PyCapsule_New(g, group_name, NULL);
    if (!handle) return NULL;
    return Py_BuildValue("Niis", handle, proa_group_id(g), proa_group_rank(g), proa_group_backend(g));
}

static PyObject *world_group(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return describe_group(proa_world_group());
}

static PyObject *new_group(PyObject *module, PyObject *list)
{
    (void)module;
    PROA_SCOPED;
    proa_ints ranks;
    if (!py_to_ints(list, "ranks", &ranks)) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_group *g = proa_new_group(ranks);
    PyEval_RestoreThread(state);
    return describe_group(g);
}

static PyObject *group_end(PyObject *module, PyObject *handle)
{
    (void)module;
    proa_group *g = PyCapsule_GetPointer(handle, group_name);
    if (!g) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_group_end(g);
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* average_gradients(program, gradients, group, bucket_bytes, owners=None): adds all-reduces of gradients to a
 * program; owners, one rank of the group a gradient: reductions to these ranks instead. */
static PyObject *average_gradients(PyObject *module, PyObject *args)
{
    (void)module;
    PROA_SCOPED;
    PyObject *program, *list, *handle, *ranks = Py_None;
    Py_ssize_t bytes;
    proa_tensors grads;
    proa_ints owners;
    if (!PyArg_ParseTuple(args, "O!OOn|O:average_gradients", &py_program_type, &program, &list, &handle,
                          &bytes, &ranks))
        return NULL;
    const proa_group *g = PyCapsule_GetPointer(handle, group_name);
    if (!g || !py_to_tensors(list, "gradients", false, &grads)) return NULL;
    proa_program *p = py_program_of(program);
    if (ranks == Py_None) return py_none_or_raise(proa_program_average_gradients(p, grads, g, bytes));
    if (!py_to_ints(ranks, "owners", &owners)) return NULL;
    return py_none_or_raise(proa_program_reduce_gradients(p, grads, owners, g, bytes));
}

/* ---- messages -------------------------------------------------------------------------- */

static void free_task(PyObject *capsule) { proa_task_free(PyCapsule_GetPointer(capsule, task_name)); }

static bool optional_tensor(PyObject *obj, const char *what, proa_tensor **t)
{
    *t = NULL;
    if (obj == Py_None) return true;
    if (!py_is_tensor(obj)) {
        PyErr_Format(PyExc_TypeError, "communicate: %s must be a Tensor, got %s", what,
                     Py_TYPE(obj)->tp_name);
        return false;
    }
    *t = py_tensor_of(obj);
    return true;
}

static bool optional_counts(PyObject *obj, const char *what, int size, const int64_t **counts)
{
    proa_ints list;
    *counts = NULL;
    if (obj == Py_None) return true;
    if (!py_to_ints(obj, what, &list)) return false;
    if (list.count != size) {
        PyErr_Format(PyExc_ValueError, "communicate: %s has %lld numbers for %d ranks", what,
                     (long long)list.count, size);
        return false;
    }
    *counts = list.at;
    return true;
}

/* communicate(kind, group, in, out, op, peer, in_counts, out_counts, later): runs a collective or message of
 * proa_message_kind and waits. Returns None; with `later`, at once, a task for task_wait. */
static PyObject *communicate(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *handle, *in, *out, *in_counts, *out_counts;
    int kind, op, later;
    proa_message m = {0};
    if (!PyArg_ParseTuple(args, "iOOOiiOOp:communicate", &kind, &handle, &in, &out, &op, &m.peer, &in_counts,
                          &out_counts, &later))
        return NULL;
    PROA_SCOPED;
    m.kind = (proa_message_kind)kind;
    m.op = (proa_reduce_type)op;
    m.group = PyCapsule_GetPointer(handle, group_name);
    if (!m.group || !optional_tensor(in, "in", &m.in) || !optional_tensor(out, "out", &m.out)) return NULL;
    int size = proa_group_size(m.group);
    if (!optional_counts(in_counts, "in_split_sizes", size, &m.in_counts) ||
        !optional_counts(out_counts, "out_split_sizes", size, &m.out_counts))
        return NULL;
    if (later) {
        proa_task *t = proa_communicate_later(&m);
        return t ? PyCapsule_New(t, task_name, free_task) : py_raise();
    }
    PyThreadState *state = PyEval_SaveThread();
    proa_status status = proa_communicate(&m);
    PyEval_RestoreThread(state);
    return py_none_or_raise(status);
}

static PyObject *task_wait(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_task *t = PyCapsule_GetPointer(capsule, task_name);
    if (!t) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_status status = proa_task_wait(t);
    PyEval_RestoreThread(state);
    return py_none_or_raise(status);
}

static PyObject *task_done(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_task *t = PyCapsule_GetPointer(capsule, task_name);
    return t ? PyBool_FromLong(proa_task_done(t)) : NULL;
}

/* ---- the reducer ----------------------------------------------------------------------- */

static void free_reducer(PyObject *capsule)
{
    proa_reducer *r = PyCapsule_GetPointer(capsule, reducer_name);
    PyThreadState *state = PyEval_SaveThread();
    proa_reducer_free(r);
    PyEval_RestoreThread(state);
}

/* reducer_new(parameters, group, bucket_bytes, last_bucket_bytes, sparse) → a capsule that averages the
 * gradients in backward until it is freed. sparse: one bool a parameter, true for SelectedRows gradients */
static PyObject *reducer_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *list, *handle, *sparse;
    long long most, last;
    if (!PyArg_ParseTuple(args, "OOLLO:reducer_new", &list, &handle, &most, &last, &sparse)) return NULL;
    PROA_SCOPED;
    proa_tensors parameters;
    proa_ints flags;
    proa_group *g = PyCapsule_GetPointer(handle, group_name);
    if (!g || !py_to_tensors(list, "parameters", false, &parameters) || !py_to_ints(sparse, "sparse", &flags))
        return NULL;
    proa_reducer *r = proa_reducer_new(parameters, .group = g, .bucket_bytes = most,
                                       .last_bucket_bytes = last, .sparse = flags);
    return r ? PyCapsule_New(r, reducer_name, free_reducer) : py_raise();
}

/* reducer_sync(reducer, on): sets whether backward exchanges gradients */
static PyObject *reducer_sync(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule;
    int on;
    if (!PyArg_ParseTuple(args, "Op:reducer_sync", &capsule, &on)) return NULL;
    proa_reducer *r = PyCapsule_GetPointer(capsule, reducer_name);
    if (!r) return NULL;
    proa_reducer_set_sync(r, on);
    Py_RETURN_NONE;
}

/* ---- divided parameters ------------------------------------------------------------------ */

static void free_shard(PyObject *capsule) { proa_shard_free(PyCapsule_GetPointer(capsule, shard_name)); }

/* shard_new(parameter, group) → (capsule of the shard, this rank's slice as a Tensor) */
static PyObject *shard_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *parameter, *handle;
    if (!PyArg_ParseTuple(args, "O!O:shard_new", py_tensor_type, &parameter, &handle)) return NULL;
    proa_group *g = PyCapsule_GetPointer(handle, group_name);
    if (!g) return NULL;
    proa_shard *s = proa_shard_new(py_tensor_of(parameter), g);
    if (!s) return py_raise();
    PyObject *capsule = PyCapsule_New(s, shard_name, free_shard);
    if (!capsule) {
        proa_shard_free(s);
        return NULL;
    }
    PyObject *slice = py_wrap(proa_shard_slice(s));
    return slice ? Py_BuildValue("NN", capsule, slice) : (Py_DECREF(capsule), NULL);
}

/* shard_release(shard) → whether the memory of the whole parameter is freed */
static PyObject *shard_release(PyObject *module, PyObject *capsule)
{
    (void)module;
    bool gone = false;
    proa_shard *s = PyCapsule_GetPointer(capsule, shard_name);
    if (!s) return NULL;
    return proa_shard_release(s, &gone) == PROA_OK ? PyBool_FromLong(gone) : py_raise();
}

static PyObject *shard_update(PyObject *module, PyObject *capsule)
{
    (void)module;
    proa_shard *s = PyCapsule_GetPointer(capsule, shard_name);
    if (!s) return NULL;
    PyThreadState *state = PyEval_SaveThread();
    proa_status status = proa_shard_update(s);
    PyEval_RestoreThread(state);
    return py_none_or_raise(status);
}

PyMethodDef py_dist_functions[] = {
    {"dist_start", dist_start, METH_VARARGS, "Joins a job."},
    {"dist_stop", dist_stop, METH_NOARGS, "Leaves it."},
    {"dist_place", dist_place, METH_NOARGS, "(rank, size) of the world."},
    {"store_serve", store_serve, METH_VARARGS, "Serves a store; returns its port."},
    {"store_stop", store_stop, METH_NOARGS, "Ends it."},
    {"world_group", world_group, METH_NOARGS, "(handle, id, rank, engine) of the world."},
    {"new_group", new_group, METH_O, "The same of a new group of these ranks."},
    {"group_end", group_end, METH_O, "Ends a group."},
    {"average_gradients", average_gradients, METH_VARARGS,
     "average_gradients(program, gradients, group, bucket_bytes, owners=None): where ops make them."},
    {"communicate", communicate, METH_VARARGS, "One call of a group."},
    {"task_wait", task_wait, METH_O, "Waits for a task."},
    {"task_done", task_done, METH_O, "Whether it is done."},
    {"reducer_new", reducer_new, METH_VARARGS, "Averages gradients over ranks from now on."},
    {"reducer_sync", reducer_sync, METH_VARARGS, "Whether backward does so."},
    {"shard_new", shard_new, METH_VARARGS, "(shard, slice) of a parameter that is divided from now on."},
    {"shard_release", shard_release, METH_O, "Frees the whole parameter; whether it is freed."},
    {"shard_update", shard_update, METH_O, "Gives the whole parameter its slices' values."},
    {0},
};
