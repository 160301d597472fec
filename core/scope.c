/* Scopes: each thread has one stack of the objects that are released when a scope ends. An entry is a tagged
 * pointer: a tensor, one more reference to a tensor, a raw block, or the mark at a scope's start; zero is a
 * hole. Uses memory.c, tensor.c. */
#include "core/thread.h"

#if !defined(NDEBUG)
enum { ROOT_MANY = 10000 };
#endif
enum { TAG_TENSOR = 0, TAG_BLOCK = 1, TAG_MARK = 2, TAG_HELD = 3, TAG_MASK = 3 };
static const uint32_t no_mark = UINT32_MAX;

/* Closes the holes that drops left in the innermost scope; returns how many there were. */
static uint32_t close_holes(proa__thread *me)
{
    uint32_t to = me->depth > 0 ? me->mark + 1 : 0, from = to;
    for (; from < me->top; from++) {
        uintptr_t entry = me->stack[from];
        if (!entry) continue;
        me->stack[to++] = entry;
        if ((entry & TAG_MASK) == TAG_TENSOR) ((proa_tensor *)entry)->scope_slot = to;
    }
    me->top = to;
    return from - to;
}

static __attribute__((noinline)) bool grow(proa__thread *me)
{
    if (close_holes(me) >= me->capacity / 4) return true;
    if (me->capacity > UINT32_MAX / 4) {
        proa_fail(PROA_ERR_OVERFLOW, "scope: more than %u tensors are in this thread's scopes", me->capacity);
        return false;
    }
    uint32_t capacity = me->capacity * 2;
    bool is_inline = me->stack == me->inline_stack;
    uintptr_t *stack = proa__realloc(is_inline ? NULL : me->stack, capacity * sizeof *stack);
    if (!stack) return false;
    if (is_inline) memcpy(stack, me->inline_stack, sizeof me->inline_stack);
    me->stack = stack;
    me->capacity = capacity;
    return true;
}

/* Moves the stack back to its inline array when few entries are left, so that a thread's memory use returns
 * to what it was. */
static __attribute__((noinline)) void shrink_to_inline(proa__thread *me)
{
    if (me->top > PROA__SCOPE_INLINE / 4) return;
    uintptr_t *stack = me->stack;
    memcpy(me->inline_stack, stack, me->top * sizeof *stack);
    me->stack = me->inline_stack;
    me->capacity = PROA__SCOPE_INLINE;
    proa__free(stack);
}

static inline void shrink(proa__thread *me)
{
    if (PROA__UNLIKELY(me->stack != me->inline_stack)) shrink_to_inline(me);
}

#if !defined(NDEBUG)
/* Warns of a program that opens no scopes, so that every temporary stays alive. Once per thread, in debug
 * builds only. */
static void check_root(proa__thread *me)
{
    if (me->depth > 0 || me->top <= ROOT_MANY || me->root_reported) return;
    me->root_reported = true;
    fprintf(stderr, "proa: the root scope holds more than %d tensors: open a PROA_SCOPE around the loop\n",
            ROOT_MANY);
}
#else
static inline void check_root(proa__thread *me) { (void)me; }
#endif

static inline bool push(proa__thread *me, uintptr_t entry)
{
    if (PROA__UNLIKELY(me->top == me->capacity) && !grow(me)) return false;
    me->stack[me->top++] = entry;
    check_root(me);
    return true;
}

bool proa__scope_push(proa_tensor *t)
{
    proa__thread *me = proa__me();
    if (PROA__LIKELY(me && push(me, (uintptr_t)t))) {
        t->scope_slot = me->top;
        return true;
    }
    if (!me) proa_fail(PROA_ERR_OUT_OF_MEMORY, "scope: no memory for this thread's scopes");
    proa_release(t);
    return false;
}

bool proa_scope_hold(proa_tensor *t)
{
    if (!t || t == proa_none) return true;
    proa__thread *me = proa__me();
    if (PROA__LIKELY(me && push(me, (uintptr_t)t | TAG_HELD))) {
        proa_retain(t);
        return true;
    }
    if (!me) proa_fail(PROA_ERR_OUT_OF_MEMORY, "scope: no memory for this thread's scopes");
    return false;
}

proa_tensor *proa_adopt(proa_tensor *t)
{
    if (!t || t == proa_none) return t;
    if (t->scope_slot == 0) return proa__scope_push(t) ? t : NULL;
    proa_release(t); /* a scope holds a reference already */
    return t;
}

proa_scope proa_scope_enter(void)
{
    proa__thread *me = proa__me();
    if (!me || !push(me, (uintptr_t)me->mark << 2 | TAG_MARK)) {
        if (!me) proa_fail(PROA_ERR_OUT_OF_MEMORY, "scope: no memory for this thread's scopes");
        return (proa_scope){no_mark, 0}; /* the enclosing scope takes what is made */
    }
    me->mark = me->top - 1;
    me->depth++;
    return (proa_scope){me->mark, me->depth};
}

