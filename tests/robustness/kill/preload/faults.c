/* LD_PRELOAD: lets the n-th write, fsync or rename of files of this process fail. FAULT_CALL names the call,
 * FAULT_NTH counts from 1; FAULT_ERROR is ENOSPC, EIO, EINTR, or SHORT, which writes half. Says "fault"
 * on stderr when it strikes. C library and the system only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int seen;

/* 0: the call goes on; −1: half of it; otherwise the errno. */
static int fault(const char *call)
{
    const char *wanted = getenv("FAULT_CALL"), *nth = getenv("FAULT_NTH"), *error = getenv("FAULT_ERROR");
    if (!wanted || !nth || !error || strcmp(wanted, call) != 0) return 0;
    if (atomic_fetch_add(&seen, 1) + 1 != atoi(nth)) return 0;
    (void)!syscall(SYS_write, 2, "fault\n", 6);
    return !strcmp(error, "ENOSPC")  ? ENOSPC
           : !strcmp(error, "EIO")   ? EIO
           : !strcmp(error, "EINTR") ? EINTR
                                     : -1;
}

static int is_file(int fd)
{
    struct stat st;
    return fd > 2 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    int e = n && is_file(fd) ? fault("write") : 0;
    if (e < 0) return syscall(SYS_write, fd, data, (n + 1) / 2);
    if (e == 0) return syscall(SYS_write, fd, data, n);
    errno = e;
    return -1;
}

int fsync(int fd)
{
    int e = is_file(fd) ? fault("fsync") : 0; /* a folder's is not counted: it is no reason to fail */
    if (e <= 0) return (int)syscall(SYS_fsync, fd);
    errno = e;
    return -1;
}

int rename(const char *from, const char *to)
{
    int e = fault("rename");
    if (e <= 0) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    errno = e;
    return -1;
}
