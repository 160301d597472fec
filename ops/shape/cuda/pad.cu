/* pad3d and its gradient on a GPU: one thread per element of the result; backward sums, in order, all padded
 * elements that were copied from it. */
#include "devices/cuda/kernel.h"

/* x and out as [batch][D][H][W][chunk]: a channels-first batch holds the channels. */
struct pad_plan {
    proa_pad_mode mode;
    int64_t batch, chunk, in[3], to[3], before[3];
};

/* Source index of index i of the padded axis; -1: none. */
CUDA_FN int64_t pad_source(proa_pad_mode mode, int64_t i, int64_t n)
{
    if (mode == PROA_PAD_MODE_CONSTANT) return i < 0 || i >= n ? -1 : i;
    if (mode == PROA_PAD_MODE_REPLICATE) return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (mode == PROA_PAD_MODE_REFLECT) return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    return (i % n + n) % n;
}

template <class S> __global__ void pad_kernel(pad_plan p, const S *x, S *out, S value, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        int64_t c = i % p.chunk, rest = i / p.chunk, at[3];
        for (int d = 2; d >= 0; d--) {
            at[d] = pad_source(p.mode, rest % p.to[d] - p.before[d], p.in[d]);
            rest /= p.to[d];
        }
        bool inside = at[0] >= 0 && at[1] >= 0 && at[2] >= 0;
        out[i] = inside ? x[(((rest * p.in[0] + at[0]) * p.in[1] + at[1]) * p.in[2] + at[2]) * p.chunk + c]
                        : value;
    }
}

/* The padded indices that were copied from input `i` along an axis: `count` of them in steps from `first` on,
 * and for reflect those of both mirrors. */
struct pad_readers {
    int64_t first, step, count, mirror[2];
    int mirrors;
};

CUDA_FN pad_readers pad_readers_of(const pad_plan &p, int d, int64_t i)
{
    pad_readers r = {i + p.before[d], 1, 1, {0, 0}, 0};
    int64_t n = p.in[d], to = p.to[d];
    if (p.mode == PROA_PAD_MODE_REPLICATE) {
        int64_t end = i == n - 1 ? to : r.first + 1;
        if (i == 0) r.first = 0;
        if (r.first < 0) r.first = 0;
        if (end > to) end = to;
        r.count = end - r.first;
    } else if (p.mode == PROA_PAD_MODE_CIRCULAR) {
        r.first = (r.first % n + n) % n;
        r.step = n;
        r.count = r.first < to ? (to - 1 - r.first) / n + 1 : 0;
    } else {
        if (r.first < 0 || r.first >= to) r.count = 0;
        if (p.mode != PROA_PAD_MODE_REFLECT) return r;
        int64_t low = p.before[d] - i, high = p.before[d] + 2 * (n - 1) - i;
        if (i > 0 && low >= 0 && low < to) r.mirror[r.mirrors++] = low;
        if (i < n - 1 && high >= 0 && high < to) r.mirror[r.mirrors++] = high;
    }
    return r;
}

CUDA_FN int64_t pad_reader(const pad_readers &r, int64_t k)
{
    return k < r.count ? r.first + k * r.step : r.mirror[k - r.count];
}

template <class S> __global__ void pad_back_kernel(pad_plan p, const S *d_out, S *d_x, int64_t n)
{
    typedef decltype(cuda_source<S>::get(*d_x)) T;
    for (CUDA_EACH(i, n)) {
        int64_t c = i % p.chunk, rest = i / p.chunk, many[3];
        pad_readers r[3];
        for (int d = 2; d >= 0; d--) {
            r[d] = pad_readers_of(p, d, rest % p.in[d]);
            many[d] = (r[d].count > 0 ? r[d].count : r[d].count = 0) + r[d].mirrors;
            rest /= p.in[d];
        }
        T sum = 0;
        for (int64_t a = 0; a < many[0]; a++)
            for (int64_t b = 0; b < many[1]; b++) {
                int64_t row = (rest * p.to[0] + pad_reader(r[0], a)) * p.to[1] + pad_reader(r[1], b);
                for (int64_t k = 0; k < many[2]; k++)
                    sum = (T)(sum + cuda_source<S>::get(
                                        d_out[(row * p.to[2] + pad_reader(r[2], k)) * p.chunk + c]));
            }
        d_x[i] = cuda_cast<S>(sum);
    }
}

