/* CPU kernels of eig and eigvals: complex Schur form by Householder reduction and the shifted QR algorithm
 * (Golub and Van Loan, Matrix Computations, 4th ed., 7.4 to 7.6); a real matrix is converted to a complex
 * one. Compiled once per CPU level; static functions and the kernels only. */
#include "ops/linalg/dense.h"

/* h ← Qᴴ·h·Q, upper Hessenberg; the rows of qt are the columns of Q (NULL: not wanted). v: n numbers. */
static void hessenberg(linalg_z *h, linalg_z *qt, linalg_z *v, int64_t n)
{
    if (qt) identity_z(qt, n, n);
    for (int64_t k = 0; k + 2 < n; k++) {
        double length = 0, below = 0;
        for (int64_t i = k + 1; i < n; i++) v[i] = h[i * n + k], length = hypot(length, cabs(v[i]));
        for (int64_t i = k + 2; i < n; i++) below += cabs(v[i]);
        if (below == 0) continue;
        double lead = cabs(v[k + 1]);
        v[k + 1] += lead == 0 ? length : v[k + 1] / lead * length;
        double norm = 0;
        for (int64_t i = k + 1; i < n; i++) norm = hypot(norm, cabs(v[i]));
        for (int64_t i = k + 1; i < n; i++) v[i] /= norm; /* the reflection is I − 2·v·vᴴ */
        for (int64_t j = k; j < n; j++) {
            linalg_z sum = 0;
            for (int64_t i = k + 1; i < n; i++) sum += conj(v[i]) * h[i * n + j];
            for (int64_t i = k + 1; i < n; i++) h[i * n + j] -= 2 * v[i] * sum;
        }
        for (int64_t i = 0; i < n; i++) {
            linalg_z sum = 0;
            for (int64_t j = k + 1; j < n; j++) sum += h[i * n + j] * v[j];
            for (int64_t j = k + 1; j < n; j++) h[i * n + j] -= 2 * sum * conj(v[j]);
        }
        for (int64_t i = 0; i < n && qt; i++) { /* Q·(I − 2·v·vᴴ), row i of Q */
            linalg_z sum = 0;
            for (int64_t j = k + 1; j < n; j++) sum += qt[j * n + i] * v[j];
            for (int64_t j = k + 1; j < n; j++) qt[j * n + i] -= 2 * sum * conj(v[j]);
        }
        for (int64_t i = k + 2; i < n; i++) h[i * n + k] = 0;
    }
}

/* Wilkinson's shift: the eigenvalue of h's 2×2 block ending at `last` that is nearer to the block's last
 * entry. */
static linalg_z shift_of(const linalg_z *h, int64_t n, int64_t last, int step)
{
    linalg_z a = h[(last - 1) * n + last - 1], b = h[(last - 1) * n + last];
    linalg_z c = h[last * n + last - 1], d = h[last * n + last];
    if (step % 10 == 9) return d + cabs(c); /* exceptional shift, to break a cycle */
    linalg_z half = (a - d) / 2, root = csqrt(half * half + b * c);
    if (creal(conj(half) * root) < 0) root = -root;
    linalg_z below = half + root;
    return cabs(below) == 0 ? d : d - b * c / below;
}

/* One QR step on the block [first, last] of the Hessenberg form; rotations go over the whole matrix if qt is
 * wanted. turns: 2 numbers a row. */
static void qr_step(linalg_z *h, linalg_z *qt, linalg_z *turns, int64_t n, int64_t first, int64_t last,
                    linalg_z shift)
{
    int64_t right = qt ? n : last + 1, top = qt ? 0 : first;
    for (int64_t i = first; i <= last; i++) h[i * n + i] -= shift;
    for (int64_t k = first; k < last; k++) {
        linalg_z *x = h + k * n, *y = x + n;
        double r = hypot(cabs(x[k]), cabs(y[k]));
        linalg_z c = r == 0 ? 1 : x[k] / r, s = r == 0 ? 0 : y[k] / r;
        turns[2 * k] = c, turns[2 * k + 1] = s;
        for (int64_t j = k; j < right; j++) {
            linalg_z p = x[j], q = y[j];
            x[j] = conj(c) * p + conj(s) * q;
            y[j] = c * q - s * p;
        }
    }
    for (int64_t k = first; k < last; k++) {
        linalg_z c = turns[2 * k], s = turns[2 * k + 1];
        for (int64_t i = top; i <= k + 1; i++) {
            linalg_z p = h[i * n + k], q = h[i * n + k + 1];
            h[i * n + k] = p * c + q * s;
            h[i * n + k + 1] = q * conj(c) - p * conj(s);
        }
        for (int64_t i = 0; i < n && qt; i++) {
            linalg_z p = qt[k * n + i], q = qt[(k + 1) * n + i];
            qt[k * n + i] = p * c + q * s;
            qt[(k + 1) * n + i] = q * conj(c) - p * conj(s);
        }
    }
    for (int64_t i = first; i <= last; i++) h[i * n + i] += shift;
}

