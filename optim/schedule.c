/* Learning-rate schedules: closed forms of the epoch, so that a schedule can jump to any epoch. Their
 * formulas and constructors are generated from optim/schedules.yaml. May use core. */
#include "core/internal.h"

#include <proa/optim.h>

#include <math.h>

enum { NUMBERS_MAX = 5 };

/* Ranges of a constructor's number: any; 0 or more; 1 or more; above 0; from 0 to 1. */
typedef enum number_kind { NUMBER, RATE, COUNT, POSITIVE, SHARE } number_kind;

typedef struct kind_of {
    const char *name;
    double (*at)(const proa_schedule *s, double epoch);
    bool has_values; /* takes a list of values, one longer than that of epochs */
    int n;
    struct {
        const char *name;
        number_kind kind;
    } number[NUMBERS_MAX];
} kind_of;

/* Arguments of a constructor. */
typedef struct given {
    double number[NUMBERS_MAX];
    proa_ints epochs;
    proa_floats values;
    proa_schedule *schedule;
} given;

struct proa_schedule {
    const kind_of *kind;
    int64_t epoch;
    double number[NUMBERS_MAX];
    int64_t n_at;
    double *at, *values;  /* owned: epochs at which the rate changes, and the rates (one more) */
    proa_schedule *after; /* owned; schedule that follows a warmup */
};

void proa_schedule_free(proa_schedule *s)
{
    if (!s) return;
    proa_schedule_free(s->after);
    proa__free(s->at);
    proa__free(s->values);
    proa__free(s);
}

/* ---- constructors ---------------------------------------------------------------------- */

static proa_status check_number(const kind_of *kind, int i, double v)
{
    static const struct {
        double min, max;
        bool open; /* min itself is refused */
        const char *expected;
    } of[] = {
        [NUMBER] = {-INFINITY, INFINITY, false, "a number"}, [RATE] = {0, INFINITY, false, "0 or more"},
        [COUNT] = {1, INFINITY, false, "at least 1"},        [POSITIVE] = {0, INFINITY, true, "more than 0"},
        [SHARE] = {0, 1, false, "a number from 0 to 1"},
    };
    number_kind k = kind->number[i].kind;
    if (k == NUMBER || (v >= of[k].min && v <= of[k].max && !(of[k].open && v == of[k].min))) return PROA_OK;
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %s is %g, expected %s", kind->name, kind->number[i].name,
                     v, of[k].expected);
}

/* Copies epochs that ascend, and one value more than these, into s. */
static proa_status take_lists(proa_schedule *s, const given *with)
{
    const char *who = s->kind->name;
    proa_ints epochs = with->epochs;
    for (int64_t i = 0; i < epochs.count; i++)
        if (!epochs.at || (i > 0 && epochs.at[i] <= epochs.at[i - 1]))
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: epochs must be numbers that ascend", who);
    s->at = proa__alloc((size_t)(epochs.count + 1) * sizeof *s->at);
    if (!s->at) return proa_error();
    for (int64_t i = 0; i < epochs.count; i++) s->at[i] = (double)epochs.at[i];
    s->n_at = epochs.count;
    if (!s->kind->has_values) return PROA_OK;
    if (!with->values.at || with->values.count != epochs.count + 1)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: %lld boundaries need %lld values, got %lld", who,
                         (long long)epochs.count, (long long)epochs.count + 1, (long long)with->values.count);
    s->values = proa__alloc((size_t)with->values.count * sizeof *s->values);
    if (!s->values) return proa_error();
    memcpy(s->values, with->values.at, (size_t)with->values.count * sizeof *s->values);
    return PROA_OK;
}

static proa_status fill(proa_schedule *s, const given *with)
{
    for (int i = 0; i < s->kind->n; i++) PROA_TRY(check_number(s->kind, i, with->number[i]));
    memcpy(s->number, with->number, sizeof s->number);
    return take_lists(s, with);
}

/* The schedule, or NULL and an error; it takes over the schedule that it continues with. */
static proa_schedule *make(const kind_of *kind, given with)
{
    proa_schedule *s = proa_error() ? NULL : proa__calloc(sizeof *s);
    if (!s) {
        proa_schedule_free(with.schedule);
        return NULL;
    }
    s->kind = kind;
    s->after = with.schedule;
    if (fill(s, &with) == PROA_OK) return s;
    proa_schedule_free(s);
    return NULL;
}

/* ---- functions that formulas call ------------------------------------------------------- */

/* Number of boundaries that are ≤ epoch. */
static int64_t passed_at(const proa_schedule *s, double epoch)
{
    int64_t n = 0;
    while (n < s->n_at && epoch >= s->at[n]) n++;
    return n;
}

static double passed(const proa_schedule *s, double epoch) { return (double)passed_at(s, epoch); }

static double pick(const proa_schedule *values, const proa_schedule *boundaries, double epoch)
{
    return values->values[passed_at(boundaries, epoch)];
}

/* The rate of the schedule behind a warmup, or `otherwise`. */
static double follow(const proa_schedule *s, double otherwise, double epoch)
{
    return s->after ? s->after->kind->at(s->after, epoch) : otherwise;
}

/* Start and length of the period around the epoch, when each is `times` as long as the one before. */
static double find_period(double first, double times, double epoch, double *start)
{
    double length = first;
    *start = 0;
    if (times == 1) *start = first * floor(epoch / first);
    else
        for (; epoch >= *start + length; length *= times) *start += length;
    return length;
}

static double period(double first, double times, double epoch)
{
    double start;
    return find_period(first, times, epoch, &start);
}

static double restart(double first, double times, double epoch)
{
    double start;
    find_period(first, times, epoch, &start);
    return start;
}

#include "schedules.inc"

/* ---- where it is ----------------------------------------------------------------------- */

double proa_schedule_lr(const proa_schedule *s) { return s ? s->kind->at(s, (double)s->epoch) : 0; }
int64_t proa_schedule_epoch(const proa_schedule *s) { return s ? s->epoch : 0; }

void proa_schedule_step(proa_schedule *s)
{
    if (s && !proa_error()) s->epoch++;
}

void proa_schedule_seek(proa_schedule *s, int64_t epoch)
{
    if (!s || proa_error()) return;
    if (epoch < 0)
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "schedule_seek: epoch is %lld, expected 0 or more",
                  (long long)epoch);
    else s->epoch = epoch;
}
