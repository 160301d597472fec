/* Stand-in for NCCL: ranks on one host, connected by sockets, with the interface and the order of NCCL's
 * calls. A call returns "in progress", and is queued on its stream when the asynchronous error is asked for;
 * a communicator opens likewise. A rank that ended is not noticed (PROA_EMULATE_NCCL=notices: it is), as
 * between GPUs that read each other's memory. */
#include "../nccl.h"

#include "core/half.h"
#include "cuda.h"
#undef __noinline__ /* an attribute of that name is in libstdc++'s headers */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace
{

/* Bytes to (out) or from a rank. */
struct move {
    int peer;
    bool out;
    char *at;
    size_t bytes, done;
};

struct operation {
    std::vector<move> moves;
    std::function<void()> then; // when all have moved
    std::vector<std::vector<char>> scratch;
    void *stream;
};

/* State to which queued work refers, so that it outlives the communicator. */
struct connection {
    int rank, size, listening = -1;
    std::string name;
    std::vector<int> sockets; // by rank; −1: none yet
    std::atomic<bool> aborted{false};
    std::atomic<int> error{CUDA_NCCL_OK};
    ~connection()
    {
        for (int s : sockets)
            if (s >= 0) close(s);
        if (listening >= 0) close(listening);
    }
};

/* ---- opening --------------------------------------------------------------------------- */

socklen_t address_of(const connection *c, int rank, sockaddr_un *to)
{
    *to = {};
    to->sun_family = AF_UNIX; // an abstract address (its first byte is 0): no file is left
    int n = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "proa-nccl-%s-%d", c->name.c_str(), rank);
    return socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(n));
}

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void start(connection *c)
{
    sockaddr_un a;
    socklen_t n = address_of(c, c->rank, &a);
    c->listening = new_socket();
    fcntl(c->listening, F_SETFL, O_NONBLOCK);
    if (bind(c->listening, reinterpret_cast<sockaddr *>(&a), n) != 0 || listen(c->listening, c->size) != 0)
        c->error = CUDA_NCCL_SYSTEM_ERROR;
}

void adopt(connection *c, int rank, int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    c->sockets[size_t(rank)] = fd;
}

/* Connects to lower ranks and accepts higher ones, as far as they are there; true when all are. */
bool opened(connection *c)
{
    for (int r = 0; r < c->rank; r++) {
        if (c->sockets[size_t(r)] >= 0) continue;
        sockaddr_un a;
        socklen_t n = address_of(c, r, &a);
        int fd = new_socket();
        if (connect(fd, reinterpret_cast<sockaddr *>(&a), n) == 0 &&
            send(fd, &c->rank, sizeof c->rank, MSG_NOSIGNAL) == sizeof c->rank)
            adopt(c, r, fd);
        else close(fd);
    }
    for (int fd; (fd = accept4(c->listening, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
        int rank = -1;
        bool whole =
            recv(fd, &rank, sizeof rank, MSG_WAITALL) == sizeof rank && rank > c->rank && rank < c->size;
        if (whole) adopt(c, rank, fd);
        else close(fd);
    }
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && c->sockets[size_t(r)] < 0) return false;
    return true;
}

/* ---- moving ---------------------------------------------------------------------------- */

void lost(connection *c)
{
    const char *how = getenv("PROA_EMULATE_NCCL");
    if (how && !strcmp(how, "notices")) c->error = CUDA_NCCL_REMOTE_ERROR;
}

/* Moves as much as can be moved now; true when all is. */
bool advance(connection *c, operation *o)
{
    bool all = true;
    std::vector<bool> taken(2 * size_t(c->size)); // by pair and direction: moves are in order
    for (move &m : o->moves) {
        size_t pair = 2 * size_t(m.peer) + m.out;
        if (m.done < m.bytes && !taken[pair]) {
            int fd = c->sockets[size_t(m.peer)];
            ssize_t n = m.out ? send(fd, m.at + m.done, m.bytes - m.done, MSG_NOSIGNAL)
                              : recv(fd, m.at + m.done, m.bytes - m.done, 0);
            if (n > 0) m.done += size_t(n);
            else if (n == 0 || (errno != EAGAIN && errno != EINTR)) lost(c);
        }
        if (m.done < m.bytes) taken[pair] = true, all = false;
    }
    return all;
}

} // namespace

struct cuda_nccl_comm_s {
    std::shared_ptr<connection> to;
    bool open = false;
    std::unique_ptr<operation> asked; // taken, but not queued yet
};

