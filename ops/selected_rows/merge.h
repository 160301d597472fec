/* Merges equal rows of a SelectedRows gradient for kernels that read it without making it dense: sorted row
 * indices, the entries of each, and their sums. May use core and kernels/rowwise.h. */
#ifndef PROA_OPS_SELECTED_ROWS_MERGE_H
#define PROA_OPS_SELECTED_ROWS_MERGE_H

#include "kernels/rowwise.h"

/* Entries by row: entries order[start[j]] … order[start[j + 1] − 1] of t's values belong to row[j], in
 * ascending order, so that sums have the same bits every time. row ascends. */
typedef struct rows_merge {
    const proa_tensor *t;  /* NULL: a dense gradient */
    int64_t count, length; /* rows, elements of each */
    int64_t *row, *start, *order;
} rows_merge;

/* Merges the runs [begin, mid) and [mid, end) of positions by their rows into `to`; equal rows keep their
 * order. */
static inline void rows_merge_runs(const int64_t *row, const int64_t *from, int64_t *to, int64_t begin,
                                   int64_t mid, int64_t end)
{
    int64_t a = begin, b = mid;
    for (int64_t i = begin; i < end; i++) {
        bool first = b >= end || (a < mid && row[from[a]] <= row[from[b]]);
        to[i] = first ? from[a++] : from[b++];
    }
}

/* Positions 0 … n − 1 sorted by row into `order`; `spare` is of the same size. */
static inline void rows_merge_sort(const int64_t *row, int64_t n, int64_t *order, int64_t *spare)
{
    int64_t *from = order, *to = spare;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t mid = i + width < n ? i + width : n, end = mid + width < n ? mid + width : n;
            rows_merge_runs(row, from, to, i, mid, end);
        }
        int64_t *next = from;
        from = to;
        to = next;
    }
    if (from != order) memcpy(order, from, (size_t)n * sizeof *order);
}

/* Indexes a SelectedRows gradient by row; rows_merge_end frees the result. For a dense gradient m->t is NULL
 * and there is nothing to free. */
static inline proa_status rows_merge_begin(const proa_tensor *grad, rows_merge *m)
{
    *m = (rows_merge){0};
    if (grad->kind != PROA_ROWS) return PROA_OK;
    const int64_t n = grad->shape[0];
    const int64_t *row = (const int64_t *)(const void *)proa__rows_of(grad)->index->data;
    m->row = proa_scratch((size_t)(3 * n + 1) * sizeof *m->row);
    if (!m->row) return proa_error();
    m->t = grad;
    m->start = m->row + n;
    m->order = m->start + n + 1;
    m->length = n ? grad->numel / n : 0;
    rows_merge_sort(row, n, m->order, m->row); /* m->row serves as scratch until the result is written */
    for (int64_t i = 0; i < n; i++) {
        if (i && row[m->order[i]] == row[m->order[i - 1]]) continue;
        m->start[m->count] = i;
        m->row[m->count++] = row[m->order[i]];
    }
    m->start[m->count] = n;
    return PROA_OK;
}

static inline void rows_merge_end(rows_merge *m) { proa_scratch_free(m->row); }

/* Index of the first entry whose row is `row` or greater. */
static inline int64_t rows_merge_find(const rows_merge *m, int64_t row)
{
    int64_t low = 0, high = m->count;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (m->row[mid] < row) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* rows_merge_load_T(m, at, n, to): elements [at, at + n) of the table into `to`, zeros in rows that are not
 * stored. */
#define T float
#include "ops/selected_rows/merge_load.inc"
#define T double
#include "ops/selected_rows/merge_load.inc"

#endif
