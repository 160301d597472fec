/* proa run: feeds a model from .npy and .npz files or with random numbers, runs and times it, and prints or
 * saves its outputs. Uses cli.h. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct job {
    const char *model, *folder, *archive, *passes, *trace;
    bool profile;
    int64_t times, seed, n_words;
    struct word {
        enum { INPUT, INPUTS, SHAPE } kind;
        const char *text;
    } * words; /* the command line's options for inputs */
    proa_program *program;
    proa_tensors feed;
} job;

/* ---- feeding --------------------------------------------------------------------------- */

/* The index of the named input; NOT_FOUND, listing the inputs' names, if there is none. */
static proa_status input_named(const job *j, const char *name, size_t length, int64_t *index)
{
    char *known = cli_text("");
    for (int64_t i = 0; i < j->feed.count; i++) {
        const char *have = proa_name_of(proa_program_input(j->program, i));
        if (strlen(have) == length && strncmp(have, name, length) == 0) return *index = i, PROA_OK;
        if (known && i < 16) known = cli_format("%s%s'%s'", known, i ? ", " : "", have);
    }
    return proa_fail(PROA_ERR_NOT_FOUND, "the model has no input '%.*s'; it has %s", (int)length, name,
                     known && *known ? known : "none");
}

static proa_status feed(job *j, int64_t i, proa_tensor *t)
{
    const proa_tensor *spec = proa_program_input(j->program, i);
    const char *name = proa_name_of(spec);
    if (!t) return proa_error();
    if (j->feed.at[i]) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "input '%s' is given twice", name);
    if (proa_dtype_of(t) != proa_dtype_of(spec))
        return proa_fail(PROA_ERR_WRONG_TYPE, "input '%s' is %s; the model expects %s: convert it first",
                         name, cli_shape(t), cli_shape(spec));
    bool fits = proa_ndim(t) == proa_ndim(spec);
    for (int k = 0; fits && k < proa_ndim(t); k++)
        fits = proa_shape_of(spec)[k] < 0 || proa_shape_of(spec)[k] == proa_shape_of(t)[k];
    if (!fits)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "input '%s' is %s; the model expects %s", name,
                         cli_shape(t), cli_shape(spec));
    j->feed.at[i] = t;
    return PROA_OK;
}

/* A tensor of standard normal numbers or, for integer dtypes (which are often indices), of 0 and 1. */
static proa_tensor *random_tensor(proa_ints shape, proa_dtype dtype)
{
    bool real = dtype == PROA_F16 || dtype == PROA_BF16 || dtype == PROA_F32 || dtype == PROA_F64;
    if (dtype == PROA_C64 || dtype == PROA_C128) real = true;
    if (real) return proa_cast(proa_gaussian(shape, .dtype = PROA_F32), dtype);
    return proa_cast(proa_randint(0, 2, shape), dtype);
}

static proa_status feed_random(job *j, int64_t i, const char *text)
{
    int64_t dims[PROA_MAX_DIMS];
    proa_ints shape = {.at = dims};
    for (const char *s = text; *s;) {
        char *end;
        errno = 0;
        long long v = strtoll(s, &end, 10);
        if (end == s || errno || v < 0 || (*end && *end != ',') || shape.count == PROA_MAX_DIMS)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--shape %s: expected up to %d lengths, as in 2,3",
                             text, PROA_MAX_DIMS);
        dims[shape.count++] = v;
        s = end + (*end == ',');
    }
    return feed(j, i, random_tensor(shape, proa_dtype_of(proa_program_input(j->program, i))));
}

static proa_status feed_archive(job *j, const char *path)
{
    cli_named *items = NULL;
    int64_t n = 0, index = 0;
    PROA_TRY(cli_npz_load(path, &items, &n));
    for (int64_t i = 0; i < n; i++) {
        PROA_TRY(input_named(j, items[i].name, strlen(items[i].name), &index));
        PROA_TRY(feed(j, index, items[i].tensor));
    }
    return PROA_OK;
}

