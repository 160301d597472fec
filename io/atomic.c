/* The atomic file writer: writes a locked temporary in the file's folder, calls fsync, then renames it to the
 * file's name. Pipes and devices are written directly. Core and POSIX only. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 16,
    SLOTS = 16,         /* temporaries of one path at a time, hence concurrent writers of it */
    NAME_BYTES = 240,   /* longest part of a file's name used in its temporary's: 255 bytes are allowed with
                         * the suffix */
    LINKS = 40,         /* symbolic links that are followed, as many as Linux does */
    PAUSE_NS = 2000000, /* nanoseconds between two tries when all slots are taken */
    PAUSES = 30000,     /* tries: a minute in all */
};

struct proa_writer {
    int fd;
    bool synced;
    bool direct; /* a pipe or device: written directly, without a temporary */
    proa_status failed;
    size_t filled;
    uint64_t at;
    char *path, *temporary;
    struct stat old; /* of the file that will be replaced; st_mode 0: there is none */
    unsigned char buffer[BUFFER];
};

void (*proa__write_hook)(proa__write_stage stage);

static void stage(proa__write_stage s)
{
    if (proa__write_hook) proa__write_hook(s);
}

/* Sets the writer's error and keeps errno, from which the Python extension makes its exception. */
static proa_status failed(proa_writer *w, const char *doing)
{
    int e = errno;
    w->failed = proa_fail(PROA_ERR_IO, "cannot %s '%s': %s%s", doing, w->path, strerror(e),
                          w->direct ? "" : "; the old file, if any, is unchanged");
    errno = e;
    return w->failed;
}

static void destroy(proa_writer *w)
{
    int e = errno;
    if (w->fd >= 0) close(w->fd);
    proa__free(w->path);
    proa__free(w->temporary);
    proa__free(w);
    errno = e;
}

/* ---- where it goes --------------------------------------------------------------------- */

/* The target of the symbolic link `path`, which need not exist; NULL if `path` is no link or memory is
 * short. */
static char *follow(const char *path)
{
    char target[4096];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return NULL;
    target[n] = 0;
    const char *slash = strrchr(path, '/');
    size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - path) + 1;
    char *joined = proa__alloc(folder + (size_t)n + 1);
    if (!joined) return NULL;
    memcpy(joined, path, folder);
    memcpy(joined + folder, target, (size_t)n + 1);
    return joined;
}

/* Sets w->path to the target of `path` after following symbolic links of its last component, so that the link
 * stays and its target is replaced. */
static proa_status resolve(proa_writer *w, const char *path)
{
    w->path = proa__strdup(path);
    for (int i = 0; w->path && i < LINKS; i++) {
        char *next = follow(w->path);
        if (!next) return w->failed = proa_error();
        proa__free(w->path);
        w->path = next;
    }
    errno = ELOOP;
    return w->path ? failed(w, "write") : (w->failed = proa_error());
}

/* ---- temporaries ------------------------------------------------------------------------ */

static void name_slot(proa_writer *w, int slot)
{
    const char *slash = strrchr(w->path, '/'), *base = slash ? slash + 1 : w->path;
    size_t folder = (size_t)(base - w->path), n = strlen(base);
    char *end = w->temporary + folder + (n < NAME_BYTES ? n : NAME_BYTES);
    memcpy(w->temporary, w->path, (size_t)(end - w->temporary));
    snprintf(end, 16, slot ? "%s%d" : "%s", PROA__TEMPORARY, slot);
}

static bool is_named(int fd, const char *name)
{
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && lstat(name, &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
}

/* Removes the temporary `name` if its writer has ended: a writer holds a lock on it, which the kernel drops
 * with the process. False if the name is still taken. */
static bool sweep(const char *name)
{
    struct stat st;
    int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT;
    bool gone = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                (!is_named(fd, name) || unlink(name) == 0);
    close(fd);
    return gone;
}

/* Creates and locks the temporary of w's current slot, again if another save removes it before it is locked.
 * False without an error: the slot is taken. Where a file system has no locks, its leftovers are not swept,
 * but O_EXCL keeps writers apart all the same. */
static bool take_slot(proa_writer *w)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        mode_t mode = w->old.st_mode ? S_IRUSR | S_IWUSR : 0666;
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (w->fd < 0 && errno == EINTR) continue;
        if (w->fd < 0 && errno != EEXIST) return failed(w, "write"), false;
        if (w->fd < 0 && !sweep(w->temporary)) return false;
        if (w->fd < 0) continue;
        bool locked = flock(w->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (locked && is_named(w->fd, w->temporary)) return true;
        close(w->fd);
        w->fd = -1;
    }
    return false;
}

