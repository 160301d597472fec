/* Shared by the files of the `proa` command: options, memory, a saved model as plain structs (for inspect,
 * diff, quantize and plan), and NumPy's files. Uses Proa's public headers alone. */
#ifndef PROA_CLI_H
#define PROA_CLI_H

#include <proa.h>

/* ---- memory: blocks that live as long as the command (main.c) --------------------------- */
/* Zeroed memory that cli_release frees at the command's end; NULL: OUT_OF_MEMORY or OVERFLOW. */
void *cli_alloc(size_t bytes);
void *cli_array(size_t count, size_t item); /* count · item bytes, checked for overflow */
char *cli_text(const char *text);
char *cli_format(const char *format, ...) PROA_PRINTF(1, 2);
void cli_release(void);

/* ---- options (main.c) ------------------------------------------------------------------- */
/* Walks argv: names that begin with "--" are options, the rest are the command's files. */
typedef struct cli_args {
    const char *command;
    char **at;
    int count, next;
    const char *option; /* the current option's name */
    char *value;        /* text behind the option's "=", or NULL */
} cli_args;

typedef enum cli_kind { CLI_END, CLI_OPTION, CLI_FILE } cli_kind;
/* The next word: an option (its name in `option`) or a file (in `value`). */
cli_kind cli_next(cli_args *a);
bool cli_is(const cli_args *a, const char *name);
/* The current option's value: the text behind "=", or else the next word. INVALID_ARGUMENT if there is
 * none. */
proa_status cli_value(cli_args *a, const char **value);
proa_status cli_int(cli_args *a, int64_t low, int64_t *value);
proa_status cli_unknown(const cli_args *a);

/* Takes an option of all commands that read models (--extension), and refuses others. */
proa_status cli_model_option(cli_args *a);

/* The bytes of a whole file, in the command's memory, with a zero byte behind them. */
unsigned char *cli_read(const char *path, size_t *bytes);
/* Writes a file atomically from pieces: to a temporary in the same folder, which is then renamed to path. */
typedef struct cli_piece {
    const void *data;
    size_t bytes;
} cli_piece;
proa_status cli_write(const char *path, const cli_piece *pieces, int64_t n);
bool cli_ends_with(const char *text, const char *end);
/* "float32 [2, 3]", in the command's memory. */
const char *cli_shape(const proa_tensor *t);
/* Writes text, which may be invalid UTF-8, as a JSON string. */
void cli_json_text(FILE *to, const char *text);
void cli_json_number(FILE *to, double v);

/* ---- NumPy's files (npy.c, npz.c) --------------------------------------------------------- */
typedef struct cli_named {
    const char *name;
    proa_tensor *tensor;
} cli_named;

/* Parse NumPy's formats to new tensors. CORRUPT: damaged; WRONG_TYPE: a dtype that Proa lacks; UNSUPPORTED: a
 * compressed entry. */
proa_tensor *cli_npy_parse(const unsigned char *data, size_t bytes, const char *name);
proa_tensor *cli_npy_load(const char *path);
proa_status cli_npz_load(const char *path, cli_named **items, int64_t *n);
/* Write tensors in NumPy's formats; bfloat16, which NumPy lacks, as float32. */
proa_status cli_npy_save(const char *path, proa_tensor *t);
proa_status cli_npz_save(const char *path, const cli_named *items, int64_t n);
/* The .npy header, padded so that the data start at a multiple of 64 bytes; and the tensor converted for
 * writing (contiguous, on the host, bfloat16 as float32). */
char *cli_npy_header(proa_tensor *t, size_t *bytes);
proa_tensor *cli_npy_layout(proa_tensor *t);

/* ---- a model as plain arrays (model.c) ---------------------------------------------------- */
typedef struct cli_slot {
    const char *name;
    int64_t count;
    const char **vars;
} cli_slot;

typedef struct cli_op {
    const char *type, *table; /* Paddle's, and the op table's */
    int32_t role;
    int64_t n_inputs, n_outputs, n_attrs;
    cli_slot *inputs, *outputs;
    proa_op_attr *attrs;
    int64_t at;   /* index of the program's op that it represents, or a part of it */
    bool counted; /* it counts for all floating-point operations of that op */
    struct cli_op *next;
} cli_op;

typedef struct cli_block {
    int64_t parent, n_ops, n_vars;
    cli_op **ops;
    proa_var_info *vars; /* sorted by name (strcmp) */
} cli_block;

typedef struct cli_model {
    const char *path;
    proa_program *program;
    int64_t n_blocks, n_ops, n_parameters, parameter_elements, parameter_bytes;
    cli_block *blocks;
} cli_model;

/* Loads a model. Without a parameter file the parameters have shapes but no values. */
proa_status cli_model_load(cli_model *m, const char *path);
void cli_model_free(cli_model *m);
/* The variable that `name` means in block b: the block's own, or else a parent block's; NULL if none. */
const proa_var_info *cli_find(const cli_model *m, int64_t b, const char *name);
/* The block that has that variable; b for temporaries between wire ops that represent one op. */
int64_t cli_home(const cli_model *m, int64_t b, const char *name);
const proa_op_attr *cli_attr(const cli_op *op, const char *name);
/* Prints an attribute's value as JSON (number, string or list). */
void cli_print_attr(FILE *to, const proa_op_attr *a);
/* Floating-point operations of an op, as proa_program_op_flops. Of several wire ops that represent one op,
 * one counts for all. */
double cli_flops(const cli_model *m, int64_t b, const cli_op *op, int64_t unknown);

/* ---- the commands: exit status ------------------------------------------------------------- */
enum { CLI_OK = 0, CLI_DIFFERENT = 1, CLI_FAILED = 2 };
int cli_inspect(cli_args *a);
int cli_run(cli_args *a);
int cli_diff(cli_args *a);
int cli_launch(cli_args *a);
int cli_quantize(cli_args *a);
int cli_plan(cli_args *a);

#endif
