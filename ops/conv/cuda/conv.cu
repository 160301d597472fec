/* Convolutions on a GPU: forward, transposed, dgrad and wgrad are one cuDNN convolution each, whose result is
 * filled with the bias before. float16, bfloat16, and float32 that may be rounded to TF32, run channels-last,
 * and so does a call with a channels-last operand; where cuDNN has no such algorithm, the call runs
 * channels-first. Operands that cuDNN does not take (another layout, paddings that differ before and after,
 * misaligned addresses) are copied into memory that it takes. */
#include "devices/cuda/layout.h"
#include "devices/cuda/library.h"

#include "ops/padding.h"

/* Attributes of the ops of the family; inference has checked them. */
struct conv_attributes {
    int dims;
    bool transposed;
    const proa_ints *stride, *padding, *dilation;
    int64_t groups;
    proa_padding_algorithm algorithm;
    proa_data_format format;
};
#define CONV_ATTRIBUTES(a, N, transposed)                                                                \
    {                                                                                                    \
        N, transposed, &(a)->stride, &(a)->padding, &(a)->dilation, (a)->groups, (a)->padding_algorithm, \
            (a)->data_format                                                                             \
    }

/* One operand: five dims (n or k, channels, depth, row, column), strides in bytes. */
struct conv_side {
    char *data;
    int64_t size[5], stride[5];
};

static void put_strides(conv_side *s, bool channels_last, int64_t item)
{
    int64_t step = item;
    if (channels_last) s->stride[1] = step, step *= s->size[1];
    for (int i = 4; i >= 2; i--) s->stride[i] = step, step *= s->size[i];
    if (!channels_last) s->stride[1] = step, step *= s->size[1];
    s->stride[0] = step;
}

static int64_t elements(const conv_side *s)
{
    return s->size[0] * s->size[1] * s->size[2] * s->size[3] * s->size[4];
}

static proa_status copy_side(cuda_context *c, const conv_side *to, const conv_side *from, int64_t item)
{
    proa_strided_copy copy = {};
    copy.dst = to->data;
    copy.src = from->data;
    copy.item = (size_t)item;
    copy.ndim = 5;
    for (int i = 0; i < 5; i++) {
        copy.shape[i] = from->size[i] < to->size[i] ? from->size[i] : to->size[i];
        copy.to[i] = to->stride[i];
        copy.from[i] = from->stride[i];
    }
    return cuda_copy_strided(c, &copy);
}

/* ---- a bias ---------------------------------------------------------------------------- */

/* to[i] = bias of the channel of i: elements come in runs of `inner` for each of `channels`. */
template <class T>
__global__ void conv_bias_kernel(T *to, const T *bias, int64_t n, int64_t channels, int64_t inner)
{
    for (CUDA_EACH(i, n)) to[i] = bias[i / inner % channels];
}

static proa_status fill_with_bias(cuda_context *c, const conv_side *to, const void *bias, bool channels_last,
                                  int64_t item)
{
    int64_t n = elements(to), inner = channels_last ? 1 : to->size[2] * to->size[3] * to->size[4];
    int64_t channels = to->size[1];
    unsigned blocks = cuda_blocks(n);
    void *at = to->data;
    if (item == 2)
        return cuda_launch(c, blocks, CUDA_BLOCK, conv_bias_kernel<uint16_t>, (uint16_t *)at,
                           (const uint16_t *)bias, n, channels, inner);
    if (item == 4)
        return cuda_launch(c, blocks, CUDA_BLOCK, conv_bias_kernel<uint32_t>, (uint32_t *)at,
                           (const uint32_t *)bias, n, channels, inner);
    return cuda_launch(c, blocks, CUDA_BLOCK, conv_bias_kernel<uint64_t>, (uint64_t *)at,
                       (const uint64_t *)bias, n, channels, inner);
}

/* ---- operands as the library takes them ------------------------------------------------ */

/* An operand as the op has it (`mine`) and as cuDNN gets it (`theirs`): the same memory, or scratch, which is
 * larger where padding is written into it. */
struct conv_operand {
    conv_side mine, theirs;
    void *scratch;
};

static conv_side interior(const conv_operand *o, const int64_t *before)
{
    conv_side s = o->theirs;
    for (int i = 0; i < 3; i++) s.data += before[i] * s.stride[2 + i];
    return s;
}