static proa_status take_temporary(proa_writer *w)
{
    struct timespec pause = {0, PAUSE_NS};
    for (int turn = 0; turn < PAUSES; turn++) {
        int slot = -1;
        bool taken = false;
        while (!taken && w->failed == PROA_OK && ++slot < SLOTS) {
            name_slot(w, slot);
            taken = take_slot(w);
        }
        if (w->failed != PROA_OK) return w->failed;
        for (int other = 0; taken && other < SLOTS; other++) {
            name_slot(w, other);
            if (other != slot) (void)sweep(w->temporary);
        }
        name_slot(w, taken ? slot : 0);
        if (taken) return PROA_OK;
        nanosleep(&pause, NULL);
    }
    return w->failed = proa_fail(PROA_ERR_BAD_STATE,
                                 "cannot write '%s': %d other saves to it have not ended for a minute",
                                 w->path, (int)SLOTS);
}

/* Gives the temporary the old file's permissions and, where the system allows it, its owner and group. */
static proa_status keep_mode(proa_writer *w)
{
    if (!w->old.st_mode) return PROA_OK;
    struct stat now;
    if (fstat(w->fd, &now) != 0) return failed(w, "write");
    if (now.st_uid != w->old.st_uid || now.st_gid != w->old.st_gid)
        if (fchown(w->fd, w->old.st_uid, w->old.st_gid) != 0 && errno != EPERM) return failed(w, "write");
    return fchmod(w->fd, w->old.st_mode & 0777) == 0 ? PROA_OK : failed(w, "write");
}

static proa_status open_direct(proa_writer *w)
{
    w->direct = true;
    do w->fd = open(w->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    while (w->fd < 0 && errno == EINTR);
    return w->fd < 0 ? failed(w, "write") : PROA_OK;
}

static proa_status open_writer(proa_writer *w, const char *path)
{
    PROA_TRY(resolve(w, path));
    if (stat(w->path, &w->old) != 0) {
        w->old.st_mode = 0;
        if (errno != ENOENT) return failed(w, "write");
    }
    size_t n = strlen(w->path);
    if (S_ISDIR(w->old.st_mode) || (n && w->path[n - 1] == '/')) {
        errno = EISDIR;
        return failed(w, "write");
    }
    if (w->old.st_mode && !S_ISREG(w->old.st_mode)) return open_direct(w);
    w->temporary = proa__alloc(n + 16);
    if (!w->temporary) return w->failed = proa_error();
    PROA_TRY(take_temporary(w));
    return keep_mode(w);
}

proa_writer *proa_writer_open(const char *path)
{
    if (proa_error() != PROA_OK) return NULL;
    if (!path) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "writer_open: path is NULL, expected a file's name");
        return NULL;
    }
    proa_writer *w = proa__alloc(sizeof *w);
    if (!w) return NULL;
    memset(w, 0, offsetof(proa_writer, buffer));
    w->fd = -1;
    if (open_writer(w, path) == PROA_OK) return w;
    proa_writer_abort(w);
    return NULL;
}

/* ---- writing ---------------------------------------------------------------------------- */

static proa_status write_all(proa_writer *w, const unsigned char *p, size_t n)
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

static proa_status flush(proa_writer *w)
{
    size_t n = w->filled;
    w->filled = 0;
    return write_all(w, w->buffer, n);
}

proa_status proa_writer_put(proa_writer *w, const void *data, size_t bytes)
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

proa_status proa__writer_zeros(proa_writer *w, size_t bytes)
{
    static const unsigned char zeros[4096];
    return proa_writer_put(w, zeros, bytes < sizeof zeros ? bytes : sizeof zeros);
}

uint64_t proa__writer_at(const proa_writer *w) { return w->at; }

/* ---- the end ------------------------------------------------------------------------------ */

static int sync_fd(int fd)
{
    int status;
    do status = fsync(fd);
    while (status != 0 && errno == EINTR);
    return status;
}

proa_status proa__writer_sync(proa_writer *w)
{
    if (w->failed != PROA_OK || w->synced) return w->failed;
    PROA_TRY(flush(w));
    stage(PROA__WROTE);
    if (!w->direct && sync_fd(w->fd) != 0 && errno != EINVAL) return failed(w, "write");
    stage(PROA__SYNCED);
    w->synced = true;
    return PROA_OK;
}

/* Syncs the folder, so that the rename survives a power failure. Errors are ignored: some file systems
 * cannot. */
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
    (void)sync_fd(fd);
    close(fd);
}

proa_status proa_writer_commit(proa_writer *w)
{
    proa_status status = proa__writer_sync(w);
    if (status == PROA_OK && !w->direct && rename(w->temporary, w->path) != 0)
        status = failed(w, "rename to");
    if (status != PROA_OK) {
        proa_writer_abort(w);
        return status;
    }
    if (!w->direct) sync_folder(w->path);
    stage(PROA__RENAMED);
    destroy(w);
    return PROA_OK;
}

void proa_writer_abort(proa_writer *w)
{
    if (!w) return;
    int e = errno;
    if (w->fd >= 0 && !w->direct) unlink(w->temporary);
    errno = e;
    destroy(w);
}
