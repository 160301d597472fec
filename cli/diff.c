/* proa diff: compares two models, or the tensors of two .npy or .npz files. Variables of two models are
 * matched by the op slots that use them, not by name, so that two exports of one model compare equal. Uses
 * cli.h. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    const char *a, *b;
} pair;

typedef struct job {
    double tolerance;
    int64_t differences;
    cli_model a, b;
    pair *by_a, *by_b; /* open-addressing hash tables of matched variables, keyed by a's and by b's names */
    size_t capacity;
} job;

static PROA_PRINTF(2, 3) void differ(job *j, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    j->differences++;
}

/* ---- tensors --------------------------------------------------------------------------- */

static bool is_complex(const proa_tensor *t)
{
    return proa_dtype_of(t) == PROA_C64 || proa_dtype_of(t) == PROA_C128;
}

/* The elements as doubles; a complex number as two. */
static const double *as_doubles(proa_tensor *t)
{
    t = cli_npy_layout(proa_cast(t, is_complex(t) ? PROA_C128 : PROA_F64));
    return t ? proa_data(t) : NULL;
}

/* Compares tensors: elements are equal if their bytes are, if both are NaN, or if |x − y| ≤ tolerance ·
 * max(1, |x|, |y|). At tolerance 0 integers that are equal only as doubles differ. */
static void compare_elements(job *j, const char *what, proa_tensor *a, proa_tensor *b)
{
    int64_t n = proa_numel(a), parts = is_complex(a) ? 2 : 1, apart = 0;
    size_t item = proa_dtype_size(proa_dtype_of(a)) / (size_t)parts;
    bool integral = proa_dtype_of(a) < PROA_F16;
    double most = 0;
    a = cli_npy_layout(a);
    b = cli_npy_layout(b);
    if (!a || !b) return;
    item = proa_dtype_of(a) == PROA_F32 && item == 2 ? 4 : item; /* bfloat16 was converted to float32 */
    const char *p = proa_data(a), *q = proa_data(b);
    if (n == 0 || memcmp(p, q, (size_t)(n * parts) * item) == 0) return;
    const double *x = as_doubles(a), *y = as_doubles(b);
    for (int64_t i = 0; x && y && i < n * parts; i++) {
        if (memcmp(p + (size_t)i * item, q + (size_t)i * item, item) == 0) continue;
        if (isnan(x[i]) && isnan(y[i])) continue;
        double d = fabs(x[i] - y[i]), size = fmax(1, fmax(fabs(x[i]), fabs(y[i])));
        if (isinf(x[i]) || isinf(y[i])) d = x[i] == y[i] ? 0 : INFINITY;
        if (isfinite(d) && d <= j->tolerance * size && !(integral && d == 0 && j->tolerance == 0)) continue;
        if (isnan(d)) d = INFINITY;
        apart++;
        most = fmax(most, d);
    }
    if (apart)
        differ(j, "%s: %lld of %lld elements differ, by at most %.9g", what, (long long)apart,
               (long long)(n * parts), most);
}

static void compare_tensors(job *j, const char *what, proa_tensor *a, proa_tensor *b)
{
    if (!a || !b) {
        if (a || b) differ(j, "%s: has a value in the %s alone", what, a ? "first" : "second");
        return;
    }
    if (strcmp(cli_shape(a), cli_shape(b)) != 0) {
        differ(j, "%s: %s | %s", what, cli_shape(a), cli_shape(b));
        return;
    }
    PROA_SCOPE {
        compare_elements(j, what, a, b);
    }
}

static proa_status compare_files(job *j, const char *a, const char *b)
{
    proa_tensor *x = cli_npy_load(a), *y = x ? cli_npy_load(b) : NULL;
    PROA_TRY(proa_error());
    compare_tensors(j, "elements", x, y);
    return proa_error();
}

static const cli_named *named(const cli_named *items, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++)
        if (strcmp(items[i].name, name) == 0) return &items[i];
    return NULL;
}

