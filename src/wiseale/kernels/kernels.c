/* What torch has no fast operation for, on a CPU: compiled where it is used (see __init__.py).

   Convolutions. Signals are stored sample by sample, positions in order, channels last. Every result of a convolution, of
   its adjoint and of their gradients is then a sum of products of contiguous stretches with a matrix, or of outer
   products; which stretches is written down in tables (wiseale.kernels.geometry). Here are the loops over these tables.

   Rows. Bytes of chosen rows, widened to float32.

   Pairs. Sums over the dimensions of all pairs of diagonal Gaussians (wiseale.divergences.pairwise). */

#include <stddef.h>
#include <stdint.h>

#define BLOCK 16 /* channels that lie together in matrices, on every machine */
#if defined(__AVX512F__)
#define LANES 16 /* floats of a register */
#define ROWS 16  /* as many sums of BLOCK floats as stay in registers */
#elif defined(__AVX__)
#define LANES 8
#define ROWS 6
#elif defined(__aarch64__)
#define LANES 4
#define ROWS 4
#else
#define LANES 4
#define ROWS 2
#endif
#define PARTS (BLOCK / LANES)
#define LOG_2 0.693147181f
#define LINE 64 /* bytes that come from memory together */
#define SAMPLES 16 /* taken through all operations before the next ones: what they share stays in cache */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * LANES)));
#define INLINED static inline __attribute__((always_inline))

/* result = Σ over pieces of stretch · matrix, for one position */
typedef struct {
    int64_t from, matrix, to; /* where, in floats: in a sample of the input, in the matrices, in a sample of the result */
    int64_t pieces, length;   /* stretches, and the floats of each */
} Product;

/* result += Σ over positions of long · shortᵀ, for one place of the kernel */
typedef struct {
    int64_t of_long, of_short, to;
    int64_t rows, columns; /* of positions */
} Outer;

/* PICK comes first and orders weights; GIVE comes last and orders their gradients; the others are for some samples each. */
enum { PICK, ENTER, PRODUCTS, OUTERS, SUMS, LEAVE, GIVE };

typedef struct {
    int64_t kind;
    int64_t first, number;      /* rows of the table, or entries of the index; positions, where there is neither */
    int64_t a, a_sample;        /* input: its buffer, and the floats from one sample to the next */
    int64_t b, b_sample;        /* matrices, or the short side of outer products */
    int64_t c, c_sample;        /* result */
    int64_t width;              /* channels of a result; of products and outer products a multiple of BLOCK */
    int64_t block;              /* floats of a matrix's BLOCK columns, which lie together */
    int64_t a_row, b_row;       /* from one piece, or one row of positions, to the next */
    int64_t a_column, b_column; /* from one position to the next */
    int64_t left, right;        /* of every row: positions of zeros, entering */
    int64_t height;             /* of a tile of outer products; rows of positions */
    int64_t bias, positive;     /* buffers, or -1: added first; keep only where this is positive */
    int64_t relu;
} Operation;

INLINED lanes load(const float *at) { return *(const lanes *)at; }
INLINED void store(float *at, lanes value) { *(lanes *)at = value; }
INLINED lanes zero_unless_positive(lanes value, lanes condition) /* as in torch, NaN counts as positive */
{
    const lanes zero = {0};
    return (lanes)((bits)value & ~(bits)(condition <= zero));
}

INLINED void product_tile(const Operation *o, const Product *p, const float *a, const float *b, float *c,
                          const float *bias, const float *positive, const int rows)
{
    lanes sum[ROWS][PARTS];
    for (int s = 0; s < rows; s++)
        for (int v = 0; v < PARTS; v++) sum[s][v] = bias ? load(bias + v * LANES) : (lanes){0};
    for (int64_t piece = 0; piece < p->pieces; piece++) {
        const float *x = a + piece * o->a_row, *w = b + piece * o->b_row;
        for (int64_t k = 0; k < p->length; k++, w += BLOCK) {
            lanes row[PARTS];
            for (int v = 0; v < PARTS; v++) row[v] = load(w + v * LANES);
            for (int s = 0; s < rows; s++)
                for (int v = 0; v < PARTS; v++) sum[s][v] += x[s * o->a_sample + k] * row[v];
        }
    }
    for (int s = 0; s < rows; s++)
        for (int v = 0; v < PARTS; v++) {
            const int64_t at = s * o->c_sample + v * LANES;
            lanes value = sum[s][v];
            if (o->relu) value = zero_unless_positive(value, value);
            if (positive) value = zero_unless_positive(value, load(positive + at));
            store(c + at, value);
        }
}

