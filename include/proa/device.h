/* Interface of a device plug-in: the table of one device, the host's functions, the entry point (docs/add-
 * a-device.md). A plug-in links nothing of Proa: it may call proa_host_api alone. Needs proa/op.h. */
#ifndef PROA_DEVICE_H
#define PROA_DEVICE_H

#include <proa/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts changes of the structs below. */
#define PROA_DEVICE_ABI 4

/* Elements of `item` bytes (1, 2, 4, 8 or 16) from src to dst, both on the device: dims outermost
 * first, strides in bytes and of any sign, 0 in `from` where one element is repeated. No overlap. ndim
 * is at least 1. */
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

/* The blocked form that devices have (proa_kernel.format): the channels, axis 1 of at least three, are stored
 * beside each other in memory, behind them the images' pixels; no padding. */
#define PROA_CHANNELS_LAST 0x7fff

/* One device. Functions get `context` as it stands here; any thread may call them. Those that return a status
 * may be asynchronous as far as noted; an error that shows up later is returned by the next function that
 * waits (copy_out, synchronize). They report errors through proa_host_api.fail. */
typedef struct proa_device_table {
    const char *name; /* "gpu:0": the kind, a colon, the number */
    void *context;
    /* Memory of the device, aligned to 64 bytes at least; NULL when there is none. Pointers to it are opaque
     * to the host, except that it adds offsets to them. */
    void *(*alloc)(void *context, size_t bytes);
    void (*free)(void *context, void *p, size_t bytes);
    /* Host to device; on return `from` may be overwritten. */
    proa_status (*copy_in)(void *context, void *to, const void *from, size_t bytes);
    /* Device to host; done on return. */
    proa_status (*copy_out)(void *context, void *to, const void *from, size_t bytes);
    /* The three kernels that every device has. */
    proa_status (*copy)(void *context, void *to, const void *from, size_t bytes);
    proa_status (*copy_strided)(void *context, const proa_strided_copy *copy);
    /* `count` times the element `value` (host memory, item bytes) one after another. */
    proa_status (*fill)(void *context, void *to, const void *value, size_t item, int64_t count);
    /* Waits for all that was asked before. */
    proa_status (*synchronize)(void *context);
    /* Kernels by the op's id: NULL-terminated lists, best first, or NULL. kernel_ops entries. */
    const proa_kernel *const *const *kernels;
    uint32_t kernel_ops;
    /* Optional from here. */
    void (*begin)(void *context, const proa_op *op); /* the op whose kernel runs next; NULL: none */
    void (*memory)(void *context, proa_device_memory *to, bool reset_peak);
    void (*trim)(void *context);                                      /* gives cached memory back */
    const char *(*describe)(void *context);                           /* one line: model, memory, versions */
    int (*property)(void *context, const char *name, int64_t *value); /* by name; 0: no such property */
    /* All four or none. What the thread queues from record_begin to record_end is kept, not run; record_end
     * gives it, or NULL where something could not be kept (a wait, a copy from or to the host), without an
     * error: then nothing has run, and the host asks again for each. `replay` queues all of it at once, with
     * the addresses and values that it was recorded with, but random numbers of its own. Memory that kernels
     * took for themselves stays theirs until record_free. */
    proa_status (*record_begin)(void *context);
    void *(*record_end)(void *context);
    proa_status (*replay)(void *context, void *recording);
    void (*record_free)(void *context, void *recording);
    /* Both or none. New memory into which `bytes` of the host are on their way, beside what is queued, for
     * `free` like any other; on return `from` may be overwritten. NULL, without an error: not now. Before it
     * is used (not before it is freed) `arrive` is called; what is queued then finds the bytes there. */
    void *(*send)(void *context, const void *from, size_t bytes);
    proa_status (*arrive)(void *context, const void *at);
} proa_device_table;

/* A tensor as a kernel of a plug-in sees it. */
typedef struct proa_tensor_facts {
    void *data; /* element 0 of the row-major form */
    proa_dtype dtype;
    int ndim;
    int64_t numel;
    const int64_t *shape, *strides; /* strides in bytes */
    const int64_t *rows;            /* of kind rows: which row of the table each is, on the host; else NULL */
    int64_t height;                 /* of kind rows: how many rows the table has */
    /* For kernels with a format, to which data may be NULL then; others get the row-major form, too. */
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
    /* Sets the thread's error to a text; returns the code that now stands. */
    proa_status (*fail)(proa_status code, const char *text);
    proa_status (*error)(void);
    const char *(*flag)(const char *name); /* NULL: no such flag (an error is set) */
    /* Host memory, counted and cached by the library. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *p);
    void (*facts)(const proa_tensor *t, proa_tensor_facts *to);
    const char *(*text)(const proa_tensor *t); /* "float32[2, 3]", for messages */
    const char *(*shape_text)(const int64_t *shape, int ndim);
    /* A tensor on the device of the op that runs; ends with the call's scope. */
    proa_tensor *(*tensor_new)(const proa_meta *meta);
    proa_tensor *(*output_resize)(void *args, const proa_op *op, int index, const proa_meta *meta);
    /* Philox blocks of the thread's generator: as many are taken for a call as the CPU's kernel takes. */
    proa_rng_state (*rng_reserve)(uint64_t blocks);
    /* For kernels with a format. Lays an output of this call, which has run->fresh, channels last: nothing
     * has been written to it. */
    proa_status (*lay_channels_last)(proa_tensor *output);
    /* Before the n tensors are overwritten from their own values: afterwards all of them lie channels last as
     * `like` does, and nowhere else, or all are plain, and `like` has a plain form, too. Without `may_move`
     * only what is stored so already stays. */
    proa_status (*lay_alike)(proa_tensor *const *at, int n, const proa_tensor *like, bool may_move);
} proa_host_api;

typedef struct proa_plugin {
    uint32_t abi;           /* PROA_DEVICE_ABI that it was built with */
    const char *table_hash; /* PROA_TABLE_HASH that it was built with */
    const proa_device_table *devices;
    int n_devices;
    const char *why_none; /* n_devices is 0: the reason, for people */
} proa_plugin;

/* The one symbol that a plug-in exports. Borrowed: the plug-in is never unloaded. */
#define PROA_PLUGIN_ENTRY "proa_plugin_entry"
typedef const proa_plugin *(*proa_plugin_entry_fn)(const proa_host_api *host);

/* Loads a plug-in (a file, or a name that the loader finds) and adds its devices; once per file. Returns how
 * many devices it brought; -1 and an error if it cannot be loaded, was built against another Proa, or has
 * no device here. */
PROA_API int proa_load_devices(const char *path);
/* Adds one device; its struct must live as long as the process. Returns its id; -1 and an error. */
PROA_API int proa_add_device(const proa_device_table *table);
/* The table of a device by name ("gpu" is "gpu:0"), loading the plug-in that is known to have such; NULL and
 * UNAVAILABLE if there is none. */
PROA_API const proa_device_table *proa_find_device(const char *name);

#ifdef __cplusplus
}
#endif
#endif
