/* Runs OpenMP regions of other libraries (oneDNN, OpenBLAS) on Proa's worker teams. For the kernels that call
 * these libraries. May use core only. */
#ifndef PROA_CORE_OPENMP_H
#define PROA_CORE_OPENMP_H

#include <stdbool.h>

/* Binds the GOMP_* and omp_* imports of the shared library that contains `function` to Proa's
 * implementations. False, with nothing changed, where that library does not use libgomp or imports a function
 * that Proa lacks. */
bool proa__openmp_serve(void (*function)(void));
/* Reserves workers so that regions of this thread can have `threads` threads; returns how many they can
 * have. */
int proa__openmp_reserve(int threads);
/* Limits the threads of this thread's OpenMP regions until the next call; 0: proa_threads(). Returns the
 * former limit. */
int proa__openmp_limit(int threads);

#endif
