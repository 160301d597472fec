/* The default number of threads: PROA_NUM_THREADS, else OMP_NUM_THREADS, else the cores that the affinity
 * mask and the cgroup CPU quota allow. Uses the C library and Linux's /proc and /sys. */
#define _GNU_SOURCE
#include "core/cores.h"

#include "core/team.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 4096 };

static int mask_cores(void)
{
#if defined(__linux__)
    for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 4) { /* the kernel's masks may be wider than C's */
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        if (!set) break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (n > 0) return n;
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > PROA__MAX_THREADS ? PROA__MAX_THREADS : (int)n;
}

/* Reads up to two words of a file; returns how many. */
static int read_words(const char *path, char first[32], char second[32])
{
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    int n = fscanf(f, "%31s %31s", first, second);
    fclose(f);
    return n;
}

/* CPU quota ÷ period of one cgroup, in cores; 0: no quota. */
static double group_quota(const char *folder)
{
    char path[PATH + 32], quota[32] = "", period[32] = "", ignored[32];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_words(path, quota, period) != 2) { /* cgroup v1 */
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (read_words(path, quota, ignored) < 1) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (read_words(path, period, ignored) < 1) return 0;
    }
    double q = strtod(quota, NULL), p = strtod(period, NULL); /* "max" and −1: no quota */
    return q > 0 && p > 0 ? q / p : 0;
}

/* The smallest quota, in cores, of the cgroup `path` below `mount` and of its parents. In a container without
 * a cgroup namespace `path` is the host's, and only the files of the mount itself exist. */
static double tightest(const char *mount, const char *path)
{
    char folder[PATH];
    double least = 0;
    int n = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (n < 0 || (size_t)n >= sizeof folder) return 0;
    for (size_t base = strlen(mount);;) {
        double q = group_quota(folder);
        if (q > 0 && (least == 0 || q < least)) least = q;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < base) return least;
        *slash = '\0';
    }
}

/* True where the comma-separated controllers of a line of /proc/self/cgroup hold `cpu`. */
static bool names_cpu(char *controllers)
{
    for (char *rest = NULL, *name = strtok_r(controllers, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "cpu") == 0) return true;
    return false;
}

static double cgroup_quota(const char *root)
{
    static const char *const two[] = {"", "/unified"}, *const one[] = {"/cpu", "/cpu,cpuacct"};
    char line[PATH], mount[PATH];
    double least = 0;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *f = fopen(line, "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) { /* hierarchy:controllers:path */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0', controllers++;
        bool second = *controllers == '\0';
        if (!second && !names_cpu(controllers)) continue;
        for (int i = 0; i < 2; i++) {
            snprintf(mount, sizeof mount, "%.1000s/sys/fs/cgroup%s", root, second ? two[i] : one[i]);
            double q = tightest(mount, path);
            if (q > 0 && (least == 0 || q < least)) least = q;
        }
    }
    fclose(f);
    return least;
}

/* The first number of an environment variable such as OMP_NUM_THREADS=4,2; 0: not set, or not a valid number
 * of threads. */
static int variable(const char *name)
{
    const char *text = getenv(name);
    long n = text ? strtol(text, NULL, 10) : 0;
    return n < 1 ? 0 : n > PROA__MAX_THREADS ? PROA__MAX_THREADS : (int)n;
}

proa__cores proa__cores_look(const char *root)
{
    static const char *const names[] = {"PROA_NUM_THREADS", "OMP_NUM_THREADS"};
    proa__cores c = {.affinity = mask_cores(), .quota = cgroup_quota(root)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((c.threads = variable(names[i])) == 0) continue;
        snprintf(c.reason, sizeof c.reason, "%s", names[i]);
        return c;
    }
    c.threads = c.affinity;
    snprintf(c.reason, sizeof c.reason, "cores of the affinity mask");
    if (c.quota > 0 && c.quota < c.affinity) {
        c.threads = (int)ceil(c.quota - 0.05); /* 1.5 cores keep two threads busy for 3/4 of the time */
        if (c.threads < 1) c.threads = 1;
        snprintf(c.reason, sizeof c.reason, "cgroup quota of %.3g of %d cores", c.quota, c.affinity);
    }
    if (c.threads > PROA__MAX_THREADS) c.threads = PROA__MAX_THREADS;
    return c;
}

static proa__cores here;

static void look(void)
{
    here = proa__cores_look("");
    double cores = here.quota > 0 && here.quota < here.affinity ? here.quota : here.affinity;
    proa__cores_scarce(cores < here.threads);
}

const proa__cores *proa__cores_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
    return &here;
}
