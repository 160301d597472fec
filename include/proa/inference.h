/* The inference runtime: loads a saved model, Paddle's or Proa's, once, and runs it from any number of
 * threads. Implemented by inference/; Paddle's C interface (pd_inference_api.h) and C++ interface
 * (paddle_inference_api.h) are layers over this header. */
#ifndef PROA_INFERENCE_H
#define PROA_INFERENCE_H

#include <proa/core.h>
#include <proa/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- quantization after training -------------------------------------------------------- */

/* The algorithm that derives an activation's scale from samples. */
typedef enum proa_scale_algo {
    PROA_SCALE_ABS_MAX, /* the largest magnitude */
    PROA_SCALE_AVG,     /* the mean of the batches' largest magnitudes */
    PROA_SCALE_KL,      /* least Kullback-Leibler divergence of histograms with 2048 bins; bits up to 11 */
    PROA_SCALE_NONE,    /* in rules: the op stays in float */
    PROA_SCALE_CHANNELS /* in rules, of weights: one scale an output channel */
} proa_scale_algo;

/* The algorithm of one operand of ops, by Paddle's names: of activations ("Input", "X") any but CHANNELS; of
 * weights ("Filter", "Y", "W") ABS_MAX (one scale), CHANNELS or NONE. */
typedef struct proa_scale_rule {
    const char *op_type, *slot;
    proa_scale_algo algo;
} proa_scale_rule;

typedef struct proa_quantize_opts {
    proa_scale_algo algo;        /* of activations; weights have their largest magnitude */
    int64_t bits;                /* 2 to 16; 0: 8 */
    bool per_tensor;             /* a weight has one scale; false: one an output channel */
    const char *skip;            /* a weight whose ops stay in float; NULL: none */
    const char *const *op_types; /* Paddle's types of the ops to quantize; none: all that can */
    int64_t n_op_types;
    const proa_scale_rule *rules; /* before `algo` and `per_tensor`; the last that fits an operand counts */
    int64_t n_rules;
    const int64_t *excluded; /* indices of ops in the main block that stay in float */
    int64_t n_excluded;
    bool embeddings; /* tables of embeddings, too: a scale for each row, whatever op_types says */
} proa_quantize_opts;

/* Batches for calibration. batch(i) returns tensors for the program's inputs, in order; it is called twice
 * for each i if the algorithm needs histograms. */
typedef struct proa_samples {
    int64_t count;
    proa_tensors (*batch)(int64_t i, void *context);
    void *context;
} proa_samples;

typedef struct proa_quantize_counts {
    int64_t ops, activations, weights;
} proa_quantize_counts;

/* Runs p on samples, and inserts Paddle's fake quantizers at the operands of convolutions and matrix products
 * with weights, and at tables that are asked for. counts may be NULL. UNSUPPORTED if there is no such op, or
 * p has branches. An error leaves p unchanged. */
PROA_API proa_status proa_program_quantize(proa_program *p, proa_samples samples, proa_quantize_opts opts,
                                           proa_quantize_counts *counts);

/* ---- configuration ---------------------------------------------------------------------- */

/* Settings of a predictor: the model and how it runs. */
typedef struct proa_config proa_config;

