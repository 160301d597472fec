/* Predictors through Paddle's C interface over many input shapes: every run gives the bits of the first with
 * its shape, from one predictor and from ten clones in ten threads, and memory stays flat. Short by default;
 * PROA_TEST_SOAK set (make soak): 10^6 runs over 1,000 shapes, and then resident memory stays within 2 % of
 * what it was after the first 5,000 runs. */
#define _GNU_SOURCE
#include "soak.h"

#include <paddle/fluid/inference/capi_exp/pd_inference_api.h>

#include <pthread.h>
#include <string.h>

enum { CLASSES = SOAK_CLASSES, CHANNELS = SOAK_CHANNELS, MAX_BATCH = 10, MAX_SIDE = 13, CLONES = 10 };
enum { SHAPES = 1000 }; /* batch, height and width: 1 to 10, and 4 to 13 */

typedef struct answer {
    float scores[MAX_BATCH * CLASSES];
} answer;

static float pixels[MAX_BATCH * CHANNELS * MAX_SIDE * MAX_SIDE];
static answer answers[SHAPES]; /* of the first run of each shape */

static int shapes(void) { return soak_is_long() ? SHAPES : 100; }

/* A predictor of the network, whose files are gone again. */
static PD_Predictor *predictor(void)
{
    char prefix[256], model[300], params[300];
    snprintf(prefix, sizeof prefix, "%s/%d_soak", test_folder(), (int)getpid());
    snprintf(model, sizeof model, "%s.pdmodel", prefix);
    snprintf(params, sizeof params, "%s.pdiparams", prefix);
    PROA_SCOPE {
        proa_seed(1);
        proa_tensor *w[] = SOAK_WEIGHTS;
        ck_assert_int_eq(proa_set_name(w[0], "filter"), PROA_OK);
        ck_assert_int_eq(proa_set_name(w[1], "weight"), PROA_OK);
        proa_input_spec spec = {"x", PROA_SHAPE(-1, CHANNELS, -1, -1), PROA_F32};
        proa_program *p = proa_capture(soak_network, &spec, 1, w);
        ck_assert_msg(p && proa_program_save(p, prefix) == PROA_OK, "%s", proa_error_message());
        proa_program_free(p);
    }
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) pixels[i] = (float)(i * 37 % 101) / 50 - 1;
    PD_Config *c = PD_ConfigCreate();
    PD_ConfigSetModel(c, model, params);
    PD_ConfigDisableGlogInfo(c);
    PD_Predictor *p = PD_PredictorCreate(c);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    ck_assert(remove(model) == 0 && remove(params) == 0);
    return p;
}

/* Runs shape k, as a user's program does: handles and names anew. False for an error. */
static bool run(PD_Predictor *p, int k, answer *to)
{
    int32_t shape[] = {1 + k % 10, CHANNELS, 4 + k / 10 % 10, 4 + k / 100 % 10};
    PD_OneDimArrayCstr *names = PD_PredictorGetInputNames(p), *results = PD_PredictorGetOutputNames(p);
    PD_Tensor *in = names ? PD_PredictorGetInputHandle(p, names->data[0]) : NULL;
    PD_Tensor *out = results ? PD_PredictorGetOutputHandle(p, results->data[0]) : NULL;
    PD_TensorReshape(in, 4, shape);
    PD_TensorCopyFromCpuFloat(in, pixels);
    bool ok = PD_PredictorRun(p) == TRUE;
    PD_OneDimArrayInt32 *have = PD_TensorGetShape(out);
    ok = ok && have && have->size == 2 && have->data[0] == shape[0] && have->data[1] == CLASSES;
    memset(to, 0, sizeof *to);
    if (ok) PD_TensorCopyToCpuFloat(out, to->scores);
    PD_OneDimArrayInt32Destroy(have);
    PD_TensorDestroy(in);
    PD_TensorDestroy(out);
    PD_OneDimArrayCstrDestroy(names);
    PD_OneDimArrayCstrDestroy(results);
    return ok && proa_error() == PROA_OK;
}

static void first_answers(PD_Predictor *p)
{
    for (int k = 0; k < shapes(); k++) {
        ck_assert_msg(run(p, k, &answers[k]), "shape %d: %s", k, proa_error_message());
        ck_assert(answers[k].scores[0] > 0);
    }
}

START_TEST(memory_stays_flat)
{
    int runs = soak_is_long() ? 1000000 : 3000, warm = soak_is_long() ? 5000 : 500;
    PD_Predictor *p = predictor();
    double before = 0, most = 0;
    int64_t live = 0;
    first_answers(p);
    for (int i = 0; i < runs; i++) {
        answer have;
        int k = (int)((int64_t)i * 7919 % shapes());
        bool same = run(p, k, &have) && memcmp(&have, &answers[k], sizeof have) == 0;
        if (!same) ck_abort_msg("run %d, shape %d: %s", i, k, proa_error_message());
        if (i == warm) before = soak_resident(), live = proa_memory_get_stats().live_bytes;
        if (i > warm && i % 1000 == 0 && soak_resident() > most) most = soak_resident();
    }
    int64_t live_now = proa_memory_get_stats().live_bytes;
    if (soak_is_long())
        printf("resident: %.0f KiB after %d runs, at most %.0f KiB in %d\n", before, warm, most, runs);
    ck_assert_msg(!soak_is_long() || most <= before * 1.02, "resident memory grew from %.0f to %.0f KiB",
                  before, most);
    ck_assert_msg(live_now <= live + live / 10 + 65536, "live bytes grew from %lld to %lld", (long long)live,
                  (long long)live_now);
    PD_PredictorDestroy(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

typedef struct user {
    PD_Predictor *clone;
    int first, runs;
    bool right;
} user;

static void *use(void *context)
{
    user *u = context;
    u->right = true;
    for (int i = 0; i < u->runs && u->right; i++) {
        answer have;
        int k = (u->first + i) % shapes();
        u->right = run(u->clone, k, &have) && memcmp(&have, &answers[k], sizeof have) == 0;
    }
    return NULL;
}

START_TEST(ten_clones_in_ten_threads)
{
    PD_Predictor *first = predictor();
    user users[CLONES];
    pthread_t threads[CLONES];
    first_answers(first);
    for (int i = 0; i < CLONES; i++)
        users[i] = (user){PD_PredictorClone(i % 2 ? users[i - 1].clone : first), i * 97,
                          soak_is_long() ? 10 * SHAPES : 150, false};
    PD_PredictorDestroy(first); /* clones outlive it */
    for (int i = 0; i < CLONES; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    for (int i = 0; i < CLONES; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < CLONES; i++) {
        ck_assert_msg(users[i].right, "clone %d answers differently", i);
        PD_PredictorDestroy(users[i].clone);
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("predictors over many shapes", memory_stays_flat, ten_clones_in_ten_threads)
