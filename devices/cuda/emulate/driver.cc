/* The driver table over host memory: "device" memory is one reservation that is opened while a kernel, a copy
 * or a library call runs and closed otherwise, so that the host crashes where it forgets to copy. Fresh
 * memory is filled with NaNs. A stream is a queue of work. Work is done when it is queued, except on the
 * stream that PROA_EMULATE_LATE names, "copies" (the default) or "compute" (the stream that is made first):
 * there it is done as late as possible, when the host waits, or another stream for an event, so that a
 * missing wait shows in the numbers. What a GPU refuses while a recording is under way ends the program. */
#include "../driver.h"
#include "cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace
{

constexpr size_t reserved = size_t(1) << 30;
pthread_mutex_t lock; // recursive: a library call may launch kernels
pthread_once_t once = PTHREAD_ONCE_INIT;
char *memory;
int depth;
std::map<size_t, size_t> *gaps, *blocks; // offset -> bytes

void setup()
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    void *p = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = p == MAP_FAILED ? nullptr : static_cast<char *>(p);
    gaps = new std::map<size_t, size_t>{{0, reserved}};
    blocks = new std::map<size_t, size_t>;
}

int count(int *n)
{
    pthread_once(&once, setup);
    *n = memory ? 1 : 0;
    return 0;
}

int describe(int, cuda_description *to)
{
    const char *capability = getenv("PROA_EMULATE_CAPABILITY"); // 75: as on a GPU of compute capability 7.5
    int of = capability ? atoi(capability) : 90;
    *to = cuda_description{"Emulated device (no GPU)", "", of / 10, of % 10, 1, reserved};
    const char *same = getenv("PROA_EMULATE_IDENTITY"); // as of processes that share one GPU
    if (same) snprintf(to->identity, sizeof to->identity, "%s", same);
    else snprintf(to->identity, sizeof to->identity, "process %ld", (long)getpid());
    return 0;
}

int use(int) { return 0; }

typedef std::vector<std::function<void()>> graph;
graph *recorded; // NULL: what is asked for is queued

/* Of calls that wait for the stream that is recorded, or for all of the GPU, or tie it to work outside. */
void refuse_recorded(const char *call)
{
    pthread_mutex_lock(&lock);
    if (recorded) {
        fprintf(stderr, "cuda emulator: %s while a recording is under way: a GPU refuses it\n", call);
        abort();
    }
    pthread_mutex_unlock(&lock);
}

