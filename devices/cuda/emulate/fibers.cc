/* Runs a grid on the host: block after block, each thread a function call as long as it does not wait. A
 * thread that waits at a barrier or shuffle keeps its fiber, and the next thread gets another. Between two
 * waits threads run in either order, first to last or last to first, and so do blocks: a launch's number
 * decides (PROA_EMULATE_ORDER=forward, backward: always so), so that a barrier that is missing shows in the
 * numbers of one launch or another. What a GPU leaves undefined ends the program, with what it was. */
#include "cuda.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

constexpr size_t stack_bytes = 64 << 10;
constexpr unsigned most_threads = 1024;
constexpr size_t most_shared = 99 << 10; /* what every GPU with tensor cores for bfloat16 has */

struct fiber {
    ucontext_t context; /* where it begins; after that `at`, as a switch by contexts asks the system twice */
    jmp_buf at;
    bool begun;
    char *stack;
    dim3 thread;
    unsigned index;
};

enum wait_kind : unsigned char { RUNNING, AT_BARRIER, AT_EXCHANGE, DONE };

struct grid_state {
    void (*body)(void *);
    void *argument;
    unsigned threads, started, finished;
    bool backward;
    uint64_t launches;
    char *shared;
    wait_kind wait[most_threads];
    unsigned where[most_threads]; /* of a thread that waits: the line of the source */
    fiber *of[most_threads];      /* of a thread that waits */
    uint64_t value[most_threads];
    std::vector<fiber *> idle;
    fiber *current;
    jmp_buf scheduler;
};
grid_state *state; // the emulator runs one grid at a time

dim3 thread_of(unsigned i)
{
    return dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
}

/* From a fiber to the scheduler; returns when it is resumed. */
void leave(grid_state *s, fiber *me)
{
    if (_setjmp(me->at) == 0) _longjmp(s->scheduler, 1);
}

void fiber_main()
{
    for (;;) {
        grid_state *s = state;
        fiber *me = s->current;
        while (s->started < s->threads) {
            me->index = s->backward ? s->threads - 1 - s->started : s->started;
            s->started++;
            me->thread = threadIdx = thread_of(me->index);
            s->wait[me->index] = RUNNING;
            s->body(s->argument);
            s->wait[me->index] = DONE;
            s->finished++;
        }
        s->idle.push_back(me);
        leave(s, me);
    }
}

__noinline__ fiber *new_fiber()
{
    fiber *f = new fiber();
    f->stack = static_cast<char *>(malloc(stack_bytes));
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_main, 0);
    return f;
}

fiber *take_fiber(grid_state *s)
{
    if (s->idle.empty()) return new_fiber();
    fiber *f = s->idle.back();
    s->idle.pop_back();
    return f;
}

void resume(grid_state *s, fiber *f)
{
    s->current = f;
    threadIdx = f->thread;
    if (_setjmp(s->scheduler) != 0) return;
    if (f->begun) _longjmp(f->at, 1);
    f->begun = true;
    setcontext(&f->context);
}

void wait_here(wait_kind kind, unsigned where)
{
    grid_state *s = state;
    fiber *me = s->current;
    s->wait[me->index] = kind;
    s->where[me->index] = where;
    s->of[me->index] = me;
    leave(s, me);
}

[[noreturn]] void undefined(const char *what)
{
    fprintf(stderr, "cuda emulator: %s\n", what);
    abort();
}

/* Threads [first, end) all wait for the same thing or are gone: they go on. Returns whether any does. */
bool release(grid_state *s, unsigned first, unsigned end, wait_kind kind)
{
    unsigned where = 0;
    for (unsigned i = first; i < end; i++) {
        if (s->wait[i] == DONE) continue;
        if (s->wait[i] != kind) return false;
        if (where && where != s->where[i])
            undefined(kind == AT_BARRIER ? "threads of a block wait at different barriers"
                                         : "lanes of a warp shuffle at different places");
        where = s->where[i];
    }
    for (unsigned k = first; where && k < end; k++) {
        unsigned i = s->backward ? first + end - 1 - k : k;
        if (s->wait[i] != kind) continue;
        s->wait[i] = RUNNING;
        resume(s, s->of[i]);
    }
    return where != 0;
}

