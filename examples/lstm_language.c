/* An LSTM learns English by characters; its states run on from batch to batch, without history.
 * Usage: lstm_language [data folder] */
#include <proa.h>

#include <stdlib.h>

enum { WINDOW = 32, FEATURES = 64, HIDDEN = 128, ROWS = 16 };

typedef struct model {
    proa_layer base;
    proa_layer *characters, *memory, *scores; /* children */
} model;

static model *make_model(int64_t vocabulary)
{
    model *m = (model *)proa_layer_new(sizeof *m, "model", NULL);
    if (!m) return NULL;
    m->characters = proa_layer_add(&m->base, "characters", proa_embedding_layer(vocabulary, FEATURES, -1));
    m->memory = proa_layer_add(&m->base, "memory", proa_lstm_layer(FEATURES, HIDDEN));
    m->scores = proa_layer_add(&m->base, "scores", proa_linear_layer(HIDDEN, vocabulary));
    return m;
}

/* Columns [from, from + WINDOW) of tokens [ROWS, n]: row r of a batch reads the r-th part of the text. */
static proa_tensor *columns(proa_tensor *tokens, int64_t from)
{
    return proa_slice(tokens, PROA_INTS(1), PROA_INTS(from), PROA_INTS(from + WINDOW));
}

int main(int argc, char **argv)
{
    const char *data = argc > 1 ? argv[1] : getenv("PROA_DATA") ? getenv("PROA_DATA") : "examples/data";
    char path[4096];
    snprintf(path, sizeof path, "%s/alice.txt", data);
    proa_seed(3);
    proa_text *text = proa_text_load(path, false);
    if (!text) return proa_finish(stderr);
    int64_t vocabulary = proa_text_vocabulary(text), n = proa_dim(proa_text_tokens(text), 0) / ROWS;
    proa_tensor *all = proa_slice(proa_text_tokens(text), PROA_INTS(0), PROA_INTS(0), PROA_INTS(n * ROWS));
    proa_tensor *tokens = proa_reshape(all, PROA_INTS(ROWS, n));
    model *m = make_model(vocabulary);
    proa_optimizer *opt =
        m ? proa_adam(proa_parameters(&m->base), .lr = 4e-3, .clip = {PROA_CLIP_GLOBAL_NORM, 1}) : NULL;
    int64_t steps = getenv("PROA_SHORT") ? 80 : 1000;
    proa_tensor *h = proa_keep(proa_zeros(PROA_SHAPE(1, ROWS, HIDDEN), PROA_F32));
    proa_tensor *c = proa_keep(proa_zeros(PROA_SHAPE(1, ROWS, HIDDEN), PROA_F32));
    double mean = 0;
    for (int64_t step = 0, from = 0; step < steps && !proa_error(); step++, from += WINDOW)
        PROA_SCOPE {
            if (from + WINDOW + 1 > n) from = 0;
            proa_rnn_output out = proa_rnn_forward(
                m->memory, proa_forward(m->characters, columns(tokens, from)), h, c, PROA_NONE);
            proa_tensor *loss =
                proa_cross_entropy(proa_forward(m->scores, out.out), columns(tokens, from + 1));
            proa_backward(loss);
            proa_step(opt);
            proa_release(h);
            proa_release(c);
            h = proa_keep(proa_detach(out.h));
            c = proa_keep(proa_detach(out.c));
            mean = step ? 0.95 * mean + 0.05 * proa_item(loss) : proa_item(loss);
            if (step % 20 == 19) printf("step %lld: %.3f nats a character\n", (long long)step + 1, mean);
        }
    proa_release(h);
    proa_release(c);
    proa_optimizer_free(opt);
    proa_layer_free(m ? &m->base : NULL);
    proa_text_free(text);
    return proa_finish(stderr);
}