namespace
{

void enqueue(cuda_nccl_comm m)
{
    std::shared_ptr<operation> o = std::move(m->asked);
    emulate_poll(o->stream, [o, c = m->to] {
        if (c->aborted) return true;
        emulate_open();
        bool done = advance(c.get(), o.get());
        if (done && o->then) o->then();
        emulate_close();
        return done;
    });
}

int take(cuda_nccl_comm m, std::unique_ptr<operation> o)
{
    if (!m->open || m->asked || m->to->error) return CUDA_NCCL_INVALID_USAGE;
    m->asked = std::move(o);
    return CUDA_NCCL_IN_PROGRESS;
}

std::unique_ptr<operation> new_operation(void *stream)
{
    std::unique_ptr<operation> o(new operation());
    o->stream = stream;
    return o;
}

void add(operation *o, int peer, bool out, const void *at, size_t bytes)
{
    o->moves.push_back({peer, out, static_cast<char *>(const_cast<void *>(at)), bytes, 0});
}

/* ---- arithmetic ------------------------------------------------------------------------ */

size_t item_of(int type)
{
    static const size_t items[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type <= CUDA_NCCL_BFLOAT16 ? items[type] : 0;
}

template <class T> T combine(T a, T b, int op)
{
    switch (op) {
    case CUDA_NCCL_PROD: return T(a * b);
    case CUDA_NCCL_MAX: return a > b ? a : b;
    case CUDA_NCCL_MIN: return a < b ? a : b;
    default: return T(a + b);
    }
}

/* T: what elements are; A: what they are reduced as, to and from which they are converted. */
template <class T, class A, class From, class To>
void fold(void *out, const std::vector<const char *> &in, size_t n, int op, From from, To to)
{
    for (size_t i = 0; i < n; i++) {
        A sum = from(reinterpret_cast<const T *>(in[0])[i]);
        for (size_t r = 1; r < in.size(); r++)
            sum = combine<A>(sum, from(reinterpret_cast<const T *>(in[r])[i]), op);
        if (op == CUDA_NCCL_AVG) sum = A(sum / A(in.size()));
        static_cast<T *>(out)[i] = to(sum);
    }
}

template <class T> void fold_plain(void *out, const std::vector<const char *> &in, size_t n, int op)
{
    fold<T, T>(
        out, in, n, op, [](T v) { return v; }, [](T v) { return v; });
}

void reduce_into(void *out, const std::vector<const char *> &in, size_t n, int type, int op)
{
    switch (type) {
    case CUDA_NCCL_INT8: return fold_plain<int8_t>(out, in, n, op);
    case CUDA_NCCL_UINT8: return fold_plain<uint8_t>(out, in, n, op);
    case CUDA_NCCL_INT32: return fold_plain<int32_t>(out, in, n, op);
    case CUDA_NCCL_INT64: return fold_plain<int64_t>(out, in, n, op);
    case CUDA_NCCL_FLOAT: return fold_plain<float>(out, in, n, op);
    case CUDA_NCCL_DOUBLE: return fold_plain<double>(out, in, n, op);
    case CUDA_NCCL_HALF: return fold<uint16_t, float>(out, in, n, op, proa__f16_to_f32, proa__f32_to_f16);
    default: return fold<uint16_t, float>(out, in, n, op, proa__bf16_to_f32, proa__f32_to_bf16);
    }
}

/* Part r of `in` goes to each rank r that `wants` it; `out` becomes the reduction of all ranks' parts. */
int reduction(const void *in, size_t part, void *out, size_t count, int type, int op, bool (*wants)(int, int),
              int root, cuda_nccl_comm m, void *stream)
{
    size_t bytes = count * item_of(type);
    if (!item_of(type) || op < 0 || op > CUDA_NCCL_AVG) return CUDA_NCCL_INVALID_ARGUMENT;
    auto o = new_operation(stream);
    int me = m->to->rank, size = m->to->size;
    auto part_of = [=](int r) { return static_cast<const char *>(in) + size_t(r) * part; };
    std::vector<const char *> parts(size_t(size), part_of(me));
    for (int r = 0; r < size; r++)
        if (r != me && wants(r, root)) add(o.get(), r, true, part_of(r), bytes);
    for (int r = 0; r < size && wants(me, root); r++) {
        if (r == me) continue;
        o->scratch.emplace_back(bytes);
        parts[size_t(r)] = o->scratch.back().data();
        add(o.get(), r, false, parts[size_t(r)], bytes);
    }
    if (wants(me, root)) o->then = [=] { reduce_into(out, parts, count, type, op); };
    return take(m, std::move(o));
}

/* ---- NCCL's functions ------------------------------------------------------------------- */

bool all(int, int) { return true; }
bool the_root(int rank, int root) { return rank == root; }

int all_reduce(const void *in, void *out, size_t n, int type, int op, cuda_nccl_comm m, void *stream)
{
    return reduction(in, 0, out, n, type, op, all, 0, m, stream);
}
int reduce(const void *in, void *out, size_t n, int type, int op, int root, cuda_nccl_comm m, void *stream)
{
    return reduction(in, 0, out, n, type, op, the_root, root, m, stream);
}
int reduce_scatter(const void *in, void *out, size_t n, int type, int op, cuda_nccl_comm m, void *stream)
{
    return reduction(in, n * item_of(type), out, n, type, op, all, 0, m, stream);
}

int broadcast(const void *in, void *out, size_t n, int type, int root, cuda_nccl_comm m, void *stream)
{
    auto o = new_operation(stream);
    size_t bytes = n * item_of(type);
    for (int r = 0; r < m->to->size && m->to->rank == root; r++)
        if (r != root) add(o.get(), r, true, in, bytes);
    if (m->to->rank != root) add(o.get(), root, false, out, bytes);
    return take(m, std::move(o));
}

int all_gather(const void *in, void *out, size_t n, int type, cuda_nccl_comm m, void *stream)
{
    auto o = new_operation(stream);
    size_t bytes = n * item_of(type);
    for (int r = 0; r < m->to->size; r++) {
        char *to = static_cast<char *>(out) + size_t(r) * bytes;
        if (r == m->to->rank) {
            o->then = [=] { memmove(to, in, bytes); };
            continue;
        }
        add(o.get(), r, true, in, bytes);
        add(o.get(), r, false, to, bytes);
    }
    return take(m, std::move(o));
}

/* A thread's sends and receives between GroupStart and GroupEnd. */
thread_local std::unique_ptr<operation> grouped;
thread_local cuda_nccl_comm grouped_on;
thread_local bool grouping;

int pair(bool out, const void *at, size_t bytes, int peer, cuda_nccl_comm m, void *stream)
{
    if (!grouping && peer == m->to->rank) return CUDA_NCCL_INVALID_USAGE;
    auto alone = grouping ? nullptr : new_operation(stream);
    if (grouping && !grouped) grouped = new_operation(stream), grouped_on = m;
    add(grouping ? grouped.get() : alone.get(), peer, out, at, bytes);
    return grouping ? CUDA_NCCL_OK : take(m, std::move(alone));
}
int send_to(const void *in, size_t n, int type, int peer, cuda_nccl_comm m, void *stream)
{
    return pair(true, in, n * item_of(type), peer, m, stream);
}
int recv_from(void *out, size_t n, int type, int peer, cuda_nccl_comm m, void *stream)
{
    return pair(false, out, n * item_of(type), peer, m, stream);
}

int group_start()
{
    grouping = true;
    return CUDA_NCCL_OK;
}
int group_end()
{
    grouping = false;
    if (!grouped) return CUDA_NCCL_OK;
    auto o = std::move(grouped);
    std::vector<move> self, rest;
    for (const move &v : o->moves) (v.peer == grouped_on->to->rank ? self : rest).push_back(v);
    if (self.size() == 2) { // a rank that sends to itself receives from itself
        const move &from = self[self[1].out], &to = self[self[0].out];
        o->then = [=] { memmove(to.at, from.at, from.bytes); };
    } else if (!self.empty()) {
        return CUDA_NCCL_INVALID_USAGE;
    }
    o->moves = rest;
    return take(grouped_on, std::move(o));
}

int unique_id(cuda_nccl_id *id)
{
    unsigned char random[12];
    if (getrandom(random, sizeof random, 0) != ssize_t(sizeof random)) return CUDA_NCCL_SYSTEM_ERROR;
    *id = {};
    for (size_t i = 0; i < sizeof random; i++) snprintf(id->bytes + 2 * i, 3, "%02x", random[i]);
    return CUDA_NCCL_OK;
}

int init(cuda_nccl_comm *to, int size, cuda_nccl_id id, int rank, cuda_nccl_config *config)
{
    if (config->size < sizeof *config || config->magic != unsigned(CUDA_NCCL_CONFIG_MAGIC) ||
        config->blocking != 0)
        return CUDA_NCCL_INVALID_ARGUMENT;
    *to = new cuda_nccl_comm_s();
    (*to)->to = std::make_shared<connection>();
    connection *c = (*to)->to.get();
    c->rank = rank;
    c->size = size;
    c->name = id.bytes;
    c->sockets.assign(size_t(size), -1);
    start(c);
    return CUDA_NCCL_IN_PROGRESS;
}

int async_error(cuda_nccl_comm m, int *code)
{
    *code = m->to->error;
    if (*code) return CUDA_NCCL_OK;
    if (!m->open) m->open = opened(m->to.get());
    if (!m->open) *code = CUDA_NCCL_IN_PROGRESS;
    else if (m->asked) enqueue(m);
    return CUDA_NCCL_OK;
}

int finalize(cuda_nccl_comm) { return CUDA_NCCL_OK; }
int destroy(cuda_nccl_comm m)
{
    m->to->aborted = true;
    delete m;
    return CUDA_NCCL_OK;
}

const char *error_text(int code)
{
    switch (code) {
    case CUDA_NCCL_REMOTE_ERROR: return "remote process exited or there was a network error";
    case CUDA_NCCL_INVALID_ARGUMENT: return "invalid argument";
    case CUDA_NCCL_INVALID_USAGE: return "invalid usage";
    default: return "unhandled system error";
    }
}
const char *last_error(cuda_nccl_comm) { return ""; }

const cuda_nccl table = {error_text, last_error, unique_id,  init,        async_error,    finalize,
                         destroy,    destroy,    all_reduce, reduce,      reduce_scatter, broadcast,
                         all_gather, send_to,    recv_from,  group_start, group_end};

} // namespace

const cuda_nccl *cuda_nccl_default(const char **why)
{
    *why = "";
    return &table;
}
