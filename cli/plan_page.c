/* The page of `proa plan --timeline`: figures, memory and the timeline of each pipeline stage as one HTML
 * file with inline SVG. Uses plan.h. */
#define _GNU_SOURCE
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1200,
    LEFT = 70,
    ROW = 22,
    BAR = 18,
    TITLED = 4000 /* more spans than this get no tooltips */
};

typedef struct page {
    FILE *to;
    double end;    /* s at the right edge */
    int64_t spans; /* spans written so far */
    bool titles;
} page;

static const char *const kind_names[] = {"forward", "backward", "exchange", "update"};

static void count_spans(const proa_plan_span *span, void *context)
{
    (void)span;
    ((page *)context)->spans++;
}

static void draw(const proa_plan_span *span, void *context)
{
    page *p = context;
    double scale = (WIDTH - LEFT) / p->end, x = LEFT + span->begin * scale,
           w = (span->end - span->begin) * scale;
    fprintf(p->to, "<rect class=\"%c%lld\" x=\"%.2f\" y=\"%lld\" width=\"%.2f\" height=\"%d\"",
            kind_names[span->kind][0], (long long)(span->chunk % 2), x, (long long)(span->stage * ROW), w,
            BAR);
    if (!p->titles) {
        fputs("/>\n", p->to);
        return;
    }
    fprintf(p->to, "><title>stage %lld: %s", (long long)span->stage, kind_names[span->kind]);
    if (span->kind <= PROA_PLAN_BACKWARD)
        fprintf(p->to, " of micro-batch %lld, chunk %lld", (long long)span->micro_batch,
                (long long)span->chunk);
    fprintf(p->to, ", %.6g to %.6g s</title></rect>\n", span->begin, span->end);
}

static void html_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '&') fputs("&amp;", to);
        else if (*text == '<') fputs("&lt;", to);
        else if (*text == '>') fputs("&gt;", to);
        else fputc((unsigned char)*text < 0x20 ? ' ' : *text, to);
    }
}

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b2733;--paper:#fff;--line:#c9d2dc}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#dfe7ef;--paper:#12181f;--line:#3a4653}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2em auto;"
    "max-width:1240px;padding:0 20px}\n"
    "table{border-collapse:collapse}th,td{padding:2px 14px 2px 0;text-align:left;border-bottom:1px solid "
    "var(--line)}\n"
    "svg{width:100%;height:auto;display:block}text{fill:var(--ink);font-size:12px}\n"
    ".f0,.k.f0{fill:#3b7dd8;background:#3b7dd8}.f1,.k.f1{fill:#7fb2ee;background:#7fb2ee}.b0,.k.b0{fill:#"
    "e08a3c;background:#e08a3c}."
    "b1{fill:#f0bb8a}\n"
    ".e0,.k.e0{fill:#b04a8f;background:#b04a8f}.u0,.k.u0{fill:#4aa564;background:#4aa564}\n"
    ".k{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1.2em}\n";

static void figure(FILE *to, const char *name, const char *format, double value)
{
    fprintf(to, "<tr><th>%s</th><td>", name);
    fprintf(to, format, value);
    fputs("</td></tr>\n", to);
}

static void figures(const page *p, const plan_row *row)
{
    const proa_plan_job *j = &row->job;
    const proa_plan_result *r = &row->result;
    fprintf(
        p->to,
        "<table><tr><th>ranks</th><td>%lld = data %lld · pipe %lld · sharding %lld · model %lld</td></tr>\n"
        "<tr><th>batch</th><td>%lld rows; micro-batches of %lld, %lld a step; %lld chunks a "
        "stage%s</td></tr>\n",
        (long long)row->ranks, (long long)j->data, (long long)j->pipe, (long long)j->sharding,
        (long long)j->model, (long long)row->batch, (long long)j->micro_batch, (long long)j->micro_batches,
        (long long)(j->chunks ? j->chunks : 1), j->recompute ? "; layers are recomputed" : "");
    figure(p->to, "step", "%.5g s", r->step);
    figure(p->to, "pipeline bubble", "%.2f %%", 100 * r->bubble);
    figure(p->to, "exposed communication", "%.4g s", r->exposed);
    figure(p->to, "sent by a rank", "%.4g GB a step", r->sent / 1e9);
    figure(p->to, "rate of a rank", "%.4g TFLOP/s", r->model_flops / r->step / (double)row->ranks / 1e12);
    figure(p->to, "memory of the rank that needs most", "%.4g GB", r->memory / 1e9);
    fputs("</table>\n", p->to);
}

