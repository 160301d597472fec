/* CPU kernels of convolutions for every shape and floating dtype, which run where no faster one accepts:
 * im2col and GEMM (kernels/gemm.h) over one chunk of output pixels at a time, and direct sums for depthwise
 * filters and few output channels. conv2d_fused is composed of separate ops. May use core, kernels and
 * helpers of ops/. */
#include "kernels/gemm.h"
#include "kernels/upcast.h"
#include "ops/conv/geometry.h"
#include "ops/conv/scanlines.h"
#include "ops/epilogue.h"

typedef struct conv_job conv_job;
typedef void (*conv_task_fn)(const conv_job *job, int64_t task, void *work);

/* One call: operands in the accumulator's type, and how its work is cut. */
struct conv_job {
    const conv_geometry *g;
    const void *in;     /* input side: read by forward and wgrad, else NULL */
    const void *filter; /* read by forward and dgrad */
    const void *out;    /* output side: read by dgrad and wgrad */
    const void *bias;   /* NULL without one */
    void *result;
    int64_t in_each, out_each, taps; /* channels of a group; taps of a filter */
    conv_strides in_strides, out_strides;
    conv_task_fn task;
    char *work;
    int64_t work_each; /* bytes */
    int64_t slots, tasks;
    int64_t chunk, chunks;                              /* output pixels at a time */
    int64_t in_block, in_blocks, out_block, out_blocks; /* channels of a group at a time */
};

enum { CONV_CHUNK = 256, CONV_CHUNK_MIN = 64 };

static inline bool is_pointwise(const conv_geometry *g)
{
    for (int i = 0; i < 3; i++)
        if (g->kernel[i] != 1 || g->stride[i] != 1 || g->before[i] || g->in[i] != g->out[i]) return false;
    return true;
}

/* Depth, row and column of a filter tap. */
typedef struct conv_tap {
    int64_t at[3];
} conv_tap;

/* The tap of row k of im2col's matrix. */
static inline conv_tap tap_of(const conv_job *job, int64_t k)
{
    const int64_t *kernel = job->g->kernel;
    return (conv_tap){{k / (kernel[1] * kernel[2]) % kernel[0], k / kernel[2] % kernel[1], k % kernel[2]}};
}

/* n output pixels of one row, of which a tap reads [from, end) inside the image, the first pixel's input at
 * offset `at` of the plane. */
typedef struct conv_run_of_pixels {
    int64_t n, from, end, at;
} conv_run_of_pixels;

/* The output pixels from p to the end of their row or to `stop`. */
static inline conv_run_of_pixels run_of_pixels(const conv_job *job, const int64_t *tap, int64_t p,
                                               int64_t stop)
{
    const conv_geometry *g = job->g;
    const int64_t *step = job->in_strides.s,
                  out[3] = {p / (g->out[2] * g->out[1]), p / g->out[2] % g->out[1], p % g->out[2]};
    int64_t in[3], n = gemm_min(g->out[2] - out[2], stop - p), stride = g->stride[2];
    for (int i = 0; i < 3; i++) in[i] = out[i] * g->stride[i] - g->before[i] + tap[i] * g->dilation[i];
    if (in[0] < 0 || in[0] >= g->in[0] || in[1] < 0 || in[1] >= g->in[1])
        return (conv_run_of_pixels){.n = n, .from = n, .end = n};
    int64_t from = in[2] < 0 ? gemm_min((-in[2] + stride - 1) / stride, n) : 0;
    int64_t end = in[2] >= g->in[2] ? from : gemm_min((g->in[2] - 1 - in[2]) / stride + 1, n);
    return (conv_run_of_pixels){n, from, end, in[0] * step[0] + in[1] * step[1] + in[2] * step[2]};
}

/* Sets the chunks of pixels of dgrad and wgrad, and blocks of input channels that make about 2 · GEMM_MC rows
 * of the matrix. */
static void cut_channels(conv_job *job)
{
    int64_t block = 2 * GEMM_MC / job->taps;
    job->chunk = gemm_min(CONV_CHUNK, conv_pixels(job->g->out));
    if (job->chunk == 0) job->chunk = 1;
    job->in_block = block < 1 ? 1 : gemm_min(block, job->in_each);
    job->in_blocks = (job->in_each + job->in_block - 1) / job->in_block;
}

