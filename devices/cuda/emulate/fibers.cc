/* Runs a grid on the host: block after block, each thread a function call as long as it does not wait. A
 * thread that waits at a barrier or shuffle keeps its fiber, and the next thread gets another. */
#include "cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

constexpr size_t stack_bytes = 64 << 10;
constexpr unsigned most_threads = 1024;

struct fiber {
    ucontext_t context;
    char *stack;
    dim3 thread;
    unsigned index;
};

enum wait_kind : unsigned char { RUNNING, AT_BARRIER, AT_EXCHANGE, DONE };

struct grid_state {
    void (*body)(void *);
    void *argument;
    unsigned threads, started, finished;
    wait_kind wait[most_threads];
    fiber *of[most_threads]; /* of a thread that waits */
    uint64_t value[most_threads];
    std::vector<fiber *> idle;
    fiber *current;
    ucontext_t scheduler;
};
grid_state *state; // the emulator runs one grid at a time

dim3 thread_of(unsigned i)
{
    return dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
}

void fiber_main()
{
    for (;;) {
        grid_state *s = state;
        fiber *me = s->current;
        while (s->started < s->threads) {
            me->index = s->started++;
            me->thread = threadIdx = thread_of(me->index);
            s->wait[me->index] = RUNNING;
            s->body(s->argument);
            s->wait[me->index] = DONE;
            s->finished++;
        }
        s->idle.push_back(me);
        swapcontext(&me->context, &s->scheduler);
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
    swapcontext(&s->scheduler, &f->context);
}

void wait_here(wait_kind kind)
{
    grid_state *s = state;
    fiber *me = s->current;
    s->wait[me->index] = kind;
    s->of[me->index] = me;
    swapcontext(&me->context, &s->scheduler);
}

/* Threads [first, end) all wait for the same thing or are gone: they go on. Returns whether any does. */
bool release(grid_state *s, unsigned first, unsigned end, wait_kind kind)
{
    bool any = false;
    for (unsigned i = first; i < end; i++) {
        if (s->wait[i] == kind) any = true;
        else if (s->wait[i] != DONE) return false;
    }
    for (unsigned i = first; any && i < end; i++)
        if (s->wait[i] == kind) {
            s->wait[i] = RUNNING;
            resume(s, s->of[i]);
        }
    return any;
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
        fprintf(stderr, "cuda emulator: threads of a block wait for different things: a GPU would hang\n");
        abort();
    }
}

} // namespace

void emulate_barrier() { wait_here(AT_BARRIER); }

uint64_t emulate_exchange(uint64_t value, unsigned lane)
{
    grid_state *s = state;
    unsigned me = s->current->index, from = me / warpSize * warpSize + lane;
    s->value[me] = value;
    wait_here(AT_EXCHANGE);
    uint64_t taken = from < s->threads ? s->value[from] : value;
    wait_here(AT_EXCHANGE); /* nobody writes the next value before all have read */
    return taken;
}

void emulate_warp_barrier() { wait_here(AT_EXCHANGE); }

unsigned emulate_match(uint64_t value)
{
    grid_state *s = state;
    unsigned me = s->current->index, first = me / warpSize * warpSize, same = 0;
    s->value[me] = value;
    wait_here(AT_EXCHANGE);
    for (unsigned i = first; i < first + warpSize && i < s->threads; i++)
        if (s->wait[i] != DONE && s->value[i] == value) same |= 1u << (i - first);
    wait_here(AT_EXCHANGE); /* nobody writes the next value before all have read */
    return same;
}

void emulate_launch(dim3 grid, dim3 block, void (*body)(void *), void *context)
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
    blockDim = block;
    gridDim = grid;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = dim3(x, y, z);
                run_block(state);
            }
    emulate_close();
}
