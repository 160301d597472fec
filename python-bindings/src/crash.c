/* Reports a crash in native code on stderr (signal, op that was running, Python stack), then lets the
 * previous signal disposition act. Uses POSIX signals and ext.h; the handler is async-signal-safe. */
#include "core/run.h"
#include "ext.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name, *meaning;
} fatal[] = {
    {SIGSEGV, "SIGSEGV", "invalid memory access"},
    {SIGBUS, "SIGBUS", "memory access error"},
    {SIGFPE, "SIGFPE", "arithmetic error"},
    {SIGILL, "SIGILL", "illegal instruction"},
    {SIGABRT, "SIGABRT", "abort"},
};
enum { FATAL = sizeof fatal / sizeof *fatal, STACK = 64 << 10 };

static struct sigaction before[FATAL]; /* signal dispositions before install, in the order of `fatal` */
static bool installed;
static volatile sig_atomic_t reporting;
static char own_stack[STACK]; /* alternate stack of the installing thread, for stack overflows */
static const proa_op *const volatile *installer_runs;

/* CPython's async-signal-safe stack dumpers, which faulthandler uses. They are not public: looked up by
 * dlsym; NULL means a report without a Python stack. */
static void (*dump_one)(int fd, PyThreadState *thread);
static const char *(*dump_all)(int fd, PyInterpreterState *interpreter, PyThreadState *thread);

static void put(const char *text)
{
    size_t n = 0;
    while (text[n]) n++;
    while (n > 0) {
        ssize_t wrote = write(STDERR_FILENO, text, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        text += wrote;
        n -= (size_t)wrote;
    }
}

static void put_hex(uintptr_t value)
{
    char text[2 + 2 * sizeof value + 1], *at = text + sizeof text - 1;
    *at = '\0';
    do *--at = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    *--at = 'x';
    *--at = '0';
    put(at);
}

static void put_op(void)
{
    const proa_op *const volatile *mine = proa_running_op();
    if (mine && *mine) {
        put("\n  op: ");
        put((*mine)->name);
    } else if (installer_runs && installer_runs != mine &&
               *installer_runs) { /* a worker or OpenMP thread: the op that its caller runs */
        put("\n  op: ");
        put((*installer_runs)->name);
        put(" (on the main thread)");
    } else {
        put("\n  op: none was running");
    }
}

static void put_python_stack(void)
{
    put("\n");
    PyThreadState *thread = PyGILState_GetThisThreadState();
    if (thread && dump_one) dump_one(STDERR_FILENO, thread);
    else if (dump_all) dump_all(STDERR_FILENO, NULL, NULL);
    else put("  this interpreter cannot tell\n");
}

static void report(int number, siginfo_t *info, void *context)
{
    (void)context;
    int was = errno, i = 0;
    while (i < FATAL - 1 && fatal[i].number != number) i++;
    if (!reporting) {
        reporting = 1;
        put("\nProa: fatal signal ");
        put(fatal[i].name);
        put(": ");
        put(fatal[i].meaning);
        if (info->si_code > 0 && (number == SIGSEGV || number == SIGBUS)) {
            put(" at ");
            put_hex((uintptr_t)info->si_addr);
        }
        put_op();
        /* a previous handler (faulthandler) prints the stack itself */
        if (before[i].sa_handler == SIG_DFL) put_python_stack();
        else put("\n");
        reporting = 0;
    }
    sigaction(number, &before[i], NULL);
    errno = was;
    /* a fault recurs on return, with its address; a signal that was sent (si_code <= 0) is sent again */
    if (info->si_code <= 0) raise(number);
}

static bool use_own_stack(void)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0) return false;
    if (!(now.ss_flags & SS_DISABLE)) return true; /* faulthandler has installed an alternate stack */
    stack_t ours = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    return sigaltstack(&ours, NULL) == 0;
}

static void install(void)
{
    if (installed) return;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program) {
        *(void **)&dump_one = dlsym(program, "_Py_DumpTraceback");
        *(void **)&dump_all = dlsym(program, "_Py_DumpTracebackThreads");
    }
    (void)proa_rng_get(); /* creates the thread's state before a signal needs it */
    installer_runs = proa_running_op();
    struct sigaction ours = {.sa_flags = SA_SIGINFO | (use_own_stack() ? SA_ONSTACK : 0)};
    ours.sa_sigaction = report;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < FATAL; i++)
        if (sigaction(fatal[i].number, NULL, &before[i]) != 0 || before[i].sa_handler == SIG_IGN ||
            sigaction(fatal[i].number, &ours, NULL) != 0)
            before[i].sa_handler = SIG_DFL;
    installed = true;
}

/* Restores the previous dispositions, except of signals for which a handler was installed after ours. */
static void uninstall(void)
{
    for (int i = 0; installed && i < FATAL; i++) {
        struct sigaction now;
        if (sigaction(fatal[i].number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
            now.sa_sigaction == report)
            sigaction(fatal[i].number, &before[i], NULL);
    }
    installed = false;
}

static PyObject *crash_report(PyObject *module, PyObject *on)
{
    (void)module;
    int truth = PyObject_IsTrue(on);
    if (truth < 0) return NULL;
    bool was = installed;
    if (truth) install();
    else uninstall();
    return PyBool_FromLong(was);
}

void py_crash_report_start(void)
{
    const char *wish = getenv("PROA_CRASH_REPORT");
    if (!wish || strcmp(wish, "0") != 0) install();
}

PyMethodDef py_crash_functions[] = {
    {"crash_report", crash_report, METH_O,
     "Reports fatal signals on stderr, or leaves them alone; how it was."},
    {0},
};
