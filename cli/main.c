/* Entry point of the `proa` command, with the parser of the command line, the command's memory pool, and
 * file helpers. The commands are in inspect.c, run.c, diff.c, quantize.c, launch.c and plan.c. Uses Proa's
 * public headers. */
#include "cli.h"

#include <proa/extension.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "proa looks at, runs and compares models in Paddle's format, and launches jobs of several ranks.\n"
    "\n"
    "  proa inspect MODEL [--json | --dot] [--parameters] [--unknown N]\n"
    "      inputs, outputs, ops with shapes, parameters, floating-point operations\n"
    "  proa run MODEL [--input NAME=FILE.npy]… [--inputs FILE.npz] [--shape NAME=2,3]… [--seed N]\n"
    "           [--output DIR] [--save FILE.npz] [--times N] [--passes LIST]\n"
    "           [--profile] [--trace FILE.json]\n"
    "      runs it once (or N times, with the median time) and sums up or saves what comes out;\n"
    "      --profile: what each op took; --trace: each call, as a file that Chrome and Perfetto show\n"
    "  proa diff A B [--tolerance T]\n"
    "      two models, two .npy or two .npz files; exit status 1 when they differ\n"
    "  proa launch [--ranks N] [--restarts N] [--log DIR] PROGRAM [ARGUMENT]…\n"
    "      runs the program as N ranks of one job (default: one a core); when one fails, ends all, and\n"
    "      starts them again up to --restarts times; --log: a file a rank instead of this output\n"
    "  proa quantize MODEL --data FILE.npz… --output PREFIX [--algo abs_max|avg|KL]\n"
    "           [--weights channel|tensor] [--bits N] [--skip WEIGHT] [--embeddings]\n"
    "      runs it on samples and writes it with fake quantizers of the scales that were seen\n"
    "  proa plan --model gpt:layers=L,hidden=H,heads=A,vocabulary=V,sequence=S | --model MODEL\n"
    "           --ranks N,… --batch ROWS [--weak] [--degrees data=D,pipe=P,sharding=N,model=T,\n"
    "           stage=1|2|3,micro_batch=B,chunks=C] [--schedule 1F1B|F-then-B] [--recompute]\n"
    "           [--sequence-parallel] [--fused-attention] [--precision float32|O1|O2] [--moments N]\n"
    "           [--max-micro-batch N] [--no-recompute] [--measure] [--flops F]\n"
    "           [--memory-bandwidth B] [--link B[,SECONDS]] [--local-link B[,SECONDS]]\n"
    "           [--host-ranks N] [--host-cores N] [--memory BYTES] [--timeline FILE.html] [--json]\n"
    "      predicts step time, bubble, exposed communication and memory of a job of N ranks; chooses\n"
    "      degrees that are not given, and says why\n"
    "  proa --version, proa --help\n"
    "\n"
    "MODEL is a .pdmodel file, the prefix of one, or an old folder with __model__; --extension LIBRARY.so\n"
    "loads the custom ops that it has. --shape feeds random numbers. Exit status: 0, 1 (diff found a "
    "difference), 2 (error).\n";

/* ---- memory ---------------------------------------------------------------------------- */

typedef struct block {
    struct block *before;
    size_t used, capacity;
    _Alignas(max_align_t) unsigned char at[];
} block;

enum { BLOCK = 1 << 16 };
static block *last;

void *cli_alloc(size_t bytes)
{
    size_t align = _Alignof(max_align_t);
    if (bytes > SIZE_MAX / 2) {
        proa_fail(PROA_ERR_OVERFLOW, "%zu bytes are more than this machine has", bytes);
        return NULL;
    }
    bytes = (bytes + align - 1) / align * align;
    if (!last || last->capacity - last->used < bytes) {
        size_t capacity = bytes > BLOCK ? bytes : BLOCK;
        block *b = calloc(1, sizeof *b + capacity);
        if (!b) {
            proa_fail(PROA_ERR_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
            return NULL;
        }
        b->before = last;
        b->capacity = capacity;
        last = b;
    }
    void *p = last->at + last->used;
    last->used += bytes;
    return p;
}

void *cli_array(size_t count, size_t item)
{
    if (item && count > SIZE_MAX / item) return cli_alloc(SIZE_MAX);
    return cli_alloc(count * item);
}

char *cli_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = cli_alloc(n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

char *cli_format(const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, list);
    char *text = n < 0 ? NULL : cli_alloc((size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(list);
    return text;
}

void cli_release(void)
{
    while (last) {
        block *before = last->before;
        free(last);
        last = before;
    }
}

/* ---- options --------------------------------------------------------------------------- */

cli_kind cli_next(cli_args *a)
{
    if (a->next >= a->count) return CLI_END;
    char *word = a->at[a->next++];
    a->option = NULL;
    a->value = word;
    if (strncmp(word, "--", 2) != 0) return CLI_FILE;
    char *equal = strchr(word, '=');
    if (equal) *equal = 0;
    a->option = word;
    a->value = equal ? equal + 1 : NULL;
    return CLI_OPTION;
}

bool cli_is(const cli_args *a, const char *name) { return a->option && strcmp(a->option + 2, name) == 0; }

proa_status cli_value(cli_args *a, const char **value)
{
    if (!a->value && a->next < a->count) a->value = a->at[a->next++];
    if (!a->value) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected a value behind it", a->option);
    *value = a->value;
    return PROA_OK;
}

proa_status cli_int(cli_args *a, int64_t low, int64_t *value)
{
    const char *text = NULL;
    PROA_TRY(cli_value(a, &text));
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < low)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: expected an integer of at least %lld, got '%s'",
                         a->option, (long long)low, text);
    *value = v;
    return PROA_OK;
}

proa_status cli_unknown(const cli_args *a)
{
    if (a->option)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT, "unknown option %s: proa --help lists them", a->option);
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "'%s' is one file too many: proa --help shows the form",
                     a->value);
}