/* Sets theirs.data to the operand's own memory if cuDNN takes its layout, else to scratch, into which it
 * copies an operand that is read (`reads`), with zeros in the padding. */
static proa_status take(cuda_context *c, conv_operand *o, bool channels_last, const int64_t *before,
                        bool reads, int64_t item)
{
    static const uint64_t zero = 0;
    put_strides(&o->theirs, channels_last, item);
    bool same = (uintptr_t)o->mine.data % 16 == 0;
    for (int i = 0; i < 5; i++)
        same = same && o->mine.size[i] == o->theirs.size[i] &&
               (o->mine.stride[i] == o->theirs.stride[i] || o->mine.size[i] == 1);
    if (same) {
        o->theirs.data = o->mine.data;
        return PROA_OK;
    }
    o->scratch = cuda_scratch(c, (size_t)(elements(&o->theirs) * item));
    if (!o->scratch) return cuda_host->error();
    o->theirs.data = (char *)o->scratch;
    if (!reads) return PROA_OK;
    if (elements(&o->theirs) > elements(&o->mine))
        PROA_TRY(cuda_fill(c, o->scratch, &zero, (size_t)item, elements(&o->theirs)));
    conv_side to = interior(o, before);
    return copy_side(c, &to, &o->mine, item);
}

static proa_status give(cuda_context *c, const conv_operand *o, const int64_t *before, int64_t item)
{
    if (!o->scratch) return PROA_OK;
    conv_side from = interior(o, before);
    return copy_side(c, &o->mine, &from, item);
}

/* ---- one convolution ------------------------------------------------------------------- */

struct conv_job {
    cuda_conv v;
    int64_t before[3], after[3];
    conv_operand in, filter, out;
    const void *bias;
    bool op_channels_last;
};

static void spatial(const cuda_tensor &t, int dims, bool channels_last, int64_t *to)
{
    for (int i = 0; i < 3; i++) to[i] = 1;
    for (int i = 0; i < dims; i++) to[3 - dims + i] = t.shape[(channels_last ? 1 : 2) + i];
}

/* Byte strides of t's axes, in memory order (channels-last if t.channels_last). */
static void axis_strides(const cuda_tensor &t, int64_t *step)
{
    int64_t next = cuda_item(t.dtype);
    if (t.channels_last) step[1] = next, next *= t.shape[1];
    for (int i = t.ndim - 1; i >= 0; i--) {
        if (i == 1 && t.channels_last) continue;
        step[i] = next;
        next *= t.shape[i];
    }
}

/* Describes tensor t as an operand. channels_last: the op's data format, which need not be the memory's
 * layout. */
static void set_operand(conv_operand *o, const cuda_tensor &t, int64_t n, int64_t channels,
                        const int64_t *size, bool channels_last)
{
    int64_t step[PROA_MAX_DIMS];
    int spatial = t.ndim - 2;
    axis_strides(t, step);
    o->mine.data = t.channels_last ? t.last : t.data;
    o->mine.size[0] = n;
    o->mine.size[1] = channels;
    o->mine.stride[0] = step[0];
    o->mine.stride[1] = step[channels_last ? t.ndim - 1 : 1];
    for (int i = 0; i < 3; i++) {
        int axis = i - 3 + spatial + (channels_last ? 1 : 2);
        o->mine.size[2 + i] = size[i];
        o->mine.stride[2 + i] = i < 3 - spatial ? 0 : step[axis];
    }
    o->theirs.size[0] = n;
    o->theirs.size[1] = channels;
    for (int i = 0; i < 3; i++) o->theirs.size[2 + i] = size[i];
    o->scratch = NULL;
}

/* Paddings of the input side; the library has one value for both ends. Where that does not give the output's
 * size, the input is padded in memory instead. */
