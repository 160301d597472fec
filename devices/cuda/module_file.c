/* On-disk cache of compiled kernels, one file per key: a header, the key, the image. A file is written under
 * a temporary name and renamed, so that a reader sees a complete file or none. C. */
#include "module.h"
#include "runtime.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 64 << 20, MAX_FILES = 1024 };

typedef struct head {
    char magic[8];
    uint64_t key_bytes, image_bytes, image_hash;
} head;
static const char magic[8] = "proacu1";
static const uint64_t start = 0xcbf29ce484222325u;

/* Path of the cache folder, created if `make`; false: there is none. */
static bool folder(char *to, size_t capacity, bool make)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool given = base && *base == '/';
    if (!given && (!home || *home != '/')) return false;
    int n = snprintf(to, capacity, "%s%s/proa/cuda", given ? base : home, given ? "" : "/.cache");
    if (n < 0 || (size_t)n >= capacity) return false;
    for (char *p = to + 1; make; p++) {
        if (*p && *p != '/') continue;
        char was = *p;
        *p = 0;
        (void)mkdir(to, 0700); /* the folder may exist */
        *p = was;
        if (!was) break;
    }
    struct stat s;
    return stat(to, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 022);
}

static bool file_of(const char *key, char *to, size_t capacity, bool make)
{
    const char *flag = cuda_host->flag("cuda_cache");
    if (!flag || !strcmp(flag, "0") || !folder(to, capacity, make)) return false;
    size_t at = strlen(to);
    uint64_t a = cuda_hash(start, key, strlen(key)), b = cuda_hash(~start, key, strlen(key));
    int n = snprintf(to + at, capacity - at, "/%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
    return n > 0 && (size_t)n < capacity - at;
}

/* Reads exactly `bytes` bytes of a file; false after an error or if it ends before. */
static bool read_all(int file, char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(file, to + done, bytes - done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static bool is_ours(int file, size_t *bytes)
{
    struct stat s;
    if (fstat(file, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != geteuid() || s.st_mode & 022) return false;
    *bytes = (size_t)s.st_size;
    return *bytes >= sizeof(head) && *bytes <= MAX_BYTES;
}

static bool take_image(const char *key, const char *all, size_t bytes, void **image, size_t *image_bytes)
{
    head h;
    memcpy(&h, all, sizeof h);
    const char *body = all + sizeof h;
    size_t left = bytes - sizeof h, key_bytes = strlen(key);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.key_bytes != key_bytes || left < key_bytes ||
        h.image_bytes != left - key_bytes || memcmp(body, key, key_bytes) != 0 ||
        cuda_hash(start, body + key_bytes, left - key_bytes) != h.image_hash)
        return false;
    *image_bytes = left - key_bytes;
    *image = malloc(*image_bytes ? *image_bytes : 1);
    if (*image) memcpy(*image, body + key_bytes, *image_bytes);
    return *image != NULL;
}

bool cuda_module_read(const char *key, void **image, size_t *bytes)
{
    char path[4096];
    size_t n = 0;
    if (!file_of(key, path, sizeof path, false)) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    char *all = is_ours(file, &n) ? malloc(n) : NULL;
    bool good = all && read_all(file, all, n) && take_image(key, all, n, image, bytes);
    if (good) futimens(file, NULL); /* it was used: others are older */
    close(file);
    free(all);
    return good;
}

static bool write_all(int file, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* Keeps the MAX_FILES most recently used files: deletes the oldest for each new one. Users may delete all of
 * them at any time. */
static void evict_oldest(const char *path)
{
    char directory[4096], oldest[4096 + 256];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(path, '/') - path), path);
    DIR *d = opendir(directory);
    int n = 0;
    struct timespec least = {0, 0};
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
        bool older = s.st_mtim.tv_sec < least.tv_sec ||
                     (s.st_mtim.tv_sec == least.tv_sec && s.st_mtim.tv_nsec < least.tv_nsec);
        if (n++ > 0 && !older) continue;
        least = s.st_mtim;
        snprintf(oldest, sizeof oldest, "%s/%s", directory, e->d_name);
    }
    if (d) closedir(d);
    if (n > MAX_FILES) unlink(oldest);
}

/* Failures are ignored: the kernels are compiled again the next time. */
void cuda_module_write(const char *key, const void *image, size_t bytes)
{
    char path[4096], made[4096 + 16];
    if (!file_of(key, path, sizeof path, true)) return;
    snprintf(made, sizeof made, "%s.XXXXXX", path);
    int file = mkstemp(made);
    if (file < 0) return;
    head h = {.key_bytes = strlen(key), .image_bytes = bytes, .image_hash = cuda_hash(start, image, bytes)};
    memcpy(h.magic, magic, sizeof magic);
    bool good =
        write_all(file, &h, sizeof h) && write_all(file, key, strlen(key)) && write_all(file, image, bytes);
    good = close(file) == 0 && good;
    if (!good || rename(made, path) != 0) unlink(made);
    else evict_oldest(path);
}