proa_status cli_model_option(cli_args *a)
{
    const char *path = NULL;
    if (!cli_is(a, "extension")) return cli_unknown(a);
    PROA_TRY(cli_value(a, &path));
    return proa_load_extension(path) ? PROA_OK : proa_error();
}

/* ---- files and text -------------------------------------------------------------------- */

unsigned char *cli_read(const char *path, size_t *bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        int e = f ? 0 : errno;
        proa_fail(e == ENOENT ? PROA_ERR_NO_FILE : PROA_ERR_IO, "cannot read '%s': %s", path,
                  e ? strerror(e) : "not a regular file");
        if (f) fclose(f);
        return NULL;
    }
    *bytes = (size_t)st.st_size;
    unsigned char *data = cli_alloc(*bytes + 1);
    if (data && fread(data, 1, *bytes, f) != *bytes) {
        proa_fail(PROA_ERR_IO, "cannot read '%s': it ended early", path);
        data = NULL;
    }
    fclose(f);
    return data;
}

proa_status cli_write(const char *path, const cli_piece *pieces, int64_t n)
{
    proa_writer *w = proa_writer_open(path);
    if (!w) return proa_error();
    proa_status status = PROA_OK;
    for (int64_t i = 0; status == PROA_OK && i < n; i++)
        status = proa_writer_put(w, pieces[i].data, pieces[i].bytes);
    if (status == PROA_OK) return proa_writer_commit(w);
    proa_writer_abort(w);
    return status;
}

bool cli_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

const char *cli_shape(const proa_tensor *t)
{
    if (!t) return "?";
    char text[32 + 24 * PROA_MAX_DIMS];
    size_t at = (size_t)snprintf(text, sizeof text, "%s [", proa_dtype_name(proa_dtype_of(t)));
    for (int i = 0; i < proa_ndim(t); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? ", " : "",
                               (long long)proa_shape_of(t)[i]);
    snprintf(text + at, sizeof text - at, "]");
    const char *copy = cli_text(text);
    return copy ? copy : "?";
}

/* Length in bytes of the UTF-8 character at s; 0 if the bytes are invalid. */
static int utf8(const unsigned char *s)
{
    int n = *s < 0x80                 ? 1
            : *s >= 0xC2 && *s < 0xE0 ? 2
            : *s >= 0xE0 && *s < 0xF0 ? 3
            : *s >= 0xF0 && *s < 0xF5 ? 4
                                      : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((n == 3 && s[0] == 0xE0 && s[1] < 0xA0) || (n == 3 && s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((n == 4 && s[0] == 0xF0 && s[1] < 0x90) || (n == 4 && s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return n;
}

void cli_json_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = utf8(s);
        if (*s == '"' || *s == '\\') fprintf(to, "\\%c", *s);
        else if (n == 0 || *s < 0x20) fprintf(to, "\\u%04x", (unsigned)*s);
        else fwrite(s, 1, (size_t)n, to);
        s += n ? n : 1;
    }
    fputc('"', to);
}

void cli_json_number(FILE *to, double v)
{
    if (isfinite(v)) fprintf(to, "%.9g", v);
    else fputs(isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"", to); /* JSON has no such numbers */
}

/* ---- main ------------------------------------------------------------------------------ */

static int command(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    cli_args args = {.command = name, .at = argv, .count = argc, .next = 2};
    if (strcmp(name, "launch") == 0 && argc > 2 && strcmp(argv[2], "--help") != 0) return cli_launch(&args);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0) name = "--help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) return fputs(help, stdout), CLI_OK;
    if (strcmp(name, "--version") == 0)
        return printf("proa %s\n%s\n", proa_version(), proa_build_info()), CLI_OK;
    if (strcmp(name, "inspect") == 0) return cli_inspect(&args);
    if (strcmp(name, "run") == 0) return cli_run(&args);
    if (strcmp(name, "diff") == 0) return cli_diff(&args);
    if (strcmp(name, "launch") == 0) return cli_launch(&args);
    if (strcmp(name, "quantize") == 0) return cli_quantize(&args);
    if (strcmp(name, "plan") == 0) return cli_plan(&args);
    proa_fail(PROA_ERR_INVALID_ARGUMENT,
              *name ? "unknown command '%s': expected inspect, run, diff, launch, quantize or plan"
                    : "%sno command: expected inspect, run, diff, launch, quantize or plan (proa --help)",
              name);
    return CLI_FAILED;
}

int main(int argc, char **argv)
{
    int status = command(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !proa_error())
        proa_fail(PROA_ERR_IO, "cannot write the output: %s", strerror(errno));
    if (proa_error()) {
        status = CLI_FAILED;
        fprintf(stderr, "proa%s%s: %s\n", argc > 1 ? " " : "", argc > 1 ? argv[1] : "", proa_error_message());
    }
    int ended = proa_finish(NULL);
    (void)ended; /* the exit status reports the error already */
    cli_release();
    return status;
}
