/* PD_Predictor functions of Paddle's C interface. May use proa/inference.h alone. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>

/* A PD_Predictor that owns `made` and one reference to the config. */
static PD_Predictor *wrap(proa_predictor *made, PD_Config *config)
{
    PD_Predictor *p = made ? pd_alloc(sizeof *p) : NULL;
    if (p) {
        *p = (PD_Predictor){made, config, pd_is_quiet(config)};
        pd_config_retain(config);
    } else proa_predictor_free(made);
    pd_end(pd_is_quiet(config));
    return p;
}

PD_Predictor *PD_PredictorCreate(PD_Config *config)
{
    if (!pd_begin("PD_PredictorCreate", config)) return NULL;
    PD_Predictor *p = wrap(proa_predictor_new(config->config), config);
    if (!p) return NULL; /* the caller still owns the config */
    pd_config_take(config);
    pd_config_release(config); /* the caller's reference */
    return p;
}

PD_Predictor *PD_PredictorClone(PD_Predictor *predictor)
{
    if (!pd_begin("PD_PredictorClone", predictor)) return NULL;
    return wrap(proa_predictor_clone(predictor->predictor), predictor->config);
}

void PD_PredictorDestroy(PD_Predictor *predictor)
{
    if (!predictor) return;
    proa_predictor_free(predictor->predictor);
    pd_config_release(predictor->config);
    free(predictor);
}

PD_Bool PD_PredictorRun(PD_Predictor *predictor)
{
    if (!pd_begin("PD_PredictorRun", predictor)) return FALSE;
    return proa_predictor_run(predictor->predictor) == PROA_OK || pd_end(predictor->quiet);
}

void PD_PredictorClearIntermediateTensor(PD_Predictor *predictor)
{
    if (!pd_begin("PD_PredictorClearIntermediateTensor", predictor)) return;
    proa_predictor_clear(predictor->predictor);
    pd_end(predictor->quiet);
}

uint64_t PD_PredictorTryShrinkMemory(PD_Predictor *predictor)
{
    if (!pd_begin("PD_PredictorTryShrinkMemory", predictor)) return 0;
    uint64_t bytes = (uint64_t)proa_predictor_shrink(predictor->predictor);
    return pd_end(predictor->quiet) ? bytes : 0;
}

/* ---- inputs and outputs ----------------------------------------------------------------- */

static PD_Tensor *new_handle(PD_Predictor *p, proa_handle *handle)
{
    PD_Tensor *t = handle ? pd_alloc(sizeof *t) : NULL;
    if (t) *t = (PD_Tensor){handle, proa_predictor_retain(p->predictor), p->quiet};
    pd_end(p->quiet);
    return t;
}

static size_t count_inputs(const PD_Predictor *p) { return (size_t)proa_predictor_input_count(p->predictor); }

static size_t count_outputs(const PD_Predictor *p)
{
    return (size_t)proa_predictor_output_count(p->predictor);
}

static const char *input_name(const void *p, int64_t i)
{
    return proa_handle_name(proa_predictor_input(p, i));
}

static const char *output_name(const void *p, int64_t i)
{
    return proa_handle_name(proa_predictor_output(p, i));
}

static PD_IOInfo *new_info(const proa_handle *h)
{
    const proa_tensor *v = proa_handle_variable(h);
    PD_IOInfo *info = pd_alloc(sizeof *info);
    if (!info) return NULL;
    size_t rank = (size_t)proa_ndim(v);
    info->name = pd_text(proa_handle_name(h));
    info->dtype = pd_data_type(proa_dtype_of(v));
    info->shape = pd_alloc(sizeof *info->shape);
    if (info->shape) info->shape->data = pd_alloc(rank * sizeof(int64_t));
    if (info->name && info->shape && info->shape->data) {
        info->shape->size = rank;
        if (rank) memcpy(info->shape->data, proa_shape_of(v), rank * sizeof(int64_t));
        return info;
    }
    PD_IOInfoDestroy(info);
    return NULL;
}

static PD_IOInfos *new_infos(PD_Predictor *p, size_t n, proa_handle *(*at)(const proa_predictor *, int64_t))
{
    PD_IOInfos *infos = pd_alloc(sizeof *infos);
    if (infos) infos->io_info = pd_alloc(n * sizeof *infos->io_info);
    while (infos && infos->io_info && infos->size < n) {
        PD_IOInfo *info = new_info(at(p->predictor, (int64_t)infos->size));
        if (!info) break;
        infos->io_info[infos->size++] = info;
    }
    if (pd_end(p->quiet)) return infos;
    PD_IOInfosDestroy(infos);
    return NULL;
}

/* X(function's word, word) */
#define ENDS(X) X(Input, input) X(Output, output)
#define PD_NAMES(W, w)                                                                                 \
    PD_OneDimArrayCstr *PD_PredictorGet##W##Names(PD_Predictor *predictor)                             \
    {                                                                                                  \
        if (!pd_begin("PD_PredictorGet" #W "Names", predictor)) return NULL;                           \
        PD_OneDimArrayCstr *names = pd_names(count_##w##s(predictor), w##_name, predictor->predictor); \
        pd_end(predictor->quiet);                                                                      \
        return names;                                                                                  \
    }
ENDS(PD_NAMES)
#define PD_COUNT(W, w)                                                                        \
    size_t PD_PredictorGet##W##Num(PD_Predictor *predictor)                                   \
    {                                                                                         \
        return pd_begin("PD_PredictorGet" #W "Num", predictor) ? count_##w##s(predictor) : 0; \
    }
ENDS(PD_COUNT)
#define PD_INFOS(W, w)                                                            \
    PD_IOInfos *PD_PredictorGet##W##Infos(PD_Predictor *predictor)                \
    {                                                                             \
        if (!pd_begin("PD_PredictorGet" #W "Infos", predictor)) return NULL;      \
        return new_infos(predictor, count_##w##s(predictor), proa_predictor_##w); \
    }
ENDS(PD_INFOS)
#define PD_HANDLE(W, w)                                                                    \
    PD_Tensor *PD_PredictorGet##W##Handle(PD_Predictor *predictor, const char *name)       \
    {                                                                                      \
        if (!pd_begin("PD_PredictorGet" #W "Handle", predictor)) return NULL;              \
        return new_handle(predictor, proa_predictor_find_##w(predictor->predictor, name)); \
    }
ENDS(PD_HANDLE)

const char *PD_GetVersion(void)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "version: %s\n", proa_version());
    return text;
}
