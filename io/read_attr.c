/* Converts attributes of a program file's ops to the types of the op table's fields (numbers, lists,
 * scalars, dtypes, enums), from any type that a version of Paddle may have written. May use core and io's
 * own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/program_read.h"

#include <math.h>

bool proa__attr_int(const pb_attr *a, int64_t *v)
{
    switch ((int)a->type) {
    case PROA_WIRE_INT: *v = a->i; return true;
    case PROA_WIRE_LONG: *v = a->l; return true;
    case PROA_WIRE_BOOLEAN: *v = a->b; return true;
    case PROA_WIRE_INTS: *v = a->n_ints == 1 ? a->ints[0] : 0; return a->n_ints == 1;
    case PROA_WIRE_LONGS: *v = a->n_longs == 1 ? a->longs[0] : 0; return a->n_longs == 1;
    case PROA_WIRE_FLOAT:
    case PROA_WIRE_FLOAT64: {
        double f = (int)a->type == PROA_WIRE_FLOAT ? (double)a->f : a->float64;
        *v = fabs(f) < 0x1p62 ? (int64_t)f : 0;
        return fabs(f) < 0x1p62 && (double)*v == f;
    }
    case PROA_WIRE_SCALAR:
        if (!a->scalar || a->scalar->type > PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__LONG) return false;
        *v = a->scalar->type == PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__LONG ? a->scalar->i : a->scalar->b;
        return true;
    default: return false;
    }
}

/* A scalar as a double, whole numbers rounded; false for a complex one. */
static bool scalar_float(const pb_scalar *s, double *v)
{
    switch ((int)s->type) {
    case PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__BOOLEAN: *v = s->b; return true;
    case PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__LONG: *v = (double)s->i; return true;
    case PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__FLOAT64: *v = s->r; return true;
    default: return false;
    }
}

bool proa__attr_float(const pb_attr *a, double *v)
{
    int64_t i;
    switch ((int)a->type) {
    case PROA_WIRE_FLOAT: *v = (double)a->f; return true;
    case PROA_WIRE_FLOAT64: *v = a->float64; return true;
    case PROA_WIRE_FLOATS: *v = a->n_floats == 1 ? (double)a->floats[0] : 0; return a->n_floats == 1;
    case PROA_WIRE_STRING: *v = a->s ? proa__text_float(a->s) : 0; return a->s && a->s[0];
    case PROA_WIRE_SCALAR:
        if (a->scalar && scalar_float(a->scalar, v)) return true;
        break;
    default: break;
    }
    bool ok = proa__attr_int(a, &i);
    if (ok) *v = (double)i;
    return ok;
}

static bool scalars_are_real(const pb_attr *a)
{
    double ignored;
    for (size_t i = 0; i < a->n_scalars; i++)
        if (!scalar_float(a->scalars[i], &ignored)) return false;
    return true;
}

/* Sets *n to the number of elements of a list, or to 1 for a single number; false for other types. */
static bool attr_count(const pb_attr *a, size_t *n)
{
    switch ((int)a->type) {
    case PROA_WIRE_INTS: *n = a->n_ints; return true;
    case PROA_WIRE_LONGS: *n = a->n_longs; return true;
    case PROA_WIRE_BOOLEANS: *n = a->n_bools; return true;
    case PROA_WIRE_FLOATS: *n = a->n_floats; return true;
    case PROA_WIRE_FLOAT64S: *n = a->n_float64s; return true;
    case PROA_WIRE_SCALARS: *n = a->n_scalars; return scalars_are_real(a);
    case PROA_WIRE_INT:
    case PROA_WIRE_LONG:
    case PROA_WIRE_BOOLEAN:
    case PROA_WIRE_FLOAT:
    case PROA_WIRE_FLOAT64: *n = 1; return true;
    default: return false;
    }
}

static double attr_nth(const pb_attr *a, size_t i)
{
    double v = 0;
    switch ((int)a->type) {
    case PROA_WIRE_INTS: return a->ints[i];
    case PROA_WIRE_LONGS: return (double)a->longs[i];
    case PROA_WIRE_BOOLEANS: return a->bools[i];
    case PROA_WIRE_FLOATS: return (double)a->floats[i];
    case PROA_WIRE_FLOAT64S: return a->float64s[i];
    case PROA_WIRE_SCALARS: return scalar_float(a->scalars[i], &v) ? v : 0;
    default: return proa__attr_float(a, &v) ? v : 0;
    }
}

bool proa__attr_ints(const pb_attr *a, proa__arena *arena, proa_ints *v)
{
    size_t n;
    if (!attr_count(a, &n)) return false;
    int64_t *at = proa__arena_array(arena, n, sizeof *at);
    *v = (proa_ints){at ? (int64_t)n : 0, at, NULL, NULL};
    for (size_t i = 0; i < n && at; i++) {
        double f;
        if ((int)a->type == PROA_WIRE_INTS) at[i] = a->ints[i];
        else if ((int)a->type == PROA_WIRE_LONGS) at[i] = a->longs[i];
        else if ((int)a->type == PROA_WIRE_SCALARS &&
                 a->scalars[i]->type == PADDLE__FRAMEWORK__PROTO__SCALAR__TYPE__LONG)
            at[i] = a->scalars[i]->i;
        else if (n == 1 && proa__attr_int(a, &at[0])) continue;
        else if (f = attr_nth(a, i), fabs(f) < 0x1p62 && (double)(int64_t)f == f) at[i] = (int64_t)f;
        else return false;
    }
    return true;
}

