/* Optimizer steps on a GPU: the CPU's formulas, element by element, over lists of parameters. Addresses
 * travel as kernel arguments; the learning rate and the powers of β are read on the GPU, so that the host
 * does not wait. Lamb is in lamb.cu. */
#include "ops/optimizer/cuda/optimizer.h"

/* Indices of a step's lists. */
enum { PARAM, GRAD, MASTER, STATE0, STATE1, STATE2, POW1, POW2, LISTS };

struct step_common {
    const char *lr;
    proa_dtype lr_dtype;
    const uint8_t *skip; /* NULL, or one bool */
    double k[6];         /* attributes, in the order that the formula expects */
    bool as_rows;        /* Adam, SelectedRows: β^t is advanced before its use */
    bool touched;        /* lazy: only rows that a SelectedRows gradient stores are updated */
};

/* ---- formulas -------------------------------------------------------------------------- */

/* numbers(): what the formula's k is; apply(): one element. s: the states' elements. */
#define STEP_KIND(name, NUMBERS, APPLY)                                                                     \
    struct step_##name {                                                                                    \
        static __device__ void numbers(const step_common &w, double lr, double p1, double p2, double *k)    \
        {                                                                                                   \
            (void)w, (void)p1, (void)p2;                                                                    \
            for (int i = 0; i < 6; i++) k[i] = w.k[i];                                                      \
            NUMBERS                                                                                         \
        }                                                                                                   \
        static __device__ __forceinline__ void apply(float *p, float g, float *s, step_numbers_float k)     \
        {                                                                                                   \
            (void)s;                                                                                        \
            APPLY(float);                                                                                   \
        }                                                                                                   \
        static __device__ __forceinline__ void apply(double *p, double g, double *s, step_numbers_double k) \
        {                                                                                                   \
            (void)s;                                                                                        \
            APPLY(double);                                                                                  \
        }                                                                                                   \
    };

#define SGD(T) sgd_one_##T(p, g, k)
#define MOMENTUM(T) momentum_one_##T(p, g, &s[0], k)
#define ADAM(T) adam_one_##T(p, g, &s[0], &s[1], k)
#define ADAGRAD(T) adagrad_one_##T(p, g, &s[0], k)
#define RMSPROP(T) rmsprop_one_##T(p, g, &s[0], &s[2], k)
#define RMSPROP_CENTERED(T) rmsprop_centered_one_##T(p, g, &s[0], &s[1], &s[2], k)
#define ADADELTA(T) adadelta_one_##T(p, g, &s[0], &s[1], k)
#define ADAMAX(T) adamax_one_##T(p, g, &s[0], &s[1], k)

/* Attributes: β1, β2, epsilon, what lr is multiplied by, the decay's coefficient. */
#define ADAM_NUMBERS                           \
    {                                          \
        double rate = lr * w.k[3];             \
        k[0] = rate * sqrt(1 - p2) / (1 - p1); \
        k[1] = w.k[0];                         \
        k[2] = w.k[1];                         \
        k[3] = w.k[2] * sqrt(1 - p2);          \
        k[4] = 1 - rate * w.k[4];              \
        k[5] = w.k[2];                         \
    }
STEP_KIND(sgd, k[0] = lr;, SGD)
STEP_KIND(momentum, k[0] = lr;, MOMENTUM)
STEP_KIND(adam, ADAM_NUMBERS, ADAM)
STEP_KIND(adagrad, k[0] = lr;, ADAGRAD)
STEP_KIND(rmsprop, k[0] = lr;, RMSPROP)
STEP_KIND(rmsprop_centered, k[0] = lr;, RMSPROP_CENTERED)
STEP_KIND(adadelta, k[0] = lr;, ADADELTA)
STEP_KIND(adamax, k[0] = lr / (1 - p1);, ADAMAX)

/* ---- the step -------------------------------------------------------------------------- */

/* A power of β; early: already multiplied by β for this step. */
CUDA_FN double step_power(const char *at, uint8_t dtype, double beta, bool early)
{
    if (!at) return 0;
    double v = cuda_load<double>(at, (proa_dtype)dtype);
    return early ? step_moved_on(v, beta, (proa_dtype)dtype) : v;
}

template <class K, class T, class L>
CUDA_FN void step_numbers_of(const L &l, int i, const step_common &w, bool early, double *k)
{
    double lr = cuda_load<double>(w.lr, w.lr_dtype);
    K::numbers(w, lr, step_power(l.at[POW1][i], l.dtype[POW1][i], w.k[0], early),
               step_power(l.at[POW2][i], l.dtype[POW2][i], w.k[1], early), k);
}

/* Updates n ≤ 4 elements of parameter e from element `at` on, with gradients g: master or parameter, and
 * states. */
