/* The thread's error: code and message of the first failure, which stay until they are cleared; later
 * failures are dropped. The message is in the per-thread struct; a thread without memory for that struct
 * still has an error code. May use core only. */
#define _GNU_SOURCE
#include "core/error.h"
#include "core/thread.h"

#include <stdarg.h>
#if defined(__GLIBC__)
#include <dlfcn.h>
#include <execinfo.h>
#endif

static const struct {
    const char *exception, *category, *text;
} errors[] = {
#define PROA_X(CODE, exception, category, text) {#exception, #category, text},
    PROA_ERRORS(PROA_X)
#undef PROA_X
};

#if defined(__GLIBC__)
/* FLAGS_call_stack_level=2: appends the frames of the call as symbol+offset, for addr2line. */
static __attribute__((noinline)) void append_frames(char *message, size_t used)
{
    void *frames[16];
    int n = backtrace(frames, 16);
    for (int i = 3; i < n; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info)) continue;
        const char *name = info.dli_sname ? info.dli_sname : info.dli_fname;
        uintptr_t from = (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
        int wrote = snprintf(message + used, PROA__MESSAGE - used, "\n  at %s+0x%zx", name ? name : "?",
                             (size_t)((uintptr_t)frames[i] - from));
        if (wrote < 0 || (size_t)wrote >= PROA__MESSAGE - used) return;
        used += (size_t)wrote;
    }
}
#else
static void append_frames(char *message, size_t used) { (void)message, (void)used; }
#endif

/* Sets the error; the message begins with "op: argument " where these are given. append_frames skips three
 * frames: its own, this one and that of the function that calls it. */
static __attribute__((noinline)) proa_status raise_error(proa_status code, const char *op,
                                                         const char *argument, const char *format,
                                                         va_list list)
{
    if (proa__thread_error != PROA_OK) return (proa_status)proa__thread_error;
    if (code == PROA_OK) return PROA_OK;
    if (code <= PROA_OK || code >= PROA_ERR_COUNT) code = PROA_ERR_INTERNAL;
    proa__thread *me = proa__me();
    if (me) {
        int lead = op ? snprintf(me->message, PROA__MESSAGE / 2, "%s: %s%s", op, argument ? argument : "",
                                 argument ? " " : "")
                      : 0;
        size_t used = lead < 0 ? 0 : lead < PROA__MESSAGE / 2 ? (size_t)lead : PROA__MESSAGE / 2 - 1;
        int wrote = vsnprintf(me->message + used, PROA__MESSAGE - used, format, list);
        if (wrote >= 0 && used + (size_t)wrote < PROA__MESSAGE &&
            proa__flag_int(PROA_FLAG_call_stack_level) >= 2)
            append_frames(me->message, used + (size_t)wrote);
    }
    proa__thread_error = code;
    return code;
}

proa_status proa_fail(proa_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    proa_status stands = raise_error(code, NULL, NULL, format, list);
    va_end(list);
    return stands;
}

proa_status proa__op_fail(proa_status code, const proa_op *op, const char *argument, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    proa_status stands = raise_error(code, op && op->name ? op->name : "op", argument, format, list);
    va_end(list);
    return stands;
}

/* The kind of an INVALID_ARGUMENT; read only while that is the thread's error. */
static _Thread_local enum { REFUSES_ARGUMENT, REFUSES_DTYPE, REFUSES_RANK } refused;

#define REFUSE(what)                                                                                      \
    bool first = proa__thread_error == PROA_OK;                                                           \
    va_list list;                                                                                         \
    va_start(list, format);                                                                               \
    proa_status stands =                                                                                  \
        raise_error(PROA_ERR_INVALID_ARGUMENT, op && op->name ? op->name : "op", argument, format, list); \
    va_end(list);                                                                                         \
    if (first) refused = what;                                                                            \
    return stands

proa_status proa__operand_dtype_fail(const proa_op *op, const char *argument, const char *format, ...)
{
    REFUSE(REFUSES_DTYPE);
}

proa_status proa__rank_fail(const proa_op *op, const char *argument, const char *format, ...)
{
    REFUSE(REFUSES_RANK);
}

bool proa_error_is_of_dtype(void)
{
    return proa__thread_error == PROA_ERR_WRONG_TYPE ||
           (proa__thread_error == PROA_ERR_INVALID_ARGUMENT && refused == REFUSES_DTYPE);
}

bool proa_error_is_of_rank(void)
{
    return proa__thread_error == PROA_ERR_INVALID_ARGUMENT && refused == REFUSES_RANK;
}

proa_status proa_error(void) { return (proa_status)proa__thread_error; }

const char *proa_error_message(void)
{
    if (proa__thread_error == PROA_OK) return "";
    proa__thread *me = proa__thread_self;
    return me && me->message[0] ? me->message : errors[proa__thread_error].text;
}

const char *proa_error_exception(proa_status code)
{
    if (code < PROA_OK || code >= PROA_ERR_COUNT) code = PROA_ERR_INTERNAL;
    return errors[code].exception;
}

const char *proa_error_category(proa_status code)
{
    if (code < PROA_OK || code >= PROA_ERR_COUNT) code = PROA_ERR_INTERNAL;
    return errors[code].category;
}

const char *proa_error_text(proa_status code)
{
    if (code < PROA_OK || code >= PROA_ERR_COUNT) code = PROA_ERR_INTERNAL;
    return errors[code].text;
}

void proa_clear_error(void)
{
    proa__thread_error = PROA_OK;
    refused = REFUSES_ARGUMENT;
    if (proa__thread_self) proa__thread_self->message[0] = '\0';
}

int proa_finish(FILE *to)
{
    int failed = proa__thread_error != PROA_OK;
    if (failed && to) fprintf(to, "proa: %s: %s\n", proa_error_text(proa_error()), proa_error_message());
    if (proa__thread_self) proa__scope_leave_all(proa__thread_self);
    proa_clear_error();
    return failed;
}
