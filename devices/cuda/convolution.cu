/* Convolution through cuDNN: descriptors, the choice of an algorithm, and a bounded cache of both. cuDNN's
 * heuristic, not a measurement, orders the algorithms, so that one problem on one GPU gets the same one in
 * every run. Uses dnn.h. */
#include "devices/cuda/dnn.h"
#include "devices/cuda/library.h"

#include <limits.h>
#include <pthread.h>

namespace
{

#if defined(CUDA_EMULATED)
const cuda_dnn *dnn(const char **why)
{
    if (why) *why = "";
    return cuda_dnn_emulated();
}
#else
const cuda_dnn *dnn(const char **why) { return cuda_dnn_installed(why); }
#endif

constexpr size_t most_workspace = size_t(512) << 20;
constexpr int cached = 128;
constexpr int64_t most_elements = INT32_MAX; /* cuDNN's limit for elements of an operand */

/* Key of the plan cache: all that a plan depends on; compared as bytes, so padding is zero. */
struct problem {
    int64_t direction, dtype, dims, channels_last, tf32, batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
};

struct plan {
    problem of;
    uint64_t used; /* 0: free entry */
    cuda_dnn_tensor in, out;
    cuda_dnn_filter filter;
    cuda_dnn_conv conv;
    int algorithm; /* -1: no algorithm */
    size_t workspace;
};

struct convolutions {
    pthread_mutex_t lock; /* a handle is used by one thread at a time */
    const cuda_dnn *dnn;
    cuda_dnn_handle handle;
    uint64_t clock;
    plan plans[cached];
};

proa_status check(cuda_context *c, const convolutions *all, int code, const char *what)
{
    if (code == CUDA_DNN_OK) return PROA_OK;
    return cuda_fail(PROA_ERR_INTERNAL, "%s on %s: cuDNN's %s failed: %s",
                     c->running ? c->running->name : "convolution", c->name, what,
                     all->dnn->GetErrorString(code));
}

pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

proa_status start(cuda_context *c, convolutions **to)
{
    pthread_mutex_lock(&making);
    proa_status status = PROA_OK;
    convolutions *all = static_cast<convolutions *>(c->convolutions);
    if (!all) {
        all = static_cast<convolutions *>(cuda_host->alloc(sizeof *all));
        if (all) {
            memset(all, 0, sizeof *all);
            pthread_mutex_init(&all->lock, nullptr);
            all->dnn = dnn(nullptr);
            status = check(c, all, all->dnn->Create(&all->handle), "start");
            if (status == PROA_OK)
                status = check(c, all, all->dnn->SetStream(all->handle, c->stream), "SetStream");
            if (status == PROA_OK) c->convolutions = all;
            else cuda_host->free(all);
        } else {
            status = cuda_host->error();
        }
    }
    pthread_mutex_unlock(&making);
    *to = all;
    return status;
}

int type_of(int64_t dtype)
{
    return dtype == PROA_F64   ? CUDA_DNN_DOUBLE
           : dtype == PROA_F32 ? CUDA_DNN_FLOAT
           : dtype == PROA_F16 ? CUDA_DNN_HALF
                               : CUDA_DNN_BFLOAT16;
}

/* Fills size and stride, in elements, of a contiguous tensor [n, channels, the last `dims` of spatial] for
 * cuDNN. */
void list(const problem *p, int64_t n, int64_t channels, const int64_t *spatial, int *size, int *stride)
{
    int dims = (int)p->dims, step = 1;
    size[0] = (int)n;
    size[1] = (int)channels;
    for (int i = 0; i < dims; i++) size[2 + i] = (int)spatial[3 - dims + i];
    if (p->channels_last) stride[1] = 1, step = size[1];
    for (int i = dims + 1; i >= 2; i--) stride[i] = step, step *= size[i];
    if (!p->channels_last) stride[1] = step, step *= size[1];
    stride[0] = step;
}

/* Math type: TF32, which rounds float32 operands, only if a flag allows it; tensor cores for half types. */
int math_of(const problem *p)
{
    if (p->dtype == PROA_F32 && !p->tf32) return CUDA_DNN_FMA_MATH;
    return p->dtype == PROA_F16 || p->dtype == PROA_BF16 ? CUDA_DNN_TENSOR_OP_MATH : CUDA_DNN_DEFAULT_MATH;
}

int describe(const cuda_dnn *f, plan *p)
{
    const problem *of = &p->of;
    int dims = (int)of->dims, type = type_of(of->dtype), size[5], stride[5], lists[3][3];
    int format = of->channels_last ? CUDA_DNN_NHWC : CUDA_DNN_NCHW, code;
    if ((code = f->CreateTensorDescriptor(&p->in)) || (code = f->CreateTensorDescriptor(&p->out)) ||
        (code = f->CreateFilterDescriptor(&p->filter)) || (code = f->CreateConvolutionDescriptor(&p->conv)))
        return code;
    list(of, of->batch, of->in_channels, of->in, size, stride);
    if ((code = f->SetTensorNdDescriptor(p->in, type, dims + 2, size, stride))) return code;
    list(of, of->batch, of->out_channels, of->out, size, stride);
    if ((code = f->SetTensorNdDescriptor(p->out, type, dims + 2, size, stride))) return code;
    list(of, of->out_channels, of->in_channels / of->groups, of->kernel, size, stride);
    if ((code = f->SetFilterNdDescriptor(p->filter, type, format, dims + 2, size))) return code;
    for (int i = 0; i < dims; i++) {
        lists[0][i] = (int)of->pad[3 - dims + i];
        lists[1][i] = (int)of->stride[3 - dims + i];
        lists[2][i] = (int)of->dilation[3 - dims + i];
    }
    if ((code = f->SetConvolutionNdDescriptor(p->conv, dims, lists[0], lists[1], lists[2],
                                              CUDA_DNN_CROSS_CORRELATION,
                                              of->dtype == PROA_F64 ? CUDA_DNN_DOUBLE : CUDA_DNN_FLOAT)) ||
        (code = f->SetConvolutionGroupCount(p->conv, (int)of->groups)))
        return code;
    return f->SetConvolutionMathType(p->conv, math_of(of));
}

void forget(const cuda_dnn *f, plan *p)
{
    if (p->in) f->DestroyTensorDescriptor(p->in);
    if (p->out) f->DestroyTensorDescriptor(p->out);
    if (p->filter) f->DestroyFilterDescriptor(p->filter);
    if (p->conv) f->DestroyConvolutionDescriptor(p->conv);
    memset(p, 0, sizeof *p);
}

/* Chooses the heuristic's first algorithm that is deterministic, within the workspace limit, and of the
 * requested precision. */
int choose(convolutions *all, plan *p)
{
    const cuda_dnn *f = all->dnn;
    cuda_dnn_choice found[CUDA_DNN_ALGORITHMS];
    int n = 0, code, capacity = CUDA_DNN_ALGORITHMS;
    p->algorithm = -1;
    if (p->of.direction == CUDA_CONV_TO_OUT)
        code = f->GetConvolutionForwardAlgorithm_v7(all->handle, p->in, p->filter, p->conv, p->out, capacity,
                                                    &n, found);
    else if (p->of.direction == CUDA_CONV_TO_IN)
        code = f->GetConvolutionBackwardDataAlgorithm_v7(all->handle, p->filter, p->out, p->conv, p->in,
                                                         capacity, &n, found);
    else
        code = f->GetConvolutionBackwardFilterAlgorithm_v7(all->handle, p->in, p->out, p->conv, p->filter,
                                                           capacity, &n, found);
    if (code) return code / 1000 == CUDA_DNN_NOT_SUPPORTED / 1000 ? CUDA_DNN_OK : code;
    int asked = math_of(&p->of);
    for (int i = 0; i < n; i++) {
        const cuda_dnn_choice *one = &found[i];
        bool exact = one->math == CUDA_DNN_FMA_MATH || one->math == CUDA_DNN_DEFAULT_MATH;
        if (one->status || one->deterministic != CUDA_DNN_DETERMINISTIC || one->memory > most_workspace ||
            (asked == CUDA_DNN_FMA_MATH && !exact))
            continue;
        p->algorithm = one->algorithm;
        p->workspace = one->memory;
        /* The descriptor keeps FMA if it was requested: the heuristic's answer "default" would allow TF32. */
        return asked == CUDA_DNN_FMA_MATH ? CUDA_DNN_OK : f->SetConvolutionMathType(p->conv, one->math);
    }
    return CUDA_DNN_OK;
}

/* Finds the plan of a problem in the cache, or makes one in place of the least recently used. */
proa_status find(cuda_context *c, convolutions *all, const problem *of, plan **to)
{
    plan *oldest = all->plans;
    for (plan *p = all->plans; p < all->plans + cached; p++) {
        if (p->used && !memcmp(&p->of, of, sizeof *of)) {
            p->used = ++all->clock;
            *to = p;
            return PROA_OK;
        }
        if (p->used < oldest->used) oldest = p;
    }
    forget(all->dnn, oldest);
    oldest->of = *of;
    int code = describe(all->dnn, oldest);
    proa_status status = check(c, all, code, "description");
    if (status == PROA_OK) status = check(c, all, choose(all, oldest), "choice of an algorithm");
    if (status == PROA_OK) oldest->used = ++all->clock;
    else forget(all->dnn, oldest);
    *to = oldest;
    return status;
}

int64_t pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

problem problem_of(const cuda_conv *v, int64_t batch)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.direction = v->direction;
    p.dtype = v->dtype;
    p.dims = v->dims;
    p.channels_last = v->channels_last;
    p.tf32 = v->dtype == PROA_F32 && cuda_flag("allow_tf32");
    p.batch = batch, p.groups = v->groups;
    p.in_channels = v->in_channels, p.out_channels = v->out_channels;
    for (int i = 0; i < 3; i++) {
        p.in[i] = v->in[i], p.out[i] = v->out[i], p.kernel[i] = v->kernel[i];
        p.stride[i] = v->stride[i], p.dilation[i] = v->dilation[i], p.pad[i] = v->pad[i];
    }
    return p;
}

