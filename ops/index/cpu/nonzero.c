/* CPU kernels of nonzero and masked_select, whose output length depends on the data, and of masked_select's
 * gradient. They first count the true elements of fixed-length pieces, so that each piece has an output
 * offset that does not depend on the number of threads. */
#include "core/copy.h"
#include "ops/index/indices.h"
#include "impl/index.h"

enum { PIECE = 1 << 14 };

extern const proa_op proa__op_nonzero, proa__op_masked_select;

/* ---- which elements count ---------------------------------------------------------------- */

#define MARK(T, TEST)                 \
    for (int64_t i = 0; i < n; i++) { \
        T v = ((const T *)p)[i];      \
        hit[i] = (TEST);              \
    }                                 \
    break

/* hit[i] = element begin + i of t (contiguous) is not zero. −0 is zero, NaN is not. */
static void mark(const proa_tensor *t, int64_t begin, int64_t n, uint8_t *hit)
{
    const void *p = t->data + begin * (int64_t)proa_dtype_size((proa_dtype)t->dtype);
    switch ((proa_dtype)t->dtype) {
    case PROA_I16: MARK(int16_t, v != 0);
    case PROA_I32: MARK(int32_t, v != 0);
    case PROA_I64: MARK(int64_t, v != 0);
    case PROA_F16:
    case PROA_BF16: MARK(uint16_t, (v & 0x7fff) != 0);
    case PROA_F32: MARK(float, v != 0);
    case PROA_F64: MARK(double, v != 0);
    case PROA_C64: MARK(float _Complex, v != 0);
    case PROA_C128: MARK(double _Complex, v != 0);
    default: MARK(uint8_t, v != 0);
    }
}

typedef struct counting {
    const proa_tensor *mask;
    int64_t *before; /* hits per piece, then their running sum */
} counting;

static int64_t piece_length(const proa_tensor *t, int64_t piece)
{
    int64_t rest = t->numel - piece * PIECE;
    return rest < PIECE ? rest : PIECE;
}

static void count_pieces(int64_t begin, int64_t end, void *context)
{
    const counting *c = context;
    uint8_t hit[PIECE];
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t n = piece_length(c->mask, piece), sum = 0;
        mark(c->mask, piece * PIECE, n, hit);
        for (int64_t i = 0; i < n; i++) sum += hit[i];
        c->before[piece] = sum;
    }
}

/* Fills c->before[0 … pieces] with the number of true elements before each piece; the last entry is the
 * total. Free it with proa_scratch_free. */
static proa_status count_hits(counting *c, int64_t *pieces)
{
    size_t bytes;
    *pieces = (c->mask->numel + PIECE - 1) / PIECE;
    if (!proa__mul_size((size_t)*pieces + 1, sizeof(int64_t), &bytes)) return proa_error();
    c->before = proa_scratch(bytes);
    if (!c->before) return proa_error();
    proa__parallel(*pieces, 4, count_pieces, c);
    int64_t sum = 0;
    for (int64_t i = 0; i <= *pieces; i++) {
        int64_t here = i < *pieces ? c->before[i] : 0;
        c->before[i] = sum;
        sum += here;
    }
    return PROA_OK;
}

/* ---- nonzero ---------------------------------------------------------------------------- */

typedef struct place_writer {
    const proa_tensor *x;
    const int64_t *before;
    int64_t *out;
} place_writer;

static void write_places(int64_t begin, int64_t end, void *context)
{
    const place_writer *w = context;
    int rank = w->x->ndim;
    uint8_t hit[PIECE];
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t n = piece_length(w->x, piece), at[PROA_MAX_DIMS], rest = piece * PIECE;
        int64_t *to = w->out + w->before[piece] * rank;
        for (int i = rank - 1; i >= 0; i--) at[i] = rest % w->x->shape[i], rest /= w->x->shape[i];
        mark(w->x, piece * PIECE, n, hit);
        for (int64_t i = 0; i < n; i++) {
            if (hit[i])
                for (int k = 0; k < rank; k++) *to++ = at[k];
            for (int k = rank - 1; k >= 0 && ++at[k] == w->x->shape[k] && k; k--) at[k] = 0;
        }
    }
}

PROA_KERNEL(nonzero_cpu, nonzero)
{
    counting c = {a->x, NULL};
    int64_t pieces;
    PROA_TRY(count_hits(&c, &pieces));
    proa_meta meta = {.dtype = PROA_I64, .ndim = 2, .shape = {c.before[pieces], a->x->ndim}};
    proa_tensor *out = proa_output_resize((void *)(uintptr_t)a, &proa__op_nonzero, 0, &meta);
    if (out) {
        place_writer w = {a->x, c.before, (int64_t *)(void *)out->data};
        proa__parallel(pieces, 4, write_places, &w);
    }
    proa_scratch_free(c.before);
    return out ? PROA_OK : proa_error();
}