static proa_status compare_archives(job *j, const char *a, const char *b)
{
    cli_named *x = NULL, *y = NULL;
    int64_t n = 0, k = 0;
    PROA_TRY(cli_npz_load(a, &x, &n));
    PROA_TRY(cli_npz_load(b, &y, &k));
    for (int64_t i = 0; i < n; i++) {
        const cli_named *other = named(y, k, x[i].name);
        if (other) compare_tensors(j, x[i].name, x[i].tensor, other->tensor);
        else differ(j, "%s: in the first alone", x[i].name);
    }
    for (int64_t i = 0; i < k; i++)
        if (!named(x, n, y[i].name)) differ(j, "%s: in the second alone", y[i].name);
    return proa_error();
}

/* ---- which variables correspond ---------------------------------------------------------- */

static size_t hash(const char *s)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The slot for `name` in a hash table keyed by .a: the name's, or a free one. */
static pair *spot(pair *table, size_t capacity, const char *name)
{
    size_t i = hash(name) & (capacity - 1);
    while (table[i].a && strcmp(table[i].a, name) != 0) i = (i + 1) & (capacity - 1);
    return &table[i];
}

static proa_status make_tables(job *j)
{
    size_t names = 16;
    for (int64_t i = 0; i < j->a.n_blocks; i++) names += (size_t)j->a.blocks[i].n_vars;
    for (int64_t i = 0; i < j->b.n_blocks; i++) names += (size_t)j->b.blocks[i].n_vars;
    for (int s = 0; s < 2; s++) { /* temporaries of wire ops that represent one op */
        const cli_model *m = s ? &j->b : &j->a;
        for (int64_t i = 0; i < m->n_blocks; i++)
            for (int64_t k = 0; k < m->blocks[i].n_ops; k++)
                for (int64_t o = 0; o < m->blocks[i].ops[k]->n_outputs + m->blocks[i].ops[k]->n_inputs; o++) {
                    const cli_op *op = m->blocks[i].ops[k];
                    names +=
                        (size_t)(o < op->n_outputs ? op->outputs[o] : op->inputs[o - op->n_outputs]).count;
                }
    }
    for (j->capacity = 64; j->capacity < 2 * names;) j->capacity *= 2;
    j->by_a = cli_array(j->capacity, sizeof *j->by_a);
    j->by_b = cli_array(j->capacity, sizeof *j->by_b);
    return proa_error();
}

/* The hash key of a variable: block and name, as names are unique in a block only. */
static const char *key_of(const cli_model *m, int64_t block, const char *name)
{
    return cli_format("%lld %s", (long long)cli_home(m, block, name), name);
}

static bool known(pair *table, size_t capacity, const char *key)
{
    return key && spot(table, capacity, key)->a;
}

/* Records that variables a and b match; false if one of them already matches another. */
static bool match(job *j, int64_t block, const char *a, const char *b)
{
    const char *key_a = key_of(&j->a, block, a), *key_b = key_of(&j->b, block, b);
    if (!key_a || !key_b) return true; /* out of memory: the error is set */
    pair *x = spot(j->by_a, j->capacity, key_a), *y = spot(j->by_b, j->capacity, key_b);
    if (x->a || y->a) return x->a && y->a && strcmp(x->b, key_b) == 0 && strcmp(y->b, key_a) == 0;
    *x = (pair){key_a, key_b};
    *y = (pair){key_b, key_a};
    const proa_var_info *v = cli_find(&j->a, block, a), *w = cli_find(&j->b, block, b);
    bool p = v && v->persistable, q = w && w->persistable;
    const char *what = p && q ? cli_format("parameter %s", a) : NULL;
    if (!what) return p == q;
    compare_tensors(j, what, proa_program_value(j->a.program, a), proa_program_value(j->b.program, b));
    return true;
}

/* ---- models ---------------------------------------------------------------------------- */

