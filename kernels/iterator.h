/* Runs a scalar operation over tensors: handles broadcasting, strides, dtype conversion, threads and
 * non-temporal stores, so that an op supplies only a row function, a loop over contiguous elements of one
 * dtype. For kernels that are compiled once per CPU level, as these functions are. May use core only. */
#ifndef PROA_KERNELS_ITERATOR_H
#define PROA_KERNELS_ITERATOR_H

#include "core/internal.h"
#include "core/tensor.h"

/* C types of dtypes. Half types appear as bits only: rows see them as F32. */
typedef uint8_t proa_c_BOOL, proa_c_U8;
typedef int8_t proa_c_I8;
typedef int16_t proa_c_I16;
typedef int32_t proa_c_I32;
typedef int64_t proa_c_I64;
typedef uint16_t proa_c_F16, proa_c_BF16;
typedef float proa_c_F32;
typedef double proa_c_F64;
typedef float _Complex proa_c_C64;
typedef double _Complex proa_c_C128;

/* The inner loop of an op ("row"): writes n results to p[0] from the inputs p[1…], all contiguous; p[0] may
 * equal an input. */
typedef void (*proa_row)(char *const *p, int64_t n, const void *args);

/* The dtype of a row's results: its computing dtype, bool, or the real part's dtype. */
typedef enum proa_row_out { PROA_ROW_OUT_SAME, PROA_ROW_OUT_BOOL, PROA_ROW_OUT_REAL } proa_row_out;

/* The inner loops of an op, by computing dtype. Operands of a dtype without a loop are converted: half → F32,
 * bool and integers → the next integer dtype in proa_dtype's order that has one, else F32, C64 → C128. */
typedef struct proa_rows {
    proa_row at[PROA_DTYPE_COUNT];
    proa_row_out out;
    proa_row nontemporal; /* at[PROA_F32] with non-temporal stores, or NULL */
    int64_t grain;        /* fewest elements per thread; 0: the default of ops limited by memory bandwidth */
} proa_rows;

enum { PROA_MAP_MAX = 12 };

/* One call: operand 0 is the contiguous output; as[i] is the dtype to which operand i is converted for the
 * row. */
typedef struct proa_map {
    proa_row row;
    proa_row nontemporal; /* row with non-temporal stores, for whole cache lines; may be NULL */
    int64_t grain;        /* fewest elements per thread, at most 128 KiB of all operands; 0: that */
    bool in_place;        /* the row may find an input in p[0] */
    int n;
    proa_tensor *tensor[PROA_MAP_MAX];
    proa_dtype as[PROA_MAP_MAX];
    const void *args;
} proa_map;

#define proa__map_run PROA_LEVELED(proa__map_run_at)
#define proa__map_rows PROA_LEVELED(proa__map_rows_at)
#define proa__convert PROA_LEVELED(proa__convert_at)

/* Runs map->row over all elements of the output; inputs broadcast to its shape. */
proa_status proa__map_run(const proa_map *map);
/* proa__map_run with the inner loop for the dtype of the first input; operands of other dtypes are
 * converted. */
proa_status proa__map_rows(const proa_rows *rows, int n, proa_tensor *const *tensors, const void *args);

/* Converts n contiguous elements; `to` may be wider or narrower, memory must not overlap unless equal and
 * of equal size. Numbers → bool is "≠ 0", complex → real drops the imaginary part. */
void proa__convert(proa_dtype to, void *out, proa_dtype from, const void *in, int64_t n);

/* PROA_STAGE_BYTES: bytes of a staging buffer; several fit into the L1 cache. PROA_GRAIN: fewest elements for
 * which a simple loop is worth another thread. */
enum { PROA_STAGE_BYTES = 4096, PROA_GRAIN = 1 << 15 };

/* ---- reading any operand as a contiguous row ---- */

/* Strides of a tensor broadcast to the output's shape, with dims merged; innermost last. */
typedef struct proa_walk {
    char *data;
    int64_t item;
    int ndim; /* ≥ 1 */
    int64_t shape[PROA_MAX_DIMS], strides[PROA_MAX_DIMS];
} proa_walk;

/* Begins a walk over t broadcast to `shape`, which has ndim dims; t's dims are its last ones. */
static inline void proa__args_visit_init(proa_walk *w, const proa_tensor *t, int ndim, const int64_t *shape)
{
    w->data = t->data;
    w->item = (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    int n = 0, lead = ndim - t->ndim;
    for (int i = 0; i < ndim; i++) {
        int64_t stride = i < lead || t->shape[i - lead] == 1 ? 0 : t->strides[i - lead];
        if (shape[i] == 1) continue;
        if (n && w->strides[n - 1] == stride * shape[i]) {
            w->shape[n - 1] *= shape[i];
            w->strides[n - 1] = stride;
        } else {
            w->shape[n] = shape[i];
            w->strides[n++] = stride;
        }
    }
    if (n == 0) w->shape[n] = 1, w->strides[n++] = w->item;
    w->ndim = n;
}

#define PROA_GATHER_(T)                                                            \
    do {                                                                           \
        const T *from_ = (const T *)(const void *)p;                               \
        T *to_ = (T *)(void *)out;                                                 \
        if (stride == 0)                                                           \
            for (int64_t i = 0; i < n; i++) to_[i] = *from_;                       \
        else                                                                       \
            for (int64_t i = 0; i < n; i++)                                        \
                to_[i] = *(const T *)(const void *)((const char *)p + i * stride); \
    } while (0)

typedef struct proa_pair64 {
    uint64_t lo, hi;
} proa_pair64;

/* Gathers n elements that are `stride` bytes apart into contiguous memory. */
static inline void proa__gather(char *out, const char *p, int64_t n, int64_t stride, int64_t item)
{
    if (stride == item) {
        memcpy(out, p, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1: PROA_GATHER_(uint8_t); break;
    case 2: PROA_GATHER_(uint16_t); break;
    case 4: PROA_GATHER_(uint32_t); break;
    case 8: PROA_GATHER_(uint64_t); break;
    default: PROA_GATHER_(proa_pair64); break;
    }
}

/* Elements [begin, begin + n) in row-major order as contiguous memory: the tensor's own where possible,
 * otherwise copied to buf. */
static inline const char *proa__args_visit_read(const proa_walk *w, int64_t begin, int64_t n, char *buf)
{
    int64_t at[PROA_MAX_DIMS], rest = begin;
    const char *p = w->data;
    int last = w->ndim - 1;
    for (int i = last; i >= 0; i--) {
        at[i] = rest % w->shape[i];
        rest /= w->shape[i];
        p += at[i] * w->strides[i];
    }
    int64_t length = w->shape[last], stride = w->strides[last], item = w->item, done = 0;
    if (at[last] + n <= length && stride == item) return p;
    while (done < n) {
        int64_t run = length - at[last] < n - done ? length - at[last] : n - done;
        proa__gather(buf + done * item, p, run, stride, item);
        done += run;
        p -= at[last] * stride;
        at[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            p += w->strides[i];
            if (++at[i] < w->shape[i]) break;
            p -= w->shape[i] * w->strides[i];
            at[i] = 0;
        }
    }
    return buf;
}

#endif
