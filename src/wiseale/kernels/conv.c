/* Convolutions and transposed convolutions, forward and backward. Python: layout.py declares the records below by name
   (checked when the library is loaded), geometry.py computes the tables, programs.py lists the operations. README.md takes
   one layer through the tables by hand.

   Signals are stored channels last (NHWC). The input values under a kernel are then a few contiguous segments, one for each
   row of the kernel, so that an output position is a sum of segment · matrix products, and the gradient of a weight is a sum
   of outer products. The tables say where the segments begin; the functions here loop over the tables. */

#include "vectors.h"

#define BLOCK 16   /* channel block: channels of a result computed and stored side by side, on every processor */
#define SAMPLES 16 /* batch tile: samples taken through all operations before the next ones, so that they stay in cache */
#define PARTS (BLOCK / LANES)

/* One output position: c = Σ over segments of (segment of a) · (rows of the packed weights b). Offsets in floats. */
typedef struct {
    int64_t a, b, c;          /* first float: in a sample of the input, in the packed weights, in a sample of the output */
    int64_t segments, length; /* number of segments, floats in each */
} MatrixProduct;

/* One kernel tap, or one kernel row: c += Σ over positions of (floats of a) · (channel block of b)ᵀ. Offsets in floats. */
typedef struct {
    int64_t a, b, c;       /* first float: in a sample of the input, of the output's gradient, in the partial gradients */
    int64_t rows, columns; /* positions to sum over */
} OuterProduct;

/* PACK runs before all other operations and UNPACK after them; the others run once for every batch tile. */
enum { PACK, NCHW_TO_NHWC, MATRIX_PRODUCTS, OUTER_PRODUCTS, BIAS_GRADIENT, NHWC_TO_NCHW, UNPACK };

/* Buffers (a, b, c, bias, relu_mask) are numbered, -1 is none. Strides count floats. */
typedef struct {
    int64_t kind;
    int64_t first, count;         /* entries of the operation's table or index; without one, positions in a sample */
    int64_t a, a_sample;          /* left operand, and its stride from one sample to the next */
    int64_t b, b_sample;          /* right operand: packed weights, or the second signal of outer products */
    int64_t c, c_sample;          /* result */
    int64_t channels;             /* of the result; of both kinds of products a multiple of BLOCK */
    int64_t block_stride;         /* from one channel block of packed weights or partial gradients to the next */
    int64_t a_row, b_row;         /* strides from one segment, or one row of positions, to the next */
    int64_t a_column, b_column;   /* strides from one position to the next */
    int64_t pad_left, pad_right;  /* NCHW_TO_NHWC: positions of zeros written before and after every image row */
    int64_t image_rows;           /* NCHW_TO_NHWC: rows of an image */
    int64_t outer_rows;           /* OUTER_PRODUCTS: floats of a in every outer product */
    int64_t bias, relu_mask;      /* added to the result; the result is zeroed where relu_mask is not positive */
    int64_t relu;                 /* 1 to apply ReLU to the result */
} Operation;

/* What layout.py declares too, by name: {name, value} pairs up to a NULL name. */
typedef struct {
    const char *name;
    int64_t value;
} LayoutEntry;

#define SIZE(record) {#record, sizeof(record)}
#define OFFSET(record, field) {#record "." #field, offsetof(record, field)}
#define CONSTANT(name) {#name, name}
const LayoutEntry wiseale_layout[] = {
    CONSTANT(BLOCK), CONSTANT(SAMPLES),
    CONSTANT(PACK), CONSTANT(NCHW_TO_NHWC), CONSTANT(MATRIX_PRODUCTS), CONSTANT(OUTER_PRODUCTS),
    CONSTANT(BIAS_GRADIENT), CONSTANT(NHWC_TO_NCHW), CONSTANT(UNPACK),
    SIZE(MatrixProduct), OFFSET(MatrixProduct, a), OFFSET(MatrixProduct, b), OFFSET(MatrixProduct, c),
    OFFSET(MatrixProduct, segments), OFFSET(MatrixProduct, length),
    SIZE(OuterProduct), OFFSET(OuterProduct, a), OFFSET(OuterProduct, b), OFFSET(OuterProduct, c),
    OFFSET(OuterProduct, rows), OFFSET(OuterProduct, columns),
    SIZE(Operation), OFFSET(Operation, kind), OFFSET(Operation, first), OFFSET(Operation, count),
    OFFSET(Operation, a), OFFSET(Operation, a_sample), OFFSET(Operation, b), OFFSET(Operation, b_sample),
    OFFSET(Operation, c), OFFSET(Operation, c_sample), OFFSET(Operation, channels), OFFSET(Operation, block_stride),
    OFFSET(Operation, a_row), OFFSET(Operation, b_row), OFFSET(Operation, a_column), OFFSET(Operation, b_column),
    OFFSET(Operation, pad_left), OFFSET(Operation, pad_right), OFFSET(Operation, image_rows),
    OFFSET(Operation, outer_rows), OFFSET(Operation, bias), OFFSET(Operation, relu_mask), OFFSET(Operation, relu),
    {NULL, 0},
};

