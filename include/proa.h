/* Proa: everything a program needs.
 * Includes the public headers, in the order in which they build on each other; C11 and C++17. */
#ifndef PROA_H
#define PROA_H

#include <proa/core.h>

#include <proa/ops.h>

#include <proa/functional.h>

#if __has_include(<proa/autograd.h>)
#include <proa/autograd.h>
#endif
#if __has_include(<proa/nn.h>)
#include <proa/nn.h>
#endif
#if __has_include(<proa/optim.h>)
#include <proa/optim.h>
#endif
#if __has_include(<proa/amp.h>)
#include <proa/amp.h>
#endif
#if __has_include(<proa/data.h>)
#include <proa/data.h>
#endif
#if __has_include(<proa/program.h>)
#include <proa/program.h>
#endif
#if __has_include(<proa/io.h>)
#include <proa/io.h>
#endif
#if __has_include(<proa/dist.h>)
#include <proa/dist.h>
#endif

#endif