static void products(const Operation *o, const Product *table, float *const *at, int64_t first, int64_t last)
{
    for (int64_t n = 0; n < o->width; n += BLOCK)
        for (const Product *p = table + o->first; p < table + o->first + o->number; p++) {
            const float *a = at[o->a] + p->from, *b = at[o->b] + p->matrix + n / BLOCK * o->block;
            const float *bias = o->bias < 0 ? NULL : at[o->bias] + n;
            int64_t s = first;
#define TILES(rows) \
    for (; s + rows <= last; s += rows) { \
        const int64_t to = s * o->c_sample + p->to + n; \
        product_tile(o, p, a + s * o->a_sample, b, at[o->c] + to, bias, o->positive < 0 ? NULL : at[o->positive] + to, rows); \
    }
            TILES(ROWS)
            TILES(2)
            TILES(1)
#undef TILES
        }
}

INLINED void outer_tile(const Operation *o, const Outer *p, const float *a, const float *b, float *c, int64_t samples,
                        const int rows)
{
    lanes sum[ROWS][PARTS];
    for (int t = 0; t < rows; t++)
        for (int v = 0; v < PARTS; v++) sum[t][v] = (lanes){0};
    for (int64_t s = 0; s < samples; s++)
        for (int64_t row = 0; row < p->rows; row++) {
            const float *x = a + s * o->a_sample + row * o->a_row, *g = b + s * o->b_sample + row * o->b_row;
            for (int64_t column = 0; column < p->columns; column++, x += o->a_column, g += o->b_column) {
                lanes y[PARTS];
                for (int v = 0; v < PARTS; v++) y[v] = load(g + v * LANES);
                for (int t = 0; t < rows; t++)
                    for (int v = 0; v < PARTS; v++) sum[t][v] += x[t] * y[v];
            }
        }
    for (int t = 0; t < rows; t++)
        for (int v = 0; v < PARTS; v++) {
            float *to = c + t * BLOCK + v * LANES;
            store(to, load(to) + sum[t][v]);
        }
}

static void outers(const Operation *o, const Outer *table, float *const *at, int64_t first, int64_t last)
{
    for (int64_t n = 0; n < o->width; n += BLOCK)
        for (const Outer *p = table + o->first; p < table + o->first + o->number; p++) {
            const float *a = at[o->a] + first * o->a_sample + p->of_long;
            const float *b = at[o->b] + first * o->b_sample + p->of_short + n;
            float *c = at[o->c] + n / BLOCK * o->block + p->to;
            int64_t t = 0;
#define TILES(rows) \
    for (; t + rows <= o->height; t += rows) outer_tile(o, p, a + t, b, c + t * BLOCK, last - first, rows);
            TILES(ROWS)
            TILES(2)
            TILES(1)
#undef TILES
        }
}

static void sums(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    int64_t n = 0;
    for (; n + LANES <= o->width; n += LANES) {
        lanes sum = {0};
        for (int64_t s = first; s < last; s++)
            for (int64_t p = 0; p < o->number; p++) sum += load(at[o->a] + s * o->a_sample + p * o->width + n);
        store(at[o->c] + n, load(at[o->c] + n) + sum);
    }
    for (; n < o->width; n++) {
        double sum = 0;
        for (int64_t s = first; s < last; s++)
            for (int64_t p = 0; p < o->number; p++) sum += at[o->a][s * o->a_sample + p * o->width + n];
        at[o->c][n] += sum;
    }
}