template <class K, class T, class L, class N>
CUDA_FN void step_elements(const L &l, int e, int64_t at, int n, const cuda_some<T> &g, const N &k)
{
    int truth = l.at[MASTER][e] ? MASTER : PARAM;
    cuda_some<T> p_read = cuda_some<T>::read(l.at[truth][e], (proa_dtype)l.dtype[truth][e], at, n), s_read[3];
    T gs[CUDA_FOUR], p[CUDA_FOUR], s[3][CUDA_FOUR] = {};
    for (int j = 0; j < 3; j++)
        if (l.at[STATE0 + j][e])
            s_read[j] = cuda_some<T>::read(l.at[STATE0 + j][e], (proa_dtype)l.dtype[STATE0 + j][e], at, n);
    g.values(gs);
    p_read.values(p);
    for (int j = 0; j < 3; j++)
        if (l.at[STATE0 + j][e]) s_read[j].values(s[j]);
    for (int i = 0; i < CUDA_FOUR; i++) {
        if (i >= n) break;
        T own[3] = {s[0][i], s[1][i], s[2][i]};
        K::apply(&p[i], gs[i], own, k);
        for (int j = 0; j < 3; j++) s[j][i] = own[j];
    }
    for (int j = 0; j < 3; j++)
        if (l.at[STATE0 + j][e])
            cuda_some_write<T>(l.at[STATE0 + j][e], (proa_dtype)l.dtype[STATE0 + j][e], at, n, s[j]);
    cuda_some_write<T>(l.at[truth][e], (proa_dtype)l.dtype[truth][e], at, n, p);
    if (truth != PARAM) cuda_some_write<T>(l.at[PARAM][e], (proa_dtype)l.dtype[PARAM][e], at, n, p);
}

template <class K, class T> __global__ void step_kernel(cuda_list<LISTS> l, step_common w)
{
    __shared__ double numbers[6];
    if (w.skip && *w.skip) return;
    int known = -1; /* whose numbers are in shared memory */
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        cuda_piece<LISTS> piece = cuda_piece<LISTS>::of(l, c);
        if (piece.i != known) {
            __syncthreads();
            if (threadIdx.x == 0) step_numbers_of<K, T>(l, piece.i, w, false, numbers);
            __syncthreads();
            known = piece.i;
        }
        auto k = step_rounded<T>(numbers);
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            auto g = cuda_some<T>::read(l.at[GRAD][piece.i], (proa_dtype)l.dtype[GRAD][piece.i], at, (int)n);
            step_elements<K, T>(l, piece.i, at, (int)n, g, k);
        }
    }
}

/* The step of one parameter whose gradient is SelectedRows. */
template <class K, class T> __global__ void step_rows_kernel(cuda_list<LISTS> l, step_common w, step_rows r)
{
    __shared__ double numbers[6];
    if (w.skip && *w.skip) return;
    if (threadIdx.x == 0) step_numbers_of<K, T>(l, 0, w, w.as_rows, numbers);
    __syncthreads();
    auto given = step_rounded<T>(numbers), idle = given;
    if (w.as_rows) given.at[3] = (T)numbers[3], idle.at[3] = (T)numbers[5];
    int64_t total = w.touched ? r.count * r.length : l.numel[0];
    for (CUDA_EACH(i, total)) {
        int64_t at = i, place = i / r.length;
        bool there = true;
        if (w.touched) at = r.row[place] * r.length + i % r.length;
        else there = step_find(r, place, &place);
        T g[CUDA_FOUR] = {there ? step_row_sum<T>(r, place, at % r.length) : (T)0};
        step_elements<K, T>(l, 0, at, 1, cuda_some<T>::of(g), there ? given : idle);
    }
}

/* ---- running --------------------------------------------------------------------------- */

struct step_lists {
    const proa_tensors *of[LISTS];
    double beta1, beta2; /* β1 and β2, by which their powers are multiplied after the step */
};

template <class K>
static proa_status step_run_rows(cuda_context *c, const step_lists &s, const step_common &w, int64_t index)
{
    cuda_list<LISTS> l;
    l.count = 0;
    l.first = (int)index;
    cuda_list_add<LISTS>(&l, s.of, index);
    step_rows r;
    PROA_TRY(step_rows_begin(c, s.of[GRAD]->at[index], &r));
    int64_t total = w.touched ? r.count * r.length : l.numel[0];
    proa_status status = PROA_OK;
    step_common common = w;
    if (total > 0 && l.dtype[PARAM][0] == PROA_F64)
        status = cuda_launch(c, cuda_blocks(total), CUDA_BLOCK, (step_rows_kernel<K, double>), l, common, r);
    else if (total > 0)
        status = cuda_launch(c, cuda_blocks(total), CUDA_BLOCK, (step_rows_kernel<K, float>), l, common, r);
    step_rows_end(c, &r);
    return status;
}

/* Blocks stay for several chunks: finding the step's numbers takes as long as one. Twelve a multiprocessor
 * are whole waves of the three or four that it holds at once. */
static unsigned step_blocks(const cuda_context *c) { return 12 * (unsigned)c->description.multiprocessors; }

