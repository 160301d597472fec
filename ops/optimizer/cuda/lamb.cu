/* Lamb's step on a GPU: one pass computes moments and sums of squares per chunk, a second one adds those up
 * in a fixed order and updates the parameter. */
#include "ops/optimizer/cuda/optimizer.h"

enum { LAMB_PARAM, LAMB_GRAD, LAMB_MASTER, LAMB_M, LAMB_V, LAMB_POW1, LAMB_POW2, LAMB_LISTS };
typedef cuda_list<LAMB_LISTS> lamb_list;
typedef cuda_piece<LAMB_LISTS> lamb_piece;

struct lamb_common {
    const char *lr;
    proa_dtype lr_dtype;
    const uint8_t *skip;
    double beta1, beta2, epsilon, decay;
    bool adapt;
    double *norms; /* two a chunk: of the parameter, of the direction */
};

template <class X> struct lamb_numbers {
    X c1, c2; /* bias corrections of the moments, 1 / (1 − β^t) */
    int truth;
    proa_dtype truth_dtype;
    char *p;
};

template <class X> CUDA_FN lamb_numbers<X> lamb_of(const lamb_list &l, int e)
{
    int truth = l.at[LAMB_MASTER][e] ? LAMB_MASTER : LAMB_PARAM;
    double p1 = cuda_load<double>(l.at[LAMB_POW1][e], (proa_dtype)l.dtype[LAMB_POW1][e]);
    double p2 = cuda_load<double>(l.at[LAMB_POW2][e], (proa_dtype)l.dtype[LAMB_POW2][e]);
    return {(X)(1 / (1 - p1)), (X)(1 / (1 - p2)), truth, (proa_dtype)l.dtype[truth][e], l.at[truth][e]};
}

template <class X>
CUDA_FN auto lamb_k(const lamb_common &w) -> decltype(step_rounded<X>((const double *)NULL))
{
    const double k[6] = {0, w.beta1, w.beta2, w.epsilon, w.decay, 0};
    return step_rounded<X>(k);
}

CUDA_FN void lamb_moments(float g, float *m, float *v, step_numbers_float k)
{
    lamb_moments_one_float(g, m, v, k);
}
CUDA_FN void lamb_moments(double g, double *m, double *v, step_numbers_double k)
{
    lamb_moments_one_double(g, m, v, k);
}
CUDA_FN float lamb_direction(float p, float m, float v, float c1, float c2, step_numbers_float k)
{
    return lamb_direction_one_float(p, m, v, c1, c2, k);
}
CUDA_FN double lamb_direction(double p, double m, double v, double c1, double c2, step_numbers_double k)
{
    return lamb_direction_one_double(p, m, v, c1, c2, k);
}

/* Reads n ≤ 4 gradients from element `at` on; sums of SelectedRows entries if r has memory. */
template <class X>
CUDA_FN cuda_some<X> lamb_gradient(const lamb_list &l, int e, const step_rows &r, int64_t at, int n)
{
    if (!r.memory) return cuda_some<X>::read(l.at[LAMB_GRAD][e], (proa_dtype)l.dtype[LAMB_GRAD][e], at, n);
    X g[CUDA_FOUR];
    for (int i = 0; i < CUDA_FOUR; i++) {
        int64_t place;
        bool there = i < n && step_find(r, (at + i) / r.length, &place);
        g[i] = there ? step_row_sum<X>(r, place, (at + i) % r.length) : (X)0;
    }
    return cuda_some<X>::of(g);
}

template <class X> __global__ void lamb_first_kernel(lamb_list l, lamb_common w, step_rows r)
{
    if (w.skip && *w.skip) return;
    auto k = lamb_k<X>(w);
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        lamb_piece piece = lamb_piece::of(l, c);
        lamb_numbers<X> own = lamb_of<X>(l, piece.i);
        double squares = 0, direction = 0;
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            X p[CUDA_FOUR], g[CUDA_FOUR], m[CUDA_FOUR], v[CUDA_FOUR];
            char *ms = l.at[LAMB_M][piece.i], *vs = l.at[LAMB_V][piece.i];
            proa_dtype md = (proa_dtype)l.dtype[LAMB_M][piece.i], vd = (proa_dtype)l.dtype[LAMB_V][piece.i];
            auto g_read = lamb_gradient<X>(l, piece.i, r, at, (int)n);
            auto p_read = cuda_some<X>::read(own.p, own.truth_dtype, at, (int)n);
            auto m_read = cuda_some<X>::read(ms, md, at, (int)n),
                 v_read = cuda_some<X>::read(vs, vd, at, (int)n);
            g_read.values(g), p_read.values(p), m_read.values(m), v_read.values(v);
            for (int i = 0; i < CUDA_FOUR; i++) {
                if (i >= n) break;
                lamb_moments(g[i], &m[i], &v[i], k);
                double d = lamb_direction(p[i], m[i], v[i], own.c1, own.c2, k);
                squares += (double)p[i] * (double)p[i];
                direction += d * d;
            }
            cuda_some_write<X>(ms, md, at, (int)n, m);
            cuda_some_write<X>(vs, vd, at, (int)n, v);
        }
        squares = cuda_block_reduce<cuda_sum>(squares);
        direction = cuda_block_reduce<cuda_sum>(direction);
        if (threadIdx.x == 0) w.norms[2 * c] = squares, w.norms[2 * c + 1] = direction;
    }
}

