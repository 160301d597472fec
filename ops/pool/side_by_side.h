/* Max pooling of NCHW float32 with non-overlapping 2×2 windows, forward and backward, four windows at a time
 * by vector shuffles. Each window is read in the same order as in body.inc. Included by
 * ops/pool/cpu/pool.c. */

enum { SIDE_LANES = 4 };
typedef float side_row __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t side_mask __attribute__((vector_size(16), aligned(4), may_alias));

static bool is_2x2_max(const pool_job *job)
{
    const pool_geometry *g = &job->g;
    if ((job->task != POOL_FORWARD && job->task != POOL_BACKWARD) || job->mask || job->dtype != PROA_F32)
        return false;
    if (g->type != PROA_POOLING_TYPE_MAX || g->adaptive || g->channels_last || g->in[0] != 1) return false;
    bool fits = g->out[0] == 1 && g->kernel[0] == 1 && !g->before[0];
    for (int i = 1; i < 3; i++)
        fits = fits && g->kernel[i] == 2 && g->stride[i] == 2 && !g->before[i] && 2 * g->out[i] <= g->in[i];
    return fits;
}

/* Elements 0, 2, 4, 6 and 1, 3, 5, 7 of the eight in a and b. */
static inline side_row side_even(side_row a, side_row b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
static inline side_row side_odd(side_row a, side_row b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7); }

/* max(v, value); *larger: lanes in which v is larger. A NaN in v never is. */
static inline side_row side_larger(side_row v, side_row value, side_mask *larger)
{
    *larger = v > value;
    return (side_row)((*larger & (side_mask)v) | (~*larger & (side_mask)value));
}

/* Maxima of four adjacent 2×2 windows, whose rows start at a and b; later[k]: lanes in which element k + 1 of
 * the window exceeds those before it. */
static inline side_row side_largest(const float *a, const float *b, side_mask *later)
{
    side_row a0 = *(const side_row *)a, a1 = *(const side_row *)(a + SIDE_LANES);
    side_row b0 = *(const side_row *)b, b1 = *(const side_row *)(b + SIDE_LANES);
    side_row value = side_larger(side_odd(a0, a1), side_even(a0, a1), &later[0]);
    value = side_larger(side_even(b0, b1), value, &later[1]);
    return side_larger(side_odd(b0, b1), value, &later[2]);
}

static inline void side_spread(const float *a, const float *b, const float *d_out, float *d_a, float *d_b)
{
    side_mask later[3], d = (side_mask)(*(const side_row *)d_out + 0.0f);
    side_largest(a, b, later);
    side_row last = (side_row)(d & later[2]), third = (side_row)(d & later[1] & ~later[2]);
    side_row second = (side_row)(d & later[0] & ~later[1] & ~later[2]);
    side_row first = (side_row)(d & ~(later[0] | later[1] | later[2]));
    *(side_row *)d_a = __builtin_shufflevector(first, second, 0, 4, 1, 5);
    *(side_row *)(d_a + SIDE_LANES) = __builtin_shufflevector(first, second, 2, 6, 3, 7);
    *(side_row *)d_b = __builtin_shufflevector(third, last, 0, 4, 1, 5);
    *(side_row *)(d_b + SIDE_LANES) = __builtin_shufflevector(third, last, 2, 6, 3, 7);
}

/* One 2×2 window: returns its maximum, or (d_out not NULL) writes its gradient to d_a and d_b. */
static inline float side_one(const float *a, const float *b, const float *d_out, float *d_a, float *d_b)
{
    float value = a[0];
    int best = 0;
    best = a[1] > value ? 1 : best, value = a[1] > value ? a[1] : value;
    best = b[0] > value ? 2 : best, value = b[0] > value ? b[0] : value;
    best = b[1] > value ? 3 : best, value = b[1] > value ? b[1] : value;
    if (!d_out) return value;
    d_a[0] = d_a[1] = d_b[0] = d_b[1] = 0;
    (best < 2 ? d_a : d_b)[best & 1] = *d_out + 0.0f;
    return value;
}

/* Maxima of a row of n windows; the last vector may overlap the one before and write the same values
 * again. */
static void side_row_forward(const float *a, const float *b, int64_t n, float *out)
{
    side_mask later[3];
    if (n < SIDE_LANES)
        for (int64_t o = 0; o < n; o++) out[o] = side_one(a + 2 * o, b + 2 * o, NULL, NULL, NULL);
    for (int64_t o = 0; n >= SIDE_LANES && o < n; o += SIDE_LANES) {
        int64_t at = o + SIDE_LANES > n ? n - SIDE_LANES : o;
        *(side_row *)(out + at) = side_largest(a + 2 * at, b + 2 * at, later);
    }
}

static void side_row_backward(const float *a, const float *b, const float *d_out, int64_t n, float *d_a,
                              float *d_b)
{
    if (n < SIDE_LANES)
        for (int64_t o = 0; o < n; o++) side_one(a + 2 * o, b + 2 * o, d_out + o, d_a + 2 * o, d_b + 2 * o);
    for (int64_t o = 0; n >= SIDE_LANES && o < n; o += SIDE_LANES) {
        int64_t at = o + SIDE_LANES > n ? n - SIDE_LANES : o;
        side_spread(a + 2 * at, b + 2 * at, d_out + at, d_a + 2 * at, d_b + 2 * at);
    }
}

/* Item: plane. Backward writes zeros to rows and columns that no window covers. */
static void side_planes(int64_t begin, int64_t end, void *context)
{
    const pool_job *job = context;
    const pool_geometry *g = &job->g;
    int64_t rows = g->out[1], n = g->out[2], width = g->in[2];
    for (int64_t p = begin; p < end; p++) {
        const float *x = (const float *)job->x + p * g->in[1] * width;
        for (int64_t r = 0; r < rows; r++) {
            const float *a = x + 2 * r * width;
            int64_t at = (p * rows + r) * n;
            if (job->task == POOL_FORWARD) {
                side_row_forward(a, a + width, n, (float *)job->result + at);
                continue;
            }
            float *d_a = (float *)job->result + (p * g->in[1] + 2 * r) * width;
            side_row_backward(a, a + width, (const float *)job->other + at, n, d_a, d_a + width);
            for (int64_t i = 2 * n; i < width; i++) d_a[i] = d_a[width + i] = 0;
        }
        if (job->task == POOL_BACKWARD)
            memset((float *)job->result + (p * g->in[1] + 2 * rows) * width, 0,
                   (size_t)((g->in[1] - 2 * rows) * width) * sizeof(float));
    }
}
