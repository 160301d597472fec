/* A parameter server's tables: rows by id in buckets with a lock each, or a slice of a dense vector. All
 * functions but new and free may be called by several threads. May use core and io. */
#ifndef PROA_DIST_PS_TABLE_H
#define PROA_DIST_PS_TABLE_H

#include <proa/ps.h>

#include <pthread.h>

enum { PROA__PS_BUCKETS = 64, PROA__PS_GEO_WORKERS = 64 };

typedef struct proa__ps_row {
    struct proa__ps_row *next; /* of its chain */
    int64_t id;
    uint64_t changed; /* bit w: worker w has not pulled the last change by another */
    uint32_t count, unseen_days;
    uint32_t pushes; /* in `sum` */
    bool entered, need_save;
    float *sum; /* of gradients that wait for the step; NULL: none ever did */
    struct proa__ps_row *next_waiting;
    float values[]; /* the row, then states of the rule */
} proa__ps_row;

typedef struct proa__ps_bucket {
    pthread_mutex_t lock;
    proa__ps_row **chains; /* the capacity is a power of two, or 0 */
    size_t capacity, count;
    proa__ps_row *waiting; /* rows with gradients that wait */
} proa__ps_bucket;

typedef struct proa__ps_ids {
    int64_t *at;
    size_t count, capacity;
} proa__ps_ids;

typedef struct proa__ps_table {
    proa_ps_table_opts opts; /* with a name of its own, and numbers for 0 */
    int64_t floats;          /* of a row's values and states */
    int server, servers;
    proa__ps_bucket buckets[PROA__PS_BUCKETS];
    /* of dense tables: this server's slice */
    int64_t slice;
    float *dense, *sum; /* values and states; gradients that wait */
    uint32_t pushes;
    double lr;             /* of the last gradient that waits */
    pthread_mutex_t lock;  /* of the dense values, lr and lists of changes */
    proa__ps_ids *changed; /* GEO_WORKERS lists; NULL until a push of rule SUM */
} proa__ps_table;

/* ---- rules ----------------------------------------------------------------------------- */
/* Floats of n values and their rule's states. */
int64_t proa__ps_floats(proa_ps_rule rule, int64_t n);
/* Text for files: names and sizes of a row's parts, "Param,Moment" and "8,8". */
const char *proa__ps_part_names(proa_ps_rule rule);
/* Sets the states of n new values. */
void proa__ps_new_states(const proa_ps_table_opts *opts, float *values, int64_t n);
/* Draws the values of a new row. */
void proa__ps_draw(const proa_ps_table_opts *opts, int64_t id, float *values);
/* A number of [0, 1) that depends on the seed and id alone. */
double proa__ps_chance(uint64_t seed, int64_t id);
/* One update of n values with the gradient g · scale. */
void proa__ps_update(const proa_ps_table_opts *opts, float *values, int64_t n, const float *g, double scale,
                     double lr);

/* ---- tables ---------------------------------------------------------------------------- */
/* Refuses a table number out of range and options that no table can have. */
proa_status proa__ps_check_table(int table, const proa_ps_table_opts *opts);
/* NULL with an error. */
proa__ps_table *proa__ps_table_new(const proa_ps_table_opts *opts, int server, int servers);
void proa__ps_table_free(proa__ps_table *t);
bool proa__ps_same_opts(const proa__ps_table *t, const proa_ps_table_opts *opts);
/* The first value of a server's slice of a dense table. */
int64_t proa__ps_slice_begin(int64_t width, int server, int servers);

proa_status proa__ps_table_pull(proa__ps_table *t, const int64_t *ids, int64_t n, bool test, float *out);
/* worker: who pushes; waits: until proa__ps_table_step. */
proa_status proa__ps_table_push(proa__ps_table *t, int worker, const int64_t *ids, const float *grads,
                                int64_t n, double lr, bool waits);
proa_status proa__ps_table_set(proa__ps_table *t, const int64_t *ids, const float *values, int64_t n);
proa_status proa__ps_table_step(proa__ps_table *t);
proa_status proa__ps_table_shrink(proa__ps_table *t, uint32_t threshold);
int64_t proa__ps_table_rows(proa__ps_table *t);
/* Takes the list of ids that others changed since this worker's last call; the caller frees ids->at. */
void proa__ps_table_changed(proa__ps_table *t, int worker, proa__ps_ids *ids);

void proa__ps_dense_pull(proa__ps_table *t, float *out);
proa_status proa__ps_dense_push(proa__ps_table *t, const float *grads, double lr, bool waits);
void proa__ps_dense_set(proa__ps_table *t, const float *values);

proa_status proa__ps_table_save(proa__ps_table *t, const char *folder, proa_ps_save_mode mode);
proa_status proa__ps_table_load(proa__ps_table *t, const char *folder);

/* For the row files: the row of an id, made if it is not there; its bucket is locked by the caller. NULL with
 * an error. */
proa__ps_bucket *proa__ps_bucket_of(proa__ps_table *t, int64_t id);
proa__ps_row *proa__ps_row_of(proa__ps_table *t, proa__ps_bucket *b, int64_t id);

#endif