template <class X> __global__ void lamb_second_kernel(lamb_list l, lamb_common w)
{
    if (w.skip && *w.skip) return;
    auto k = lamb_k<X>(w);
    for (int64_t c = blockIdx.x; c < l.chunks(); c += gridDim.x) {
        lamb_piece piece = lamb_piece::of(l, c);
        lamb_numbers<X> own = lamb_of<X>(l, piece.i);
        double squares = 0, direction = 0, lr = cuda_load<double>(w.lr, w.lr_dtype);
        for (int64_t i = l.chunk_of[piece.i] + threadIdx.x; i < l.chunk_of[piece.i + 1]; i += blockDim.x)
            squares += w.norms[2 * i], direction += w.norms[2 * i + 1];
        squares = cuda_block_reduce<cuda_sum>(squares);
        direction = cuda_block_reduce<cuda_sum>(direction);
        if (w.adapt && squares > 0 && direction > 0) lr *= sqrt(squares / direction);
        for (CUDA_PIECES(at, n, piece, l.aligned[piece.i])) {
            X p[CUDA_FOUR], m[CUDA_FOUR], v[CUDA_FOUR];
            const char *ms = l.at[LAMB_M][piece.i], *vs = l.at[LAMB_V][piece.i];
            proa_dtype md = (proa_dtype)l.dtype[LAMB_M][piece.i], vd = (proa_dtype)l.dtype[LAMB_V][piece.i];
            auto p_read = cuda_some<X>::read(own.p, own.truth_dtype, at, (int)n);
            auto m_read = cuda_some<X>::read(ms, md, at, (int)n),
                 v_read = cuda_some<X>::read(vs, vd, at, (int)n);
            p_read.values(p), m_read.values(m), v_read.values(v);
            for (int i = 0; i < CUDA_FOUR; i++)
                if (i < n) p[i] -= (X)lr * lamb_direction(p[i], m[i], v[i], own.c1, own.c2, k);
            cuda_some_write<X>(own.p, own.truth_dtype, at, (int)n, p);
            if (own.truth != LAMB_PARAM)
                cuda_some_write<X>(l.at[LAMB_PARAM][piece.i], (proa_dtype)l.dtype[LAMB_PARAM][piece.i], at,
                                   (int)n, p);
        }
    }
}

template <class X>
static proa_status lamb_both(cuda_context *c, const lamb_list &l, lamb_common w, const step_rows &r)
{
    lamb_list list = l;
    step_rows rows = r;
    unsigned blocks = cuda_blocks(l.chunks(), 1);
    w.norms = (double *)cuda_scratch(c, (size_t)l.chunks() * 2 * sizeof(double));
    if (!w.norms) return cuda_host->error();
    proa_status s = cuda_launch(c, blocks, CUDA_BLOCK, lamb_first_kernel<X>, list, w, rows);
    if (s == PROA_OK) s = cuda_launch(c, blocks, CUDA_BLOCK, lamb_second_kernel<X>, list, w);
    cuda_scratch_free(c, w.norms);
    return s;
}

CUDA_KERNEL_EITHER(lamb_step, a->groups.count == 0)
{
    const proa_tensors *const lists[LAMB_LISTS] = {&a->params,   &a->grads,      &a->masters,   &a->moments1,
                                                   &a->moments2, &a->beta1_pows, &a->beta2_pows};
    PROA_TRY(cuda_lists_alike<LAMB_LISTS>(c, lists, 1));
    cuda_tensor lr = cuda_look(a->learning_rate);
    lamb_common w = {lr.data,
                     lr.dtype,
                     cuda_given(a->skip_update) ? cuda_look(a->skip_update).as<uint8_t>() : NULL,
                     a->beta1,
                     a->beta2,
                     a->epsilon,
                     a->weight_decay,
                     a->weight_decay > 0 || a->always_adapt,
                     NULL};
    step_rows dense = {};
    for (int wide = 0; wide < 2; wide++) {
        auto leave = [&](int64_t i) {
            return (cuda_look(a->params.at[i]).dtype == PROA_F64) != wide || step_is_rows(a->grads.at[i]);
        };
        PROA_TRY(cuda_each_list<LAMB_LISTS>(lists, leave, [&](const lamb_list &l) {
            return wide ? lamb_both<double>(c, l, w, dense) : lamb_both<float>(c, l, w, dense);
        }));
    }
    for (int64_t i = 0; i < a->params.count; i++) {
        if (!step_is_rows(a->grads.at[i]) || cuda_look(a->params.at[i]).numel == 0) continue;
        lamb_list l;
        step_rows r;
        l.count = 0;
        l.first = (int)i;
        cuda_list_add<LAMB_LISTS>(&l, lists, i);
        PROA_TRY(step_rows_begin(c, a->grads.at[i], &r));
        proa_status s =
            l.dtype[0][0] == PROA_F64 ? lamb_both<double>(c, l, w, r) : lamb_both<float>(c, l, w, r);
        step_rows_end(c, &r);
        PROA_TRY(s);
    }
    return step_advance(c, &a->beta1_pows, &a->beta2_pows, a->beta1, a->beta2, w.skip);
}
