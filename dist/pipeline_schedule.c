/* Schedule tables of pipeline parallelism, 1F1B (also interleaved) and F-then-B: the order of a stage's
 * forwards and backwards of micro-batches. The runtime executes them and the simulator plays them. May use
 * core. */
#include "dist/forecast.h"

/* The i-th forward of a stage, as if it had no backwards: interleaved stages take micro-batches through their
 * chunks in groups of `stages`, F-then-B takes all through one chunk after the other. */
static proa_pipeline_step forward_at(proa_pipeline_kind kind, int64_t i, int64_t stages,
                                     int64_t micro_batches, int64_t chunks)
{
    int64_t group = kind == PROA_PIPELINE_F_THEN_B || chunks == 1 ? micro_batches : stages;
    int64_t round = i / (group * chunks), in_round = i % (group * chunks);
    return (proa_pipeline_step){.micro_batch = round * group + in_round % group, .chunk = in_round / group};
}

static proa_pipeline_step backward_at(proa_pipeline_kind kind, int64_t i, int64_t stages,
                                      int64_t micro_batches, int64_t chunks)
{
    bool reversed = kind == PROA_PIPELINE_F_THEN_B;
    proa_pipeline_step step =
        forward_at(kind, reversed ? micro_batches * chunks - 1 - i : i, stages, micro_batches, chunks);
    if (!reversed) step.chunk = chunks - 1 - step.chunk;
    step.backward = true;
    return step;
}

/* Forwards before the first backward. */
static int64_t warm_up(proa_pipeline_kind kind, int64_t stage, int64_t stages, int64_t micro_batches,
                       int64_t chunks)
{
    int64_t all = micro_batches * chunks, after = stages - stage - 1;
    int64_t warm = chunks == 1 ? after : 2 * after + (chunks - 1) * stages;
    return kind == PROA_PIPELINE_F_THEN_B || warm > all ? all : warm;
}

proa_status proa__pipeline_check(proa_pipeline_kind kind, int64_t stage, int64_t stages,
                                 int64_t micro_batches, int64_t chunks)
{
    if (kind != PROA_PIPELINE_1F1B && kind != PROA_PIPELINE_F_THEN_B)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "pipeline schedule: unknown kind %d", (int)kind);
    if (stages < 1 || stage < 0 || stage >= stages)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "pipeline schedule: stage is %lld; expected 0 to stages − 1, stages is %lld",
                         (long long)stage, (long long)stages);
    if (micro_batches < 1 || chunks < 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "pipeline schedule: micro_batches is %lld and chunks %lld; expected 1 or more",
                         (long long)micro_batches, (long long)chunks);
    if (kind == PROA_PIPELINE_1F1B && chunks > 1 && micro_batches % stages)
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "interleaved stages: accumulate_steps is %lld; it must be divisible by the %lld stages",
            (long long)micro_batches, (long long)stages);
    return PROA_OK;
}

proa_status proa_pipeline_schedule(proa_pipeline_kind kind, int64_t stage, int64_t stages,
                                   int64_t micro_batches, int64_t chunks, proa_pipeline_step *steps)
{
    PROA_TRY(proa__pipeline_check(kind, stage, stages, micro_batches, chunks));
    int64_t all = micro_batches * chunks, warm = warm_up(kind, stage, stages, micro_batches, chunks), n = 0;
    for (int64_t i = 0; i < warm; i++) steps[n++] = forward_at(kind, i, stages, micro_batches, chunks);
    for (int64_t i = 0; i < all; i++) {
        if (warm + i < all) steps[n++] = forward_at(kind, warm + i, stages, micro_batches, chunks);
        steps[n++] = backward_at(kind, i, stages, micro_batches, chunks);
    }
    return PROA_OK;
}

int64_t proa_pipeline_alive(proa_pipeline_kind kind, int64_t stage, int64_t stages, int64_t micro_batches,
                            int64_t chunks)
{
    int64_t warm = warm_up(kind, stage, stages, micro_batches, chunks);
    return warm < micro_batches * chunks ? warm + 1 : warm;
}
