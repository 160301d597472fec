/* Kernels of interpolate and its gradient. May use core, kernels and ops headers. */
#include "kernels/rowwise.h"
#include "ops/vision/interpolate.h"
#include "kernels/upcast.h"

#define T float
#define WEIGHTS weight
#include "interpolate.inc"
#undef T
#undef WEIGHTS
#define T double
#define WEIGHTS exact
#include "interpolate.inc"
#undef T
#undef WEIGHTS

static proa_status resize(const vision_resize *r, proa_tensor *to, const proa_tensor *from, bool back)
{
    const proa_tensor *small = back ? to : from, *large = back ? from : to;
    proa_upcast w[2] = {0};
    resize_job j;
    if (to->numel == 0) return PROA_OK;
    if (from->numel == 0) {
        memset(to->data, 0, (size_t)to->numel * proa_dtype_size((proa_dtype)to->dtype));
        return PROA_OK;
    }
    PROA_TRY(proa__resize_begin(&j, r, to->dtype == PROA_F64, to->ndim, small->shape, large->shape));
    if (rows_is_integer(to->dtype)) {
        j.from = from->data, j.to = to->data;
        proa__resize_integers(&j, proa_dtype_size((proa_dtype)to->dtype));
        proa__resize_end(&j);
        return PROA_OK;
    }
    proa_dtype as = proa__upcast_dtype(to);
    proa_status s = proa__upcast_read(&w[0], from, as);
    if (!s) s = proa__upcast_write(&w[1], to, as);
    if (!s) {
        j.from = w[0].data, j.to = w[1].data;
        int64_t rows = j.axis[0].out * j.axis[1].out, row = j.axis[2].out * j.inner;
        if (back)
            proa__parallel(j.outer, rows_grain(rows * row),
                           as == PROA_F64 ? resize_images_back_double : resize_images_back_float, &j);
        else
            proa__parallel(j.outer * rows, rows_grain(row),
                           as == PROA_F64 ? resize_rows_double : resize_rows_float, &j);
    }
    proa__upcast_end(w, 2, s == PROA_OK);
    proa__resize_end(&j);
    return s;
}

PROA_KERNEL(interpolate_cpu, interpolate)
{
    return resize(&VISION_RESIZE("interpolate", a), a->out, a->x, false);
}

PROA_KERNEL(interpolate_grad_cpu, interpolate_grad)
{
    return resize(&VISION_RESIZE("interpolate_grad", a), a->d_x, a->d_out, true);
}
