/* Channels-last convolutions whose filter never changes. Each channel by itself: depthwise.h. 1×1: products
 * with a packed operand (ops/packed.h). 3×3 with stride 1: F(2×2, 3×3) of Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks" (2016): 2.25 times fewer multiplications, between sums of four numbers
 * that cost little precision (larger tiles would cost more). May use core and helpers of ops/. */
#include "ops/conv/depthwise.h"
#include "ops/conv/geometry.h"
#include "ops/packed.h"

/* ---- 1×1 ------------------------------------------------------------------------------------ */

static proa_status run_pointwise(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s)
{
    int64_t k = g->in_channels, n = g->out_channels, line = g->in[2] * k;
    bool dense = g->stride[1] == 1 && g->stride[2] == 1;
    packed_product w = {.a = {(const float *)(void *)a->x->data, k, 0, 0, 0, 0},
                        .b = packed_operand(s, a->weight, (gemm_strides){1, k}, k, n),
                        .c = (float *)(void *)a->out->data,
                        .m = g->batch * g->out[1] * g->out[2],
                        .n = n,
                        .k = k,
                        .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data,
                        .tail = PROA__TAIL(a)};
    w.residual = packed_residual(&w.tail);
    if (!dense) {
        w.a.ld = g->stride[2] * k, w.a.width = g->out[2], w.a.lines = g->out[1];
        w.a.line_step = g->stride[1] * line, w.a.image_step = g->in[1] * line;
    }
    return w.b ? packed_run(&w) : proa_error();
}

/* ---- 3×3 ------------------------------------------------------------------------------------ */

enum { POINTS = 16, LEAST_TILES = 40, TILE_BYTES = 512 << 10 };

typedef struct minimal {
    const conv_geometry *g;
    const float *x, *filter, *bias;
    const float *u; /* [panel][point][in channel][PACKED_NR] */
    float *packed;  /* u while it is made */
    float *out, *work;
    proa__tail tail;
    int64_t down, across, tiles; /* tiles of 2×2 results */
    int64_t chunk, ld, work_each;
    packed_turns turns; /* chunks */
} minimal;

/* Points of one filter: G·g·Gᵀ. */
static void filter_points(const float *g, float *u)
{
    float h[4][3];
    for (int c = 0; c < 3; c++) {
        float a = g[c], b = g[3 + c], d = g[6 + c];
        h[0][c] = a, h[1][c] = 0.5f * (a + b + d), h[2][c] = 0.5f * (a - b + d), h[3][c] = d;
    }
    for (int r = 0; r < 4; r++) {
        float a = h[r][0], b = h[r][1], d = h[r][2];
        u[r * 4] = a, u[r * 4 + 1] = 0.5f * (a + b + d), u[r * 4 + 2] = 0.5f * (a - b + d), u[r * 4 + 3] = d;
    }
}

static void filter_range(int64_t begin, int64_t end, void *context)
{
    const minimal *w = context;
    int64_t in = w->g->in_channels;
    for (int64_t panel = begin; panel < end; panel++) {
        float *to = w->packed + panel * POINTS * in * PACKED_NR, u[POINTS];
        memset(to, 0, (size_t)(POINTS * in * PACKED_NR) * sizeof *to);
        for (int64_t j = 0; j < gemm_min(PACKED_NR, w->g->out_channels - panel * PACKED_NR); j++)
            for (int64_t c = 0; c < in; c++) {
                filter_points(w->filter + ((panel * PACKED_NR + j) * in + c) * 9, u);
                for (int p = 0; p < POINTS; p++) to[(p * in + c) * PACKED_NR + j] = u[p];
            }
    }
}

