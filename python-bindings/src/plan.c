/* Schedules of pipelines and the simulator of jobs for Python: structs of proa/plan.h as dicts of their
 * fields. Uses ext.h. */
#include "ext.h"

#include <proa/plan.h>

#include <stddef.h>

/* ---- structs as dicts ---------------------------------------------------------------------- */

typedef enum field_kind { INT, REAL, BOOL, ENUM } field_kind;
typedef struct field {
    const char *name;
    field_kind kind;
    size_t at;
} field;
#define F(type, name, kind)               \
    {                                     \
#name, kind, offsetof(type, name) \
    }

static const field model_fields[] = {F(proa_plan_model, layers, INT),
                                     F(proa_plan_model, hidden, INT),
                                     F(proa_plan_model, heads, INT),
                                     F(proa_plan_model, vocabulary, INT),
                                     F(proa_plan_model, sequence, INT),
                                     F(proa_plan_model, fused_attention, BOOL),
                                     {0}};
static const field job_fields[] = {
    F(proa_plan_job, data, INT),          F(proa_plan_job, pipe, INT),
    F(proa_plan_job, sharding, INT),      F(proa_plan_job, model, INT),
    F(proa_plan_job, stage, INT),         F(proa_plan_job, micro_batch, INT),
    F(proa_plan_job, micro_batches, INT), F(proa_plan_job, chunks, INT),
    F(proa_plan_job, schedule, ENUM),     F(proa_plan_job, precision, ENUM),
    F(proa_plan_job, recompute, BOOL),    F(proa_plan_job, sequence_parallel, BOOL),
    F(proa_plan_job, moments, INT),       {0}};
static const field machine_fields[] = {
    F(proa_plan_machine, flops, REAL),      F(proa_plan_machine, memory_bandwidth, REAL),
    F(proa_plan_machine, link, REAL),       F(proa_plan_machine, latency, REAL),
    F(proa_plan_machine, local_link, REAL), F(proa_plan_machine, local_latency, REAL),
    F(proa_plan_machine, host_ranks, INT),  F(proa_plan_machine, host_cores, INT),
    F(proa_plan_machine, memory, REAL),     {0}};
static const field search_fields[] = {
    F(proa_plan_search, ranks, INT),         F(proa_plan_search, batch, INT),
    F(proa_plan_search, max_pipe, INT),      F(proa_plan_search, max_sharding, INT),
    F(proa_plan_search, max_model, INT),     F(proa_plan_search, max_micro_batch, INT),
    F(proa_plan_search, precision, ENUM),    F(proa_plan_search, moments, INT),
    F(proa_plan_search, no_recompute, BOOL), {0}};
static const field result_fields[] = {F(proa_plan_result, step, REAL),
                                      F(proa_plan_result, pipeline, REAL),
                                      F(proa_plan_result, exchange, REAL),
                                      F(proa_plan_result, update, REAL),
                                      F(proa_plan_result, bubble, REAL),
                                      F(proa_plan_result, exposed, REAL),
                                      F(proa_plan_result, sent, REAL),
                                      F(proa_plan_result, model_flops, REAL),
                                      F(proa_plan_result, weights, REAL),
                                      F(proa_plan_result, gradients, REAL),
                                      F(proa_plan_result, states, REAL),
                                      F(proa_plan_result, activations, REAL),
                                      F(proa_plan_result, temporaries, REAL),
                                      F(proa_plan_result, rounding, REAL),
                                      F(proa_plan_result, memory, REAL),
                                      F(proa_plan_result, memory_stage, INT),
                                      {0}};
static const field layer_fields[] = {
    F(proa_plan_layer, flops, REAL),      F(proa_plan_layer, traffic, REAL),
    F(proa_plan_layer, parameters, REAL), F(proa_plan_layer, activations, REAL),
    F(proa_plan_layer, input, REAL),      F(proa_plan_layer, output, REAL),
    F(proa_plan_layer, weight, REAL),     {0}};

static bool put(const field *f, PyObject *value, void *to)
{
    char *at = (char *)to + f->at;
    if (f->kind == REAL) *(double *)at = PyFloat_AsDouble(value);
    else if (f->kind == BOOL) *(bool *)at = PyObject_IsTrue(value) == 1;
    else {
        long long v = PyLong_AsLongLong(value);
        if (f->kind == INT) *(int64_t *)at = v;
        else *(int *)at = (int)v;
    }
    return !PyErr_Occurred();
}

/* Sets the fields that a dict names; another name is a ValueError. */
static bool from_dict(PyObject *dict, const char *what, const field *fields, void *to)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        if (!name) return false;
        const field *f = fields;
        while (f->name && strcmp(f->name, name) != 0) f++;
        if (!f->name) {
            PyErr_Format(PyExc_ValueError, "plan: %s has no %s", what, name);
            return false;
        }
        if (!put(f, value, to)) return false;
    }
    return true;
}

static PyObject *get(const field *f, const void *from)
{
    const char *at = (const char *)from + f->at;
    if (f->kind == REAL) return PyFloat_FromDouble(*(const double *)at);
    if (f->kind == BOOL) return PyBool_FromLong(*(const bool *)at);
    return PyLong_FromLongLong(f->kind == INT ? *(const int64_t *)at : *(const int *)at);
}

