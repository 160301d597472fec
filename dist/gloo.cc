/* Collectives between hosts through Gloo, the only C++ of the CPU library. Wraps Gloo contexts as an engine,
 * exchanges addresses through the job's store, and turns Gloo's exceptions into errors. May use core and
 * Gloo. */
/* functions of the public headers leave out members of options, as C programs do */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include "dist/engine.h"
#include "dist/reduce.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" {
void *proa__alloc(size_t bytes);
void proa__free(void *p);
}

namespace
{

/* Throws if the status is an error (which is already set), to unwind Gloo's frames. */
void check(proa_status status)
{
    if (status != PROA_OK) throw std::runtime_error(proa_error_message());
}

bool contains(const std::exception &e, const char *text) { return std::strstr(e.what(), text) != nullptr; }

/* A Gloo context in which every two ranks are connected. gloo::rendezvous::Context is not used: it waits five
 * times the timeout for each connection, and fails where a route is down for a moment. */
class Mesh : public gloo::Context
{
  public:
    Mesh(int own, int ranks, std::chrono::milliseconds timeout) : gloo::Context(own, ranks)
    {
        setTimeout(timeout);
    }

    void connect(const proa__engine_setup *setup, std::shared_ptr<gloo::transport::Device> device)
    {
        device_ = std::move(device);
        transportContext_ = device_->createContext(rank, size);
        /* a pair waits for its connection five times the timeout that it was made with; 0 is for ever */
        transportContext_->setTimeout(std::max(getTimeout() / 5, std::chrono::milliseconds(1)));
        until_ = proa__monotonic() + setup->timeout;
        const std::string prefix = std::string(setup->prefix) + "/gloo/";
        publish(setup->store, prefix + std::to_string(rank));
        for (int r = 0; r < size; r++)
            if (r != rank) reach(r, address_at(r, setup->store, prefix + std::to_string(r)));
        transportContext_->setTimeout(getTimeout());
    }

  private:
    /* Writes the addresses at which the pairs to the other ranks listen, in the order of ranks. */
    void publish(proa__store *store, const std::string &key)
    {
        std::vector<char> all;
        for (int r = 0; r < size; r++) {
            if (r == rank) continue;
            const std::vector<char> one = transportContext_->createPair(r)->address().bytes();
            all.insert(all.end(), one.begin(), one.end());
        }
        check(proa__store_set(store, key.c_str(), all.data(), all.size()));
    }

    /* The address for this rank among those that `owner` has written. */
    std::vector<char> address_at(int owner, proa__store *store, const std::string &key) const
    {
        char *value = nullptr;
        size_t bytes = 0;
        const double left = std::max(until_ - proa__monotonic(), 0.001);
        check(proa__store_get(store, key.c_str(), left, &value, &bytes));
        const size_t each = bytes / static_cast<size_t>(size - 1); /* none is the owner's own */
        const char *at = value + each * static_cast<size_t>(rank > owner ? rank - 1 : rank);
        std::vector<char> address(at, at + each);
        proa__free(value);
        return address;
    }

