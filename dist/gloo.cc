/* The Gloo shim: the only C++ of the CPU library. Turns Gloo's contexts into C calls and its exceptions
 * into typed errors. May use proa/core.h and Gloo. */
#include "dist/gloo.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <memory>

struct proa__gloo {
    std::shared_ptr<gloo::rendezvous::Context> context;
    uint32_t tag = 0; /* collectives are called in the same order everywhere, so a counter tells them apart */
};

namespace
{

proa_status failed(const char *what, const std::exception &e)
{
    /* this Gloo says "timed out" in words alone */
    const bool late =
        std::strstr(e.what(), "imed out") != nullptr || std::strstr(e.what(), "imeout") != nullptr;
    return proa_fail(late ? PROA_ERR_TIMEOUT : PROA_ERR_UNAVAILABLE,
                     "%s: a process of the group did not answer: %s; is every rank still running?", what,
                     e.what());
}

struct wide {
    uint64_t lo, hi;
};

template <typename Body> proa_status guarded(const char *what, Body body)
{
    try {
        body();
        return PROA_OK;
    } catch (const std::exception &e) {
        return failed(what, e);
    } catch (...) {
        return proa_fail(PROA_ERR_UNAVAILABLE, "%s: the group failed", what);
    }
}

} // namespace

proa__gloo *proa__gloo_connect(const char *folder, const char *job, const char *interface, int rank, int size,
                               double timeout)
{
    proa__gloo *result = nullptr;
    guarded("dist_start", [&] {
        gloo::transport::tcp::attr attr;
        if (interface) {
            attr.iface = interface;
        } else {
            attr.hostname = "127.0.0.1";
        }
        auto device = gloo::transport::tcp::CreateDevice(attr);
        gloo::rendezvous::FileStore files(folder);
        gloo::rendezvous::PrefixStore store(job, files);
        auto made = std::make_unique<proa__gloo>();
        made->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        made->context->setTimeout(std::chrono::milliseconds(static_cast<int64_t>(timeout * 1000)));
        made->context->connectFullMesh(store, device);
        result = made.release();
    });
    return result;
}

void proa__gloo_close(proa__gloo *g) { delete g; }

proa_status proa__gloo_all_reduce(proa__gloo *g, void *data, size_t count, size_t item, proa__reduce_fn fn)
{
    return guarded("all_reduce", [&] {
        gloo::AllreduceOptions options(g->context);
        /* only the element size matters: the reduce function knows the dtype */
        switch (item) {
        case 1: options.setOutput(static_cast<uint8_t *>(data), count); break;
        case 2: options.setOutput(static_cast<uint16_t *>(data), count); break;
        case 4: options.setOutput(static_cast<uint32_t *>(data), count); break;
        case 8: options.setOutput(static_cast<uint64_t *>(data), count); break;
        default: options.setOutput(static_cast<wide *>(data), count); break;
        }
        options.setReduceFunction(fn);
        options.setTag(g->tag++);
        gloo::allreduce(options);
    });
}

proa_status proa__gloo_broadcast(proa__gloo *g, void *data, size_t bytes, int root)
{
    return guarded("broadcast", [&] {
        gloo::BroadcastOptions options(g->context);
        options.setOutput(static_cast<uint8_t *>(data), bytes);
        options.setRoot(root);
        options.setTag(g->tag++);
        gloo::broadcast(options);
    });
}

proa_status proa__gloo_all_gather(proa__gloo *g, const void *in, void *out, size_t bytes_each)
{
    return guarded("all_gather", [&] {
        gloo::AllgatherOptions options(g->context);
        options.setInput(const_cast<uint8_t *>(static_cast<const uint8_t *>(in)), bytes_each);
        options.setOutput(static_cast<uint8_t *>(out), bytes_each * static_cast<size_t>(g->context->size));
        options.setTag(g->tag++);
        gloo::allgather(options);
    });
}

proa_status proa__gloo_barrier(proa__gloo *g)
{
    return guarded("barrier", [&] {
        gloo::BarrierOptions options(g->context);
        options.setTag(g->tag++);
        gloo::barrier(options);
    });
}
