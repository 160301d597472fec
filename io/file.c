/* Bounds-checked reading of files and memory, detection of changed files, and Paddle's numbers of dtypes.
 * Core and POSIX only. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int proa__dtype_to_wire(proa_dtype dtype)
{
    switch (dtype) {
#define PROA_X(NAME, name, bytes, wire) \
    case PROA_##NAME: return wire;
        PROA_DTYPES(PROA_X)
#undef PROA_X
    default: return -1;
    }
}

proa_dtype proa__dtype_from_wire(int64_t number)
{
    switch (number) {
#define PROA_X(NAME, name, bytes, wire) \
    case wire: return PROA_##NAME;
        PROA_DTYPES(PROA_X)
#undef PROA_X
    default: return PROA_NODTYPE;
    }
}

bool proa__is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool proa__is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- whether a file has changed --------------------------------------------------------- */

static proa__file_state state_in(const struct stat *st)
{
    return (proa__file_state){(uint64_t)st->st_size, st->st_mtim.tv_sec, st->st_mtim.tv_nsec};
}

bool proa__state_of(int fd, proa__file_state *state)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    *state = state_in(&st);
    return true;
}

bool proa__same_state(const proa__file_state *a, const proa__file_state *b)
{
    return a->size == b->size && a->seconds == b->seconds && a->nanoseconds == b->nanoseconds;
}

bool proa__state_tells(const proa__file_state *state)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
    int64_t ago = now.tv_sec - state->seconds;
    /* nanoseconds 0: the file system may store whole seconds alone */
    if (ago < 0 || ago > 2 || !state->nanoseconds) return ago > 2;
    return ago * 1000000000 + now.tv_nsec - state->nanoseconds > 50000000;
}

proa_status proa__changed(const char *name)
{
    return proa_fail(PROA_ERR_IO,
                     "'%s' was written to while a model was being read from it: load the model again, and "
                     "replace such files by renaming new ones",
                     name);
}

/* ---- reading ----------------------------------------------------------------------------- */

proa_status proa__source_open(proa__source *s, const char *path)
{
    struct stat st;
    *s = (proa__source){.fd = -1, .name = path};
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) != 0) {
        int e = errno;
        proa__source_close(s);
        return proa_fail(e == ENOENT ? PROA_ERR_NO_FILE : PROA_ERR_IO, "cannot read '%s': %s", path,
                         strerror(e));
    }
    if (!S_ISREG(st.st_mode)) {
        proa__source_close(s);
        return proa_fail(PROA_ERR_IO, "cannot read '%s': not a regular file", path);
    }
    s->state = state_in(&st);
    s->size = s->state.size;
    return PROA_OK;
}

proa_status proa__source_unchanged(const proa__source *s)
{
    proa__file_state now;
    if (s->memory || !proa__state_of(s->fd, &now) || proa__same_state(&now, &s->state)) return PROA_OK;
    return proa__changed(s->name);
}

void proa__source_memory(proa__source *s, const void *data, size_t bytes, const char *name)
{
    static const unsigned char nothing[1];
    *s = (proa__source){.memory = bytes ? data : nothing, .fd = -1, .size = bytes, .name = name};
}

void proa__source_close(proa__source *s)
{
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

static proa_status too_short(const proa__source *s, uint64_t wanted)
{
    return proa_fail(PROA_ERR_CORRUPT,
                     "'%s' is cut off: %llu bytes needed at offset %llu, but the file ends at %llu", s->name,
                     (unsigned long long)wanted, (unsigned long long)s->at, (unsigned long long)s->size);
}

proa_status proa__source_read(proa__source *s, void *to, size_t bytes)
{
    if (bytes > proa__source_left(s)) return too_short(s, bytes);
    if (s->memory) {
        if (bytes) memcpy(to, s->memory + s->at, bytes);
        s->at += bytes;
        return PROA_OK;
    }
    for (char *p = to; bytes;) {
        ssize_t n = pread(s->fd, p, bytes > (1u << 30) ? (1u << 30) : bytes, (off_t)s->at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return proa_fail(PROA_ERR_IO, "cannot read '%s': %s", s->name, strerror(errno));
        if (n == 0) return too_short(s, bytes); /* it shrank while being read */
        p += n;
        s->at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return PROA_OK;
}

proa_status proa__source_skip(proa__source *s, uint64_t bytes)
{
    if (bytes > proa__source_left(s)) return too_short(s, bytes);
    s->at += bytes;
    return PROA_OK;
}

char *proa__read_whole(const char *path, size_t *bytes)
{
    proa__source s;
    if (proa__source_open(&s, path) != PROA_OK) return NULL;
    char *data = NULL;
    if (s.size > SIZE_MAX / 2)
        proa_fail(PROA_ERR_OVERFLOW, "'%s' is too large for this machine's memory", path);
    else data = proa__alloc((size_t)s.size + 1);
    *bytes = (size_t)s.size;
    if (data && proa__source_read(&s, data, *bytes) != PROA_OK) {
        proa__free(data);
        data = NULL;
    }
    if (data) data[*bytes] = 0;
    proa__source_close(&s);
    return data;
}
