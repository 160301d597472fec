/* Stand-in for cuDNN: plain CPU loops with the real library's argument checks (tests/c/test_cuda_dnn.c
 * compares the two). Its heuristics also return algorithms that the caller must skip: a nondeterministic one,
 * a failed one, one with too large a workspace. */
#include "devices/cuda/dnn.h"

#include "core/half.h"
#include "cuda.h"

#include <vector>

enum { MAX_DIMS = 8 };
constexpr long long most_elements = 1ll << 31;

struct cuda_dnn_handle_s {
    void *stream;
};
struct cuda_dnn_tensor_s {
    int type, dims, size[MAX_DIMS], stride[MAX_DIMS];
};
struct cuda_dnn_filter_s {
    int type, format, dims, size[MAX_DIMS];
};
struct cuda_dnn_conv_s {
    int dims, pad[MAX_DIMS], stride[MAX_DIMS], dilation[MAX_DIMS], type, groups, math;
};

namespace
{

bool is_type(int type)
{
    return type == CUDA_DNN_FLOAT || type == CUDA_DNN_DOUBLE || type == CUDA_DNN_HALF ||
           type == CUDA_DNN_BFLOAT16;
}

size_t version() { return 90000; }
const char *error_text(int status)
{
    switch (status / 1000) {
    case 0: return "CUDNN_STATUS_SUCCESS";
    case 2: return "CUDNN_STATUS_BAD_PARAM";
    default: return "CUDNN_STATUS_NOT_SUPPORTED";
    }
}

template <class T> int make(T **to) { return *to = new T(), CUDA_DNN_OK; }
template <class T> int unmake(T *d) { return delete d, CUDA_DNN_OK; }

int make_conv(cuda_dnn_conv *to)
{
    make(to);
    (*to)->groups = 1;
    return CUDA_DNN_OK;
}

int set_stream(cuda_dnn_handle handle, void *stream) { return handle->stream = stream, CUDA_DNN_OK; }

int set_tensor(cuda_dnn_tensor d, int type, int dims, const int *size, const int *stride)
{
    if (!is_type(type) || dims < 2) return CUDA_DNN_BAD_PARAM;
    if (dims > MAX_DIMS) return CUDA_DNN_NOT_SUPPORTED;
    long long last = 1;
    for (int i = 0; i < dims; i++) {
        if (size[i] < 1 || stride[i] == 0) return CUDA_DNN_BAD_PARAM;
        last += (size[i] - 1ll) * stride[i];
    }
    if (last >= most_elements) return CUDA_DNN_NOT_SUPPORTED;
    d->type = type;
    d->dims = dims;
    for (int i = 0; i < dims; i++) d->size[i] = size[i], d->stride[i] = stride[i];
    return CUDA_DNN_OK;
}

int set_filter(cuda_dnn_filter d, int type, int format, int dims, const int *size)
{
    if (!is_type(type) || dims < 3 || (format != CUDA_DNN_NCHW && format != CUDA_DNN_NHWC))
        return CUDA_DNN_BAD_PARAM;
    if (dims > MAX_DIMS) return CUDA_DNN_NOT_SUPPORTED;
    for (int i = 0; i < dims; i++)
        if (size[i] < 1) return CUDA_DNN_BAD_PARAM;
    d->type = type;
    d->format = format;
    d->dims = dims;
    for (int i = 0; i < dims; i++) d->size[i] = size[i];
    return CUDA_DNN_OK;
}

int set_conv(cuda_dnn_conv d, int dims, const int *pad, const int *stride, const int *dilation, int mode,
             int type)
{
    if (!is_type(type) || type == CUDA_DNN_BFLOAT16 || (mode != 0 && mode != CUDA_DNN_CROSS_CORRELATION))
        return CUDA_DNN_BAD_PARAM;
    if (dims > MAX_DIMS - 2) return CUDA_DNN_NOT_SUPPORTED;
    for (int i = 0; i < dims; i++)
        if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) return CUDA_DNN_BAD_PARAM;
    d->dims = dims;
    d->type = type;
    for (int i = 0; i < dims; i++) d->pad[i] = pad[i], d->stride[i] = stride[i], d->dilation[i] = dilation[i];
    return CUDA_DNN_OK;
}

int set_groups(cuda_dnn_conv d, int groups)
{
    if (groups < 1) return CUDA_DNN_BAD_PARAM;
    return d->groups = groups, CUDA_DNN_OK;
}

int set_math(cuda_dnn_conv d, int math)
{
    if (math < 0 || math > CUDA_DNN_FMA_MATH) return CUDA_DNN_BAD_PARAM;
    return d->math = math, CUDA_DNN_OK;
}

