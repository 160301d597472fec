/* Callables of the op table: the functions and methods of `python:` entries, and the plain call of every op.
 * Arguments are converted directly into the op's args struct, without a Python frame. Uses ext.h and the
 * generated py_api.inc. */
#include "ext.h"

#include "core/args_visit.h"
#include "core/device.h"
#include "core/error.h"

#include <proa/amp.h>
#include <proa/program.h>
#include <proa/wire.h>

#include <stddef.h>

#include "py_api.inc"

#define ENTRY_COUNT (sizeof py_entries / sizeof *py_entries)
#define ARGS_MAX 1024 /* bytes of args and lists in a call's frame; checked when a callable is made */

/* A callable whose type derives from CPython's function type, so that isinstance(f, types.FunctionType)
 * holds. CPython calls the derived type by its vectorcall instead of inlining a Python frame. */
typedef struct py_op {
    PyFunctionObject function;
    const py_entry *entry;
    const proa_op *op;
    const char *name;    /* the last part of the entry's first name */
    char *defaults;      /* an args struct with every default filled in; made at first call */
    PyObject **keywords; /* interned parameter names; made at first keyword */
    bool of_extension;   /* made by py_function_of */
    PyObject *twin;      /* a plain function with the same signature that calls this; made at first need */
} py_op;

/* Made by py_add_ops, alive as long as the process. */
static py_op *callables[ENTRY_COUNT];

/* ---- arguments ------------------------------------------------------------------------- */

static bool make_defaults(py_op *self)
{
    const proa_op *op = self->op;
    char *args = PyMem_Calloc(1, op->args_size + 1u);
    if (!args) {
        PyErr_NoMemory();
        return false;
    }
    for (int i = 0; i < op->n_in + op->n_attr; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **one = f->flags & PROA_FIELD_OPTIONAL ? proa__field_one(f, args) : NULL;
        if (one) *one = proa_none;
        if (f->fallback && !py_default_field(self->name, f, f->fallback, args)) return false;
    }
    for (int i = 0; i < self->entry->n_params + self->entry->n_fixed; i++) {
        const py_param *p = &self->entry->params[i];
        if (p->fallback && !py_default_field(self->name, &op->fields[p->field], p->fallback, args))
            return false;
    }
    self->defaults = args;
    return true;
}

static bool make_keywords(py_op *self)
{
    int n = self->entry->n_params;
    PyObject **names = PyMem_Calloc((size_t)n + 1, sizeof *names);
    for (int i = 0; names && i < n; i++) {
        names[i] = PyUnicode_InternFromString(self->entry->params[i].name);
        if (names[i]) continue;
        while (i--) Py_DECREF(names[i]);
        PyMem_Free(names);
        return false;
    }
    if (!names) PyErr_NoMemory();
    self->keywords = names;
    return names != NULL;
}

static int find_keyword(const py_op *self, PyObject *name)
{
    for (int i = 0; i < self->entry->n_params; i++)
        if (self->keywords[i] == name) return i;
    for (int i = 0; i < self->entry->n_params; i++)
        if (PyUnicode_Compare(self->keywords[i], name) == 0) return i;
    return -1;
}

/* True if the entry's rules want this kind for the argument while a program is built, which otherwise takes
 * numbers for bools, a variable for a list and None for a default. */
static bool must_be(const py_op *self, const char *name, const char *kind)
{
    if (!self->entry->asks || !proa_program_current()) return false;
    char word[64];
    snprintf(word, sizeof word, "static:%s:%s", name, kind);
    const char *at = strstr(self->entry->asks, word);
    return at && strchr(" !", at[strlen(word)]); /* the only kind */
}

/* True if the entry's rules want a float, and no whole number, for the argument in this mode. */
static bool must_be_float(const py_op *self, const char *name)
{
    if (!self->entry->asks) return false;
    char word[64];
    snprintf(word, sizeof word, "%s:%s:float", proa_program_current() ? "static" : "eager", name);
    const char *at = strstr(self->entry->asks, word);
    return at && strchr(" !", at[strlen(word)]); /* the only kind */
}

/* True if value is a number that the rules take for the tensor of parameter i, which is not the first. */
static bool takes_number(const py_op *self, int i, PyObject *value)
{
    if (i == 0 || !self->entry->asks || !(PyLong_Check(value) || PyFloat_Check(value))) return false;
    char word[64];
    snprintf(word, sizeof word, "%s:int,bool,float,Tensor", self->entry->params[i].name);
    return strstr(self->entry->asks, word) != NULL;
}

