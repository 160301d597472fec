/* float32 convolutions of NCHW images, stride 1, with too few output channels for vectors of channels:
 * forward and wgrad use vectors of neighboring pixels of a row. Images are computed in chunks that do not
 * depend on the number of threads, each chunk with its own scratch. Measured on LeNet's first convolution
 * (64×1×28×28 to 6 channels, 5×5): forward 120 µs instead of oneDNN's 265, wgrad 154 instead of 195. Included
 * by cpu/conv.c. */
#define FEW_LANES ((int64_t)(VECTOR_BYTES / 4))

enum { FEW_CHUNKS = 32, FEW_TAPS = 5 };

typedef float low_output_lane __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

typedef struct low_output_job {
    const conv_geometry *g;
    const float *in, *filter, *bias, *out;
    float *result;
    float *work; /* of each chunk: a padded image; in wgrad also d_out and sums */
    int64_t each, chunks;
    int64_t lines, pitch, places; /* padded image: rows per channel, floats of a row, of all */
    int64_t out_pitch, numbers;   /* floats of a d_out row, of the filter */
} low_output_job;

static low_output_job low_output_start(const conv_job *job)
{
    const conv_geometry *g = job->g;
    low_output_job f = {.g = g,
                        .in = job->in,
                        .filter = job->filter,
                        .bias = job->bias,
                        .out = job->out,
                        .result = job->result,
                        .chunks = gemm_min(g->batch, FEW_CHUNKS),
                        .lines = g->in[1] + g->before[1] + g->after[1],
                        .out_pitch = gemm_round_up(g->out[2], FEW_LANES),
                        .numbers = g->out_channels * g->in_channels * g->kernel[1] * g->kernel[2]};
    f.pitch = gemm_round_up(g->out[2], 2 * FEW_LANES) + gemm_round_up(g->kernel[2], 16);
    f.places = g->in_channels * f.lines * f.pitch;
    return f;
}

static inline int64_t low_output_chunk(const low_output_job *f, int64_t chunk)
{
    return chunk * f->g->batch / f->chunks;
}

/* ---- forward ---- */

/* Stores the first n floats of two vectors. */
static inline __attribute__((always_inline)) void low_output_put(float *to, const low_output_lane *sum,
                                                                 int64_t n)
{
#if defined(__AVX512F__)
    const uint32_t mask = n < 2 * FEW_LANES ? (UINT32_C(1) << n) - 1 : UINT32_MAX;
    _mm512_mask_storeu_ps(to, (__mmask16)mask, (__m512)sum[0]);
    _mm512_mask_storeu_ps(to + FEW_LANES, (__mmask16)(mask >> FEW_LANES), (__m512)sum[1]);
#else
    copy_short(to, (const float *)sum, n);
#endif
}

/* Two vectors of adjacent output pixels, whose inputs start at x, for `os` output channels from o on; stores
 * the first n pixels. */
static inline __attribute__((always_inline)) void low_output_places(const low_output_job *f, const int os,
                                                                    int64_t o, const float *x, int64_t n,
                                                                    float *to)
{
    const conv_geometry *g = f->g;
    low_output_lane sum[4][2];
    int64_t each = f->numbers / g->out_channels, plane = g->out[1] * g->out[2];
    const float *w = f->filter + o * each;
#pragma GCC unroll 4
    for (int i = 0; i < os; i++) {
        sum[i][0] = sum[i][1] = (low_output_lane){0};
        if (f->bias) sum[i][0] += f->bias[o + i], sum[i][1] += f->bias[o + i];
    }
    for (int64_t c = 0; c < g->in_channels; c++)
        for (int64_t r = 0; r < g->kernel[1]; r++) {
            const float *row = x + (c * f->lines + r) * f->pitch;
            for (int64_t k = 0; k < g->kernel[2]; k++, w++) {
                low_output_lane a = *(const low_output_lane *)(row + k),
                                b = *(const low_output_lane *)(row + k + FEW_LANES);
#pragma GCC unroll 4
                for (int i = 0; i < os; i++) sum[i][0] += w[i * each] * a, sum[i][1] += w[i * each] * b;
            }
        }
#pragma GCC unroll 4
    for (int i = 0; i < os; i++) low_output_put(to + i * plane, sum[i], n);
}

static void low_output_forward_range(int64_t begin, int64_t end, void *context)
{
    const low_output_job *f = context;
    const conv_geometry *g = f->g;
    int64_t plane = g->out[1] * g->out[2];
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *image = f->work + chunk * f->each;
        for (int64_t n = low_output_chunk(f, chunk); n < low_output_chunk(f, chunk + 1); n++) {
            pad_image(g, f->in, n, f->lines, f->pitch, image);
            for (int64_t o = 0; o < g->out_channels; o += 4)
                for (int64_t y = 0; y < g->out[1]; y++)
                    for (int64_t x = 0; x < g->out[2]; x += 2 * FEW_LANES) {
                        const float *from = image + y * f->pitch + x;
                        float *to = f->result + (n * g->out_channels + o) * plane + y * g->out[2] + x;
                        int64_t count = gemm_min(2 * FEW_LANES, g->out[2] - x);
                        switch (gemm_min(4, g->out_channels - o)) {
                        case 1: low_output_places(f, 1, o, from, count, to); break;
                        case 2: low_output_places(f, 2, o, from, count, to); break;
                        case 3: low_output_places(f, 3, o, from, count, to); break;
                        default: low_output_places(f, 4, o, from, count, to); break;
                        }
                    }
        }
    }
}

