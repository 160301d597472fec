/* Dropout on a GPU. Element i uses the same 16 bits of the Philox stream as on the CPU. A thread draws the
 * block of 128 bits that eight neighboring elements share; within a warp it hands them on, so that threads
 * access neighboring groups of four. */
#include "ops/elementwise/cuda/elementwise.h"

#include "core/philox.h"

/* Elements of a Philox block; of a group; of a warp at once, which are two groups a thread. */
enum { DROP_EACH = 8, DROP_GROUP = 4, DROP_TILE = 256, DROP_GROUPS = 2 };

struct drop_job {
    const char *x;
    char *y;
    uint8_t *mask; /* of y's shape */
    int64_t n;
    double scale;
    cuda_draws stream;
    uint32_t threshold; /* an element is dropped when its bits are below */
    bool packs;         /* groups are aligned, those of the mask, too */
};

/* Eight bits: which of block b's elements are kept. */
CUDA_FN uint32_t drop_bits(const drop_job &j, proa_rng_state at, int64_t b)
{
    proa__philox_block r = proa__philox(at.seed, at.offset + (uint64_t)b);
    uint32_t kept = 0;
    for (int k = 0; k < DROP_EACH; k++)
        kept |= (uint32_t)((r.v[k / 2] >> 16 * (k % 2) & 0xffffu) >= j.threshold) << k;
    return kept;
}

/* Reads or writes the first `n` elements of a group, all of them at once if `pack`. */
template <class X> CUDA_FN void drop_read(const X *p, int64_t n, bool pack, X *to)
{
    if (pack) return cuda_take<DROP_GROUP>(p, to);
    for (int k = 0; k < DROP_GROUP; k++) to[k] = k < n ? p[k] : X{};
}
template <class X> CUDA_FN void drop_write(X *p, int64_t n, bool pack, const X *from)
{
    if (pack) return cuda_put<DROP_GROUP>(p, from);
    for (int k = 0; k < DROP_GROUP; k++)
        if (k < n) p[k] = from[k];
}

/* S: stored type; T: computing type. DRAW: draws the mask, otherwise reads it. */
template <class S, class T, bool DRAW> __global__ void drop_kernel(drop_job j)
{
    T scale = (T)j.scale;
    proa_rng_state at = DRAW ? cuda_drawn(j.stream) : proa_rng_state{};
    int lane = (int)threadIdx.x % 32;
    int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32;
    for (int64_t t = warp; t * DROP_TILE < j.n; t += warps) {
        S v[DROP_GROUPS][DROP_GROUP];
        uint8_t keep[DROP_GROUPS][DROP_GROUP];
        int64_t first[DROP_GROUPS], n[DROP_GROUPS];
        for (int g = 0; g < DROP_GROUPS; g++) {
            first[g] = t * DROP_TILE + (g * 32 + lane) * DROP_GROUP;
            n[g] = j.n - first[g];
            bool pack = j.packs && n[g] >= DROP_GROUP;
            drop_read((const S *)(const void *)j.x + first[g], n[g], pack, v[g]);
            if (!DRAW) drop_read<uint8_t>(j.mask + first[g], n[g], pack, keep[g]);
        }
        uint32_t bits = DRAW ? drop_bits(j, at, t * 32 + lane) : 0;
        for (int g = 0; g < DROP_GROUPS; g++) {
            bool pack = j.packs && n[g] >= DROP_GROUP;
            uint32_t four = DRAW ? __shfl_sync(~0u, bits, g * 16 + lane / 2) >> lane % 2 * DROP_GROUP : 0;
            for (int k = 0; k < DROP_GROUP; k++) {
                if (DRAW) keep[g][k] = four >> k & 1;
                v[g][k] = cuda_cast<S>(keep[g][k] ? (T)(cuda_cast<T>(v[g][k]) * scale) : (T)0);
            }
            drop_write((S *)(void *)j.y + first[g], n[g], pack, v[g]);
            if (DRAW) drop_write<uint8_t>(j.mask + first[g], n[g], pack, keep[g]);
        }
    }
}

/* Draws a mask that is smaller than x (it broadcasts), without applying it. */
__global__ void drop_mask_kernel(drop_job j)
{
    proa_rng_state at = cuda_drawn(j.stream);
    for (CUDA_EACH(b, (j.n + DROP_EACH - 1) / DROP_EACH)) {
        uint32_t bits = drop_bits(j, at, b);
        for (int k = 0; k < DROP_EACH && b * DROP_EACH + k < j.n; k++)
            j.mask[b * DROP_EACH + k] = bits >> k & 1;
    }
}

