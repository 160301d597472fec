/* Cells of recurrent networks on a GPU, forward and backward: the formulas of cpu/rnn.inc, one thread per
 * hidden unit of a row. Uses the scalar formulas. */
#ifndef PROA_OPS_RNN_CUDA_RNN_H
#define PROA_OPS_RNN_CUDA_RNN_H

#include "ops/elementwise/cuda/elementwise.h"

CUDA_FN float rnn_sigmoid(float x) { return 1.0f / (1.0f + m_exp_F32(-x)); }
CUDA_FN double rnn_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
CUDA_FN float rnn_tanh(float x) { return m_tanh_F32(x); }
CUDA_FN double rnn_tanh(double x) { return tanh(x); }

/* Parameters of one step of one layer and direction, the same for all cells. */
struct rnn_step {
    proa_rnn_mode mode;
    int64_t t, batch, hidden, gates, directions, direction;
    const char *lengths; /* NULL: all sequences have all steps */
    proa_dtype lengths_type;
    CUDA_BOTH_MEMBER int64_t wide() const { return gates * hidden; }
};

CUDA_FN bool rnn_active(const rnn_step &s, int64_t b)
{
    return !s.lengths ||
           s.t < cuda_load<int64_t>(s.lengths + b * (s.lengths_type == PROA_I32 ? 4 : 8), s.lengths_type);
}

/* Operands of a step, from its first row on: gates come as W·x + b, u is U·h. */
template <class T> struct rnn_forward_step {
    const T *u, *bias, *h, *c; /* h, c: before the step */
    T *gates, *states, *extra, *y;
};

template <class T> __global__ void rnn_cell_kernel(rnn_step s, rnn_forward_step<T> w)
{
    const int64_t n = s.hidden;
    for (CUDA_EACH(i, s.batch * n)) {
        int64_t b = i / n, k = i % n;
        const T *u = w.u + b * s.wide() + k, *bias = w.bias + k;
        T *g = w.gates + b * s.wide() + k, *y = w.y + (b * s.directions + s.direction) * n + k;
        T h = w.h[i];
        if (!rnn_active(s, b)) {
            for (int64_t j = 0; j < s.gates; j++) g[j * n] = 0;
            if (s.mode == PROA_RNN_MODE_LSTM) w.extra[i] = w.c[i];
            if (s.mode == PROA_RNN_MODE_GRU) w.extra[i] = 0;
            w.states[i] = h;
            *y = 0;
            continue;
        }
        T first = g[0] + (u[0] + bias[0]);
        if (s.mode == PROA_RNN_MODE_LSTM) {
            T in = rnn_sigmoid(first), forget = rnn_sigmoid(g[n] + (u[n] + bias[n]));
            T cell = rnn_tanh(g[2 * n] + (u[2 * n] + bias[2 * n]));
            T out = rnn_sigmoid(g[3 * n] + (u[3 * n] + bias[3 * n]));
            T next = forget * w.c[i] + in * cell;
            g[0] = in, g[n] = forget, g[2 * n] = cell, g[3 * n] = out;
            w.extra[i] = next;
            h = out * rnn_tanh(next);
        } else if (s.mode == PROA_RNN_MODE_GRU) {
            T candidate = u[2 * n] + bias[2 * n];
            T reset = rnn_sigmoid(first), update = rnn_sigmoid(g[n] + (u[n] + bias[n]));
            T cell = rnn_tanh(g[2 * n] + reset * candidate);
            w.extra[i] = candidate;
            g[0] = reset, g[n] = update, g[2 * n] = cell;
            h = (h - cell) * update + cell;
        } else {
            h = s.mode != PROA_RNN_MODE_RNN_RELU ? rnn_tanh(first) : first > 0 ? first : 0;
            g[0] = h;
        }
        w.states[i] = h;
        *y = h;
    }
}