/* Points of one tile of the input: Bᵀ·d·B, for all channels. v: of point 0. */
static void input_points(const minimal *w, int64_t tile, const float *zeros, float *v)
{
    const conv_geometry *g = w->g;
    int64_t in = g->in_channels, per_image = w->down * w->across, at = tile % per_image;
    int64_t y0 = at / w->across * 2 - g->before[1], x0 = at % w->across * 2 - g->before[2];
    const float *image = w->x + tile / per_image * g->in[1] * g->in[2] * in, *from[POINTS];
    for (int i = 0; i < POINTS; i++) {
        int64_t y = y0 + i / 4, x = x0 + i % 4;
        bool inside = y >= 0 && y < g->in[1] && x >= 0 && x < g->in[2];
        from[i] = inside ? image + (y * g->in[2] + x) * in : zeros;
    }
    for (int64_t c = 0; c < in; c += PACKED_LANES) {
        packed_vector d[POINTS], h[POINTS];
#pragma GCC unroll 16
        for (int i = 0; i < POINTS; i++) d[i] = *(const packed_vector *)(from[i] + c);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            h[i] = d[i] - d[8 + i];
            h[4 + i] = d[4 + i] + d[8 + i];
            h[8 + i] = d[8 + i] - d[4 + i];
            h[12 + i] = d[4 + i] - d[12 + i];
        }
#pragma GCC unroll 4
        for (int r = 0; r < POINTS; r += 4) {
            float *to = v + r * w->chunk * w->ld + c;
            *(packed_vector *)to = h[r] - h[r + 2];
            *(packed_vector *)(to + w->chunk * w->ld) = h[r + 1] + h[r + 2];
            *(packed_vector *)(to + 2 * w->chunk * w->ld) = h[r + 2] - h[r + 1];
            *(packed_vector *)(to + 3 * w->chunk * w->ld) = h[r + 1] - h[r + 3];
        }
    }
}

/* One result's channels [c, c + LANES): bias, residual, activation. */
static inline void put_result(const minimal *w, packed_vector y, int64_t at, int64_t c)
{
    const packed_vector zero = {0};
    if (w->bias) y += *(const packed_vector *)(w->bias + c);
    const float *residual = packed_residual(&w->tail);
    if (residual) y += *(const packed_vector *)(residual + at);
    if (packed_clamps(&w->tail)) y = packed_clamp(y, zero, zero + packed_high(&w->tail));
    *(packed_vector *)(w->out + at) = y;
    if (!packed_clamps(&w->tail)) packed_activate(w->out + at, PACKED_LANES, &w->tail);
}

/* The four results of a tile: Aᵀ·m·A, for the channels of a panel. m: of point 0. */
static void results(const minimal *w, int64_t tile, int64_t panel, const float *m)
{
    const conv_geometry *g = w->g;
    int64_t per_image = w->down * w->across, at = tile % per_image, step = w->chunk * PACKED_NR;
    int64_t y = at / w->across * 2, x = at % w->across * 2, first = panel * PACKED_NR;
    int64_t pixel = (tile / per_image * g->out[1] + y) * g->out[2] + x;
    bool right = x + 1 < g->out[2], below = y + 1 < g->out[1];
    for (int64_t c = first; c < gemm_min(first + PACKED_NR, g->out_channels); c += PACKED_LANES) {
        packed_vector p[POINTS], h[8];
#pragma GCC unroll 16
        for (int i = 0; i < POINTS; i++) p[i] = *(const packed_vector *)(m + i * step + c - first);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            h[i] = p[i] + p[4 + i] + p[8 + i];
            h[4 + i] = p[4 + i] - p[8 + i] - p[12 + i];
        }
        int64_t to = pixel * g->out_channels + c, line = g->out[2] * g->out_channels;
        put_result(w, h[0] + h[1] + h[2], to, c);
        if (right) put_result(w, h[1] - h[2] - h[3], to + g->out_channels, c);
        if (below) put_result(w, h[4] + h[5] + h[6], to + line, c);
        if (right && below) put_result(w, h[5] - h[6] - h[7], to + line + g->out_channels, c);
    }
}

/* Tiles [first, first + n), n ≤ chunk. */
static void minimal_chunk(const minimal *w, int64_t first, int64_t n, float *v, float *m, const float *zeros)
{
    int64_t in = w->g->in_channels, size = in * PACKED_NR, blocks = (n + PACKED_MR - 1) / PACKED_MR;
    int64_t step = (PACKED_NR + blocks - 1) / blocks;
    const packed_ends none = {.bias = NULL};
    for (int64_t t = 0; t < n; t++) input_points(w, first + t, zeros, v + t * w->ld);
    for (int64_t panel = 0; panel < packed_panels(w->g->out_channels); panel++) {
        for (int64_t p = 0; p < POINTS; p++)
            for (int64_t b = 0; b < blocks; b++) {
                const float *u = w->u + (panel * POINTS + p) * size;
                int64_t t = b * n / blocks, rows = (b + 1) * n / blocks - t, at = p * w->chunk + t;
                packed_tiles[rows - 1][1](in, v + at * w->ld, w->ld, u, m + at * PACKED_NR, PACKED_NR, &none,
                                          u + size + b * step * in, step);
            }
        for (int64_t t = 0; t < n; t++) results(w, first + t, panel, m + t * PACKED_NR);
    }
}

