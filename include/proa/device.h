/* Interface of a device plug-in: the table of a device's functions, the host functions it may call, the entry
 * point (docs/add-a-device.md). A plug-in does not link Proa: it calls proa_host_api only. Needs
 * proa/op.h. */
#ifndef PROA_DEVICE_H
#define PROA_DEVICE_H

#include <proa/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the structs below, incremented when one of them changes. */
#define PROA_DEVICE_ABI 5

/* Copies elements of `item` bytes (1, 2, 4, 8 or 16) from src to dst, both on the device. Dims are outermost
 * first; strides are in bytes and of any sign, 0 in `from` to repeat an element. No overlap; ndim is at least
 * 1. */
typedef struct proa_strided_copy {
    char *dst;
    const char *src;
    size_t item;
    int ndim;
    int64_t shape[PROA_MAX_DIMS], to[PROA_MAX_DIMS], from[PROA_MAX_DIMS];
} proa_strided_copy;

typedef struct proa_device_memory {
    int64_t live_bytes, peak_bytes, cached_bytes; /* as in proa_memory_stats */
    int64_t total_bytes;                          /* of the device; 0: unknown */
} proa_device_memory;

/* The blocked format of devices (see proa_kernel.format): channels last, without padding. Axis 1 of a tensor
 * of rank 3 or more is stored innermost, as NHWC. */
#define PROA_CHANNELS_LAST 0x7fff

/* The functions of one device. Each gets `context` from this table, and any thread may call them. Those that
 * return a status may be asynchronous; an asynchronous error is returned by the next function that waits
 * (copy_out, synchronize). Errors are reported through proa_host_api.fail. */
typedef struct proa_device_table {
    const char *name; /* "gpu:0": the kind, a colon, the number */
    void *context;
    /* Allocates device memory, aligned to 64 bytes at least; NULL when there is none left. To the host such
     * pointers are opaque, except that it adds offsets to them. */
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *p, size_t bytes);
    /* Host to device; when it returns, the caller may overwrite `from`. */
    proa_status (*copy_in)(void *context, void *to, const void *from, size_t bytes);
    /* Device to host; waits until the copy is done. */
    proa_status (*copy_out)(void *context, void *to, const void *from, size_t bytes);
    /* Copies and fill on the device, which every device must have. copy: contiguous bytes. */
    proa_status (*copy)(void *context, void *to, const void *from, size_t bytes);
    proa_status (*copy_strided)(void *context, const proa_strided_copy *copy);
    /* Writes `count` copies of the element `value` (host memory, `item` bytes) to contiguous memory. */
    proa_status (*fill)(void *context, void *to, const void *value, size_t item, int64_t count);
    /* Waits for all queued work. */
    proa_status (*synchronize)(void *context);
    /* kernels[op id], for ids below kernel_ops: the op's kernels on this device, best first, NULL-terminated;
     * NULL: none. */
    const proa_kernel *const *const *kernels;
    uint32_t kernel_ops;
    /* Optional from here. */
    void (*begin)(void *context, const proa_op *op); /* the op whose kernel runs next; NULL: none */
    void (*memory)(void *context, proa_device_memory *to, bool reset_peak);
    void (*trim)(void *context);                                      /* gives cached memory back */
    const char *(*describe)(void *context);                           /* one line: model, memory, versions */
    int (*property)(void *context, const char *name, int64_t *value); /* by name; 0: no such property */
    /* Device graphs (as CUDA graphs); all four functions or none. Work that the thread queues between
     * record_begin and record_end is recorded, not run. record_end returns the recording, or NULL without an
     * error if something could not be recorded (a wait, a copy from or to the host); then nothing has run,
     * and the host runs the work step by step. `replay` queues a recording with the recorded addresses and
     * values, but fresh random numbers. Memory that kernels allocated while recording is theirs until
     * record_free. */
    proa_status (*record_begin)(void *context);
    void *(*record_end)(void *context);
    proa_status (*replay)(void *context, void *recording);
    void (*record_free)(void *context, void *recording);
    /* Asynchronous upload; both functions or none. `send` returns new device memory into which `bytes` bytes
     * of the host are being copied concurrently with queued work; `free` releases it, and the caller may
     * overwrite `from` at once. NULL without an error: not possible now. Before the memory is used, `arrive`
     * makes work that is queued later wait for the copy; it may be freed without. */
    void *(*send)(void *context, const void *from, size_t bytes);
    proa_status (*arrive)(void *context, const void *at);
    /* Events; all three functions or none, and then the host waits for all queued work instead. `mark`
     * returns a new event behind the work that is queued, or NULL and an error. mark_done: 1 if that work is
     * done, 0 if it is not, which `wait` waits for; -1 and an error. */
    void *(*mark)(void *context);
    int (*mark_done)(void *context, void *mark, bool wait);
    void (*mark_free)(void *context, void *mark);
} proa_device_table;

