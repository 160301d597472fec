/* Framing between workers and parameter servers, and bounded reading of what came. May use core. */
#ifndef PROA_DIST_PS_WIRE_H
#define PROA_DIST_PS_WIRE_H

#include "dist/store.h"

/* Request:  u32 length of the rest, u8 request, u8 flag, u32 table, f32 number, what follows below.
 * Reply:    u32 length of the rest, u8 status (proa_status), values; after an error its text.
 * Integers and floats are little-endian. */
typedef enum proa__ps_request {
    PROA__PS_HELLO,      /* i32 worker, i32 workers, i32 server, i32 servers, token; must be first */
    PROA__PS_TABLE,      /* a table's options */
    PROA__PS_PULL,       /* flag: test; ids → rows */
    PROA__PS_PUSH,       /* flag: waits for the step; number: lr; u64 n, ids, gradients */
    PROA__PS_SET,        /* u64 n, ids, values */
    PROA__PS_PULL_DENSE, /* → the server's slice */
    PROA__PS_PUSH_DENSE, /* flag, number: as PUSH; the slice's gradient */
    PROA__PS_SET_DENSE,  /* the slice's values */
    PROA__PS_CHANGED,    /* → u64 n, ids, rows */
    PROA__PS_BARRIER,    /* flag: ends a step; number: seconds that it may wait */
    PROA__PS_SAVE,       /* flag: mode; folder */
    PROA__PS_LOAD,       /* folder */
    PROA__PS_SHRINK,     /* number: threshold */
    PROA__PS_ROWS,       /* → u64 */
    PROA__PS_STOP,
    PROA__PS_BYE, /* this worker ends in good order */
    PROA__PS_REQUESTS
} proa__ps_request;

enum {
    PROA__PS_HEAD = 14,      /* bytes of a request before its values */
    PROA__PS_REPLY_HEAD = 5, /* of a reply */
    PROA__PS_MESSAGE_MAX = 1 << 30,
    PROA__PS_STRANGER_MAX = 4096, /* of a message of a connection whose token is not verified */
    PROA__PS_TABLES = 1024,
    PROA__PS_WORKERS = 1 << 16
};

/* Bytes of a message that are not read yet. A read beyond the end returns 0 or NULL and sets `bad`. */
typedef struct proa__ps_reader {
    const char *at;
    size_t left;
    bool bad;
} proa__ps_reader;
const void *proa__ps_take(proa__ps_reader *r, size_t n);
uint32_t proa__ps_take_u32(proa__ps_reader *r);
uint64_t proa__ps_take_u64(proa__ps_reader *r);
double proa__ps_take_f64(proa__ps_reader *r);
float proa__ps_take_f32(proa__ps_reader *r);

/* Appending to a message under construction; false with an error. */
bool proa__ps_add_u32(proa__bytes *b, uint32_t v);
bool proa__ps_add_u64(proa__bytes *b, uint64_t v);
bool proa__ps_add_f64(proa__bytes *b, double v);
/* Begins a request; proa__ps_seal writes the length when it is whole: false, with an error, beyond the
 * largest. */
bool proa__ps_begin(proa__bytes *b, proa__ps_request request, int flag, int table, double number);
bool proa__ps_seal(proa__bytes *b);

typedef enum proa__ps_io { PROA__PS_IO_OK, PROA__PS_IO_GONE, PROA__PS_IO_LATE } proa__ps_io;
/* Both move exactly n bytes until `until` (monotonic seconds; 0: without an end). */
proa__ps_io proa__ps_send(int fd, const void *data, size_t n, double until);
proa__ps_io proa__ps_receive(int fd, void *data, size_t n, double until);
/* Receives n bytes and forgets them: a message for which there is no memory. */
proa__ps_io proa__ps_skip(int fd, size_t n, double until);
/* The kernel finds out about a host that vanished, within about a minute. */
void proa__ps_keep_alive(int fd);
/* The token of the environment: the job's name and the launcher's secret. */
void proa__ps_token(const char *given, char *token, size_t n);

#endif
