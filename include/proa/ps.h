/* The parameter server: processes that keep tables of parameters and update them with gradients that workers
 * push. Sparse tables have rows that come into being when they are first read; dense ones are cut over the
 * servers. Implemented by dist/ps/. Needs proa/program.h. */
#ifndef PROA_PS_H
#define PROA_PS_H

#include <proa/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tables ---------------------------------------------------------------------------- */

/* Update of a value v with a gradient g, at the learning rate lr that came with it. */
typedef enum proa_ps_rule {
    PROA_PS_SGD,     /* v − lr · g */
    PROA_PS_ADAM,    /* as the op adam_step, with powers of β of each row's own */
    PROA_PS_ADAGRAD, /* moment += g²; v − lr · g / (√moment + epsilon) */
    PROA_PS_SUM      /* v + g, whatever lr: differences of local training (GEO) */
} proa_ps_rule;

/* When a row of a sparse table comes into being. Until then it reads as zeros, and gradients of it are
 * dropped. */
typedef enum proa_ps_entry {
    PROA_PS_ENTRY_ALWAYS,     /* when it is first read for training */
    PROA_PS_ENTRY_COUNT,      /* when it is read for the n-th time, n = entry_value */
    PROA_PS_ENTRY_PROBABILITY /* when it is first read, with probability entry_value, else never */
} proa_ps_entry;

/* Distribution of a new row's values, which depend on the seed and the row's id alone. */
typedef enum proa_ps_start {
    PROA_PS_CONSTANT,          /* start_a */
    PROA_PS_UNIFORM,           /* of [start_a, start_b) */
    PROA_PS_GAUSSIAN,          /* mean start_a, deviation start_b */
    PROA_PS_TRUNCATED_GAUSSIAN /* the same within two deviations */
} proa_ps_start;

typedef struct proa_ps_table_opts {
    char _;
    const char *name; /* of its files: letters, digits, and any of _ - . @ + ; at most 200 bytes */
    bool dense;       /* one vector, cut over the servers; else rows by id, server id mod servers */
    int64_t width;    /* float32 values of a row; of a dense table: of the whole, all servers together */
    proa_ps_rule rule;
    double beta1, beta2, epsilon; /* of the rule; 0: 0.9, 0.999, 1e-8 (adagrad: 1e-6) */
    proa_ps_entry entry;
    double entry_value;
    proa_ps_start start;
    double start_a, start_b;
    uint64_t seed;
} proa_ps_table_opts;

/* ---- a server -------------------------------------------------------------------------- */

typedef struct proa_ps_server proa_ps_server;
typedef struct proa_ps_server_opts {
    char _;
    const char *host;   /* address to listen at; NULL: 127.0.0.1 */
    int port;           /* 0: a free one */
    int index, servers; /* which of how many servers this is; servers 0: the only one */
    int workers;        /* 0: one */
    const char *token; /* clients must have the same; NULL: PADDLE_JOB_ID and PROA_TOKEN of the environment */
    bool paused; /* clients wait until proa_ps_server_open, so that tables can be made and loaded first */
} proa_ps_server_opts;
/* Listens and serves, on threads of its own. NULL after an error. */
PROA_API proa_ps_server *proa_ps_serve_opt(proa_ps_server_opts opts);
#define proa_ps_serve(...) proa_ps_serve_opt(PROA_LITERAL(proa_ps_server_opts){._ = 0, __VA_ARGS__})
PROA_API int proa_ps_server_port(const proa_ps_server *s);
/* Lets the clients of a paused server in. */
PROA_API void proa_ps_server_open(proa_ps_server *s);
/* Makes table `table` (0 … 1023). A table that is there must have the same options. */
PROA_API proa_status proa_ps_server_table_opt(proa_ps_server *s, int table, proa_ps_table_opts opts);
#define proa_ps_server_table(s, table, ...) \
    proa_ps_server_table_opt((s), (table), PROA_LITERAL(proa_ps_table_opts){._ = 0, __VA_ARGS__})
/* Reads a sparse table's rows of this server from what any number of servers saved under `folder`. CORRUPT
 * names the file and line of whatever has another form. */
PROA_API proa_status proa_ps_server_load(proa_ps_server *s, int table, const char *folder);
/* Waits at most `seconds` for a client to stop the server: whether one has. */
PROA_API bool proa_ps_server_wait(proa_ps_server *s, double seconds);
/* Ends the connections and frees the tables. Accepts NULL. */
PROA_API void proa_ps_server_free(proa_ps_server *s);

/* ---- a worker's client ----------------------------------------------------------------- */

typedef enum proa_ps_mode {
    PROA_PS_ASYNC, /* a push is applied when it comes, and returns before; its error is a later call's */
    PROA_PS_SYNC   /* pushes wait for proa_ps_step, which applies their averages */
} proa_ps_mode;

