/* Arithmetic of SelectedRows, composed of ops: merges equal rows, adds, makes dense. May use core and public
 * ops. */
#include "core/device.h"
#include "ops/selected_rows/selected_rows.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/embedding.h"
#include "impl/index.h"
#include "impl/shape.h"

static bool is_ascending(const proa_tensor *index)
{
    const int64_t *row = (const int64_t *)(const void *)index->data;
    for (int64_t i = 1; i < index->numel; i++)
        if (row[i] <= row[i - 1]) return false;
    return true;
}

/* [count, …]: sums of the rows of values [n, …] with equal numbers in `place`, all below count. */
static proa_tensor *sum_rows(proa_tensor *values, proa_tensor *place, int64_t count)
{
    int64_t length = 1, shape[PROA_MAX_DIMS];
    memcpy(shape, values->shape, sizeof shape);
    for (int i = 1; i < values->ndim; i++) length *= shape[i];
    shape[0] = count;
    int device = proa_device_use(proa__device_id(values));
    proa_tensor *like = proa_empty(PROA_SHAPE(count, length), (proa_dtype)values->dtype);
    proa_device_use(device);
    proa_tensor *flat = proa_reshape(values, PROA_INTS(values->shape[0], length));
    if (place && flat) place = proa__copy_to(place, proa__device_id(flat));
    proa_tensor *sums = proa_embedding_grad(place, like, flat);
    return proa_reshape(sums, ((proa_ints){values->ndim, shape, NULL, NULL}));
}

proa_tensor *proa_rows_merge(proa_tensor *t)
{
    proa_tensor *index = proa_rows_index(t);
    if (!index || is_ascending(index)) return index ? t : NULL;
    proa_unique_result found = proa_unique(index, .return_inverse = true);
    proa_tensor *values = proa_rows_values(t);
    if (!values) return NULL; /* NULL, too, after an error before it */
    proa_tensor *sums = sum_rows(values, found.inverse, found.out->numel);
    return sums ? proa_rows_new(found.out, sums, proa_rows_height(t)) : NULL;
}

/* Adds the stored rows to a table in place. */
static proa_tensor *add_rows_to(proa_tensor *table, proa_tensor *t)
{
    proa_tensor *merged = proa_rows_merge(t);
    if (!table || !merged) return NULL;
    proa_tensor *index = proa_rows_index(merged);
    if (index) index = proa__copy_to(index, proa__device_id(table));
    return proa_index_add_(table, index, 0, proa_rows_values(merged));
}

static proa_ints table_shape(const proa_tensor *t, int64_t *shape)
{
    memcpy(shape, t->shape, sizeof t->shape);
    shape[0] = proa_rows_height(t);
    return (proa_ints){t->ndim, shape, NULL, NULL};
}

proa_tensor *proa_rows_to_dense(proa_tensor *t)
{
    int64_t shape[PROA_MAX_DIMS];
    if (!proa_rows_index(t)) return NULL;
    int device = proa_device_use(proa__device_id(t));
    proa_tensor *table = proa_full(table_shape(t, shape), 0, .dtype = (proa_dtype)t->dtype);
    proa_device_use(device);
    return add_rows_to(table, t);
}

/* Adds two SelectedRows by concatenation: the rows of a, then those of b. */
static proa_tensor *join(proa_tensor *a, proa_tensor *b)
{
    int64_t shape[PROA_MAX_DIMS];
    proa_ints table = table_shape(a, shape);
    if (a->dtype != b->dtype || !proa__rows_fit(b, table.at, (int)table.count)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "add: %s and %s are rows of different tables",
                  proa__tensor_text(a), proa__tensor_text(b));
        return NULL;
    }
    proa_tensor *index = proa_concat(PROA_LIST(proa_rows_index(a), proa_rows_index(b)));
    proa_tensor *values = proa_concat(PROA_LIST(proa_rows_values(a), proa_rows_values(b)));
    return values ? proa_rows_new(index, values, shape[0]) : NULL;
}

proa_tensor *proa_rows_add(proa_tensor *a, proa_tensor *b) { return proa__rows_add(a, b, false); }

proa_tensor *proa__rows_add(proa_tensor *a, proa_tensor *b, bool reuse)
{
    if (proa_error()) return NULL;
    if (!proa_is_rows(a) && !proa_is_rows(b)) return proa_add(a, b);
    if (!a || !b || proa__absent(a) || proa__absent(b)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "rows_add: expected two tensors, got %s and %s",
                  proa__tensor_text(a), proa__tensor_text(b));
        return NULL;
    }
    if (proa_is_rows(a) && proa_is_rows(b)) {
        proa_tensor *both = join(a, b);
        return both ? proa_rows_merge(both) : NULL;
    }
    proa_tensor *dense = proa_is_rows(a) ? b : a, *rows = proa_is_rows(a) ? a : b;
    if (dense->dtype != rows->dtype || !proa__rows_fit(rows, dense->shape, dense->ndim)) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "add: %s is not of the table %s", proa__tensor_text(rows),
                  proa__tensor_text(dense));
        return NULL;
    }
    return add_rows_to(reuse && dense == a ? a : proa_assign(dense), rows);
}
