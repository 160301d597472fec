/* Compiles device code from source at run time: through NVRTC (compiler.c), or in tests through the emulator
 * (emulate/compiler.cc). C; needs nothing of Proa. */
#ifndef PROA_CUDA_COMPILER_H
#define PROA_CUDA_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name of the compiler ("NVRTC 13.0"), a part of what its results depend on. NULL: there is none, and *why
 * (unless NULL) says so. Any thread may ask. */
const char *cuda_compiler(const char **why);

/* Code for GPUs of a compute capability, as cuda_driver.module_load takes it, in *image (malloc, *bytes
 * long). False: it cannot be compiled, and `why` says so. The headers of cuda_headers may be included. */
bool cuda_compile(const char *source, int major, int minor, void **image, size_t *bytes, char *why,
                  size_t capacity);

/* Headers that sources may include, embedded when the plug-in is built; a NULL name ends the list. */
typedef struct cuda_header {
    const char *name, *text;
} cuda_header;
extern const cuda_header cuda_headers[];

#ifdef __cplusplus
}
#endif
#endif
