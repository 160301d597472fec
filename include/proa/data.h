/* Data for training: datasets, readers of CSV, IDX and text files, loaders that batch, shuffle and prefetch,
 * and a progress display. Implemented by io/; needs proa/core.h only. */
#ifndef PROA_DATA_H
#define PROA_DATA_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets -------------------------------------------------------------------------- */

#define PROA_SAMPLE_FIELDS 8 /* most tensors that one sample has */

/* `count` samples of `fields` tensors each. Give `item` or `batch`; either may run on a loader's own thread,
 * one call at a time. */
typedef struct proa_dataset_desc {
    int64_t count;
    int fields;
    /* Sample `index`: puts new tensors into to[0 … fields - 1]; all samples of a batch agree in shape. */
    proa_status (*item)(void *context, int64_t index, proa_tensor **to);
    /* n samples at once: new tensors whose first dim is n. Takes precedence over item. */
    proa_status (*batch)(void *context, const int64_t *indices, int64_t n, proa_tensor **to);
    void (*release)(void *context); /* when the dataset is freed; may be NULL */
    void *context;
} proa_dataset_desc;

typedef struct proa_dataset proa_dataset;

/* A user-defined dataset. Free it with proa_dataset_free, or give it to a loader, which then frees it. */
PROA_API proa_dataset *proa_dataset_new(const proa_dataset_desc *desc); /* INVALID_ARGUMENT: incomplete */
PROA_API void proa_dataset_free(proa_dataset *d);                       /* accepts NULL */
/* Number of samples. */
PROA_API int64_t proa_dataset_count(const proa_dataset *d);
/* The samples of these indices as one batch; result: `fields` new tensors. */
PROA_API proa_tensors proa_dataset_batch(proa_dataset *d, const int64_t *indices, int64_t n);
/* Samples are the slices along the first dim of tensors that agree in its length. The tensors are kept. */
PROA_API proa_dataset *proa_tensor_dataset(proa_tensors fields);

/* ---- loader options -------------------------------------------------------------------- */

/* One options struct for loaders and readers; zero means the default. */
typedef struct proa_data_opts {
    char _;
    /* how samples become batches */
    int64_t batch;      /* default 1 */
    bool shuffle;       /* a new order every epoch, a function of seed and epoch alone */
    uint64_t seed;      /* seed of the shuffle, independent of proa_seed */
    bool drop_last;     /* leave out a last batch that is not full */
    int prefetch;       /* batches made ahead by a thread; default 2; PROA_NO_PREFETCH: none, no thread */
    int64_t rank, size; /* this process takes part `rank` of each batch of size × batch samples */
    /* CSV and IDX */
    proa_ints shape;  /* of one x; default: as in the file (CSV: one dim) */
    double scale;     /* x is multiplied by it: 1.0 / 16 */
    proa_dtype dtype; /* of x; default float32 */
    /* CSV */
    int64_t label;          /* column of y; default -1, the last; PROA_ZERO: the first; PROA_NO_LABEL: none */
    char separator;         /* default ',' */
    proa_dtype label_dtype; /* of y; default int64 */
    /* text */
    int64_t window; /* tokens of one sample; default 64 */
    int64_t stride; /* from one sample to the next; default window */
} proa_data_opts;

#define PROA_NO_PREFETCH (-1)
#define PROA_NO_LABEL INT64_MAX

/* ---- loaders --------------------------------------------------------------------------- */

typedef struct proa_loader proa_loader;

typedef struct proa_batch {
    proa_tensor *x, *y;   /* fields 0 and 1; y PROA_NONE when there is only one */
    proa_tensors fields;  /* all; they end with the iteration unless kept */
    int64_t index, count; /* of this batch in the epoch; batches of the epoch */
    int64_t size;         /* samples in it */
    proa_loader *loader;
} proa_batch;

/* Position of a loader, for checkpoints. `next` is the batch that comes next. */
typedef struct proa_position {
    uint64_t seed;
    int64_t epoch, next;
} proa_position;

/* A loader that owns d, which it frees also when it fails. Free it with proa_loader_free. */
PROA_API proa_loader *proa_loader_opt(proa_dataset *d, proa_data_opts opts);
#define proa_loader_new(...) PROA_X_loader_new_(__VA_ARGS__, )
#define PROA_X_loader_new_(d, ...) proa_loader_opt((d), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})
PROA_API void proa_loader_free(proa_loader *l); /* accepts NULL */
/* The loader's dataset, borrowed: valid as long as the loader. */
PROA_API proa_dataset *proa_loader_dataset(proa_loader *l);
/* Batches of one epoch on this rank. */
PROA_API int64_t proa_loader_batches(const proa_loader *l);
/* Inside proa_each, `next` is the batch after the one at hand. */
PROA_API proa_position proa_loader_position(const proa_loader *l);
/* The next proa_each starts at that batch of that epoch. BAD_STATE inside proa_each. */
PROA_API proa_status proa_loader_set_position(proa_loader *l, proa_position position);

/* proa_each(batch, loader) { … }: one epoch. `batch` is a const proa_batch *; each iteration is a scope of
 * its own, which break, return and goto leave, too; the loop ends early once an error is set. After a break
 * the next proa_each begins the next epoch. */