int output_size(cuda_dnn_conv d, cuda_dnn_tensor in, cuda_dnn_filter filter, int dims, int *size)
{
    if (in->dims != d->dims + 2 || filter->dims != in->dims || dims != in->dims ||
        in->size[1] != filter->size[1] * d->groups)
        return CUDA_DNN_BAD_PARAM;
    size[0] = in->size[0];
    size[1] = filter->size[0];
    for (int i = 0; i < d->dims; i++) {
        int span = in->size[2 + i] + 2 * d->pad[i] - d->dilation[i] * (filter->size[2 + i] - 1) - 1;
        size[2 + i] = span < 0 ? 0 : span / d->stride[i] + 1;
        if (span < 0) return CUDA_DNN_BAD_PARAM;
    }
    return CUDA_DNN_OK;
}

/* Whether the four make one convolution that is supported. */
int check(cuda_dnn_tensor in, cuda_dnn_filter filter, cuda_dnn_conv d, cuda_dnn_tensor out)
{
    int size[MAX_DIMS];
    if (int code = output_size(d, in, filter, in->dims, size)) return code;
    for (int i = 0; i < in->dims; i++)
        if (out->dims != in->dims || out->size[i] != size[i]) return CUDA_DNN_BAD_PARAM;
    if (in->type != filter->type || in->type != out->type || out->size[1] % d->groups)
        return CUDA_DNN_BAD_PARAM;
    int wide = in->type == CUDA_DNN_DOUBLE ? CUDA_DNN_DOUBLE : CUDA_DNN_FLOAT;
    bool last = filter->format == CUDA_DNN_NHWC;
    if (d->type != wide || d->dims < 2 || d->dims > 3 || (last && wide == CUDA_DNN_DOUBLE))
        return CUDA_DNN_NOT_SUPPORTED;
    bool pixels = in->size[2] * in->size[3] > 1; /* with one, both formats are the same memory */
    if ((in->stride[1] == 1 && in->size[1] > 1 && pixels && !last) || (last && in->stride[1] != 1))
        return CUDA_DNN_NOT_SUPPORTED; /* the filter's format and the tensors' differ */
    return CUDA_DNN_OK;
}

size_t workspace(cuda_dnn_tensor in) { return 64 + 4 * (size_t)in->size[1]; }

int choose(int code, cuda_dnn_tensor in, cuda_dnn_conv d, int capacity, int *n, cuda_dnn_choice *to)
{
    *n = 0;
    if (code || capacity < 1) return code ? code : (int)CUDA_DNN_BAD_PARAM;
    cuda_dnn_choice all[4] = {};
    for (int i = 0; i < 4; i++) {
        all[i].algorithm = i;
        all[i].deterministic = CUDA_DNN_DETERMINISTIC;
        all[i].math = d->math;
        all[i].memory = workspace(in);
        all[i].time = -1;
    }
    all[0].deterministic = 0;
    all[1].status = CUDA_DNN_NOT_SUPPORTED;
    all[2].memory = size_t(1) << 40;
    for (; *n < 4 && *n < capacity; ++*n) to[*n] = all[*n];
    return CUDA_DNN_OK;
}

int choose_forward(cuda_dnn_handle, cuda_dnn_tensor in, cuda_dnn_filter filter, cuda_dnn_conv d,
                   cuda_dnn_tensor out, int capacity, int *n, cuda_dnn_choice *to)
{
    return choose(check(in, filter, d, out), in, d, capacity, n, to);
}
int choose_data(cuda_dnn_handle, cuda_dnn_filter filter, cuda_dnn_tensor out, cuda_dnn_conv d,
                cuda_dnn_tensor in, int capacity, int *n, cuda_dnn_choice *to)
{
    return choose(check(in, filter, d, out), in, d, capacity, n, to);
}
int choose_filter(cuda_dnn_handle, cuda_dnn_tensor in, cuda_dnn_tensor out, cuda_dnn_conv d,
                  cuda_dnn_filter filter, int capacity, int *n, cuda_dnn_choice *to)
{
    return choose(check(in, filter, d, out), in, d, capacity, n, to);
}

/* ---- the sums -------------------------------------------------------------------------- */

