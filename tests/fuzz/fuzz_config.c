/* Fuzzes configs: the input is a sequence of calls on a config and on copies of it, whose arguments are its
 * bytes. A predictor of a small model is made from the last one and run. */
#include "tests/fuzz/predict.h"

#include <proa.h>

#include <stdio.h>
#include <unistd.h>

/* ---- the input ---------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static int64_t byte(reader *r) { return r->at < r->end ? *r->at++ : 0; }

/* One signed byte, or eight bytes. */
static int64_t number(reader *r)
{
    int64_t v = byte(r) - 128;
    if (v != 127) return v;
    uint64_t wide = 0;
    for (int i = 0; i < 8; i++) wide = wide << 8 | (uint64_t)byte(r);
    return (int64_t)wide;
}

/* A name that some list knows, or up to 63 bytes of the input. */
static const char *name(reader *r, char text[64])
{
    static const char *const known[] = {"conv2d", "fc", "matmul_v2", "cpu", "gpu:0", "", "/", "."};
    enum { KNOWN = sizeof known / sizeof *known };
    int64_t length = byte(r);
    if (length >= 192) return proa_pass_name((length - 192) % 16);
    if (length >= 128) return known[(length - 128) % KNOWN];
    size_t n = 0;
    for (length %= 64; length > 0 && r->at < r->end; length--) text[n++] = (char)*r->at++;
    text[n] = '\0';
    return text;
}

/* ---- the model ---------------------------------------------------------------------------------- */

static char *model, *params;
static size_t model_bytes, params_bytes;

static proa_tensors forward(proa_tensors in, void *context)
{
    proa_tensors out = {1, proa_scope_alloc(sizeof *out.at)};
    if (out.at) out.at[0] = proa_relu(proa_matmul(in.at[0], context));
    return out;
}

static char *read_away(const char *prefix, const char *ending, size_t *n)
{
    char path[64], *data = malloc(1 << 16);
    snprintf(path, sizeof path, "%s%s", prefix, ending);
    FILE *f = fopen(path, "rb");
    if (!f || !data) abort();
    *n = fread(data, 1, 1 << 16, f);
    if (fclose(f) != 0 || remove(path) != 0) abort();
    return data;
}

static void make_model(void)
{
    char folder[] = "/tmp/fuzz_config_XXXXXX", prefix[40];
    if (!mkdtemp(folder)) abort();
    snprintf(prefix, sizeof prefix, "%s/net", folder);
    PROA_SCOPE {
        static const float numbers[12] = {1, 0, -1, 2, 0, 1, 1, -2, 3, 0, 0, 1};
        proa_tensor *weight = proa_from_data(numbers, PROA_SHAPE(3, 4), PROA_F32);
        proa_input_spec spec = {"x", PROA_SHAPE(-1, 3), PROA_F32};
        if (!weight || proa_set_name(weight, "w") != PROA_OK) abort();
        proa_program *p = proa_capture(forward, &spec, 1, weight);
        if (!p || proa_program_save(p, prefix) != PROA_OK) abort();
        proa_program_free(p);
    }
    model = read_away(prefix, ".pdmodel", &model_bytes);
    params = read_away(prefix, ".pdiparams", &params_bytes);
    if (rmdir(folder) != 0) abort();
}

/* ---- the calls ---------------------------------------------------------------------------------- */

static proa_status call(proa_config *c, reader *r)
{
    char text[64];
    int which = (int)byte(r);
    switch (which % 8) {
    case 0: return proa_config_set(c, (proa_config_number)byte(r), number(r));
    case 1: return proa_config_set_text(c, (proa_config_text)byte(r), name(r, text));
    case 2: return proa_config_insert(c, (proa_config_list)byte(r), number(r), name(r, text));
    case 3: return proa_config_remove(c, (proa_config_list)byte(r), name(r, text));
    case 4: return proa_config_clear(c, (proa_config_list)byte(r));
    case 5: return proa_config_set_device(c, name(r, text));
    case 6: return proa_config_set_buffers(c, model, model_bytes, params, which & 8 ? 0 : params_bytes);
    default: return proa_config_set_buffers(c, NULL, 0, NULL, 0);
    }
}

static void read_back(const proa_config *c, FILE *nowhere)
{
    for (int i = 0; i < PROA_CONFIG_NUMBER_COUNT; i++) (void)proa_config_get(c, (proa_config_number)i);
    for (int i = 0; i < PROA_CONFIG_TEXT_COUNT; i++)
        if (!proa_config_get_text(c, (proa_config_text)i)) abort();
    for (int i = 0; i < PROA_CONFIG_LIST_COUNT; i++)
        for (int64_t k = 0; k < proa_config_count(c, (proa_config_list)i); k++)
            if (!proa_config_name(c, (proa_config_list)i, k)) abort();
    if (proa_config_print(c, nowhere) != PROA_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
        if (!nowhere) abort();
        make_model();
    }
    proa_memory_set_cap((int64_t)1 << 30);
    reader r = {data, data + (size < 512 ? size : 512)};
    proa_config *c = proa_config_new();
    while (c && r.at < r.end) {
        if (call(c, &r) != proa_error()) abort();
        proa_clear_error();
    }
    read_back(c, nowhere);
    proa_config *copy = proa_config_copy(c);
    proa_config_free(c);
    (void)proa_config_set(copy, PROA_CONFIG_LOG, 0);
    (void)proa_config_set(copy, PROA_CONFIG_IR_DEBUG, 0); /* each would print pages an execution */
    (void)proa_config_set(copy, PROA_CONFIG_PROFILE, 0);
    if (proa_config_get(copy, PROA_CONFIG_CPU_THREADS) > 2)
        (void)proa_config_set(copy, PROA_CONFIG_CPU_THREADS, 2);
    fuzz_predict(copy, true);
    return 0;
}
