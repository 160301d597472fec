/* Version string, and a one-line description of build and machine: CPU level, threads, build type, compiler,
 * and the third-party libraries that CMake found or left out. May use core only. */
#include "core/thread.h"

#include <pthread.h>

#include "build_info.h"

static char line[512];

static void write_line(void)
{
    static const char *const levels[] = {"base", "x86-64-v3", "x86-64-v4"};
    snprintf(line, sizeof line, "Proa %s, CPU level %s, %d threads, %s build by %s, libraries: %s%s%s",
             proa_version(), levels[proa__cpu_level()], proa_threads(), PROA_BUILD_TYPE, PROA_BUILD_COMPILER,
             *PROA_BUILD_LIBRARIES ? PROA_BUILD_LIBRARIES : "none", *PROA_BUILD_WITHOUT ? "; without: " : "",
             PROA_BUILD_WITHOUT);
}

const char *proa_build_info(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_line);
    return line;
}

const char *proa_version(void) { return PROA_BUILD_VERSION; }
