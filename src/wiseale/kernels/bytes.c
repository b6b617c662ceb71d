/* Rows of bytes, gathered and scaled to float32 in one pass. Python: bytes.py. */

#include <stdint.h>

#define CACHE_LINE 64 /* bytes */

/* output[i] = scale · bytes[chosen[i]] for rows of `length` bytes. Returns 0, and writes nothing, if an index is out of range. */
int wiseale_gather_bytes(const uint8_t *bytes, int64_t rows, int64_t length, const int64_t *chosen, int64_t count,
                         float scale, float *output, int64_t threads)
{
    for (int64_t i = 0; i < count; i++)
        if (chosen[i] < 0 || chosen[i] >= rows) return 0;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *restrict from = bytes + chosen[i] * length;
        float *restrict to = output + i * length;
        const uint8_t *next = bytes + chosen[i + 1 < count ? i + 1 : i] * length;
        int64_t k = 0;
        for (; k + CACHE_LINE <= length; k += CACHE_LINE) {
            __builtin_prefetch(next + k); /* the rows are far apart: fetch the next one while this one is converted */
            for (int64_t j = k; j < k + CACHE_LINE; j++) to[j] = (float)from[j] * scale;
        }
        for (; k < length; k++) to[k] = (float)from[k] * scale;
    }
    return 1;
}
