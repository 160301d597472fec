/* Table of the NCCL 2 functions that the plug-in calls, with names of our own for types and values. Building
 * needs none of NCCL's headers (nccl.c checks the declarations where they are); the library is loaded when a
 * group of processes first communicates. C; uses nothing of Proa. */
#ifndef PROA_CUDA_NCCL_H
#define PROA_CUDA_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_nccl_comm_s *cuda_nccl_comm;
typedef struct cuda_nccl_id {
    char bytes[128];
} cuda_nccl_id;

enum {
    CUDA_NCCL_OK = 0,
    CUDA_NCCL_SYSTEM_ERROR = 2,
    CUDA_NCCL_INVALID_ARGUMENT = 4,
    CUDA_NCCL_INVALID_USAGE = 5,
    CUDA_NCCL_REMOTE_ERROR = 6,
    CUDA_NCCL_IN_PROGRESS = 7
};
enum {
    CUDA_NCCL_INT8 = 0,
    CUDA_NCCL_UINT8 = 1,
    CUDA_NCCL_INT32 = 2,
    CUDA_NCCL_INT64 = 4,
    CUDA_NCCL_HALF = 6,
    CUDA_NCCL_FLOAT = 7,
    CUDA_NCCL_DOUBLE = 8,
    CUDA_NCCL_BFLOAT16 = 9
};
enum { CUDA_NCCL_SUM, CUDA_NCCL_PROD, CUDA_NCCL_MAX, CUDA_NCCL_MIN, CUDA_NCCL_AVG };

/* Settings of a communicator: those of NCCL 2.14, which every later version takes. */
enum { CUDA_NCCL_CONFIG_MAGIC = (int)0xcafebeef, CUDA_NCCL_CONFIG_VERSION = 21400 };
typedef struct cuda_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking; /* 0: calls return CUDA_NCCL_IN_PROGRESS instead of waiting for other ranks */
} cuda_nccl_config;

/* Each function is nccl<Name>, and returns 0 or a code that GetErrorString explains. */
typedef struct cuda_nccl {
    const char *(*GetErrorString)(int code);
    const char *(*GetLastError)(cuda_nccl_comm comm);
    int (*GetUniqueId)(cuda_nccl_id *id);
    int (*CommInitRankConfig)(cuda_nccl_comm *comm, int size, cuda_nccl_id id, int rank,
                              cuda_nccl_config *config);
    int (*CommGetAsyncError)(cuda_nccl_comm comm, int *code);
    int (*CommFinalize)(cuda_nccl_comm comm);
    int (*CommDestroy)(cuda_nccl_comm comm);
    int (*CommAbort)(cuda_nccl_comm comm);
    int (*AllReduce)(const void *in, void *out, size_t count, int type, int op, cuda_nccl_comm comm,
                     void *stream);
    int (*Reduce)(const void *in, void *out, size_t count, int type, int op, int root, cuda_nccl_comm comm,
                  void *stream);
    int (*ReduceScatter)(const void *in, void *out, size_t count_each, int type, int op, cuda_nccl_comm comm,
                         void *stream);
    int (*Broadcast)(const void *in, void *out, size_t count, int type, int root, cuda_nccl_comm comm,
                     void *stream);
    int (*AllGather)(const void *in, void *out, size_t count_each, int type, cuda_nccl_comm comm,
                     void *stream);
    int (*Send)(const void *in, size_t count, int type, int peer, cuda_nccl_comm comm, void *stream);
    int (*Recv)(void *out, size_t count, int type, int peer, cuda_nccl_comm comm, void *stream);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
} cuda_nccl;

/* Names of NCCL's functions, for the code that fills the table. */
#define CUDA_NCCL_FUNCTIONS(X) \
    X(GetErrorString)          \
    X(GetLastError)            \
    X(GetUniqueId)             \
    X(CommInitRankConfig)      \
    X(CommGetAsyncError)       \
    X(CommFinalize)            \
    X(CommDestroy)             \
    X(CommAbort)               \
    X(AllReduce)               \
    X(Reduce)                  \
    X(ReduceScatter)           \
    X(Broadcast)               \
    X(AllGather)               \
    X(Send)                    \
    X(Recv)                    \
    X(GroupStart)              \
    X(GroupEnd)

/* Loads libnccl.so.2; in the emulated plug-in, the stand-in. NULL: it is not installed, and *why says so.
 * Callable from any thread. */
const cuda_nccl *cuda_nccl_default(const char **why);

#ifdef __cplusplus
}
#endif
#endif
