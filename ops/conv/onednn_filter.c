/* Wgrad through oneDNN, by parts. Threads of a oneDNN primitive add what each has summed over its images,
 * and wait for each other in barriers that spin: on a busy machine for as long as a core is another's. A
 * part here is a primitive of one thread, for some images (or rows of one) and some output channels (or
 * groups); Proa's threads take parts in turns, and add up the sums of the same channels afterwards. How
 * many there are depends on sizes alone, so that results do not depend on the number of threads. May use
 * core and kernels. */
#include "ops/conv/onednn_task.h"

enum {
    MAX_PARTS = 16,
    ENOUGH_SUMS = 4,     /* with as many, slices and rows, whose operands are copied, do not pay */
    PART_WORK = 1 << 19, /* multiply-adds: some 30 µs of a core */
    SUM_PIXELS = 512,    /* output pixels that a sum is over, so that products take longer than adding it */
    BLOCK = 16,          /* channels: the largest block of oneDNN's layouts, the least slice */
    MIN_ROWS = 4,        /* of a part's output */
};

/* Parts along each axis: images; rows (the first spatial dim) of one image, 1 if a part has whole ones; and
 * output channels, or groups of a grouped filter, of which `each` make one block. */
typedef struct filter_cut {
    int64_t images, rows, slices, each;
} filter_cut;

typedef struct filter_part {
    void *state;          /* of its primitive */
    size_t x, d_out, sum; /* bytes from the start of the operands, and of its sum */
} filter_part;

typedef struct filter_state {
    int x_format;         /* format to which x is copied first, so that slices need not each do so; 0: none */
    int format;           /* of the sums; 0: row-major */
    int64_t sums, slices; /* part sum · slices + slice */
    filter_part part[];
} filter_state;

/* ---- cutting ------------------------------------------------------------------------------------ */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Input rows [*from, result) that output rows [first, last) read, inside the image. */
static int64_t rows_read(const conv_geometry *g, int64_t first, int64_t last, int64_t *from)
{
    const int i = 3 - g->dims;
    const int64_t span = g->dilation[i] * (g->kernel[i] - 1) + 1;
    *from = most(first * g->stride[i] - g->before[i], 0);
    return least((last - 1) * g->stride[i] - g->before[i] + span, g->in[i]);
}

/* True if each of n parts of the output's rows reads some of the input's. */
static bool rows_divide(const conv_geometry *g, int64_t n)
{
    const int64_t rows = g->out[3 - g->dims];
    for (int64_t i = 0, from; i < n; i++)
        if (rows_read(g, i * rows / n, (i + 1) * rows / n, &from) <= from) return false;
    return rows >= n * MIN_ROWS;
}

static filter_cut cut_of(const conv_problem *p)
{
    const conv_geometry *g = &p->g;
    const int64_t ic = g->in_channels / g->groups, oc = g->out_channels / g->groups;
    const double work = conv_work(g) / PART_WORK;
    const int64_t parts = work < MAX_PARTS ? most((int64_t)work, 1) : MAX_PARTS;
    const int64_t filter = g->out_channels * ic * conv_pixels(g->kernel);
    const int64_t operands = p->sides[IN]->numel + p->sides[OUT]->numel;
    int64_t sums = least(1 + g->batch * conv_pixels(g->out) / SUM_PIXELS, 1 + operands / most(filter, 1));
    sums = p->sides[IN]->dtype == PROA_F32 ? least(sums, parts) : 1;
    const int64_t each = (g->batch + sums - 1) / sums;
    filter_cut c = {.images = (g->batch + each - 1) / each};
    c.rows = c.images < ENOUGH_SUMS ? sums / c.images : 1;
    while (c.rows > 1 && !rows_divide(g, c.rows)) c.rows--;
    c.each = g->groups == 1 ? BLOCK : 2; /* a part with a single group would not be grouped */
    while (g->groups > 1 && (c.each * ic % BLOCK || c.each * oc % BLOCK)) c.each++;
    const int64_t slices = (g->groups == 1 ? g->out_channels : g->groups) / c.each;
    sums = c.images * c.rows;
    c.slices = sums < ENOUGH_SUMS ? most(least(slices, parts / sums), 1) : 1;
    return c;
}