static proa_status feed_all(job *j)
{
    j->feed.count = proa_program_input_count(j->program);
    j->feed.at = cli_array((size_t)j->feed.count + 1, sizeof *j->feed.at);
    if (!j->feed.at) return proa_error();
    proa_seed((uint64_t)j->seed);
    for (int64_t i = 0; i < j->n_words; i++) {
        const char *text = j->words[i].text, *equal = strchr(text, '=');
        int64_t index = 0;
        if (j->words[i].kind == INPUTS) {
            PROA_TRY(feed_archive(j, text));
            continue;
        }
        bool shape = j->words[i].kind == SHAPE;
        if (!equal)
            return proa_fail(PROA_ERR_INVALID_ARGUMENT, "--%s %s: expected NAME=%s",
                             shape ? "shape" : "input", text, shape ? "2,3" : "FILE.npy");
        PROA_TRY(input_named(j, text, (size_t)(equal - text), &index));
        PROA_TRY(shape ? feed_random(j, index, equal + 1) : feed(j, index, cli_npy_load(equal + 1)));
    }
    for (int64_t i = 0; i < j->feed.count; i++) {
        const proa_tensor *spec = proa_program_input(j->program, i);
        if (!j->feed.at[i])
            return proa_fail(
                PROA_ERR_INVALID_ARGUMENT,
                "input '%s', %s, is missing: --input %s=FILE.npy, or --shape %s=… for random numbers",
                proa_name_of(spec), cli_shape(spec), proa_name_of(spec), proa_name_of(spec));
    }
    return PROA_OK;
}

/* ---- outputs --------------------------------------------------------------------------- */

static proa_status sum_up(const char *name, proa_tensor *t)
{
    proa_dtype dtype = proa_dtype_of(t);
    bool complex = dtype == PROA_C64 || dtype == PROA_C128;
    int64_t n = proa_numel(t), odd = 0;
    printf("%s %s", name, cli_shape(t));
    if (n == 0) return printf(" empty\n"), PROA_OK;
    PROA_SCOPE {
        proa_tensor *wide = cli_npy_layout(proa_cast(complex ? proa_abs(t) : t, PROA_F64));
        if (!wide) break;
        const double *x = proa_data(wide);
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            if (!isfinite(x[i])) odd++;
            if (x[i] < low) low = x[i];
            if (x[i] > high) high = x[i];
            sum += x[i];
        }
        if (odd == n && low > high) low = high = NAN;
        printf(" %smin %.9g max %.9g mean %.9g", complex ? "of its magnitudes: " : "", low, high,
               sum / (double)n);
        if (odd) printf(" (%lld NaN or infinite)", (long long)odd);
        printf("\n");
    }
    return proa_error();
}

/* The path of the .npy file for a variable: characters unsafe in file names become "_". */
static const char *file_name(const char *folder, const char *name)
{
    char *text = cli_text(*name ? name : "_");
    for (char *s = text; s && *s; s++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *s)) *s = '_';
    if (text && *text == '.') *text = '_';
    return text ? cli_format("%s/%s", folder, text) : NULL;
}

static proa_status save(const job *j, proa_tensors out)
{
    cli_named *items = cli_array((size_t)out.count + 1, sizeof *items);
    if (!items) return proa_error();
    for (int64_t i = 0; i < out.count; i++) {
        const char *name = proa_name_of(proa_program_output(j->program, i));
        if (!(name = cli_text(name ? name : "output"))) return proa_error();
        for (int64_t k = 0; k < i; k++) /* a variable may be fetched twice */
            if (strcmp(items[k].name, name) == 0 && !(name = cli_format("%s_%lld", name, (long long)i)))
                return proa_error();
        items[i] = (cli_named){name, out.at[i]};
        PROA_TRY(sum_up(name, out.at[i]));
    }
    if (j->archive) PROA_TRY(cli_npz_save(j->archive, items, out.count));
    if (!j->folder) return PROA_OK;
    if (mkdir(j->folder, 0777) != 0 && errno != EEXIST)
        return proa_fail(PROA_ERR_IO, "cannot make folder '%s': %s", j->folder, strerror(errno));
    const char **paths = cli_array((size_t)out.count + 1, sizeof *paths);
    if (!paths) return proa_error();
    for (int64_t i = 0; i < out.count; i++) {
        if (!(paths[i] = file_name(j->folder, items[i].name))) return proa_error();
        for (int64_t k = 0; k < i; k++)
            if (strcmp(paths[k], paths[i]) == 0 &&
                !(paths[i] = cli_format("%s_%lld", paths[i], (long long)i)))
                return proa_error();
        char *path = cli_format("%s.npy", paths[i]);
        if (!path) return proa_error();
        PROA_TRY(cli_npy_save(path, out.at[i]));
    }
    return PROA_OK;
}

