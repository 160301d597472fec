/* Stand-in for NVRTC in tests. A compiled image is the source text itself; loading an image has the build's
 * C++ compiler make a shared library of it, whose kernels run in the emulator, so a cache file on disk never
 * holds machine code of the host. The build gives the compiler's path (EMULATE_CXX) and the source tree's
 * (EMULATE_ROOT). */
#include "devices/cuda/compiler.h"

#include "cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

extern char **environ;

namespace
{

const char marker = 0; // an address of this library

std::string text_of(const std::string &path)
{
    std::string text;
    char part[512];
    FILE *f = fopen(path.c_str(), "r");
    if (!f) return text;
    for (size_t n; text.size() < 4096 && (n = fread(part, 1, sizeof part, f)) > 0;) text.append(part, n);
    fclose(f);
    return text;
}

/* True if it could be compiled; what the compiler says goes into `log`. */
bool build(const std::string &in, const std::string &out, const std::string &log)
{
    Dl_info self;
    if (!dladdr(&marker, &self)) return false;
    std::string include = std::string("-I") + EMULATE_ROOT,
                head = std::string(EMULATE_ROOT) + "/devices/cuda/emulate/cuda.h";
    const char *list[] = {EMULATE_CXX,
                          "-std=c++17",
                          "-O1",
                          "-fPIC",
                          "-shared",
                          "-ffp-contract=off",
                          "-fsanitize=alignment",
                          "-fsanitize-undefined-trap-on-error",
                          "-fvisibility=hidden",
                          include.c_str(),
                          "-include",
                          head.c_str(),
                          "-o",
                          out.c_str(),
                          in.c_str(),
                          self.dli_fname,
                          nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int code = posix_spawnp(&child, list[0], &files, nullptr, const_cast<char **>(list), environ),
        status = -1;
    posix_spawn_file_actions_destroy(&files);
    return code == 0 && waitpid(child, &status, 0) == child && status == 0;
}

} // namespace

const char *cuda_compiler(const char **why)
{
    bool none = getenv("PROA_EMULATE_NO_COMPILER") != nullptr; // what a machine without NVRTC does
    if (why) *why = none ? "the emulator was told to have no compiler" : "";
    return none ? nullptr : "emulator";
}

bool cuda_compile(const char *source, int, int, void **image, size_t *bytes, char *why, size_t capacity)
{
    *bytes = strlen(source) + 1;
    *image = strdup(source);
    if (!*image) snprintf(why, capacity, "no memory");
    return *image != nullptr;
}

int emulate_module_load(void **module, const void *image, size_t bytes)
{
    const char *tmp = getenv("TMPDIR");
    std::string place = std::string(tmp && *tmp ? tmp : "/tmp") + "/proa-emulate-XXXXXX";
    if (bytes == 0 || static_cast<const char *>(image)[bytes - 1] || !mkdtemp(&place[0])) return 1;
    std::string in = place + "/chain.cc", out = place + "/chain.so", log = place + "/log";
    FILE *f = fopen(in.c_str(), "w");
    bool good = f && fwrite(image, 1, bytes - 1, f) == bytes - 1;
    if (f) good = fclose(f) == 0 && good;
    good = good && build(in, out, log);
    *module = good ? dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!*module)
        fprintf(stderr, "cuda emulator: a chain cannot be loaded: %s\n",
                good ? dlerror() : text_of(log).c_str());
    for (const std::string &path : {in, out, log}) unlink(path.c_str());
    rmdir(place.c_str());
    return *module ? 0 : 1;
}

int emulate_module_kernel(void *module, const char *name, void **kernel)
{
    *kernel = dlsym(module, name);
    return *kernel ? 0 : 1;
}

int emulate_module_unload(void *module)
{
    emulate_finish();
    return dlclose(module) ? 1 : 0;
}
