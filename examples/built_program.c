/* Builds a training program call by call, differentiates it, runs it, and saves the part that predicts:
 * static graphs without Python. The network learns whether a point lies inside a circle.
 * Usage: built_program [steps] */
#include <proa.h>

#include <stdlib.h>

enum { BATCH = 256, HIDDEN = 32 };

/* A parameter: a variable of the program, and the data that it stands for. */
static proa_tensor *parameter(proa_program *p, const char *name, proa_ints shape, double spread)
{
    proa_tensor *variable = proa_program_persistable(p, name, shape, PROA_F32);
    proa_program *open = proa_program_open(NULL); /* this is to happen now, not in the program */
    proa_program_bind(p, name, proa_scale(proa_uniform(shape), .scale = proa_scalar_float(spread)));
    proa_program_open(open);
    return variable;
}

/* Whether each point of a square lies within the circle: 1 or 0. */
static proa_tensor *inside(proa_tensor *points)
{
    proa_tensor *distance = proa_sum(proa_square(points), .axis = PROA_INTS(1), .keepdim = true);
    return proa_cast(proa_less_than(distance, proa_full(PROA_SHAPE(1), 0.5)), PROA_F32);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : getenv("PROA_SHORT") ? 400 : 2000;
    proa_seed(7);
    proa_program *train = proa_program_new();
    proa_program_open(train); /* from here on, calls become ops */
    proa_input_spec specs[] = {{.name = "points", .shape = PROA_SHAPE(-1, 2)},
                               {.name = "inside", .shape = PROA_SHAPE(-1, 1)}};
    proa_tensor *x = proa_program_data(train, &specs[0]), *y = proa_program_data(train, &specs[1]);
    proa_tensor *params[] = {
        parameter(train, "w1", PROA_SHAPE(2, HIDDEN), 1.0), parameter(train, "b1", PROA_SHAPE(HIDDEN), 1.0),
        parameter(train, "w2", PROA_SHAPE(HIDDEN, 1), 0.3), parameter(train, "b2", PROA_SHAPE(1), 0.0)};
    proa_tensor *hidden = proa_tanh(proa_add(proa_matmul(x, params[0]), params[1]));
    proa_tensor *answer = proa_sigmoid(proa_add(proa_matmul(hidden, params[2]), params[3]));
    proa_tensor *loss = proa_mean(proa_square(proa_subtract(answer, y)));

    proa_tensors all = {4, params}, none = {0, NULL};
    proa_tensors grads = proa_program_gradients(train, PROA_LIST(loss), all, none, none);
    proa_program_set_role(train, 2); /* what follows is the optimizer's */
    proa_sgd_step(all, grads, proa_full(PROA_SHAPE(1), 0.5), none, PROA_NONE);
    proa_program_open(NULL); /* calls run again */

    proa_executor *run = proa_executor_with(train, (proa_executor_opts){.outputs = PROA_LIST(loss)});
    for (int step = 1; step <= steps; step++)
        PROA_SCOPE {
            proa_tensor *points = proa_uniform(PROA_SHAPE(BATCH, 2));
            proa_tensors out = proa_executor_run(run, PROA_LIST(points, inside(points)));
            if (out.count && step % (steps / 4) == 0)
                printf("step %5d  loss %.4f\n", step, proa_item(out.at[0]));
        }

    proa_program *predict = proa_program_clone(train, true); /* without gradients and optimizer */
    proa_program_set_inputs(predict, PROA_LIST(proa_program_find(predict, "points")));
    proa_program_set_outputs(predict, PROA_LIST(proa_program_find(predict, proa_name_of(answer))));
    proa_program_prune(predict);
    if (proa_program_save(predict, "circle") == PROA_OK)
        printf("saved circle.pdmodel and circle.pdiparams\n");

    proa_executor_free(run);
    proa_program_free(predict);
    proa_program_free(train);
    return proa_finish(stderr);
}