/* Channels first, as torch has them, to channels last. */
static void enter(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    const int64_t columns = o->number / o->height, channels = o->width, left = o->left, right = o->right;
    for (int64_t s = first; s < last; s++)
        for (int64_t row = 0; row < o->height; row++) {
            float *to = at[o->c] + s * o->c_sample + row * (left + columns + right) * channels;
            for (int64_t i = 0; i < left * channels; i++) to[i] = 0;
            to += left * channels;
            for (int64_t c = 0; c < channels; c++) {
                const int64_t start = s * o->a_sample + c * o->number + row * columns;
                const float *from = at[o->a] + start;
                if (o->positive < 0)
                    for (int64_t p = 0; p < columns; p++) to[p * channels + c] = from[p];
                else
                    for (int64_t p = 0; p < columns; p++)
                        to[p * channels + c] = at[o->positive][start + p] <= 0 ? 0 : from[p];
            }
            to += columns * channels;
            for (int64_t i = 0; i < right * channels; i++) to[i] = 0;
        }
}

/* And back. */
static void leave(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    for (int64_t s = first; s < last; s++) {
        const float *from = at[o->a] + s * o->a_sample;
        float *to = at[o->c] + s * o->c_sample;
        for (int64_t c = 0; c < o->width; c++)
            for (int64_t p = 0; p < o->number; p++) *to++ = from[p * o->width + c];
    }
}

/* One thread's share: some samples at a time through all operations. */
static void work(const Operation *operations, int64_t count, const void *table, float *const *at, int64_t first, int64_t last)
{
    for (int64_t s = first; s < last; s += SAMPLES) {
        const int64_t end = s + SAMPLES < last ? s + SAMPLES : last;
        for (const Operation *o = operations; o < operations + count; o++) switch (o->kind) {
                case ENTER: enter(o, at, s, end); break;
                case PRODUCTS: products(o, table, at, s, end); break;
                case OUTERS: outers(o, table, at, s, end); break;
                case SUMS: sums(o, at, s, end); break;
                case LEAVE: leave(o, at, s, end); break;
            }
    }
}

/* Entries of a weight in another order; -1 stands for zero. */
static void pick(const Operation *o, const int32_t *index, float *const *at)
{
    const float *from = at[o->a];
    float *to = at[o->c];
    index += o->first;
    for (int64_t i = 0; i < o->number; i++) to[i] = index[i] < 0 ? 0 : from[index[i]];
}

/* Entries of a gradient in another order, summed over the threads that found parts of it. */
static void give(const Operation *o, const int32_t *index, float *const *at, int64_t buffers, int64_t threads)
{
    float *to = at[o->c];
    index += o->first;
    for (int64_t t = 0; t < threads; t++) {
        const float *from = at[t * buffers + o->a];
        for (int64_t i = 0; i < o->number; i++) to[i] = (t ? to[i] : 0) + from[index[i]];
    }
}

int wiseale_is_parallel(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

/* What Python has written down too: channels that lie together, samples taken together, and the size of an operation. */
void wiseale_sizes(int64_t *sizes)
{
    sizes[0] = BLOCK, sizes[1] = SAMPLES, sizes[2] = sizeof(Operation) / sizeof(int64_t);
}

/* All operations on all samples; `at` has a row of `buffers` pointers for each thread. */
void wiseale_convolve(const Operation *operations, int64_t count, const void *table, const int32_t *index,
                      float *const *at, int64_t buffers, int64_t samples, int64_t threads)
{
    const int64_t blocks = (samples + SAMPLES - 1) / SAMPLES;
    const Operation *end = operations + count;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (const Operation *o = operations; o < end; o++)
            if (o->kind == PICK) pick(o, index, at);
#pragma omp for schedule(static, 1)
        for (int64_t i = 0; i < threads; i++) {
            const int64_t first = blocks * i / threads * SAMPLES, last = blocks * (i + 1) / threads * SAMPLES;
            work(operations, count, table, at + i * buffers, first, last < samples ? last : samples);
        }
#pragma omp for schedule(dynamic, 1)
        for (const Operation *o = operations; o < end; o++)
            if (o->kind == GIVE) give(o, index, at, buffers, threads);
    }
}