/* The tensor for such a number, which failed as a tensor: 0-D, of the first parameter's dtype. */
static bool fill_number(const py_op *self, int i, PyObject *value, void *args)
{
    proa_tensor **x = proa__field_one(self->op->fields, args);
    proa_tensor **at = proa__field_one(&self->op->fields[self->entry->params[i].field], args);
    proa_scalar number;
    if (!x || !*x || !at) return false;
    PyErr_Clear();
    if (!py_to_scalar(value, &number)) return false;
    *at = proa_full((proa_ints){0}, number, .dtype = proa_dtype_of(*x));
    return *at || (py_raise(), false);
}

static bool fill_one(const py_op *self, int i, PyObject *value, void *args, py_arena *arena)
{
    const py_param *p = &self->entry->params[i];
    if (p->field < 0) {
        if (!strcmp(p->name, "name") && PyUnicode_Check(value) && proa_program_current())
            return (arena->name = PyUnicode_AsUTF8(value)) != NULL;
        if (value == Py_None || !strcmp(p->name, "name")) return true;
        if (!strcmp(p->name, "out") && !proa_program_current())
            return true; /* eagerly Paddle does not read it */
        PyErr_Format(PyExc_TypeError, "%s: argument %s is not supported; leave it out", self->name, p->name);
        return false;
    }
    const proa_field *f = &self->op->fields[p->field];
    bool late = py_is_dim(value) || (py_is_tensor(value) && proa_is_symbolic(py_tensor_of(value)));
    if (late && f->kind == PROA_FIELD_INT && f->alias >= 0) f = &self->op->fields[f->alias];
    bool unset = value == Py_None && !p->required && f->role == PROA_ATTR;
    if (unset && (p->none || (proa_program_current() && !must_be(self, p->name, "int"))))
        return true; /* keeps the default */
    if (value == Py_None && f->kind == PROA_FIELD_INTS && f->flags & PROA_FIELD_FROM_TENSOR &&
        *self->entry->names[0] != '_' && !proa_program_current())
        return true; /* an empty list, in a public function */
    if (f->kind == PROA_FIELD_FLOAT && !PyFloat_Check(value) && must_be_float(self, p->name)) {
        py_refuse_type("%s: argument %s: expected a float, got %s", self->name, p->name,
                       Py_TYPE(value)->tp_name);
        return false;
    }
    if (unset && f->kind == PROA_FIELD_BOOL) value = Py_False;
    if (value == Py_None && p->required && f->kind == PROA_FIELD_DTYPE) { /* as NumPy reads None */
        *(proa_dtype *)proa_field_at(f, args) = PROA_F64;
        return true;
    }
    const char *kind = py_is_tensor(value)                                  ? "list"
                       : f->kind == PROA_FIELD_BOOL && !PyBool_Check(value) ? "bool"
                                                                            : NULL;
    if (kind && must_be(self, p->name, kind)) {
        PyErr_Format(PyExc_TypeError, "%s: argument %s: expected a %s, got %s", self->name, p->name, kind,
                     Py_TYPE(value)->tp_name);
        return false;
    }
    if (py_to_field(self->name, f, p->name, value, args, arena)) return true;
    if (takes_number(self, i, value)) return fill_number(self, i, value, args);
    if (f->kind == PROA_FIELD_SCALAR && self->op->n_in == 0 && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear(); /* Paddle makes floats of the numbers of creation functions in Python */
        PyErr_Format(PyExc_TypeError, "%s: argument %s: expected a number or a one-element Tensor, got %s",
                     self->name, p->name, Py_TYPE(value)->tp_name);
    }
    return false;
}

static bool fill_keywords(py_op *self, PyObject *const *values, PyObject *keywords, uint64_t *given,
                          void *args, py_arena *arena)
{
    if (!self->keywords && !make_keywords(self)) return false;
    Py_ssize_t number = -1; /* waits for the first parameter */
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        int i = find_keyword(self, name);
        if (i < 0 || *given >> i & 1) {
            const char *text = i < 0 ? "%s: there is no argument %U; the call is %s%s"
                                     : "%s: argument %U was given twice; the call is %s%s";
            PyErr_Format(PyExc_TypeError, text, self->name, name, self->name, self->entry->signature);
            return false;
        }
        *given |= (uint64_t)1 << i;
        if (!(*given & 1) && takes_number(self, i, values[k])) number = k;
        else if (!fill_one(self, i, values[k], args, arena)) return false;
    }
    if (number < 0) return true;
    int i = find_keyword(self, PyTuple_GET_ITEM(keywords, number));
    return fill_one(self, i, values[number], args, arena);
}