/* Runs the convolution for `batch` images. */
proa_status run(cuda_context *c, convolutions *all, const cuda_conv *v, int64_t batch, void *in, void *out,
                double beta)
{
    plan *p;
    problem of = problem_of(v, batch);
    PROA_TRY(find(c, all, &of, &p));
    if (p->algorithm < 0) return PROA_DECLINED;
    void *work = p->workspace ? cuda_scratch(c, p->workspace) : nullptr;
    if (p->workspace && !work) return cuda_host->error();
    const cuda_dnn *f = all->dnn;
    const double one_64 = 1, beta_64 = beta;
    const float one_32 = 1, beta_32 = (float)beta;
    bool wide = v->dtype == PROA_F64;
    const void *alpha = wide ? (const void *)&one_64 : &one_32;
    const void *keep = wide ? (const void *)&beta_64 : &beta_32;
    int code;
    if (v->direction == CUDA_CONV_TO_OUT)
        code = f->ConvolutionForward(all->handle, alpha, p->in, in, p->filter, v->at_filter, p->conv,
                                     p->algorithm, work, p->workspace, keep, p->out, out);
    else if (v->direction == CUDA_CONV_TO_IN)
        code = f->ConvolutionBackwardData(all->handle, alpha, p->filter, v->at_filter, p->out, out, p->conv,
                                          p->algorithm, work, p->workspace, keep, p->in, in);
    else
        code = f->ConvolutionBackwardFilter(all->handle, alpha, p->in, in, p->out, out, p->conv, p->algorithm,
                                            work, p->workspace, keep, p->filter, v->at_filter);
    if (work) cuda_scratch_free(c, work);
    return check(c, all, code, "convolution");
}

} // namespace

