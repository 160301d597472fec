/* Toolkit of every .cu kernel file: self-registering kernels, tensors, launches, dtypes, half conversions
 * (block.h has the collectives of a block). One source is compiled by nvcc and, against
 * devices/cuda/emulate, for the host; launches go through cuda_launch, and libraries through library.h. */
#ifndef PROA_CUDA_KERNEL_H
#define PROA_CUDA_KERNEL_H

#include "devices/cuda/runtime.h"

#include <math.h>
#include <string.h>

#if !defined(CUDA_EMULATED)
#include <cuda_runtime.h>
#endif

#include "core/half.h"
#include "devices/cuda/device.h"

/* ---- kernels of ops -------------------------------------------------------------------- */

struct cuda_register {
    cuda_registered entry;
    cuda_register(const char *op, const proa_kernel *kernel)
    {
        entry = {op, kernel, cuda_kernels};
        cuda_kernels = &entry;
    }
};

/* CUDA_KERNEL(matmul, CUDA_IS(a->x, CUDA_FLOATS)) { body }: defines and registers kernel matmul_cuda of op
 * matmul, which declines calls for which the condition is false. The body sees `a`, the op's args, and `c`,
 * the GPU's context, and returns a status. */
#define CUDA_KERNEL(op, condition) CUDA_KERNEL_OF(op, condition, PROA_OK, NULL)
/* Like CUDA_KERNEL, for a kernel that takes NCHW and channels-last tensors (cuda_tensor.channels_last says
 * which). The kernel stores its first output, `result`, channels last where `when` is true; that expression
 * may read shapes and dtypes of inputs only. */