/* Makes the table of keywords while an error is set, which stays. */
static bool make_keywords_after_error(py_op *self)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    bool made = make_keywords(self);
    PyErr_Restore(type, error, trace);
    return made;
}

/* Replaces the current error by a TypeError if the arguments do not fit the signature. Always false. */
static bool refuse_arguments(py_op *self, Py_ssize_t n, PyObject *keywords)
{
    const py_entry *e = self->entry;
    Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    uint64_t given = ((uint64_t)1 << n) - 1;
    if (named && !self->keywords && !make_keywords_after_error(self)) return false;
    for (Py_ssize_t k = 0; k < named; k++) {
        int i = find_keyword(self, PyTuple_GET_ITEM(keywords, k));
        if (i < 0 || given >> i & 1) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: argument %U is unknown or was given twice; the call is %s%s",
                         self->name, PyTuple_GET_ITEM(keywords, k), self->name, e->signature);
            return false;
        }
        given |= (uint64_t)1 << i;
    }
    for (int i = (int)n; i < e->n_params; i++)
        if (e->params[i].required && !(given >> i & 1)) {
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: argument %s is missing; the call is %s%s", self->name,
                         e->params[i].name, self->name, e->signature);
            return false;
        }
    return false;
}

static bool fill_args(py_op *self, void *args, PyObject *const *values, Py_ssize_t n, PyObject *keywords,
                      py_arena *arena)
{
    const py_entry *e = self->entry;
    if (n > e->n_params) {
        PyErr_Format(PyExc_TypeError, "%s: takes %d arguments, got %zd; the call is %s%s", self->name,
                     e->n_params, n, self->name, e->signature);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!fill_one(self, (int)i, values[i], args, arena)) return refuse_arguments(self, n, keywords);
    uint64_t given = ((uint64_t)1 << n) - 1;
    if (keywords && !fill_keywords(self, values + n, keywords, &given, args, arena))
        return refuse_arguments(self, n, keywords);
    for (int i = (int)n; i < e->n_params; i++) {
        if (given >> i & 1 || !e->params[i].required) continue;
        PyErr_Format(PyExc_TypeError, "%s: argument %s is missing; the call is %s%s", self->name,
                     e->params[i].name, self->name, e->signature);
        return false;
    }
    return true;
}

static bool number_passes(const py_op *self, const void *args, const py_check *c)
{
    static const char *const words[] = {"not be", "be at least", "be above"};
    const proa_field *f = &self->op->fields[c->field];
    const double v = *(const double *)proa_field_at(f, args);
    if (c->kind == PY_NOT ? v != c->bound : c->kind == PY_AT_LEAST ? v >= c->bound : v > c->bound)
        return true;
    char text[160];
    int n = snprintf(text, sizeof text, "%s: %s must %s %g, got %g", self->name, f->name, words[c->kind],
                     c->bound, v);
    if (self->entry->in_place && n < (int)sizeof text) /* elu_: elu may take it */
        snprintf(text + n, sizeof text - (size_t)n, "; use %.*s", (int)strlen(self->name) - 1, self->name);
    PyErr_SetString(*c->raises, text);
    return false;
}

/* True if none of the last n dims is 0; n = 0: none at all. */
static bool has_elements(const proa_tensor *t, int n)
{
    for (int i = n > 0 && n < t->ndim ? t->ndim - n : 0; i < t->ndim; i++)
        if (t->shape[i] == 0) return false;
    return true;
}

/* True if a reduction is called with axes: of an empty batch it makes an empty result. */
static bool has_axes(const py_op *self, const void *args)
{
    for (const proa_field *f = self->op->fields, *end = f + self->op->n_in + self->op->n_attr; f < end; f++)
        if (f->kind == PROA_FIELD_INTS && !strcmp(f->name, "axis")) {
            const proa_ints *axis = proa_field_at(f, args);
            return axis->count > 0 || axis->tensor || axis->tensors;
        }
    return false;
}