static proa_status low_output_forward(const conv_job *job)
{
    low_output_job f = low_output_start(job);
    f.each = gemm_round_up(f.places, 16);
    f.work = proa_scratch((size_t)(f.chunks * f.each) * sizeof(float));
    if (!f.work) return proa_error();
    proa__parallel(f.chunks, conv_grain(f.g, f.chunks), low_output_forward_range, &f);
    proa_scratch_free(f.work);
    return PROA_OK;
}

/* ---- wgrad ---- */

/* sums[channel][tap of the row] += d · x, over a whole plane, as vectors; `step`: between channels. */
static inline __attribute__((always_inline)) void low_output_row(const low_output_job *f, const int os,
                                                                 const int taps, const float *x,
                                                                 const float *d, float *sums, int64_t step)
{
    const conv_geometry *g = f->g;
    low_output_lane sum[2][FEW_TAPS];
#pragma GCC unroll 2
    for (int i = 0; i < os; i++)
#pragma GCC unroll 5
        for (int k = 0; k < taps; k++)
            sum[i][k] = *(const low_output_lane *)(sums + i * step + k * FEW_LANES);
    for (int64_t y = 0; y < g->out[1]; y++)
        for (int64_t at = 0; at < f->out_pitch; at += FEW_LANES) {
            const float *row = x + y * f->pitch + at, *d_row = d + y * f->out_pitch + at;
            low_output_lane v[2];
#pragma GCC unroll 2
            for (int i = 0; i < os; i++)
                v[i] = *(const low_output_lane *)(d_row + i * g->out[1] * f->out_pitch);
#pragma GCC unroll 5
            for (int k = 0; k < taps; k++) {
                low_output_lane a = *(const low_output_lane *)(row + k);
#pragma GCC unroll 2
                for (int i = 0; i < os; i++) sum[i][k] += v[i] * a;
            }
        }
#pragma GCC unroll 2
    for (int i = 0; i < os; i++)
#pragma GCC unroll 5
        for (int k = 0; k < taps; k++) *(low_output_lane *)(sums + i * step + k * FEW_LANES) = sum[i][k];
}

static void low_output_filter_range(int64_t begin, int64_t end, void *context)
{
    const low_output_job *f = context;
    const conv_geometry *g = f->g;
    int64_t step = f->numbers / g->out_channels * FEW_LANES;
    bool three = g->kernel[2] == 3;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        float *image = f->work + chunk * f->each, *d = image + f->places, *sums;
        sums = d + g->out_channels * g->out[1] * f->out_pitch;
        memset(d, 0, (size_t)(f->each - f->places) * sizeof *d);
        for (int64_t n = low_output_chunk(f, chunk); n < low_output_chunk(f, chunk + 1); n++) {
            pad_image(g, f->in, n, f->lines, f->pitch, image);
            for (int64_t r = 0; r < g->out_channels * g->out[1]; r++)
                copy_short(d + r * f->out_pitch, f->out + (n * g->out_channels * g->out[1] + r) * g->out[2],
                           g->out[2]);
            for (int64_t o = 0; o < g->out_channels; o += 2)
                for (int64_t c = 0; c < g->in_channels; c++)
                    for (int64_t r = 0; r < g->kernel[1]; r++) {
                        const float *x = image + (c * f->lines + r) * f->pitch;
                        const float *from = d + o * g->out[1] * f->out_pitch;
                        float *to = sums + o * step + (c * g->kernel[1] + r) * g->kernel[2] * FEW_LANES;
                        bool both = o + 1 < g->out_channels;
                        if (both && three) low_output_row(f, 2, 3, x, from, to, step);
                        else if (both) low_output_row(f, 2, 5, x, from, to, step);
                        else if (three) low_output_row(f, 1, 3, x, from, to, step);
                        else low_output_row(f, 1, 5, x, from, to, step);
                    }
        }
    }
}

static proa_status low_output_filter(const conv_job *job)
{
    low_output_job f = low_output_start(job);
    const conv_geometry *g = f.g;
    int64_t before = f.places + g->out_channels * g->out[1] * f.out_pitch;
    f.each = gemm_round_up(before + f.numbers * FEW_LANES, 16);
    f.work = proa_scratch((size_t)(f.chunks * f.each) * sizeof(float));
    if (!f.work) return proa_error();
    proa__parallel(f.chunks, conv_grain(g, f.chunks), low_output_filter_range, &f);
    for (int64_t i = 0; i < f.numbers; i++) {
        low_output_lane sum = {0};
        float total = 0;
        for (int64_t chunk = 0; chunk < f.chunks; chunk++)
            sum += *(const low_output_lane *)(f.work + chunk * f.each + before + i * FEW_LANES);
        for (int64_t l = 0; l < FEW_LANES; l++) total += sum[l];
        f.result[i] = total;
    }
    proa_scratch_free(f.work);
    return PROA_OK;
}