static void set_padding(conv_job *j, const conv_attributes *a, const int64_t *op_size)
{
    cuda_conv *v = &j->v;
    int lead = 3 - a->dims;
    bool plain = true;
    for (int i = lead; i < 3; i++) {
        int at = i - lead;
        v->stride[i] = a->stride->at[at];
        v->dilation[i] = a->dilation->at[at];
        if (a->algorithm == PROA_PADDING_ALGORITHM_SAME) {
            v->dilation[i] = 1;
            proa__same_padding(op_size[i], v->kernel[i], v->stride[i], &j->before[i], &j->after[i]);
        } else if (a->algorithm == PROA_PADDING_ALGORITHM_EXPLICIT) {
            int each = a->padding->count == a->dims ? 1 : 2;
            j->before[i] = a->padding->at[at * each];
            j->after[i] = a->padding->at[at * each + each - 1];
        }
        v->pad[i] = j->before[i];
        int64_t reach = v->in[i] + 2 * v->pad[i] - v->dilation[i] * (v->kernel[i] - 1) - 1;
        plain = plain && reach >= 0 && reach / v->stride[i] + 1 == v->out[i];
    }
    if (plain) {
        for (int i = 0; i < 3; i++) j->before[i] = 0; /* nothing is copied into larger memory */
        return;
    }
    for (int i = lead; i < 3; i++) {
        v->pad[i] = 0;
        v->in[i] += j->before[i] + j->after[i];
        j->in.theirs.size[2 + i] = v->in[i];
    }
}

static proa_status run_layout(cuda_context *c, conv_job *j, bool channels_last)
{
    static const int64_t none[3] = {0, 0, 0};
    cuda_conv *v = &j->v;
    int64_t item = cuda_item(v->dtype);
    conv_operand *result = v->direction == CUDA_CONV_TO_OUT  ? &j->out
                           : v->direction == CUDA_CONV_TO_IN ? &j->in
                                                             : &j->filter;
    v->channels_last = channels_last;
    PROA_TRY(take(c, &j->in, channels_last, j->before, result != &j->in, item));
    PROA_TRY(take(c, &j->filter, channels_last, none, result != &j->filter, item));
    PROA_TRY(take(c, &j->out, channels_last, none, result != &j->out, item));
    v->at_in = j->in.theirs.data;
    v->at_filter = j->filter.theirs.data;
    v->at_out = j->out.theirs.data;
    v->beta = j->bias ? 1 : 0;
    if (j->bias) PROA_TRY(fill_with_bias(c, &result->theirs, j->bias, channels_last, item));
    PROA_TRY(cuda_library_conv(c, v));
    return give(c, result, result == &j->in ? j->before : none, item);
}

static void release(cuda_context *c, conv_job *j)
{
    conv_operand *all[] = {&j->in, &j->filter, &j->out};
    for (int i = 0; i < 3; i++) {
        if (all[i]->scratch) cuda_scratch_free(c, all[i]->scratch);
        all[i]->scratch = NULL;
    }
}

/* The operand that the direction names is written; bias may be NULL or absent. */
static proa_status conv_run(cuda_context *c, cuda_conv_direction direction, const conv_attributes *a,
                            const proa_tensor *in, const proa_tensor *filter, const proa_tensor *out,
                            const proa_tensor *bias)
{
    static const double zero = 0;
    cuda_tensor x = cuda_look(in), w = cuda_look(filter), y = cuda_look(out);
    const cuda_tensor &result = direction == CUDA_CONV_TO_OUT ? y : direction == CUDA_CONV_TO_IN ? x : w;
    bool last = a->format == PROA_DATA_FORMAT_NHWC || a->format == PROA_DATA_FORMAT_NLC ||
                a->format == PROA_DATA_FORMAT_NDHWC;
    if (result.numel == 0) return PROA_OK;
    if (x.numel == 0 || y.numel == 0) /* no images: no gradient for the filter */
        return cuda_fill(c, result.data, &zero, (size_t)cuda_item(result.dtype), result.numel);
    conv_job j = {};
    cuda_conv *v = &j.v;
    v->direction = direction;
    v->dtype = x.dtype;
    v->dims = a->dims < 2 ? 2 : a->dims;
    v->batch = x.shape[0];
    v->groups = a->groups;
    v->out_channels = w.shape[0];
    v->in_channels = w.shape[1] * a->groups;
    spatial(x, a->dims, last, v->in);
    spatial(y, a->dims, last, v->out);
    spatial(w, a->dims, false, v->kernel);
    for (int i = 0; i < 3; i++) v->stride[i] = v->dilation[i] = 1;
    set_operand(&j.in, x, v->batch, v->in_channels, v->in, last);
    set_operand(&j.out, y, v->batch, v->out_channels, v->out, last);
    set_operand(&j.filter, w, v->out_channels, w.shape[1], v->kernel, false);
    set_padding(&j, a, a->transposed ? v->out : v->in);
    j.bias = cuda_given(bias) ? cuda_look(bias).data : NULL;
    bool channels_last = last || x.channels_last || y.channels_last || w.channels_last;
    proa_status status = run_layout(c, &j, channels_last);
    release(c, &j);
    if (status == PROA_DECLINED && channels_last) { /* cuDNN has this convolution channels-first only */
        status = run_layout(c, &j, false);
        release(c, &j);
    }
    if (status != PROA_DECLINED) return status;
    return cuda_fail(
        PROA_ERR_UNSUPPORTED,
        "%s on %s: cuDNN has no algorithm for x %s, weight %s that gives the same bits each time "
        "in 512 MiB of workspace; run it on the CPU",
        c->running ? c->running->name : "convolution", c->name, cuda_host->text(in), cuda_host->text(filter));
}