bool cuda_library_has_conv() { return dnn(nullptr) != nullptr; }

const char *cuda_convolution_why_not(void)
{
    const char *why;
    dnn(&why);
    return why;
}

proa_status cuda_library_conv(cuda_context *c, const cuda_conv *v)
{
    convolutions *all;
    int64_t in = v->in_channels * pixels(v->in), out = v->out_channels * pixels(v->out);
    int64_t filter = v->out_channels * (v->in_channels / v->groups) * pixels(v->kernel);
    int64_t more = in > out ? in : out, item = cuda_item(v->dtype);
    if (more > most_elements || filter > most_elements)
        return cuda_fail(PROA_ERR_UNSUPPORTED,
                         "%s on %s: an image or the filter has more than 2^31 elements, which cuDNN does not "
                         "take; split it, or run it on the CPU",
                         c->running ? c->running->name : "convolution", c->name);
    PROA_TRY(start(c, &all));
    int64_t most = most_elements / more; /* images per call of cuDNN */
    pthread_mutex_lock(&all->lock);
    proa_status status = PROA_OK;
    for (int64_t n = 0; n < v->batch && status == PROA_OK; n += most) {
        double beta = v->direction == CUDA_CONV_BACKWARD_WEIGHTS && n > 0 ? 1 : v->beta;
        status = run(c, all, v, v->batch - n < most ? v->batch - n : most, (char *)v->at_in + n * in * item,
                     (char *)v->at_out + n * out * item, beta);
    }
    pthread_mutex_unlock(&all->lock);
    return status;
}
