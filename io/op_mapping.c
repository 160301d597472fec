/* Looks up an op's wire forms by Paddle's type name, and parses the op table's default and constant texts.
 * May use core, ops, the table and format.h. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/format.h"

#include "ops/registry.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

uint32_t proa__hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* Enters the forms of an op, the last first: buckets then list them in the op's order. Returns the next free
 * form. */
static proa__form *add_forms(proa__forms *forms, const proa_op *op, proa__form *form)
{
    for (int k = op->n_wires; k-- > 0; form++) {
        uint32_t bucket = proa__hash(op->wires[k].type) & forms->mask;
        *form = (proa__form){op, &op->wires[k], forms->buckets[bucket]};
        forms->buckets[bucket] = form;
    }
    return form;
}

proa_status proa__forms_build(proa__forms *forms, proa__arena *arena)
{
    size_t total = proa_composed_count, capacity = 64;
    const proa_op *added;
    for (uint32_t i = 0; i < proa_op_count; i++) total += proa_op_table[i]->n_wires;
    for (forms->added = 0; (added = proa__registered_op(forms->added)) != NULL; forms->added++)
        total += added->n_wires;
    while (capacity < total * 2) capacity *= 2;
    forms->mask = (uint32_t)capacity - 1;
    forms->buckets = proa__arena_array(arena, capacity, sizeof *forms->buckets);
    proa__form *form = proa__arena_array(arena, total, sizeof *form);
    if (!forms->buckets || !form) return proa_error();
    for (size_t i = forms->added; i-- > 0;) form = add_forms(forms, proa__registered_op(i), form);
    for (uint32_t i = proa_op_count; i-- > 0;) form = add_forms(forms, proa_op_table[i], form);
    for (uint32_t i = 0; i < proa_composed_count; i++, form++) {
        uint32_t bucket = proa__hash(proa_composed_table[i].type) & forms->mask;
        *form = (proa__form){NULL, &proa_composed_table[i], forms->buckets[bucket]};
        forms->buckets[bucket] = form;
    }
    return PROA_OK;
}

proa_status proa__forms_shared(proa__forms *forms)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static proa__forms shared;
    static proa__arena arena; /* lives as long as the process */
    pthread_mutex_lock(&lock);
    bool whole = shared.buckets && !proa__registered_op(shared.added);
    proa_status status = whole ? PROA_OK : proa__forms_build(&shared, &arena);
    if (status != PROA_OK) shared.buckets = NULL;
    *forms = shared;
    pthread_mutex_unlock(&lock);
    return status;
}

const proa__form *proa__forms_next(const proa__forms *forms, const proa__form *after, const char *type)
{
    const proa__form *f = after ? after->next : forms->buckets[proa__hash(type) & forms->mask];
    while (f && strcmp(f->wire->type, type) != 0) f = f->next;
    return f;
}

/* ---- text ------------------------------------------------------------------------------ */

bool proa__text_bool(const char *text)
{
    return strcasecmp(text, "true") == 0 || (isdigit((unsigned char)text[0]) && strtod(text, NULL) != 0);
}

double proa__text_float(const char *text)
{
    if (strcasecmp(text, "true") == 0) return 1;
    return strtod(text, NULL); /* "inf" and "-inf" too; "false" and "none" give 0 */
}

int64_t proa__text_int(const char *text)
{
    char *end;
    long long v = strtoll(text, &end, 0);
    if (*end == '.' || *end == 'e' || *end == 'E' || end == text) return (int64_t)proa__text_float(text);
    return v;
}

static const char *skip_separators(const char *p)
{
    while (*p && (isspace((unsigned char)*p) || strchr("[](),", *p))) p++;
    return p;
}

static const char *skip_item(const char *p)
{
    while (*p && !isspace((unsigned char)*p) && !strchr("[](),", *p)) p++;
    return p;
}

int64_t proa__text_count(const char *text)
{
    int64_t n = 0;
    for (const char *p = skip_separators(text); *p; p = skip_separators(skip_item(p))) n++;
    return n;
}

int proa__choice_of(const proa_field *f, const char *name)
{
    for (int i = 0; f->choices[i]; i++)
        if (strcmp(f->choices[i], name) == 0) return i;
    for (int i = 0; f->choices[i]; i++)
        if (strcasecmp(f->choices[i], name) == 0) return i;
    return strcmp(name, "AnyLayout") == 0 ? proa__choice_of(f, "ANY") : -1;
}

static proa_scalar scalar_of(const char *text)
{
    if (!*text || strcmp(text, "none") == 0) return (proa_scalar){0};
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
        return proa_scalar_bool(proa__text_bool(text));
    if (strpbrk(text, ".eEnN")) return proa_scalar_float(proa__text_float(text));
    return proa_scalar_int(proa__text_int(text));
}

static proa_dtype dtype_of(const char *text)
{
#define PROA_X(NAME, name, bytes, wire) \
    if (strcmp(text, #NAME) == 0 || strcmp(text, #name) == 0) return PROA_##NAME;
    PROA_DTYPES(PROA_X)
#undef PROA_X
    return isdigit((unsigned char)text[0]) ? proa__dtype_from_wire(proa__text_int(text)) : PROA_NODTYPE;
}

static proa_status numbers_from_text(const proa_field *f, void *at, const char *text, proa__arena *arena)
{
    int64_t n = proa__text_count(text);
    int64_t *ints = proa__arena_array(arena, (size_t)n, 8);
    double *floats = (double *)(void *)ints;
    if (!ints) return proa_error();
    const char *p = skip_separators(text);
    for (int64_t i = 0; i < n; i++, p = skip_separators(skip_item(p)))
        if (f->kind == PROA_FIELD_INTS) ints[i] = proa__text_int(p);
        else floats[i] = proa__text_float(p);
    if (f->kind == PROA_FIELD_INTS) *(proa_ints *)at = (proa_ints){n, ints, NULL, NULL};
    else *(proa_floats *)at = (proa_floats){n, floats};
    return PROA_OK;
}

proa_status proa__field_from_text(const proa_field *f, void *args, const char *text, proa__arena *arena)
{
    void *at = proa_field_at(f, args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_BOOL: *(bool *)at = proa__text_bool(text); break;
    case PROA_FIELD_INT: *(int64_t *)at = proa__text_int(text); break;
    case PROA_FIELD_FLOAT: *(double *)at = proa__text_float(text); break;
    case PROA_FIELD_DTYPE: *(proa_dtype *)at = dtype_of(text); break;
    case PROA_FIELD_SCALAR: *(proa_scalar *)at = scalar_of(text); break;
    case PROA_FIELD_BLOCK: *(struct proa_block **)at = NULL; break;
    case PROA_FIELD_ENUM: {
        int choice = proa__choice_of(f, text);
        *(int *)at = choice < 0 ? 0 : choice;
        break;
    }
    case PROA_FIELD_STRING: {
        size_t n = strlen(text);
        bool quoted = n >= 2 && text[0] == '"' && text[n - 1] == '"';
        char *copy = proa__arena_text(arena, text + quoted);
        if (!copy) return proa_error();
        if (quoted) copy[n - 2] = 0;
        *(const char **)at = copy;
        break;
    }
    case PROA_FIELD_INTS:
    case PROA_FIELD_FLOATS: return numbers_from_text(f, at, text, arena);
    default: return proa_fail(PROA_ERR_INTERNAL, "tensor field '%s' has no default text", f->name);
    }
    return PROA_OK;
}

#else
typedef int proa__no_forms; /* C wants a declaration in every file */
#endif
