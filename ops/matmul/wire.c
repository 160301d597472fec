/* Older and fused forms of the matrix products in Paddle's programs: matmul (1.x), mul and fc are read;
 * linear is written as several ops. May use core and the ops. */
#include "impl/elementwise.h"
#include "impl/matmul.h"
#include "impl/shape.h"

#include "core/tensor.h"

#include <proa/wire.h>

#include <string.h>

/* Returns a vector whose transpose flag is set as a column (x) or a row (y) and clears the flag; returns
 * any other t unchanged. */
static proa_tensor *turned(proa_tensor *t, bool *transpose, int64_t axis)
{
    if (!t || t->ndim != 1 || !*transpose) return t;
    *transpose = false;
    return proa_unsqueeze(t, PROA_INTS(axis));
}

/* matmul of Paddle 1.x: alpha scales the product, two vectors make one element. */
proa_status matmul_read_v1(proa_wire_reader *r)
{
    bool turn_x = proa_wire_int(r, "transpose_X", 0) != 0, turn_y = proa_wire_int(r, "transpose_Y", 0) != 0;
    proa_tensor *x = turned(proa_wire_input(r, "X"), &turn_x, 1),
                *y = turned(proa_wire_input(r, "Y"), &turn_y, 0);
    if (!x || !y) return proa_error();
    proa_tensor *out = proa_matmul(x, y, .transpose_x = turn_x, .transpose_y = turn_y);
    if (out && out->ndim == 0) out = proa_unsqueeze(out, PROA_INTS(0));
    double alpha = proa_wire_float(r, "alpha", 1);
    if (alpha != 1) out = proa_scale(out, .scale = PROA_SCALAR(alpha));
    return proa_wire_result(r, "Out", out);
}

/* Product of dims [from, to) of t; −1 when one is unknown. */
static int64_t dims_product(const proa_tensor *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++) n = n < 0 || t->shape[i] < 0 ? -1 : n * t->shape[i];
    return n;
}

/* t as a matrix: its first `rows` dims against the others. */
static proa_tensor *as_matrix(proa_tensor *t, int rows)
{
    if (!t || (t->ndim == 2 && rows == 1)) return t;
    int64_t m = dims_product(t, 0, rows), n = dims_product(t, rows, t->ndim);
    if (m < 0 && n < 0) {
        proa_fail(PROA_ERR_UNSUPPORTED, "mul: cannot flatten %s at dim %d: both parts have unknown dims",
                  proa__tensor_text(t), rows);
        return NULL;
    }
    return proa_reshape(t, PROA_INTS(m, n));
}

/* x (first x_rows dims are rows) times y, with x's row dims and y's column dims as the result's. */
static proa_tensor *flat_product(proa_tensor *x, int64_t x_rows, proa_tensor *y, int64_t y_rows)
{
    if (!x || !y) return NULL;
    if (x_rows < 1 || x_rows >= x->ndim || y_rows < 1 || y_rows >= y->ndim) {
        proa_fail(PROA_ERR_CORRUPT, "mul: num_col_dims %lld and %lld do not split %s and %s",
                  (long long)x_rows, (long long)y_rows, proa__tensor_text(x), proa__tensor_text(y));
        return NULL;
    }
    if (x_rows == x->ndim - 1 && y->ndim == 2) return proa_matmul(x, y);
    proa_tensor *out = proa_matmul(as_matrix(x, (int)x_rows), as_matrix(y, (int)y_rows));
    int64_t shape[2 * PROA_MAX_DIMS], n = 0;
    for (int i = 0; i < x_rows; i++) shape[n++] = x->shape[i];
    for (int i = (int)y_rows; i < y->ndim; i++) shape[n++] = y->shape[i];
    if (n == 2) return out;
    return proa_reshape(out, ((proa_ints){n, shape, NULL, NULL}));
}

proa_status matmul_read_mul(proa_wire_reader *r)
{
    proa_tensor *out = flat_product(proa_wire_input(r, "X"), proa_wire_int(r, "x_num_col_dims", 1),
                                    proa_wire_input(r, "Y"), proa_wire_int(r, "y_num_col_dims", 1));
    return proa_wire_result(r, "Out", out);
}

/* fc, which Paddle's inference passes make: flattened product, bias, perhaps relu. */
proa_status linear_read_fc(proa_wire_reader *r)
{
    const char *activation = proa_wire_string(r, "activation_type", "");
    proa_tensor *bias = proa_wire_input(r, "Bias");
    proa_tensor *out = flat_product(proa_wire_input(r, "Input"), proa_wire_int(r, "in_num_col_dims", 1),
                                    proa_wire_input(r, "W"), 1);
    if (proa_wire_int(r, "padding_weights", 0))
        return proa_fail(PROA_ERR_UNSUPPORTED,
                         "fc: padding_weights is not supported; export without fc fusion");
    if (out && bias && !proa__absent(bias)) out = proa_add(out, bias->ndim > 1 ? proa_flatten(bias) : bias);
    if (activation && !strcmp(activation, "relu")) out = proa_relu(out);
    else if (activation && *activation)
        return proa_fail(PROA_ERR_UNSUPPORTED, "fc: activation_type '%s' is unknown; expected '' or 'relu'",
                         activation);
    return proa_wire_result(r, "Out", out);
}

proa_status linear_write(const void *args, proa_wire_writer *w)
{
    const proa_linear_args *a = args;
    proa_tensor *product = a->out;
    if (!proa__absent(a->bias)) {
        proa_meta m = proa_meta_of(a->out);
        product = proa_wire_temporary(w, &m);
        if (!product) return proa_error();
    }
    PROA_TRY(proa_wire_op(w, "matmul_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Y", a->weight));
    PROA_TRY(proa_wire_put_output(w, "Out", product));
    PROA_TRY(proa_wire_put_int(w, "trans_x", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "trans_y", PROA_WIRE_BOOLEAN, 0));
    if (proa__absent(a->bias)) return PROA_OK;
    PROA_TRY(proa_wire_op(w, "elementwise_add"));
    PROA_TRY(proa_wire_put_input(w, "X", product));
    PROA_TRY(proa_wire_put_input(w, "Y", a->bias));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, -1);
}