static void compare_ends(job *j, const char *what, int64_t n, int64_t k,
                         const proa_tensor *(*get)(const proa_program *, int64_t))
{
    if (n != k) differ(j, "%s: %lld | %lld", what, (long long)n, (long long)k);
    for (int64_t i = 0; i < n && i < k; i++) {
        const proa_tensor *a = get(j->a.program, i), *b = get(j->b.program, i);
        if (strcmp(cli_shape(a), cli_shape(b)) != 0)
            differ(j, "%s %lld: %s %s | %s %s", what, (long long)i, proa_name_of(a), cli_shape(a),
                   proa_name_of(b), cli_shape(b));
        if (!match(j, 0, proa_name_of(a), proa_name_of(b)))
            differ(j, "%s %lld: another variable: %s | %s", what, (long long)i, proa_name_of(a),
                   proa_name_of(b));
    }
}

static void compare_slots(job *j, int64_t block, const char *where, const cli_slot *a, int64_t n,
                          const cli_slot *b, int64_t k)
{
    bool same = n == k;
    for (int64_t i = 0; same && i < n; i++)
        same = strcmp(a[i].name, b[i].name) == 0 && a[i].count == b[i].count;
    if (!same) {
        differ(j, "%s: has other operands", where);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < a[i].count; v++)
            if (!match(j, block, a[i].vars[v], b[i].vars[v]))
                differ(j, "%s: %s is another variable: %s | %s", where, a[i].name, a[i].vars[v],
                       b[i].vars[v]);
}

static bool same_attr(const proa_op_attr *a, const proa_op_attr *b)
{
    bool same = a->type == b->type && a->i == b->i && a->f == b->f && a->count == b->count && !a->s == !b->s;
    if (!same || (a->s && strcmp(a->s, b->s) != 0)) return false;
    for (int64_t i = 0; i < a->count; i++)
        if ((a->ints && a->ints[i] != b->ints[i]) || (a->floats && a->floats[i] != b->floats[i]) ||
            (a->strings && strcmp(a->strings[i], b->strings[i]) != 0))
            return false;
    return true;
}

static void show_attr(job *j, const char *where, const char *name, const proa_op_attr *a,
                      const proa_op_attr *b)
{
    printf("%s: %s ", where, name);
    if (a) cli_print_attr(stdout, a);
    else printf("(none)");
    printf(" | ");
    if (b) cli_print_attr(stdout, b);
    else printf("(none)");
    printf("\n");
    j->differences++;
}

static void compare_ops(job *j, int64_t block, const char *where, const cli_op *a, const cli_op *b)
{
    if (strcmp(a->type, b->type) != 0) {
        differ(j, "%s: %s | %s", where, a->type, b->type);
        return;
    }
    where = cli_format("%s %s", where, a->type);
    if (!where) return;
    for (int64_t i = 0; i < a->n_attrs; i++) {
        const proa_op_attr *other = cli_attr(b, a->attrs[i].name);
        if (!other || !same_attr(&a->attrs[i], other))
            show_attr(j, where, a->attrs[i].name, &a->attrs[i], other);
    }
    for (int64_t i = 0; i < b->n_attrs; i++)
        if (!cli_attr(a, b->attrs[i].name)) show_attr(j, where, b->attrs[i].name, NULL, &b->attrs[i]);
    if (a->role != b->role) differ(j, "%s: role %d | %d", where, (int)a->role, (int)b->role);
    compare_slots(j, block, where, a->inputs, a->n_inputs, b->inputs, b->n_inputs);
    compare_slots(j, block, where, a->outputs, a->n_outputs, b->outputs, b->n_outputs);
}

static void list_alone(job *j, int64_t index, const cli_block *b, int64_t from, int64_t to, const char *whose)
{
    for (int64_t i = from; i < to; i++)
        differ(j, "block %lld op %lld %s: in the %s alone", (long long)index, (long long)i, b->ops[i]->type,
               whose);
}

/* Compares a block's ops. If the models have different numbers of ops, only the common prefix and suffix (by
 * type) are compared, and the ops between are listed as one model's alone. */