static inline void release_entry(uintptr_t entry)
{
    if ((entry & TAG_MASK) == TAG_BLOCK) {
        proa__free((void *)(entry & ~(uintptr_t)TAG_MASK));
    } else if ((entry & TAG_MASK) == TAG_HELD) {
        proa_release((proa_tensor *)(entry & ~(uintptr_t)TAG_MASK));
    } else if ((entry & TAG_MASK) == TAG_TENSOR && entry) {
        proa_tensor *t = (proa_tensor *)entry;
        t->scope_slot = 0;
        t->is_return = false;
        proa_release(t);
    }
}

/* Moves the entries of returned tensors, in their order, down to index `floor` of the stack, where they
 * belong to the enclosing scope; returns the index behind them. */
static __attribute__((noinline)) uint32_t move_returns(proa__thread *me, uint32_t floor)
{
    for (uint32_t i = floor; i < me->top; i++) {
        uintptr_t entry = me->stack[i];
        if ((entry & TAG_MASK) != TAG_TENSOR || !entry) continue;
        proa_tensor *t = (proa_tensor *)entry;
        if (!t->is_return) continue;
        uintptr_t other = me->stack[floor];
        me->stack[i] = other;
        if (other && (other & TAG_MASK) == TAG_TENSOR) ((proa_tensor *)other)->scope_slot = i + 1;
        me->stack[floor++] = entry;
        t->is_return = false;
        t->scope_slot = floor;
        me->returns--;
    }
    return floor;
}

/* Releases the entries from the top down to floor. A release may run hooks that push more entries: these are
 * released, too. */
static inline void release_down(proa__thread *me, uint32_t floor)
{
    while (me->top > floor) release_entry(me->stack[--me->top]);
}

/* Ends the innermost scope: returned tensors go to the enclosing scope, all other entries are released. */
static inline void leave_one(proa__thread *me)
{
    uint32_t floor = me->mark;
    me->mark = (uint32_t)(me->stack[floor] >> 2);
    me->depth--;
    me->stack[floor] = 0;
    if (PROA__UNLIKELY(me->returns > 0)) floor = move_returns(me, floor);
    release_down(me, floor);
}

void proa_scope_leave(const proa_scope *scope)
{
    proa__thread *me = proa__thread_self;
    if (!me || scope->mark == no_mark) return;
    /* Scopes opened inside and never left (a longjmp, a lost handle) end with it; a scope that was left
     * already is left alone. */
    while (me->depth >= scope->depth && me->depth > 0 && me->mark >= scope->mark) leave_one(me);
    shrink(me);
}

void proa__scope_leave_all(proa__thread *me)
{
    while (me->depth > 0) leave_one(me);
    release_down(me, 0);
    me->returns = 0;
    shrink(me);
}

proa_tensor *proa_keep(proa_tensor *t) { return proa_retain(t); }

/* True if t has an entry in this thread's scope stack. */
static bool is_here(const proa__thread *me, const proa_tensor *t)
{
    return me && t->scope_slot > 0 && t->scope_slot <= me->top &&
           me->stack[t->scope_slot - 1] == (uintptr_t)t;
}

proa_tensor *proa_take(proa_tensor *t)
{
    proa__thread *me = proa__thread_self;
    bool mine = t && is_here(me, t) && me->depth > 0 && t->scope_slot - 1 > me->mark && !t->is_return;
    if (PROA__UNLIKELY(!mine)) return proa_retain(t);
    me->stack[t->scope_slot - 1] = 0;
    if (t->scope_slot == me->top) me->top--;
    t->scope_slot = 0;
    return t;
}

proa_tensor *proa_return(proa_tensor *t)
{
    proa__thread *me = proa__thread_self;
    if (!t || proa__absent(t) || !is_here(me, t)) return t; /* t is in no scope of this thread */
    if (me->depth == 0 || t->scope_slot - 1 < me->mark || t->is_return) return t;
    t->is_return = true;
    me->returns++;
    return t;
}

void proa_drop(proa_tensor *t)
{
    if (!t || proa__absent(t)) return;
    proa__thread *me = proa__thread_self;
    if (!is_here(me, t)) {
        proa_fail(PROA_ERR_BAD_STATE,
                  "drop: the tensor %s is in no scope of this thread; a kept tensor is "
                  "released with proa_release",
                  proa__tensor_text(t));
        return;
    }
    me->stack[t->scope_slot - 1] = 0;
    t->scope_slot = 0;
    if (t->is_return) t->is_return = false, me->returns--;
    uint32_t floor = me->depth > 0 ? me->mark + 1 : 0;
    while (me->top > floor && me->stack[me->top - 1] == 0) me->top--;
    proa_release(t);
}

void *proa_scope_alloc(size_t bytes)
{
    void *p = proa__alloc(bytes);
    if (!p) return NULL;
    proa__thread *me = proa__me();
    if (me && push(me, (uintptr_t)p | TAG_BLOCK)) return p;
    if (!me) proa_fail(PROA_ERR_OUT_OF_MEMORY, "scope: no memory for this thread's scopes");
    proa__free(p);
    return NULL;
}
