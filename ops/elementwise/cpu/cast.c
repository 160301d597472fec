/* Conversions between all dtypes: the inner loops behind proa__convert, and the kernels of cast and assign.
 * May use core and kernels only. */
#include "core/copy.h"
#include "core/half.h"
#include "kernels/iterator.h"
#include "kernels/nontemporal.h"
#include "impl/elementwise.h"

/* Out-of-range numbers become the most negative integer, as the CPU's own conversion does; narrower
 * integers keep the low bits. */
static inline int64_t integer_of_F32(float x)
{
    return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN;
}
static inline int64_t integer_of_F64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static inline int32_t short_of_F32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }
static inline int32_t short_of_F64(double x)
{
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}

#define REAL_PART(x) (__real__(x))
#define TO_BOOL_WHOLE(x) ((uint8_t)((x) != 0))
#define TO_BOOL_FLOAT TO_BOOL_WHOLE
#define TO_BOOL_PAIR TO_BOOL_WHOLE
#define TO_U8_WHOLE(x) ((uint8_t)(x))
#define TO_I8_WHOLE(x) ((int8_t)(x))
#define TO_I16_WHOLE(x) ((int16_t)(x))
#define TO_I32_WHOLE(x) ((int32_t)(x))
#define TO_I64_WHOLE(x) ((int64_t)(x))
#define TO_F32_WHOLE(x) ((float)(x))
#define TO_F64_WHOLE(x) ((double)(x))
#define TO_C64_WHOLE(x) ((float)(x))
#define TO_C128_WHOLE(x) ((double)(x))
#define SHORT_OF(x) _Generic((x), float : short_of_F32, double : short_of_F64)(x)
#define LONG_OF(x) _Generic((x), float : integer_of_F32, double : integer_of_F64)(x)
#define TO_U8_FLOAT(x) ((uint8_t)SHORT_OF(x))
#define TO_I8_FLOAT(x) ((int8_t)SHORT_OF(x))
#define TO_I16_FLOAT(x) ((int16_t)SHORT_OF(x))
#define TO_I32_FLOAT(x) SHORT_OF(x)
#define TO_I64_FLOAT(x) LONG_OF(x)
#define TO_F32_FLOAT TO_F32_WHOLE
#define TO_F64_FLOAT TO_F64_WHOLE
#define TO_C64_FLOAT TO_C64_WHOLE
#define TO_C128_FLOAT TO_C128_WHOLE
#define TO_U8_PAIR(x) TO_U8_FLOAT(REAL_PART(x))
#define TO_I8_PAIR(x) TO_I8_FLOAT(REAL_PART(x))
#define TO_I16_PAIR(x) TO_I16_FLOAT(REAL_PART(x))
#define TO_I32_PAIR(x) TO_I32_FLOAT(REAL_PART(x))
#define TO_I64_PAIR(x) TO_I64_FLOAT(REAL_PART(x))
#define TO_F32_PAIR(x) ((float)REAL_PART(x))
#define TO_F64_PAIR(x) ((double)REAL_PART(x))
#define TO_C64_PAIR(x) ((float _Complex)(x))
#define TO_C128_PAIR(x) ((double _Complex)(x))

typedef void (*convert_fn)(void *out, const void *in, int64_t n);

#define CONVERT(FROM, class, TO)                                                              \
    static void FROM##_to_##TO(void *out, const void *in, int64_t n)                          \
    {                                                                                         \
        const proa_c_##FROM *x = in;                                                          \
        proa_c_##TO *to = out;                                                                \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) to[i] = TO_##TO##_##class(x[i]); \
    }
#define CONVERT_TO_INTEGERS(FROM, class) \
    CONVERT(FROM, class, BOOL)           \
    CONVERT(FROM, class, U8)             \
    CONVERT(FROM, class, I8)             \
    CONVERT(FROM, class, I16)            \
    CONVERT(FROM, class, I32)            \
    CONVERT(FROM, class, I64)
#define CONVERT_FROM(FROM, class)    \
    CONVERT_TO_INTEGERS(FROM, class) \
    CONVERT(FROM, class, F32)        \
    CONVERT(FROM, class, F64)        \
    CONVERT(FROM, class, C64)        \
    CONVERT(FROM, class, C128)
#define SOURCES(X) \
    X(U8, WHOLE)   \
    X(I8, WHOLE)   \
    X(I16, WHOLE) X(I32, WHOLE) X(I64, WHOLE) X(F32, FLOAT) X(F64, FLOAT) X(C64, PAIR) X(C128, PAIR)
SOURCES(CONVERT_FROM)

