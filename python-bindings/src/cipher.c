/* The class Cipher over the AES ciphers of proa/cipher.h, and make_key, which makes random keys. Uses
 * ext.h. */
#include "ext.h"

#include <proa/cipher.h>

typedef struct py_cipher {
    PyObject_HEAD proa_cipher *cipher;
} py_cipher;

static void cipher_dealloc(PyObject *self)
{
    proa_cipher_free(((py_cipher *)self)->cipher);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *cipher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    PyObject *path = NULL;
    if (!PyArg_ParseTuple(args, "|O&", PyUnicode_FSConverter, &path)) return NULL;
    proa_cipher *made = proa_cipher_new(path ? PyBytes_AS_STRING(path) : NULL);
    Py_XDECREF(path);
    if (!made) return py_raise();
    py_cipher *self = (py_cipher *)type->tp_alloc(type, 0);
    if (self) self->cipher = made;
    else proa_cipher_free(made);
    return (PyObject *)self;
}

typedef proa_status (*cipher_fn)(const proa_cipher *, const void *, size_t, const void *, size_t, void **,
                                 size_t *);

static PyObject *cipher_run(PyObject *self, PyObject *args, cipher_fn fn)
{
    Py_buffer data, key;
    void *out = NULL;
    size_t bytes = 0;
    if (!PyArg_ParseTuple(args, "s*s*", &data, &key)) return NULL;
    proa_status status =
        fn(((py_cipher *)self)->cipher, data.buf, (size_t)data.len, key.buf, (size_t)key.len, &out, &bytes);
    PyBuffer_Release(&data);
    PyBuffer_Release(&key);
    if (status != PROA_OK) return py_raise();
    PyObject *result = PyBytes_FromStringAndSize(out, (Py_ssize_t)bytes);
    proa_cipher_release(out, bytes);
    return result;
}

static PyObject *cipher_encrypt(PyObject *self, PyObject *args)
{
    return cipher_run(self, args, proa_cipher_encrypt);
}

static PyObject *cipher_decrypt(PyObject *self, PyObject *args)
{
    return cipher_run(self, args, proa_cipher_decrypt);
}

static PyMethodDef cipher_methods[] = {
    {"encrypt", cipher_encrypt, METH_VARARGS, "encrypt(text, key) -> bytes"},
    {"decrypt", cipher_decrypt, METH_VARARGS, "decrypt(data, key) -> bytes"},
    {0},
};

PyTypeObject py_cipher_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Cipher",
    .tp_basicsize = sizeof(py_cipher),
    .tp_dealloc = cipher_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_methods = cipher_methods,
    .tp_new = cipher_new,
};

/* make_key(n) → n random bytes: 16, 24 or 32. */
static PyObject *make_key(PyObject *module, PyObject *arg)
{
    (void)module;
    char key[32];
    size_t bytes = PyLong_AsSize_t(arg);
    if (PyErr_Occurred()) return NULL;
    if (bytes > sizeof key)
        return PyErr_Format(PyExc_ValueError, "make_key: a key of %zu bytes; expected 16, 24 or 32", bytes);
    if (proa_cipher_make_key(key, bytes) != PROA_OK) return py_raise();
    PyObject *result = PyBytes_FromStringAndSize(key, (Py_ssize_t)bytes);
    memset(key, 0, sizeof key);
    return result;
}

PyMethodDef py_cipher_functions[] = {
    {"make_key", make_key, METH_O, "A random key of 16, 24 or 32 bytes."},
    {0},
};