/* Paddle's kernels for devices are others than those for the CPU, which is where programs are built for. */
static bool kernel_passes(const py_op *self, const py_check *c, const proa_field *f, const proa_tensor *t)
{
    if (c->dtypes >> t->dtype & 1 || proa__device_id(t) != PROA_CPU) return true;
    if (c->kind == PY_KERNEL && !(self->op->dtypes >> t->dtype & 1))
        return true; /* the op itself refuses it */
    char list[PROA_DTYPES_TEXT];
    py_refuse(proa_program_current() ? PROA_ERR_UNSUPPORTED : PROA_ERR_WRONG_TYPE,
              "%s: %s is %s; expected one of %s (convert with cast)", self->name, f->name,
              proa_dtype_name((proa_dtype)t->dtype), proa_dtypes_text(c->dtypes, list));
    return false;
}

static bool refuse_length(const py_op *self, const char *what, int most, int given)
{
    py_refuse(PROA_ERR_INVALID_ARGUMENT, "%s: %s must have at most %d dims, got %d; merge some with reshape",
              self->name, what, most, given);
    return false;
}

static bool tensor_passes(const py_op *self, const void *args, const py_check *c, const proa_field *f,
                          const proa_tensor *t)
{
    if (c->kind == PY_OPERAND) {
        proa_tensor **x = proa__field_one(self->op->fields, args);
        if ((c->bound > 0 && proa_program_current()) || (*x)->dtype == t->dtype) return true;
    }
    if (c->kind <= PY_OPERAND) return kernel_passes(self, c, f, t);
    if (c->kind == PY_RANK ? t->ndim <= (int)c->bound : has_elements(t, (int)c->bound)) return true;
    if (c->kind == PY_FILLED && c->bound < 0 && has_axes(self, args)) return true;
    if (c->kind == PY_RANK) return refuse_length(self, f->name, (int)c->bound, t->ndim);
    py_refuse(PROA_ERR_INVALID_ARGUMENT, "%s: %s must have elements, and has none", self->name, f->name);
    return false;
}

/* True if a look at the tensor alone says that it passes, as nearly all do. */
static bool passes_at_once(const py_check *c, const proa_tensor *t)
{
    if (!t || t == PROA_NONE) return true;
    if (c->kind == PY_KERNEL) return c->dtypes >> t->dtype & 1;
    return c->kind == PY_FILLED ? t->numel > 0 : c->kind == PY_RANK && t->ndim <= (int)c->bound;
}

static bool checks_pass(const py_op *self, const void *args)
{
    for (const py_check *c = self->entry->checks, *end = c + self->entry->n_checks; c < end; c++) {
        if (c->kind <= PY_ABOVE) {
            if (!number_passes(self, args, c)) return false;
            continue;
        }
        const proa_field *f = &self->op->fields[c->field];
        proa_tensor **one = proa__field_one(f, args);
        if (one && passes_at_once(c, *one)) continue;
        const proa_ints *ints = f->kind == PROA_FIELD_INTS ? proa_field_at(f, args) : NULL;
        if (ints && ints->count > c->bound)
            return refuse_length(self, f->name, (int)c->bound, (int)ints->count);
        const proa_tensors all = ints ? (proa_tensors){0} : proa__field_all(f, args);
        for (int i = 0; i < all.count; i++)
            if (all.at[i] && all.at[i] != PROA_NONE && !tensor_passes(self, args, c, f, all.at[i]))
                return false;
    }
    return true;
}

static bool is_floating(proa_dtype dtype)
{
    return dtype == PROA_F16 || dtype == PROA_BF16 || dtype == PROA_F32 || dtype == PROA_F64;
}

/* The first input whose floating dtype another input's floating dtype differs from; NULL if none does. */
static const proa_field *find_mixed_floats(const proa_op *op, const void *args)
{
    int dtype = PROA_NODTYPE;
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        proa_tensor **one = proa__field_one(f, args);
        if (!one || !*one || *one == PROA_NONE || !is_floating((proa_dtype)(*one)->dtype)) continue;
        if (dtype != PROA_NODTYPE && (*one)->dtype != dtype) return f;
        dtype = (*one)->dtype;
    }
    return NULL;
}

/* False with an exception for two floating dtypes that Paddle's function does not bring together, as few do
 * and none in a Program. Autocast converts all operands. */
