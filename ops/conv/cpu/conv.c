/* Portable convolutions by im2col, one chunk of columns at a time, and the packed matrix product. Half types
 * are converted to float32 and back. May use core and kernels only. */
#include "kernels/gemm.h"
#include "ops/conv/geometry.h"
#include "ops/conv/scanlines.h"
#include "ops/epilogue.h"

/* One call: operands in the accumulator's type, and how its work is cut. */
typedef struct conv_job {
    const conv_geometry *g;
    const void *in;     /* input side: read forwards and for the filter, else NULL */
    const void *filter; /* read forwards and backwards */
    const void *out;    /* output side: read backwards */
    const void *bias;   /* NULL without one */
    void *result;
    char *work;
    size_t work_each;
    int64_t slots, tasks;
    int64_t chunk, chunks;                              /* output pixels at a time */
    int64_t in_block, in_blocks, out_block, out_blocks; /* channels of a group at a time */
} conv_job;

enum { CONV_CHUNK = 256, CONV_CHUNK_MIN = 64 };

static inline bool is_pointwise(const conv_geometry *g)
{
    for (int i = 0; i < 3; i++)
        if (g->kernel[i] != 1 || g->stride[i] != 1 || g->before[i] || g->in[i] != g->out[i]) return false;
    return true;
}

/* Output columns [from, to) of a row whose input column for this tap lies inside the image. */
static inline void inside(const conv_geometry *g, int64_t tap, int64_t *from, int64_t *to)
{
    int64_t shift = tap * g->dilation[2] - g->before[2], s = g->stride[2];
    *from = shift < 0 ? (-shift + s - 1) / s : 0;
    int64_t capacity = g->in[2] - 1 - shift;
    *to = capacity < 0 ? 0 : capacity / s + 1;
    if (*to > g->out[2]) *to = g->out[2];
    if (*from > *to) *from = *to;
}

#define NAME f32
#define T float
#include "ops/conv/cpu/body.inc"

#define NAME f64
#define T double
#include "ops/conv/cpu/body.inc"

#include "ops/conv/low_output_channels.h"

/* ---- half types: whole operands as float32 ---- */

static void widen_range(const uint16_t *from, float *to, int64_t n, proa_dtype dtype)
{
    if (dtype == PROA_F16)
        for (int64_t i = 0; i < n; i++) to[i] = proa__f16_to_f32(from[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = proa__bf16_to_f32(from[i]);
}

static void low_input_range(const float *from, uint16_t *to, int64_t n, proa_dtype dtype)
{
    if (dtype == PROA_F16)
        for (int64_t i = 0; i < n; i++) to[i] = proa__f32_to_f16(from[i]);
    else
        for (int64_t i = 0; i < n; i++) to[i] = proa__f32_to_bf16(from[i]);
}

/* A float32 copy of t (NULL for NULL or an absent tensor, and when there is no memory). */
static float *widened(const proa_tensor *t)
{
    if (!t || proa__absent(t)) return NULL;
    float *to = proa_scratch((size_t)t->numel * sizeof(float));
    if (to) widen_range((const uint16_t *)(const void *)t->data, to, t->numel, (proa_dtype)t->dtype);
    return to;
}

static proa_status run_kind(conv_kind kind, bool wide, conv_job *job)
{
    bool few = !wide && proa__conv_has_low_output_channels(job->g);
    switch (kind) {
    case FORWARD:
        if (few) return low_output_forward(job);
        return wide ? forward_f64(job) : forward_f32(job);
    case BACKWARD_DATA: return wide ? to_input_f64(job) : to_input_f32(job);
    default:
        if (few) return low_output_filter(job);
        return wide ? to_filter_f64(job) : to_filter_f32(job);
    }
}

static proa_status run_half(conv_kind kind, conv_job *job, const proa_tensor *const *operands,
                            proa_tensor *result)
{
    float *wide[4] = {NULL, NULL, NULL, NULL};
    float *to = proa_scratch((size_t)result->numel * sizeof(float));
    bool ok = to != NULL;
    for (int i = 0; i < 4 && ok; i++) {
        wide[i] = widened(operands[i]);
        ok = wide[i] || !operands[i] || proa__absent(operands[i]);
    }
    job->in = wide[0], job->filter = wide[1], job->out = wide[2], job->bias = wide[3], job->result = to;
    proa_status status = ok ? run_kind(kind, false, job) : proa_error();
    if (status == PROA_OK)
        low_input_range(to, (uint16_t *)(void *)result->data, result->numel, (proa_dtype)result->dtype);
    for (int i = 0; i < 4; i++) proa_scratch_free(wide[i]);
    proa_scratch_free(to);
    return status;
}

/* in, filter, out, bias: NULL where the kind does not read it. */
static proa_status conv_run(conv_kind kind, const conv_params *p, const proa_tensor *in,
                            const proa_tensor *filter, const proa_tensor *out, const proa_tensor *bias,
                            proa_tensor *result)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(p, &g));
    if (result->numel == 0) return PROA_OK;
    conv_job job = {.g = &g};
    if (result->dtype == PROA_F16 || result->dtype == PROA_BF16) {
        const proa_tensor *const operands[] = {in, filter, out, bias};
        return run_half(kind, &job, operands, result);
    }
    job.in = in ? in->data : NULL, job.filter = filter ? filter->data : NULL,
    job.out = out ? out->data : NULL;
    job.bias = bias && !proa__absent(bias) ? bias->data : NULL;
    job.result = result->data;
    return run_kind(kind, result->dtype == PROA_F64, &job);
}

PROA_KERNEL(conv_cpu, conv1d)
{
    const int rank = proa__spatial_rank(a->x);
    const conv_params p = CONV_PARAMS(a, rank, PROA__OF_RANK(rank, "conv", ""));
    return conv_run(FORWARD, &p, a->x, a->weight, NULL, a->bias, a->out);
}

PROA_KERNEL(conv_transpose_cpu, conv1d_transpose)
{
    const int rank = proa__spatial_rank(a->x);
    const conv_params p = CONV_TRANSPOSE_PARAMS(a, rank, PROA__OF_RANK(rank, "conv", "_transpose"));
    return conv_run(BACKWARD_DATA, &p, NULL, a->weight, a->x, a->bias, a->out);
}

PROA_KERNEL(conv_grad_input_cpu, conv2d_grad_input)
{
    const int rank = proa__spatial_rank(a->x);
    const conv_params p = CONV_PARAMS(a, rank, PROA__OF_RANK(rank, "conv", "_grad_input"));
    return conv_run(BACKWARD_DATA, &p, NULL, a->weight, a->d_out, NULL, a->d_x);
}

PROA_KERNEL(conv_grad_filter_cpu, conv2d_grad_filter)
{
    const int rank = proa__spatial_rank(a->x);
    const conv_params p = CONV_PARAMS(a, rank, PROA__OF_RANK(rank, "conv", "_grad_filter"));
    return conv_run(BACKWARD_WEIGHTS, &p, a->x, NULL, a->d_out, NULL, a->d_weight);
}

PROA_KERNEL_ANYWHERE(conv2d_fused_cpu, conv2d_fused)
{
    proa_conv2d_args conv = {.x = a->x,
                             .weight = a->weight,
                             .bias = a->bias,
                             .stride = a->stride,
                             .padding = a->padding,
                             .dilation = a->dilation,
                             .groups = a->groups,
                             .data_format = a->data_format,
                             .padding_algorithm = a->padding_algorithm,
                             .out = a->out};
    return proa__epilogue_compose("conv2d", &conv, a->out, &PROA__EPILOGUE(a));
}
