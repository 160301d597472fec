/* Reader of Paddle's einsum: a sum of products by a composition of diagonals, sums, transposes and one matrix
 * product a pair of operands. The dims that both operands of a pair have and that stay are the product's
 * batch. May use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/linalg.h"
#include "impl/matmul.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include <ctype.h>
#include <string.h>

enum { OPERANDS = 8 };

/* A tensor and the label of each of its dims: a letter, or for the dims of an ellipsis the numbers 1, 2, …
 * from the right. */
typedef struct term {
    proa_tensor *t;
    int n;
    char label[PROA_MAX_DIMS];
} term;

static int find(const term *a, char label)
{
    for (int i = 0; i < a->n; i++)
        if (a->label[i] == label) return i;
    return -1;
}

static bool add(term *a, char label)
{
    if (a->n == PROA_MAX_DIMS) return false;
    a->label[a->n++] = label;
    return true;
}

static proa_status refuse(const char *equation, const char *why)
{
    return proa_fail(PROA_ERR_CORRUPT, "einsum: equation '%s' %s", equation, why);
}

/* ---- the equation ---------------------------------------------------------------------- */

/* Reads one operand's labels up to a comma, an arrow or the end; an ellipsis stands for `dims` dims. Returns
 * where it stopped, NULL for what is no label. */
static const char *read_labels(const char *at, int dims, term *a)
{
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        if (strncmp(at, "...", 3) == 0) {
            for (int i = dims; i > 0; i--)
                if (!add(a, (char)i)) return NULL;
            at += 2;
        } else if (!isalpha((unsigned char)*at) || !add(a, *at)) return NULL;
    }
    return at;
}

static int letters(const char *at)
{
    int n = 0;
    for (; *at && *at != ',' && *at != '-'; at++) n += isalpha((unsigned char)*at) != 0;
    return n;
}

/* Without an arrow: the ellipsis' dims, then the labels that occur once, in alphabetical order. */
static void implied_result(const term *parts, int64_t count, int dims, term *out)
{
    for (int i = dims; i > 0; i--) add(out, (char)i);
    for (int c = 'A'; c <= 'z'; c++) {
        int seen = 0;
        for (int64_t i = 0; i < count; i++)
            for (int k = 0; k < parts[i].n; k++) seen += parts[i].label[k] == c;
        if (seen == 1) add(out, (char)c);
    }
}

/* Labels of the operands, whose tensors are set, and of the result. */
static proa_status parse(const char *equation, term *parts, int64_t count, term *out)
{
    const char *at = equation;
    int most = 0;
    for (int64_t i = 0; i < count; i++) {
        int dims = parts[i].t->ndim - letters(at);
        bool open = false;
        for (const char *p = at; *p && *p != ',' && *p != '-'; p++) open |= *p == '.';
        if (dims < 0 || (dims > 0 && !open))
            return refuse(equation, "has another number of labels than an operand of dims");
        if (dims > most) most = dims;
        if (!(at = read_labels(at, dims, &parts[i])))
            return refuse(equation, "has what is neither a letter nor '...'");
        bool last = i + 1 == count;
        if (last == (*at == ',')) return refuse(equation, "has another number of terms than operands");
        if (!last) at++;
    }
    if (*at == 0) return implied_result(parts, count, most, out), PROA_OK;
    if (at[1] != '>' || !(at = read_labels(at + 2, most, out)) || *at)
        return refuse(equation, "has no result behind '->'");
    return PROA_OK;
}

/* ---- its parts ------------------------------------------------------------------------- */

/* A label that a term has twice: the diagonal of these dims. */
static void take_diagonals(term *a)
{
    for (int i = 0; i < a->n; i++)
        for (int k = i + 1; k < a->n; k++) {
            if (a->label[i] != a->label[k]) continue;
            char label = a->label[i];
            a->t = proa_diagonal(a->t, .axis1 = i, .axis2 = k); /* becomes the last dim */
            term rest = {.t = a->t};
            for (int j = 0; j < a->n; j++)
                if (j != i && j != k) add(&rest, a->label[j]);
            add(&rest, label);
            *a = rest;
            i = -1;
            break;
        }
}

