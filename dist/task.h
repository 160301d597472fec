/* Keeps a group's communication calls in order: one queue for collectives, and for each peer one for sends
 * and one for receives. A queue starts its thread at the first asynchronous call. May use core and ops. */
#ifndef PROA_DIST_TASK_H
#define PROA_DIST_TASK_H

#include "dist/engine.h"

#include <proa/dist.h>

typedef struct proa__queues proa__queues;
/* NULL with an error. */
proa__queues *proa__queues_new(int size);
/* Waits for the queued calls, ends the threads and frees the queues. */
void proa__queues_free(proa__queues *q);

/* Numbers of queues: collectives 0, sends to group rank r 1 + r, receives from r 1 + size + r. */
enum { PROA__COLLECTIVES, PROA__SENDS };
/* Waits until the queue is idle and locks it, until proa__queue_leave, for direct calls of the engine. */
struct proa__queue *proa__queues_enter(const proa__ring *ring, int number);
void proa__queue_leave(struct proa__queue *q);

/* Marks that this rank left out a call that the others make. Theirs would be matched with its later ones, so
 * that each later call on this rank fails. */
void proa__ring_part(const proa__ring *ring);
/* BAD_STATE after proa__ring_part. */
proa_status proa__ring_check(const proa__ring *ring);
/* Calls proa__ring_part if `status` is OUT_OF_MEMORY: the failed call was left out. Returns status. */
proa_status proa__ring_note(const proa__ring *ring, proa_status status);

/* Runs `message` on the calling thread, behind the work that its device had when `ready` was made
 * (NULL: behind all of it). */
proa_status proa__message_run(const proa_message *message, void *ready);
/* Marks the present end of the work of the message's device; NULL: all of it will be awaited. */
void *proa__message_mark(const proa_message *message);
void proa__message_unmark(const proa_message *message, void *mark);
/* Fails if the message does not fit its group. Fills in the world's group. */
proa_status proa__message_check(proa_message *message);

/* Waits until the task's call has ended, well or not and whatever this thread's error is: its tensors are
 * the caller's again. */
void proa__task_end(proa_task *t);
/* Waits as proa__task_end does, frees the task, and returns the call's error. */
proa_status proa__task_finish(proa_task *t);

#endif
