/* ctc_loss on a GPU: forward and backward variables in log space, in double, one block per sequence (Graves
 * et al., Connectionist Temporal Classification, 2006), then the gradient, one block per time step, with sums
 * in a fixed order. Lengths and labels out of range are reported at the next synchronization; such a length
 * counts as 0, and a sequence with such a label has the loss 0. */
#include "devices/cuda/kernel.h"

struct ctc_problem {
    const char *label, *frames, *letters; /* the latter two: lengths */
    proa_dtype label_dtype, frames_dtype, letters_dtype;
    int64_t times, batch, classes, longest, blank; /* longest: letters of a row of label */
    double *alpha;                                 /* [batch, times, 2 · longest + 1] */
    double *norm;                                  /* [times, batch]: logarithm of softmax's denominator */
    double *none;                                  /* [batch]; 0: it has a gradient, else 1 */
    cuda_report bad_label, bad_frames, bad_letters;
    __device__ __forceinline__ int64_t letter(int64_t n, int64_t i) const
    {
        return cuda_index(label, label_dtype, n * longest + i);
    }
    /* Entry s of the label with blanks round every letter. */
    __device__ __forceinline__ int64_t symbol(int64_t n, int64_t s) const
    {
        return s % 2 ? letter(n, s / 2) : blank;
    }
    /* True if the path may skip the blank between s − 2 and s: the two letters differ. */
    __device__ __forceinline__ bool may_skip(int64_t n, int64_t s) const
    {
        return s % 2 && s > 2 && symbol(n, s) != symbol(n, s - 2);
    }
    __device__ __forceinline__ double *row(int64_t n, int64_t t) const
    {
        return alpha + (n * times + t) * (2 * longest + 1);
    }
};