/* ---- the ops --------------------------------------------------------------------------- */

#define CAN_CONVOLVE CUDA_IS(a->x, CUDA_FLOATS) && cuda_library_has_conv()

/* Whether a result is stored channels last: tensor cores want it so, or an operand does. */
static bool conv_is_channels_last(const proa_tensor *x, const proa_tensor *other, proa_data_format format)
{
    cuda_tensor t = cuda_look(x);
    if (format != PROA_DATA_FORMAT_NCHW && format != PROA_DATA_FORMAT_NCDHW) return false;
    if (t.numel == 0 || !cuda_flag("blocked")) return false;
    if (t.channels_last || cuda_is_channels_last(other)) return true;
    return t.dtype == PROA_F16 || t.dtype == PROA_BF16 || (t.dtype == PROA_F32 && cuda_flag("allow_tf32"));
}

static int rank_of(const proa_tensor *x) { return cuda_look(x).ndim - 2; }

CUDA_KERNEL_CHANNELS_LAST(conv1d, CAN_CONVOLVE, out, conv_is_channels_last(a->x, a->weight, a->data_format))
{
    conv_attributes v = CONV_ATTRIBUTES(a, rank_of(a->x), false);
    return conv_run(c, CUDA_CONV_TO_OUT, &v, a->x, a->weight, a->out, a->bias);
}
CUDA_KERNEL_ALSO(conv2d, conv1d)
CUDA_KERNEL_ALSO(conv3d, conv1d)

CUDA_KERNEL_CHANNELS_LAST(conv1d_transpose, CAN_CONVOLVE, out,
                          conv_is_channels_last(a->x, a->weight, a->data_format))
{
    conv_attributes v = CONV_ATTRIBUTES(a, rank_of(a->x), true);
    return conv_run(c, CUDA_CONV_TO_IN, &v, a->out, a->weight, a->x, a->bias);
}
CUDA_KERNEL_ALSO(conv2d_transpose, conv1d_transpose)
CUDA_KERNEL_ALSO(conv3d_transpose, conv1d_transpose)

CUDA_KERNEL_CHANNELS_LAST(conv2d_grad_input, CAN_CONVOLVE, d_x,
                          conv_is_channels_last(a->d_out, a->weight, a->data_format))
{
    conv_attributes v = CONV_ATTRIBUTES(a, rank_of(a->x), false);
    return conv_run(c, CUDA_CONV_TO_IN, &v, a->d_x, a->weight, a->d_out, NULL);
}
CUDA_KERNEL_ALSO(conv3d_grad_input, conv2d_grad_input)

CUDA_KERNEL_CHANNELS_LAST(conv2d_grad_filter, CAN_CONVOLVE, d_weight,
                          conv_is_channels_last(a->x, a->d_out, a->data_format))
{
    conv_attributes v = CONV_ATTRIBUTES(a, rank_of(a->x), false);
    return conv_run(c, CUDA_CONV_BACKWARD_WEIGHTS, &v, a->x, a->d_weight, a->d_out, NULL);
}
CUDA_KERNEL_ALSO(conv3d_grad_filter, conv2d_grad_filter)