/* What one thread does. */
static void minimal_thread(int64_t begin, int64_t end, void *context)
{
    minimal *w = context;
    (void)end;
    float *v = w->work + begin * w->work_each, *m = v + POINTS * w->chunk * w->ld,
          *zeros = m + POINTS * w->chunk * PACKED_NR;
    memset(zeros, 0, (size_t)w->g->in_channels * sizeof *zeros);
    int64_t i;
    while ((i = packed_turn(&w->turns, begin)) >= 0)
        minimal_chunk(w, i * w->chunk, gemm_min(w->chunk, w->tiles - i * w->chunk), v, m, zeros);
}

static proa_status run_minimal(const proa_conv2d_fused_args *a, const conv_geometry *g, packed_state *s)
{
    minimal w = {.g = g,
                 .x = (const float *)(void *)a->x->data,
                 .filter = (const float *)(void *)a->weight->data,
                 .bias = proa__absent(a->bias) ? NULL : (const float *)(void *)a->bias->data,
                 .out = (float *)(void *)a->out->data,
                 .tail = PROA__TAIL(a),
                 .down = (g->out[1] + 1) / 2,
                 .across = (g->out[2] + 1) / 2};
    w.tiles = g->batch * w.down * w.across;
    w.u = w.packed = s->data;
    if (!packed_is_of(s, a->weight)) {
        w.u = w.packed = packed_renew(s, a->weight, POINTS * packed_floats(g->in_channels, g->out_channels));
        if (!w.packed) return proa_error();
        proa__parallel(packed_panels(g->out_channels), 1, filter_range, &w);
        packed_forget(a->weight);
    }
    int64_t threads = gemm_min(proa_threads(), w.tiles);
    w.ld = g->in_channels % 512 ? g->in_channels : g->in_channels + PACKED_LANES;
    int64_t share = (w.tiles + threads - 1) / threads, most = TILE_BYTES / (POINTS * 4 * (w.ld + PACKED_NR));
    w.chunk = (share + (share - 1) / most) / ((share - 1) / most + 1);
    w.work_each = POINTS * w.chunk * (w.ld + PACKED_NR) + g->in_channels;
    w.work = proa_scratch((size_t)(threads * w.work_each) * sizeof(float));
    if (!w.work) return proa_error();
    packed_turns_begin(&w.turns, (w.tiles + w.chunk - 1) / w.chunk, threads);
    proa__parallel(threads, 1, minimal_thread, &w);
    proa_scratch_free(w.work);
    return PROA_OK;
}

/* ---- which ------------------------------------------------------------------------------------- */

static bool all_are(const int64_t *sizes, int64_t value) { return sizes[1] == value && sizes[2] == value; }

static bool is_pointwise(const conv_geometry *g)
{
    return all_are(g->kernel, 1) && all_are(g->before, 0) && all_are(g->after, 0);
}

/* Tiles enough for the larger filter to be read at no cost. */
static bool is_minimal(const conv_geometry *g)
{
    int64_t tiles = g->batch * ((g->out[1] + 1) / 2) * ((g->out[2] + 1) / 2);
    return all_are(g->kernel, 3) && all_are(g->stride, 1) && all_are(g->dilation, 1) &&
           tiles >= LEAST_TILES && g->in_channels % 16 == 0 && g->out_channels % 16 == 0 &&
           g->in_channels <= PACKED_KC && g->in_channels >= 32;
}

static proa_status conv2d_fused_prepare(const void *args, void **state)
{
    const proa_conv2d_fused_args *a = args;
    const proa__tail tail = PROA__TAIL(a);
    conv_geometry g;
    if (!a->constant_weight || a->x->dtype != PROA_F32) return PROA_DECLINED;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (!g.channels_last || !proa__tail_is_plain(&tail, a->out)) return PROA_DECLINED;
    if (a->out->shape[0] != g.batch || a->out->numel == 0 || a->weight->numel == 0) return PROA_DECLINED;
    bool takes = g.groups == 1 ? is_pointwise(&g) || is_minimal(&g) : depthwise_takes(&g);
    return takes ? packed_prepare(state) : PROA_DECLINED;
}

PROA_KERNEL_PREPARED(conv2d_fused_packed_cpu, conv2d_fused, conv2d_fused_prepare, packed_release)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    if (g.groups > 1) return depthwise_run(a, &g, run->state);
    return is_pointwise(&g) ? run_pointwise(a, &g, run->state) : run_minimal(a, &g, run->state);
}
