/* A process's place in its job: what is read from each launcher's variables, which of them count, and what is
 * missing or wrong. */
#define _GNU_SOURCE
#include "core/internal.h"
#include "dist/job.h"
#include "suite.h"

#include <proa.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes "NAME=value NAME=value" the environment. */
static void environment(const char *text)
{
    char all[512], *rest = NULL;
    clearenv();
    ck_assert_uint_lt(strlen(text), sizeof all);
    for (char *one = strtok_r(strcpy(all, text), " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(one, '=');
        *equals = 0;
        setenv(one, equals + 1, 1);
    }
}

typedef struct place {
    const char *variables;
    int rank, size;
    const char *host; /* or folder */
    int port;
    const char *token;
} place;

static const place places[] = {
    {"PROA_SIZE=3 PROA_RANK=2 PROA_STORE=/a/folder PROA_JOB=j", 2, 3, "/a/folder", 0, "j/0/"},
    {"PROA_SIZE=3 PROA_RANK=0 PROA_STORE=tcp://10.0.0.1:99 PROA_INCARNATION=4 PROA_TOKEN=s", 0, 3, "10.0.0.1",
     99, "job/4/s"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_TRAINER_ENDPOINTS=a:1,b:2", 1, 2, "a", 1, "job/0/"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_TRAINER_ENDPOINTS=a:1,b:2 PADDLE_MASTER=m:7 "
     "PADDLE_JOB_ID=p",
     1, 2, "m", 7, "p/0/"},
    {"WORLD_SIZE=4 RANK=3 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_RUN_ID=r "
     "TORCHELASTIC_RESTART_COUNT=2",
     3, 4, "h", 29500, "r/2/"},
    /* the agent's own store has the port */
    {"WORLD_SIZE=4 RANK=3 MASTER_ADDR=h MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True", 3, 4, "h",
     29501, "job/0/"},
    {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=h MASTER_PORT=5",
     1, 4, "h", 5, "job/0/"},
    {"PMI_SIZE=4 PMI_RANK=1 MASTER_ADDR=h MASTER_PORT=5", 1, 4, "h", 5, "job/0/"},
    {"SLURM_STEP_ID=3 SLURM_JOB_ID=40017 SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_STEP_NODELIST=node[01-04,07],x",
     5, 8, "node01", 10017, "40017/3/"},
    {"SLURM_STEP_ID=0 SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=rack[2-3]n-[5,7]", 0,
     2, "rack2n-5", 10001, "1/0/"},
    {"SLURM_STEP_ID=0 SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=gpu-a,gpu-b", 0, 2,
     "gpu-a", 10001, "1/0/"},
    /* the first launcher of the list counts, and PROA_STORE before other addresses */
    {"WORLD_SIZE=4 RANK=3 PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PROA_STORE=/f MASTER_ADDR=h "
     "MASTER_PORT=5",
     1, 2, "/f", 0, "job/0/"},
    /* sbatch alone sets SLURM_NTASKS, too; one rank needs no address */
    {"SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_JOB_ID=7", 0, 1, "", 0, "job/0/"},
    {"PADDLE_TRAINERS_NUM=1 PADDLE_TRAINER_ID=0", 0, 1, "", 0, "job/0/"},
};

START_TEST(launchers)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const place *p = &places[i];
        proa__job job;
        environment(p->variables);
        ck_assert_msg(proa__job_read(&job, &(proa_dist_opts){0}) == PROA_OK, "%s: %s", p->variables,
                      proa_error_message());
        const char *at = job.host[0] ? job.host : job.folder;
        ck_assert_msg(job.rank == p->rank && job.size == p->size, "%s: rank %d of %d", p->variables, job.rank,
                      job.size);
        ck_assert_msg(strcmp(at, p->host) == 0 && job.port == p->port, "%s: %s:%d", p->variables, at,
                      job.port);
        ck_assert_msg(strcmp(job.token, p->token) == 0, "%s: token %s", p->variables, job.token);
        ck_assert_double_eq(job.timeout, 300);
    }
}
END_TEST

/* mpirun on one host says no address: its process number makes the port. */
START_TEST(ranks_of_one_host)
{
    proa__job job;
    environment("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2");
    ck_assert_int_eq(proa__job_read(&job, &(proa_dist_opts){0}), PROA_OK);
    ck_assert_str_eq(job.host, "127.0.0.1");
    ck_assert_int_eq(job.port, 10000 + (int)(getppid() % 20000));
}
END_TEST

START_TEST(options_come_first)
{
    proa__job job;
    environment("PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_MASTER=m:7 PADDLE_JOB_ID=p "
                "PADDLE_PG_TIMEOUT=2500 GLOO_SOCKET_IFNAME=eth7");
    ck_assert_int_eq(proa__job_read(&job, &(proa_dist_opts){0}), PROA_OK);
    ck_assert_double_eq(job.timeout, 2.5);
    ck_assert_str_eq(job.interface, "eth7");
    setenv("PROA_TIMEOUT", "9", 1);
    setenv("PROA_INTERFACE", "eth8", 1);
    ck_assert_int_eq(proa__job_read(&job, &(proa_dist_opts){.store = "tcp://[::1]:5", .job = "given"}),
                     PROA_OK);
    ck_assert_double_eq(job.timeout, 9);
    ck_assert_str_eq(job.interface, "eth8");
    ck_assert(strcmp(job.host, "::1") == 0 && job.port == 5);
    ck_assert_str_eq(job.token, "given/0/");
    proa_dist_opts all = {.store = "/f", .rank = 4, .size = 6, .timeout = 3, .interface = "lo"};
    ck_assert_int_eq(proa__job_read(&job, &all), PROA_OK);
    ck_assert(job.rank == 4 && job.size == 6 && job.timeout == 3 && strcmp(job.interface, "lo") == 0);
}
END_TEST

static const char *const wrong[][2] = {
    {"PADDLE_TRAINERS_NUM=two PADDLE_TRAINER_ID=1", "PADDLE_TRAINERS_NUM is two; expected a number"},
    {"PADDLE_TRAINERS_NUM=2", "PADDLE_TRAINER_ID is not set"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=2 PADDLE_MASTER=m:7", "rank 2 of 2"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1", "need a place to meet"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_MASTER=m",
     "PADDLE_MASTER is \"m\"; expected host:port"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_MASTER=m:0", "expected host:port"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_MASTER=m:65536", "expected host:port"},
    {"PROA_SIZE=2 PROA_RANK=1 PROA_STORE=tcp://m", "expected host:port"},
    {"WORLD_SIZE=2 RANK=1 MASTER_ADDR=h MASTER_PORT=-1", "MASTER_PORT is -1"},
    {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
     "MASTER_ADDR and MASTER_PORT"},
    {"PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ID=1 PADDLE_MASTER=m:7 PROA_TIMEOUT=-3", "must be above 0"},
};

START_TEST(what_is_wrong)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        proa__job job;
        environment(wrong[i][0]);
        ck_assert_int_eq(proa__job_read(&job, &(proa_dist_opts){0}), PROA_ERR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(proa_error_message(), wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      proa_error_message());
        proa_clear_error();
    }
}
END_TEST

SUITE("dist_job", launchers, ranks_of_one_host, options_come_first, what_is_wrong)