/* small: the unpadded side. An element consists of `lanes` numbers. */
static pad_plan plan_of(const cuda_tensor &small, const cuda_tensor &large, const proa_ints *paddings,
                        proa_pad_mode mode, proa_data_format format, int64_t lanes)
{
    pad_plan p = {};
    int64_t list[6] = {0, 0, 0, 0, 0, 0};
    bool last =
        format == PROA_DATA_FORMAT_NHWC || format == PROA_DATA_FORMAT_NLC || format == PROA_DATA_FORMAT_NDHWC;
    int spatial = small.ndim - 2, first = last ? 1 : 2;
    cuda_ints(paddings, 6, list);
    p.mode = mode;
    p.batch = last ? small.shape[0] : small.shape[0] * small.shape[1];
    p.chunk = (last ? small.shape[small.ndim - 1] : 1) * lanes;
    for (int k = 0; k < 3; k++) {
        int axis = k - (3 - spatial);
        p.in[k] = axis < 0 ? 1 : small.shape[first + axis];
        p.to[k] = axis < 0 ? 1 : large.shape[first + axis];
        p.before[k] = axis < 0 ? 0 : list[2 * (spatial - 1 - axis)]; /* last spatial axis first */
    }
    return p;
}

struct pad_bytes16 {
    uint64_t lo, hi;
};

/* `value` as an element of dtype d. */
static pad_bytes16 element_of(proa_dtype d, double value)
{
    pad_bytes16 e = {0, 0};
    float narrow = (float)value;
    uint16_t half = d == PROA_F16 ? proa__f32_to_f16(narrow) : proa__f32_to_bf16(narrow);
    int64_t whole = (int64_t)value;
    switch (d) {
    case PROA_BOOL: *(uint8_t *)&e = value != 0; break;
    case PROA_F16:
    case PROA_BF16: memcpy(&e, &half, 2); break;
    case PROA_F32:
    case PROA_C64: memcpy(&e, &narrow, 4); break;
    case PROA_F64:
    case PROA_C128: memcpy(&e, &value, 8); break;
    default: memcpy(&e, &whole, 8); break; /* the low bytes are the narrow integer's */
    }
    return e;
}

template <class S>
static proa_status pad(cuda_context *c, const pad_plan &p, const cuda_tensor &x, const cuda_tensor &out,
                       pad_bytes16 element)
{
    S value;
    memcpy(&value, &element, sizeof value);
    return cuda_launch(c, cuda_blocks(out.numel), CUDA_BLOCK, pad_kernel<S>, p, x.as<S>(), out.as<S>(), value,
                       out.numel);
}

CUDA_KERNEL(pad3d, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    if (out.numel == 0) return PROA_OK;
    pad_plan p = plan_of(x, out, &a->paddings, a->mode, a->data_format, 1);
    pad_bytes16 value = element_of(x.dtype, a->value);
    switch (cuda_item(x.dtype)) {
    case 1: return pad<uint8_t>(c, p, x, out, value);
    case 2: return pad<uint16_t>(c, p, x, out, value);
    case 4: return pad<uint32_t>(c, p, x, out, value);
    case 8: return pad<uint64_t>(c, p, x, out, value);
    default: return pad<pad_bytes16>(c, p, x, out, value);
    }
}

CUDA_KERNEL(pad3d_grad, !CUDA_IS(a->d_x, CUDA_BIT(BOOL)))
{
    cuda_tensor d_x = cuda_look(a->d_x), d_out = cuda_look(a->d_out);
    int64_t lanes = d_x.dtype == PROA_C64 || d_x.dtype == PROA_C128 ? 2 : 1, n = d_x.numel * lanes;
    if (n == 0) return PROA_OK;
    pad_plan p = plan_of(d_x, d_out, &a->paddings, a->mode, a->data_format, lanes);
#define UNPAD(S) \
    cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, pad_back_kernel<S>, p, d_out.as<S>(), d_x.as<S>(), n)
    switch (d_x.dtype) {
    case PROA_U8: return UNPAD(uint8_t);
    case PROA_I8: return UNPAD(int8_t);
    case PROA_I16: return UNPAD(int16_t);
    case PROA_I32: return UNPAD(int32_t);
    case PROA_I64: return UNPAD(int64_t);
    case PROA_F16: return UNPAD(cuda_f16);
    case PROA_BF16: return UNPAD(cuda_bf16);
    case PROA_F32:
    case PROA_C64: return UNPAD(float);
    default: return UNPAD(double);
    }
}