template <class K> static proa_status step_run(cuda_context *c, const step_lists &s, const step_common &w)
{
    const proa_tensors *const(&lists)[LISTS] = s.of;
    PROA_TRY(cuda_lists_alike<LISTS>(c, lists, GRAD));
    for (int wide = 0; wide < 2; wide++) { /* what computes in float, then in double */
        auto leave = [&](int64_t i) {
            return (cuda_look(s.of[PARAM]->at[i]).dtype == PROA_F64) != wide ||
                   step_is_rows(s.of[GRAD]->at[i]);
        };
        PROA_TRY(cuda_each_list<LISTS>(lists, leave, [&](const cuda_list<LISTS> &l) {
            cuda_list<LISTS> list = l;
            step_common common = w;
            unsigned blocks = cuda_blocks(l.chunks(), 1), most = step_blocks(c);
            if (blocks > most) blocks = most;
            if (wide) return cuda_launch(c, blocks, CUDA_BLOCK, (step_kernel<K, double>), list, common);
            return cuda_launch(c, blocks, CUDA_BLOCK, (step_kernel<K, float>), list, common);
        }));
    }
    for (int64_t i = 0; i < s.of[PARAM]->count; i++)
        if (step_is_rows(s.of[GRAD]->at[i])) PROA_TRY(step_run_rows<K>(c, s, w, i));
    return step_advance(c, s.of[POW1], s.of[POW2], s.beta1, s.beta2, w.skip);
}

static step_common common_of(const proa_tensor *lr, const proa_tensor *skip)
{
    step_common w = {};
    cuda_tensor t = cuda_look(lr);
    w.lr = t.data;
    w.lr_dtype = t.dtype;
    if (cuda_given(skip)) w.skip = cuda_look(skip).as<uint8_t>();
    return w;
}

#define STEP_COMMON step_common w = common_of(a->learning_rate, a->skip_update)

CUDA_KERNEL_EITHER(sgd_step, true)
{
    STEP_COMMON;
    w.touched = true;
    return step_run<step_sgd>(c, {{&a->params, &a->grads, &a->masters}, 0, 0}, w);
}

CUDA_KERNEL_EITHER(momentum_step, true)
{
    STEP_COMMON;
    w.k[1] = a->mu;
    w.k[2] = a->weight_decay;
    w.k[3] = a->rescale_grad;
    w.k[4] = a->use_nesterov;
    return step_run<step_momentum>(c, {{&a->params, &a->grads, &a->masters, &a->velocities}, 0, 0}, w);
}

#define ADAM_LISTS                                                 \
    {                                                              \
        {&a->params,   &a->grads, &a->masters,    &a->moments1,    \
         &a->moments2, NULL,      &a->beta1_pows, &a->beta2_pows}, \
            a->beta1, a->beta2                                     \
    }

CUDA_KERNEL_EITHER(adam_step, true)
{
    STEP_COMMON;
    w.k[0] = a->beta1;
    w.k[1] = a->beta2;
    w.k[2] = a->epsilon;
    w.k[3] = 1;
    w.touched = a->lazy_mode;
    w.as_rows = true;
    return step_run<step_adam>(c, ADAM_LISTS, w);
}

CUDA_KERNEL_EITHER(adamw_step, true)
{
    STEP_COMMON;
    w.k[0] = a->beta1;
    w.k[1] = a->beta2;
    w.k[2] = a->epsilon;
    w.k[3] = a->lr_ratio;
    w.k[4] = a->with_decay ? a->coeff : 0;
    w.touched = a->lazy_mode;
    return step_run<step_adam>(c, ADAM_LISTS, w);
}

CUDA_KERNEL_EITHER(adagrad_step, true)
{
    STEP_COMMON;
    w.k[1] = a->epsilon;
    w.touched = true;
    return step_run<step_adagrad>(c, {{&a->params, &a->grads, &a->masters, &a->moments}, 0, 0}, w);
}

CUDA_KERNEL_EITHER(rmsprop_step, true)
{
    STEP_COMMON;
    w.k[1] = a->rho;
    w.k[2] = a->epsilon;
    w.k[3] = a->momentum;
    step_lists s = {{&a->params, &a->grads, &a->masters, &a->mean_squares, NULL, &a->moments}, 0, 0};
    if (!a->centered) return step_run<step_rmsprop>(c, s, w);
    s.of[STATE1] = &a->mean_grads;
    return step_run<step_rmsprop_centered>(c, s, w);
}

CUDA_KERNEL_EITHER(adadelta_step, true)
{
    STEP_COMMON;
    w.k[1] = a->rho;
    w.k[2] = a->epsilon;
    return step_run<step_adadelta>(
        c, {{&a->params, &a->grads, &a->masters, &a->avg_squared_grads, &a->avg_squared_updates}, 0, 0}, w);
}

CUDA_KERNEL_EITHER(adamax_step, true)
{
    STEP_COMMON;
    w.k[0] = 0;
    w.k[1] = a->beta1;
    w.k[2] = a->beta2;
    w.k[3] = a->epsilon;
    return step_run<step_adamax>(
        c,
        {{&a->params, &a->grads, &a->masters, &a->moments, &a->inf_norms, NULL, &a->beta1_pows}, a->beta1, 0},
        w);
}
