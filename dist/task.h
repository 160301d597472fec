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

/* Waits until the queue of collectives is idle, and holds it: calls of the engine lie between the two. */
void proa__queues_enter(proa__queues *q);
void proa__queues_leave(proa__queues *q);

/* Runs `message` on the calling thread. */
proa_status proa__message_run(const proa_message *message);
/* Fails if the message does not fit its group. Fills in the world's group. */
proa_status proa__message_check(proa_message *message);

#endif
