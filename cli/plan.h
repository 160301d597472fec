/* Shared by the files of `proa plan`: what is asked, a saved program as a chain of layers, speeds measured
 * here, and the page with the timeline. Uses cli.h. */
#ifndef PROA_CLI_PLAN_H
#define PROA_CLI_PLAN_H

#include "cli.h"

/* A parsed command line. */
typedef struct plan_request {
    const char *description; /* the text behind --model */
    proa_plan_model model;
    proa_plan_job job; /* data 0: what the ranks leave */
    proa_plan_machine machine;
    bool given_degrees, measure, json, weak, no_recompute;
    int64_t batch, max_micro_batch;
    int64_t *ranks, n_ranks;
    const char *timeline; /* file of the page; NULL: none */
    cli_model program;    /* saved model that --model names */
} plan_request;

/* A line of the table: a job, its prediction, and the classes that were weighed if its degrees were
 * chosen. */
typedef struct plan_row {
    int64_t ranks, batch;
    proa_plan_job job;
    proa_plan_result result;
    bool chosen; /* degrees were chosen, not given */
    proa_plan_choice choice;
} plan_row;

/* The forward ops of a saved program as a chain, for one row of its inputs; `weight` is the time that an op
 * takes on the machine. UNSUPPORTED for branches and loops. */
proa_status plan_program(plan_request *q);
/* Replaces speeds that were not given by measured ones: products of the model's sizes, a large addition,
 * and, as a rank of a job, all-reduces. Returns whether this process is to print (rank 0). */
proa_status plan_measure(plan_request *q, bool *prints);
/* Writes the page: one self-contained HTML file. */
proa_status plan_page(const plan_request *q, const plan_row *row, const char *path);

#endif
