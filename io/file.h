/* Files as io's readers and writers see them: atomic writing, bounded reading, checksums, and an arena for
 * what lives as long as one load or save. May use core and the system. */
#ifndef PROA_IO_FILE_H
#define PROA_IO_FILE_H

#include "core/internal.h"

/* ---- dtypes ---------------------------------------------------------------------------- */
/* Paddle's number (VarType.Type) of a dtype, −1 for none, and back: PROA_NODTYPE if it names none of ours. */
int proa__dtype_to_wire(proa_dtype dtype);
proa_dtype proa__dtype_from_wire(int64_t number);

/* ---- arena: many small zeroed blocks, freed at once ------------------------------------ */
typedef struct proa__arena {
    struct proa__arena_block *last;
} proa__arena;

/* Zeroed memory that ends with the arena; NULL sets OUT_OF_MEMORY. */
void *proa__arena_alloc(proa__arena *a, size_t bytes);
/* The same for count items, overflow checked. */
void *proa__arena_array(proa__arena *a, size_t count, size_t item);
char *proa__arena_text(proa__arena *a, const char *text);
char *proa__arena_format(proa__arena *a, const char *format, ...) PROA_PRINTF(2, 3);
void proa__arena_free(proa__arena *a);

/* ---- writing: all or nothing ----------------------------------------------------------- */
/* Collects bytes in <path>.tmp; commit syncs it, renames it to path and syncs the folder. Until then path
 * keeps its old content. A killed process leaves at most that one .tmp, which the next save takes over. */
typedef struct proa__writer proa__writer;

proa__writer *proa__writer_open(const char *path);
/* Errors stick: the later calls return them, too. */
proa_status proa__writer_put(proa__writer *w, const void *data, size_t bytes);
/* `bytes` zero bytes, at most 4096. */
proa_status proa__writer_zeros(proa__writer *w, size_t bytes);
uint64_t proa__writer_at(const proa__writer *w);
/* Flushes and syncs, so that only the rename is left: several files can be made ready before the first
 * one appears. commit does so by itself. */
proa_status proa__writer_sync(proa__writer *w);
/* Ends the writer in any case. */
proa_status proa__writer_commit(proa__writer *w);
void proa__writer_abort(proa__writer *w); /* accepts NULL */

/* Called between the steps of a save when set: tests kill the process there. */
typedef enum proa__write_stage { PROA__WROTE, PROA__SYNCED, PROA__RENAMED } proa__write_stage;
extern void (*proa__write_hook)(proa__write_stage stage);

/* ---- reading: never past the end ------------------------------------------------------- */
typedef struct proa__source {
    const unsigned char *memory; /* NULL: a file */
    int fd;
    uint64_t size, at;
    const char *name; /* for messages; borrowed */
} proa__source;

proa_status proa__source_open(proa__source *s, const char *path);
void proa__source_memory(proa__source *s, const void *data, size_t bytes, const char *name);
void proa__source_close(proa__source *s);
/* CORRUPT when fewer than `bytes` are left. */
proa_status proa__source_read(proa__source *s, void *to, size_t bytes);
proa_status proa__source_skip(proa__source *s, uint64_t bytes);
static inline uint64_t proa__source_left(const proa__source *s) { return s->size - s->at; }
/* The whole file (proa__free it) and a NUL behind it. */
char *proa__read_whole(const char *path, size_t *bytes);

bool proa__is_folder(const char *path);
bool proa__is_file(const char *path);

/* ---- checksums ------------------------------------------------------------------------- */
/* CRC-32C (Castagnoli) of data appended to what `crc` covers; 0 to begin with. */
uint32_t proa__crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