    void reach(int peer, const std::vector<char> &address)
    {
        for (;;) {
            try {
                getPair(peer)->connect(address);
                return;
            } catch (const gloo::IoException &e) {
                const bool unreachable =
                    contains(e, std::strerror(EHOSTUNREACH)) || contains(e, std::strerror(ENETUNREACH));
                if (!unreachable || proa__monotonic() > until_) throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            transportContext_->createPair(peer); /* in place of the one that failed */
        }
    }

    double until_ = 0;
};

struct gloo_group {
    std::shared_ptr<Mesh> context;
    proa__store *store = nullptr;
    std::chrono::milliseconds timeout{0};
    uint32_t tag = 0; /* collectives are called in the same order everywhere, so a counter tells them apart */
    /* number of sends to and receives from each rank, as tags */
    std::vector<uint32_t> sent, received;
    /* the error that made the group unusable: calls that are queued behind it do not wait again */
    std::mutex lock;
    proa_status failed = PROA_OK;
    std::string failure;
};

gloo_group &of(proa__ring *g) { return *static_cast<gloo_group *>(g->context); }

/* Names the members that left, died or are silent, for an error's text. */
std::string missing(proa__ring *g)
{
    std::string text;
    for (int r = 0; r < g->size; r++) {
        proa__life life = proa__store_life(of(g).store, proa__global_rank(g, r));
        if (life == PROA__LIFE_HERE) continue;
        text += (text.empty() ? "rank " : ", rank ") + std::to_string(proa__global_rank(g, r)) + " " +
                proa__life_text(life);
    }
    if (!text.empty()) return text;
    const char *silent = proa__store_silent(of(g).store);
    return *silent ? std::string("no sign of life from rank ") + silent : "is every rank calling it?";
}

/* Sets the error that an earlier call of the group left, if any. */
proa_status failed_before(gloo_group &group, const char *what)
{
    const std::lock_guard<std::mutex> hold(group.lock);
    if (group.failed == PROA_OK) return PROA_OK;
    return proa_fail(group.failed, "%s: the group cannot be used any more, because of: %s", what,
                     group.failure.c_str());
}

proa_status give_up(proa__ring *g, proa_status status)
{
    gloo_group &group = of(g);
    const std::lock_guard<std::mutex> hold(group.lock);
    if (group.failed == PROA_OK) group.failure = proa_error_message();
    group.failed = status;
    return status;
}

template <typename Body> proa_status guarded(proa__ring *g, const char *what, Body body)
{
    if (failed_before(of(g), what) != PROA_OK) return proa_error();
    try {
        body();
        return PROA_OK;
    } catch (const std::bad_alloc &) {
        return proa_fail(PROA_ERR_OUT_OF_MEMORY, "%s: no memory for a copy of the tensor", what);
    } catch (const std::exception &e) {
        if (proa_error()) return proa_error();
        /* Gloo has no type for timeouts: recognized by the message */
        const bool late = contains(e, "imed out") || contains(e, "imeout");
        const std::string who = missing(g);
        return give_up(g, proa_fail(late ? PROA_ERR_TIMEOUT : PROA_ERR_UNAVAILABLE,
                                    "%s: a process of the group did not answer: %s (%s)", what, who.c_str(),
                                    e.what()));
    } catch (...) {
        return give_up(g, proa_fail(PROA_ERR_UNAVAILABLE, "%s: the group failed", what));
    }
}

struct wide {
    uint64_t lo, hi;
};

/* Gives Gloo the output with an integer type of `item` bytes: only the reduce function interprets
 * elements. */
template <typename Options> void set_output(Options &options, void *data, size_t count, size_t item)
{
    switch (item) {
    case 1: options.setOutput(static_cast<uint8_t *>(data), count); break;
    case 2: options.setOutput(static_cast<uint16_t *>(data), count); break;
    case 4: options.setOutput(static_cast<uint32_t *>(data), count); break;
    case 8: options.setOutput(static_cast<uint64_t *>(data), count); break;
    default: options.setOutput(static_cast<wide *>(data), count); break;
    }
}

/* The arithmetic of a reduction by Gloo: float16 and bfloat16 are converted to float32, and an average is a
 * sum that finish() divides, so that both are rounded once. */
struct arithmetic {
    proa_dtype dtype;
    proa_reduce_type op;
    std::vector<float> wider; /* half types: the elements in float32 */
    bool half;