/* X(NAME, default, meaning): numbers of a config. A switch is 0 or 1. */
#define PROA_CONFIG_NUMBERS(X)                                                                              \
    X(IR_OPTIM, 1, "optimizing passes run; 0: results have the bits of eager execution")                    \
    X(IR_DEBUG, 0, "the program is printed to stderr before the passes and after each")                     \
    X(MEMORY_OPTIM, 0, "stored without effect: temporaries always share one arena")                         \
    X(ONEDNN, 1, "oneDNN's kernels are used where they are the fastest")                                    \
    X(ONEDNN_INT8, 0, "quantized chains run on INT8 kernels")                                               \
    X(ONEDNN_BFLOAT16, 0, "matrix products and convolutions run in bfloat16 where the CPU can")             \
    X(ONEDNN_QUANTIZER, 0, "a float model is quantized by samples and runs on INT8 kernels")                \
    X(QUANTIZER_ALGO, PROA_SCALE_KL, "the quantizer's proa_scale_algo")                                     \
    X(QUANTIZER_BATCH, 1, "stored without effect: a batch has as many rows as its tensors")                 \
    X(ONEDNN_CACHE_CAPACITY, 10, "stored without effect: FLAGS_kept_plans bounds the plans of a predictor") \
    X(CPU_THREADS, 1, "threads of a run; below 1: as many as the calling thread has set")                   \
    X(LOG, 1, "failures of the PD_ functions are printed to stderr")                                        \
    X(PROFILE, 0, "the profiler records; freeing the predictor prints its table")                           \
    X(FC_PADDING, 1, "stored without effect: no kernel pads")                                               \
    X(VALID, 1, "0: no predictor is made from it")                                                          \
    X(FEED_FETCH_OPS, 0, "stored without effect: data pass through handles")                                \
    X(SPECIFY_INPUT_NAMES, 0, "stored without effect: inputs always have names")                            \
    X(PARTIAL_RELEASE, 0, "stored without effect: nothing of a config outlives it")                         \
    X(LITE_ENGINE, 0, "stored without effect: there is no Paddle Lite")                                     \
    X(TENSORRT_OSS, 0, "stored without effect, as the next four: there is no TensorRT")                     \
    X(TENSORRT_DLA, 0, "layers on DLA cores")                                                               \
    X(TENSORRT_SHAPES, 0, "ranges of dynamic shapes were given")                                            \
    X(TENSORRT_TUNED, 0, "ranges of dynamic shapes are in a file")                                          \
    X(TENSORRT_BUILD_AT_RUNTIME, 0, "shapes outside the ranges build an engine")                            \
    X(SHAPES_COLLECTED, 0, "stored without effect: nothing is written to SHAPE_PATH")                       \
    X(STREAM_OF_THREAD, 0, "stored without effect: a predictor has a stream of its own")                    \
    X(GPU_POOL_MB, 100, "stored without effect: a device's pool grows as it is needed")

typedef enum proa_config_number {
#define PROA_X(NAME, fallback, meaning) PROA_CONFIG_##NAME,
    PROA_CONFIG_NUMBERS(PROA_X)
#undef PROA_X
        PROA_CONFIG_NUMBER_COUNT
} proa_config_number;

/* Strings of a config; "" is not set. */
typedef enum proa_config_text {
    PROA_CONFIG_MODEL_DIR,   /* a folder: __model__ and one file a variable, or __params__ */
    PROA_CONFIG_MODEL_FILE,  /* the program */
    PROA_CONFIG_PARAMS_FILE, /* its parameters */
    PROA_CONFIG_CACHE_DIR,   /* stored without effect: Proa caches nothing in files */
    PROA_CONFIG_SHAPE_PATH,  /* stored without effect: TensorRT's file of shape ranges */
    PROA_CONFIG_TEXT_COUNT
} proa_config_text;

/* Lists of names in a config. */
typedef enum proa_config_list {
    PROA_CONFIG_PASSES,     /* of the optimizing passes, those that run; names that are no pass are kept, and
                         * ignored. The order is Proa's (docs/programs.md) */
    PROA_CONFIG_ONEDNN_OPS, /* stored without effect */
    PROA_CONFIG_BFLOAT16_OPS,       /* op types that run in bfloat16; empty: all that can */
    PROA_CONFIG_INT8_OPS,           /* op types that run in INT8; empty: all that can */
    PROA_CONFIG_TENSORRT_EXCLUDED,  /* stored without effect */
    PROA_CONFIG_QUANTIZER_OPS,      /* op types that the quantizer quantizes; empty: all that can */
    PROA_CONFIG_QUANTIZER_EXCLUDED, /* indices of ops that the quantizer leaves in float, in decimals */
    PROA_CONFIG_QUANTIZER_SCALES,   /* its rules: "op_type slot ALGO", a proa_scale_algo */
    PROA_CONFIG_LIST_COUNT
} proa_config_list;

/* A config without a model, with the defaults in PROA_CONFIG_NUMBERS. */
PROA_API proa_config *proa_config_new(void);
/* A copy of c, also of one that a predictor was made from; a predictor can be made from the copy. */
PROA_API proa_config *proa_config_copy(const proa_config *c);
PROA_API void proa_config_free(proa_config *c); /* accepts NULL */
/* Sets and reads a number; OUT_OF_RANGE if `which` is not a number of configs. */
PROA_API proa_status proa_config_set(proa_config *c, proa_config_number which, int64_t value);
PROA_API int64_t proa_config_get(const proa_config *c, proa_config_number which);
/* Sets and reads a string, which is copied. The result is borrowed until it is set again; never NULL. */
PROA_API proa_status proa_config_set_text(proa_config *c, proa_config_text which, const char *text);
PROA_API const char *proa_config_get_text(const proa_config *c, proa_config_text which);
/* Sets the model and its parameters as bytes, which are copied; params NULL: the model has none. */
PROA_API proa_status proa_config_set_buffers(proa_config *c, const void *model, size_t model_bytes,
                                             const void *params, size_t params_bytes);