/* ---- masked_select ---------------------------------------------------------------------- */

typedef struct mover {
    const proa_tensor *mask;
    const int64_t *before;
    char *packed, *spread; /* in out's order; in mask's order */
    int64_t item;
    bool back; /* packed → spread */
} mover;

static void move_pieces(int64_t begin, int64_t end, void *context)
{
    const mover *m = context;
    uint8_t hit[PIECE];
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t n = piece_length(m->mask, piece);
        char *packed = m->packed + m->before[piece] * m->item, *spread = m->spread + piece * PIECE * m->item;
        mark(m->mask, piece * PIECE, n, hit);
        for (int64_t i = 0; i < n; i++, spread += m->item) {
            if (!hit[i]) continue;
            if (m->back) copy_item(spread, packed, m->item);
            else copy_item(packed, spread, m->item);
            packed += m->item;
        }
    }
}

/* t itself if it has the shape, else a new tensor with its elements repeated. */
static proa_tensor *repeated(proa_tensor *t, const proa_meta *to)
{
    proa_meta meta = *to;
    meta.dtype = (proa_dtype)t->dtype;
    bool same = t->ndim == to->ndim;
    for (int i = 0; same && i < t->ndim; i++) same = t->shape[i] == to->shape[i];
    if (same) return t;
    proa_tensor *full = proa__tensor_new(&meta);
    if (!full) return NULL;
    proa_tensor dst = proa__window(full), src = proa__window(t);
    int lead = meta.ndim - t->ndim;
    for (int i = meta.ndim - 1; i >= 0; i--) {
        bool repeats = i < lead || (src.shape[i - lead] == 1 && meta.shape[i] != 1);
        src.strides[i] = repeats ? 0 : src.strides[i - lead];
        src.shape[i] = meta.shape[i];
    }
    src.ndim = meta.ndim;
    return proa__copy_window(&dst, &src) == PROA_OK ? full : NULL;
}

static void broadcast_shape(const proa_tensor *x, int ndim, const int64_t *shape, proa_meta *m)
{
    m->ndim = (int8_t)(x->ndim > ndim ? x->ndim : ndim);
    for (int i = 1; i <= m->ndim; i++) {
        int64_t p = i <= x->ndim ? x->shape[x->ndim - i] : 1, q = i <= ndim ? shape[ndim - i] : 1;
        m->shape[m->ndim - i] = p == 1 ? q : p;
    }
}

PROA_KERNEL(masked_select_cpu, masked_select)
{
    proa_meta full, meta = {.dtype = (proa_dtype)a->x->dtype, .ndim = 1};
    broadcast_shape(a->x, a->mask->ndim, a->mask->shape, &full);
    proa_tensor *x = repeated(a->x, &full), *mask = repeated(a->mask, &full), *out = NULL;
    counting c = {mask, NULL};
    int64_t pieces;
    if (x && mask && count_hits(&c, &pieces) == PROA_OK) {
        meta.shape[0] = c.before[pieces];
        out = proa_output_resize((void *)(uintptr_t)a, &proa__op_masked_select, 0, &meta);
    }
    if (out) {
        mover m = {mask, c.before, out->data, x->data, (int64_t)proa_dtype_size(meta.dtype), false};
        proa__parallel(pieces, 4, move_pieces, &m);
    }
    proa_scratch_free(c.before);
    if (x && x != a->x) proa_drop(x);
    if (mask && mask != a->mask) proa_drop(mask);
    return out ? PROA_OK : proa_error();
}

PROA_KERNEL(masked_select_grad_cpu, masked_select_grad)
{
    proa_meta full = proa_meta_of(a->d_x);
    proa_tensor all = proa__window(a->d_x), *mask = repeated(a->mask, &full);
    if (!mask) return proa_error();
    counting c = {mask, NULL};
    int64_t pieces;
    proa_status status = count_hits(&c, &pieces);
    if (status == PROA_OK && c.before[pieces] != a->d_out->numel)
        status = OP_FAIL("masked_select_grad", INVALID_ARGUMENT, "d_out",
                         "has %lld elements, but mask holds %lld times", (long long)a->d_out->numel,
                         (long long)c.before[pieces]);
    if (status == PROA_OK) status = proa__fill_window(&all, NULL);
    if (status == PROA_OK) {
        mover m = {mask, c.before, a->d_out->data, all.data, (int64_t)proa_dtype_size(full.dtype), true};
        proa__parallel(pieces, 4, move_pieces, &m);
    }
    proa_scratch_free(c.before);
    if (mask != a->mask) proa_drop(mask);
    return status;
}