static void compare_blocks(job *j, int64_t index)
{
    const cli_block *a = &j->a.blocks[index], *b = &j->b.blocks[index];
    int64_t head = 0, tail = 0, less = a->n_ops < b->n_ops ? a->n_ops : b->n_ops;
    if (a->n_ops == b->n_ops) head = less;
    while (head < less && strcmp(a->ops[head]->type, b->ops[head]->type) == 0) head++;
    while (tail < less - head &&
           strcmp(a->ops[a->n_ops - 1 - tail]->type, b->ops[b->n_ops - 1 - tail]->type) == 0)
        tail++;
    for (int64_t i = 0; i < head + tail && !proa_error(); i++) {
        int64_t x = i < head ? i : a->n_ops - tail + i - head;
        int64_t y = i < head ? i : b->n_ops - tail + i - head;
        const char *where = cli_format("block %lld op %lld", (long long)index, (long long)x);
        if (where) compare_ops(j, index, where, a->ops[x], b->ops[y]);
    }
    list_alone(j, index, a, head, a->n_ops - tail, "first");
    list_alone(j, index, b, head, b->n_ops - tail, "second");
}

/* Compares parameters that no op uses, matched by name. */
static void compare_unused(job *j)
{
    for (int64_t i = 0; i < j->a.blocks[0].n_vars; i++) {
        const proa_var_info *v = &j->a.blocks[0].vars[i], *w = cli_find(&j->b, 0, v->name);
        if (!v->persistable || known(j->by_a, j->capacity, key_of(&j->a, 0, v->name))) continue;
        if (!w || !w->persistable) differ(j, "parameter %s: in the first alone", v->name);
        else if (!known(j->by_b, j->capacity, key_of(&j->b, 0, v->name))) match(j, 0, v->name, v->name);
    }
    for (int64_t i = 0; i < j->b.blocks[0].n_vars; i++) {
        const proa_var_info *w = &j->b.blocks[0].vars[i];
        if (w->persistable && !known(j->by_b, j->capacity, key_of(&j->b, 0, w->name)))
            differ(j, "parameter %s: in the second alone", w->name);
    }
}

static proa_status compare_models(job *j, const char *a, const char *b)
{
    PROA_TRY(cli_model_load(&j->a, a));
    PROA_TRY(cli_model_load(&j->b, b));
    PROA_TRY(make_tables(j));
    const proa_program *p = j->a.program, *q = j->b.program;
    compare_ends(j, "input", proa_program_input_count(p), proa_program_input_count(q), proa_program_input);
    if (j->a.n_blocks != j->b.n_blocks)
        differ(j, "blocks: %lld | %lld", (long long)j->a.n_blocks, (long long)j->b.n_blocks);
    for (int64_t i = 0; i < j->a.n_blocks && i < j->b.n_blocks; i++) compare_blocks(j, i);
    compare_ends(j, "output", proa_program_output_count(p), proa_program_output_count(q),
                 proa_program_output);
    compare_unused(j);
    return proa_error();
}

/* ---- the command ----------------------------------------------------------------------- */

static proa_status tolerance(cli_args *a, double *to)
{
    const char *text = NULL;
    char *end;
    PROA_TRY(cli_value(a, &text));
    *to = strtod(text, &end);
    if (end != text && !*end && *to >= 0 && isfinite(*to)) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--tolerance: expected a number of at least 0, got '%s'",
                     text);
}

static bool both_end(const char *const *files, const char *end)
{
    return cli_ends_with(files[0], end) && cli_ends_with(files[1], end);
}

int cli_diff(cli_args *a)
{
    job j = {0};
    const char *files[2] = {NULL, NULL};
    int n = 0;
    proa_status status = PROA_OK;
    for (cli_kind kind; status == PROA_OK && (kind = cli_next(a)) != CLI_END;) {
        if (kind == CLI_FILE && n < 2) files[n++] = a->value;
        else if (cli_is(a, "tolerance")) status = tolerance(a, &j.tolerance);
        else status = cli_model_option(a);
    }
    if (status == PROA_OK && n < 2)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "two files are compared: proa diff A B");
    if (status == PROA_OK)
        status = both_end(files, ".npy")   ? compare_files(&j, files[0], files[1])
                 : both_end(files, ".npz") ? compare_archives(&j, files[0], files[1])
                                           : compare_models(&j, files[0], files[1]);
    cli_model_free(&j.a);
    cli_model_free(&j.b);
    if (status != PROA_OK) return CLI_FAILED;
    return j.differences ? CLI_DIFFERENT : CLI_OK;
}
