/* LSTM cells of float32 in AVX-512 registers, forward and backward: sigmoid and tanh of
 * kernels/simd_activations.h take a third of the time of the compiled scalar formulas. Functions of the same
 * names in cells.inc and cpu/rnn.inc serve other types and CPU levels. For kernels of rnn. */
#ifndef PROA_OPS_RNN_SIMD_LSTM_H
#define PROA_OPS_RNN_SIMD_LSTM_H

#if defined(__AVX512F__)
#include "kernels/simd_activations.h"

#include <stdint.h>

#define LSTM_INLINE static inline __attribute__((always_inline))

/* Sixteen numbers; if not `whole`, only those in the mask `some`: masked stores are slow, and stall later
 * loads of their cache line. */
typedef struct lstm_part {
    bool whole;
    __mmask16 some;
} lstm_part;

LSTM_INLINE __m512 lstm_load(lstm_part p, const float *x)
{
    return p.whole ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(p.some, x);
}
LSTM_INLINE __m512 lstm_sum(lstm_part p, const float *x, const float *y)
{
    return _mm512_add_ps(lstm_load(p, x), lstm_load(p, y));
}
LSTM_INLINE void lstm_store(lstm_part p, float *to, __m512 x)
{
    if (p.whole) _mm512_storeu_ps(to, x);
    else _mm512_mask_storeu_ps(to, p.some, x);
}

/* gates: those of the input, n apart, which become the activated ones; u: the state's, ld apart. */
LSTM_INLINE void lstm_cells(lstm_part p, const float *u, int64_t ld, float *gates, int64_t n, float *h,
                            float *c)
{
    __m512 i = simd_sigmoid(lstm_sum(p, gates, u)), f = simd_sigmoid(lstm_sum(p, gates + n, u + ld));
    __m512 g = simd_tanh(lstm_sum(p, gates + 2 * n, u + 2 * ld));
    __m512 o = simd_sigmoid(lstm_sum(p, gates + 3 * n, u + 3 * ld));
    __m512 next = _mm512_fmadd_ps(f, lstm_load(p, c), _mm512_mul_ps(i, g));
    lstm_store(p, gates, i), lstm_store(p, gates + n, f);
    lstm_store(p, gates + 2 * n, g), lstm_store(p, gates + 3 * n, o);
    lstm_store(p, c, next);
    lstm_store(p, h, _mm512_mul_ps(o, simd_tanh(next)));
}

/* d · y · (1 − y), y a sigmoid; d · (1 − y²), y a tanh. */
LSTM_INLINE __m512 lstm_sigmoid_back(__m512 d, __m512 y)
{
    return _mm512_mul_ps(d, _mm512_fnmadd_ps(y, y, y));
}
LSTM_INLINE __m512 lstm_tanh_back(__m512 d, __m512 y)
{
    return _mm512_mul_ps(d, _mm512_fnmadd_ps(y, y, _mm512_set1_ps(1.0f)));
}

/* dx: gradients of what the gates are activations of, n apart. */
LSTM_INLINE void lstm_cells_back(lstm_part p, const float *gates, const float *cell, const float *before,
                                 float *dh, float *dc, float *dx, int64_t n)
{
    __m512 i = lstm_load(p, gates), f = lstm_load(p, gates + n);
    __m512 g = lstm_load(p, gates + 2 * n), o = lstm_load(p, gates + 3 * n);
    __m512 tc = simd_tanh(lstm_load(p, cell)), out = lstm_load(p, dh);
    __m512 d = _mm512_add_ps(lstm_load(p, dc), lstm_tanh_back(_mm512_mul_ps(out, o), tc));
    lstm_store(p, dx, lstm_sigmoid_back(_mm512_mul_ps(d, g), i));
    lstm_store(p, dx + n, lstm_sigmoid_back(_mm512_mul_ps(d, lstm_load(p, before)), f));
    lstm_store(p, dx + 2 * n, lstm_tanh_back(_mm512_mul_ps(d, i), g));
    lstm_store(p, dx + 3 * n, lstm_sigmoid_back(_mm512_mul_ps(out, tc), o));
    lstm_store(p, dc, _mm512_mul_ps(d, f));
    lstm_store(p, dh, _mm512_setzero_ps());
}

LSTM_INLINE lstm_part lstm_rest(int64_t left) { return (lstm_part){false, (__mmask16)((1 << left) - 1)}; }

static inline void lstm_row_float(const float *u, int64_t ld, float *gates, int64_t n, float *h, float *c,
                                  int64_t size)
{
    const lstm_part whole = {.whole = true};
    int64_t k = 0;
    for (; k + 16 <= size; k += 16) lstm_cells(whole, u + k, ld, gates + k, n, h + k, c + k);
    if (k < size) lstm_cells(lstm_rest(size - k), u + k, ld, gates + k, n, h + k, c + k);
}

static inline void lstm_back_float(const float *gates, const float *cell, const float *before, float *dh,
                                   float *dc, float *dx, int64_t n, int64_t size)
{
    const lstm_part whole = {.whole = true};
    int64_t k = 0;
    for (; k + 16 <= size; k += 16)
        lstm_cells_back(whole, gates + k, cell + k, before + k, dh + k, dc + k, dx + k, n);
    if (k < size)
        lstm_cells_back(lstm_rest(size - k), gates + k, cell + k, before + k, dh + k, dc + k, dx + k, n);
}
#define RNN_LANES
#endif

#endif