/* A range of an axis. */
typedef struct filter_range {
    int64_t from, n;
} filter_range;

/* Part i of n of an axis in units of `each`. */
static filter_range range_of(int64_t size, int64_t each, int64_t i, int64_t n)
{
    const int64_t units = (size + each - 1) / each;
    const int64_t from = i * units / n * each, to = least((i + 1) * units / n * each, size);
    return (filter_range){from, to - from};
}

/* First element of a part on each side, in the dims of conv_layout. */
typedef struct filter_place {
    int64_t from[SIDES][6];
} filter_place;

/* Makes g the geometry of a part. */
static filter_place place_part(conv_geometry *g, const filter_cut *c, int64_t sum, int64_t slice)
{
    const conv_geometry whole = *g;
    const int i = 3 - g->dims;
    const filter_range images = range_of(whole.batch, 1, sum / c->rows, c->images);
    const filter_range rows = range_of(whole.out[i], 1, sum % c->rows, c->rows);
    const bool grouped = whole.groups > 1;
    const filter_range channels =
        range_of(grouped ? whole.groups : whole.out_channels, c->each, slice, c->slices);
    const int64_t ic = whole.in_channels / whole.groups, oc = whole.out_channels / whole.groups;
    int64_t from;
    const int64_t end = rows_read(&whole, rows.from, rows.from + rows.n, &from);
    g->batch = images.n;
    if (c->rows > 1) {
        const int64_t span = whole.dilation[i] * (whole.kernel[i] - 1) + 1;
        g->out[i] = rows.n, g->in[i] = end - from;
        g->before[i] = most(whole.before[i] - rows.from * whole.stride[i], 0);
        g->after[i] = (rows.n - 1) * whole.stride[i] + span - g->before[i] - g->in[i];
    } else from = 0;
    if (grouped) g->groups = channels.n, g->in_channels = channels.n * ic, g->out_channels = channels.n * oc;
    else g->out_channels = channels.n;
    return (filter_place){{{images.from, grouped ? channels.from * ic : 0, from},
                           {channels.from},
                           {images.from, channels.from * (grouped ? oc : 1), rows.from}}};
}

/* ---- preparing ---------------------------------------------------------------------------------- */

static void filter_release(void *state)
{
    filter_state *s = state;
    for (int64_t i = 0; s && i < s->sums * s->slices; i++) proa__dnnl_release(s->part[i].state);
    proa__free(s);
}

/* Adds an operand: the part's slice of `whole`, which is released. */
static bool add_slice(proa__dnnl_build *b, int index, dnnl_memory_desc_t whole, const conv_layout *part,
                      const int64_t *from, size_t *offset)
{
    dnnl_memory_desc_t slice = whole ? proa__dnnl_slice(whole, part->dims, from, offset) : NULL;
    if (whole) dnnl_memory_desc_destroy(whole);
    return proa__dnnl_add(b, index, index == DNNL_ARG_DIFF_WEIGHTS, slice);
}

/* Layouts of the whole convolution; x in x_format unless that is 0, the filter row-major. */
static dnnl_memory_desc_t whole_md(const conv_problem *p, int side, int x_format)
{
    const conv_geometry *g = &p->g;
    const proa_tensor *t = p->sides[side];
    if (side == IN && x_format) return proa__dnnl_blocked_md(t, (proa_dtype)t->dtype, x_format);
    const conv_layout l = side == IN    ? conv_layout_of_images(g, g->in_channels, g->in)
                          : side == OUT ? conv_layout_of_images(g, g->out_channels, g->out)
                                        : conv_layout_of_filter(g);
    return side == FILTER ? proa__dnnl_md(l.n, l.dims, l.strides, (proa_dtype)t->dtype)
                          : proa__dnnl_md_of(t, l.n, l.dims, l.strides);
}