/* Sums over the dims whose labels are neither in `keep` nor in `other` (NULL: none). */
static void sum_out(term *a, const term *keep, const term *other)
{
    int64_t axes[PROA_MAX_DIMS], n = 0;
    term rest = {0};
    for (int i = 0; i < a->n; i++) {
        if (find(keep, a->label[i]) >= 0 || (other && find(other, a->label[i]) >= 0)) add(&rest, a->label[i]);
        else axes[n++] = i;
    }
    rest.t = n ? proa_sum(a->t, .axis = (proa_ints){n, axes, NULL, NULL}) : a->t;
    *a = rest;
}

/* a's dims in the order of `labels`, which are all of them. */
static proa_tensor *ordered(const term *a, const term *labels)
{
    int64_t perm[PROA_MAX_DIMS];
    bool same = true;
    for (int i = 0; i < labels->n; i++) perm[i] = find(a, labels->label[i]), same &= perm[i] == i;
    return same ? a->t : proa_transpose(a->t, ((proa_ints){labels->n, perm, NULL, NULL}));
}

/* n dims from `at` on as one; a new one for none. */
static proa_tensor *joined(proa_tensor *t, int at, int n)
{
    if (n == 0) return proa_unsqueeze(t, PROA_INTS(at));
    return n == 1 ? t : proa_flatten(t, .start_axis = at, .stop_axis = at + n - 1);
}

/* ---- the product of a pair --------------------------------------------------------------- */

/* Labels of a pair: in both and kept, in one alone, in both and summed over. */
typedef struct pair {
    term batch, left, right, inner;
} pair;

/* Appends n labels of another term, from `from` on. */
static bool append(term *a, const term *more, int from, int n)
{
    bool fits = true;
    for (int i = from; i < from + n; i++) fits &= add(a, more->label[i]);
    return fits;
}

static int unknown_lengths(const term *a, const term *labels)
{
    int found = 0;
    for (int i = 0; i < labels->n; i++) found += a->t->shape[find(a, labels->label[i])] < 0;
    return found;
}

/* [batch, left, inner] · [batch, inner, right], each part joined to one dim, and its result taken apart. */
static proa_tensor *joined_product(const term *a, const term *b, const pair *p, term *out)
{
    term of_a = p->batch, of_b = p->batch;
    int batch = p->batch.n, left = p->left.n, inner = p->inner.n, right = p->right.n;
    append(&of_a, &p->left, 0, left), append(&of_a, &p->inner, 0, inner);
    append(&of_b, &p->inner, 0, inner), append(&of_b, &p->right, 0, right);
    proa_tensor *x = ordered(a, &of_a), *y = ordered(b, &of_b);
    if (!x || !y) return NULL;
    int64_t dims[PROA_MAX_DIMS] = {0}; /* 0: as the product has it */
    for (int i = 0; left > 1 && i < left; i++) dims[batch + i] = x->shape[batch + i];
    for (int i = 0; i < right; i++) dims[batch + left + i] = y->shape[batch + inner + i];
    x = joined(joined(x, batch + left, inner), batch, left);
    y = joined(joined(y, batch + inner, right), batch, inner);
    *out = p->batch;
    append(out, &p->left, 0, left), append(out, &p->right, 0, right);
    proa_tensor *t = proa_matmul(x, y);
    return left == 1 && right == 1 ? t : proa_reshape(t, ((proa_ints){out->n, dims, NULL, NULL}));
}

/* The same without a reshape, whose lengths would be unknown: all of left and right but their last dims are
 * dims of the batch, of length 1 in the other operand. */
