/* Kernels of roi_align, roi_pool and psroi_pool, and of their gradients. The unit of work is forward a
 * channel of a region (roi_align) or a cell of a region (the others), backward one channel of an image over
 * all its regions, so that sums do not depend on threads. May use core and kernels only. */
#include "kernels/iterator.h"
#include "ops/regions/owners.h"

#include <float.h>
#include <math.h>

/* Largest number of samples of a cell along one axis: far beyond any image's pixels. */
enum { ROI_SAMPLES_MAX = 1 << 16, ROI_SLOTS = 64 };

/* Samples of one axis of a region: where its taps begin among all, and how many a cell has. */
typedef struct roi_axis {
    int64_t at, each;
} roi_axis;

/* Job of roi_align and of its gradient: `from` is x or d_out, `to` is out or d_x. */
typedef struct align_job {
    const char *op;
    const void *boxes, *from;
    void *to, *taps, *work;
    const roi_owners *owners;
    roi_axis *axes; /* two a region: down, across */
    int64_t batch, channels, height, width, n, rows, columns, sampling;
    double scale;
    bool aligned;
} align_job;

/* One call of roi_pool, psroi_pool or a gradient of theirs. */
typedef struct pool_job {
    const void *boxes, *from;
    void *to;
    int64_t *arg_max;
    const roi_owners *owners;
    int64_t batch, channels, height, width, n, rows, columns, out_channels;
    double scale;
} pool_job;

static const float largest_float = FLT_MAX;
static const double largest_double = DBL_MAX;

#define T float
#define CEIL ceilf
#define FLOOR floorf
#define ROUND roundf
#include "ops/regions/cpu/roi.inc"
#undef T
#undef CEIL
#undef FLOOR
#undef ROUND
#define T double
#define CEIL ceil
#define FLOOR floor
#define ROUND round
#include "ops/regions/cpu/roi.inc"

/* ---- roi_align -------------------------------------------------------------------------- */

static proa_status align(align_job *job, const proa_tensor *x, const proa_tensor *boxes, bool back)
{
    bool wide = x->dtype == PROA_F64;
    size_t item = wide ? sizeof(double) : sizeof(float), bytes;
    job->batch = x->shape[0], job->channels = x->shape[1], job->height = x->shape[2],
    job->width = x->shape[3];
    job->n = boxes->shape[0];
    job->boxes = boxes->data;
    if (!proa__mul_size((size_t)job->n + 1, 2 * sizeof *job->axes, &bytes)) return proa_error();
    job->axes = proa_scratch(bytes);
    job->work = proa_scratch(((size_t)job->width + 16) * ROI_SLOTS * item);
    proa_status status = job->axes && job->work ? PROA_OK : proa_error();
    if (status == PROA_OK) status = wide ? align_taps_double(job) : align_taps_float(job);
    if (status == PROA_OK) {
        int64_t items = back ? job->batch * job->channels : job->n * job->channels;
        int64_t each = back ? job->height * job->width : job->rows * job->columns * 16;
        proa__parallel(ROI_SLOTS, rows_grain(each) * ROI_SLOTS / (items + 1) + 1,
                       back   ? (wide ? align_back_double : align_back_float)
                       : wide ? align_slots_double
                              : align_slots_float,
                       job);
    }
    proa_scratch_free(job->taps);
    proa_scratch_free(job->work);
    proa_scratch_free(job->axes);
    return status;
}

#define ALIGN_JOB(a, name)                                                                     \
    {                                                                                          \
        .op = (name), .rows = (a)->pooled_height, .columns = (a)->pooled_width,                \
        .sampling = (a)->sampling_ratio, .scale = (a)->spatial_scale, .aligned = (a)->aligned, \
        .owners = &owners                                                                      \
    }

PROA_KERNEL(roi_align_cpu, roi_align)
{
    roi_owners owners;
    align_job job = ALIGN_JOB(a, "roi_align");
    PROA_TRY(owners_of(job.op, a->boxes_num, a->offsets, a->x->shape[0], a->boxes->shape[0], &owners));
    job.from = a->x->data, job.to = a->out->data;
    proa_status status = a->out->numel == 0 ? PROA_OK : align(&job, a->x, a->boxes, false);
    proa_scratch_free(owners.first);
    return status;
}