/* One bar: the bytes of the rank that needs most, by what they hold. */
static void memory(const page *p, const proa_plan_result *r)
{
    enum { KINDS = 5 };
    static const char *const names[KINDS] = {"weights", "gradients", "optimizer states", "activations",
                                             "temporaries and rounding"},
                             *const classes[KINDS] = {"f0", "b0", "u0", "e0", "f1"};
    const double bytes[KINDS] = {r->weights, r->gradients, r->states, r->activations,
                                 r->temporaries + r->rounding};
    double x = 0, all = 0;
    for (int i = 0; i < KINDS; i++) all += bytes[i];
    fprintf(p->to, "<h2>Memory</h2>\n<p>");
    for (int i = 0; i < KINDS; i++)
        fprintf(p->to, "<span class=\"k %s\"></span>%s %.4g GB", classes[i], names[i], bytes[i] / 1e9);
    fprintf(p->to, "</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"memory of a rank\">\n", WIDTH,
            BAR);
    for (int i = 0; i < KINDS; i++) {
        double w = all > 0 ? WIDTH * bytes[i] / all : 0;
        fprintf(p->to, "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"%d\"/>\n", classes[i],
                x, w, BAR);
        x += w;
    }
    fputs("</svg>\n", p->to);
}

static void reasons(const page *p, const plan_row *row)
{
    if (!row->chosen) return;
    fputs("<h2>Why these degrees</h2>\n<table>\n", p->to);
    for (int i = 0; i < PROA_PLAN_CLASSES; i++) {
        fprintf(p->to, "<tr><th>%s</th><td>", row->choice.classes[i].name);
        html_text(p->to, row->choice.classes[i].why);
        fputs("</td></tr>\n", p->to);
    }
    fputs("</table>\n", p->to);
}

static proa_status timeline(page *p, const plan_request *q, const plan_row *row)
{
    proa_plan_result r;
    int64_t stages = row->job.pipe > 0 ? row->job.pipe : 1, height = stages * ROW + 30;
    PROA_TRY(proa_plan_simulate(&q->model, &row->job, &q->machine, count_spans, p, &r));
    p->titles = p->spans <= TITLED;
    p->end = r.step > 0 ? r.step : 1;
    fputs("<h2>Timeline of a replica's stages</h2>\n<p>", p->to);
    for (int i = 0; i < 4; i++)
        fprintf(p->to, "<span class=\"k %c0\"></span>%s", kind_names[i][0], kind_names[i]);
    fprintf(
        p->to,
        "; odd chunks are lighter</p>\n<svg viewBox=\"0 0 %d %lld\" role=\"img\" aria-label=\"timeline\">\n",
        WIDTH, (long long)height);
    for (int64_t s = 0; s < stages; s++)
        fprintf(p->to, "<text x=\"0\" y=\"%lld\">stage %lld</text>\n", (long long)(s * ROW + 13),
                (long long)s);
    PROA_TRY(proa_plan_simulate(&q->model, &row->job, &q->machine, draw, p, &r));
    for (int i = 0; i <= 4; i++)
        fprintf(p->to, "<text x=\"%d\" y=\"%lld\" text-anchor=\"%s\">%.4g s</text>\n",
                LEFT + (WIDTH - LEFT) * i / 4, (long long)(height - 8), i == 4 ? "end" : "middle",
                p->end * i / 4);
    fputs("</svg>\n", p->to);
    return PROA_OK;
}

static proa_status write_page(FILE *to, const plan_request *q, const plan_row *row)
{
    page p = {.to = to};
    fprintf(to,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
            "content=\"width=device-width\">\n<title>proa "
            "plan</title><style>\n%s</style></head><body>\n<h1>A step on %lld "
            "ranks</h1>\n<p>",
            style, (long long)row->ranks);
    html_text(to, q->description);
    fprintf(to, ", %.4g parameters</p>\n", proa_plan_parameters(&q->model));
    figures(&p, row);
    memory(&p, &row->result);
    PROA_TRY(timeline(&p, q, row));
    reasons(&p, row);
    fputs("</body></html>\n", to);
    return PROA_OK;
}

proa_status plan_page(const plan_request *q, const plan_row *row, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return proa_fail(PROA_ERR_OUT_OF_MEMORY, "no memory for the page");
    proa_status status = write_page(to, q, row);
    if (fclose(to) != 0 && status == PROA_OK)
        status = proa_fail(PROA_ERR_OUT_OF_MEMORY, "no memory for the page");
    if (status == PROA_OK) status = cli_write(path, &(cli_piece){text, bytes}, 1);
    free(text);
    return status;
}