static bool floats_agree(const py_op *self, const void *args)
{
    const uint8_t floats = self->entry->floats;
    if (floats == PY_FLOATS_MIX || (self->entry->in_place && !proa_program_current())) return true;
    const proa_field *f = find_mixed_floats(self->op, args);
    if (!f || proa_is_autocasting()) return true;
    if (floats == PY_FLOATS_MIX_EAGERLY && (!proa_program_current() || py_captures_function())) return true;
    const char *dtype = proa_dtype_name((proa_dtype)(*proa__field_one(f, args))->dtype);
    PyErr_Format(PyExc_ValueError,
                 "(InvalidArgument) %s: %s is %s, and another operand of another floating dtype; convert one "
                 "with cast",
                 self->name, f->name, dtype);
    return false;
}

/* ---- refusals ------------------------------------------------------------------------- */

/* New reference: the given arguments by name; NULL without an exception if they do not fit the signature. */
static PyObject *given_arguments(const py_op *self, PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    const py_entry *e = self->entry;
    PyObject *given = n <= e->n_params ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; given && i < n; i++)
        if (PyDict_SetItemString(given, e->params[i].name, values[i]) != 0) Py_CLEAR(given);
    for (Py_ssize_t k = 0; given && keywords && k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        bool known = self->keywords && find_keyword(self, name) >= 0;
        if (!known || PyDict_SetItem(given, name, values[n + k]) != 0) Py_CLEAR(given);
    }
    for (int i = 0; given && i < e->n_params; i++)
        if (e->params[i].required && !PyDict_GetItemString(given, e->params[i].name)) Py_CLEAR(given);
    PyErr_Clear();
    return given;
}

/* Raises what the entry's `asks:` say of a call that failed with `error`, or (NULL) that is to be made. */
static void ask(const py_op *self, PyObject *const *values, Py_ssize_t n, PyObject *keywords,
                const py_error *error)
{
    PyObject *given = given_arguments(self, values, n, keywords);
    PyObject *rules = given ? PyUnicode_FromString(self->entry->asks) : NULL;
    if (rules) py_answer(rules, self->function.func_name, given, error);
    Py_XDECREF(rules);
    Py_XDECREF(given);
}

/* Replaces the error of a failed call by what the entry's `asks:` say of its arguments. Always NULL. */
static PyObject *refuse_as_asked(const py_op *self, PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    if (!self->entry->asks) return NULL;
    py_error error = py_fetch();
    ask(self, values, n, keywords, &error);
    py_restore_unless_raised(error);
    return NULL;
}

/* ---- results --------------------------------------------------------------------------- */

static PyObject *one_result(const proa_field *f, const void *args)
{
    proa_tensor **one = proa__field_one(f, args);
    return one ? py_wrap_new(*one) : py_from_tensors(*proa_field_tensors(f, args));
}

static PyObject *results(const py_op *self, const void *args)
{
    const proa_op *op = self->op;
    if (self->entry->result >= 0) return one_result(&op->fields[self->entry->result], args);
    const proa_field *outs = &op->fields[op->n_in + op->n_attr];
    int n = 0, last = -1;
    for (int i = 0; i < op->n_out; i++)
        if (!(outs[i].flags & PROA_FIELD_MUTATED)) n++, last = i;
    if (n == 0) Py_RETURN_NONE;
    if (n == 1) return one_result(&outs[last], args);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0, k = 0; tuple && i < op->n_out; i++) {
        if (outs[i].flags & PROA_FIELD_MUTATED) continue;
        PyObject *one = one_result(&outs[i], args);
        if (!one) Py_CLEAR(tuple);
        if (tuple) PyTuple_SET_ITEM(tuple, k++, one);
    }
    return tuple;
}

/* The results of a custom op: several are a list, as from Paddle's functions. */
static PyObject *listed_results(const py_op *self, const void *args)
{
    PyObject *made = results(self, args);
    if (made && PyTuple_Check(made)) Py_SETREF(made, PySequence_List(made));
    return made;
}

/* ---- the call -------------------------------------------------------------------------- */

/* True if an op without inputs makes a tensor too small for releasing the GIL, by its shape attribute. */
static bool makes_little(const proa_op *op, const void *args)
{
    for (const proa_field *f = op->fields; f < op->fields + op->n_attr; f++) {
        if (f->kind != PROA_FIELD_INTS || strcmp(f->name, "shape") != 0) continue;
        const proa_ints *shape = proa_field_at(f, args);
        int64_t n = 1;
        if (shape->tensor || shape->tensors) return false;
        for (int64_t i = 0; i < shape->count; i++) {
            if (shape->at[i] < 0 || shape->at[i] > PY_LONG_WORK) return false;
            n *= shape->at[i];
            if (n > PY_LONG_WORK) return false;
        }
        return true;
    }
    return false;
}

