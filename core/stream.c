/* The thread's current stream (each thread has one, on the device that it has chosen), and proa_synchronize,
 * which waits for that device's work. May use core only. */
#include "core/device.h"
#include "core/thread.h"

proa_stream *proa__stream(void)
{
    static proa_stream cpu_stream; /* never written; the CPU's stream for a thread without a struct */
    proa__thread *me = proa__me();
    if (me) return &me->stream;
    proa_fail(PROA_ERR_OUT_OF_MEMORY, "stream: no memory for this thread's stream");
    return &cpu_stream;
}

proa_status proa_synchronize(void)
{
    PROA_TRY(proa_error());
    proa_stream *stream = proa__stream();
    const proa_device_table *d = proa__device(stream->device);
    return d->synchronize ? d->synchronize(d->context) : PROA_OK;
}