PROA_KERNEL(roi_align_grad_cpu, roi_align_grad)
{
    roi_owners owners;
    align_job job = ALIGN_JOB(a, "roi_align_grad");
    PROA_TRY(owners_of(job.op, a->boxes_num, a->offsets, a->x->shape[0], a->boxes->shape[0], &owners));
    job.from = a->d_out->data, job.to = a->d_x->data;
    proa_status status = a->d_x->numel == 0 ? PROA_OK : align(&job, a->x, a->boxes, true);
    proa_scratch_free(owners.first);
    return status;
}

/* ---- roi_pool and psroi_pool ------------------------------------------------------------- */

#define POOL_JOB(a)                                                                            \
    {                                                                                          \
        .boxes = (a)->boxes->data, .batch = (a)->x->shape[0], .channels = (a)->x->shape[1],    \
        .height = (a)->x->shape[2], .width = (a)->x->shape[3], .n = (a)->boxes->shape[0],      \
        .rows = (a)->pooled_height, .columns = (a)->pooled_width, .scale = (a)->spatial_scale, \
        .owners = &owners                                                                      \
    }

/* Runs a range function over n items that read about `each` elements. */
static proa_status pool_run(const char *op, const proa_tensor *num, const proa_tensor *offsets, pool_job *job,
                            int64_t n, int64_t each, proa_range_fn fn)
{
    roi_owners owners;
    PROA_TRY(owners_of(op, num, offsets, job->batch, job->n, &owners));
    job->owners = &owners;
    if (n > 0) proa__parallel(n, rows_grain(each), fn, job);
    proa_scratch_free(owners.first);
    return PROA_OK;
}

PROA_KERNEL(roi_pool_cpu, roi_pool)
{
    roi_owners owners;
    pool_job job = POOL_JOB(a);
    job.from = a->x->data, job.to = a->out->data;
    job.arg_max = (int64_t *)(void *)a->arg_max->data;
    return pool_run("roi_pool", a->boxes_num, a->offsets, &job,
                    a->out->numel ? job.n * job.rows * job.columns : 0, job.channels * 8,
                    a->x->dtype == PROA_F64 ? pool_cells_double : pool_cells_float);
}

PROA_KERNEL(roi_pool_grad_cpu, roi_pool_grad)
{
    roi_owners owners;
    pool_job job = POOL_JOB(a);
    job.from = a->d_out->data, job.to = a->d_x->data;
    job.arg_max = (int64_t *)(void *)a->arg_max->data;
    int64_t plane = job.height * job.width;
    for (int64_t i = 0; i < a->arg_max->numel; i++)
        if (job.arg_max[i] < -1 || job.arg_max[i] >= plane)
            return OP_FAIL("roi_pool_grad", OUT_OF_RANGE, "arg_max",
                           "entry %lld is %lld; expected an element of x's planes, 0 to %lld, or -1 for none",
                           (long long)i, (long long)job.arg_max[i], (long long)plane - 1);
    return pool_run("roi_pool_grad", a->boxes_num, a->offsets, &job, job.batch * job.channels, plane,
                    a->x->dtype == PROA_F64 ? pool_back_double : pool_back_float);
}

PROA_KERNEL(psroi_pool_cpu, psroi_pool)
{
    roi_owners owners;
    pool_job job = POOL_JOB(a);
    job.from = a->x->data, job.to = a->out->data, job.out_channels = a->output_channels;
    return pool_run("psroi_pool", a->boxes_num, a->offsets, &job,
                    a->out->numel ? job.n * job.rows * job.columns : 0, job.out_channels * 8,
                    a->x->dtype == PROA_F64 ? parts_cells_double : parts_cells_float);
}

PROA_KERNEL(psroi_pool_grad_cpu, psroi_pool_grad)
{
    roi_owners owners;
    pool_job job = POOL_JOB(a);
    job.from = a->d_out->data, job.to = a->d_x->data, job.out_channels = a->output_channels;
    return pool_run("psroi_pool_grad", a->boxes_num, a->offsets, &job, job.batch * job.channels,
                    job.height * job.width, a->x->dtype == PROA_F64 ? parts_back_double : parts_back_float);
}
