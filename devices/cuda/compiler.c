/* Binding to NVRTC, loaded at its first use, so that the plug-in also loads on a machine without NVRTC; there
 * a chain of elementwise ops runs as one kernel per op. C; uses the dynamic loader. */
#include "compiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc_program *program;

/* nvrtc<Name>; each but GetErrorString returns 0 or a code. */
typedef struct functions {
    const char *(*GetErrorString)(int code);
    int (*Version)(int *major, int *minor);
    int (*GetNumSupportedArchs)(int *n);
    int (*GetSupportedArchs)(int *to);
    int (*CreateProgram)(program *to, const char *source, const char *name, int n, const char *const *headers,
                         const char *const *names);
    int (*DestroyProgram)(program *p);
    int (*CompileProgram)(program p, int n, const char *const *options);
    int (*GetCUBINSize)(program p, size_t *bytes);
    int (*GetCUBIN)(program p, char *to);
    int (*GetPTXSize)(program p, size_t *bytes);
    int (*GetPTX)(program p, char *to);
    int (*GetProgramLogSize)(program p, size_t *bytes);
    int (*GetProgramLog)(program p, char *to);
} functions;
#define FUNCTIONS(X)        \
    X(GetErrorString)       \
    X(Version)              \
    X(GetNumSupportedArchs) \
    X(GetSupportedArchs)    \
    X(CreateProgram)        \
    X(DestroyProgram)       \
    X(CompileProgram)       \
    X(GetCUBINSize)         \
    X(GetCUBIN)             \
    X(GetPTXSize)           \
    X(GetPTX)               \
    X(GetProgramLogSize)    \
    X(GetProgramLog)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static functions table;
static char why_not[256], name[32];

static void find(void)
{
    void *library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libnvrtc.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *text = dlerror();
        snprintf(why_not, sizeof why_not, "NVRTC cannot be loaded: %s", text ? text : "unknown reason");
        return;
    }
    /* ISO C has no conversion from an object pointer to a function pointer, so the pointer's bytes are
     * copied. */
    void *p;
#define PROA_X(f)                                                                            \
    p = dlsym(library, "nvrtc" #f);                                                          \
    if (!p && !why_not[0]) snprintf(why_not, sizeof why_not, "libnvrtc has no nvrtc%s", #f); \
    memcpy(&table.f, &p, sizeof p);
    FUNCTIONS(PROA_X)
#undef PROA_X
    int major = 0, minor = 0;
    if (!why_not[0] && table.Version(&major, &minor) != 0)
        snprintf(why_not, sizeof why_not, "NVRTC does not say its version");
    snprintf(name, sizeof name, "NVRTC %d.%d", major, minor);
}

const char *cuda_compiler(const char **why)
{
    pthread_once(&once, find);
    if (why) *why = why_not;
    return why_not[0] ? NULL : name;
}

/* Stand-ins for headers of the C library: NVRTC finds none, but declares the functions itself. */
static const cuda_header stand_ins[] = {
    {"stdint.h",
     "#pragma once\n"
     "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"
     "typedef long long int64_t;\n"
     "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned uint32_t;\n"
     "typedef unsigned long long uint64_t;\n"},
    {"string.h", ""},
    {"math.h", "#pragma once\n"
               "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fc00000)\n"},
};
enum { STAND_INS = sizeof stand_ins / sizeof *stand_ins, HEADERS = 32 };

static int fail(int code, const char *what, char *why, size_t capacity)
{
    if (code) snprintf(why, capacity, "%s: %s", what, table.GetErrorString(code));
    return code;
}

static void put_log(program p, char *why, size_t capacity)
{
    size_t n = 0;
    if (table.GetProgramLogSize(p, &n) != 0 || n == 0) return;
    char *log = malloc(n);
    if (log && table.GetProgramLog(p, log) == 0) snprintf(why, capacity, "%s", log);
    free(log);
}

/* True if NVRTC compiles to machine code for `arch`. False: *newest is the newest architecture below it that
 * NVRTC knows, whose PTX the driver translates. */
static bool is_known(int arch, int *newest)
{
    int n = 0, archs[64];
    *newest = 0;
    if (table.GetNumSupportedArchs(&n) != 0 || n > 64 || table.GetSupportedArchs(archs) != 0) return true;
    for (int i = 0; i < n; i++) {
        if (archs[i] == arch) return true;
        if (archs[i] > *newest && archs[i] < arch) *newest = archs[i];
    }
    return *newest == 0;
}

static int take_image(program p, bool own, void **image, size_t *bytes)
{
    int code = own ? table.GetCUBINSize(p, bytes) : table.GetPTXSize(p, bytes);
    if (code) return code;
    if (!(*image = malloc(*bytes))) return 1;
    code = own ? table.GetCUBIN(p, *image) : table.GetPTX(p, *image);
    if (code) free(*image);
    return code;
}

bool cuda_compile(const char *source, int major, int minor, void **image, size_t *bytes, char *why,
                  size_t capacity)
{
    const char *names[HEADERS], *texts[HEADERS];
    char arch[48];
    int n = 0, newest;
    if (!cuda_compiler(NULL)) return snprintf(why, capacity, "%s", why_not) < 0;
    for (int i = 0; i < STAND_INS; i++, n++) names[n] = stand_ins[i].name, texts[n] = stand_ins[i].text;
    for (const cuda_header *h = cuda_headers; h->name && n < HEADERS; h++, n++)
        names[n] = h->name, texts[n] = h->text;
    bool own = is_known(major * 10 + minor, &newest);
    if (own) snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", major, minor);
    else snprintf(arch, sizeof arch, "--gpu-architecture=compute_%d", newest);
    const char *const options[] = {arch, "--std=c++17"};
    program p = NULL;
    if (fail(table.CreateProgram(&p, source, "chain.cu", n, texts, names), "nvrtcCreateProgram", why,
             capacity))
        return false;
    int code = fail(table.CompileProgram(p, 2, options), "nvrtcCompileProgram", why, capacity);
    if (code) put_log(p, why, capacity);
    else code = fail(take_image(p, own, image, bytes), "nvrtcGetCUBIN", why, capacity);
    table.DestroyProgram(&p);
    return code == 0;
}