/* The first part asks which format the sums may stay in. */
static proa_status make_part(const conv_problem *p, const filter_cut *c, int64_t index, int x_format,
                             filter_part *part)
{
    conv_problem of = *p;
    const filter_place at = place_part(&of.g, c, index / c->slices, index % c->slices);
    proa__dnnl_build b;
    conv_task t = {0};
    bool ok =
        proa__dnnl_begin(&b, 0) && conv_task_make(&t, &of, NULL, false) &&
        conv_backward_desc(&t, b.attr, &b.desc) &&
        add_slice(&b, DNNL_ARG_SRC, whole_md(p, IN, x_format), &t.layout[IN], at.from[IN], &part->x) &&
        add_slice(&b, DNNL_ARG_DIFF_DST, whole_md(p, OUT, 0), &t.layout[OUT], at.from[OUT], &part->d_out) &&
        add_slice(&b, DNNL_ARG_DIFF_WEIGHTS, whole_md(p, FILTER, 0), &t.layout[FILTER], at.from[FILTER],
                  &part->sum);
    if (ok && index == 0 && p->g.groups == 1) proa__dnnl_may_block(&b, p->sides[FILTER], 1);
    conv_task_release(&t);
    return proa__dnnl_finish(&b, ok, &part->state);
}

static const proa__dnnl_arg *arg_of(const filter_part *part, int side)
{
    const proa__dnnl_state *s = part->state;
    return &s->args[side == IN ? 0 : side == OUT ? 1 : 2];
}

/* Lets sums stay in the format that the first part's primitive chose, if each part's lies in it as its own
 * primitive wants it. */
static void keep_format(filter_state *s, const conv_problem *p, const filter_cut *c)
{
    const proa_tensor *filter = p->sides[FILTER];
    const int format = arg_of(&s->part[0], FILTER)->format;
    dnnl_memory_desc_t whole =
        format ? proa__dnnl_blocked_md(filter, (proa_dtype)filter->dtype, format) : NULL;
    size_t at[MAX_PARTS];
    bool fits = whole != NULL;
    for (int64_t i = 0; fits && i < s->sums * s->slices; i++) {
        conv_geometry g = p->g;
        const filter_place place = place_part(&g, c, i / c->slices, i % c->slices);
        dnnl_memory_desc_t inner = arg_of(&s->part[i], FILTER)->inner;
        const int64_t offset = inner ? proa__dnnl_offset(whole, place.from[FILTER], inner) : -1;
        at[i] = (size_t)offset;
        fits = offset >= 0;
    }
    if (whole) dnnl_memory_desc_destroy(whole);
    if (!fits) return;
    s->format = format;
    for (int64_t i = 0; i < s->sums * s->slices; i++) s->part[i].sum = at[i];
}

static proa_status filter_prepare(const void *args, void **state)
{
    const proa_conv2d_grad_filter_args *a = args;
    conv_problem p = {.sides = {a->x, a->d_weight, a->d_out}, .plain = true};
    *state = NULL;
    PROA_TRY(conv_ask(CONV_ALGORITHM_conv_grad_filter_onednn,
                      &CONV_PARAMS_OF(a, proa__spatial_rank(a->x), "_grad_filter"), &p));
    const filter_cut c = cut_of(&p);
    const int64_t sums = c.images * c.rows, parts = sums * c.slices;
    filter_state *s = proa__calloc(sizeof *s + (size_t)parts * sizeof *s->part);
    if (!s) return proa_error();
    s->sums = sums, s->slices = c.slices;
    proa_status status = make_part(&p, &c, 0, 0, &s->part[0]);
    if (status == PROA_OK && c.slices > 1 && c.rows == 1 && p.g.groups == 1 && arg_of(s->part, IN)->inner)
        s->x_format = proa__dnnl_format(arg_of(s->part, IN)->inner);
    if (s->x_format) {
        proa__dnnl_release(s->part[0].state);
        s->part[0].state = NULL;
        status = make_part(&p, &c, 0, s->x_format, &s->part[0]);
    }
    for (int64_t i = 1; i < parts && status == PROA_OK; i++)
        status = make_part(&p, &c, i, s->x_format, &s->part[i]);
    if (status != PROA_OK) {
        filter_release(s);
        return status;
    }
    keep_format(s, &p, &c);
    *state = s;
    return PROA_OK;
}

