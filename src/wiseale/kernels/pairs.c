/* Sums over all pairs of diagonal Gaussians, with their gradient. Python: pairs.py; the readable formula:
   wiseale.divergences.pairwise. */

#include "vectors.h"

#define LOG_2 0.693147181f

/* log x for normal x > 0: x = 2^e m with m between 1/√2 and √2, and log m = 2 artanh((m - 1) / (m + 1)) as a series. */
INLINED lanes log_of(lanes x)
{
    const bits at = (bits)x;
    const bits mantissa = (at & 0x7fffff) | 0x3f800000;
    const bits large = (bits)((lanes)mantissa > (lanes){0} + 1.41421356f); /* -1 where true */
    const lanes m = (lanes)(mantissa - (large & 0x800000));
    const lanes s = (m - 1.0f) / (m + 1.0f), z = s * s;
    const lanes log_m = 2.0f * s * (1.0f + z * (1 / 3.0f + z * (1 / 5.0f + z * (1 / 7.0f + z * (1 / 9.0f)))));
    const lanes exponent = __builtin_convertvector((at >> 23) - 127 - large, lanes);
    return log_m + LOG_2 * exponent + (x - x); /* x - x propagates NaN */
}

/* exp x for x ≤ 0: 2^n exp r with |r| ≤ ½ log 2. NaN stays NaN. Below -70 the result is exp(-70): negligible beside 1,
   and not denormal, because arithmetic with denormal numbers is slow. */
INLINED lanes exp_of(lanes x)
{
    const lanes least = (lanes){0} - 70.0f;
    const bits tiny = (bits)(x < least);
    x = (lanes)(((bits)x & ~tiny) | ((bits)least & tiny));
    const bits n = __builtin_convertvector(x * (1 / LOG_2) - 0.5f, bits); /* x ≤ 0: truncation rounds to nearest */
    const lanes whole = __builtin_convertvector(n, lanes);
    const lanes r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f; /* log 2 in two parts, for accuracy */
    const lanes power =
        1.0f + r * (1.0f + r * (1 / 2.0f + r * (1 / 6.0f + r * (1 / 24.0f + r * (1 / 120.0f + r * (1 / 720.0f))))));
    return power * (lanes)((n + 127) << 23);
}

INLINED float sum_of(lanes x)
{
    float sum = 0;
    for (int t = 0; t < LANES; t++) sum += x[t];
    return sum;
}

/* log k(i, j) for one i and LANES neighbouring j: -Σ_c (quadratic · Δ²/v + ½ log v) + own[i] + own[j].

   It is −∞ for j from `count` on, which pad the last vector. Σ log v is taken as the log of a product of mantissas plus
   a sum of exponents: one logarithm per 16 dimensions. */
INLINED lanes log_kernel(const float *means, const float *variances, const float *own, int64_t dimensions, int64_t count,
                         int64_t size, float quadratic, int64_t i, int64_t j)
{
    lanes distance = {0}, product = (lanes){0} + 1.0f, logs = {0};
    bits exponents = {0};
    for (int64_t c = 0; c < dimensions; c++) {
        const lanes v = load(variances + c * size + j) + variances[c * size + i];
        const lanes difference = load(means + c * size + j) - means[c * size + i];
        distance += difference * difference / v;
        exponents += (bits)v >> 23;
        product *= (lanes)(((bits)v & 0x7fffff) | 0x3f800000);
        if (c % 16 == 15) logs += log_of(product), product = (lanes){0} + 1.0f;
    }
    logs += log_of(product) + LOG_2 * __builtin_convertvector(exponents - 127 * (int32_t)dimensions, lanes);
    lanes k = load(own + j) + own[i] - quadratic * distance - 0.5f * logs;
    for (int64_t t = count > j ? count - j : 0; t < LANES; t++) k[t] = -__builtin_inff();
    return k;
}

/* log_sums[i] = log Σ_j k(i, j) over `count` diagonal Gaussians, given as rows of mu and sigma, where
   log k(i, j) = -Σ_c (quadratic · Δ²/v + ½ log v) + own_weight · (Σ_c log σ_i + Σ_c log σ_j) and v = σ_i² + σ_j².

   `size` is `count` or the next multiple of LANES: mu and sigma have so many rows, the last of them padding.

   Written for the backward pass: `columns`, which holds means (dimensions, size), variances (dimensions, size) and
   own_weight · Σ_c log σ (size); and log_k (size, size), unless it is NULL: then every log k is computed again. */
