/* OpenMP regions of other libraries (oneDNN, OpenBLAS) on our teams. For the kernels that call them; core
 * only. */
#ifndef PROA_CORE_OPENMP_H
#define PROA_CORE_OPENMP_H

#include <stdbool.h>

/* Has the shared library that holds `function` call our GOMP_* and omp_* functions in place of libgomp's.
 * False, and nothing changed, where the library does not use libgomp or calls a function that we lack. */
bool proa__openmp_serve(void (*function)(void));
/* Makes sure that this thread's regions can have so many threads; returns how many they can. */
int proa__openmp_reserve(int threads);
/* Limits the threads of this thread's OpenMP regions until the next call; 0: proa_threads(). Returns the
 * limit before. */
int proa__openmp_limit(int threads);

#endif