#define CUDA_KERNEL_CHANNELS_LAST(op, condition, result, when)                                        \
    static int op##_cuda_format(const void *args, const void *)                                       \
    {                                                                                                 \
        const proa_##op##_args *a = (const proa_##op##_args *)args;                                   \
        (void)a;                                                                                      \
        return (when) && !cuda_is_either_layout(cuda_look(a->result)) ? PROA_CHANNELS_LAST : 0;       \
    }                                                                                                 \
    CUDA_KERNEL_OF(op, condition,                                                                     \
                   run->fresh &&op##_cuda_format(a, NULL) ? cuda_host->store_channels_last(a->result) \
                                                          : PROA_OK,                                  \
                   op##_cuda_format)
/* Registers the kernel of op `like` for `op` as well; both ops have the same args struct (`ranks:` of the
 * table). */
#define CUDA_KERNEL_ALSO(op, like)                                                                    \
    static const proa_kernel op##_cuda = {#op "_cuda",     like##_cuda.prepare,  NULL,                \
                                          like##_cuda.run, like##_cuda.anywhere, like##_cuda.format}; \
    static const cuda_register op##_cuda_registered(#op, &op##_cuda);
/* Like CUDA_KERNEL_CHANNELS_LAST, for a kernel that takes both layouts and reads or updates lists of tensors
 * (lists.h), without an output of its own layout. */
#define CUDA_KERNEL_EITHER(op, condition) CUDA_KERNEL_OF(op, condition, PROA_OK, cuda_format_none)
static inline int cuda_format_none(const void *, const void *) { return 0; }
#define CUDA_KERNEL_OF(op, condition, first, format)                               \
    static proa_status op##_cuda_body(const proa_##op##_args *a, cuda_context *c); \
    static proa_status op##_cuda_prepare(const void *args, void **)                \
    {                                                                              \
        const proa_##op##_args *a = (const proa_##op##_args *)args;                \
        (void)a;                                                                   \
        return (condition) ? PROA_OK : PROA_DECLINED;                              \
    }                                                                              \
    static proa_status op##_cuda_run(const void *args, proa_run *run)              \
    {                                                                              \
        const proa_##op##_args *a = (const proa_##op##_args *)args;                \
        PROA_TRY(first);                                                           \
        return op##_cuda_body(a, (cuda_context *)run->device);                     \
    }                                                                              \
    static const proa_kernel op##_cuda = {                                         \
        #op "_cuda", op##_cuda_prepare, NULL, op##_cuda_run, false, format};       \
    static const cuda_register op##_cuda_registered(#op, &op##_cuda);              \
    static proa_status op##_cuda_body(const proa_##op##_args *a, __attribute__((unused)) cuda_context *c)

/* ---- tensors --------------------------------------------------------------------------- */

struct cuda_tensor {
    char *data;
    proa_dtype dtype;
    int ndim;
    int64_t numel, shape[PROA_MAX_DIMS], strides[PROA_MAX_DIMS]; /* strides in bytes */
    bool channels_last; /* kernels with a format: if true, the elements are at `last`, perhaps not `data` */
    char *last;
    template <class T> T *as() const { return (T *)(void *)data; }
    int64_t dim(int i) const { return shape[i < 0 ? i + ndim : i]; }
};

static inline bool cuda_given(const proa_tensor *t) { return t && t != cuda_host->none; }

static inline cuda_tensor cuda_look(const proa_tensor *t)
{
    proa_tensor_facts f;
    cuda_tensor out;
    cuda_host->facts(t, &f);
    out.data = (char *)f.data;
    out.dtype = f.dtype;
    out.ndim = f.ndim;
    out.numel = f.numel;
    out.channels_last = f.channels_last;
    out.last = (char *)f.last;
    for (int i = 0; i < f.ndim; i++) out.shape[i] = f.shape[i], out.strides[i] = f.strides[i];
    return out;
}

static inline int64_t cuda_item(proa_dtype d)
{
#define PROA_X(NAME, name, bytes, wire) bytes,
    static const int sizes[] = { 0, PROA_DTYPES(PROA_X) };
#undef PROA_X
    return sizes[d];
}

/* Whether both layouts store t's elements in the same order: one channel, or one pixel per image. */
static inline bool cuda_is_either_layout(const cuda_tensor &t)
{
    return t.ndim < 3 || t.shape[1] == 1 || t.shape[0] * t.shape[1] == t.numel;
}

/* Makes t contiguous: if it is not, replaces it by a copy in *scratch, which the caller frees. */
static inline proa_status cuda_pack_tensor(cuda_context *c, cuda_tensor *t, void **scratch)
{
    proa_strided_copy copy = {};
    int64_t item = cuda_item(t->dtype), step = item;
    bool plain = true;
    for (int d = t->ndim - 1; d >= 0; step *= t->shape[d--]) {
        plain = plain && (t->shape[d] == 1 || t->strides[d] == step);
        copy.shape[d] = t->shape[d];
        copy.from[d] = t->strides[d];
        copy.to[d] = step;
    }
    if (plain || t->numel == 0) return PROA_OK;
    *scratch = cuda_scratch(c, (size_t)(t->numel * item));
    if (!*scratch) return cuda_host->error();
    copy.dst = (char *)*scratch;
    copy.src = t->data;
    copy.item = (size_t)item;
    copy.ndim = t->ndim;
    t->data = copy.dst;
    for (int d = 0; d < t->ndim; d++) t->strides[d] = copy.to[d];
    return cuda_copy_strided(c, &copy);
}

/* Sets of dtypes, for conditions. */
#define CUDA_BIT(D) (1u << PROA_##D)
enum {
    CUDA_HALVES = 1 << PROA_F16 | 1 << PROA_BF16,
    CUDA_FLOATS = CUDA_HALVES | 1 << PROA_F32 | 1 << PROA_F64,
    CUDA_INTEGERS = 1 << PROA_U8 | 1 << PROA_I8 | 1 << PROA_I16 | 1 << PROA_I32 | 1 << PROA_I64,
    CUDA_REALS = CUDA_FLOATS | CUDA_INTEGERS | 1 << PROA_BOOL,
    CUDA_INDICES = 1 << PROA_I32 | 1 << PROA_I64,
    CUDA_ANY = CUDA_REALS | 1 << PROA_C64 | 1 << PROA_C128
};
static inline bool CUDA_IS(const proa_tensor *t, unsigned set) { return set >> cuda_look(t).dtype & 1; }

/* ---- random numbers -------------------------------------------------------------------- */

CUDA_FN proa_rng_state cuda_drawn(const cuda_draws &d)
{
    return d.base ? proa_rng_state{d.base->seed, d.base->offset + d.at.offset} : d.at;
}

/* ---- attributes ------------------------------------------------------------------------ */

/* An element in host memory as a double; integers beyond 2^53 need cuda_integer. */
static inline double cuda_host_number(proa_dtype d, const void *p)
{
    switch (d) {
    case PROA_BOOL:
    case PROA_U8: return *(const uint8_t *)p;
    case PROA_I8: return *(const int8_t *)p;
    case PROA_I16: return *(const int16_t *)p;
    case PROA_I32: return *(const int32_t *)p;
    case PROA_I64: return (double)*(const int64_t *)p;
    case PROA_F16: return proa__f16_to_f32(*(const uint16_t *)p);
    case PROA_BF16: return proa__bf16_to_f32(*(const uint16_t *)p);
    case PROA_F32: return *(const float *)p;
    default: return *(const double *)p;
    }
}

/* Value of a scalar attribute, which a tensor may supply; that tensor is in host memory here. */
static inline double cuda_number(const proa_scalar *s, double fallback)
{
    if (s->kind == PROA_SCALAR_NONE) return fallback;
    if (s->kind == PROA_SCALAR_BOOL || s->kind == PROA_SCALAR_INT) return (double)s->i;
    if (s->kind != PROA_SCALAR_TENSOR) return s->f;
    cuda_tensor t = cuda_look(s->tensor);
    return cuda_host_number(t.dtype, t.data);
}
static inline int64_t cuda_integer(const proa_scalar *s, int64_t fallback)
{
    if (s->kind == PROA_SCALAR_BOOL || s->kind == PROA_SCALAR_INT) return s->i;
    if (s->kind == PROA_SCALAR_TENSOR && cuda_look(s->tensor).dtype == PROA_I64)
        return *cuda_look(s->tensor).as<int64_t>();
    double v = cuda_number(s, (double)fallback);
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

/* double to int64 as on the CPU: out-of-range values become the most negative integer; conversion to narrower
 * integers keeps the low bits. */
CUDA_BOTH int64_t cuda_whole(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
CUDA_BOTH int32_t cuda_short(double x) { return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }

/* A scalar attribute as an element of dtype d. */
static inline void cuda_scalar_to(const proa_scalar *s, proa_dtype d, void *to)
{
    double im = s->kind == PROA_SCALAR_COMPLEX ? s->im : 0;
    proa_dtype from = s->kind == PROA_SCALAR_TENSOR ? cuda_look(s->tensor).dtype : PROA_F64;
    double v = from == PROA_C64 ? *cuda_look(s->tensor).as<float>() : cuda_number(s, 0);
    if (from == PROA_C64) im = cuda_look(s->tensor).as<float>()[1];
    if (from == PROA_C128) im = cuda_look(s->tensor).as<double>()[1];
    bool whole = s->kind == PROA_SCALAR_BOOL || s->kind == PROA_SCALAR_INT || from <= PROA_I64;
    int64_t i = whole ? cuda_integer(s, 0) : d == PROA_I64 ? cuda_whole(v) : cuda_short(v);
    switch (d) {
    case PROA_BOOL: *(uint8_t *)to = v != 0 || im != 0; break;
    case PROA_U8:
    case PROA_I8: *(uint8_t *)to = (uint8_t)i; break;
    case PROA_I16: *(uint16_t *)to = (uint16_t)i; break;
    case PROA_I32: *(uint32_t *)to = (uint32_t)i; break;
    case PROA_I64: *(int64_t *)to = i; break;
    case PROA_F16: *(uint16_t *)to = proa__f32_to_f16((float)v); break;
    case PROA_BF16: *(uint16_t *)to = proa__f32_to_bf16((float)v); break;
    case PROA_C64: ((float *)to)[1] = (float)im; [[fallthrough]];
    case PROA_F32: *(float *)to = (float)v; break;
    case PROA_C128: ((double *)to)[1] = im; [[fallthrough]];
    default: *(double *)to = v; break;
    }
}

/* Copies the entries of a list attribute to `to`, at most `max`; returns their number. */
static inline int cuda_ints(const proa_ints *v, int max, int64_t *to)
{
    if (cuda_given(v->tensor)) {
        cuda_tensor t = cuda_look(v->tensor);
        int n = (int)(t.numel < max ? t.numel : max);
        for (int i = 0; i < n; i++)
            to[i] = t.dtype == PROA_I32 ? *(const int32_t *)(t.data + (t.ndim ? i * t.strides[0] : 0))
                                        : *(const int64_t *)(t.data + (t.ndim ? i * t.strides[0] : 0));
        return n;
    }
    int n = (int)(v->count < max ? v->count : max);
    for (int i = 0; i < n; i++) {
        if (!v->tensors || !cuda_given(v->tensors[i])) {
            to[i] = v->at[i];
            continue;
        }
        cuda_tensor t = cuda_look(v->tensors[i]);
        to[i] = t.dtype == PROA_I32 ? *t.as<int32_t>() : *t.as<int64_t>();
    }
    return n;
}

/* Value of a boolean flag of the library. */
static inline bool cuda_flag(const char *name)
{
    const char *value = cuda_host->flag(name);
    return value && strcmp(value, "0") != 0;
}

/* ---- launches -------------------------------------------------------------------------- */

enum { CUDA_BLOCK = 256 };

/* Number of blocks of CUDA_BLOCK threads for n items; the threads of a capped grid loop over the rest. */
static inline unsigned cuda_blocks(int64_t n, int64_t each = CUDA_BLOCK)
{
    int64_t blocks = (n + each - 1) / each;
    return (unsigned)(blocks < 1 ? 1 : blocks > 65535 ? 65535 : blocks);
}

template <class T> struct cuda_same {
    typedef T type;
};
template <class... P>
static inline proa_status cuda_start(cuda_context *c, dim3 grid, dim3 block, size_t shared,
                                     void (*kernel)(P...), typename cuda_same<P>::type... arguments)
{
    c->launches++;
#if defined(CUDA_EMULATED)
    auto thread = [=]() { kernel(arguments...); };
    auto run = [=]() mutable {
        emulate_launch(
            grid, block, [](void *context) { (*(decltype(thread) *)context)(); }, (void *)&thread, shared);
    };
    if (!emulate_keep(run)) run();
    return PROA_OK;
#else
    void *list[] = {(void *)&arguments...};
    int code = 0;
    if (shared > 48 << 10) /* what a kernel gets unasked */
        code = (int)cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)shared);
    if (code == 0)
        code =
            (int)cudaLaunchKernel((const void *)kernel, grid, block, list, shared, (cudaStream_t)c->stream);
    return cuda_check(c, code, "a launch", false);
#endif
}
/* cuda_launch(c, grid, block, kernel, arguments…): queues the kernel. An error is that of the launch itself,
 * not of the kernel's execution. */
#define cuda_launch(c, grid, block, kernel, ...) \
    cuda_start((c), dim3(grid), dim3(block), 0, kernel, __VA_ARGS__)
/* Like cuda_launch, with `bytes` of shared memory a block at cuda_shared(). A block has at most 99 KiB on
 * every GPU since compute capability 8.0. */
#define cuda_launch_shared(c, grid, block, bytes, kernel, ...) \
    cuda_start((c), dim3(grid), dim3(block), (bytes), kernel, __VA_ARGS__)
#if defined(CUDA_EMULATED)
CUDA_FN char *cuda_shared() { return emulate_shared(); }
#else
CUDA_FN char *cuda_shared()
{
    extern __shared__ __align__(16) char cuda_shared_memory[];
    return cuda_shared_memory;
}
#endif

/* Integer atomics; integer sums do not depend on their order. */
CUDA_FN int64_t cuda_atomic_add(int64_t *at, int64_t v)
{
    return (int64_t)atomicAdd((unsigned long long *)(void *)at, (unsigned long long)v);
}
CUDA_FN void cuda_atomic_max(int64_t *at, int64_t v) { atomicMax((long long *)(void *)at, (long long)v); }

/* Offset of element i in row-major order over `shape`. */
CUDA_FN int64_t cuda_offset(int ndim, const int64_t *shape, const int64_t *strides, int64_t i)
{
    int64_t offset = 0;
    for (int d = ndim - 1; d >= 0; d--) offset += cuda_split(i, shape[d]) * strides[d];
    return offset;
}

/* Kernels that only move elements are instantiated per size, 1 to 16 bytes: CUDA_SWITCH_UNIT(bytes, T,
 * body). */
struct cuda_bytes16 { /* aligned to 8 bytes only: complex128 may begin at any multiple of 8 bytes */
    uint64_t lo, hi;
};
#define CUDA_SWITCH_UNIT(bytes, T, ...) \
    switch (bytes) {                    \
    case 1: {                           \
        typedef uint8_t T;              \
        __VA_ARGS__                     \
    } break;                            \
    case 2: {                           \
        typedef uint16_t T;             \
        __VA_ARGS__                     \
    } break;                            \
    case 4: {                           \
        typedef uint32_t T;             \
        __VA_ARGS__                     \
    } break;                            \
    case 8: {                           \
        typedef uint64_t T;             \
        __VA_ARGS__                     \
    } break;                            \
    default: {                          \
        typedef cuda_bytes16 T;         \
        __VA_ARGS__                     \
    } break;                            \
    }

/* The largest unit (in bytes) in which runs of `bytes` bytes at two addresses can be moved. */
static inline int64_t cuda_unit(int64_t bytes, const void *p, const void *q)
{
    int64_t unit = 16;
    while (unit > 1 && (bytes % unit || (uintptr_t)p % (uintptr_t)unit || (uintptr_t)q % (uintptr_t)unit))
        unit /= 2;
    return unit;
}

/* ---- elements -------------------------------------------------------------------------- */

/* C types of dtypes. */
typedef uint8_t cuda_c_BOOL, cuda_c_U8;
typedef int8_t cuda_c_I8;
typedef int16_t cuda_c_I16;
typedef int32_t cuda_c_I32;
typedef int64_t cuda_c_I64;
typedef cuda_f16 cuda_c_F16;
typedef cuda_bf16 cuda_c_BF16;
typedef float cuda_c_F32;
typedef double cuda_c_F64;

/* cuda_cast<To>(x): conversion as the op cast makes it. From: a C type of a dtype. */
template <class From> struct cuda_source {
    static __device__ __forceinline__ From get(From x) { return x; }
    enum { floating = 0 };
};
template <> struct cuda_source<float> {
    static __device__ __forceinline__ float get(float x) { return x; }
    enum { floating = 1 };
};
template <> struct cuda_source<double> {
    static __device__ __forceinline__ double get(double x) { return x; }
    enum { floating = 1 };
};
template <> struct cuda_source<cuda_f16> {
    static __device__ __forceinline__ float get(cuda_f16 x) { return cuda_float(x); }
    enum { floating = 1 };
};
template <> struct cuda_source<cuda_bf16> {
    static __device__ __forceinline__ float get(cuda_bf16 x) { return cuda_float(x); }
    enum { floating = 1 };
};

template <class To> struct cuda_target { /* int8, uint8 and int16 */
    template <class From> static __device__ __forceinline__ To make(From x)
    {
        auto v = cuda_source<From>::get(x);
        return cuda_source<From>::floating ? (To)cuda_short((double)v) : (To)v;
    }
};
template <> struct cuda_target<int64_t> {
    template <class From> static __device__ __forceinline__ int64_t make(From x)
    {
        auto v = cuda_source<From>::get(x);
        return cuda_source<From>::floating ? cuda_whole((double)v) : (int64_t)v;
    }
};
template <> struct cuda_target<float> {
    template <class From> static __device__ __forceinline__ float make(From x)
    {
        return (float)cuda_source<From>::get(x);
    }
};
template <> struct cuda_target<double> {
    template <class From> static __device__ __forceinline__ double make(From x)
    {
        return (double)cuda_source<From>::get(x);
    }
};
template <> struct cuda_target<cuda_f16> {
    template <class From> static __device__ __forceinline__ cuda_f16 make(From x)
    {
        return cuda_to_f16((float)cuda_source<From>::get(x));
    }
};
template <> struct cuda_target<cuda_bf16> {
    template <class From> static __device__ __forceinline__ cuda_bf16 make(From x)
    {
        return cuda_to_bf16((float)cuda_source<From>::get(x));
    }
};
template <class To, class From> CUDA_FN To cuda_cast(From x) { return cuda_target<To>::make(x); }

/* Reads the element of dtype d at p as T, and stores a T as such an element. */
template <class T> __device__ __noinline__ T cuda_load_other(const char *p, proa_dtype d)
{
    switch (d) {
    case PROA_BOOL: return cuda_cast<T>((uint8_t)(*(const uint8_t *)p != 0));
    case PROA_U8: return cuda_cast<T>(*(const uint8_t *)p);
    case PROA_I8: return cuda_cast<T>(*(const int8_t *)p);
    case PROA_I16: return cuda_cast<T>(*(const int16_t *)p);
    case PROA_I32: return cuda_cast<T>(*(const int32_t *)p);
    case PROA_I64: return cuda_cast<T>(*(const int64_t *)p);
    case PROA_F16: return cuda_cast<T>(*(const cuda_f16 *)p);
    case PROA_BF16: return cuda_cast<T>(*(const cuda_bf16 *)p);
    case PROA_F32: return cuda_cast<T>(*(const float *)p);
    default: return cuda_cast<T>(*(const double *)p);
    }
}
template <class T> __device__ __noinline__ void cuda_store_other(char *p, proa_dtype d, T x)
{
    switch (d) {
    case PROA_BOOL: *(uint8_t *)p = x != 0; break;
    case PROA_U8: *(uint8_t *)p = cuda_cast<uint8_t>(x); break;
    case PROA_I8: *(int8_t *)p = cuda_cast<int8_t>(x); break;
    case PROA_I16: *(int16_t *)p = cuda_cast<int16_t>(x); break;
    case PROA_I32: *(int32_t *)p = cuda_cast<int32_t>(x); break;
    case PROA_I64: *(int64_t *)p = cuda_cast<int64_t>(x); break;
    case PROA_F16: *(cuda_f16 *)p = cuda_cast<cuda_f16>(x); break;
    case PROA_BF16: *(cuda_bf16 *)p = cuda_cast<cuda_bf16>(x); break;
    case PROA_F32: *(float *)p = cuda_cast<float>(x); break;
    default: *(double *)p = cuda_cast<double>(x); break;
    }
}
template <class T> struct cuda_dtype_of;
template <> struct cuda_dtype_of<uint8_t> {
    enum { value = PROA_U8 };
};
template <> struct cuda_dtype_of<int8_t> {
    enum { value = PROA_I8 };
};
template <> struct cuda_dtype_of<int16_t> {
    enum { value = PROA_I16 };
};
template <> struct cuda_dtype_of<int32_t> {
    enum { value = PROA_I32 };
};
template <> struct cuda_dtype_of<int64_t> {
    enum { value = PROA_I64 };
};
template <> struct cuda_dtype_of<float> {
    enum { value = PROA_F32 };
};
template <> struct cuda_dtype_of<double> {
    enum { value = PROA_F64 };
};
/* A complex number; float for C64, double for C128. */
template <class T> struct cuda_complex {
    T re, im;
    CUDA_MEMBER cuda_complex operator+(cuda_complex o) const { return {re + o.re, im + o.im}; }
    CUDA_MEMBER cuda_complex operator-(cuda_complex o) const { return {re - o.re, im - o.im}; }
    CUDA_MEMBER cuda_complex operator*(cuda_complex o) const
    {
        return {re * o.re - im * o.im, re * o.im + im * o.re};
    }
    CUDA_MEMBER bool operator==(cuda_complex o) const { return re == o.re && im == o.im; }
    CUDA_MEMBER bool operator!=(cuda_complex o) const { return !(*this == o); }
};
typedef cuda_complex<float> cuda_c_C64;
typedef cuda_complex<double> cuda_c_C128;
template <> struct cuda_dtype_of<cuda_c_C64> {
    enum { value = PROA_C64 };
};
template <> struct cuda_dtype_of<cuda_c_C128> {
    enum { value = PROA_C128 };
};

/* Access to an element of dtype d at p as T. With a real T, d must not be complex; cuda_complex takes every
 * dtype. */
template <class T> struct cuda_access {
    static CUDA_MEMBER T load(const char *p, proa_dtype d)
    {
        return d == (proa_dtype)cuda_dtype_of<T>::value ? *(const T *)(const void *)p
                                                        : cuda_load_other<T>(p, d);
    }
    static CUDA_MEMBER void store(char *p, proa_dtype d, T x)
    {
        if (d == (proa_dtype)cuda_dtype_of<T>::value) *(T *)(void *)p = x;
        else cuda_store_other<T>(p, d, x);
    }
};
template <class F> struct cuda_access<cuda_complex<F>> {
    typedef cuda_complex<F> T;
    static CUDA_MEMBER T load(const char *p, proa_dtype d)
    {
        if (d == PROA_C64)
            return {(F)((const float *)(const void *)p)[0], (F)((const float *)(const void *)p)[1]};
        if (d == PROA_C128)
            return {(F)((const double *)(const void *)p)[0], (F)((const double *)(const void *)p)[1]};
        return {cuda_access<F>::load(p, d), 0};
    }
    static CUDA_MEMBER void store(char *p, proa_dtype d, T x)
    {
        if (d == PROA_C64) {
            ((float *)(void *)p)[0] = (float)x.re, ((float *)(void *)p)[1] = (float)x.im;
        } else if (d == PROA_C128) {
            ((double *)(void *)p)[0] = x.re, ((double *)(void *)p)[1] = x.im;
        } else {
            cuda_access<F>::store(p, d, x.re);
        }
    }
};
template <class T> CUDA_FN T cuda_load(const char *p, proa_dtype d) { return cuda_access<T>::load(p, d); }
template <class T> CUDA_FN void cuda_store(char *p, proa_dtype d, T x) { cuda_access<T>::store(p, d, x); }

/* Element i of a tensor of an integer dtype (labels, indices) as int64. */
CUDA_FN int64_t cuda_index(const char *p, proa_dtype d, int64_t i)
{
    if (d == PROA_I64) return ((const int64_t *)(const void *)p)[i];
    if (d == PROA_I32) return ((const int32_t *)(const void *)p)[i];
    return cuda_load_other<int64_t>(p + i * (d == PROA_I16 ? 2 : 1), d);
}

/* CUDA_SWITCH_WIDE(dtype, T, body): body with T the type that floating kernels compute in: float, or
 * double. */
#define CUDA_SWITCH_WIDE(d, T, ...) \
    do {                            \
        if ((d) == PROA_F64) {      \
            typedef double T;       \
            __VA_ARGS__             \
        } else {                    \
            typedef float T;        \
            __VA_ARGS__             \
        }                           \
    } while (0)

/* CUDA_SWITCH_FLOAT(dtype, X, A, body): body with X the C type of a floating dtype and A the one that kernels
 * compute in for it, float or double. */
#define CUDA_SWITCH_FLOAT(d, X, A, ...) \
    switch (d) {                        \
    case PROA_F16: {                    \
        typedef cuda_f16 X;             \
        typedef float A;                \
        __VA_ARGS__                     \
    } break;                            \
    case PROA_BF16: {                   \
        typedef cuda_bf16 X;            \
        typedef float A;                \
        __VA_ARGS__                     \
    } break;                            \
    case PROA_F32: {                    \
        typedef float X;                \
        typedef float A;                \
        __VA_ARGS__                     \
    } break;                            \
    default: {                          \
        typedef double X;               \
        typedef double A;               \
        __VA_ARGS__                     \
    } break;                            \
    }

/* Reads V elements at p, aligned to V elements, as A, and stores them: one memory access each. */
template <int V, class A, class X> CUDA_FN void cuda_take(const X *p, A *to)
{
    cuda_pack<X, V> in = *(const cuda_pack<X, V> *)(const void *)p;
    for (int k = 0; k < V; k++) to[k] = cuda_cast<A>(in.at[k]);
}
template <int V, class A, class X> CUDA_FN void cuda_put(X *p, const A *from)
{
    cuda_pack<X, V> out;
    for (int k = 0; k < V; k++) out.at[k] = cuda_cast<X>(from[k]);
    *(cuda_pack<X, V> *)(void *)p = out;
}
/* Whether rows of n elements of X may be accessed 16 bytes at a time: every row begins at a multiple of 16
 * bytes. */
template <class X> static inline bool cuda_packs(int64_t n, const void *a, const void *b, const void *d)
{
    return n % (int64_t)(16 / sizeof(X)) == 0 && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)d) % 16 == 0;
}