template <class X> struct drop_fn {
    typedef X T;
    typedef X R;
    T scale;
    CUDA_CALL R operator()(T x, T keep) const { return keep != 0 ? (T)(x * scale) : (T)0; }
};
template <class X> struct drop_scale_fn {
    typedef X T;
    typedef X R;
    T scale;
    CUDA_CALL R operator()(T x) const { return x * scale; }
};

template <bool DRAW> static proa_status drop_run(cuda_context *c, proa_dtype d, drop_job j)
{
    unsigned blocks = cuda_blocks(j.n, CUDA_BLOCK / 32 * DROP_TILE);
    if (j.n == 0) return PROA_OK;
    uintptr_t group = (uintptr_t)(DROP_GROUP * cuda_item(d));
    j.packs =
        (uintptr_t)j.x % group == 0 && (uintptr_t)j.y % group == 0 && (uintptr_t)j.mask % DROP_GROUP == 0;
    switch (d) {
    case PROA_F64: return cuda_launch(c, blocks, CUDA_BLOCK, (drop_kernel<double, double, DRAW>), j);
    case PROA_F32: return cuda_launch(c, blocks, CUDA_BLOCK, (drop_kernel<float, float, DRAW>), j);
    case PROA_F16: return cuda_launch(c, blocks, CUDA_BLOCK, (drop_kernel<cuda_f16, float, DRAW>), j);
    default: return cuda_launch(c, blocks, CUDA_BLOCK, (drop_kernel<cuda_bf16, float, DRAW>), j);
    }
}

/* y = x where the mask, which broadcasts, keeps it. */
static proa_status drop_broadcast(cuda_context *c, proa_tensor *y, proa_tensor *x, proa_tensor *mask,
                                  double scale)
{
    proa_tensor *t[] = {y, x, mask};
    if (cuda_look(y).dtype == PROA_F64) return cuda_map_run<2>(c, t, drop_fn<double>{scale});
    return cuda_map_run<2>(c, t, drop_fn<float>{(float)scale});
}

static double kept_scale(double p, proa_dropout_mode mode)
{
    if (mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER) return 1;
    return p < 1 ? 1 / (1 - p) : 0;
}

CUDA_KERNEL(dropout, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x), y = cuda_look(a->out);
    if (!a->training) {
        double scale = a->mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER ? 1 - a->p : 1;
        proa_tensor *t[] = {a->out, a->x};
        if (x.dtype == PROA_F64) return cuda_map_run<1>(c, t, drop_scale_fn<double>{scale});
        return cuda_map_run<1>(c, t, drop_scale_fn<float>{(float)scale});
    }
    cuda_tensor mask = cuda_look(a->mask);
    drop_job j = {x.data, y.data, mask.as<uint8_t>(), mask.numel, kept_scale(a->p, a->mode), {}, 0};
    j.threshold = (uint32_t)(a->p * 65536.0 + 0.5);
    j.stream = cuda_draws{{(uint64_t)a->seed, 0}, NULL};
    if (!a->fix_seed) PROA_TRY(cuda_draw(c, (uint64_t)(mask.numel + DROP_EACH - 1) / DROP_EACH, &j.stream));
    if (mask.numel == x.numel) return drop_run<true>(c, x.dtype, j);
    if (mask.numel == 0) return PROA_OK;
    PROA_TRY(cuda_launch(c, cuda_blocks((j.n + DROP_EACH - 1) / DROP_EACH), CUDA_BLOCK, drop_mask_kernel, j));
    return drop_broadcast(c, a->out, a->x, a->mask, j.scale);
}

CUDA_KERNEL(dropout_grad, CUDA_IS(a->d_out, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->d_out), y = cuda_look(a->d_x), mask = cuda_look(a->mask);
    double scale = kept_scale(a->p, a->mode);
    if (mask.numel != x.numel) return drop_broadcast(c, a->d_x, a->d_out, a->mask, scale);
    return drop_run<false>(c, x.dtype, drop_job{x.data, y.data, mask.as<uint8_t>(), x.numel, scale, {}, 0});
}
