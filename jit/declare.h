/* Variables of a program that stand there before the op that makes them. May use proa/program.h. */
#ifndef PROA_JIT_DECLARE_H
#define PROA_JIT_DECLARE_H

#include <proa/program.h>

/* A variable that an op appended later makes: an op that is given it as its output, proa_program_append
 * (io/append.h), or proa_program_define. Shape and dtype are a guess that the op corrects. New symbolic
 * tensor; reading it before is an error. */
PROA_API proa_tensor *proa_program_declare(proa_program *p, const proa_input_spec *spec);
PROA_API bool proa_program_is_declared(const proa_program *p, const char *name);
/* What an op of the root block made takes the declared variable's name and place. Tensors of the declared one
 * are good for proa_program_follow alone afterwards. */
PROA_API proa_status proa_program_define(proa_program *p, const char *name, const proa_tensor *made);
/* Makes a symbolic tensor stand for the variable that has the name now. */
PROA_API proa_status proa_program_follow(const proa_program *p, proa_tensor *t, const char *name);

#endif
