/* Assigns offsets in an arena to buffers with lifetimes, so that buffers in use at the same time do not
 * overlap; see plan.h. May use core. */
#include "plan.h"

/* ALIGN: of offsets, in bytes. MANY: with more buffers than this, buffers are placed in order of time, since
 * comparing each with all others takes too long. */
enum { ALIGN = 64, MANY = 4096 };

/* Order of sorting: by ascending offset, or by descending size. */
static bool before(const proa__buffer *a, const proa__buffer *b, bool by_offset)
{
    return by_offset ? a->offset < b->offset : a->bytes > b->bytes;
}

static void sift(proa__buffer **heap, int32_t at, int32_t n, bool by_offset)
{
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1], by_offset)) child++;
        if (!before(heap[at], heap[child], by_offset)) return;
        proa__buffer *t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
    }
}

/* Heap sort. */
static void sort(proa__buffer **b, int32_t n, bool by_offset)
{
    for (int32_t i = n / 2 - 1; i >= 0; i--) sift(b, i, n, by_offset);
    for (int32_t end = n - 1; end > 0; end--) {
        proa__buffer *t = b[0];
        b[0] = b[end];
        b[end] = t;
        sift(b, 0, end, by_offset);
    }
}

static bool meet(const proa__buffer *a, const proa__buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t aligned(int64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* The smallest gap between the buffers placed so far (by ascending offset) that b fits into. */
static int64_t find_gap(proa__buffer *const *placed, int32_t n, const proa__buffer *b)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (int32_t i = 0; i < n; i++) {
        const proa__buffer *p = placed[i];
        if (!meet(p, b)) continue;
        if (p->offset - end >= b->bytes && p->offset - end < best_size) {
            best = end;
            best_size = p->offset - end;
        }
        if (p->offset + p->bytes > end) end = aligned(p->offset + p->bytes); /* pinned: end at any offset */
    }
    return best >= 0 ? best : end;
}

static void insert(proa__buffer **placed, int32_t n, proa__buffer *b)
{
    for (; n > 0 && placed[n - 1]->offset > b->offset; n--) placed[n] = placed[n - 1];
    placed[n] = b;
}

/* Removes buffers whose last use is before `now`. */
static int32_t expire(proa__buffer **placed, int32_t n, int32_t now)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++)
        if (placed[i]->last >= now) placed[kept++] = placed[i];
    return kept;
}

proa_status proa__share_pinned(proa__buffer **buffers, int32_t n)
{
    proa__buffer **order = proa__alloc(((size_t)n + 1) * sizeof *order);
    if (!order) return proa_error();
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (buffers[i]->pinned) order[count++] = buffers[i];
    sort(order, count, true);
    proa__buffer *far = NULL; /* of the buffers before, the one with the highest end */
    for (int32_t i = 0; i < count; i++) {
        proa__buffer *b = order[i];
        if (far && b->offset < far->offset + far->bytes) b->last = far->last = INT32_MAX;
        if (!far || b->offset + b->bytes > far->offset + far->bytes) far = b;
    }
    proa__free(order);
    return PROA_OK;
}

proa_status proa__plan_memory(proa__buffer **buffers, int32_t n, int64_t *total)
{
    *total = 0;
    proa__buffer **order = proa__alloc(((size_t)n + 1) * 2 * sizeof *order);
    if (!order) return proa_error();
    proa__buffer **placed = order + n + 1;
    int32_t count = 0, done = 0;
    for (int32_t i = 0; i < n; i++) {
        proa__buffer *b = buffers[i];
        if (b->place == PROA__IN_ARENA && !b->pinned) order[count++] = b;
        if (b->pinned) placed[done++] = b;
        if (b->pinned && b->offset + b->bytes > *total) *total = b->offset + b->bytes;
    }
    sort(placed, done, true);
    bool by_time = count > MANY; /* buffers come in order of time */
    if (!by_time) sort(order, count, false);
    proa_status status = PROA_OK;
    for (int32_t i = 0; i < count && status == PROA_OK; i++) {
        proa__buffer *b = order[i];
        if (b->bytes > INT64_MAX / 4 - ALIGN) {
            status = proa_fail(PROA_ERR_OVERFLOW, "plan: a buffer of %lld bytes", (long long)b->bytes);
            break;
        }
        b->bytes = aligned(b->bytes);
        if (by_time) done = expire(placed, done, b->first);
        b->offset = find_gap(placed, done, b);
        if (b->offset > INT64_MAX / 2 - b->bytes)
            status = proa_fail(PROA_ERR_OVERFLOW, "plan: the arena takes more than 2^62 bytes");
        else if (b->offset + b->bytes > *total) *total = b->offset + b->bytes;
        insert(placed, done++, b);
    }
    proa__free(order);
    return status;
}