typedef struct proa_ps_client proa_ps_client;
typedef struct proa_ps_client_opts {
    char _;
    const char *servers; /* "host:port,host:port", in the order of the servers' indices */
    int worker, workers; /* which of how many workers this is; workers 0: the only one. worker −1: an
                              * observer, whom no barrier waits for */
    proa_ps_mode mode;
    const char *token;
    double timeout; /* seconds that a call may take; 0: PROA_TIMEOUT, else 300 */
} proa_ps_client_opts;
/* Connects to all servers; waits for those that do not listen yet. The first client of a process is the one
 * that the ops of ops/ps use. NULL after an error. All calls: a server that is gone is UNAVAILABLE, one that
 * does not answer TIMEOUT; the error names it. */
PROA_API proa_ps_client *proa_ps_connect_opt(proa_ps_client_opts opts);
#define proa_ps_connect(...) proa_ps_connect_opt(PROA_LITERAL(proa_ps_client_opts){._ = 0, __VA_ARGS__})
/* Leaves, once pushes are applied: barriers wait for this worker no more. Accepts NULL. A push that failed
 * leaves its error set. */
PROA_API void proa_ps_close(proa_ps_client *c);
/* Makes a table on all servers, as proa_ps_server_table does, which may have been before. */
PROA_API proa_status proa_ps_table_opt(proa_ps_client *c, int table, proa_ps_table_opts opts);
#define proa_ps_table(c, table, ...) \
    proa_ps_table_opt((c), (table), PROA_LITERAL(proa_ps_table_opts){._ = 0, __VA_ARGS__})

/* Rows of a sparse table: ids (n of them) → out, n × width float32. Equal ids are one read. test: nothing
 * comes into being, and no count moves. */
PROA_API proa_status proa_ps_pull(proa_ps_client *c, int table, const int64_t *ids, int64_t n, bool test,
                                  float *out);
/* Gradients of rows, n × width float32; those of equal ids are summed first. */
PROA_API proa_status proa_ps_push(proa_ps_client *c, int table, const int64_t *ids, const float *grads,
                                  int64_t n, double lr);
/* Sets rows, which come into being. */
PROA_API proa_status proa_ps_set(proa_ps_client *c, int table, const int64_t *ids, const float *values,
                                 int64_t n);
/* A dense table's values, its gradient, and new values: `width` float32. */
PROA_API proa_status proa_ps_pull_dense(proa_ps_client *c, int table, float *out);
PROA_API proa_status proa_ps_push_dense(proa_ps_client *c, int table, const float *grads, double lr);
PROA_API proa_status proa_ps_set_dense(proa_ps_client *c, int table, const float *values);
/* Rows that other workers pushed since this worker's last call: *ids (*n of them) and *values, n × width,
 * both the caller's (proa_ps_free). At most 64 workers. */
PROA_API proa_status proa_ps_pull_changed(proa_ps_client *c, int table, int64_t **ids, float **values,
                                          int64_t *n);
PROA_API void proa_ps_free(void *p);

/* The end of a step. SYNC: waits until all workers that have not left are here; then every row and dense
 * value that was pushed gets one update, with the average of the pushes that held it. UNAVAILABLE names
 * a worker that died, TIMEOUT those that did not come. ASYNC: nothing. */
PROA_API proa_status proa_ps_step(proa_ps_client *c);
/* Waits for all workers that have not left. */
PROA_API proa_status proa_ps_barrier(proa_ps_client *c);

typedef enum proa_ps_save_mode {
    PROA_PS_SAVE_ALL,
    PROA_PS_SAVE_BASE, /* all; later deltas count from here */
    PROA_PS_SAVE_DELTA /* rows that were pushed since the last base or delta */
} proa_ps_save_mode;
/* Every server writes its rows to FOLDER/NAME_txt/NAME.block<server>.txt, on its own machine: a line a row,
 * "id tab reads tab days unseen tab whether it is there tab v,v,…,". */
PROA_API proa_status proa_ps_save(proa_ps_client *c, int table, const char *folder, proa_ps_save_mode mode);
/* Every server reads its rows of such a folder. */
PROA_API proa_status proa_ps_load(proa_ps_client *c, int table, const char *folder);
/* A day ends for a sparse table: drops rows that were not read for `threshold` days. */
PROA_API proa_status proa_ps_shrink(proa_ps_client *c, int table, int threshold);
/* The number of rows on all servers, those that have not come into being included. */
PROA_API proa_status proa_ps_rows(proa_ps_client *c, int table, int64_t *rows);
/* Puts pulls (distributed_lookup_table) in place of a program's look-ups (embedding) in these weights,
 * float32 variables [rows, width]; tables: the number of each one's table. Gradients flow to what is pulled.
 * test: as proa_ps_pull's. *replaced (may be NULL): how many there were. On failure the program is
 * unchanged. */
PROA_API proa_status proa_program_pull_rows(proa_program *p, proa_tensors weights, proa_ints tables,
                                            bool test, int64_t *replaced);
/* Ends the servers: proa_ps_server_wait returns true there. */
PROA_API proa_status proa_ps_stop_servers(proa_ps_client *c);

#ifdef __cplusplus
}
#endif
#endif
