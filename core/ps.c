/* The process's connection to parameter servers. May use core only. */
#include "core/ps.h"

_Atomic(const proa__ps_calls *) proa__ps;