/* CUDA_SWITCH_SUM(dtype, T, body): T the type that elements are summed in: int64, double, or complex. */
#define CUDA_SWITCH_SUM(d, T, ...)                        \
    do {                                                  \
        if ((d) <= PROA_I64) {                            \
            typedef int64_t T;                            \
            __VA_ARGS__                                   \
        } else if ((d) == PROA_C64 || (d) == PROA_C128) { \
            typedef cuda_c_C128 T;                        \
            __VA_ARGS__                                   \
        } else {                                          \
            typedef double T;                             \
            __VA_ARGS__                                   \
        }                                                 \
    } while (0)

#include "devices/cuda/block.h"

static inline cuda_report cuda_reports(const cuda_context *c, const char *argument)
{
    return {c->fault, c->running->name, argument};
}

/* ---- indices --------------------------------------------------------------------------- */

/* Entries of an int32 or int64 tensor that must be in [0, limit). An entry outside is reported as an error at
 * the next synchronization. */
struct cuda_indices {
    const char *data;
    bool narrow;
    int64_t limit;
    cuda_report report;
    CUDA_MEMBER int64_t raw(int64_t i) const
    {
        return narrow ? ((const int32_t *)(const void *)data)[i] : ((const int64_t *)(const void *)data)[i];
    }
    CUDA_MEMBER void refuse(int64_t i, int64_t v) const { cuda_raise(report, i, v, 0, limit - 1); }
    /* Entry i; −1 if it is out of range: the kernel then skips it. */
    CUDA_MEMBER int64_t at(int64_t i) const
    {
        int64_t v = raw(i);
        if (v >= 0 && v < limit) return v;
        refuse(i, v);
        return -1;
    }
};
static inline cuda_indices cuda_indices_of(const cuda_context *c, const char *argument, const proa_tensor *t,
                                           int64_t limit)
{
    cuda_tensor x = cuda_look(t);
    return {x.data, x.dtype == PROA_I32, limit, cuda_reports(c, argument)};
}

#endif