/* True if proa_config_set_buffers was called: the buffers then take precedence over files. */
PROA_API bool proa_config_has_buffers(const proa_config *c);
/* Appends a warm-up batch for ONEDNN_QUANTIZER: tensors for the model's inputs, in order, or by name with
 * SPECIFY_INPUT_NAMES. They are kept, and not copied. */
PROA_API proa_status proa_config_add_samples(proa_config *c, proa_tensors batch);
PROA_API int64_t proa_config_sample_count(const proa_config *c); /* batches */
PROA_API proa_status proa_config_clear_samples(proa_config *c);
/* The names of a list: how many, and one of them (borrowed until the list changes; NULL: there is none). */
PROA_API int64_t proa_config_count(const proa_config *c, proa_config_list which);
PROA_API const char *proa_config_name(const proa_config *c, proa_config_list which, int64_t i);
/* Inserts a name at index `at` (beyond the end: appends it), or removes all its occurrences. */
PROA_API proa_status proa_config_insert(proa_config *c, proa_config_list which, int64_t at, const char *name);
PROA_API proa_status proa_config_remove(proa_config *c, proa_config_list which, const char *name);
PROA_API proa_status proa_config_clear(proa_config *c, proa_config_list which);
/* The device that the model runs on: "cpu" (the default) or a plug-in's ("gpu:0"). UNAVAILABLE, with the
 * remedy, when there is none; the config stays as it was. */
PROA_API proa_status proa_config_set_device(proa_config *c, const char *device);
PROA_API const char *proa_config_device(const proa_config *c);
/* Prints the settings as a table for people. */
PROA_API proa_status proa_config_print(const proa_config *c, FILE *to);
/* Name i of the known optimizing passes; NULL beyond the last. Borrowed, static. */
PROA_API const char *proa_pass_name(int64_t i);

/* ---- predictors ------------------------------------------------------------------------- */

/* A model that is ready to run. One thread at a time uses a predictor; a clone serves another thread. Clones
 * share the program and its weights, and have handles and memory of their own. */
typedef struct proa_predictor proa_predictor;
/* An input or output of a predictor. Borrowed: it lives as long as its predictor. */
typedef struct proa_handle proa_handle;

/* Loads and optimizes the model. The config remains the caller's, but makes one predictor only:
 * INVALID_ARGUMENT for a config that was used already or is not valid. NO_FILE, CORRUPT, UNSUPPORTED: as for
 * proa_program_load. */
PROA_API proa_predictor *proa_predictor_new(proa_config *c);
/* A predictor of the same model for another thread; safe to call from several threads at once. */
PROA_API proa_predictor *proa_predictor_clone(const proa_predictor *p);
/* One more owner. Returns p; accepts NULL. */
PROA_API proa_predictor *proa_predictor_retain(proa_predictor *p);
/* One owner fewer; the last one frees it. Accepts NULL. */
PROA_API void proa_predictor_free(proa_predictor *p);
/* The optimized program, which clones share. Borrowed. */
PROA_API const proa_program *proa_predictor_program(const proa_predictor *p);

/* Numbers of inputs and outputs; 0 for NULL. */
PROA_API int64_t proa_predictor_input_count(const proa_predictor *p);
PROA_API int64_t proa_predictor_output_count(const proa_predictor *p);
/* Input or output i, in the model's order; OUT_OF_RANGE beyond. */
PROA_API proa_handle *proa_predictor_input(const proa_predictor *p, int64_t i);
PROA_API proa_handle *proa_predictor_output(const proa_predictor *p, int64_t i);
/* The input or output of that name; NOT_FOUND names those that there are. */
PROA_API proa_handle *proa_predictor_find_input(const proa_predictor *p, const char *name);
PROA_API proa_handle *proa_predictor_find_output(const proa_predictor *p, const char *name);

/* Runs the model on what the input handles hold. INVALID_ARGUMENT and WRONG_TYPE for inputs that are missing
 * or do not fit; the predictor can run again after every error (proa_clear_error). Integers of the other
 * width are converted. An output keeps its memory from run to run while its shape stays and nobody else
 * holds its tensor. */
PROA_API proa_status proa_predictor_run(proa_predictor *p);
/* Called after every op of a run with each of its outputs: its type (the op table's name), the variable's
 * name and the tensor, which is borrowed for the length of the call. */