bool proa__attr_floats(const pb_attr *a, proa__arena *arena, proa_floats *v)
{
    size_t n;
    if (!attr_count(a, &n)) return false;
    double *at = proa__arena_array(arena, n, sizeof *at);
    *v = (proa_floats){at ? (int64_t)n : 0, at};
    for (size_t i = 0; i < n && at; i++) at[i] = attr_nth(a, i);
    return true;
}

static bool attr_scalar(const pb_attr *a, proa_scalar *v)
{
    int64_t i;
    double f;
    int type = (int)a->type;
    if (type == PROA_WIRE_STRING) {
        bool given = a->s && a->s[0];
        *v = given ? proa_scalar_float(proa__text_float(a->s)) : (proa_scalar){0};
        return true;
    }
    if (type == PROA_WIRE_SCALAR && a->scalar && a->scalar->c) {
        *v = proa_scalar_complex(a->scalar->c->r, a->scalar->c->i);
        return true;
    }
    if ((type == PROA_WIRE_FLOAT || type == PROA_WIRE_FLOAT64 || !proa__attr_int(a, &i)) &&
        proa__attr_float(a, &f))
        *v = proa_scalar_float(f);
    else if (proa__attr_int(a, &i))
        *v = type == PROA_WIRE_BOOLEAN ? proa_scalar_bool(i != 0) : proa_scalar_int(i);
    else return false;
    return true;
}

proa_status proa__attr_dtype(const char *attr, int64_t number, proa_dtype *v)
{
    *v = number == -1 ? PROA_NODTYPE : proa__dtype_from_wire(number);
    if (number == -1 || *v != PROA_NODTYPE) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s is data type number %lld, which is not supported",
                     attr, (long long)number);
}

static proa_status enum_of(const proa_field *f, const pb_attr *a, int *v)
{
    int64_t i, n = 0;
    *v = -1;
    while (f->choices[n]) n++;
    if ((int)a->type == PROA_WIRE_STRING && a->s) *v = proa__choice_of(f, a->s);
    else if (proa__attr_int(a, &i) && i >= 0 && i < n) *v = (int)i;
    if (*v >= 0) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED, "attribute %s is '%s', which is no %s", a->name, a->s ? a->s : "?",
                     f->enum_name);
}

proa_status proa__attr_to_field(proa_wire_reader *r, const proa_field *f, void *args, const pb_attr *a)
{
    void *at = proa_field_at(f, args);
    int64_t i = 0;
    bool ok = false;
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_BOOL:
        ok = proa__attr_int(a, &i);
        *(bool *)at = i != 0;
        break;
    case PROA_FIELD_INT: ok = proa__attr_int(a, at); break;
    case PROA_FIELD_FLOAT: ok = proa__attr_float(a, at); break;
    case PROA_FIELD_DTYPE:
        if (!(ok = proa__attr_int(a, &i))) break;
        return proa__attr_dtype(a->name, i, at);
    case PROA_FIELD_ENUM: return enum_of(f, a, at);
    case PROA_FIELD_INTS: ok = proa__attr_ints(a, &r->load->arena, at); break;
    case PROA_FIELD_FLOATS: ok = proa__attr_floats(a, &r->load->arena, at); break;
    case PROA_FIELD_STRING:
        ok = (int)a->type == PROA_WIRE_STRING && a->s;
        *(const char **)at = ok ? a->s : "";
        break;
    case PROA_FIELD_STRINGS:
        ok = (int)a->type == PROA_WIRE_STRINGS;
        *(proa_strings *)at = (proa_strings){ok ? (int64_t)a->n_strings : 0, (const char *const *)a->strings};
        break;
    case PROA_FIELD_SCALAR: ok = attr_scalar(a, at); break;
    default: return proa_fail(PROA_ERR_INTERNAL, "attribute %s fills a tensor", a->name);
    }
    if (ok) return proa_error();
    return proa_fail(PROA_ERR_CORRUPT, "attribute %s of type number %d does not fit '%s'", a->name,
                     (int)a->type, f->name);
}

bool proa__attr_holds(const char *text, const pb_attr *a)
{
    size_t n;
    double v;
    if ((int)a->type == PROA_WIRE_STRING) return a->s && strcmp(a->s, text) == 0;
    if ((int)a->type == PROA_WIRE_FLOAT) return a->f == (float)proa__text_float(text);
    if (!attr_count(a, &n)) return true;
    if ((int64_t)n != proa__text_count(text)) return false;
    if (n == 1 && proa__attr_float(a, &v)) return v == proa__text_float(text);
    const char *p = text;
    for (size_t i = 0; i < n; i++) {
        p += strspn(p, "[](), ");
        if (attr_nth(a, i) != proa__text_float(p)) return false;
        p += strcspn(p, ",");
    }
    return true;
}

#else
typedef int proa__no_read_attr; /* C wants a declaration in every file */
#endif
