/* Python's operators on tensors. Of two tensors, floating and complex dtypes promote, otherwise y is cast to
 * x's dtype; a Python number is cast to the tensor's dtype, except that an integer tensor with a float gives
 * float32, and a real one with a complex number a complex dtype. Quotients of integers are float32. Uses
 * ext.h, proa/program.h. */
#include "ext.h"

#include <proa/program.h>

#include <stddef.h>

typedef proa_tensor *(*binary_fn)(proa_tensor *x, proa_tensor *y);

static bool is_whole(const proa_tensor *t) { return t->dtype <= PROA_I64; }

/* A Python number as a 0-D tensor of x's dtype, or of float32 or a complex dtype if x's cannot represent
 * it. */
static proa_tensor *number_like(proa_scalar v, const proa_tensor *x)
{
    proa_dtype dtype = (proa_dtype)x->dtype;
    if (v.kind == PROA_SCALAR_FLOAT && is_whole(x)) dtype = PROA_F32;
    if (v.kind == PROA_SCALAR_COMPLEX && dtype < PROA_C64) dtype = dtype == PROA_F64 ? PROA_C128 : PROA_C64;
    return proa_full(PROA_SCALAR_SHAPE, v, .dtype = dtype);
}

static proa_tensor *call(binary_fn fn, proa_tensor *x, proa_tensor *y)
{
    if (!py_is_long(x) && !py_is_long(y)) return fn(x, y);
    PyThreadState *thread = PyEval_SaveThread();
    proa_tensor *out = fn(x, y);
    PyEval_RestoreThread(thread);
    return out;
}

/* x in the dtype of y if only y is floating or complex, as for numbers. */
static proa_tensor *raise_to(proa_tensor *x, const proa_tensor *y)
{
    return x && y && x->dtype != y->dtype ? proa_cast(x, (proa_dtype)y->dtype) : x;
}

/* Converts both operands to tensors. 1: done; 0: NotImplemented; −1: exception. */
static int operands(PyObject *a, PyObject *b, proa_tensor **x, proa_tensor **y)
{
    bool mine = py_is_tensor(a);
    PyObject *other = mine ? b : a;
    proa_tensor *self = py_tensor_of(mine ? a : b), *made;
    proa_scalar v;
    if (py_is_tensor(other)) {
        made = py_tensor_of(other);
    } else if (py_is_dim(other)) {
        return 0; /* leaves the call to that type's own operator */
    } else if (py_to_scalar(other, &v)) {
        made = number_like(v, self);
        self = raise_to(self, made);
    } else if (!PyErr_Occurred() && PyObject_CheckBuffer(other) && !PyBytes_Check(other)) {
        made = py_to_new_tensor(other, PROA_NODTYPE, proa_device_of(self)); /* other is array-like */
    } else {
        return PyErr_Occurred() ? -1 : 0;
    }
    *x = mine ? self : made;
    *y = mine ? made : self;
    return *x && *y ? 1 : (PyErr_Occurred() ? -1 : (py_raise(), -1));
}

enum { COMPARISON = -1 };

/* An operator: its reflected form's offset in a type's number methods, and its name. */
typedef struct py_operator {
    int slot;         /* or COMPARISON, which every class may have */
    const char *name; /* NULL: other operands are left to Python */
} py_operator;

static bool has_operator(const PyTypeObject *type, int slot)
{
    if (slot == COMPARISON) return type->tp_flags & Py_TPFLAGS_HEAPTYPE;
    return type->tp_as_number && *(void **)((char *)type->tp_as_number + slot);
}

/* NotImplemented for a type that has the operator itself. Values of others, such as None or a list, are
 * refused as by Paddle's C++. */