#define proa_each(name, source)                                                                              \
    for (__attribute__((cleanup(proa_each_leave_))) const proa_batch *name = proa_each_first_(source); name; \
         name = proa_each_next_(name))
PROA_API const proa_batch *proa_each_first_(proa_loader *l);
PROA_API const proa_batch *proa_each_next_(const proa_batch *b);
PROA_API void proa_each_leave_(const proa_batch **b);

/* ---- readers --------------------------------------------------------------------------- */

/* Comma-separated numbers, one sample a line; a first line with a field that is no number is a header. Empty
 * lines are skipped. x: [columns - 1] or .shape; y: the label column. CORRUPT names line and column. */
PROA_API proa_dataset *proa_csv_dataset_opt(const char *path, proa_data_opts opts);
#define proa_csv_dataset(...) PROA_X_csv_dataset_(__VA_ARGS__, )
#define PROA_X_csv_dataset_(path, ...) \
    proa_csv_dataset_opt((path), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})
PROA_API proa_dataset *proa_csv_dataset_memory(const void *data, size_t bytes, proa_data_opts opts);
/* A loader of such a dataset, which it owns. */
PROA_API proa_loader *proa_load_csv_opt(const char *path, proa_data_opts opts);
#define proa_load_csv(...) PROA_X_load_csv_(__VA_ARGS__, )
#define PROA_X_load_csv_(path, ...) \
    proa_load_csv_opt((path), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})

/* One IDX file (the format of the MNIST files) as a tensor of its own dtype. */
PROA_API proa_tensor *proa_read_idx(const char *path);
PROA_API proa_tensor *proa_read_idx_memory(const void *data, size_t bytes);
/* Samples from a file of images and one of labels (int64; NULL: none). */
PROA_API proa_dataset *proa_idx_dataset_opt(const char *images, const char *labels, proa_data_opts opts);
#define proa_idx_dataset(...) PROA_X_idx_dataset_(__VA_ARGS__, )
#define PROA_X_idx_dataset_(images, labels, ...) \
    proa_idx_dataset_opt((images), (labels), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})
/* A loader of such a dataset, which it owns. */
PROA_API proa_loader *proa_load_idx_opt(const char *images, const char *labels, proa_data_opts opts);
#define proa_load_idx(...) PROA_X_load_idx_(__VA_ARGS__, )
#define PROA_X_load_idx_(images, labels, ...) \
    proa_load_idx_opt((images), (labels), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})

/* ---- text ------------------------------------------------------------------------------ */

/* A text as token ids. Tokens are its distinct UTF-8 characters in code point order, or the 256 bytes. */
typedef struct proa_text proa_text;

/* bytes: tokens are the 256 bytes, otherwise characters (CORRUPT where the text is not UTF-8). Free the
 * result with proa_text_free. */
PROA_API proa_text *proa_text_load(const char *path, bool bytes);
PROA_API proa_text *proa_text_from_memory(const void *data, size_t n, bool bytes);
PROA_API void proa_text_free(proa_text *t); /* accepts NULL */
/* Size of the vocabulary. */
PROA_API int64_t proa_text_vocabulary(const proa_text *t);
/* The whole text's tokens: int64[n]. Borrowed. */
PROA_API proa_tensor *proa_text_tokens(const proa_text *t);
/* New int64[n]; NOT_FOUND names a character that the vocabulary lacks. */
PROA_API proa_tensor *proa_text_encode(const proa_text *t, const char *text);
/* The token as UTF-8 (or one byte) and a zero: at most 5 bytes. OUT_OF_RANGE otherwise. */
PROA_API proa_status proa_text_decode(const proa_text *t, int64_t token, char to[5]);
/* Windows of the text: x = tokens [i, i + window), y = the tokens one later; both int64[window]. The text
 * must outlive the dataset. */
PROA_API proa_dataset *proa_text_dataset(const proa_text *t, int64_t window, int64_t stride);
/* A loader of such windows; .window and .stride say which. */
PROA_API proa_loader *proa_load_text_opt(const proa_text *t, proa_data_opts opts);
#define proa_load_text(...) PROA_X_load_text_(__VA_ARGS__, )
#define PROA_X_load_text_(t, ...) proa_load_text_opt((t), PROA_LITERAL(proa_data_opts){._ = 0, __VA_ARGS__})

/* ---- progress -------------------------------------------------------------------------- */

/* A bar with rate, values and time left when `to` is a terminal; otherwise a plain line now and then. */
typedef struct proa_progress proa_progress;

/* total: steps in all; label may be NULL. */
PROA_API proa_progress *proa_progress_new(FILE *to, const char *label, int64_t total);
/* Shows "name value" beside the bar until the name is set again; at most four names. */
PROA_API void proa_progress_value(proa_progress *p, const char *name, double value);
/* `steps` more are done. Cheap: draws at most ten times a second. */
PROA_API void proa_progress_step(proa_progress *p, int64_t steps);
/* Draws the last state, ends the line, frees p. Accepts NULL. */
PROA_API void proa_progress_end(proa_progress *p);

#ifdef __cplusplus
}
#endif
#endif