#define ENTRIES(FROM, class)                                                                               \
    [PROA_##FROM] = {[PROA_BOOL] = FROM##_to_BOOL, [PROA_U8] = FROM##_to_U8,   [PROA_I8] = FROM##_to_I8,   \
                     [PROA_I16] = FROM##_to_I16,   [PROA_I32] = FROM##_to_I32, [PROA_I64] = FROM##_to_I64, \
                     [PROA_F32] = FROM##_to_F32,   [PROA_F64] = FROM##_to_F64, [PROA_C64] = FROM##_to_C64, \
                     [PROA_C128] = FROM##_to_C128},
static const convert_fn direct[PROA_DTYPE_COUNT][PROA_DTYPE_COUNT] = {SOURCES(ENTRIES)};

static bool is_half(proa_dtype d) { return d == PROA_F16 || d == PROA_BF16; }

static void half_to_f32(proa_dtype from, float *to, const void *in, int64_t n)
{
    if (from == PROA_F16) proa__f16_to_f32_row(in, to, n);
    else proa__bf16_to_f32_row(in, to, n);
}
static void f32_to_half(proa_dtype to, void *out, const float *in, int64_t n)
{
    if (to == PROA_F16) proa__f32_to_f16_row(in, out, n);
    else proa__f32_to_bf16_row(in, out, n);
}

void proa__convert(proa_dtype to, void *out, proa_dtype from, const void *in, int64_t n)
{
    size_t to_size = proa_dtype_size(to), from_size = proa_dtype_size(from);
    if (to == from) {
        if (out != in) memcpy(out, in, (size_t)n * to_size);
        return;
    }
    if (from == PROA_BOOL) from = PROA_U8;
    if (!is_half(to) && !is_half(from)) {
        direct[from][to](out, in, n);
        return;
    }
    if (from == PROA_F32) {
        f32_to_half(to, out, in, n);
        return;
    }
    if (to == PROA_F32) {
        half_to_f32(from, out, in, n);
        return;
    }
    enum { STEP = 512 };
    _Alignas(64) float step[STEP];
    for (int64_t i = 0; i < n; i += STEP) {
        int64_t m = n - i < STEP ? n - i : STEP;
        const char *x = (const char *)in + (size_t)i * from_size;
        char *o = (char *)out + (size_t)i * to_size;
        if (is_half(from)) half_to_f32(from, step, x, m);
        else direct[from][PROA_F32](step, x, m);
        if (is_half(to)) f32_to_half(to, o, step, m);
        else direct[PROA_F32][to](o, step, m);
    }
}

/* Inner loop of a conversion: operands are converted before and after it by map.c, so it only copies. */
#define MOVE(T, name)                                                \
    static void name(char *const *p, int64_t n, const void *args)    \
    {                                                                \
        (void)args;                                                  \
        if (p[0] != p[1]) memcpy(p[0], p[1], (size_t)n * sizeof(T)); \
    }
MOVE(uint8_t, move_1)
MOVE(uint16_t, move_2)
MOVE(uint32_t, move_4)
MOVE(uint64_t, move_8)
MOVE(proa_pair64, move_16)

static proa_row move_row(proa_dtype d)
{
    switch (proa_dtype_size(d)) {
    case 1: return move_1;
    case 2: return move_2;
    case 4: return move_4;
    case 8: return move_8;
    default: return move_16;
    }
}

/* Conversions between contiguous tensors write straight to the output, through a buffer only for non-temporal
 * stores. */
enum { CAST_PIECE = 1024, CAST_AHEAD = 4096 }; /* bytes of a piece; prefetch distance in bytes */
typedef struct flat_cast {
    char *out;
    const char *in;
    proa_dtype to, from;
    bool nontemporal;
} flat_cast;

static void flat_range(int64_t begin, int64_t end, void *context)
{
    const flat_cast *c = context;
    const int64_t to_size = (int64_t)proa_dtype_size(c->to), from_size = (int64_t)proa_dtype_size(c->from);
    if (!c->nontemporal) {
        proa__convert(c->to, c->out + begin * to_size, c->from, c->in + begin * from_size, end - begin);
        return;
    }
    _Alignas(64) char stage[CAST_PIECE];
    const int64_t step = CAST_PIECE / to_size;
    for (int64_t i = begin, n; i < end; i += n) {
        int64_t off = (int64_t)((uintptr_t)(c->out + i * to_size) & 63); /* up to the next line first */
        n = off ? (64 - off + to_size - 1) / to_size : step;
        if (n > end - i) n = end - i;
        nontemporal_prefetch(c->in + i * from_size, CAST_AHEAD, n * from_size);
        proa__convert(c->to, stage, c->from, c->in + i * from_size, n);
        nontemporal_copy(c->out + i * to_size, stage, n * to_size);
    }
    proa__copy_nontemporal_end();
}

PROA_KERNEL(cast_cpu, cast)
{
    proa_dtype to = (proa_dtype)a->out->dtype, from = (proa_dtype)a->x->dtype;
    if (to == from) return proa__copy(a->out, a->x);
    if (!(a->x->flags & PROA_T_STRIDED)) {
        int64_t bytes = a->out->numel * (int64_t)proa_dtype_size(to);
        int64_t all = bytes + a->x->numel * (int64_t)proa_dtype_size(from);
        flat_cast c = {a->out->data, a->x->data, to, from,
                       proa__nontemporal_pays(bytes, all) && a->out->data != a->x->data};
        if (a->out->numel > 0) proa__parallel(a->out->numel, PROA_GRAIN, flat_range, &c);
        return PROA_OK;
    }
    proa_map map = {.row = move_row(to), .n = 2, .tensor = {a->out, a->x}, .as = {to, to}};
    return proa__map_run(&map);
}

PROA_KERNEL_ANYWHERE(assign_cpu, assign) { return proa__copy(a->out, a->x); }
