/* SelectedRows: a table of which only some rows are stored. The handle holds the stored rows like a dense
 * tensor; `extra` holds their row numbers and the table's height. Summing duplicate rows needs ops and is in
 * ops/. May use core only. */
#include "core/copy.h"
#include "core/device.h"

bool proa_is_rows(const proa_tensor *t) { return t && t->kind == PROA_ROWS; }

void proa__rows_attach(proa_tensor *t, const proa_tensor *like)
{
    proa__rows *rows = like->extra;
    atomic_fetch_add_explicit(&rows->refs, 1, memory_order_relaxed);
    t->extra = rows;
    t->kind = PROA_ROWS;
    t->flags |= PROA_T_NOT_DENSE;
}

void proa__rows_detach(proa_tensor *t)
{
    proa__rows *rows = t->extra;
    t->extra = NULL;
    t->kind = PROA_DENSE;
    t->flags &= ~(uint32_t)PROA_T_NOT_DENSE;
    if (atomic_fetch_sub_explicit(&rows->refs, 1, memory_order_acq_rel) != 1) return;
    proa_release(rows->index);
    proa__free(rows);
}

bool proa__rows_fit(const proa_tensor *t, const int64_t *shape, int ndim)
{
    if (t->ndim != ndim || ndim < 1 || proa__rows_of(t)->height != shape[0]) return false;
    return memcmp(t->shape + 1, shape + 1, (size_t)(ndim - 1) * sizeof *shape) == 0;
}

static bool is_plain(const proa_tensor *t)
{
    return t && t != proa_none && t->kind == PROA_DENSE && t->storage &&
           !(t->flags & (PROA_T_SYMBOLIC | PROA_T_META));
}

static proa_status check(const proa_tensor *index, const proa_tensor *values, int64_t height)
{
    if (!is_plain(index) || index->ndim != 1 || (index->dtype != PROA_I32 && index->dtype != PROA_I64))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "rows_new: index is %s; expected int32 or int64 [n], with data",
                         proa__tensor_text(index));
    if (!is_plain(values) || values->ndim < 1 || values->dtype < PROA_F16 ||
        values->shape[0] != index->shape[0])
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "rows_new: values is %s; expected a floating dense tensor with a row an entry of "
                         "index %s",
                         proa__tensor_text(values), proa__tensor_text(index));
    if (height >= 0) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "rows_new: height is %lld; expected the table's rows",
                     (long long)height);
}

/* Copies a row index into an int64 [n] tensor that nobody else holds. */
static proa_tensor *own_index(proa_tensor *index, int64_t height)
{
    PROA__ON_CPU; /* the host reads the row indices, on whatever device the rows are */
    index = proa__copy_to(index, PROA_CPU);
    if (!index) return NULL;
    proa_tensor *own = proa_empty(PROA_SHAPE(index->shape[0]), PROA_I64);
    int64_t *to = own ? (int64_t *)(void *)own->data : NULL;
    for (int64_t i = 0; own && i < index->shape[0]; i++) {
        const char *at = index->data + i * index->strides[0];
        int32_t narrow;
        if (index->dtype == PROA_I64) memcpy(&to[i], at, sizeof *to);
        else memcpy(&narrow, at, sizeof narrow), to[i] = narrow;
        if (to[i] >= 0 && to[i] < height) continue;
        proa_fail(PROA_ERR_OUT_OF_RANGE, "rows_new: index: entry %lld is %lld; expected 0 to %lld",
                  (long long)i, (long long)to[i], (long long)height - 1);
        return NULL;
    }
    return own;
}

proa_tensor *proa_rows_new(proa_tensor *index, proa_tensor *values, int64_t height)
{
    if (proa_error() || check(index, values, height) != PROA_OK) return NULL;
    proa_tensor *own = own_index(index, height);
    values = own ? proa__contiguous(values) : NULL;
    proa_tensor *t = values ? proa__tensor_alias(values) : NULL;
    proa__rows *rows = t ? proa__alloc(sizeof *rows) : NULL;
    if (!rows) return NULL;
    atomic_init(&rows->refs, 1);
    rows->index = proa_keep(own);
    rows->height = height;
    t->extra = rows;
    t->kind = PROA_ROWS;
    t->flags |= PROA_T_NOT_DENSE;
    return t;
}

static bool is_rows(const char *who, const proa_tensor *t)
{
    if (proa_error()) return false;
    if (proa_is_rows(t)) return true;
    proa_fail(PROA_ERR_WRONG_TYPE, "%s: %s is not a tensor of kind rows", who, proa__tensor_text(t));
    return false;
}

proa_tensor *proa_rows_index(const proa_tensor *t)
{
    return is_rows("rows_index", t) ? proa__rows_of(t)->index : NULL;
}

int64_t proa_rows_height(const proa_tensor *t)
{
    return is_rows("rows_height", t) ? proa__rows_of(t)->height : -1;
}

proa_tensor *proa_rows_values(proa_tensor *t)
{
    return is_rows("rows_values", t) ? proa__tensor_view(t, t->ndim, t->shape, t->strides, 0) : NULL;
}
