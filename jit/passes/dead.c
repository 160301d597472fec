/* The passes for dead-code elimination and constant folding, which call transforms of whole programs. May use
 * core and ops. */
#include "passes.h"

proa_status proa__pass_dead(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    return b->parent < 0 ? proa__program_prune(b->program, true) : PROA_OK;
}

proa_status proa__pass_fold(proa_block *b, const proa__pass_context *context)
{
    return b->parent < 0 ? proa__program_fold(b->program, context->frozen) : PROA_OK;
}