static PyObject *no_operand(PyObject *a, PyObject *b, py_operator what)
{
    PyObject *other = py_is_tensor(a) ? b : a;
    if (!what.name || py_is_dim(other) || has_operator(Py_TYPE(other), what.slot)) Py_RETURN_NOTIMPLEMENTED;
    static const char said[] = "%s: expected a number, an array or a Tensor beside a Tensor, got %s";
    if (PyUnicode_Check(other) && proa_program_current()) /* as Paddle, which tries to read a number there */
        return PyErr_Format(PyExc_ValueError, said, what.name, Py_TYPE(other)->tp_name);
    return py_refuse_type(said, what.name, Py_TYPE(other)->tp_name);
}

static PyObject *binary(PyObject *a, PyObject *b, binary_fn fn, py_operator what)
{
    PROA_SCOPED;
    if (Py_TYPE(a) == py_tensor_type && Py_TYPE(b) == py_tensor_type) /* two Tensors, most often */
        return py_wrap_new(call(fn, py_tensor_of(a), py_tensor_of(b)));
    proa_tensor *x, *y;
    int found = operands(a, b, &x, &y);
    if (found < 0) return NULL;
    if (!found) return no_operand(a, b, what);
    return py_wrap_new(call(fn, x, y));
}

/* ---- arithmetic ------------------------------------------------------------------------ */

/* Casts y to x's dtype if type promotion does not make them equal. */
static proa_tensor *follow(const proa_tensor *x, proa_tensor *y)
{
    bool promote = !is_whole(x) && !is_whole(y);
    return x->dtype == y->dtype || promote ? y : proa_cast(y, (proa_dtype)x->dtype);
}

static proa_tensor *add(proa_tensor *x, proa_tensor *y) { return proa_add(x, follow(x, y)); }
static proa_tensor *subtract(proa_tensor *x, proa_tensor *y) { return proa_subtract(x, follow(x, y)); }
static proa_tensor *multiply(proa_tensor *x, proa_tensor *y)
{
    return x->dtype == PROA_BOOL ? proa_logical_and(x, follow(x, y)) : proa_multiply(x, follow(x, y));
}

static proa_tensor *matmul(proa_tensor *x, proa_tensor *y) { return proa_matmul(x, follow(x, y)); }

/* Integers are divided in float32. As in Paddle, y is cast to x's integers first. */
static proa_tensor *divide(proa_tensor *x, proa_tensor *y)
{
    y = follow(x, y);
    if (y && is_whole(x)) {
        x = proa_cast(x, PROA_F32);
        y = proa_cast(y, PROA_F32);
    }
    return x && y ? proa_divide(x, y) : NULL;
}

static proa_tensor *floor_divide(proa_tensor *x, proa_tensor *y)
{
    return proa_floor_divide(x, follow(x, y));
}
static proa_tensor *remainder_of(proa_tensor *x, proa_tensor *y) { return proa_remainder(x, follow(x, y)); }
static proa_tensor *power(proa_tensor *x, proa_tensor *y) { return proa_elementwise_pow(x, follow(x, y)); }

/* x·scale + bias in one op, where one operand is a Python number. 1: done; 0: it is none, or an int that
 * doubles would make inexact; −1: exception. */
static int scaled(PyObject *a, PyObject *b, char op, PyObject **result)
{
    bool mine = py_is_tensor(a);
    PyObject *other = mine ? b : a;
    proa_scalar v;
    if (Py_TYPE(other) != &PyFloat_Type && Py_TYPE(other) != &PyLong_Type) return 0;
    if (!py_to_scalar(other, &v)) return -1;
    proa_tensor *x = py_tensor_of(mine ? a : b);
    double number = v.kind == PROA_SCALAR_FLOAT ? v.f : (double)v.i;
    bool exact = v.kind == PROA_SCALAR_FLOAT || (v.i > -(1LL << 53) && v.i < 1LL << 53);
    bool wide = x->dtype == PROA_I64 && v.kind == PROA_SCALAR_INT; /* int64 stays exact: no doubles */
    if (!exact || wide) return 0;
    PROA_SCOPED;
    bool truth = x->dtype == PROA_BOOL, whole = v.kind == PROA_SCALAR_INT && op != '/';
    if (truth && whole) x = proa_cast(x, PROA_F32); /* computed in float32, cast back to bool below */
    if (x && is_whole(x) && (v.kind == PROA_SCALAR_FLOAT || op == '/')) x = proa_cast(x, PROA_F32);
    if (!x) return py_raise(), -1;
    double scale = op == '*' ? number : op == '/' ? 1 / number : op == '-' && !mine ? -1 : 1;
    double bias = op == '+' ? number : op == '-' ? (mine ? -number : number) : 0;
    x = proa_scale(x, .scale = proa_scalar_float(scale), .bias = bias);
    *result = py_wrap(x && truth && whole ? proa_cast(x, PROA_BOOL) : x);
    return *result ? 1 : -1;
}

