/* The progress display: a bar on terminals, plain lines elsewhere. Core and the system's clock only. */
#include "core/internal.h"

#include <proa/data.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { VALUES = 4, BAR = 20, TEXT = 512 };

struct proa_progress {
    FILE *to;
    bool terminal;
    int64_t total, done, last_done;
    double began, last;
    int n_values;
    struct {
        char name[24];
        double value;
    } values[VALUES];
    char label[64];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

proa_progress *proa_progress_new(FILE *to, const char *label, int64_t total)
{
    if (!to) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "progress: the file is NULL");
        return NULL;
    }
    proa_progress *p = proa__calloc(sizeof *p);
    if (!p) return NULL;
    p->to = to;
    p->terminal = isatty(fileno(to)) == 1;
    p->total = total;
    p->began = p->last = now();
    snprintf(p->label, sizeof p->label, "%s", label ? label : "");
    return p;
}

void proa_progress_value(proa_progress *p, const char *name, double value)
{
    if (!p || !name) return;
    int i = 0;
    while (i < p->n_values && strncmp(p->values[i].name, name, sizeof p->values[i].name - 1) != 0) i++;
    if (i == VALUES) return;
    if (i == p->n_values) snprintf(p->values[p->n_values++].name, sizeof p->values[i].name, "%s", name);
    p->values[i].value = value;
}

/* Appends formatted text to a buffer that holds *used bytes so far. */
PROA_PRINTF(3, 4) static void add(char *text, size_t *used, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = *used < TEXT ? vsnprintf(text + *used, TEXT - *used, format, list) : 0;
    va_end(list);
    if (n > 0) *used += (size_t)n < TEXT - *used ? (size_t)n : TEXT - 1 - *used;
}

static void add_time(char *text, size_t *used, double seconds)
{
    long long s = seconds < 0 || seconds > 1e9 ? 0 : (long long)(seconds + 0.5);
    if (s >= 3600) add(text, used, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else if (s >= 60) add(text, used, "%lldm%02llds", s / 60, s % 60);
    else add(text, used, "%llds", s);
}

static void add_bar(const proa_progress *p, char *text, size_t *used)
{
    int full = p->total > 0 ? (int)((double)BAR * (double)p->done / (double)p->total) : 0;
    add(text, used, "[");
    for (int i = 0; i < BAR; i++) add(text, used, "%c", i < full ? '#' : '.');
    add(text, used, "] ");
}

/* Columns that the line may have, so that it does not wrap on the terminal. */
static int width(const proa_progress *p)
{
    struct winsize w;
    return ioctl(fileno(p->to), TIOCGWINSZ, &w) == 0 && w.ws_col > 10 ? w.ws_col - 1 : 79;
}

static void draw(proa_progress *p, double t)
{
    char text[TEXT];
    size_t used = 0;
    double seconds = t - p->began, rate = seconds > 0 ? (double)p->done / seconds : 0;
    if (p->label[0]) add(text, &used, "%s ", p->label);
    if (p->terminal) add_bar(p, text, &used);
    if (p->total > 0) add(text, &used, "%lld/%lld", (long long)p->done, (long long)p->total);
    else add(text, &used, "%lld", (long long)p->done);
    for (int i = 0; i < p->n_values; i++)
        add(text, &used, "  %s %.4g", p->values[i].name, p->values[i].value);
    add(text, &used, "  %.3g/s", rate);
    bool complete = p->total <= 0 || p->done >= p->total;
    add(text, &used, complete ? "  in " : "  left ");
    add_time(text, &used, complete ? seconds : rate > 0 ? (double)(p->total - p->done) / rate : 0);
    if (p->terminal) fprintf(p->to, "\r%.*s\033[K", width(p), text);
    else fprintf(p->to, "%s\n", text);
    fflush(p->to);
    p->last = t;
    p->last_done = p->done;
}

void proa_progress_step(proa_progress *p, int64_t steps)
{
    if (!p) return;
    p->done += steps;
    double t = now();
    if (p->terminal ? t - p->last >= 0.1
                    : t - p->last >= 10 ||
                          (p->total > 0 && (p->done - p->last_done) * 10 >= p->total && t - p->last >= 1))
        draw(p, t);
}

void proa_progress_end(proa_progress *p)
{
    if (!p) return;
    draw(p, now());
    if (p->terminal) fputc('\n', p->to);
    fflush(p->to);
    proa__free(p);
}