    arithmetic(const void *data, int64_t count, proa_dtype d, proa_reduce_type o)
        : dtype(d), op(o == PROA_REDUCE_TYPE_AVG ? PROA_REDUCE_TYPE_SUM : o),
          half(d == PROA_F16 || d == PROA_BF16)
    {
        if (!half) return;
        wider.resize(static_cast<size_t>(count));
        proa__half_to_float(wider.data(), data, wider.size(), d);
        dtype = PROA_F32;
    }
    void *data(void *given) { return half ? wider.data() : given; }
    std::function<void(void *, const void *, const void *, size_t)> function() const
    {
        const proa_dtype d = dtype;
        const proa_reduce_type o = op;
        return [d, o](void *out, const void *a, const void *b, size_t n) {
            if (out == b) std::swap(a, b);
            const void *in[2] = {a, b};
            proa__reduce_buffers(out, in, 2, n, d, o, 1);
        };
    }
    /* Divides for an average, and converts float32 sums back to the half type in `given`. */
    void finish(void *given, int64_t count, proa_dtype d, proa_reduce_type wanted, int ranks)
    {
        const auto n = static_cast<size_t>(count);
        if (wanted == PROA_REDUCE_TYPE_AVG) {
            const void *in[1] = {data(given)};
            proa__reduce_buffers(data(given), in, 1, n, dtype, PROA_REDUCE_TYPE_AVG, ranks);
        }
        if (half) proa__float_to_half(given, wider.data(), n, d);
    }
};

proa_status gloo_all_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype, proa_reduce_type op)
{
    proa_status status = proa__reduce_check("all_reduce", dtype, op);
    if (status != PROA_OK || count == 0) return status;
    return guarded(g, "all_reduce", [&] {
        arithmetic a(data, count, dtype, op);
        gloo::AllreduceOptions options(of(g).context);
        set_output(options, a.data(data), static_cast<size_t>(count), proa_dtype_size(a.dtype));
        options.setReduceFunction(a.function());
        options.setTag(of(g).tag++);
        gloo::allreduce(options);
        a.finish(data, count, dtype, op, g->size);
    });
}

proa_status gloo_reduce(proa__ring *g, void *data, int64_t count, proa_dtype dtype, proa_reduce_type op,
                        int root)
{
    proa_status status = proa__reduce_check("reduce", dtype, op);
    if (status != PROA_OK || count == 0) return status;
    return guarded(g, "reduce", [&] {
        arithmetic a(data, count, dtype, op);
        const size_t item = proa_dtype_size(a.dtype), n = static_cast<size_t>(count);
        /* Gloo writes intermediate sums to the output of non-roots, whose data must not change */
        std::vector<char> scratch(a.half || g->rank == root ? 0 : n * item);
        if (!scratch.empty()) std::memcpy(scratch.data(), data, scratch.size());
        gloo::ReduceOptions options(of(g).context);
        set_output(options, scratch.empty() ? a.data(data) : scratch.data(), n, item);
        options.setRoot(root);
        options.setReduceFunction(a.function());
        options.setTag(of(g).tag++);
        gloo::reduce(options);
        if (g->rank == root) a.finish(data, count, dtype, op, g->size);
    });
}

proa_status gloo_broadcast(proa__ring *g, void *data, size_t bytes, int root)
{
    if (bytes == 0) return PROA_OK;
    return guarded(g, "broadcast", [&] {
        gloo::BroadcastOptions options(of(g).context);
        options.setOutput(static_cast<uint8_t *>(data), bytes);
        options.setRoot(root);
        options.setTag(of(g).tag++);
        gloo::broadcast(options);
    });
}

proa_status gloo_all_gather(proa__ring *g, const void *in, void *out, size_t bytes_each)
{
    if (bytes_each == 0) return PROA_OK;
    return guarded(g, "all_gather", [&] {
        gloo::AllgatherOptions options(of(g).context);
        options.setInput(const_cast<uint8_t *>(static_cast<const uint8_t *>(in)), bytes_each);
        options.setOutput(static_cast<uint8_t *>(out), bytes_each * static_cast<size_t>(g->size));
        options.setTag(of(g).tag++);
        gloo::allgather(options);
    });
}

proa_status gloo_scatter(proa__ring *g, const void *in, void *out, size_t bytes_each, int root)
{
    if (bytes_each == 0) return PROA_OK;
    return guarded(g, "scatter", [&] {
        gloo::ScatterOptions options(of(g).context);
        std::vector<uint8_t *> parts;
        auto *at = const_cast<uint8_t *>(static_cast<const uint8_t *>(in));
        for (int r = 0; g->rank == root && r < g->size; r++)
            parts.push_back(at + static_cast<size_t>(r) * bytes_each);
        if (!parts.empty()) options.setInputs(parts, bytes_each);
        options.setOutput(static_cast<uint8_t *>(out), bytes_each);
        options.setRoot(root);
        options.setTag(of(g).tag++);
        gloo::scatter(options);
    });
}

proa_status gloo_all_to_all(proa__ring *g, const void *in, const size_t *in_bytes, void *out,
                            const size_t *out_bytes)
{
    return guarded(g, "all_to_all", [&] {
        gloo::AlltoallvOptions options(of(g).context);
        const std::vector<int64_t> from(in_bytes, in_bytes + g->size), to(out_bytes, out_bytes + g->size);
        options.setInput(const_cast<uint8_t *>(static_cast<const uint8_t *>(in)), from);
        options.setOutput(static_cast<uint8_t *>(out), to);
        options.setTag(of(g).tag++);
        gloo::alltoallv(options);
    });
}

/* Reduce-scatter as an all-to-all and a local reduction: a rank sends (size − 1) parts, the minimum. */
proa_status gloo_reduce_scatter(proa__ring *g, const void *in, void *out, int64_t count_each,
                                proa_dtype dtype, proa_reduce_type op)
{
    proa_status status = proa__reduce_check("reduce_scatter", dtype, op);
    if (status != PROA_OK || count_each == 0) return status;
    try {
        const auto ranks = static_cast<size_t>(g->size);
        const size_t bytes = static_cast<size_t>(count_each) * proa_dtype_size(dtype);
        const std::vector<size_t> each(ranks, bytes);
        std::vector<char> parts(ranks * bytes);
        status = gloo_all_to_all(g, in, each.data(), parts.data(), each.data());
        std::vector<const void *> from;
        for (size_t r = 0; r < ranks; r++) from.push_back(parts.data() + r * bytes);
        if (status == PROA_OK)
            proa__reduce_buffers(out, from.data(), g->size, static_cast<size_t>(count_each), dtype, op,
                                 g->size);
        return status;
    } catch (const std::exception &) {
        return proa_fail(PROA_ERR_OUT_OF_MEMORY, "reduce_scatter: no memory for the ranks' parts");
    }
}

/* Slot number of a pair's message; bit 62 separates it from the slots of collectives. */
uint64_t pair_slot(uint32_t count) { return (uint64_t(1) << 62) | count; }

proa_status gloo_send(proa__ring *g, const void *data, size_t bytes, int peer)
{
    return guarded(g, "send", [&] {
        gloo_group &group = of(g);
        uint8_t none = 0;
        auto buffer =
            group.context->createUnboundBuffer(bytes ? const_cast<void *>(data) : &none, bytes ? bytes : 1);
        buffer->send(peer, pair_slot(group.sent[static_cast<size_t>(peer)]++));
        buffer->waitSend(group.timeout);
    });
}

proa_status gloo_recv(proa__ring *g, void *data, size_t bytes, int peer)
{
    return guarded(g, "recv", [&] {
        gloo_group &group = of(g);
        uint8_t none = 0;
        auto buffer = group.context->createUnboundBuffer(bytes ? data : &none, bytes ? bytes : 1);
        buffer->recv(peer, pair_slot(group.received[static_cast<size_t>(peer)]++));
        buffer->waitRecv(group.timeout);
    });
}

proa_status gloo_barrier(proa__ring *g)
{
    return guarded(g, "barrier", [&] {
        gloo::BarrierOptions options(of(g).context);
        options.setTag(of(g).tag++);
        gloo::barrier(options);
    });
}

void gloo_close(proa__ring *g)
{
    delete static_cast<gloo_group *>(g->context);
    g->context = nullptr;
}

proa__engine make_engine()
{
    proa__engine e = {};
    e.name = "gloo";
    e.all_reduce = gloo_all_reduce;
    e.reduce = gloo_reduce;
    e.reduce_scatter = gloo_reduce_scatter;
    e.broadcast = gloo_broadcast;
    e.all_gather = gloo_all_gather;
    e.scatter = gloo_scatter;
    e.all_to_all = gloo_all_to_all;
    e.send = gloo_send;
    e.recv = gloo_recv;
    e.barrier = gloo_barrier;
    e.close = gloo_close;
    return e;
}
const proa__engine engine = make_engine();

} // namespace

extern "C" proa_status proa__gloo_open(proa__ring *g, const proa__engine_setup *setup)
{
    auto *made = new (std::nothrow) gloo_group;
    if (!made) return proa_fail(PROA_ERR_OUT_OF_MEMORY, "gloo: no memory for the group");
    made->store = setup->store;
    g->context = made;
    proa_status status = guarded(g, "connect", [&] {
        const auto ranks = static_cast<size_t>(g->size);
        made->timeout = std::chrono::milliseconds(static_cast<int64_t>(setup->timeout * 1000));
        made->sent.resize(ranks);
        made->received.resize(ranks);
        gloo::transport::tcp::attr attr;
        if (setup->interface) attr.iface = setup->interface;
        else attr.hostname = proa__store_address(setup->store);
        made->context = std::make_shared<Mesh>(g->rank, g->size, made->timeout);
        made->context->connect(setup, gloo::transport::tcp::CreateDevice(attr));
    });
    if (status == PROA_OK) g->engine = &engine;
    else gloo_close(g);
    return status;
}
