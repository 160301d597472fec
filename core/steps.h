/* Checks and prints the steps of a fused chain of elementwise ops, which are the value of an attribute of
 * kind STEPS. May use core. */
#ifndef PROA_CORE_STEPS_H
#define PROA_CORE_STEPS_H

#include "core/internal.h"

#include <stdio.h>

enum { PROA__STEP_OPERANDS = 3, PROA__STEP_ATTRIBUTES = 4 }; /* at most, of a proa_chain_step */

/* Checks steps that anybody may have built: ops, operands and attributes fit one another, and some step is an
 * output. Which ops may be steps and how many inputs there are is checked by the op's inference. */
proa_status proa__check_steps(const proa_op *op, const proa_field *f,
                              const proa_steps *steps) PROA_MUST_CHECK;
/* The fault of step i, in words; NULL: none. *name is the attribute at fault, or the op. */
const char *proa__step_fault(const proa_chain_step *steps, int64_t i, const char **name);
/* Prints the text that proa_steps_read takes, in quotes; reading it gives the same steps. */
void proa__print_steps(FILE *to, const proa_steps *steps);

#endif