/* dh and dc come in for this step, without this step's dy, and leave without the part through U. dx is of
 * W·x + b; du of U·h + b, which differs where GRU's reset gate stands between them. */
template <class T> struct rnn_backward_step {
    const T *gates, *extra, *h, *c, *dy; /* dy: NULL where no gradient of the outputs came */
    T *dh, *dc, *dx, *du;
};

template <class T> __global__ void rnn_cell_back_kernel(rnn_step s, rnn_backward_step<T> w)
{
    const int64_t n = s.hidden;
    for (CUDA_EACH(i, s.batch * n)) {
        int64_t b = i / n, k = i % n;
        const T *g = w.gates + b * s.wide() + k;
        T *dx = w.dx + b * s.wide() + k, *du = w.du + b * s.wide() + k;
        if (!rnn_active(s, b)) {
            for (int64_t j = 0; j < s.gates; j++) dx[j * n] = du[j * n] = 0;
            continue;
        }
        T dh = w.dh[i];
        if (w.dy) dh += w.dy[(b * s.directions + s.direction) * n + k];
        if (s.mode == PROA_RNN_MODE_LSTM) {
            T in = g[0], forget = g[n], cell = g[2 * n], out = g[3 * n], tc = rnn_tanh(w.extra[i]);
            T d = w.dc[i] + dh * out * (1 - tc * tc);
            dx[0] = d * cell * in * (1 - in);
            dx[n] = d * w.c[i] * forget * (1 - forget);
            dx[2 * n] = d * in * (1 - cell * cell);
            dx[3 * n] = dh * tc * out * (1 - out);
            w.dc[i] = d * forget;
            w.dh[i] = 0;
        } else if (s.mode == PROA_RNN_MODE_GRU) {
            T reset = g[0], update = g[n], cell = g[2 * n];
            T inner = dh * (1 - update) * (1 - cell * cell);
            dx[0] = du[0] = inner * w.extra[i] * reset * (1 - reset);
            dx[n] = du[n] = dh * (w.h[i] - cell) * update * (1 - update);
            dx[2 * n] = inner;
            du[2 * n] = inner * reset;
            w.dh[i] = dh * update;
        } else {
            dx[0] = s.mode == PROA_RNN_MODE_RNN_RELU ? (g[0] > 0 ? dh : 0) : dh * (1 - g[0] * g[0]);
            w.dh[i] = 0;
        }
    }
}

/* to[r, i] = row[i] */
template <class T> __global__ void rnn_rows_kernel(T *to, const T *row, int64_t rows, int64_t n)
{
    for (CUDA_EACH(i, rows * n)) to[i] = row[i % n];
}

/* to[i] = sum over r of x[r, i], in a fixed order; blocks of 32 columns, 8 threads a column. */
enum { RNN_COLUMNS = 32, RNN_LANES = 8 };
template <class T> __global__ void rnn_columns_kernel(const T *x, int64_t rows, int64_t n, T *to)
{
    __shared__ double part[RNN_LANES][RNN_COLUMNS];
    for (int64_t first = (int64_t)blockIdx.x * RNN_COLUMNS; first < n;
         first += (int64_t)gridDim.x * RNN_COLUMNS) {
        int64_t i = first + threadIdx.x;
        double sum = 0;
        for (int64_t r = threadIdx.y; i < n && r < rows; r += RNN_LANES) sum += x[r * n + i];
        __syncthreads(); /* a thread may still read the previous columns */
        part[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y > 0 || i >= n) continue;
        for (int lane = 1; lane < RNN_LANES; lane++) sum += part[lane][threadIdx.x];
        to[i] = (T)sum;
    }
}

/* Dropout between layers: x · scale where kept. */
template <class T> __global__ void rnn_mask_kernel(T *x, const uint8_t *keep, T scale, int64_t n)
{
    for (CUDA_EACH(i, n)) x[i] = keep[i] ? x[i] * scale : 0;
}

#endif