/* ---- running --------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int number_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static proa_status run_times(const job *j, proa_executor *e)
{
    double start = now(), first, *ms = cli_array((size_t)j->times, sizeof *ms);
    proa_tensors out = proa_executor_run(e, j->feed);
    first = now() - start;
    if (!ms || proa_error()) return proa_error();
    for (int64_t i = 0; i < j->times; i++)
        PROA_SCOPE {
            start = now();
            proa_executor_run(e, j->feed);
            ms[i] = now() - start;
        }
    PROA_TRY(proa_error());
    PROA_TRY(save(j, out));
    if (j->times == 0) return PROA_OK;
    qsort(ms, (size_t)j->times, sizeof *ms, number_order);
    double median = (ms[(j->times - 1) / 2] + ms[j->times / 2]) / 2;
    printf("first run %.3f ms, then %lld: median %.3f ms, fastest %.3f, slowest %.3f\n", first,
           (long long)j->times, median, ms[0], ms[j->times - 1]);
    return PROA_OK;
}

/* Repeats the timed runs with the profiler on, and prints its table. */
static proa_status profile(const job *j, proa_executor *e)
{
    PROA_TRY(proa_profile_start());
    for (int64_t i = 0; i < (j->times ? j->times : 1); i++)
        PROA_SCOPE {
            proa_executor_run(e, j->feed);
        }
    PROA_TRY(proa_profile_stop());
    PROA_TRY(proa_profile_print(stdout, PROA_PROFILE_BY_TOTAL, NULL));
    return j->trace ? proa_profile_write_trace(j->trace) : PROA_OK;
}

static proa_status run(job *j)
{
    j->program = proa_program_load(j->model);
    if (!j->program) return proa_error();
    proa_status status = feed_all(j);
    proa_executor *e = NULL;
    if (status == PROA_OK)
        e = proa_executor_with(j->program, (proa_executor_opts){.frozen = true, .passes = j->passes});
    status = e ? run_times(j, e) : proa_error(); /* also after an error of feed_all */
    if (status == PROA_OK && (j->profile || j->trace)) status = profile(j, e);
    if (e) proa_executor_free(e);
    proa_program_free(j->program);
    return status;
}

int cli_run(cli_args *a)
{
    job j = {.words = cli_array((size_t)a->count + 1, sizeof *j.words)};
    proa_status status = proa_error();
    for (cli_kind kind; status == PROA_OK && (kind = cli_next(a)) != CLI_END;) {
        struct word *w = &j.words[j.n_words];
        if (kind == CLI_FILE && !j.model) j.model = a->value;
        else if (cli_is(a, "input") || cli_is(a, "inputs") || cli_is(a, "shape")) {
            w->kind = cli_is(a, "input") ? INPUT : cli_is(a, "inputs") ? INPUTS : SHAPE;
            status = cli_value(a, &w->text);
            j.n_words++;
        } else if (cli_is(a, "output")) status = cli_value(a, &j.folder);
        else if (cli_is(a, "save")) status = cli_value(a, &j.archive);
        else if (cli_is(a, "passes")) status = cli_value(a, &j.passes);
        else if (cli_is(a, "times")) status = cli_int(a, 1, &j.times);
        else if (cli_is(a, "profile")) j.profile = true;
        else if (cli_is(a, "trace")) status = cli_value(a, &j.trace);
        else if (cli_is(a, "seed")) status = cli_int(a, 0, &j.seed);
        else status = cli_model_option(a);
    }
    if (status == PROA_OK && !j.model)
        status = proa_fail(PROA_ERR_INVALID_ARGUMENT, "no model: proa run MODEL.pdmodel");
    if (status == PROA_OK) status = run(&j);
    return status == PROA_OK ? CLI_OK : CLI_FAILED;
}
