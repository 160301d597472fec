/* Metrics of Paddle's programs as compositions of ops. May use public ops and proa/wire.h. */
#include "ops/composed/composed.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/reduce.h"
#include "impl/shape.h"

static proa_tensor *whole_number(int64_t value)
{
    return proa_full(PROA_INTS(1), PROA_SCALAR(value), .dtype = PROA_I64);
}

/* The number of rows that `chosen`, [N], names in each bin, [buckets]. */
static proa_tensor *histogram(proa_tensor *bins, proa_tensor *chosen, int64_t buckets)
{
    proa_tensor *none = proa_full(PROA_INTS(buckets), PROA_SCALAR(0), .dtype = PROA_I64);
    return proa_scatter_nd_add(none, proa_unsqueeze(bins, PROA_INTS(1)), proa_cast(chosen, PROA_I64));
}

/* stat holds the counts of the last `steps` batches, [steps, buckets], their sum, [buckets], and the number
 * of batches so far; this batch's take the place of the oldest. *sum gets the new sum. */
static proa_tensor *moved_window(proa_tensor *stat, proa_tensor *batch, int64_t steps, int64_t buckets,
                                 proa_tensor **sum)
{
    int64_t end = steps * buckets;
    proa_tensor *flat = proa_reshape(stat, PROA_INTS(-1));
    proa_tensor *window = proa_reshape(proa__part(flat, 0, 0, end), PROA_INTS(steps, buckets));
    proa_tensor *before = proa__part(flat, 0, end, end + buckets);
    proa_tensor *batches = proa__part(flat, 0, end + buckets, end + buckets + 1);
    proa_tensor *turn = proa_remainder(batches, whole_number(steps));
    proa_tensor *step = proa_arange(PROA_SCALAR(0), PROA_SCALAR(steps), PROA_SCALAR(1), .dtype = PROA_I64);
    proa_tensor *oldest = proa_unsqueeze(proa_equal(step, turn), PROA_INTS(1));
    proa_tensor *gone = proa_sum(proa_multiply(window, proa_cast(oldest, PROA_I64)), .axis = PROA_INTS(0));
    *sum = proa_add(proa_subtract(before, gone), batch);
    window = proa_reshape(proa_where(oldest, batch, window), PROA_INTS(-1));
    return proa_concat(PROA_LIST(window, *sum, proa_add(batches, whole_number(1))), .axis = 0);
}

/* The area under the ROC curve of counts by threshold, by the trapezoid rule; 0 if a class has no rows. */
static proa_tensor *area_of(proa_tensor *positive, proa_tensor *negative)
{
    proa_tensor *hits = proa_flip(proa_cast(positive, PROA_F64), PROA_INTS(0));
    proa_tensor *misses = proa_flip(proa_cast(negative, PROA_F64), PROA_INTS(0));
    proa_tensor *reached = proa_cumsum(hits, .axis = PROA_SCALAR(0));
    proa_tensor *heights = proa__times(proa_subtract(proa__times(reached, 2, 0), hits), 0.5, 0);
    proa_tensor *area = proa_sum(proa_multiply(heights, misses));
    proa_tensor *square = proa_multiply(proa_sum(hits), proa_sum(misses));
    return proa_divide(area, proa_maximum(square, proa_full_like(square, PROA_SCALAR(1))));
}

proa_status auc_read(proa_wire_reader *r)
{
    proa_tensor *predict = proa_wire_input(r, "Predict"), *label = proa_wire_input(r, "Label");
    proa_tensor *stats[2] = {proa_wire_input(r, "StatPos"), proa_wire_input(r, "StatNeg")}, *sums[2];
    int64_t thresholds = proa_wire_int(r, "num_thresholds", 4095), steps = proa_wire_int(r, "slide_steps", 1);
    if (!predict || !label || !stats[0] || !stats[1]) return proa_error();
    if (predict->ndim != 2 || predict->shape[1] < 1 || predict->shape[1] > 2)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "auc: Predict is %s; expected probabilities [N, 1] or [N, 2], the last of the positive class",
            proa__tensor_text(predict));
    if (thresholds < 1 || steps < 0)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "auc: num_thresholds is %lld and slide_steps %lld; expected at least 1 and 0",
                         (long long)thresholds, (long long)steps);
    if (!proa__absent(proa_wire_input(r, "InsTagWeight")))
        return proa_fail(PROA_ERR_UNSUPPORTED, "auc: weights of instance tags (InsTagWeight)");
    int64_t last = predict->shape[1] - 1, buckets = thresholds + 1;
    proa_tensor *likely = proa_reshape(proa__part(predict, 1, last, last + 1), PROA_INTS(-1));
    proa_tensor *bins = proa_cast(proa__times(likely, (double)thresholds, 0), PROA_I64);
    proa_tensor *classes = proa_reshape(proa_cast(label, PROA_I64), PROA_INTS(-1)), *zero = whole_number(0);
    proa_tensor *chosen[] = {proa_greater_than(classes, zero), proa_equal(classes, zero)};
    static const char *const slots[] = {"StatPosOut", "StatNegOut"};
    for (int i = 0; i < 2; i++) {
        proa_tensor *batch = histogram(bins, chosen[i], buckets), *next;
        if (steps) {
            next = moved_window(stats[i], batch, steps, buckets, &sums[i]);
        } else {
            sums[i] = proa_add(proa_reshape(stats[i], PROA_INTS(-1)), batch);
            next = proa_unsqueeze(sums[i], PROA_INTS(0));
        }
        PROA_TRY(proa_wire_result(r, slots[i], next));
    }
    return proa_wire_result(r, "AUC", area_of(sums[0], sums[1]));
}
