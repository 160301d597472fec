/* `proa launch`: starts a program once for each rank of a job on this host, serves the store at which they
 * meet, and when one fails ends all, and starts all again as often as --restarts allows. Uses Proa's public
 * headers. */
#define _GNU_SOURCE
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_RANKS = 1024, /* as many as a group may have */
    GRACE = 10        /* seconds from SIGTERM to SIGKILL */
};

typedef struct job {
    int64_t ranks, restarts;
    const char *logs; /* folder of the ranks' logs; NULL: they share the command's output */
    char **program;   /* NULL-terminated */
    char token[33];
    pid_t children[MAX_RANKS]; /* 0: ended */
    sigset_t watched, before;
    int signal; /* number of the signal received; 0: none */
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one rank -------------------------------------------------------------------------- */

static proa_status put(const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (setenv(name, text, 1) == 0) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_MEMORY, "launch: no memory for the environment");
}

static int open_log(const job *j, int rank)
{
    char *path = cli_format("%s/rank.%d.log", j->logs, rank);
    return path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
}

/* Runs one rank's program in the forked child, by exec; calls only async-signal-safe functions. */
static void become(const job *j, pid_t parent, int log)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, &j->before, NULL);
    if (log >= 0 && (dup2(log, 1) < 0 || dup2(log, 2) < 0)) _exit(127);
    execvp(j->program[0], j->program);
    static const char text[] = "launch: the program cannot be run\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(126);
    _exit(127);
}

static proa_status start(job *j, int rank)
{
    PROA_TRY(put("PROA_RANK", rank));
    PROA_TRY(put("PADDLE_TRAINER_ID", rank));
    int log = j->logs ? open_log(j, rank) : -1;
    if (j->logs && log < 0)
        return proa_fail(PROA_ERR_IO, "launch: --log: cannot write into '%s': %s", j->logs, strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0) become(j, parent, log);
    if (log >= 0) close(log);
    if (child < 0)
        return proa_fail(PROA_ERR_UNAVAILABLE, "launch: no process for rank %d: %s", rank, strerror(errno));
    j->children[rank] = child;
    return PROA_OK;
}

/* ---- all ranks ------------------------------------------------------------------------- */

static void tell_all(const job *j, int number)
{
    for (int64_t i = 0; i < j->ranks; i++)
        if (j->children[i]) kill(j->children[i], number);
}

/* Reaps one child that ended; returns its rank, or −1 if none did. */
static int reap(job *j, int *status)
{
    pid_t child = waitpid(-1, status, WNOHANG);
    for (int i = 0; child > 0 && i < j->ranks; i++)
        if (j->children[i] == child) {
            j->children[i] = 0;
            return i;
        }
    return -1;
}

static int64_t running(const job *j)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->ranks; i++) n += j->children[i] != 0;
    return n;
}

/* Ends the ranks that still run: SIGTERM, and SIGKILL after GRACE seconds. */
static void end_all(job *j)
{
    int status;
    tell_all(j, SIGTERM);
    for (double until = now() + GRACE; running(j) && now() < until;)
        if (reap(j, &status) < 0) sigtimedwait(&j->watched, NULL, &(struct timespec){.tv_nsec = 50000000});
    tell_all(j, SIGKILL);
    for (int64_t i = 0; i < j->ranks; i++)
        if (j->children[i]) waitpid(j->children[i], &status, 0);
    memset(j->children, 0, sizeof j->children);
}

/* Waits for all ranks; the first that fails is an error. */
static proa_status watch(job *j)
{
    int status;
    while (running(j)) {
        int rank = reap(j, &status);
        if (rank >= 0 && WIFSIGNALED(status))
            return proa_fail(PROA_ERR_UNAVAILABLE, "launch: rank %d was ended by signal %d (%s)", rank,
                             WTERMSIG(status), strsignal(WTERMSIG(status)));
        if (rank >= 0 && WEXITSTATUS(status))
            return proa_fail(PROA_ERR_UNAVAILABLE, "launch: rank %d ended with exit status %d", rank,
                             WEXITSTATUS(status));
        if (rank >= 0) continue;
        int number = sigtimedwait(&j->watched, NULL, &(struct timespec){.tv_sec = 1});
        if (number == SIGTERM || number == SIGINT) {
            j->signal = number;
            return proa_fail(PROA_ERR_UNAVAILABLE, "launch: ended by signal %d (%s)", number,
                             strsignal(number));
        }
    }
    return PROA_OK;
}