void wiseale_log_sum_pairs(const float *mu, const float *sigma, int64_t dimensions, int64_t count, int64_t size,
                           float quadratic, float own_weight, float *columns, float *log_k, float *log_sums,
                           int64_t threads)
{
    float *means = columns, *variances = columns + dimensions * size, *own = columns + 2 * dimensions * size;
    for (int64_t i = 0; i < size; i++)
        for (int64_t c = 0; c < dimensions; c++) {
            means[c * size + i] = mu[i * dimensions + c];
            variances[c * size + i] = sigma[i * dimensions + c] * sigma[i * dimensions + c];
        }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t j = 0; j < size; j += LANES) {
            lanes logs = {0};
            for (int64_t c = 0; own_weight != 0 && c < dimensions; c++) logs += log_of(load(variances + c * size + j));
            store(own + j, 0.5f * own_weight * logs);
        }
        if (log_k) {
#pragma omp for schedule(dynamic, 4)
            for (int64_t i = 0; i < count; i++)
                /* k is symmetric: compute the upper triangle and mirror it. */
                for (int64_t j = i / LANES * LANES; j < size; j += LANES) {
                    const lanes k = log_kernel(means, variances, own, dimensions, count, size, quadratic, i, j);
                    store(log_k + i * size + j, k);
                    if (j > i)
                        for (int64_t t = 0; t < LANES; t++) log_k[(j + t) * size + i] = k[t];
                }
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = 0; i < count; i++) {
            float scratch[log_k ? 1 : size], *row = log_k ? log_k + i * size : scratch;
            if (!log_k)
                for (int64_t j = 0; j < size; j += LANES)
                    store(row + j, log_kernel(means, variances, own, dimensions, count, size, quadratic, i, j));
            float peak = row[0];
            for (int64_t j = 1; j < size; j++) peak = row[j] > peak ? row[j] : peak;
            lanes sum = {0};
            for (int64_t j = 0; j < size; j += LANES) sum += exp_of(load(row + j) - peak);
            log_sums[i] = peak + log_of((lanes){0} + sum_of(sum))[0];
        }
    }
}

/* Gradient of Σ_i grad[i] · log_sums[i] with respect to mu and sigma; all arrays have `size` rows, and the padding of
   grad and log_sums is 0.

   With weights w(i, j) = k(i, j) / Σ_j k(i, j), row i receives (w(i, j) grad[i] + w(j, i) grad[j]) ∂ log k(i, j). Groups
   of LANES pairs whose weights are all below negligible · max |grad| are skipped. */
void wiseale_log_sum_pairs_backward(const float *sigma, const float *columns, const float *log_k, const float *log_sums,
                                    const float *grad, int64_t dimensions, int64_t count, int64_t size,
                                    float quadratic, float own_weight, float negligible, float *grad_mu,
                                    float *grad_sigma, int64_t threads)
{
    const float *means = columns, *variances = columns + dimensions * size, *own = columns + 2 * dimensions * size;
    float threshold = 0;
    for (int64_t i = 0; i < size; i++) {
        const float magnitude = negligible * (grad[i] < 0 ? -grad[i] : grad[i]);
        threshold = magnitude > threshold ? magnitude : threshold;
    }
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        lanes weights[size / LANES], total = {0};
        int64_t kept[size / LANES], groups = 0;
        for (int64_t j = 0; j < size; j += LANES) {
            const lanes k = log_k ? load(log_k + i * size + j)
                                  : log_kernel(means, variances, own, dimensions, count, size, quadratic, i, j);
            const lanes weight = exp_of(k - log_sums[i]) * grad[i] + exp_of(k - load(log_sums + j)) * load(grad + j);
            float largest = 0;
            for (int t = 0; t < LANES; t++) {
                const float magnitude = weight[t] < 0 ? -weight[t] : weight[t];
                largest = magnitude > largest ? magnitude : largest;
            }
            total += weight;
            const float not_finite = sum_of(weight - weight); /* 0 if all weights are finite; NaN must not be skipped */
            if (!(largest < threshold && not_finite == 0)) weights[groups] = weight, kept[groups++] = j;
        }
        const float own_grad = own_weight != 0 ? own_weight * sum_of(total) : 0;
        for (int64_t c = 0; c < dimensions; c++) {
            const float *mean = means + c * size, *variance = variances + c * size;
            lanes grad_mean = {0}, grad_variance = {0};
            for (int64_t n = 0; n < groups; n++) {
                const lanes inverse = 1.0f / (load(variance + kept[n]) + variance[i]);
                const lanes ratio = (mean[i] - load(mean + kept[n])) * inverse;
                grad_mean += weights[n] * ratio;
                grad_variance += weights[n] * (2.0f * quadratic * ratio * ratio - inverse);
            }
            const int64_t at = i * dimensions + c;
            const float width = sigma[i * dimensions + c];
            grad_mu[at] = -2.0f * quadratic * sum_of(grad_mean);
            grad_sigma[at] = width * sum_of(grad_variance) + own_grad / width;
        }
    }
}