static bool is_long_work(const proa_op *op, const void *args)
{
    for (int i = 0; i < op->n_in; i++) {
        const proa_field *f = &op->fields[i];
        const proa_tensors all = proa__field_all(f, args);
        if (all.count > 16 || (all.count && py_is_long(all.at[0]))) return true;
    }
    return op->n_in == 0 && !makes_little(op, args);
}

/* Keeps the input tensors for the call: another thread may replace an object's tensor (_become) meanwhile. */
static bool hold_inputs(const proa_op *op, const void *args)
{
    for (const proa_field *f = op->fields; f < op->fields + op->n_in; f++) {
        proa_tensor **one = proa__field_one(f, args);
        if (one && !proa_scope_hold(*one)) return false;
    }
    return true;
}

static proa_status run(const proa_op *op, void *args)
{
    if (!is_long_work(op, args)) return proa_call_op(op, args);
    if (!hold_inputs(op, args)) return proa_error();
    PyThreadState *thread = PyEval_SaveThread();
    proa_status status = proa_call_op(op, args);
    PyEval_RestoreThread(thread);
    return status;
}

/* Sets the outputs of an in-place call to the inputs whose memory they share. */
static void alias_outputs(const proa_op *op, void *args)
{
    for (int i = op->n_in + op->n_attr; i < op->n_fields; i++) {
        const proa_field *f = &op->fields[i];
        proa_tensor **one = f->alias >= 0 ? proa__field_one(f, args) : NULL;
        if (one) *one = *proa_field_tensor(&op->fields[f->alias], args);
    }
}

static PyObject *op_call(PyObject *callable, PyObject *const *values, size_t flagged, PyObject *keywords)
{
    py_op *self = (py_op *)callable;
    const proa_op *op = self->op;
    Py_ssize_t n = PyVectorcall_NARGS(flagged);
    if (py_takes_dist(values, n, keywords)) return py_call_dist(callable, values, n, keywords);
    if (!self->defaults && !make_defaults(self)) return NULL;
    _Alignas(16) char args[ARGS_MAX];
    memcpy(args, self->defaults, op->args_size);
    PROA_SCOPED;
    py_arena arena = {args + ((op->args_size + 15u) & ~15u), args + ARGS_MAX, NULL};
    if (!fill_args(self, args, values, n, keywords, &arena)) {
        proa_clear_error();
        return refuse_as_asked(self, values, n, keywords);
    }
    if (py_asks_first(self->entry->asks)) {
        ask(self, values, n, keywords, NULL);
        if (PyErr_Occurred()) return NULL;
    }
    if (!floats_agree(self, args)) return refuse_as_asked(self, values, n, keywords);
    if (self->entry->n_checks && !checks_pass(self, args)) return refuse_as_asked(self, values, n, keywords);
    if (self->entry->in_place) alias_outputs(op, args);
    if (run(op, args) != PROA_OK) return py_raise(), refuse_as_asked(self, values, n, keywords);
    if (arena.name && !self->entry->in_place && py_name_results(op, args, arena.name) != PROA_OK)
        return py_raise();
    if (self->of_extension) return listed_results(self, args);
    if (self->entry->in_place && n > 0 && py_is_tensor(values[0])) return Py_NewRef(values[0]);
    return results(self, args);
}

static PyObject *op_call_keywords(PyObject *self, PyObject *const *values, Py_ssize_t n, PyObject *keywords)
{
    return op_call(self, values, (size_t)n, keywords);
}

/* ---- the type -------------------------------------------------------------------------- */

static PyMethodDef call_of_twin = {"call", (PyCFunction)(void (*)(void))op_call_keywords,
                                   METH_FASTCALL | METH_KEYWORDS, NULL};

/* "def f(x, axis=None): return call(x, axis)". Plain calls of ops may have a default before a required
 * parameter, which Python's grammar refuses: those take anything. */
