/* Forms of Paddle 1.x that make constants, ask questions, or compute with boxes. May use public ops. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/random.h"
#include "impl/reduce.h"
#include "impl/shape.h"

proa_status empty_read(proa_wire_reader *r)
{
    proa_tensor *shape = proa_wire_input(r, "ShapeTensor");
    proa_tensors entries = proa_wire_inputs(r, "ShapeTensorList");
    proa_ints dims = proa_wire_ints(r, "shape");
    if (!shape) return proa_error();
    if (entries.count)
        dims = (proa_ints){entries.count, dims.count == entries.count ? dims.at : NULL, NULL, entries.at};
    else if (proa__is_given(shape)) dims = (proa_ints){0, NULL, shape, NULL};
    return proa_wire_result(r, "Out",
                            proa_full(dims, PROA_SCALAR(0), .dtype = proa_wire_dtype(r, "dtype", PROA_F32)));
}

proa_status fill_read(proa_wire_reader *r)
{
    proa_dtype dtype = proa_wire_dtype(r, "dtype", PROA_F32);
    proa_tensor *made =
        proa_assign_value(proa_wire_ints(r, "shape"), PROA_F64, .values = proa_wire_floats(r, "value"));
    return proa_wire_result(r, "Out", dtype == PROA_F64 ? made : proa_cast(made, dtype));
}

proa_status fill_zeros_like2_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (!x) return proa_error();
    return proa_wire_result(
        r, "Out",
        proa_full_like(x, PROA_SCALAR(0), .dtype = proa_wire_dtype(r, "dtype", (proa_dtype)x->dtype)));
}

/* A seed: the one given, or a number drawn. */
proa_status seed_read(proa_wire_reader *r)
{
    int64_t seed = proa_wire_int(r, "seed", 0);
    return proa_wire_result(r, "Out",
                            seed ? proa_full(PROA_INTS(1), PROA_SCALAR(seed), .dtype = PROA_I32)
                                 : proa_randint(1, INT32_MAX, PROA_INTS(1), .dtype = PROA_I32));
}

proa_status isfinite_all_read(proa_wire_reader *r)
{
    proa_tensor *all = proa_all(proa_isfinite(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(all, PROA_INTS(1)));
}

proa_status isinf_any_read(proa_wire_reader *r)
{
    proa_tensor *any = proa_any(proa_isinf(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(any, PROA_INTS(1)));
}

proa_status isnan_any_read(proa_wire_reader *r)
{
    proa_tensor *any = proa_any(proa_isnan(proa_wire_input(r, "X")));
    return proa_wire_result(r, "Out", proa_reshape(any, PROA_INTS(1)));
}

/* Corners of quadrangles: 4 · column − in at even channels, 4 · row − in at odd ones. */
proa_status polygon_box_transform_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input");
    if (!x) return proa_error();
    if (x->ndim != 4 || x->shape[1] <= 0 || x->shape[1] % 2 || x->shape[2] < 0 || x->shape[3] < 0)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "polygon_box_transform: Input has shape %s; expected [N, C, H, W] with C even and H, W known",
            proa__shape_text(x->shape, x->ndim));
    int64_t h = x->shape[2], w = x->shape[3];
    proa_dtype dtype = (proa_dtype)x->dtype;
    proa_tensor *columns = proa_arange(PROA_SCALAR(0), PROA_SCALAR(4 * w), PROA_SCALAR(4), .dtype = dtype);
    proa_tensor *rows = proa_arange(PROA_SCALAR(0), PROA_SCALAR(4 * h), PROA_SCALAR(4), .dtype = dtype);
    columns = proa_expand(columns, PROA_INTS(h, w));
    rows = proa_expand(proa_unsqueeze(rows, PROA_INTS(1)), PROA_INTS(h, w));
    proa_tensor *pair = proa_stack(PROA_LIST(columns, rows));
    return proa_wire_result(r, "Output", proa_subtract(proa_tile(pair, PROA_INTS(x->shape[1] / 2, 1, 1)), x));
}

static proa_tensor *side(proa_tensor *boxes, int64_t from, double more)
{
    return proa__times(
        proa_subtract(proa__part(boxes, -1, from + 2, from + 3), proa__part(boxes, -1, from, from + 1)), 1,
        more);
}

/* The overlap of two sets of boxes along one direction. */
static proa_tensor *overlap(proa_tensor *a, proa_tensor *b, int64_t from, double more)
{
    proa_tensor *begin = proa_maximum(proa__part(a, -1, from, from + 1), proa__part(b, -1, from, from + 1));
    proa_tensor *end =
        proa_minimum(proa__part(a, -1, from + 2, from + 3), proa__part(b, -1, from + 2, from + 3));
    return proa_relu(proa__times(proa_subtract(end, begin), 1, more));
}

/* Intersection over union of each box of X with each of Y. */
proa_status iou_similarity_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    double more = proa_wire_int(r, "box_normalized", 1) ? 0 : 1;
    if (!x || !y) return proa_error();
    proa_tensor *a = proa_unsqueeze(x, PROA_INTS(1)), *b = proa_unsqueeze(y, PROA_INTS(0));
    proa_tensor *both = proa_multiply(overlap(a, b, 0, more), overlap(a, b, 1, more));
    proa_tensor *sum = proa_add(proa_multiply(side(a, 0, more), side(a, 1, more)),
                                proa_multiply(side(b, 0, more), side(b, 1, more)));
    proa_tensor *iou = proa_divide(both, proa__times(proa_subtract(sum, both), 1, 1e-10));
    return proa_wire_result(r, "Out", proa_squeeze(iou, .axis = PROA_INTS(-1)));
}
