/* File access of io's readers and writers: atomic writing, reads that never pass the end, checksums. May use
 * core and the system. */
#ifndef PROA_IO_FILE_H
#define PROA_IO_FILE_H

#include "core/arena.h"
#include "core/internal.h"

#include <proa/io.h>

/* ---- dtypes ---------------------------------------------------------------------------- */
/* Paddle's number (VarType.Type) of a dtype, −1 for none, and back: PROA_NODTYPE if it names none of ours. */
int proa__dtype_to_wire(proa_dtype dtype);
proa_dtype proa__dtype_from_wire(int64_t number);

/* ---- writing: all or nothing; see proa_writer in proa/io.h ----------------------------- */
/* Suffix of a temporary behind its file's name; a number follows if several writers save to one path. */
#define PROA__TEMPORARY ".proa-part"
/* Writes `bytes` (at most 4096) zero bytes. */
proa_status proa__writer_zeros(proa_writer *w, size_t bytes);
uint64_t proa__writer_at(const proa_writer *w);
/* Flushes and syncs the temporary, so that proa_writer_commit only has to rename it: several files can be
 * complete on disk before the first appears. Optional, commit syncs by itself. */
proa_status proa__writer_sync(proa_writer *w);

/* Hook, NULL outside tests, called after each step of a save; tests kill the process there. */
typedef enum proa__write_stage { PROA__WROTE, PROA__SYNCED, PROA__RENAMED } proa__write_stage;
extern void (*proa__write_hook)(proa__write_stage stage);

/* ---- reading: never past the end ------------------------------------------------------- */
/* Size and modification time of a file; a difference says that the file was written to. */
typedef struct proa__file_state {
    uint64_t size;
    int64_t seconds, nanoseconds;
} proa__file_state;
bool proa__state_of(int fd, proa__file_state *state);
bool proa__same_state(const proa__file_state *a, const proa__file_state *b);
/* True if any later write would change the state: the last write is over 50 ms ago (over 2 s where no
 * nanoseconds are stored), more than the file system's clock step. */
bool proa__state_tells(const proa__file_state *state);
/* Sets and returns the error IO: file `name` was written to while it was being read. */
proa_status proa__changed(const char *name);

typedef struct proa__source {
    const unsigned char *memory; /* NULL: a file */
    int fd;
    uint64_t size, at;
    const char *name;       /* file's path, or a name for memory, in messages; borrowed */
    proa__file_state state; /* size and times of the file when it was opened */
} proa__source;

proa_status proa__source_open(proa__source *s, const char *path);
void proa__source_memory(proa__source *s, const void *data, size_t bytes, const char *name);
void proa__source_close(proa__source *s);
/* Copies the next `bytes` bytes and advances; CORRUPT when fewer are left. */
proa_status proa__source_read(proa__source *s, void *to, size_t bytes);
/* PROA_OK, or the error IO if the file was written to since it was opened. */
proa_status proa__source_unchanged(const proa__source *s);
proa_status proa__source_skip(proa__source *s, uint64_t bytes);
static inline uint64_t proa__source_left(const proa__source *s) { return s->size - s->at; }
/* The bytes of a whole file, which the caller frees by proa__free, with a NUL behind them. */
char *proa__read_whole(const char *path, size_t *bytes);

bool proa__is_folder(const char *path);
bool proa__is_file(const char *path);

/* ---- checksums ------------------------------------------------------------------------- */
/* Continues the CRC-32C (Castagnoli) `crc`, 0 at the beginning, by `data`. */
uint32_t proa__crc32c(uint32_t crc, const void *data, size_t bytes);

#endif