static PyObject *twin_code(const py_op *self, bool spelled)
{
    if (!spelled)
        return PyUnicode_FromFormat("def %s(*args, **keywords): return call(*args, **keywords)\n",
                                    self->name);
    PyObject *code = PyUnicode_FromFormat("def %s%s: return call(", self->name, self->entry->signature);
    for (int i = 0; code && i < self->entry->n_params; i++) {
        PyObject *more = PyUnicode_FromFormat("%U%s, ", code, self->entry->params[i].name);
        Py_SETREF(code, more);
    }
    if (code) Py_SETREF(code, PyUnicode_FromFormat("%U)\n", code));
    return code;
}

static PyObject *define_twin(py_op *self, PyObject *scope, bool spelled)
{
    PyObject *code = twin_code(self, spelled), *found = NULL;
    const char *text = code ? PyUnicode_AsUTF8(code) : NULL;
    PyObject *done = text ? PyRun_String(text, Py_file_input, scope, scope) : NULL;
    if (done) found = PyDict_GetItemString(scope, self->name);
    Py_XDECREF(done);
    Py_XDECREF(code);
    return Py_XNewRef(found);
}

static PyObject *make_twin(py_op *self)
{
    PyObject *scope = PyDict_New(), *call = PyCFunction_New(&call_of_twin, (PyObject *)self);
    if (scope && call && PyDict_SetItemString(scope, "__builtins__", PyEval_GetBuiltins()) == 0 &&
        PyDict_SetItemString(scope, "call", call) == 0) {
        self->twin = define_twin(self, scope, true);
        if (!self->twin && PyErr_ExceptionMatches(PyExc_SyntaxError)) {
            PyErr_Clear();
            self->twin = define_twin(self, scope, false);
        }
    }
    Py_XDECREF(call);
    Py_XDECREF(scope);
    return self->twin;
}

/* Reads an attribute (__code__, __defaults__, …) from the twin. */
static PyObject *op_get(PyObject *obj, void *name)
{
    py_op *self = (py_op *)obj;
    return self->twin || make_twin(self) ? PyObject_GetAttrString(self->twin, name) : NULL;
}

static PyObject *op_call_twin(PyObject *callable, PyObject *const *values, size_t flagged, PyObject *keywords)
{
    return PyObject_Vectorcall(((py_op *)callable)->twin, values, flagged, keywords);
}

/* Sets __code__, __defaults__ and the like on the twin, which handles calls from then on. */
static int op_set(PyObject *obj, PyObject *value, void *name)
{
    py_op *self = (py_op *)obj;
    if (!self->twin && !make_twin(self)) return -1;
    int status =
        value ? PyObject_SetAttrString(self->twin, name, value) : PyObject_DelAttrString(self->twin, name);
    if (status == 0) self->function.vectorcall = op_call_twin;
    return status;
}

static PyObject *op_get_doc(PyObject *obj, void *closure)
{
    (void)closure;
    py_op *self = (py_op *)obj;
    if (!self->function.func_doc) self->function.func_doc = py_op_doc(self->op, self->entry);
    return Py_XNewRef(self->function.func_doc);
}

static int op_set_doc(PyObject *obj, PyObject *value, void *closure)
{
    (void)closure;
    Py_XSETREF(((py_op *)obj)->function.func_doc, Py_NewRef(value ? value : Py_None));
    return 0;
}

/* Pickled and copied by name. */
static PyObject *op_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(((py_op *)self)->function.func_qualname);
}

static PyObject *op_get_asks(PyObject *obj, void *closure)
{
    (void)closure;
    const char *asks = ((py_op *)obj)->entry->asks;
    return asks ? PyUnicode_FromString(asks) : Py_NewRef(Py_None);
}

static PyObject *op_get_op(PyObject *obj, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((py_op *)obj)->op->name);
}

static PyObject *op_get_pointwise(PyObject *obj, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((py_op *)obj)->op->flags & PROA_OP_ELEMENTWISE);
}

static PyGetSetDef op_getset[] = {
    {"__op__", op_get_op, NULL, "name of the op", NULL},
    {"__pointwise__", op_get_pointwise, NULL, "whether elements depend on those at their index alone", NULL},
    {"__asks__", op_get_asks, NULL, "rules of proa/_asks.py for calls that fail, or None", NULL},
    {"__doc__", op_get_doc, op_set_doc, NULL, NULL},
    {"__code__", op_get, op_set, NULL, "__code__"},
    {"__defaults__", op_get, op_set, NULL, "__defaults__"},
    {"__kwdefaults__", op_get, op_set, NULL, "__kwdefaults__"},
    {0},
};
static PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, "For pickle."}, {0}};