/* ---- running ------------------------------------------------------------------------------------ */

typedef struct filter_job {
    const filter_state *s;
    char *x, *d_out;
    char *sums;   /* one after the other */
    size_t bytes; /* of a sum */
    float *result;
} filter_job;

static proa_status run_part(const void *job, int64_t i)
{
    const filter_job *j = job;
    const filter_part *part = &j->s->part[i];
    void *data[] = {j->x + part->x, j->d_out + part->d_out,
                    j->sums + (size_t)(i / j->s->slices) * j->bytes + part->sum};
    return proa__dnnl_run_alone(part->state, data, j->s->format ? 1u << 2 : 0);
}

static void add_range(int64_t begin, int64_t end, void *context)
{
    const filter_job *j = context;
    const float *sum = (const float *)(const void *)j->sums;
    memcpy(j->result + begin, sum + begin, (size_t)(end - begin) * sizeof *sum);
    for (int64_t k = 1; k < j->s->sums; k++) {
        sum += j->bytes / sizeof *sum;
        for (int64_t i = begin; i < end; i++) j->result[i] += sum[i];
    }
}

/* Runs the parts, and adds their sums to `to`, in the format of the state. */
static proa_status run_parts(filter_job *j, char *to)
{
    const filter_state *s = j->s;
    j->sums = s->sums > 1 ? proa_scratch((size_t)s->sums * j->bytes) : to;
    if (!j->sums) return proa_error();
    proa_status status = proa__dnnl_run_parts(s->sums * s->slices, run_part, j);
    if (s->sums == 1) return status;
    j->result = (float *)(void *)to;
    if (status == PROA_OK) proa__parallel((int64_t)(j->bytes / sizeof *j->result), 1 << 14, add_range, j);
    proa_scratch_free(j->sums);
    return status;
}

/* Copies x to the format that the parts read. */
static proa_status copy_x(const filter_state *s, const proa_tensor *x, char **to)
{
    *to = proa_scratch(proa__format_bytes(x, s->x_format));
    if (!*to) return proa_error();
    return proa__convert_blocked(x, proa__format(x), proa__memory(x), s->x_format, *to);
}

static int filter_format(const void *args, const void *state)
{
    (void)args;
    return ((const filter_state *)state)->format;
}

PROA_KERNEL_BLOCKED(conv_grad_filter_onednn, conv2d_grad_filter, filter_prepare, filter_release,
                    filter_format)
{
    const filter_state *s = run->state;
    proa_tensor *result = a->d_weight;
    if (run->fresh && s->format) PROA_TRY(proa__block_output(result, s->format));
    const int format = proa__format(result);
    const size_t plain = (size_t)result->numel * proa_dtype_size((proa_dtype)result->dtype);
    filter_job j = {.s = s,
                    .x = proa__memory(a->x),
                    .d_out = proa__memory(a->d_out),
                    .bytes = s->format ? proa__format_bytes(result, s->format) : plain};
    char *x = NULL, *sum = NULL;
    proa_status status = s->x_format ? copy_x(s, a->x, &x) : PROA_OK;
    if (x) j.x = x;
    if (status == PROA_OK && format != s->format) {
        sum = proa_scratch(j.bytes);
        if (!sum) status = proa_error();
    }
    if (status == PROA_OK) status = run_parts(&j, sum ? sum : proa__memory(result));
    if (status == PROA_OK && sum)
        status = proa__convert_blocked(result, s->format, sum, format, proa__memory(result));
    proa_scratch_free(sum);
    proa_scratch_free(x);
    return status;
}
