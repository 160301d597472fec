/* similarity_focus on the CPU; the unit of work is an image. Compiled once per CPU level; static functions
 * and the kernel only. */
#include "core/copy.h"
#include "core/device.h"
#include "kernels/rowwise.h"
#include "impl/focus.h"

#include <stdlib.h>

typedef struct focus_place {
    double value;
    int64_t row, column;
} focus_place;

/* Rows and columns are the two axes of an image that are not `axis`. */
typedef struct focus_job {
    const proa_similarity_focus_args *args;
    int64_t rows, columns, channels;             /* lengths */
    int64_t row_step, column_step, channel_step; /* strides in elements */
} focus_job;

/* The largest first; of equal ones the first in memory. */
static int before(const void *a, const void *b)
{
    const focus_place *p = a, *q = b;
    if (p->value != q->value) return p->value < q->value ? 1 : -1;
    if (p->row != q->row) return p->row < q->row ? -1 : 1;
    return p->column < q->column ? -1 : p->column > q->column;
}

static double value_at(const proa_tensor *x, int64_t i)
{
    double v = rows_get((proa_dtype)x->dtype, x->data, i);
    return v == v ? v : -__builtin_inf(); /* NaN comes last */
}

/* Sets the places of one channel that stand out, in all channels of the image that begins at `base`. */
static void focus_channel(const focus_job *j, int64_t base, int64_t index, focus_place *places, bool *taken)
{
    const proa_tensor *x = j->args->x;
    int64_t n = 0, left = j->rows < j->columns ? j->rows : j->columns;
    for (int64_t r = 0; r < j->rows; r++)
        for (int64_t c = 0; c < j->columns; c++, n++)
            places[n] = (focus_place){
                value_at(x, base + index * j->channel_step + r * j->row_step + c * j->column_step), r, c};
    qsort(places, (size_t)n, sizeof *places, before);
    memset(taken, 0, (size_t)(j->rows + j->columns));
    for (int64_t i = 0; i < n && left > 0; i++) {
        bool *row = taken + places[i].row, *column = taken + j->rows + places[i].column;
        if (*row || *column) continue;
        *row = *column = true;
        left--;
        for (int64_t k = 0; k < j->channels; k++)
            rows_set((proa_dtype)x->dtype, j->args->out->data,
                     base + k * j->channel_step + places[i].row * j->row_step +
                         places[i].column * j->column_step,
                     1);
    }
}

static void focus_images(int64_t begin, int64_t end, void *context)
{
    const focus_job *j = context;
    size_t cells = (size_t)(j->rows * j->columns), bytes;
    if (!proa__mul_size(cells + 1, sizeof(focus_place) + 2, &bytes)) return;
    focus_place *places = proa_scratch(bytes + (size_t)(j->rows + j->columns));
    if (!places) return;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < j->args->indexes.count; k++)
            focus_channel(j, i * j->rows * j->columns * j->channels, j->args->indexes.at[k], places,
                          (bool *)(void *)(places + cells));
    proa_scratch_free(places);
}

PROA_KERNEL(similarity_focus_cpu, similarity_focus)
{
    const int64_t *shape = a->x->shape, axis = a->axis;
    int64_t step[4] = {0, shape[2] * shape[3], shape[3], 1};
    int row = axis == 1 ? 2 : 1, column = axis == 3 ? 2 : 3;
    focus_job job = {a, shape[row], shape[column], shape[axis], step[row], step[column], step[axis]};
    PROA_TRY(proa__fill(a->out, NULL));
    proa__parallel(shape[0], 1, focus_images, &job);
    return proa_error();
}
