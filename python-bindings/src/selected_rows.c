/* Functions on SelectedRows tensors (some rows of a large table): make, read index and values, merge rows,
 * convert to dense, add. Uses ext.h. */
#include "ext.h"

static bool is_tensor(const char *who, PyObject *obj)
{
    if (py_is_tensor(obj)) return true;
    PyErr_Format(PyExc_TypeError, "%s: expected a Tensor, got %s", who, Py_TYPE(obj)->tp_name);
    return false;
}

/* rows_new(index, values, height) → a SelectedRows Tensor on the memory of values, of a table of `height`
 * rows; index: row number of each of values' rows. */
static PyObject *rows_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *index, *values;
    long long height;
    if (!PyArg_ParseTuple(args, "OOL:rows_new", &index, &values, &height)) return NULL;
    if (!is_tensor("rows_new", index) || !is_tensor("rows_new", values)) return NULL;
    PROA_SCOPED;
    return py_wrap(proa_rows_new(py_tensor_of(index), py_tensor_of(values), height));
}

static PyObject *is_rows(PyObject *module, PyObject *obj)
{
    (void)module;
    return is_tensor("is_rows", obj) ? PyBool_FromLong(proa_is_rows(py_tensor_of(obj))) : NULL;
}

static PyObject *rows_height(PyObject *module, PyObject *obj)
{
    (void)module;
    if (!is_tensor("rows_height", obj)) return NULL;
    int64_t height = proa_rows_height(py_tensor_of(obj));
    return height < 0 ? py_raise() : PyLong_FromLongLong(height);
}

/* Defines a Python function from one SelectedRows tensor to a tensor. */
#define OF_ROWS(name)                                                  \
    static PyObject *name(PyObject *module, PyObject *obj)             \
    {                                                                  \
        (void)module;                                                  \
        PROA_SCOPED;                                                   \
        if (!is_tensor(#name, obj)) return NULL;                       \
        return py_wrap((proa_tensor *)proa_##name(py_tensor_of(obj))); \
    }
OF_ROWS(rows_index)
OF_ROWS(rows_values)
OF_ROWS(rows_merge)
OF_ROWS(rows_to_dense)

/* rows_add(a, b): the sum; at least one of the two is SelectedRows. */
static PyObject *rows_add(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:rows_add", &a, &b)) return NULL;
    if (!is_tensor("rows_add", a) || !is_tensor("rows_add", b)) return NULL;
    PROA_SCOPED;
    return py_wrap(proa_rows_add(py_tensor_of(a), py_tensor_of(b)));
}

PyMethodDef py_rows_functions[] = {
    {"rows_new", rows_new, METH_VARARGS, "The rows index names of a table of height rows."},
    {"is_rows", is_rows, METH_O, "True if only some rows of a table are given."},
    {"rows_index", rows_index, METH_O, "Which rows are given."},
    {"rows_height", rows_height, METH_O, "How many rows the table has."},
    {"rows_values", rows_values, METH_O, "The given rows as a dense tensor on the same memory."},
    {"rows_merge", rows_merge, METH_O, "Every row once, in ascending order."},
    {"rows_to_dense", rows_to_dense, METH_O, "The whole table."},
    {"rows_add", rows_add, METH_VARARGS, "The sum; of rows and a table, a table."},
    {0},
};
