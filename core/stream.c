/* The thread's current stream (each thread has one, on the device that it has chosen), proa_synchronize,
 * which waits for that device's work, and events in a device's work. May use core only. */
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

struct proa_mark {
    const proa_device_table *device;
    void *event; /* NULL: the device has no events */
};

proa_mark *proa_mark_new(const char *device)
{
    int id = proa_device_find("mark", device);
    proa_mark *m = id < 0 ? NULL : proa__alloc(sizeof *m);
    if (!m) return NULL;
    *m = (proa_mark){.device = proa__device(id)};
    if (m->device->mark && !(m->event = m->device->mark(m->device->context))) {
        proa__free(m);
        return NULL;
    }
    return m;
}

int proa_mark_done(proa_mark *m, bool wait)
{
    const proa_device_table *d = m->device;
    if (m->event) return d->mark_done(d->context, m->event, wait);
    return d->synchronize && d->synchronize(d->context) != PROA_OK ? -1 : 1;
}

void proa_mark_free(proa_mark *m)
{
    if (!m) return;
    if (m->event) m->device->mark_free(m->device->context, m->event);
    proa__free(m);
}