/* Chosen rows of bytes as floats, scaled; nothing, and 0, if one of them is not among those there are. */
int wiseale_widen(const uint8_t *bytes, int64_t rows, int64_t length, const int64_t *chosen, int64_t count, float scale,
                  float *to, int64_t threads)
{
    for (int64_t i = 0; i < count; i++)
        if (chosen[i] < 0 || chosen[i] >= rows) return 0;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *restrict from = bytes + chosen[i] * length;
        float *restrict into = to + i * length;
        const uint8_t *next = bytes + chosen[i + 1 < count ? i + 1 : i] * length;
        int64_t k = 0;
        for (; k + LINE <= length; k += LINE) {
            __builtin_prefetch(next + k);
            for (int64_t j = k; j < k + LINE; j++) into[j] = (float)from[j] * scale;
        }
        for (; k < length; k++) into[k] = (float)from[k] * scale;
    }
    return 1;
}

/* Natural logarithm of normal numbers: 2 artanh((m - 1) / (m + 1)) of the mantissa, which lies between 1/√2 and √2. */
INLINED lanes log_of(lanes x)
{
    const bits at = (bits)x;
    const bits mantissa = (at & 0x7fffff) | 0x3f800000;
    const bits large = (bits)((lanes)mantissa > (lanes){0} + 1.41421356f); /* -1 where it is */
    const lanes m = (lanes)(mantissa - (large & 0x800000));
    const lanes s = (m - 1.0f) / (m + 1.0f), z = s * s;
    const lanes of_mantissa = 2.0f * s * (1.0f + z * (1 / 3.0f + z * (1 / 5.0f + z * (1 / 7.0f + z * (1 / 9.0f)))));
    const lanes exponent = __builtin_convertvector((at >> 23) - 127 - large, lanes);
    return of_mantissa + LOG_2 * exponent + (x - x); /* NaN stays NaN */
}

/* e^x of numbers up to 0: 2^n e^r with |r| ≤ ½ log 2; what is negligible beside 1 becomes e^-70, because arithmetic with
   denormal numbers is slow, and NaN stays NaN. */
INLINED lanes exp_of(lanes x)
{
    const lanes least = (lanes){0} - 70.0f;
    const bits tiny = (bits)(x < least);
    x = (lanes)(((bits)x & ~tiny) | ((bits)least & tiny));
    const bits n = __builtin_convertvector(x * (1 / LOG_2) - 0.5f, bits); /* rounded towards zero: x is not positive */
    const lanes whole = __builtin_convertvector(n, lanes);
    const lanes r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f; /* log 2 in two parts */
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

/* log k of row i with LANES columns from j on: -Σ (quadratic · Δ²/v + ½ log v) + what the two add by themselves.

   Exponents of the variances are added and mantissas multiplied, so that few logarithms are taken. */
INLINED lanes pair(const float *means, const float *variances, const float *owns, int64_t dimensions, int64_t size,
                   float quadratic, int64_t i, int64_t j)
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
    return load(owns + j) + owns[i] - quadratic * distance - 0.5f * logs;
}

/* For `size` diagonal Gaussians, rows of mean and width: log_sums[i] = log Σ_j k(i, j), where log k(i, j) =
   -Σ (quadratic · Δ²/v + ½ log v) + own · (Σ log σ_i + Σ log σ_j) with v = σ_i² + σ_j².

   `columns` is scratch that the gradient wants again: means and variances by dimension, then own · Σ log σ. So is log_k,
   (size, size); without it every pair is computed twice here and once more for the gradient. */
