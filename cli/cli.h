/* Shared parts of the `proa` command: options, memory, the view of a model that inspect and diff read, and
 * NumPy's files. The command uses Proa's public headers alone, as a user's program would. */
#ifndef PROA_CLI_H
#define PROA_CLI_H

#include <proa.h>

/* ---- memory: blocks that live as long as the command (main.c) --------------------------- */
/* Zeroed; NULL sets OUT_OF_MEMORY. cli_release frees all of them. */
void *cli_alloc(size_t bytes);
void *cli_array(size_t count, size_t item); /* count · item, overflow checked */
char *cli_text(const char *text);
char *cli_format(const char *format, ...) PROA_PRINTF(1, 2);
void cli_release(void);

/* ---- options (main.c) ------------------------------------------------------------------- */
/* Walks argv: names that begin with "--" are options, the rest are the command's files. */
typedef struct cli_args {
    const char *command;
    char **at;
    int count, next;
    const char *option; /* the one that cli_next found */
    char *value;        /* behind its "=", or NULL */
} cli_args;

typedef enum cli_kind { CLI_END, CLI_OPTION, CLI_FILE } cli_kind;
/* The next word: an option (its name in `option`) or a file (in `value`). */
cli_kind cli_next(cli_args *a);
bool cli_is(const cli_args *a, const char *name);
/* The option's value: what stands behind "=", or the next word. INVALID_ARGUMENT if there is none. */
proa_status cli_value(cli_args *a, const char **value);
proa_status cli_int(cli_args *a, int64_t low, int64_t *value);
proa_status cli_unknown(const cli_args *a);

/* Bytes of a whole file, in the command's memory, and a zero byte behind them. */
unsigned char *cli_read(const char *path, size_t *bytes);
/* Writes path whole or not at all: pieces go to <path>.tmp, which is renamed at the end. */
typedef struct cli_piece {
    const void *data;
    size_t bytes;
} cli_piece;
proa_status cli_write(const char *path, const cli_piece *pieces, int64_t n);
bool cli_ends_with(const char *text, const char *end);
/* "float32 [2, 3]", in the command's memory. */
const char *cli_shape(const proa_tensor *t);
/* A JSON string, whatever bytes the text has. */
void cli_json_text(FILE *to, const char *text);
void cli_json_number(FILE *to, double v);

/* ---- NumPy's files (npy.c, npz.c) --------------------------------------------------------- */
typedef struct cli_named {
    const char *name;
    proa_tensor *tensor;
} cli_named;

/* New tensors. CORRUPT: damaged; WRONG_TYPE: a dtype that Proa has not; UNSUPPORTED: a compressed entry. */
proa_tensor *cli_npy_parse(const unsigned char *data, size_t bytes, const char *name);
proa_tensor *cli_npy_load(const char *path);
proa_status cli_npz_load(const char *path, cli_named **items, int64_t *n);
/* bfloat16, which NumPy has not, is written as float32. */
proa_status cli_npy_save(const char *path, proa_tensor *t);
proa_status cli_npz_save(const char *path, const cli_named *items, int64_t n);
/* The header, padded so that data follow it on a multiple of 64 bytes, and the tensor as it is written. */
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
    int64_t at;   /* which op of the program's block it spells, or is a part of */
    bool counted; /* it stands for all that this op computes */
    struct cli_op *next;
} cli_op;

typedef struct cli_block {
    int64_t parent, n_ops, n_vars;
    cli_op **ops;
    proa_var_info *vars; /* by name, in strcmp's order */
} cli_block;

typedef struct cli_model {
    const char *path;
    proa_program *program;
    int64_t n_blocks, n_ops, n_parameters, parameter_elements, parameter_bytes;
    cli_block *blocks;
} cli_model;

/* Without a file of parameters, a program alone: its parameters have shapes and no values. */
proa_status cli_model_load(cli_model *m, const char *path);
void cli_model_free(cli_model *m);
/* The variable of that name as block b sees it: its own, or its parents'; NULL if unknown. */
const proa_var_info *cli_find(const cli_model *m, int64_t b, const char *name);
/* The block whose variable that is; b itself for a name that only an op's spelling has. */
int64_t cli_home(const cli_model *m, int64_t b, const char *name);
const proa_op_attr *cli_attr(const cli_op *op, const char *name);
/* One attribute's value as text (JSON: numbers, strings, lists). */
void cli_print_attr(FILE *to, const proa_op_attr *a);
/* As proa_program_op_flops. Where Paddle's format spells an op as several, one of them has all of it. */
double cli_flops(const cli_model *m, int64_t b, const cli_op *op, int64_t unknown);

/* ---- the commands: exit status ------------------------------------------------------------- */
enum { CLI_OK = 0, CLI_DIFFERENT = 1, CLI_FAILED = 2 };
int cli_inspect(cli_args *a);
int cli_run(cli_args *a);
int cli_diff(cli_args *a);
int cli_launch(cli_args *a);
int cli_quantize(cli_args *a);

#endif
