/* Calls of a group in order: one queue for collectives, one a peer and direction for messages between two
 * ranks, each with a thread once it is needed. May use core and ops. */
#ifndef PROA_DIST_TASK_H
#define PROA_DIST_TASK_H

#include "dist/engine.h"

#include <proa/dist.h>

typedef struct proa__queues proa__queues;
/* NULL with an error. */
proa__queues *proa__queues_new(int size);
/* Waits for what is under way and ends the threads. */
void proa__queues_free(proa__queues *q);

/* A queue's number: the collectives' one, then sends to each rank of the group, then receives from each. */
enum { PROA__COLLECTIVES, PROA__SENDS };
/* Waits until the queue is idle, and holds it: calls of the engine are made between the two. */
struct proa__queue *proa__queues_enter(const proa__ring *ring, int number);
void proa__queue_leave(struct proa__queue *q);

/* This rank has left out a call that the others make: their calls would pair up with its later ones, so that
 * each of these fails. */
void proa__ring_part(const proa__ring *ring);
/* BAD_STATE after proa__ring_part. */
proa_status proa__ring_check(const proa__ring *ring);
/* Parts from the others if `status`, a call's, says that there was no memory for it. Returns it. */
proa_status proa__ring_note(const proa__ring *ring, proa_status status);

/* Runs `message` on the calling thread. */
proa_status proa__message_run(const proa_message *message);
/* Fails if the message does not fit its group. Fills in the world's group. */
proa_status proa__message_check(proa_message *message);

#endif
