/* The process's connection to parameter servers. May use core only. */
#include "core/ps.h"

const proa__ps_calls *proa__ps;