CUDA_FN double ctc_add_logs(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* A frame's logarithm of softmax's denominator: a warp a row of classes. */
template <class X> __global__ void ctc_norm_kernel(ctc_problem p, const X *x)
{
    for (CUDA_ROWS(32, row, p.times * p.batch)) {
        const X *from = x + row * p.classes;
        double top = -INFINITY, sum = 0;
        for (int64_t i = threadIdx.x % 32; i < p.classes; i += 32)
            top = from[i] > top ? (double)from[i] : top;
        top = cuda_warp_reduce<cuda_max>(top);
        for (int64_t i = threadIdx.x % 32; i < p.classes; i += 32) sum += exp((double)from[i] - top);
        sum = cuda_warp_reduce<cuda_sum>(sum);
        if (threadIdx.x % 32 == 0) p.norm[row] = top + log(sum);
    }
}

/* A length of sequence n, 0 and a fault if it is out of range. */
CUDA_FN int64_t ctc_length(const char *at, proa_dtype dtype, const cuda_report &bad, int64_t n, int64_t most)
{
    int64_t length = cuda_index(at, dtype, n);
    if (length >= 0 && length <= most) return length;
    cuda_raise(bad, n, length, 0, most);
    return 0;
}

/* Number of frames that the label needs, with a blank between equal letters (by the whole block); above
 * p.times if a letter is not a class. */
static __device__ int64_t ctc_needed(const ctc_problem &p, int64_t n, int64_t L)
{
    int64_t needed = 0;
    for (int64_t i = threadIdx.x; i < L; i += blockDim.x) {
        int64_t v = p.letter(n, i);
        needed += 1 + (i > 0 && v == p.letter(n, i - 1));
        if (v >= 0 && v < p.classes) continue;
        cuda_raise(p.bad_label, n * p.longest + i, v, 0, p.classes - 1);
        needed += p.times + 1;
    }
    return cuda_block_reduce<cuda_sum>(needed);
}

/* Forward variables (log): probability that frames 0 … t end in entry s. */
template <class X>
static __device__ void ctc_forward(const ctc_problem &p, const X *x, int64_t n, int64_t T, int64_t S)
{
    for (int64_t t = 0; t < T; t++) {
        const double *before = t ? p.row(n, t - 1) : NULL;
        double *now = p.row(n, t), norm = p.norm[t * p.batch + n];
        const X *row = x + (t * p.batch + n) * p.classes;
        for (int64_t s = threadIdx.x; s < S; s += blockDim.x) {
            double v = t ? before[s] : s < 2 ? 0 : -INFINITY;
            if (t && s > 0) v = ctc_add_logs(v, before[s - 1]);
            if (t && p.may_skip(n, s)) v = ctc_add_logs(v, before[s - 2]);
            now[s] = v + (double)row[p.symbol(n, s)] - norm;
        }
        __syncthreads();
    }
}

/* Computes backward variables, and replaces alpha by each entry's posterior at each frame. `beta` has two
 * rows of S. */
template <class X>
static __device__ void ctc_backward(const ctc_problem &p, const X *x, int64_t n, int64_t T, int64_t S,
                                    double total, double *beta)
{
    for (int64_t t = T - 1; t >= 0; t--) {
        const double *next = beta + (t + 1) % 2 * S;
        double *now = beta + t % 2 * S, *alpha = p.row(n, t);
        bool last = t == T - 1;
        double norm = last ? 0 : p.norm[(t + 1) * p.batch + n];
        const X *row = x + ((last ? t : t + 1) * p.batch + n) * p.classes;
        for (int64_t s = threadIdx.x; s < S; s += blockDim.x) {
            double v = last ? (s >= S - 2 ? 0 : -INFINITY) : next[s] + (double)row[p.symbol(n, s)] - norm;
            if (!last && s + 1 < S) v = ctc_add_logs(v, next[s + 1] + (double)row[p.symbol(n, s + 1)] - norm);
            if (!last && s + 2 < S && p.may_skip(n, s + 2))
                v = ctc_add_logs(v, next[s + 2] + (double)row[p.symbol(n, s + 2)] - norm);
            now[s] = v;
            alpha[s] = exp(alpha[s] + v - total);
        }
        __syncthreads();
    }
}

template <class X> __global__ void ctc_kernel(ctc_problem p, const X *x, X *loss, double *betas)
{
    for (int64_t n = blockIdx.x; n < p.batch; n += gridDim.x) {
        int64_t T = ctc_length(p.frames, p.frames_dtype, p.bad_frames, n, p.times);
        int64_t L = ctc_length(p.letters, p.letters_dtype, p.bad_letters, n, p.longest), S = 2 * L + 1;
        double none = 1, cost = T == 0 ? INFINITY : 0; /* as Paddle's: no frame, or too few for the label */
        if (ctc_needed(p, n, L) <= T && T > 0) {
            ctc_forward(p, x, n, T, S);
            const double *last = p.row(n, T - 1);
            double found = S > 1 ? ctc_add_logs(last[S - 1], last[S - 2]) : last[S - 1];
            __syncthreads();
            cost = -found;
            if (found > -INFINITY) {
                none = 0;
                ctc_backward(p, x, n, T, S, found, betas + n * 2 * (2 * p.longest + 1));
            }
        }
        if (threadIdx.x) continue;
        loss[n] = (X)cost;
        p.none[n] = none;
    }
}

/* d loss / d logits at a frame: softmax minus each class's posterior, given the label. The thread of a
 * class's first entry handles the class. */
template <class X> __global__ void ctc_gradient_kernel(ctc_problem p, const X *x, X *gradient)
{
    for (int64_t item = blockIdx.x; item < p.times * p.batch; item += gridDim.x) {
        int64_t n = item % p.batch, t = item / p.batch, T = cuda_index(p.frames, p.frames_dtype, n);
        bool has = p.none[n] == 0 && t < T;
        const X *row = x + item * p.classes;
        for (int64_t k = threadIdx.x; k < p.classes; k += blockDim.x)
            gradient[item * p.classes + k] = has ? (X)exp((double)row[k] - p.norm[item]) : (X)0;
        __syncthreads();
        if (!has) continue;
        int64_t S = 2 * cuda_index(p.letters, p.letters_dtype, n) + 1;
        const double *likely = p.row(n, t);
        for (int64_t s = threadIdx.x; s < S; s += blockDim.x) {
            int64_t mine = p.symbol(n, s);
            bool first = s == 0 || mine != p.blank;
            for (int64_t r = 1; r < s && first; r += 2) first = p.symbol(n, r) != mine;
            if (!first) continue;
            double v = exp((double)row[mine] - p.norm[item]);
            for (int64_t r = s; r < S; r++)
                if (p.symbol(n, r) == mine) v -= likely[r];
            gradient[item * p.classes + mine] = (X)v;
        }
    }
}

template <class X>
static proa_status ctc_run(cuda_context *c, const ctc_problem &p, const X *x, X *loss, X *gradient,
                           double *betas)
{
    if (p.times) /* no frames: the others tell so */
        PROA_TRY(
            cuda_launch(c, CUDA_ROW_BLOCKS(32, p.times * p.batch), CUDA_BLOCK, ctc_norm_kernel<X>, p, x));
    PROA_TRY(cuda_launch(c, cuda_blocks(p.batch, 1), CUDA_BLOCK, ctc_kernel<X>, p, x, loss, betas));
    if (!p.times) return PROA_OK;
    return cuda_launch(c, cuda_blocks(p.times * p.batch, 1), CUDA_BLOCK, ctc_gradient_kernel<X>, p, x,
                       gradient);
}

CUDA_KERNEL(ctc_loss, CUDA_IS(a->logits, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->logits), label = cuda_look(a->label), frames = cuda_look(a->logits_length),
                letters = cuda_look(a->label_length), loss = cuda_look(a->loss),
                gradient = cuda_look(a->gradient);
    ctc_problem p = {label.data, frames.data, letters.data, label.dtype,    frames.dtype, letters.dtype,
                     x.shape[0], x.shape[1],  x.shape[2],   label.shape[1], a->blank};
    if (p.batch == 0 || p.classes == 0) return PROA_OK;
    p.bad_label = cuda_reports(c, "label");
    p.bad_frames = cuda_reports(c, "logits_length");
    p.bad_letters = cuda_reports(c, "label_length");
    int64_t S = 2 * p.longest + 1;
    p.alpha = (double *)cuda_scratch(c, (size_t)(p.batch * (p.times * (S + 1) + 2 * S + 1)) * sizeof(double));
    if (!p.alpha) return cuda_host->error();
    p.norm = p.alpha + p.batch * p.times * S;
    p.none = p.norm + p.times * p.batch;
    double *betas = p.none + p.batch;
    proa_status status = x.dtype == PROA_F64
                             ? ctc_run(c, p, x.as<double>(), loss.as<double>(), gradient.as<double>(), betas)
                             : ctc_run(c, p, x.as<float>(), loss.as<float>(), gradient.as<float>(), betas);
    cuda_scratch_free(c, p.alpha);
    return status;
}

template <class X>
__global__ void ctc_scale_kernel(const X *gradient, const X *d, X *to, int64_t numel, int64_t batch,
                                 int64_t classes, const char *frames, proa_dtype dtype, bool by_times)
{
    for (CUDA_EACH(i, numel)) {
        int64_t n = i / classes % batch;
        double by = (double)d[n];
        if (by_times) {
            int64_t length = cuda_index(frames, dtype, n);
            by = length > 0 ? by / (double)length : 0;
        }
        to[i] = (X)(by * (double)gradient[i]);
    }
}

CUDA_KERNEL(ctc_loss_grad, CUDA_IS(a->gradient, CUDA_FLOATS))
{
    cuda_tensor g = cuda_look(a->gradient), d = cuda_look(a->d_loss), to = cuda_look(a->d_logits),
                frames = cuda_look(a->logits_length);
    if (to.numel == 0) return PROA_OK;
    CUDA_SWITCH_WIDE(g.dtype, X, {
        return cuda_launch(c, cuda_blocks(to.numel), CUDA_BLOCK, ctc_scale_kernel<X>, g.as<X>(), d.as<X>(),
                           to.as<X>(), to.numel, g.shape[1], g.shape[2], frames.data, frames.dtype,
                           a->norm_by_times);
    });
}
