/* Errors, and the arrays and strings that getters of Paddle's C interface allocate and Destroy functions
 * free. May use proa/inference.h alone. */
#include "capi.h"

#include <stdlib.h>
#include <string.h>

bool pd_begin(const char *who, const void *argument)
{
    proa_clear_error();
    if (argument) return true;
    proa_fail(PROA_ERR_INVALID_ARGUMENT, "%s: the argument is NULL", who);
    return pd_end(false);
}

bool pd_end(bool quiet)
{
    if (proa_error() == PROA_OK) return true;
    if (!quiet) fprintf(stderr, "proa: %s\n", proa_error_message());
    return false;
}

void *pd_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) proa_fail(PROA_ERR_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    return p;
}

PD_Cstr *pd_text(const char *text)
{
    PD_Cstr *s = pd_alloc(sizeof *s);
    if (!s || !text || !*text) return s;
    s->size = strlen(text) + 1;
    s->data = pd_alloc(s->size);
    if (s->data) memcpy(s->data, text, s->size);
    else PD_CstrDestroy(s), s = NULL;
    return s;
}

PD_OneDimArrayCstr *pd_names(size_t n, const char *(*name)(const void *of, int64_t i), const void *of)
{
    PD_OneDimArrayCstr *list = pd_alloc(sizeof *list);
    if (list) list->data = pd_alloc(n * sizeof *list->data);
    for (size_t i = 0; list && list->data && i < n; i++) {
        const char *text = name(of, (int64_t)i);
        list->data[i] = text ? pd_alloc(strlen(text) + 1) : NULL;
        if (!list->data[i]) break;
        strcpy(list->data[i], text);
        list->size++;
    }
    if (list && list->size == n && list->data) return list;
    PD_OneDimArrayCstrDestroy(list);
    return NULL;
}

/* ---- ends ------------------------------------------------------------------------------- */

#define ARRAYS(X) X(PD_OneDimArrayInt32) X(PD_OneDimArraySize) X(PD_OneDimArrayInt64) X(PD_Cstr)
#define PD_X(T)           \
    void T##Destroy(T *p) \
    {                     \
        if (!p) return;   \
        free(p->data);    \
        free(p);          \
    }
ARRAYS(PD_X)
#undef PD_X

void PD_OneDimArrayCstrDestroy(PD_OneDimArrayCstr *p)
{
    if (!p) return;
    for (size_t i = 0; p->data && i < p->size; i++) free(p->data[i]);
    free(p->data);
    free(p);
}

void PD_TwoDimArraySizeDestroy(PD_TwoDimArraySize *p)
{
    if (!p) return;
    for (size_t i = 0; p->data && i < p->size; i++) PD_OneDimArraySizeDestroy(p->data[i]);
    free(p->data);
    free(p);
}

void PD_IOInfoDestroy(PD_IOInfo *p)
{
    if (!p) return;
    PD_CstrDestroy(p->name);
    PD_OneDimArrayInt64Destroy(p->shape);
    free(p);
}

void PD_IOInfosDestroy(PD_IOInfos *p)
{
    if (!p) return;
    for (size_t i = 0; p->io_info && i < p->size; i++) PD_IOInfoDestroy(p->io_info[i]);
    free(p->io_info);
    free(p);
}