static PyObject *to_dict(const field *fields, const void *from)
{
    PyObject *dict = PyDict_New();
    for (const field *f = fields; dict && f->name; f++) {
        PyObject *value = get(f, from);
        if (!value || PyDict_SetItemString(dict, f->name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* A model's dict: its sizes, or "chain": a list of dicts of layers, which PyMem_Free frees. */
static bool to_model(PyObject *dict, proa_plan_model *model, proa_plan_layer **chain)
{
    PyObject *list = PyDict_GetItemString(dict, "chain");
    if (!list) return from_dict(dict, "a model", model_fields, model);
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "plan: chain must be a list of dicts");
        return false;
    }
    model->n_chain = PyList_GET_SIZE(list);
    model->chain = *chain = PyMem_Calloc((size_t)model->n_chain + 1, sizeof **chain);
    if (!*chain) return PyErr_NoMemory() != NULL;
    for (int64_t i = 0; i < model->n_chain; i++) {
        PyObject *one = PyList_GET_ITEM(list, i);
        if (!PyDict_Check(one)) {
            PyErr_SetString(PyExc_TypeError, "plan: chain must be a list of dicts");
            return false;
        }
        if (!from_dict(one, "a layer", layer_fields, &(*chain)[i])) return false;
    }
    return true;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* pipeline_schedule(kind, stage, stages, micro_batches, chunks) → [("F" or "B", micro-batch, chunk), …] */
static PyObject *pipeline_schedule(PyObject *module, PyObject *args)
{
    (void)module;
    int kind;
    long long stage, stages, micro_batches, chunks;
    if (!PyArg_ParseTuple(args, "iLLLL:pipeline_schedule", &kind, &stage, &stages, &micro_batches, &chunks))
        return NULL;
    int64_t n = micro_batches > 0 && chunks > 0 ? 2 * micro_batches * chunks : 0;
    proa_pipeline_step *steps = PyMem_Calloc((size_t)n + 1, sizeof *steps);
    if (!steps) return PyErr_NoMemory();
    PyObject *list = NULL;
    if (proa_pipeline_schedule((proa_pipeline_kind)kind, stage, stages, micro_batches, chunks, steps) ==
        PROA_OK)
        list = PyList_New((Py_ssize_t)n);
    else py_raise();
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *step = Py_BuildValue("sLL", steps[i].backward ? "B" : "F", (long long)steps[i].micro_batch,
                                       (long long)steps[i].chunk);
        if (step) PyList_SET_ITEM(list, i, step);
        else Py_CLEAR(list);
    }
    PyMem_Free(steps);
    return list;
}

/* The model and the machine of a function of plans, read from dicts. */
typedef struct plan_args {
    proa_plan_model model;
    proa_plan_layer *chain; /* the model's; PyMem_Free frees it */
    proa_plan_machine machine;
} plan_args;

/* Reads a call's three dicts: model and machine into `given`, the one between, called `what` in errors, into
 * the struct `to` by `fields`. `to` must be zeroed. */
static bool read_args(PyObject *args, const char *format, const char *what, const field *fields, void *to,
                      plan_args *given)
{
    PyObject *dicts[3];
    return PyArg_ParseTuple(args, format, &PyDict_Type, &dicts[0], &PyDict_Type, &dicts[1], &PyDict_Type,
                            &dicts[2]) &&
           to_model(dicts[0], &given->model, &given->chain) && from_dict(dicts[1], what, fields, to) &&
           from_dict(dicts[2], "a machine", machine_fields, &given->machine);
}

/* plan_simulate(model, job, machine) → the result's fields. */
static PyObject *plan_simulate(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *result = NULL;
    plan_args given = {0};
    proa_plan_job job = {0};
    proa_plan_result r;
    if (read_args(args, "O!O!O!:plan_simulate", "a job", job_fields, &job, &given))
        result = proa_plan_simulate(&given.model, &job, &given.machine, NULL, NULL, &r) == PROA_OK
                     ? to_dict(result_fields, &r)
                     : py_raise();
    PyMem_Free(given.chain);
    return result;
}

static PyObject *describe_class(const proa_plan_class *c)
{
    return Py_BuildValue("{ss,sL,sO,sN,sN,ss}", "name", c->name, "tried", (long long)c->tried, "fits",
                         c->fits ? Py_True : Py_False, "job", to_dict(job_fields, &c->job), "result",
                         to_dict(result_fields, &c->result), "why", c->why);
}

/* (index of the chosen class or −1, [class, …]) */
static PyObject *describe_choice(const proa_plan_choice *choice)
{
    PyObject *list = PyList_New(PROA_PLAN_CLASSES);
    for (int i = 0; list && i < PROA_PLAN_CLASSES; i++) {
        PyObject *one = describe_class(&choice->classes[i]);
        if (one) PyList_SET_ITEM(list, i, one);
        else Py_CLEAR(list);
    }
    return list ? Py_BuildValue("LN", (long long)choice->chosen, list) : NULL;
}

/* plan_choose(model, search, machine) → (chosen, classes); −1 where none fits. */
static PyObject *plan_choose(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *result = NULL;
    plan_args given = {0};
    proa_plan_search search = {0};
    proa_plan_choice choice;
    if (read_args(args, "O!O!O!:plan_choose", "a search", search_fields, &search, &given)) {
        proa_status status = proa_plan_choose(&given.model, &search, &given.machine, &choice);
        if (status == PROA_ERR_UNAVAILABLE) proa_clear_error();
        result = status == PROA_OK || status == PROA_ERR_UNAVAILABLE ? describe_choice(&choice) : py_raise();
    }
    PyMem_Free(given.chain);
    return result;
}

PyMethodDef py_plan_functions[] = {
    {"pipeline_schedule", pipeline_schedule, METH_VARARGS, "What a pipeline's stage does, in order."},
    {"plan_simulate", plan_simulate, METH_VARARGS, "Predicts a step of a job."},
    {"plan_choose", plan_choose, METH_VARARGS, "Degrees of parallelism, and why."},
    {0},
};