INLINED lanes zero_unless_positive(lanes value, lanes condition) /* NaN counts as positive, as in torch's ReLU */
{
    const lanes zero = {0};
    return (lanes)((bits)value & ~(bits)(condition <= zero));
}

/* One output position of `samples` samples (at most TILE), one channel block: rank-1 updates of accumulators in registers.

   The inputs of neighbouring samples are a stride apart. A pointer for each sample would need more registers than there
   are, so every third sample has one, and the two after it are one and two strides further, which an address can
   express. The empty asm stops the compiler from making a pointer for each sample again. */
INLINED void product_tile(const Operation *o, const MatrixProduct *p, const float *a, const float *b, float *c,
                          const float *bias, const float *mask, const int samples)
{
    const int64_t stride = o->a_sample;
    lanes sum[TILE][PARTS];
    for (int s = 0; s < samples; s++)
        for (int v = 0; v < PARTS; v++) sum[s][v] = bias ? load(bias + v * LANES) : (lanes){0};
    for (int64_t segment = 0; segment < p->segments; segment++) {
        const float *w = b + segment * o->b_row, *x[(TILE + 2) / 3];
#pragma GCC unroll 16
        for (int t = 0; 3 * t < samples; t++) x[t] = a + segment * o->a_row + 3 * t * stride;
        for (int64_t k = 0; k < p->length; k++, w += BLOCK) {
            lanes row[PARTS];
            for (int v = 0; v < PARTS; v++) row[v] = load(w + v * LANES);
#pragma GCC unroll 16
            for (int s = 0; s < samples; s++)
                for (int v = 0; v < PARTS; v++) sum[s][v] += x[s / 3][(s % 3) * stride] * row[v];
#pragma GCC unroll 16
            for (int t = 0; 3 * t < samples; t++) {
                x[t]++;
                __asm__("" : "+r"(x[t]));
            }
        }
    }
    for (int s = 0; s < samples; s++)
        for (int v = 0; v < PARTS; v++) {
            const int64_t at = s * o->c_sample + v * LANES;
            lanes value = sum[s][v];
            if (o->relu) value = zero_unless_positive(value, value);
            if (mask) value = zero_unless_positive(value, load(mask + at));
            store(c + at, value);
        }
}

static void matrix_products(const Operation *o, const MatrixProduct *table, float *const *at, int64_t first, int64_t last)
{
    for (int64_t n = 0; n < o->channels; n += BLOCK)
        for (const MatrixProduct *p = table + o->first; p < table + o->first + o->count; p++) {
            const float *a = at[o->a] + p->a, *b = at[o->b] + p->b + n / BLOCK * o->block_stride;
            const float *bias = o->bias < 0 ? NULL : at[o->bias] + n;
            int64_t s = first;
#define TILES(samples) \
    for (; s + samples <= last; s += samples) { \
        const int64_t to = s * o->c_sample + p->c + n; \
        const float *mask = o->relu_mask < 0 ? NULL : at[o->relu_mask] + to; \
        product_tile(o, p, a + s * o->a_sample, b, at[o->c] + to, bias, mask, samples); \
    }
            TILES(TILE)
            TILES(2)
            TILES(1)
#undef TILES
        }
}