double get(int type, const void *p, size_t i)
{
    switch (type) {
    case CUDA_DNN_DOUBLE: return static_cast<const double *>(p)[i];
    case CUDA_DNN_FLOAT: return static_cast<const float *>(p)[i];
    case CUDA_DNN_HALF: return proa__f16_to_f32(static_cast<const uint16_t *>(p)[i]);
    default: return proa__bf16_to_f32(static_cast<const uint16_t *>(p)[i]);
    }
}
void put(int type, void *p, size_t i, double v)
{
    switch (type) {
    case CUDA_DNN_DOUBLE: static_cast<double *>(p)[i] = v; break;
    case CUDA_DNN_FLOAT: static_cast<float *>(p)[i] = (float)v; break;
    case CUDA_DNN_HALF: static_cast<uint16_t *>(p)[i] = proa__f32_to_f16((float)v); break;
    default: static_cast<uint16_t *>(p)[i] = proa__f32_to_bf16((float)v); break;
    }
}

/* Sizes and strides in elements, always three spatial dims: n or k, c, then depth, row, column. */
struct plain {
    int type;
    long long size[5], stride[5];
    std::vector<double> value;
};

plain describe(int type, int dims, const int *size, const int *stride)
{
    plain p = {type, {size[0], size[1], 1, 1, 1}, {stride[0], stride[1], 0, 0, 0}, {}};
    for (int i = 2; i < dims; i++) p.size[i + 5 - dims] = size[i], p.stride[i + 5 - dims] = stride[i];
    return p;
}
plain describe(cuda_dnn_tensor d) { return describe(d->type, d->dims, d->size, d->stride); }
plain describe(cuda_dnn_filter d)
{
    int stride[MAX_DIMS], step = 1;
    if (d->format == CUDA_DNN_NHWC) stride[1] = 1, step = d->size[1];
    for (int i = d->dims - 1; i >= 2; step *= d->size[i--]) stride[i] = step;
    if (d->format == CUDA_DNN_NCHW) stride[1] = step, step *= d->size[1];
    stride[0] = step;
    return describe(d->type, d->dims, d->size, stride);
}

template <class F> void each(const plain &p, F f)
{
    long long at[5], n = 0;
    for (at[0] = 0; at[0] < p.size[0]; at[0]++)
        for (at[1] = 0; at[1] < p.size[1]; at[1]++)
            for (at[2] = 0; at[2] < p.size[2]; at[2]++)
                for (at[3] = 0; at[3] < p.size[3]; at[3]++)
                    for (at[4] = 0; at[4] < p.size[4]; at[4]++, n++) {
                        long long offset = 0;
                        for (int i = 0; i < 5; i++) offset += at[i] * p.stride[i];
                        f((size_t)n, (size_t)offset);
                    }
}
void read(plain &p, const void *from)
{
    p.value.resize((size_t)(p.size[0] * p.size[1] * p.size[2] * p.size[3] * p.size[4]));
    each(p, [&](size_t n, size_t at) { p.value[n] = from ? get(p.type, from, at) : 0; });
}
void write(const plain &p, void *to, double alpha, double beta)
{
    each(p, [&](size_t n, size_t at) {
        put(p.type, to, at, alpha * p.value[n] + (beta != 0 ? beta * get(p.type, to, at) : 0));
    });
}

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