/* py_ready_ops fills in the base. */
PyTypeObject py_op_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "proa._core.Function",
    .tp_basicsize = sizeof(py_op),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(py_op, function.vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_getset = op_getset,
    .tp_methods = op_methods,
};

bool py_ready_ops(void)
{
    py_op_type.tp_base = &PyFunction_Type; /* in a shared library no constant */
    if (PyType_Ready(&py_op_type) != 0) return false;
    py_op_type.tp_new = NULL; /* they come from the table alone */
    return true;
}

/* ---- registration ---------------------------------------------------------------------- */

static bool add_names(PyObject *module, const py_op *self)
{
    for (const char *const *name = self->entry->names; *name; name++) {
        const char *last = strrchr(*name, '.') + 1;
        PyObject *owner = !strncmp(*name, "_core.", 6)            ? module
                          : !strncmp(*name, "Tensor.", 7)         ? (PyObject *)py_tensor_type
                          : !strncmp(*name, "paddle.Tensor.", 14) ? (PyObject *)py_tensor_type
                                                                  : NULL;
        if (owner && PyObject_SetAttrString(owner, last, (PyObject *)self) != 0) return false;
    }
    return true;
}

/* Names for pickle: module "proa.nn.functional", "relu"; module "proa", "Tensor.item". */
static bool name_op(py_op *self)
{
    const char *full = self->entry->names[0], *dot = strrchr(full, '.');
    bool core = !strncmp(full, "_core.", 6), method = !strncmp(full, "Tensor.", 7);
    char where[64];
    snprintf(where, sizeof where, "proa%.*s", method ? 0 : (int)(dot - full - 6), full + 6); /* "paddle" */
    PyObject *module = PyUnicode_InternFromString(core ? "proa._core" : where);
    self->name = dot + 1;
    self->function.func_module = module;
    self->function.func_name = PyUnicode_InternFromString(self->name);
    self->function.func_qualname = PyUnicode_InternFromString(method ? full : self->name);
    return module && self->function.func_name && self->function.func_qualname;
}

/* Makes a callable, which lives as long as the process and is not tracked by the garbage collector. */
static py_op *new_op(PyObject *module, const py_entry *entry, const proa_op *op)
{
    py_op *self = PyObject_GC_New(py_op, &py_op_type);
    if (!self) return NULL;
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
    self->function.func_globals = Py_NewRef(PyModule_GetDict(module));
    self->function.func_builtins = Py_NewRef(PyEval_GetBuiltins());
    self->function.vectorcall = op_call;
    self->entry = entry;
    self->op = op;
    if (!name_op(self)) return NULL;
    if (self->op->args_size <= ARGS_MAX && entry->n_params <= 63) return self;
    PyErr_Format(PyExc_SystemError, "%s has more arguments than the extension's capacity", self->op->name);
    return NULL;
}

PyObject *py_function_of(PyObject *module, const py_entry *entry, const proa_op *op)
{
    py_op *self = new_op(module, entry, op);
    if (!self) return NULL;
    self->of_extension = true;
    return Py_NewRef((PyObject *)self); /* one reference stays: callables are never freed */
}

bool py_add_ops(PyObject *module)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        callables[i] = new_op(module, &py_entries[i], proa_op_table[py_entries[i].op]);
        if (!callables[i] || !add_names(module, callables[i])) return false;
    }
    return true;
}

/* api("paddle.nn.functional"): {name: callable} of the op table's entries for that module. */
static PyObject *api(PyObject *module, PyObject *where)
{
    (void)module;
    Py_ssize_t n = 0;
    const char *prefix = PyUnicode_AsUTF8AndSize(where, &n);
    PyObject *found = prefix ? PyDict_New() : NULL;
    for (size_t i = 0; found && i < ENTRY_COUNT; i++)
        for (const char *const *name = py_entries[i].names; found && *name; name++) {
            if (strncmp(*name, prefix, (size_t)n) != 0 || (*name)[n] != '.' || strchr(*name + n + 1, '.'))
                continue;
            if (PyDict_SetItemString(found, *name + n + 1, (PyObject *)callables[i]) != 0) Py_CLEAR(found);
        }
    return found;
}

PyMethodDef py_op_functions[] = {
    {"api", api, METH_O, "The callables that the op table puts into a module of paddle."},
    {0},
};
