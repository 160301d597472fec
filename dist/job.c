/* Finds this process's rank, the number of ranks and the store's address in the options or in the environment
 * variables of launchers (Proa, Paddle, torchrun, Open MPI, PMI, Slurm). May use core. */
#define _GNU_SOURCE
#include "dist/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A launcher's environment variables, in the order of search: the first launcher whose `mark` is set
 * counts. */
typedef struct launcher {
    const char *name, *mark, *rank, *size, *local_size;
    const char *job;         /* the job's name */
    const char *incarnation; /* differs after each restart of the job */
} launcher;

static const launcher launchers[] = {
    {"Proa", "PROA_SIZE", "PROA_RANK", "PROA_SIZE", NULL, "PROA_JOB", "PROA_INCARNATION"},
    {"Paddle", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", NULL, "PADDLE_JOB_ID",
     "PROA_INCARNATION"},
    {"torchrun", "WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL},
    {"PMI", "PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", NULL, NULL},
    /* SLURM_STEP_ID is the mark, as sbatch sets SLURM_NTASKS outside of srun, too */
    {"Slurm", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS", NULL, "SLURM_JOB_ID", "SLURM_STEP_ID"},
};

static const char *variable(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    return text && *text ? text : NULL;
}

static proa_status number(const char *name, int *out)
{
    const char *text = variable(name);
    char *end = NULL;
    long v = text ? strtol(text, &end, 10) : -1;
    if (!text || *end || v < 0 || v > INT_MAX)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "dist_start: the environment's %s is %s; expected a number", name,
                         text ? text : "not set");
    *out = (int)v;
    return PROA_OK;
}

/* Parses "host:port" or "[IPv6]:port", up to a comma, into job->host and port. False if text has another
 * form. */
static bool parse_endpoint(proa__job *job, const char *text)
{
    size_t n = strcspn(text, ",");
    const char *colon = memrchr(text, ':', n);
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof job->host) return false;
    char *end = NULL;
    long port = strtol(colon + 1, &end, 10);
    if (end != text + n || port < 1 || port > 65535) return false;
    int brackets = *text == '[' && colon[-1] == ']';
    snprintf(job->host, sizeof job->host, "%.*s", (int)(colon - text) - 2 * brackets, text + brackets);
    job->port = (int)port;
    return true;
}

/* "rack[1-2]node[01-04,07],login" -> "rack1node01" */
static void first_host(const char *list, char *host, size_t n)
{
    size_t used = 0;
    bool inside = false, skipping = false; /* of brackets, all but the first number */
    for (const char *c = list; *c && (inside || *c != ',') && used + 1 < n; c++) {
        if (*c == '[' || *c == ']') {
            inside = *c == '[';
            skipping = false;
            continue;
        }
        skipping = skipping || (inside && (*c == '-' || *c == ','));
        if (!skipping) host[used++] = *c;
    }
    host[used] = 0;
}

static proa_status bad_endpoint(const char *name, const char *text)
{
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dist_start: %s is \"%s\"; expected host:port", name, text);
}

/* Parses the store's address: tcp://host:port, or a folder in which rank 0 writes its address. */
static proa_status meet_at(proa__job *job, const char *store)
{
    if (strncmp(store, "tcp://", 6) == 0) {
        if (!parse_endpoint(job, store + 6)) return bad_endpoint("the store", store);
        return PROA_OK;
    }
    if (strlen(store) >= sizeof job->folder)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dist_start: the store's path is too long");
    snprintf(job->folder, sizeof job->folder, "%s", store);
    return PROA_OK;
}

static proa_status find_meeting_place(proa__job *job, const launcher *by)
{
    const char *text = variable("PROA_STORE");
    if (text) {
        job->served = variable("PROA_STORE_SERVED") != NULL;
        return meet_at(job, text);
    }
    if ((text = variable("MASTER_ADDR")) && variable("MASTER_PORT")) {
        snprintf(job->host, sizeof job->host, "%s", text);
        PROA_TRY(number("MASTER_PORT", &job->port));
        /* torchrun's agent uses that port for its own store: take the next */
        text = variable("TORCHELASTIC_USE_AGENT_STORE");
        if (text && strcmp(text, "True") == 0) job->port++;
        return PROA_OK;
    }
    static const char *const endpoints[] = {"PADDLE_MASTER", "PADDLE_TRAINER_ENDPOINTS"};
    for (int i = 0; i < 2; i++)
        if ((text = variable(endpoints[i])))
            return parse_endpoint(job, text) ? PROA_OK : bad_endpoint(endpoints[i], text);
    if (by && strcmp(by->name, "Slurm") == 0 && (text = variable("SLURM_STEP_NODELIST"))) {
        int id = 0;
        first_host(text, job->host, sizeof job->host);
        PROA_TRY(number("SLURM_JOB_ID", &id));
        job->port = 10000 + id % 20000;
        return PROA_OK;
    }
    int local = 0;
    if (by && variable(by->local_size)) PROA_TRY(number(by->local_size, &local));
    if (local == job->size) { /* all ranks are children of one process of this host */
        snprintf(job->host, sizeof job->host, "127.0.0.1");
        job->port = 10000 + (int)(getppid() % 20000);
        return PROA_OK;
    }
    return proa_fail(
        PROA_ERR_INVALID_ARGUMENT,
        "dist_start: %d ranks need a place to meet: pass .store (a folder, or tcp://host:port), or set "
        "PROA_STORE, MASTER_ADDR and MASTER_PORT, or PADDLE_TRAINER_ENDPOINTS",
        job->size);
}

static void make_token(proa__job *job, const launcher *by, const char *name)
{
    const char *secret = variable("PROA_TOKEN"), *restarts = by ? variable(by->incarnation) : NULL;
    if (!name && by) name = variable(by->job);
    snprintf(job->token, sizeof job->token, "%s/%s/%s", name ? name : "job", restarts ? restarts : "0",
             secret ? secret : "");
}

static proa_status read_timeout(proa__job *job, double given)
{
    const char *seconds = variable("PROA_TIMEOUT"), *milliseconds = variable("PADDLE_PG_TIMEOUT");
    job->timeout = given > 0      ? given
                   : seconds      ? atof(seconds)
                   : milliseconds ? atof(milliseconds) / 1000
                                  : 300;
    if (job->timeout > 0) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                     "dist_start: the time-out (PROA_TIMEOUT, PADDLE_PG_TIMEOUT) must "
                     "be above 0");
}

proa_status proa__job_read(proa__job *job, const proa_dist_opts *opts)
{
    *job = (proa__job){.rank = opts->rank, .size = opts->size};
    const launcher *by = NULL;
    for (size_t i = 0; !by && i < sizeof launchers / sizeof *launchers; i++)
        if (variable(launchers[i].mark)) by = &launchers[i];
    if (job->size == 0 && by) {
        PROA_TRY(number(by->size, &job->size));
        PROA_TRY(number(by->rank, &job->rank));
    } else if (job->size == 0) {
        job->size = 1;
    }
    if (job->size < 1 || job->rank < 0 || job->rank >= job->size)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "dist_start: rank %d of %d makes no group", job->rank,
                         job->size);
    job->interface = opts->interface ? opts->interface : variable("PROA_INTERFACE");
    if (!job->interface) job->interface = variable("GLOO_SOCKET_IFNAME");
    PROA_TRY(read_timeout(job, opts->timeout));
    make_token(job, by, opts->job);
    if (job->size == 1) return PROA_OK;
    return opts->store ? meet_at(job, opts->store) : find_meeting_place(job, by);
}
