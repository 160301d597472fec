/* The atomic file writer: a locked temporary file in the same folder, synced, then renamed. Core and POSIX
 * only. A full disk or any other failure leaves the old file as it was and nothing new behind. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

struct proa__writer {
    int fd;
    bool synced;
    proa_status failed;
    size_t filled;
    uint64_t at;
    char *path, *temporary;
    unsigned char buffer[BUFFER];
};

void (*proa__write_hook)(proa__write_stage stage);

static void stage(proa__write_stage s)
{
    if (proa__write_hook) proa__write_hook(s);
}

static proa_status failed(proa__writer *w, const char *doing)
{
    int e = errno;
    w->failed = proa_fail(PROA_ERR_IO, "cannot %s '%s': %s; the old file, if any, is unchanged", doing,
                          w->path, strerror(e));
    return w->failed;
}

static void destroy(proa__writer *w)
{
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    proa__free(w->path);
    proa__free(w->temporary);
    proa__free(w);
}

/* Opens and locks the temporary. Another process may rename it away between open and lock, and then the
 * descriptor is of the finished file: open again. */
static proa_status take_temporary(proa__writer *w)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        struct stat mine, there;
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (w->fd < 0) return failed(w, "write");
        if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(w->fd);
            w->fd = -1;
            w->failed =
                proa_fail(PROA_ERR_BAD_STATE, "'%s' is being written by another save; wait for it", w->path);
            return w->failed;
        }
        if (fstat(w->fd, &mine) == 0 && stat(w->temporary, &there) == 0 && mine.st_ino == there.st_ino &&
            mine.st_dev == there.st_dev)
            return ftruncate(w->fd, 0) == 0 ? PROA_OK : failed(w, "write");
        close(w->fd);
        w->fd = -1;
    }
    errno = EBUSY;
    return failed(w, "write");
}

proa__writer *proa__writer_open(const char *path)
{
    if (proa_error() != PROA_OK) return NULL;
    proa__writer *w = proa__alloc(sizeof *w);
    if (!w) return NULL;
    w->fd = -1;
    w->synced = false;
    w->failed = PROA_OK;
    w->filled = 0;
    w->at = 0;
    w->temporary = NULL;
    w->path = proa__strdup(path);
    size_t n = strlen(path);
    if (w->path) w->temporary = proa__alloc(n + 5);
    if (!w->temporary) {
        destroy(w);
        return NULL;
    }
    memcpy(w->temporary, path, n);
    memcpy(w->temporary + n, ".tmp", 5);
    if (proa__is_folder(path)) {
        proa_fail(PROA_ERR_IO, "cannot write '%s': it is a folder", path);
        destroy(w);
        return NULL;
    }
    if (take_temporary(w) != PROA_OK) {
        destroy(w);
        return NULL;
    }
    return w;
}

static proa_status write_all(proa__writer *w, const unsigned char *p, size_t n)
{
    while (n) {
        ssize_t done = write(w->fd, p, n > (1u << 30) ? (1u << 30) : n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            if (done == 0) errno = ENOSPC;
            return failed(w, "write");
        }
        p += done;
        n -= (size_t)done;
    }
    return PROA_OK;
}

static proa_status flush(proa__writer *w)
{
    size_t n = w->filled;
    w->filled = 0;
    return write_all(w, w->buffer, n);
}

proa_status proa__writer_put(proa__writer *w, const void *data, size_t bytes)
{
    if (w->failed != PROA_OK) return w->failed;
    w->at += bytes;
    w->synced = false;
    if (bytes > BUFFER - w->filled) {
        PROA_TRY(flush(w));
        if (bytes >= BUFFER) return write_all(w, data, bytes);
    }
    if (bytes) memcpy(w->buffer + w->filled, data, bytes);
    w->filled += bytes;
    return PROA_OK;
}

proa_status proa__writer_zeros(proa__writer *w, size_t bytes)
{
    static const unsigned char zeros[4096];
    return proa__writer_put(w, zeros, bytes < sizeof zeros ? bytes : sizeof zeros);
}

uint64_t proa__writer_at(const proa__writer *w) { return w->at; }

proa_status proa__writer_sync(proa__writer *w)
{
    if (w->failed != PROA_OK || w->synced) return w->failed;
    PROA_TRY(flush(w));
    stage(PROA__WROTE);
    if (fsync(w->fd) != 0 && errno != EINVAL) return failed(w, "write");
    stage(PROA__SYNCED);
    w->synced = true;
    return PROA_OK;
}

/* Makes the rename durable; a file system that cannot is no reason to call the save failed. */
static void sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder) return;
    memcpy(folder, path, n);
    folder[n] = 0;
    int fd = open(!slash ? "." : n ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

proa_status proa__writer_commit(proa__writer *w)
{
    proa_status status = proa__writer_sync(w);
    if (status == PROA_OK && rename(w->temporary, w->path) != 0) status = failed(w, "rename to");
    if (status != PROA_OK) {
        proa__writer_abort(w);
        return status;
    }
    sync_folder(w->path);
    stage(PROA__RENAMED);
    destroy(w);
    return PROA_OK;
}

void proa__writer_abort(proa__writer *w)
{
    if (!w) return;
    if (w->fd >= 0) unlink(w->temporary);
    destroy(w);
}