#define OPERATOR(slot, fn) \
    (py_operator) { offsetof(PyNumberMethods, slot), #fn }
#define SCALED(name, sign, slot, fn)                                 \
    static PyObject *name(PyObject *a, PyObject *b)                  \
    {                                                                \
        PyObject *result = NULL;                                     \
        int done = scaled(a, b, sign, &result);                      \
        return done ? result : binary(a, b, fn, OPERATOR(slot, fn)); \
    }
SCALED(op_add, '+', nb_add, add)
SCALED(op_subtract, '-', nb_subtract, subtract)
SCALED(op_multiply, '*', nb_multiply, multiply)

/* A number on the left of / is no scale of x. */
static PyObject *op_divide(PyObject *a, PyObject *b)
{
    PyObject *result = NULL;
    int done = py_is_tensor(a) ? scaled(a, b, '/', &result) : 0;
    return done ? result : binary(a, b, divide, OPERATOR(nb_true_divide, divide));
}

#define BINARY(name, slot, fn) \
    static PyObject *name(PyObject *a, PyObject *b) { return binary(a, b, fn, OPERATOR(slot, fn)); }
BINARY(op_floor_divide, nb_floor_divide, floor_divide)
BINARY(op_remainder, nb_remainder, remainder_of)
BINARY(op_matmul, nb_matrix_multiply, matmul)

static PyObject *op_power(PyObject *a, PyObject *b, PyObject *modulo)
{
    if (modulo != Py_None) return PyErr_Format(PyExc_TypeError, "pow: a tensor takes no modulus");
    proa_scalar v;
    if (!py_is_tensor(a) || py_is_tensor(b) || py_is_dim(b) || !py_to_scalar(b, &v)) {
        if (PyErr_Occurred()) return NULL;
        return binary(a, b, power, OPERATOR(nb_power, power));
    }
    PROA_SCOPED;
    proa_tensor *x = py_tensor_of(a);
    if (is_whole(x) && v.kind == PROA_SCALAR_FLOAT) x = proa_cast(x, PROA_F32);
    return py_wrap(x ? proa_pow(x, v) : NULL);
}

static proa_tensor *bit_and(proa_tensor *x, proa_tensor *y) { return proa_bitwise_and(x, follow(x, y)); }
static proa_tensor *bit_or(proa_tensor *x, proa_tensor *y) { return proa_bitwise_or(x, follow(x, y)); }
static proa_tensor *bit_xor(proa_tensor *x, proa_tensor *y) { return proa_bitwise_xor(x, follow(x, y)); }
BINARY(op_and, nb_and, bit_and)
BINARY(op_or, nb_or, bit_or)
BINARY(op_xor, nb_xor, bit_xor)

static PyObject *op_negative(PyObject *a)
{
    PROA_SCOPED;
    proa_tensor *x = py_tensor_of(a);
    return py_wrap(x->dtype == PROA_BOOL ? proa_assign(x) : proa_neg(x));
}

static PyObject *op_absolute(PyObject *a)
{
    PROA_SCOPED;
    return py_wrap(proa_abs(py_tensor_of(a)));
}

static PyObject *op_invert(PyObject *a)
{
    PROA_SCOPED;
    return py_wrap(proa_bitwise_not(py_tensor_of(a)));
}

/* ---- comparisons ----------------------------------------------------------------------- */

#define COMPARE(name, op) \
    static proa_tensor *name(proa_tensor *x, proa_tensor *y) { return op(x, follow(x, y)); }
COMPARE(less_than, proa_less_than)
COMPARE(less_equal, proa_less_equal)
COMPARE(equal_to, proa_equal)
COMPARE(not_equal_to, proa_not_equal)
COMPARE(greater_than, proa_greater_than)
COMPARE(greater_equal, proa_greater_equal)

static PyObject *op_compare(PyObject *a, PyObject *b, int how)
{
    static const binary_fn fns[] = {[Py_LT] = less_than,    [Py_LE] = less_equal,   [Py_EQ] = equal_to,
                                    [Py_NE] = not_equal_to, [Py_GT] = greater_than, [Py_GE] = greater_equal};
    static const char *const names[] = {
        [Py_LT] = "less_than", [Py_LE] = "less_equal", [Py_GT] = "greater_than", [Py_GE] = "greater_equal"};
    return binary(a, b, fns[how], (py_operator){COMPARISON, names[how]});
}

static Py_hash_t op_hash(PyObject *self) { return _Py_HashPointer(self); }

/* ---- as one number --------------------------------------------------------------------- */

static bool is_one(const proa_tensor *t, const char *what)
{
    if (proa_is_symbolic(t))
        PyErr_Format(PyExc_RuntimeError, "%s: a program's variable has no value while the program is built",
                     what);
    else if (t->numel != 1) /* as in Paddle, whose Python asserts it */
        PyErr_Format(PyExc_AssertionError,
                     "%s: only a tensor of one element is a number; this one has shape %s", what,
                     py_shape_text(t));
    return !PyErr_Occurred();
}

static int op_truth(PyObject *self)
{
    proa_tensor *t = py_tensor_of(self);
    return is_one(t, "bool") ? proa_item(t) != 0 : -1;
}

static PyObject *op_int(PyObject *self)
{
    proa_tensor *t = py_tensor_of(self);
    if (!is_one(t, "int")) return NULL;
    return is_whole(t) ? PyLong_FromLongLong(proa_item_int(t)) : PyLong_FromDouble(proa_item(t));
}

static PyObject *op_index(PyObject *self)
{
    proa_tensor *t = py_tensor_of(self);
    if (!is_one(t, "index")) return NULL;
    return is_whole(t) ? PyLong_FromLongLong(proa_item_int(t)) : PyLong_FromDouble(proa_item(t));
}

static PyObject *op_float(PyObject *self)
{
    proa_tensor *t = py_tensor_of(self);
    return is_one(t, "float") ? PyFloat_FromDouble(proa_item(t)) : NULL;
}

PyType_Slot py_operator_slots[] = {
    {Py_nb_add, op_add},
    {Py_nb_subtract, op_subtract},
    {Py_nb_multiply, op_multiply},
    {Py_nb_true_divide, op_divide},
    {Py_nb_floor_divide, op_floor_divide},
    {Py_nb_remainder, op_remainder},
    {Py_nb_power, op_power},
    {Py_nb_matrix_multiply, op_matmul},
    {Py_nb_and, op_and},
    {Py_nb_or, op_or},
    {Py_nb_xor, op_xor},
    {Py_nb_negative, op_negative},
    {Py_nb_absolute, op_absolute},
    {Py_nb_invert, op_invert},
    {Py_nb_bool, op_truth},
    {Py_nb_int, op_int},
    {Py_nb_index, op_index},
    {Py_nb_float, op_float},
    {Py_tp_richcompare, op_compare},
    {Py_tp_hash, op_hash},
    {0},
};