void wiseale_pairs(const float *mean, const float *width, int64_t dimensions, int64_t size, float quadratic, float own,
                   float *columns, float *log_k, float *log_sums, int64_t threads)
{
    float *means = columns, *variances = columns + dimensions * size, *owns = columns + 2 * dimensions * size;
    for (int64_t i = 0; i < size; i++)
        for (int64_t c = 0; c < dimensions; c++) {
            means[c * size + i] = mean[i * dimensions + c];
            variances[c * size + i] = width[i * dimensions + c] * width[i * dimensions + c];
        }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t j = 0; j < size; j += LANES) {
            lanes logs = {0};
            for (int64_t c = 0; own != 0 && c < dimensions; c++) logs += log_of(load(variances + c * size + j));
            store(owns + j, 0.5f * own * logs);
        }
        if (log_k) {
#pragma omp for schedule(dynamic, 4)
            for (int64_t i = 0; i < size; i++)
                for (int64_t j = i / LANES * LANES; j < size; j += LANES) {
                    const lanes k = pair(means, variances, owns, dimensions, size, quadratic, i, j);
                    store(log_k + i * size + j, k);
                    if (j > i)
                        for (int64_t t = 0; t < LANES; t++) log_k[(j + t) * size + i] = k[t];
                }
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t i = 0; i < size; i++) {
            float own_row[log_k ? 1 : size], *row = log_k ? log_k + i * size : own_row;
            if (!log_k)
                for (int64_t j = 0; j < size; j += LANES)
                    store(row + j, pair(means, variances, owns, dimensions, size, quadratic, i, j));
            float peak = row[0];
            for (int64_t j = 1; j < size; j++) peak = row[j] > peak ? row[j] : peak;
            lanes sum = {0};
            for (int64_t j = 0; j < size; j += LANES) sum += exp_of(load(row + j) - peak);
            log_sums[i] = peak + log_of((lanes){0} + sum_of(sum))[0];
        }
    }
}

/* What Σ_i by_sum[i] · log_sums[i] changes with the means and widths, in rows. Pairs are left out whose weight beside the
   largest that is possible is negligible. */
void wiseale_pair_slopes(const float *width, const float *columns, const float *log_k, const float *log_sums,
                         const float *by_sum, int64_t dimensions, int64_t size, float quadratic, float own,
                         float negligible, float *by_mean, float *by_width, int64_t threads)
{
    const float *means = columns, *variances = columns + dimensions * size, *owns = columns + 2 * dimensions * size;
    float below = 0;
    for (int64_t i = 0; i < size; i++) {
        const float magnitude = negligible * (by_sum[i] < 0 ? -by_sum[i] : by_sum[i]);
        below = magnitude > below ? magnitude : below;
    }
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads)
    for (int64_t i = 0; i < size; i++) {
        lanes weights[size / LANES], total = {0};
        int64_t some[size / LANES], count = 0;
        for (int64_t j = 0; j < size; j += LANES) {
            /* k is symmetric: row i meets it through its own sum and through that of row j */
            const lanes k = log_k ? load(log_k + i * size + j)
                                  : pair(means, variances, owns, dimensions, size, quadratic, i, j);
            const lanes weight = exp_of(k - log_sums[i]) * by_sum[i] + exp_of(k - load(log_sums + j)) * load(by_sum + j);
            float largest = 0;
            for (int t = 0; t < LANES; t++) {
                const float magnitude = weight[t] < 0 ? -weight[t] : weight[t];
                largest = magnitude > largest ? magnitude : largest;
            }
            total += weight;
            const float not_finite = sum_of(weight - weight); /* 0 unless it is so: then it is to show */
            if (!(largest < below && not_finite == 0)) weights[count] = weight, some[count++] = j;
        }
        const float all = own != 0 ? own * sum_of(total) : 0;
        for (int64_t c = 0; c < dimensions; c++) {
            const float *of_means = means + c * size, *of_variances = variances + c * size;
            lanes slope = {0}, of_variance = {0};
            for (int64_t n = 0; n < count; n++) {
                const lanes inverse = 1.0f / (load(of_variances + some[n]) + of_variances[i]);
                const lanes ratio = (of_means[i] - load(of_means + some[n])) * inverse;
                slope += weights[n] * ratio;
                of_variance += weights[n] * (2.0f * quadratic * ratio * ratio - inverse);
            }
            const int64_t at = i * dimensions + c;
            by_mean[at] = -2.0f * quadratic * sum_of(slope);
            by_width[at] = width[at] * sum_of(of_variance) + all / width[at];
        }
    }
}