/* QR iteration: reduces the Hessenberg matrix h to upper triangular form. Returns 0, or 1 + the index of an
 * eigenvalue that did not converge. */
static int64_t schur(linalg_z *h, linalg_z *qt, linalg_z *turns, int64_t n, double norm)
{
    int64_t last = n - 1;
    for (int step = 0; last > 0; step++) {
        int64_t first = last;
        for (; first > 0; first--) {
            linalg_z *low = h + first * n + first - 1;
            double near = cabs(low[1]) + cabs(low[-n]);
            if (!(cabs(*low) > DBL_EPSILON * (near == 0 ? norm : near))) {
                *low = 0;
                break;
            }
        }
        if (first == last) {
            last--, step = -1;
            continue;
        }
        if (step >= 300) return last + 1;
        qr_step(h, qt, turns, n, first, last, shift_of(h, n, last, step));
    }
    return 0;
}

/* Eigenvector j of the triangular t, in the basis qt, of length 1 and with its largest entry real. x: n
 * numbers. */
static void eigenvector(const linalg_z *t, const linalg_z *qt, int64_t n, int64_t j, double norm, linalg_z *x,
                        linalg_z *out)
{
    double least = DBL_EPSILON * norm > DBL_MIN ? DBL_EPSILON * norm : DBL_MIN, length = 0, best = -1;
    x[j] = 1;
    for (int64_t i = j - 1; i >= 0; i--) {
        linalg_z sum = 0, gap = t[i * n + i] - t[j * n + j];
        for (int64_t k = i + 1; k <= j; k++) sum += t[i * n + k] * x[k];
        x[i] = -sum / (cabs(gap) < least ? least : gap);
        bool large = cabs(x[i]) > 1e100; /* only the direction counts */
        for (int64_t k = i; k <= j && large; k++) x[k] *= 1e-100;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0;
        for (int64_t k = 0; k <= j; k++) out[i] += qt[k * n + i] * x[k];
        length = hypot(length, cabs(out[i]));
    }
    linalg_z phase = 1;
    for (int64_t i = 0; i < n; i++)
        if (cabs(out[i]) > best * (1 + 1e-12)) best = cabs(out[i]), phase = conj(out[i]) / best;
    for (int64_t i = 0; i < n; i++) out[i] *= phase / length;
}

/* Eigenvalues of matrix `index` of x, and its vectors unless vectors is NULL. */
static int64_t eigen(const proa_tensor *x, int64_t index, proa_tensor *values, proa_tensor *vectors,
                     char *work)
{
    int64_t n = linalg_rows(x), size = n * n;
    linalg_z *h = (linalg_z *)(void *)work, *qt = h + size, *v = qt + size, *turns = v + size,
             *w = turns + 2 * n;
    double norm = 0;
    load_z(h, x, index * size, size);
    double unit = normalize_z(h, size);
    if (isinf(unit)) return LINALG_NOT_FINITE;
    for (int64_t i = 0; i < size; i++) norm = hypot(norm, cabs(h[i]));
    hessenberg(h, vectors ? qt : NULL, turns, n);
    int64_t info = schur(h, vectors ? qt : NULL, turns, n, norm);
    if (info) return info + 1;
    for (int64_t j = 0; j < n; j++) {
        w[j] = h[j * n + j];
        if (!linalg_complex(x) && fabs(cimag(w[j])) <= 4 * DBL_EPSILON * norm) w[j] = creal(w[j]);
        w[j] *= unit;
    }
    store_z(values, index * n, w, n);
    for (int64_t j = 0; j < n && vectors; j++) {
        eigenvector(h, qt, n, j, norm, turns, w);
        for (int64_t i = 0; i < n; i++) v[i * n + j] = w[i];
    }
    if (vectors) store_z(vectors, index * size, v, size);
    return 0;
}

static double eig_capacity(const proa_tensor *x)
{
    double n = (double)linalg_rows(x);
    return 2 * (3 * n * n + 3 * n);
}

static int64_t eig_one(const void *args, int64_t index, char *work)
{
    const proa_eig_args *a = args;
    return eigen(a->x, index, a->eigenvalues, a->eigenvectors, work);
}

PROA_KERNEL(eig_cpu, eig)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), eig_capacity(a->x), 100 * n * n * n, eig_one, &failed));
    return linalg_stopped("eig", &failed);
}

static int64_t eigvals_one(const void *args, int64_t index, char *work)
{
    const proa_eigvals_args *a = args;
    return eigen(a->x, index, a->out, NULL, work);
}

PROA_KERNEL(eigvals_cpu, eigvals)
{
    linalg_slot failed;
    double n = (double)linalg_rows(a->x);
    PROA_TRY(linalg_run(a, linalg_count(a->x, 2), eig_capacity(a->x), 100 * n * n * n, eigvals_one, &failed));
    return linalg_stopped("eigvals", &failed);
}
