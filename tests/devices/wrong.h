/* Kernels and calls that are wrong on a GPU, each in one way (wrong.cc), for test_cuda_emulator. */
#ifndef PROA_TESTS_CUDA_WRONG_H
#define PROA_TESTS_CUDA_WRONG_H

#ifdef __cplusplus
extern "C" {
#endif

/* Synchronization between a write to shared memory and a read of what another thread wrote. */
enum wrong_wait { WRONG_BARRIER, WRONG_NONE };

/* Launches, of 32, that have other numbers than a GPU's where nobody is early: threads read what thread
 * + `from` wrote, with a barrier (then 0) or none. */
int wrong_reads(enum wrong_wait wait, int from);
/* The same of a loop that overwrites what slower threads may not have read yet. */
int wrong_reuse(enum wrong_wait wait);
/* The same of threads that read what they copied to shared memory asynchronously, without a wait. */
int wrong_copies(enum wrong_wait wait);
/* The value that a lane gets from one that has returned. */
float wrong_gone_lane(void);

/* These end the process. */
void wrong_shuffles(void);   /* halves of a warp at two of them */
void wrong_barriers(void);   /* halves of a block at two of them */
void wrong_alignment(void);  /* 16 bytes from an address that is a multiple of 8 */
void wrong_grid(void);       /* 65536 blocks along y */
void wrong_shared(void);     /* a byte behind a block's shared memory */
void wrong_recording(int i); /* call i of those that a GPU refuses while it records */
enum { WRONG_RECORDINGS = 5 };

#ifdef __cplusplus
}
#endif
#endif
