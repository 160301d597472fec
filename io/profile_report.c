/* Formats what the profiler recorded: as a text table, and as a trace in Chrome's trace event format
 * (complete events "X", in microseconds). May use core, profile, the recording and io's writer. */
#include "core/internal.h"
#include "io/file.h"
#include "profile/recorder.h"

#include <stdlib.h>

/* ---- the table ------------------------------------------------------------------------- */

static _Thread_local proa_profile_order order_of_sort; /* for the comparison function: qsort has no context */

static double key(const proa_profile_row *r)
{
    switch (order_of_sort) {
    case PROA_PROFILE_BY_MEAN: return r->total / (double)r->count;
    case PROA_PROFILE_BY_MAX: return r->most;
    case PROA_PROFILE_BY_MIN: return r->least;
    default: return r->total;
    }
}

static int longest_first(const void *a, const void *b)
{
    const proa_profile_row *x = a, *y = b;
    if (x->is_op != y->is_op) return x->is_op ? -1 : 1;
    return (key(x) < key(y)) - (key(x) > key(y));
}

static bool scale_of(const char *unit, double *scale)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0) return *scale = units[i].scale, true;
    return false;
}

static void print_row(FILE *to, const proa_profile_row *r, double scale, double all, double gflops,
                      double gbs)
{
    fprintf(to, "%-30.30s %-28.28s %8lld %11.4g %11.4g %11.4g %11.4g", r->name, r->kernel ? r->kernel : "",
            (long long)r->count, r->total * scale, r->total / (double)r->count * scale, r->least * scale,
            r->most * scale);
    if (!r->is_op || r->self <= 0) {
        fprintf(to, "\n");
        return;
    }
    double least = r->flops / (gflops * 1e9), moving = r->bytes / (gbs * 1e9);
    fprintf(to, " %6.1f%% %9.1f %8.2f %8.2f\n", 100 * r->self / all, r->flops / r->self * 1e-9,
            r->bytes / r->self * 1e-9, (least > moving ? least : moving) / r->self);
}

proa_status proa_profile_print(FILE *to, proa_profile_order order, const char *unit)
{
    double scale, gflops, gbs, all = 0;
    PROA_TRY(proa_error());
    if (!unit) unit = "ms";
    if (!to) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "profile_print: the file is NULL");
    if (!scale_of(unit, &scale))
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "profile_print: unit is '%s'; expected s, ms, us or ns",
                         unit);
    PROA_TRY(proa_profile_roofline(&gflops, &gbs));
    int64_t n = proa_profile_rows(NULL, 0), calls = 0;
    proa_profile_row *rows = proa__alloc(((size_t)n + 1) * sizeof *rows);
    if (!rows) return proa_error();
    n = proa_profile_rows(rows, n);
    for (int64_t i = 0; i < n; i++) {
        all += rows[i].is_op ? rows[i].self : 0;
        calls += rows[i].is_op ? rows[i].count : 0;
    }
    order_of_sort = order;
    qsort(rows, (size_t)n, sizeof *rows, longest_first);
    double seconds = proa_profile_seconds();
    fprintf(to, "%lld calls of ops, %.4g %s of %.4g (%.1f%%); this machine: %.0f GFLOP/s, %.1f GB/s\n",
            (long long)calls, all * scale, unit, seconds * scale, seconds > 0 ? 100 * all / seconds : 0,
            gflops, gbs);
    char total[16];
    snprintf(total, sizeof total, "total %s", unit);
    fprintf(to, "%-30s %-28s %8s %11s %11s %11s %11s %7s %9s %8s %8s\n", "op", "kernel", "calls", total,
            "mean", "least", "most", "share", "GFLOP/s", "GB/s", "roofline");
    for (int64_t i = 0; i < n; i++) {
        if (!rows[i].is_op && (i == 0 || rows[i - 1].is_op))
            fprintf(to, "%-59s %8s %11s %11s %11s %11s\n", "stretch", "times", total, "mean", "least",
                    "most");
        print_row(to, &rows[i], scale, all > 0 ? all : 1, gflops, gbs);
    }
    proa__free(rows);
    return PROA_OK;
}

