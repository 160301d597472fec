/* index_put in Paddle's programs, which give it a list of tensors: an index per axis, or a mask over several
 * axes. Ours takes one tensor of points or one mask. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_util.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/shape.h"

/* The indices by axis: a mask's are the columns of its points. −1 on error. */
static int columns_of(proa_tensors indices, proa_tensor **columns)
{
    int n = 0;
    for (int64_t i = 0; i < indices.count; i++) {
        proa_tensor *t = indices.at[i];
        int axes = t->dtype == PROA_BOOL ? t->ndim : 1;
        if (n + axes > PROA_MAX_DIMS)
            return OP_FAIL("index_put", INVALID_ARGUMENT, "indices", "stand for more than %d axes",
                           PROA_MAX_DIMS),
                   -1;
        proa_tensor *points = t->dtype == PROA_BOOL ? proa_nonzero(t) : NULL;
        for (int d = 0; d < axes; d++) {
            columns[n] = !points ? t->dtype == PROA_I64 ? t : proa_cast(t, PROA_I64)
                                 : proa_slice(points, PROA_INTS(1), PROA_INTS(d), PROA_INTS(d + 1),
                                              .decrease_axis = PROA_INTS(1));
            if (!columns[n++]) return -1;
        }
    }
    return n;
}

/* The axes of x that the points are on, as a tensor of their lengths. */
static proa_tensor *lengths_of(proa_tensor *x, int n)
{
    return proa_cast(proa_slice(proa_shape(x), PROA_INTS(0), PROA_INTS(0), PROA_INTS(n)), PROA_I64);
}

/* Points [their common shape…, axes] of x; negative indices count from the end. */
static proa_tensor *points_of(proa_tensor *x, proa_tensors indices)
{
    proa_tensor *columns[PROA_MAX_DIMS], *zeros = NULL;
    int n = columns_of(indices, columns);
    for (int i = 0; i < n; i++) {
        proa_tensor *none = proa_multiply(columns[i], proa__zero_of(columns[i]));
        zeros = zeros ? proa_add(zeros, none) : none;
    }
    if (!zeros) return NULL;
    for (int i = 0; i < n; i++) columns[i] = proa_add(columns[i], zeros);
    proa_tensor *points = proa_stack(((proa_tensors){n, columns}), .axis = -1), *lengths = lengths_of(x, n);
    if (!points || !lengths) return NULL;
    return proa_where(proa_less_than(points, proa__zero_of(points)), proa_add(points, lengths), points);
}

proa_status index_put_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "x");
    proa_tensors indices = proa_wire_inputs(r, "indices");
    if (!x || indices.count == 0) return proa_wire_result(r, "out", NULL);
    bool mask = indices.count == 1 && indices.at[0]->dtype == PROA_BOOL;
    proa_tensor *index = mask ? indices.at[0] : points_of(x, indices);
    proa_tensor *out = index ? proa_index_put(x, index, proa_wire_input(r, "value"),
                                              .accumulate = proa_wire_int(r, "accumulate", 0) != 0)
                             : NULL;
    return proa_wire_result(r, "out", out);
}

/* Writes each axis's coordinates of the points as a tensor of its own. Paddle refuses 0-D indices: a single
 * point gets an axis of length 1. */
static proa_status put_columns(proa_wire_writer *w, proa_tensor *points, proa_tensors columns)
{
    proa_meta m = proa_meta_of(points);
    if (m.ndim == 1) {
        int64_t depth = m.shape[0];
        m.ndim = 2, m.shape[0] = 1, m.shape[1] = depth;
        proa_tensor *row = proa_wire_temporary(w, &m);
        if (!row) return proa_error();
        PROA_TRY(proa__wire_put_axis(w, "unsqueeze2", points, row, 0));
        points = row;
    }
    m.ndim--;
    PROA_TRY(proa_wire_op(w, "unstack"));
    PROA_TRY(proa_wire_put_input(w, "X", points));
    for (int64_t i = 0; i < columns.count; i++) {
        columns.at[i] = proa_wire_temporary(w, &m);
        if (!columns.at[i]) return proa_error();
        PROA_TRY(proa_wire_put_output(w, "Y", columns.at[i]));
    }
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, m.ndim));
    return proa_wire_put_int(w, "num", PROA_WIRE_INT, columns.count);
}

proa_status index_put_write(const void *args, proa_wire_writer *w)
{
    const proa_index_put_args *a = args;
    proa_tensor *at[PROA_MAX_DIMS] = {a->index};
    proa_tensors indices = {1, at};
    if (a->index->dtype != PROA_BOOL) {
        proa_tensor *points = a->index;
        indices.count = points->shape[points->ndim - 1];
        PROA_TRY(put_columns(w, points, indices));
    }
    PROA_TRY(proa_wire_op(w, "index_put"));
    PROA_TRY(proa_wire_put_input(w, "x", a->x));
    for (int64_t i = 0; i < indices.count; i++) PROA_TRY(proa_wire_put_input(w, "indices", indices.at[i]));
    PROA_TRY(proa_wire_put_input(w, "value", a->value));
    PROA_TRY(proa_wire_put_output(w, "out", a->out));
    return proa_wire_put_int(w, "accumulate", PROA_WIRE_BOOLEAN, a->accumulate);
}
