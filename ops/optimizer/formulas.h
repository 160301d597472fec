/* Update formulas of the optimizers for one element, shared by CPU and GPU kernels: p is the parameter, g the
 * gradient, then come the states; k holds the numbers of the step. Included with T, the computing type, and
 * FN(name), which forms a name for that type; STEP_FORMULA qualifies the functions, STEP_ROOT is the square
 * root in T. */

typedef struct FN(step_numbers) {
    T at[6];   /* as each formula says */
    T rest[2]; /* 1 − at[1] and 1 − at[2], taken in double */
} FN(step_numbers);

STEP_FORMULA FN(step_numbers) FN(step_round)(const double *k)
{
    FN(step_numbers) n;
    for (int i = 0; i < 6; i++) n.at[i] = (T)k[i];
    n.rest[0] = (T)(1 - k[1]);
    n.rest[1] = (T)(1 - k[2]);
    return n;
}

/* k: lr */
STEP_FORMULA void FN(sgd_one)(T *p, T g, FN(step_numbers) k) { *p -= k.at[0] * g; }

/* k: lr, mu, weight decay, what the gradient is multiplied by, whether Nesterov's. */
STEP_FORMULA void FN(momentum_one)(T *p, T g, T *velocity, FN(step_numbers) k)
{
    T d = g * k.at[3] + k.at[2] * *p;
    T v = k.at[1] * *velocity + d;
    *velocity = v;
    *p -= k.at[4] != 0 ? (d + k.at[1] * v) * k.at[0] : k.at[0] * v;
}

/* k: lr · √(1 − β2^t)/(1 − β1^t), β1, β2, epsilon · √(1 − β2^t), what the decay leaves of p. */
STEP_FORMULA void FN(adam_one)(T *p, T g, T *m, T *v, FN(step_numbers) k)
{
    T first = k.at[1] * *m + k.rest[0] * g, second = k.at[2] * *v + k.rest[1] * g * g;
    *m = first;
    *v = second;
    *p = k.at[4] * *p - k.at[0] * (first / (STEP_ROOT(second) + k.at[3]));
}

/* k: lr, epsilon */
STEP_FORMULA void FN(adagrad_one)(T *p, T g, T *moment, FN(step_numbers) k)
{
    T m = *moment + g * g;
    *moment = m;
    *p -= k.at[0] * g / (STEP_ROOT(m) + k.at[1]);
}

/* k: lr, rho, epsilon, momentum. */
STEP_FORMULA void FN(rmsprop_one)(T *p, T g, T *square, T *moment, FN(step_numbers) k)
{
    T v = k.at[1] * *square + k.rest[0] * g * g;
    T m = k.at[3] * *moment + k.at[0] * g / STEP_ROOT(v + k.at[2]);
    *square = v;
    *moment = m;
    *p -= m;
}
STEP_FORMULA void FN(rmsprop_centered_one)(T *p, T g, T *square, T *mean, T *moment, FN(step_numbers) k)
{
    T v = k.at[1] * *square + k.rest[0] * g * g;
    T a = k.at[1] * *mean + k.rest[0] * g;
    T m = k.at[3] * *moment + k.at[0] * g / STEP_ROOT(v - a * a + k.at[2]);
    *square = v;
    *mean = a;
    *moment = m;
    *p -= m;
}

/* k: lr, rho, epsilon */
STEP_FORMULA void FN(adadelta_one)(T *p, T g, T *squares, T *updates, FN(step_numbers) k)
{
    T v = k.at[1] * *squares + k.rest[0] * g * g;
    T u = STEP_ROOT((*updates + k.at[2]) / (v + k.at[2])) * g;
    *squares = v;
    *updates = k.at[1] * *updates + k.rest[0] * u * u;
    *p -= k.at[0] * u;
}

/* k: lr / (1 − β1^t), β1, β2, epsilon */
STEP_FORMULA void FN(adamax_one)(T *p, T g, T *m, T *norm, FN(step_numbers) k)
{
    T size = g < 0 ? -g : g, old = k.at[2] * *norm + k.at[3], first = k.at[1] * *m + k.rest[0] * g;
    T largest = size > old ? size : old;
    *m = first;
    *norm = largest;
    *p -= k.at[0] * (first / largest);
}

/* Lamb's moments; k: lr, β1, β2, epsilon, weight decay. */
STEP_FORMULA void FN(lamb_moments_one)(T g, T *m, T *v, FN(step_numbers) k)
{
    *m = k.at[1] * *m + k.rest[0] * g;
    *v = k.at[2] * *v + k.rest[1] * g * g;
}
/* m̂ / (√v̂ + epsilon) + weight decay · p, with c1 = 1 / (1 − β1^t) and c2 = 1 / (1 − β2^t). */
STEP_FORMULA T FN(lamb_direction_one)(T p, T m, T v, T c1, T c2, FN(step_numbers) k)
{
    return m * c1 / (STEP_ROOT(v * c2) + k.at[3]) + k.at[4] * p;
}
