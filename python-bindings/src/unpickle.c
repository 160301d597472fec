/* _core.pickle_values: decodes a run of None, bool, int and float opcodes of a pickle in C, for the Python
 * unpickler (framework/unpickle.py). Uses ext.h. */
#include "ext.h"

static int64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return n == 4 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
}

static double big_endian_double(const unsigned char *p)
{
    uint64_t bits = 0;
    double d;
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i];
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Reads the value at p; *taken is its bytes, 0 if no constant or number begins there or the data end within
 * it. */
static PyObject *value_at(const unsigned char *p, Py_ssize_t left, int *taken)
{
    int length = p[0] == 'K' ? 2 : p[0] == 'M' ? 3 : p[0] == 'J' ? 5 : p[0] == 'G' ? 9 : 1;
    *taken = 0;
    if (length > left) return NULL;
    *taken = length;
    switch (p[0]) {
    case 'N': return Py_NewRef(Py_None);
    case 0x88: return Py_NewRef(Py_True);
    case 0x89: return Py_NewRef(Py_False);
    case 'K':
    case 'M':
    case 'J': return PyLong_FromLongLong(little(p + 1, length - 1));
    case 'G': return PyFloat_FromDouble(big_endian_double(p + 1));
    default: *taken = 0; return NULL;
    }
}

/* pickle_values(data, stack): pushes the constants and numbers that data begins with; returns their bytes. */
static PyObject *pickle_values(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    PyObject *stack;
    if (!PyArg_ParseTuple(args, "y*O!:pickle_values", &data, &PyList_Type, &stack)) return NULL;
    Py_ssize_t at = 0;
    while (at < data.len) {
        int taken;
        PyObject *value = value_at((const unsigned char *)data.buf + at, data.len - at, &taken);
        int status = value ? PyList_Append(stack, value) : 0;
        Py_XDECREF(value);
        if (status || (taken && !value)) {
            PyBuffer_Release(&data);
            return NULL;
        }
        if (!taken) break;
        at += taken;
    }
    PyBuffer_Release(&data);
    return PyLong_FromSsize_t(at);
}

PyMethodDef py_unpickle_functions[] = {{"pickle_values", pickle_values, METH_VARARGS,
                                        "Pushes the constants and numbers that a pickle's bytes begin with."},
                                       {0}};