static proa_status run_once(job *j, int64_t incarnation)
{
    char text[96];
    snprintf(text, sizeof text, "launch/%lld/%s", (long long)incarnation, j->token);
    int port = proa_store_serve("127.0.0.1", 0, text);
    if (port < 0) return proa_error();
    snprintf(text, sizeof text, "tcp://127.0.0.1:%d", port);
    proa_status status = put("PROA_SIZE", j->ranks);
    if (status == PROA_OK) status = put("PADDLE_TRAINERS_NUM", j->ranks);
    if (status == PROA_OK) status = put("PROA_INCARNATION", incarnation);
    if (setenv("PROA_STORE", text, 1) || setenv("PROA_TOKEN", j->token, 1) ||
        setenv("PROA_JOB", "launch", 1) || setenv("PROA_STORE_SERVED", "1", 1))
        status = proa_fail(PROA_ERR_OUT_OF_MEMORY, "launch: no memory for the environment");
    for (int rank = 0; status == PROA_OK && rank < j->ranks; rank++) status = start(j, rank);
    if (status == PROA_OK) status = watch(j);
    end_all(j);
    proa_store_stop();
    return status;
}

static proa_status run_all(job *j)
{
    for (int64_t incarnation = 0;; incarnation++) {
        proa_status status = run_once(j, incarnation);
        if (status == PROA_OK || j->signal || incarnation >= j->restarts) return status;
        fprintf(stderr, "%s; starting all ranks again (%lld of %lld)\n", proa_error_message(),
                (long long)incarnation + 1, (long long)j->restarts);
        proa_clear_error();
    }
}

/* ---- the command ----------------------------------------------------------------------- */

static proa_status read_options(cli_args *a, job *j)
{
    cli_kind kind;
    j->ranks = sysconf(_SC_NPROCESSORS_ONLN);
    while ((kind = cli_next(a)) == CLI_OPTION) {
        if (cli_is(a, "ranks")) PROA_TRY(cli_int(a, 1, &j->ranks));
        else if (cli_is(a, "restarts")) PROA_TRY(cli_int(a, 0, &j->restarts));
        else if (cli_is(a, "log")) PROA_TRY(cli_value(a, &j->logs));
        else return cli_unknown(a);
    }
    if (kind == CLI_END)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "launch: expected a program: proa --help shows the form");
    if (j->ranks > MAX_RANKS)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--ranks: %lld; at most %d are possible",
                         (long long)j->ranks, MAX_RANKS);
    if (j->logs && mkdir(j->logs, 0777) != 0 && errno != EEXIST)
        return proa_fail(PROA_ERR_IO, "--log: cannot make '%s': %s", j->logs, strerror(errno));
    j->program = a->at + a->next - 1;
    return PROA_OK;
}

static proa_status make_token(job *j)
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return proa_fail(PROA_ERR_UNAVAILABLE, "launch: the system gives no random numbers: %s",
                         strerror(errno));
    for (size_t i = 0; i < sizeof random; i++) snprintf(j->token + 2 * i, 3, "%02x", random[i]);
    return PROA_OK;
}

int cli_launch(cli_args *a)
{
    job *j = cli_alloc(sizeof *j);
    if (!j || read_options(a, j) != PROA_OK || make_token(j) != PROA_OK) return CLI_FAILED;
    sigemptyset(&j->watched);
    sigaddset(&j->watched, SIGCHLD);
    sigaddset(&j->watched, SIGTERM);
    sigaddset(&j->watched, SIGINT);
    pthread_sigmask(SIG_BLOCK, &j->watched, &j->before);
    proa_status status = run_all(j);
    pthread_sigmask(SIG_SETMASK, &j->before, NULL);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