/* Every product of the convolution once; `to` says where they are summed. */
void sum(direction to, plain &in, plain &filter, plain &out, cuda_dnn_conv d)
{
    long long pad[3] = {0, 0, 0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, o[3], k[3], x[3];
    for (int i = 0; i < d->dims; i++) {
        int at = 3 - d->dims + i;
        pad[at] = d->pad[i], stride[at] = d->stride[i], dilation[at] = d->dilation[i];
    }
    long long each_in = in.size[1] / d->groups, each_out = out.size[1] / d->groups;
    long long in_plane = in.size[2] * in.size[3] * in.size[4], out_row = out.size[4], in_row = in.size[4];
    for (long long n = 0; n < out.size[0]; n++)
        for (long long f = 0; f < out.size[1]; f++)
            for (long long c = 0; c < each_in; c++) {
                double *source =
                    &in.value[(size_t)((n * in.size[1] + f / each_out * each_in + c) * in_plane)];
                double *weight = &filter.value[(size_t)((f * each_in + c) * filter.size[2] * filter.size[3] *
                                                        filter.size[4])];
                for (k[0] = 0; k[0] < filter.size[2]; k[0]++)
                    for (k[1] = 0; k[1] < filter.size[3]; k[1]++)
                        for (k[2] = 0; k[2] < filter.size[4]; k[2]++, weight++)
                            for (o[0] = 0; o[0] < out.size[2]; o[0]++)
                                for (o[1] = 0; o[1] < out.size[3]; o[1]++) {
                                    bool inside = true;
                                    for (int i = 0; i < 2; i++) {
                                        x[i] = o[i] * stride[i] - pad[i] + k[i] * dilation[i];
                                        inside = inside && x[i] >= 0 && x[i] < in.size[2 + i];
                                    }
                                    if (!inside) continue;
                                    double *row = source + (x[0] * in.size[3] + x[1]) * in_row;
                                    double *result = &out.value[(
                                        size_t)((((n * out.size[1] + f) * out.size[2] + o[0]) * out.size[3] +
                                                 o[1]) *
                                                out_row)];
                                    for (o[2] = 0; o[2] < out_row; o[2]++) {
                                        x[2] = o[2] * stride[2] - pad[2] + k[2] * dilation[2];
                                        if (x[2] < 0 || x[2] >= in_row) continue;
                                        if (to == FORWARD) result[o[2]] += row[x[2]] * *weight;
                                        else if (to == BACKWARD_DATA) row[x[2]] += result[o[2]] * *weight;
                                        else *weight += row[x[2]] * result[o[2]];
                                    }
                                }
            }
}

int run(direction to, const void *alpha, const void *beta, cuda_dnn_tensor in_d, void *in,
        cuda_dnn_filter filter_d, void *filter, cuda_dnn_tensor out_d, void *out, cuda_dnn_conv d,
        int algorithm, void *work, size_t bytes)
{
    if (int code = check(in_d, filter_d, d, out_d)) return code;
    if (algorithm != 3 || bytes < workspace(in_d) || !work || !in || !filter || !out)
        return CUDA_DNN_BAD_PARAM;
    bool wide = in_d->type == CUDA_DNN_DOUBLE;
    double scale = wide ? *static_cast<const double *>(alpha) : *static_cast<const float *>(alpha);
    double keep = wide ? *static_cast<const double *>(beta) : *static_cast<const float *>(beta);
    plain x = describe(in_d), w = describe(filter_d), y = describe(out_d);
    auto conv = *d;
    size_t scratch = workspace(in_d);
    auto all = [=]() mutable {
        emulate_open();
        memset(work, 0xff, scratch);
        read(x, to == BACKWARD_DATA ? nullptr : in);
        read(w, to == BACKWARD_WEIGHTS ? nullptr : filter);
        read(y, to == FORWARD ? nullptr : out);
        sum(to, x, w, y, &conv);
        if (to == FORWARD) write(y, out, scale, keep);
        else if (to == BACKWARD_DATA) write(x, in, scale, keep);
        else write(w, filter, scale, keep);
        emulate_close();
    };
    if (!emulate_keep(all)) all();
    return CUDA_DNN_OK;
}

/* Removes const from a pointer that a call only reads. */
void *some(const void *p) { return const_cast<void *>(p); }

int forward(cuda_dnn_handle, const void *alpha, cuda_dnn_tensor in_d, const void *in,
            cuda_dnn_filter filter_d, const void *filter, cuda_dnn_conv d, int algorithm, void *work,
            size_t bytes, const void *beta, cuda_dnn_tensor out_d, void *out)
{
    return run(FORWARD, alpha, beta, in_d, some(in), filter_d, some(filter), out_d, out, d, algorithm, work,
               bytes);
}
int backward_data(cuda_dnn_handle, const void *alpha, cuda_dnn_filter filter_d, const void *filter,
                  cuda_dnn_tensor out_d, const void *out, cuda_dnn_conv d, int algorithm, void *work,
                  size_t bytes, const void *beta, cuda_dnn_tensor in_d, void *in)
{
    return run(BACKWARD_DATA, alpha, beta, in_d, in, filter_d, some(filter), out_d, some(out), d, algorithm,
               work, bytes);
}
int backward_filter(cuda_dnn_handle, const void *alpha, cuda_dnn_tensor in_d, const void *in,
                    cuda_dnn_tensor out_d, const void *out, cuda_dnn_conv d, int algorithm, void *work,
                    size_t bytes, const void *beta, cuda_dnn_filter filter_d, void *filter)
{
    return run(BACKWARD_WEIGHTS, alpha, beta, in_d, some(in), filter_d, filter, out_d, some(out), d,
               algorithm, work, bytes);
}

const cuda_dnn table = {version,
                        error_text,
                        make<cuda_dnn_handle_s>,
                        set_stream,
                        make<cuda_dnn_tensor_s>,
                        unmake<cuda_dnn_tensor_s>,
                        set_tensor,
                        make<cuda_dnn_filter_s>,
                        unmake<cuda_dnn_filter_s>,
                        set_filter,
                        make_conv,
                        unmake<cuda_dnn_conv_s>,
                        set_conv,
                        set_groups,
                        set_math,
                        output_size,
                        choose_forward,
                        choose_data,
                        choose_filter,
                        forward,
                        backward_data,
                        backward_filter};

} // namespace

const cuda_dnn *cuda_dnn_emulated(void) { return &table; }