static proa_tensor *apart_product(const term *a, const term *b, const pair *p, term *out)
{
    term of_a = p->batch, of_b = p->batch;
    int batch = p->batch.n, inner = p->inner.n, last = p->left.n > 0, end = p->right.n > 0;
    int left = p->left.n - last, right = p->right.n - end;
    append(&of_a, &p->left, 0, left + last), append(&of_a, &p->inner, 0, inner);
    append(&of_b, &p->right, 0, right), append(&of_b, &p->inner, 0, inner);
    append(&of_b, &p->right, right, end);
    proa_tensor *x = joined(ordered(a, &of_a), batch + left + last, inner);
    proa_tensor *y = joined(ordered(b, &of_b), batch + right, inner);
    if (!last) x = proa_unsqueeze(x, PROA_INTS(batch));
    if (!end) y = proa_unsqueeze(y, PROA_INTS(batch + right + 1));
    for (int i = 0; i < right; i++) x = proa_unsqueeze(x, PROA_INTS(batch + left));
    for (int i = 0; i < left; i++) y = proa_unsqueeze(y, PROA_INTS(batch));
    *out = p->batch;
    append(out, &p->left, 0, left), append(out, &p->right, 0, right);
    append(out, &p->left, left, last), append(out, &p->right, right, end);
    proa_tensor *t = proa_matmul(x, y);
    if (!end) t = proa_squeeze(t, .axis = PROA_INTS(-1));
    return last ? t : proa_squeeze(t, .axis = PROA_INTS(end ? -2 : -1));
}

/* The product of a pair, summed over labels that both have and that `keep` has not. */
static term product(const char *equation, const term *a, const term *b, const term *keep)
{
    pair p = {0};
    term out = {0};
    for (int i = 0; i < a->n; i++) {
        char label = a->label[i];
        add(find(b, label) < 0 ? &p.left : find(keep, label) >= 0 ? &p.batch : &p.inner, label);
    }
    for (int i = 0; i < b->n; i++)
        if (find(a, b->label[i]) < 0) add(&p.right, b->label[i]);
    int left = p.left.n, right = p.right.n;
    if (p.batch.n + left + right + 2 > PROA_MAX_DIMS) {
        refuse(equation, "makes a tensor of too many dims");
        return out;
    }
    int unknown = (left > 1 ? unknown_lengths(a, &p.left) : 0) +
                  (left > 1 || right > 1 ? unknown_lengths(b, &p.right) : 0);
    out.t = unknown > 1 ? apart_product(a, b, &p, &out) : joined_product(a, b, &p, &out);
    return out;
}

proa_status einsum_read(proa_wire_reader *r)
{
    const char *equation = proa_wire_string(r, "equation", "");
    proa_tensors given = proa_wire_inputs(r, "Operands");
    PROA_TRY(proa_error());
    if (given.count < 1 || given.count > OPERANDS)
        return proa_fail(PROA_ERR_CORRUPT, "einsum: has %lld operands; expected 1 to %d",
                         (long long)given.count, OPERANDS);
    term parts[OPERANDS] = {{0}}, out = {0};
    for (int64_t i = 0; i < given.count; i++) parts[i].t = given.at[i];
    PROA_TRY(parse(equation, parts, given.count, &out));
    for (int64_t i = 0; i < given.count; i++) take_diagonals(&parts[i]);
    term all = parts[0];
    for (int64_t i = 1; i < given.count; i++) {
        term keep = out;
        for (int64_t k = i + 1; k < given.count; k++)
            for (int j = 0; j < parts[k].n; j++)
                if (find(&keep, parts[k].label[j]) < 0 && !add(&keep, parts[k].label[j]))
                    return refuse(equation, "has too many labels");
        sum_out(&all, &keep, &parts[i]);
        sum_out(&parts[i], &keep, &all);
        if (!all.t || !parts[i].t) return proa_error();
        all = product(equation, &all, &parts[i], &keep);
        if (!all.t) return proa_error();
    }
    sum_out(&all, &out, NULL);
    for (int i = 0; i < out.n; i++)
        if (find(&all, out.label[i]) < 0 || out.n != all.n)
            return refuse(equation, "has a result with a label of no operand, or twice");
    return proa_wire_result(r, "Out", ordered(&all, &out));
}