int take(void **p, size_t bytes)
{
    pthread_mutex_lock(&lock);
    size_t size = (bytes + 4095) / 4096 * 4096;
    int code = 2;
    for (auto gap = gaps->begin(); gap != gaps->end(); ++gap) {
        if (gap->second < size) continue;
        size_t at = gap->first, left = gap->second - size;
        gaps->erase(gap);
        if (left) (*gaps)[at + size] = left;
        (*blocks)[at] = size;
        *p = memory + at;
        emulate_open();
        memset(*p, 0xff, size);
        emulate_close();
        code = 0;
        break;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int give(void *p)
{
    refuse_recorded("free"); // it waits for all of the GPU
    pthread_mutex_lock(&lock);
    emulate_finish();
    size_t at = size_t(static_cast<char *>(p) - memory), size = (*blocks)[at];
    blocks->erase(at);
    madvise(p, size, MADV_DONTNEED);
    auto gap = gaps->emplace(at, size).first, next = std::next(gap);
    if (next != gaps->end() && gap->first + gap->second == next->first) {
        gap->second += next->second;
        gaps->erase(next);
    }
    if (gap != gaps->begin()) {
        auto before = std::prev(gap);
        if (before->first + before->second == gap->first) {
            before->second += gap->second;
            gaps->erase(gap);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int host_take(void **p, size_t bytes) { return (*p = malloc(bytes)) ? 0 : 2; }
int host_give(void *p)
{
    free(p);
    return 0;
}

/* A piece of work: false when it has to be called again, which only work between processes says. */
typedef std::function<bool()> piece;
struct stream {
    std::deque<piece> row;
    uint64_t queued, done; // pieces of work so far
    bool late, polled;     // polled: it has had work between processes
};
struct event {
    stream *of;
    uint64_t at; // it has come when so much of the stream is done
};
// Never destroyed, as threads may outlive static objects; ended: streams that events may know.
std::vector<stream *> &streams = *new std::vector<stream *>, &ended = *new std::vector<stream *>;
stream *compute, *working; // working: the stream whose work is being done; NULL: none

/* Does a stream's work, in order, until so much of it is done, or until a piece would wait. */
void progress(stream *s, uint64_t until)
{
    while (s->done < until) {
        stream *outer = working;
        working = s;
        piece next = std::move(s->row.front());
        bool done = next();
        working = outer;
        if (!done) {
            s->row.front() = std::move(next);
            return;
        }
        s->row.pop_front();
        s->done++;
    }
}

void work(stream *s, uint64_t until)
{
    for (progress(s, until); s->done < until; progress(s, until)) usleep(100);
}

void queue_piece(stream *s, piece next)
{
    pthread_mutex_lock(&lock);
    s->row.push_back(std::move(next));
    s->queued++;
    if (!s->late) work(s, s->queued);
    pthread_mutex_unlock(&lock);
}

void queue(stream *s, std::function<void()> run)
{
    queue_piece(s, [run = std::move(run)] { return run(), true; });
}

int stream_create(void **to)
{
    const char *late = getenv("PROA_EMULATE_LATE");
    stream *s = new stream();
    pthread_mutex_lock(&lock);
    s->late = (late && !strcmp(late, "compute")) == !compute;
    if (!compute) compute = s;
    streams.push_back(s);
    pthread_mutex_unlock(&lock);
    *to = s;
    return 0;
}
int stream_free(void *s)
{
    pthread_mutex_lock(&lock);
    stream *gone = static_cast<stream *>(s);
    work(gone, gone->queued);
    streams.erase(std::find(streams.begin(), streams.end(), gone));
    ended.push_back(gone);
    pthread_mutex_unlock(&lock);
    return 0;
}
int stream_sync(void *s)
{
    if (s == compute) refuse_recorded("a wait for the stream");
    pthread_mutex_lock(&lock);
    work(static_cast<stream *>(s), static_cast<stream *>(s)->queued);
    pthread_mutex_unlock(&lock);
    return 0;
}
int stream_wait(void *s, void *e)
{
    if (s == compute) refuse_recorded("a wait of the stream for an event");
    event seen = *static_cast<event *>(e);
    if (seen.of) queue(static_cast<stream *>(s), [=] { work(seen.of, seen.at); });
    return 0;
}
int event_create(void **to) { return *to = new event(), 0; }
int event_free(void *e)
{
    delete static_cast<event *>(e);
    return 0;
}
int event_record(void *e, void *s)
{
    if (s == compute) refuse_recorded("an event of the stream");
    *static_cast<event *>(e) = {static_cast<stream *>(s), static_cast<stream *>(s)->queued};
    return 0;
}
int event_query(void *p)
{
    event *e = static_cast<event *>(p);
    pthread_mutex_lock(&lock);
    if (e->of && e->of->polled) progress(e->of, e->at);
    bool comes = e->of && e->of->done < e->at;
    pthread_mutex_unlock(&lock);
    return comes ? CUDA_NOT_READY : 0;
}
int event_sync(void *p)
{
    event *e = static_cast<event *>(p);
    pthread_mutex_lock(&lock);
    if (e->of) work(e->of, e->at);
    pthread_mutex_unlock(&lock);
    return 0;
}

int graph_begin(void *)
{
    refuse_recorded("another recording");
    recorded = new graph();
    return 0;
}
int graph_end(void *, void **to)
{
    *to = recorded;
    recorded = nullptr;
    return 0;
}
int graph_launch(void *g, void *s)
{
    for (auto &run : *static_cast<graph *>(g)) queue(static_cast<stream *>(s), run);
    return 0;
}
int graph_free(void *g)
{
    delete static_cast<graph *>(g);
    return 0;
}

int copy(void *to, const void *from, size_t bytes, cuda_direction where, void *s)
{
    auto run = [=] {
        emulate_open();
        memmove(to, from, bytes);
        emulate_close();
    };
    if (s == compute && where != CUDA_ON_DEVICE) refuse_recorded("a copy from or to the host");
    if (s != compute) queue(static_cast<stream *>(s), run);
    else if (!emulate_keep(run)) run();
    return 0;
}

int launch(void *kernel, unsigned grid, unsigned block, const void *argument, size_t bytes, void *)
{
    std::string kept(static_cast<const char *>(argument), bytes);
    auto run = [=] {
        struct call {
            void (*kernel)(const void *);
            const char *argument;
        } c = {reinterpret_cast<void (*)(const void *)>(kernel), kept.data()};
        auto body = [](void *p) { static_cast<call *>(p)->kernel(static_cast<call *>(p)->argument); };
        emulate_launch(dim3(grid), dim3(block), body, &c);
    };
    if (!emulate_keep(run)) run();
    return 0;
}

int last_error() { return 0; }
const char *error_text(int code) { return code == 2 ? "out of memory" : "unknown error of the emulator"; }

const cuda_driver driver = {count,
                            describe,
                            use,
                            take,
                            give,
                            host_take,
                            host_give,
                            stream_create,
                            stream_free,
                            stream_sync,
                            stream_wait,
                            event_create,
                            event_free,
                            event_record,
                            event_query,
                            event_sync,
                            copy,
                            graph_begin,
                            graph_end,
                            graph_launch,
                            graph_free,
                            emulate_module_load,
                            emulate_module_kernel,
                            emulate_module_unload,
                            launch,
                            last_error,
                            error_text,
                            "none: the host runs it"};

} // namespace

void emulate_open()
{
    pthread_mutex_lock(&lock);
    if (depth++ == 0) mprotect(memory, reserved, PROT_READ | PROT_WRITE);
}

void emulate_close()
{
    if (--depth == 0) mprotect(memory, reserved, PROT_NONE);
    pthread_mutex_unlock(&lock);
}

void emulate_poll(void *on, std::function<bool()> step)
{
    pthread_mutex_lock(&lock);
    static_cast<stream *>(on)->polled = static_cast<stream *>(on)->late = true;
    queue_piece(static_cast<stream *>(on), std::move(step));
    pthread_mutex_unlock(&lock);
}

void emulate_finish()
{
    pthread_mutex_lock(&lock);
    for (stream *s : streams)
        if (!s->polled) work(s, s->queued); // other processes may never come
    pthread_mutex_unlock(&lock);
}

bool emulate_keep(std::function<void()> run)
{
    pthread_mutex_lock(&lock);
    bool kept = !working; // otherwise it is a part of work that was queued
    if (kept && recorded) recorded->push_back(std::move(run));
    else if (kept) queue(compute, std::move(run));
    pthread_mutex_unlock(&lock);
    return kept;
}

const cuda_driver *cuda_driver_default(void) { return &driver; }