/* ---- the trace ------------------------------------------------------------------------- */

/* Writes text as a JSON string into `to`, which has 6 bytes for each of text's and 3 more. */
static void quote(char *to, const char *text)
{
    *to++ = '"';
    for (const char *s = text; *s; s++) {
        if (*s == '"' || *s == '\\') *to++ = '\\', *to++ = *s;
        else if ((unsigned char)*s < 0x20) to += sprintf(to, "\\u%04x", (unsigned char)*s);
        else *to++ = *s;
    }
    *to++ = '"';
    *to = 0;
}

static proa_status put_event(proa_writer *w, const proa__profile_event *e, const char *name,
                             const proa_profile_row *row, bool first)
{
    char line[320];
    PROA_TRY(proa_writer_put(w, first ? "\n{\"name\":" : ",\n{\"name\":", first ? 9 : 10));
    PROA_TRY(proa_writer_put(w, name, strlen(name)));
    int n = snprintf(
        line, sizeof line, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
        row->is_op ? "op" : "user", e->thread, (double)e->begin * 1e-3, (double)e->length * 1e-3);
    PROA_TRY(proa_writer_put(w, line, (size_t)n));
    if (!row->is_op) return proa_writer_put(w, "}", 1);
    const char *key = row->kernel ? ",\"kernel\":\"" : "", *kernel = row->kernel ? row->kernel : "";
    n = snprintf(line, sizeof line, ",\"args\":{\"flops\":%.0f,\"bytes\":%.0f%s%.128s%s}}", e->flops,
                 e->bytes, key, kernel, row->kernel ? "\"" : "");
    return proa_writer_put(w, line, (size_t)n);
}

static proa_status put_all(proa_writer *w, const proa_profile_row *rows, char *const *names)
{
    int64_t count, lost;
    const proa__profile_event *events = proa__profile_events(&count, &lost);
    char head[128];
    int n = snprintf(head, sizeof head,
                     "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"lost\":%lld},\"traceEvents\":[",
                     (long long)lost);
    PROA_TRY(proa_writer_put(w, head, (size_t)n));
    for (int64_t i = 0; i < count; i++)
        PROA_TRY(put_event(w, &events[i], names[events[i].row], &rows[events[i].row], i == 0));
    return proa_writer_put(w, "\n]}\n", 4);
}

/* Each row's name as JSON, once for all its events. */
static proa_status quote_all(const proa_profile_row *rows, int64_t n, char **names)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(names[i] = proa__alloc(6 * strlen(rows[i].name) + 3))) return proa_error();
        quote(names[i], rows[i].name);
    }
    return PROA_OK;
}

proa_status proa_profile_write_trace(const char *path)
{
    PROA_TRY(proa_error());
    if (!path) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "profile_write_trace: path is NULL");
    if (proa_profile_is_on())
        return proa_fail(PROA_ERR_BAD_STATE, "profile_write_trace: the profiler is on; stop it first");
    int64_t n = proa_profile_rows(NULL, 0);
    proa_profile_row *rows = proa__alloc(((size_t)n + 1) * sizeof *rows);
    char **names = proa__calloc(((size_t)n + 1) * sizeof *names);
    proa_status status = rows && names ? PROA_OK : proa_error();
    proa_writer *w = NULL;
    if (status == PROA_OK) {
        proa_profile_rows(rows, n);
        status = quote_all(rows, n, names);
    }
    if (status == PROA_OK && !(w = proa_writer_open(path))) status = proa_error();
    if (status == PROA_OK) status = put_all(w, rows, names);
    if (w && status == PROA_OK) status = proa_writer_commit(w);
    else proa_writer_abort(w);
    for (int64_t i = 0; names && i < n; i++) proa__free(names[i]);
    proa__free(names);
    proa__free(rows);
    return status;
}
