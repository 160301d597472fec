/* Runs a group's collectives and messages directly between the ranks' devices: opens communicators (such as
 * NCCL's), whose ids the job's store carries, and watches each call. Ranks that ended, a wait beyond the
 * timeout and calls that differ between ranks are errors that name the ranks concerned. May use core. */
#include "dist/devices.h"

#include "core/device.h"
#include "core/group.h"
#include "core/internal.h"

#include <pthread.h>
#include <stdio.h>

/* One communicator: of all members, or from one member to another. */
typedef struct lane {
    struct lane *next;
    int device, from, to; /* from −1: all members */
    bool opened, connected;
    uint64_t calls;
    void *communicator;
} lane;

struct proa__devices {
    proa__store *store;
    double timeout;
    char prefix[96];
    pthread_mutex_t lock; /* of the list; a lane is used by one thread at a time */
    lane *lanes;
};

enum { ALL = -1 };
static const double left_grace = 2; /* seconds in which the last data of a rank that left may still arrive */

proa__devices *proa__devices_new(const proa__engine_setup *setup)
{
    proa__devices *d = proa__calloc(sizeof *d);
    if (!d) return NULL;
    d->store = setup->store;
    d->timeout = setup->timeout;
    snprintf(d->prefix, sizeof d->prefix, "%s", setup->prefix);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void proa__devices_free(proa__devices *d)
{
    if (!d) return;
    for (lane *l = d->lanes, *next; l; l = next) {
        next = l->next;
        if (l->communicator) proa__communicators_of(l->device)->close(l->communicator);
        proa__free(l);
    }
    pthread_mutex_destroy(&d->lock);
    proa__free(d);
}

const proa_communicators *proa__communicators(const proa__ring *g, int device)
{
    return g->size > 1 && g->devices && device != PROA_CPU ? proa__communicators_of(device) : NULL;
}

/* ---- members of a lane ----------------------------------------------------------------- */

static int lane_size(const proa__ring *g, const lane *l) { return l->from == ALL ? g->size : 2; }
static int member(const lane *l, int i) { return l->from == ALL ? i : i ? l->to : l->from; }
static int lane_rank(const lane *l, int rank) { return l->from == ALL ? rank : rank == l->to; }

static void key_of(const proa__ring *g, const lane *l, char *key, size_t n, const char *what, int rank)
{
    snprintf(key, n, "%s/device/%d-%d/%s/%d", g->devices->prefix, l->from, l->to, what, rank);
}

/* ---- watching a call -------------------------------------------------------------------- */

typedef struct watch {
    const proa__ring *g;
    const lane *l;
    const char *what;
    char call[96]; /* in words, equal on all ranks */
    double began, until, look, left_at;
    int left; /* the rank that left first, at left_at */
    bool published;
} watch;

static proa_status rank_ended(const watch *w, int rank, const char *how)
{
    return proa_fail(PROA_ERR_UNAVAILABLE, "%s: rank %d %s", w->what, proa__global_rank(w->g, rank), how);
}

static proa_status check_lives(watch *w, double now)
{
    for (int i = 0; i < lane_size(w->g, w->l); i++) {
        int rank = member(w->l, i);
        proa__life life = proa__store_life(w->g->devices->store, proa__global_rank(w->g, rank));
        if (life == PROA__LIFE_HERE) continue;
        if (life != PROA__LIFE_LEFT) return rank_ended(w, rank, proa__life_text(life));
        if (w->left_at == 0) w->left = rank, w->left_at = now;
        if (now > w->left_at + left_grace) return rank_ended(w, w->left, proa__life_text(life));
    }
    return PROA_OK;
}

static void waits_key(const watch *w, int rank, char *key, size_t n)
{
    char what[40];
    snprintf(what, sizeof what, "waits/%llu", (unsigned long long)w->l->calls);
    key_of(w->g, w->l, key, n, what, rank);
}

/* Tells the others which call this rank waits in, and compares theirs; *late: the ranks that wait in none. */
static proa_status compare_calls(watch *w, char *late, size_t n)
{
    proa__store *store = w->g->devices->store;
    char key[192], *other;
    size_t used = 0;
    late[0] = 0;
    waits_key(w, w->g->rank, key, sizeof key);
    if (!w->published) PROA_TRY(proa__store_set(store, key, w->call, strlen(w->call)));
    w->published = true;
    for (int i = 0; i < lane_size(w->g, w->l); i++) {
        int rank = member(w->l, i), global = proa__global_rank(w->g, rank);
        bool there = rank == w->g->rank;
        waits_key(w, rank, key, sizeof key);
        if (!there) PROA_TRY(proa__store_check(store, key, &there));
        if (!there && used < n)
            used += (size_t)snprintf(late + used, n - used, "%s%d", used ? ", " : "", global);
        if (!there || rank == w->g->rank) continue;
        PROA_TRY(proa__store_get(store, key, 0, &other, NULL));
        bool same = strcmp(other, w->call) == 0;
        if (!same)
            proa_fail(PROA_ERR_INVALID_ARGUMENT,
                      "%s: rank %d calls %s, rank %d calls %.90s; all ranks make the same calls", w->what,
                      proa__global_rank(w->g, w->g->rank), w->call, global, other);
        proa__free(other);
        if (!same) return proa_error();
    }
    return PROA_OK;
}

static proa_status look(void *state)
{
    watch *w = state;
    double now = proa__monotonic();
    char late[128];
    PROA_TRY(check_lives(w, now));
    if (now < w->look) return PROA_OK;
    w->look = now + 1;
    PROA_TRY(compare_calls(w, late, sizeof late));
    if (now < w->until) return PROA_OK;
    return proa_fail(PROA_ERR_TIMEOUT, "%s: not done within %.3g s; %s%s", w->what, w->g->devices->timeout,
                     *late ? "these ranks have not called it: " : "all ranks have called it", late);
}

static watch begin(const proa__ring *g, const lane *l, const char *what)
{
    double now = proa__monotonic(), timeout = g->devices->timeout;
    watch w = {.g = g, .l = l, .what = what, .began = now, .until = now + timeout};
    w.look = now + (timeout < 4 ? timeout / 4 : 1); /* a call that is quicker asks nothing of the store */
    return w;
}

static void end(const watch *w)
{
    char key[192];
    if (!w->published || proa_error() != PROA_OK) return;
    waits_key(w, w->g->rank, key, sizeof key);
    if (proa__store_delete(w->g->devices->store, key) != PROA_OK) proa_clear_error(); /* a key too many */
}

static void describe(watch *w, const proa_device_call *c)
{
    snprintf(w->call, sizeof w->call, "%s (%lld, dtype %d, op %d, peer %d)", w->what, (long long)c->count,
             (int)c->dtype, c->op, c->kind == PROA_DEVICE_SEND || c->kind == PROA_DEVICE_RECV ? 0 : c->peer);
}

/* ---- opening --------------------------------------------------------------------------- */

/* Waits for what `rank` says under a key. */
static proa_status get_of(const proa__ring *g, const lane *l, const char *what, const char *key_name,
                          int rank, char **value)
{
    char key[192];
    key_of(g, l, key, sizeof key, key_name, rank);
    proa_status status = proa__store_get(g->devices->store, key, g->devices->timeout, value, NULL);
    if (status != PROA_ERR_TIMEOUT) return status;
    proa_clear_error();
    return proa_fail(
        PROA_ERR_TIMEOUT,
        "%s: rank %d has not called it within %.3g s with a tensor on a device (this rank's is on "
        "%s)",
        what, proa__global_rank(g, rank), g->devices->timeout, proa_device_name(l->device));
}

static proa_status set_of(const proa__ring *g, const lane *l, const char *key_name, const void *value,
                          size_t n)
{
    char key[192];
    key_of(g, l, key, sizeof key, key_name, g->rank);
    return proa__store_set(g->devices->store, key, value, n);
}

/* Whether all members can be connected: each has the library, and a device of its own. */
static proa_status agree(const proa__ring *g, lane *l, const char *what)
{
    const proa_device_table *d = proa__device(l->device);
    const char *why = "", *mine = proa__communicators_of(l->device)->identity(d->context, &why);
    int size = lane_size(g, l);
    char **of = proa__calloc((size_t)size * sizeof *of);
    if (!of) return proa_error();
    proa_status status = set_of(g, l, "has", mine ? mine : "", mine ? strlen(mine) : 0);
    l->connected = true;
    for (int i = 0; i < size && status == PROA_OK; i++) {
        status = get_of(g, l, what, "has", member(l, i), &of[i]);
        if (status == PROA_OK && !*of[i]) l->connected = false;
        for (int k = 0; k < i && status == PROA_OK; k++)
            if (strcmp(of[k], of[i]) == 0) l->connected = false;
    }
    for (int i = 0; i < size; i++) proa__free(of[i]);
    proa__free(of);
    return status;
}

static proa_status open_lane(const proa__ring *g, lane *l, const char *what)
{
    const proa_device_table *d = proa__device(l->device);
    const proa_communicators *c = proa__communicators_of(l->device);
    PROA_TRY(agree(g, l, what));
    l->opened = true;
    if (!l->connected) return PROA_OK;
    char *id = proa__alloc(c->id_bytes);
    if (!id) return proa_error();
    int first = member(l, 0);
    proa_status status = PROA_OK;
    if (g->rank == first) {
        status = c->new_id(d->context, id);
        if (status == PROA_OK) status = set_of(g, l, "id", id, c->id_bytes);
    } else {
        char *told = NULL;
        status = get_of(g, l, what, "id", first, &told);
        if (status == PROA_OK) memcpy(id, told, c->id_bytes);
        proa__free(told);
    }
    if (status == PROA_OK) {
        watch w = begin(g, l, what);
        snprintf(w.call, sizeof w.call, "the start of a communicator");
        l->communicator =
            c->open(d->context, id, lane_rank(l, g->rank), lane_size(g, l), &(proa_device_wait){look, &w});
        end(&w);
        if (!l->communicator) status = proa_error();
    }
    proa__free(id);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------- */

static lane *lane_of(const proa__ring *g, int device, int from, int to)
{
    proa__devices *d = g->devices;
    pthread_mutex_lock(&d->lock);
    lane *l = d->lanes;
    while (l && !(l->from == from && l->to == to)) l = l->next;
    if (!l && (l = proa__calloc(sizeof *l))) {
        *l = (lane){.next = d->lanes, .device = device, .from = from, .to = to};
        d->lanes = l;
    }
    pthread_mutex_unlock(&d->lock);
    return l;
}

static bool is_reduction(proa_device_call_kind k)
{
    return k == PROA_DEVICE_ALL_REDUCE || k == PROA_DEVICE_REDUCE || k == PROA_DEVICE_REDUCE_SCATTER;
}

static proa_status watched_call(const proa__ring *g, lane *l, const char *what, const proa_device_call *call)
{
    proa_device_call own = *call;
    l->calls++;
    watch w = begin(g, l, what);
    describe(&w, call);
    if (l->from != ALL) own.peer = !lane_rank(l, g->rank);
    proa_status status =
        proa__communicators_of(l->device)->call(l->communicator, &own, &(proa_device_wait){look, &w});
    end(&w);
    return status;
}

proa_status proa__device_call(proa__ring *g, int device, const char *what, const proa_device_call *call,
                              bool *done)
{
    const proa_communicators *c = proa__communicators(g, device);
    int from = ALL, to = ALL;
    *done = false;
    if (!c || (is_reduction(call->kind) && !c->reduces(call->dtype, call->op))) return PROA_OK;
    if (call->kind == PROA_DEVICE_SEND) from = g->rank, to = call->peer;
    if (call->kind == PROA_DEVICE_RECV) from = call->peer, to = g->rank;
    lane *l = lane_of(g, device, from, to);
    if (!l) return proa_error();
    if (l->device != device)
        return proa_fail(
            PROA_ERR_BAD_STATE,
            "%s: the tensor is on %s, and this rank's calls in group %d began on %s; a rank has one "
            "device in a group",
            what, proa_device_name(device), g->id, proa_device_name(l->device));
    if (!l->opened) PROA_TRY(open_lane(g, l, what));
    if (!l->connected) return PROA_OK;
    *done = true;
    if (!l->communicator)
        return proa_fail(PROA_ERR_BAD_STATE,
                         "%s: group %d cannot be used any more: its communicator did not start", what, g->id);
    return call->kind != PROA_DEVICE_ALL_TO_ALL && call->count == 0 ? PROA_OK
                                                                    : watched_call(g, l, what, call);
}