/* `rows` rows (at most TILE) of a weight's gradient, one channel block, summed over positions and samples in registers. */
INLINED void outer_tile(const Operation *o, const OuterProduct *p, const float *a, const float *b, float *c,
                        int64_t samples, const int rows)
{
    lanes sum[TILE][PARTS];
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

static void outer_products(const Operation *o, const OuterProduct *table, float *const *at, int64_t first, int64_t last)
{
    for (int64_t n = 0; n < o->channels; n += BLOCK)
        for (const OuterProduct *p = table + o->first; p < table + o->first + o->count; p++) {
            const float *a = at[o->a] + first * o->a_sample + p->a;
            const float *b = at[o->b] + first * o->b_sample + p->b + n;
            float *c = at[o->c] + n / BLOCK * o->block_stride + p->c;
            int64_t t = 0;
#define TILES(rows) \
    for (; t + rows <= o->outer_rows; t += rows) outer_tile(o, p, a + t, b, c + t * BLOCK, last - first, rows);
            TILES(TILE)
            TILES(2)
            TILES(1)
#undef TILES
        }
}

/* c[channel] += Σ over samples and positions of a. */
static void bias_gradient(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    int64_t n = 0;
    for (; n + LANES <= o->channels; n += LANES) {
        lanes sum = {0};
        for (int64_t s = first; s < last; s++)
            for (int64_t p = 0; p < o->count; p++) sum += load(at[o->a] + s * o->a_sample + p * o->channels + n);
        store(at[o->c] + n, load(at[o->c] + n) + sum);
    }
    for (; n < o->channels; n++) {
        double sum = 0;
        for (int64_t s = first; s < last; s++)
            for (int64_t p = 0; p < o->count; p++) sum += at[o->a][s * o->a_sample + p * o->channels + n];
        at[o->c][n] += sum;
    }
}

/* Torch's order (channel, row, column) to (row, column, channel), with zeros around every row. */
static void nchw_to_nhwc(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    const int64_t columns = o->count / o->image_rows, channels = o->channels;
    const int64_t left = o->pad_left, right = o->pad_right;
    for (int64_t s = first; s < last; s++)
        for (int64_t row = 0; row < o->image_rows; row++) {
            float *to = at[o->c] + s * o->c_sample + row * (left + columns + right) * channels;
            for (int64_t i = 0; i < left * channels; i++) to[i] = 0;
            to += left * channels;
            for (int64_t c = 0; c < channels; c++) {
                const int64_t start = s * o->a_sample + c * o->count + row * columns;
                const float *from = at[o->a] + start;
                if (o->relu_mask < 0)
                    for (int64_t p = 0; p < columns; p++) to[p * channels + c] = from[p];
                else
                    for (int64_t p = 0; p < columns; p++)
                        to[p * channels + c] = at[o->relu_mask][start + p] <= 0 ? 0 : from[p];
            }
            to += columns * channels;
            for (int64_t i = 0; i < right * channels; i++) to[i] = 0;
        }
}

/* (row, column, channel) back to torch's order. The rows have no padding. */
static void nhwc_to_nchw(const Operation *o, float *const *at, int64_t first, int64_t last)
{
    for (int64_t s = first; s < last; s++) {
        const float *from = at[o->a] + s * o->a_sample;
        float *to = at[o->c] + s * o->c_sample;
        for (int64_t c = 0; c < o->channels; c++)
            for (int64_t p = 0; p < o->count; p++) *to++ = from[p * o->channels + c];
    }
}

/* One thread's samples: batch tile by batch tile through all operations. */
static void run_tiles(const Operation *operations, int64_t count, const MatrixProduct *products, const OuterProduct *outers,
                      float *const *at, int64_t first, int64_t last)
{
    for (int64_t s = first; s < last; s += SAMPLES) {
        const int64_t end = s + SAMPLES < last ? s + SAMPLES : last;
        for (const Operation *o = operations; o < operations + count; o++) switch (o->kind) {
                case NCHW_TO_NHWC: nchw_to_nhwc(o, at, s, end); break;
                case MATRIX_PRODUCTS: matrix_products(o, products, at, s, end); break;
                case OUTER_PRODUCTS: outer_products(o, outers, at, s, end); break;
                case BIAS_GRADIENT: bias_gradient(o, at, s, end); break;
                case NHWC_TO_NCHW: nhwc_to_nchw(o, at, s, end); break;
            }
    }
}

/* c[i] = a[index[i]]: torch's weights in the order of the products; index -1 gives zero. */
static void pack(const Operation *o, const int32_t *index, float *const *at)
{
    const float *from = at[o->a];
    float *to = at[o->c];
    index += o->first;
    for (int64_t i = 0; i < o->count; i++) to[i] = index[i] < 0 ? 0 : from[index[i]];
}

/* c[i] = Σ over threads of a[index[i]]: the threads' partial gradients, summed, in the order of torch's weights. */
static void unpack(const Operation *o, const int32_t *index, float *const *at, int64_t buffers, int64_t threads)
{
    float *to = at[o->c];
    index += o->first;
    for (int64_t t = 0; t < threads; t++) {
        const float *from = at[t * buffers + o->a];
        for (int64_t i = 0; i < o->count; i++) to[i] = (t ? to[i] : 0) + from[index[i]];
    }
}

/* 1 if compiled with OpenMP. */
int wiseale_is_parallel(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

/* Run all operations on all samples. `at` has a row of `buffers` pointers for each thread. */
void wiseale_convolve(const Operation *operations, int64_t count, const MatrixProduct *products, const OuterProduct *outers,
                      const int32_t *index, float *const *at, int64_t buffers, int64_t samples, int64_t threads)
{
    const int64_t tiles = (samples + SAMPLES - 1) / SAMPLES;
    const Operation *end = operations + count;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (const Operation *o = operations; o < end; o++)
            if (o->kind == PACK) pack(o, index, at);
#pragma omp for schedule(static, 1)
        for (int64_t i = 0; i < threads; i++) {
            const int64_t first = tiles * i / threads * SAMPLES, last = tiles * (i + 1) / threads * SAMPLES;
            run_tiles(operations, count, products, outers, at + i * buffers, first, last < samples ? last : samples);
        }
#pragma omp for schedule(dynamic, 1)
        for (const Operation *o = operations; o < end; o++)
            if (o->kind == UNPACK) unpack(o, index, at, buffers, threads);
    }
}