typedef void (*proa_predictor_hook)(const char *op, const char *variable, const proa_tensor *value,
                                    void *context);
/* Sets the hook (NULL: none) that sees the outputs of every op. Intermediate variables of fused ops do not
 * exist, so it does not see them. */
PROA_API proa_status proa_predictor_set_hook(proa_predictor *p, proa_predictor_hook hook, void *context);
/* Releases the tensors of all inputs and outputs. */
PROA_API proa_status proa_predictor_clear(proa_predictor *p);
/* Replaces the executor by one without plans, trims cached memory; returns the old arenas' bytes. */
PROA_API int64_t proa_predictor_shrink(proa_predictor *p);
/* Arena bytes and plans that its executor has, and plans made since it was made or last shrunk. */
PROA_API proa_executor_stats proa_predictor_get_stats(const proa_predictor *p);

/* ---- handles ---------------------------------------------------------------------------- */

/* The name that the model's file gives the input or output. Borrowed: valid as long as the predictor. */
PROA_API const char *proa_handle_name(const proa_handle *h);
/* The program's symbolic tensor: the dtype, and the shape, with -1 for unknown dims. Borrowed. */
PROA_API const proa_tensor *proa_handle_variable(const proa_handle *h);
/* Returns the rank and writes the shape to dims (PROA_MAX_DIMS numbers): the one that was set, or the
 * tensor's. -1 if there is neither. */
PROA_API int proa_handle_shape(const proa_handle *h, int64_t *dims);
/* The dtype of the handle's tensor; PROA_NODTYPE while it has none. */
PROA_API proa_dtype proa_handle_dtype(const proa_handle *h);
/* The device of the handle's tensor; while it has none, the one that the model runs on. Borrowed. */
PROA_API const char *proa_handle_device(const proa_handle *h);
/* Sets an input's shape, which the next copy_in has. Elements copied before stay. */
PROA_API proa_status proa_handle_reshape(proa_handle *h, proa_ints shape);
/* Copies elements of that dtype, as many as proa_handle_shape says, to an input. BAD_STATE if that is
 * not known. */
PROA_API proa_status proa_handle_copy_in(proa_handle *h, const void *data, proa_dtype dtype);
/* Copies the tensor's elements, row-major, to `to`. WRONG_TYPE unless the tensor has that dtype. */
PROA_API proa_status proa_handle_copy_out(const proa_handle *h, void *to, proa_dtype dtype);
/* The address of an input's memory, of that dtype and the shape that was set, to be filled by the caller;
 * valid until the handle changes its shape or dtype. */
PROA_API void *proa_handle_mutable(proa_handle *h, proa_dtype dtype);
/* The address of the elements, good until the next run. WRONG_TYPE unless they have that dtype. */
PROA_API void *proa_handle_data(const proa_handle *h, proa_dtype dtype);
/* Makes the caller's memory the input's data, without a copy, or the memory to which the output is written:
 * the output of a run must then have this shape. The memory must live until the handle is given other
 * data. */
PROA_API proa_status proa_handle_share(proa_handle *h, void *data, proa_ints shape, proa_dtype dtype);
/* The tensor in the shape that was set. Borrowed or the scope's; BAD_STATE before there is one. */
PROA_API proa_tensor *proa_handle_tensor(const proa_handle *h);
/* Makes t (kept, not copied) the input. */
PROA_API proa_status proa_handle_set_tensor(proa_handle *h, proa_tensor *t);
/* Sets the sequence offsets (Paddle's LoD) of an input's rows: one list per level, each from 0; copied. */
PROA_API proa_status proa_handle_set_lod(proa_handle *h, const proa_ints *levels, int64_t n_levels);
/* Number of LoD levels; offsets of a level (an empty list beyond). Borrowed until set_lod or the next run. */
PROA_API int64_t proa_handle_lod_levels(const proa_handle *h);
PROA_API proa_ints proa_handle_lod(const proa_handle *h, int64_t level);

/* ---- pools ------------------------------------------------------------------------------ */

/* Predictors of one model, one for each thread. */
typedef struct proa_pool proa_pool;
/* Makes `size` ≥ 1 predictors: index 0 from the config, the others are its clones. */
PROA_API proa_pool *proa_pool_new(proa_config *c, int64_t size);
PROA_API void proa_pool_free(proa_pool *pool); /* accepts NULL */
/* Predictor i of the pool, borrowed: valid as long as the pool. OUT_OF_RANGE beyond its size. */
PROA_API proa_predictor *proa_pool_at(const proa_pool *pool, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