static void slots_range(int64_t begin, int64_t end, void *context)
{
    const conv_job *job = context;
    for (int64_t slot = begin; slot < end; slot++)
        for (int64_t t = slot * job->tasks / job->slots; t < (slot + 1) * job->tasks / job->slots; t++)
            job->task(job, t, job->work + slot * job->work_each);
}

/* Runs `task` job->tasks times on as many slots as pay, each with scratch for its sum, columns and packing: n
 * elements of `item` bytes. */
static proa_status run_tasks(conv_job *job, conv_task_fn task, size_t item, int64_t n)
{
    job->task = task;
    job->work_each = gemm_round_up(n * (int64_t)item, 64);
    job->slots = gemm_min(gemm_min(proa_threads(), job->tasks), conv_worth(job->g));
    job->work = proa_scratch((size_t)(job->work_each * job->slots));
    if (!job->work) return proa_error();
    proa__parallel(job->slots, 1, slots_range, job);
    proa_scratch_free(job->work);
    return PROA_OK;
}

#define NAME f32
#define T float
#include "ops/conv/cpu/body.inc"

#define NAME f64
#define T double
#include "ops/conv/cpu/body.inc"

#include "ops/conv/low_output_channels.h"

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

/* sides: tensors on the input's, the filter's and the output's side, and bias; NULL where the kind does not
 * read it. Half types are computed in float32. */
static proa_status conv_run(conv_kind kind, const conv_params *p, const proa_tensor *const *sides,
                            proa_tensor *result)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(p, &g));
    if (result->numel == 0) return PROA_OK;
    const proa_dtype as = proa__upcast_dtype(result);
    proa_upcast to[5] = {{0}};
    proa_status status = proa__upcast_write(&to[4], result, as);
    for (int i = 0; i < 4 && status == PROA_OK; i++)
        if (sides[i] && !proa__absent(sides[i])) status = proa__upcast_read(&to[i], sides[i], as);
    conv_job job = {.g = &g,
                    .in = to[0].data,
                    .filter = to[1].data,
                    .out = to[2].data,
                    .bias = to[3].data,
                    .result = to[4].data,
                    .in_each = g.in_channels / g.groups,
                    .out_each = g.out_channels / g.groups,
                    .taps = conv_pixels(g.kernel),
                    .in_strides = conv_strides_of(&g, g.in_channels, g.in),
                    .out_strides = conv_strides_of(&g, g.out_channels, g.out)};
    if (status == PROA_OK) status = run_kind(kind, as == PROA_F64, &job);
    proa__upcast_end(to, 5, status == PROA_OK);
    return status;
}

/* The operands of conv_run: x, filter, y, bias. */
#define SIDES(...) ((const proa_tensor *const[4]){__VA_ARGS__})

PROA_KERNEL(conv_cpu, conv1d)
{
    return conv_run(FORWARD, &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), ""),
                    SIDES(a->x, a->weight, NULL, a->bias), a->out);
}

PROA_KERNEL(conv_transpose_cpu, conv1d_transpose)
{
    return conv_run(BACKWARD_DATA, &CONV_TRANSPOSE_PARAMS(a, proa__spatial_rank(a->x)),
                    SIDES(NULL, a->weight, a->x, a->bias), a->out);
}

PROA_KERNEL(conv_grad_input_cpu, conv2d_grad_input)
{
    return conv_run(BACKWARD_DATA, &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), "_grad_input"),
                    SIDES(NULL, a->weight, a->d_out), a->d_x);
}

PROA_KERNEL(conv_grad_filter_cpu, conv2d_grad_filter)
{
    return conv_run(BACKWARD_WEIGHTS, &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), "_grad_filter"),
                    SIDES(a->x, NULL, a->d_out), a->d_weight);
}

PROA_KERNEL_ANYWHERE(conv2d_fused_cpu, conv2d_fused)
{
    proa_conv2d_args conv = {
        .x = a->x, .weight = a->weight, .bias = a->bias, CONV_SAME_ATTRIBUTES(a), .out = a->out};
    return proa__epilogue_compose("conv2d", &conv, a->out, &PROA__EPILOGUE(a));
}
