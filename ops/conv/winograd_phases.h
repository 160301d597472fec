/* Stride-2 convolutions of 7 or 8 taps a side over few channels (the first layer of many networks) with
 * constant filters. Even and odd rows and columns of the padded image make four phase images, each with at
 * most 4×4 of the taps at stride 1; all channels of all four are summed together as Winograd F(3×3, 4×4): a
 * tile of 3×3 outputs takes 4·36 multiplications per channel instead of 9·49. Interpolation points and the
 * input transform are those of F(4×4, 3×3); rounding errors are 2.4 times those of direct float32
 * summation at 3 channels. AVX-512: a vector holds the channels of all phases of one pixel. For kernel files;
 * may use core and helpers of ops/; everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_PHASES_H
#define PROA_OPS_CONV_WINOGRAD_PHASES_H

#include "ops/conv/winograd.h"

#if defined(__AVX512F__) && defined(__AVX512VL__)

enum { PHASES_TAPS = 4, PHASES_SIDE = 6, PHASES_POINTS = 36 };
static const winograd_set winograd_phases = {
    .taps = PHASES_TAPS, .results = 3, .side = 6, .zero = 1, .a = 0.75f, .b = 1.5f};

/* Tap t of 4×4 of one channel of one phase: channels are [line's phase][column's phase][channel]. */
static inline int64_t phases_tap(const conv_geometry *g, int64_t channel, int64_t t)
{
    int64_t in = g->in_channels, phase = channel / in;
    int64_t y = t / PHASES_TAPS * 2 + phase / 2, x = t % PHASES_TAPS * 2 + phase % 2;
    if (y >= g->kernel[1] || x >= g->kernel[2]) return -1;
    return (channel % in * g->kernel[1] + y) * g->kernel[2] + x;
}

WINOGRAD_FILTER(phases)
WINOGRAD_RESULTS(phases)

/* Index vector of permutex2var that concatenates the first `two` floats of two vectors and fills up with
 * zeros, which lane 15 of the first has. */
static inline __m512i phases_order(int64_t two)
{
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __mmask16 second = (__mmask16)(UINT32_C(0xffff) << two),
                    rest = (__mmask16)(UINT32_C(0xffff) << 2 * two);
    __m512i from = _mm512_mask_add_epi32(lane, second, lane, _mm512_set1_epi32(PACKED_LANES - (int)two));
    return _mm512_mask_mov_epi32(from, rest, _mm512_set1_epi32(PACKED_LANES - 1));
}

static inline packed_vector phases_place(__m256 even, __m256 odd, __m512i order)
{
    return (packed_vector)_mm512_permutex2var_ps(_mm512_zextps256_ps512(even), order,
                                                 _mm512_zextps256_ps512(odd));
}

/* Mask of the `two` floats from `first` on that are in [0, length): the part of a pixel pair inside its
 * row. */
static inline __mmask8 phases_inside(int64_t first, int64_t two, int64_t length)
{
    uint32_t bits = 0;
    for (int64_t i = 0; i < two; i++) bits |= (uint32_t)(first + i >= 0 && first + i < length) << i;
    return (__mmask8)bits;
}

/* Writes a tile's points as row `row` of the sums: 6×6 pixels of each of the four phases, read as pixel pairs
 * from two image rows. */
static inline void phases_transform(const winograd *w, int64_t tile, int64_t row, float *v)
{
    const winograd_map *m = &w->from;
    const int64_t two = 2 * m->pixel, length = m->width * m->pixel, half = PACKED_LANES / 2;
    winograd_place at = winograd_place_of(w, tile);
    int64_t y = 2 * at.y - w->before[0], x = (2 * at.x - w->before[1]) * m->pixel;
    const float *image = m->data + at.image * m->image;
    const __m512i order = phases_order(two);
    packed_vector d[PHASES_POINTS];
    if (y >= 0 && x >= 0 && y + 2 * PHASES_SIDE <= m->height &&
        x + (PHASES_SIDE - 1) * two + half <= length) {
#pragma GCC unroll 36
        for (int i = 0; i < PHASES_POINTS; i++) {
            const float *even = image + y * length + x + i / PHASES_SIDE * 2 * length + i % PHASES_SIDE * two;
            d[i] = phases_place(_mm256_loadu_ps(even), _mm256_loadu_ps(even + length), order);
        }
    } else {
        const __m256 zero = _mm256_setzero_ps();
        __mmask8 on[PHASES_SIDE];
        for (int j = 0; j < PHASES_SIDE; j++) on[j] = phases_inside(x + j * two, two, length);
        for (int i = 0; i < PHASES_SIDE; i++, y += 2)
            for (int j = 0; j < PHASES_SIDE; j++) {
                int64_t even = y * length + x + j * two;
                __m256 p = zero, q = zero; /* loads from unmapped memory are slow even if masked off */
                if (y >= 0 && y < m->height && on[j]) p = _mm256_maskz_loadu_ps(on[j], image + even);
                if (y + 1 >= 0 && y + 1 < m->height && on[j])
                    q = _mm256_maskz_loadu_ps(on[j], image + even + length);
                d[i * PHASES_SIDE + j] = phases_place(p, q, order);
            }
    }
    winograd_input(&winograd_phases, d, 0, PHASES_SIDE, v + row * w->ld, w->from_step);
}

WINOGRAD_KIND(phases, 4, phases_tap, 256 << 10, PACKED_LANES);
#else
static const winograd_kind winograd_phases_kind; /* never chosen: it needs AVX-512 */
#endif

#endif