void run_block(grid_state *s)
{
    s->started = s->finished = 0;
    for (unsigned i = 0; i < s->threads; i++) s->wait[i] = RUNNING;
    while (s->started < s->threads) {
        resume(s, take_fiber(s));
    }
    while (s->finished < s->threads) {
        bool moved = false;
        for (unsigned w = 0; w < s->threads; w += warpSize)
            moved |= release(s, w, w + warpSize < s->threads ? w + warpSize : s->threads, AT_EXCHANGE);
        if (!moved) moved = release(s, 0, s->threads, AT_BARRIER);
        if (moved) continue;
        undefined("threads of a block wait for different things: a GPU would hang");
    }
}

} // namespace

void emulate_barrier(unsigned line) { wait_here(AT_BARRIER, line); }

/* The value of a lane that is gone, or never was, is arbitrary: NaN, or nonsense. */
uint64_t emulate_exchange(uint64_t value, unsigned lane, unsigned line)
{
    grid_state *s = state;
    unsigned me = s->current->index, from = me / warpSize * warpSize + lane;
    s->value[me] = value;
    wait_here(AT_EXCHANGE, line);
    uint64_t taken = from < s->threads && s->wait[from] != DONE ? s->value[from] : ~(uint64_t)0;
    wait_here(AT_EXCHANGE, line); /* nobody writes the next value before all have read */
    return taken;
}

void emulate_warp_barrier(unsigned line) { wait_here(AT_EXCHANGE, line); }

unsigned emulate_match(uint64_t value, unsigned line)
{
    grid_state *s = state;
    unsigned me = s->current->index, first = me / warpSize * warpSize, same = 0;
    s->value[me] = value;
    wait_here(AT_EXCHANGE, line);
    for (unsigned i = first; i < first + warpSize && i < s->threads; i++)
        if (s->wait[i] != DONE && s->value[i] == value) same |= 1u << (i - first);
    wait_here(AT_EXCHANGE, line); /* nobody writes the next value before all have read */
    return same;
}

/* Order that the launch with this number runs in: a bit of its hash. */
static bool goes_backward(uint64_t launch)
{
    static const char *const order = getenv("PROA_EMULATE_ORDER");
    if (order && !strcmp(order, "forward")) return false;
    if (order && !strcmp(order, "backward")) return true;
    return launch * 0x9e3779b97f4a7c15u >> 63;
}

char *emulate_shared() { return state->shared; }

/* Memory of `bytes` bytes that ends where a page begins that nobody may touch. */
static char *shared_memory(size_t bytes)
{
    constexpr size_t page = 64 << 10, all = 128 << 10;
    static char *const from = static_cast<char *>(
        mmap(nullptr, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    static const int guarded = from == MAP_FAILED ? -1 : mprotect(from + all, page, PROT_NONE);
    if (bytes > most_shared || guarded != 0) undefined("a block asks for more shared memory than there is");
    return from + all - (bytes + 15) / 16 * 16;
}

void emulate_launch(dim3 grid, dim3 block, void (*body)(void *), void *context, size_t shared)
{
    unsigned threads = block.x * block.y * block.z;
    if (threads == 0 || threads > most_threads || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.y > 65535 || grid.z > 65535) {
        fprintf(stderr, "cuda emulator: no GPU takes a grid of %u x %u x %u blocks of %u threads\n", grid.x,
                grid.y, grid.z, threads);
        abort();
    }
    emulate_open();
    static grid_state *const only = new grid_state();
    state = only;
    state->body = body;
    state->argument = context;
    state->threads = threads;
    state->shared = shared_memory(shared);
    blockDim = block;
    gridDim = grid;
    state->backward = goes_backward(state->launches++);
    uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
    for (uint64_t k = 0; k < blocks; k++) {
        uint64_t i = state->backward ? blocks - 1 - k : k;
        blockIdx = dim3(unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y));
        run_block(state);
    }
    emulate_close();
}