/* Data and metadata of a tensor for a kernel of a plug-in. */
typedef struct proa_tensor_facts {
    void *data; /* element 0 of the row-major form */
    proa_dtype dtype;
    int ndim;
    int64_t numel;
    const int64_t *shape, *strides; /* strides in bytes */
    const int64_t *rows;            /* SelectedRows: row number of each stored row, on the host; else NULL */
    int64_t height;                 /* SelectedRows: number of rows of the table */
    /* True if the tensor has a channels-last form (`last`). Only kernels with a format see it, and for them
     * data may be NULL then; others always get the row-major form. */
    bool channels_last;
    void *last; /* element 0 of the channels-last form; NULL in prepare and format */
} proa_tensor_facts;

/* Functions and data that the library gives to a plug-in. */
typedef struct proa_host_api {
    uint32_t abi; /* PROA_DEVICE_ABI of the library */
    const char *table_hash;
    const proa_op *const *ops; /* by id */
    uint32_t n_ops;
    const proa_tensor *none; /* PROA_NONE: what an absent optional tensor is */
    /* Sets the thread's error to a text; returns the code that is set afterwards. */
    proa_status (*fail)(proa_status code, const char *text);
    proa_status (*error)(void);
    const char *(*flag)(const char *name); /* NULL: no such flag (an error is set) */
    /* Host memory, counted and cached by the library. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *p);
    void (*facts)(const proa_tensor *t, proa_tensor_facts *to);
    const char *(*text)(const proa_tensor *t); /* "float32[2, 3]", for messages */
    const char *(*shape_text)(const int64_t *shape, int ndim);
    /* A new tensor on the device of the running op; released when the call ends. */
    proa_tensor *(*tensor_new)(const proa_meta *meta);
    proa_tensor *(*output_resize)(void *args, const proa_op *op, int index, const proa_meta *meta);
    /* Reserves Philox blocks of the thread's generator. A kernel reserves as many as the CPU's kernel does,
     * so that the generator's state agrees. */
    proa_rng_state (*rng_reserve)(uint64_t blocks);
    /* For kernels with a format: makes an output of this call (run->fresh) channels last. Call it before
     * anything is written to the output. */
    proa_status (*store_channels_last)(proa_tensor *output);
    /* For kernels that overwrite n tensors from their own values: gives all of them one layout. Afterwards
     * either all are channels last only, as `like` is, or all are row-major and `like` has a row-major form,
     * too. Without `may_move`, tensors are not converted to channels last; only those that are already stay
     * so. */
    proa_status (*match_layout)(proa_tensor *const *at, int n, const proa_tensor *like, bool may_move);
} proa_host_api;

typedef struct proa_plugin {
    uint32_t abi;           /* PROA_DEVICE_ABI that it was built with */
    const char *table_hash; /* PROA_TABLE_HASH that it was built with */
    const proa_device_table *devices;
    int n_devices;
    const char *why_none; /* for users: why n_devices is 0 */
} proa_plugin;

/* The one symbol that a plug-in exports. Borrowed: the plug-in is never unloaded. */
#define PROA_PLUGIN_ENTRY "proa_plugin_entry"
typedef const proa_plugin *(*proa_plugin_entry_fn)(const proa_host_api *host);

/* Loads a plug-in (a file, or a name that dlopen finds) and adds its devices; once per file. Returns the
 * number of devices added; -1 and an error if it cannot be loaded, was built against another Proa, or finds
 * no device on this machine. */
PROA_API int proa_load_devices(const char *path);
/* Adds one device; its struct must live as long as the process. Returns its id; -1 and an error. */
PROA_API int proa_add_device(const proa_device_table *table);
/* The table of the device of this name ("gpu" is "gpu:0"), after loading the plug-in that provides it; NULL
 * and UNAVAILABLE if there is none. */
PROA_API const proa_device_table *proa_find_device(const char *name);

#ifdef __cplusplus
}
#endif
#endif
