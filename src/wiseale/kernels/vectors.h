/* Vectors of floats, one register long, in GCC's and Clang's vector extension: one source for every processor. */

#ifndef WISEALE_VECTORS_H
#define WISEALE_VECTORS_H

#include <stddef.h>
#include <stdint.h>

/* LANES: floats in a register. TILE: accumulators of BLOCK floats that fit in the registers at once. */
#if defined(__AVX512F__)
#define LANES 16
#define TILE 16
#elif defined(__AVX__)
#define LANES 8
#define TILE 6
#elif defined(__aarch64__)
#define LANES 4
#define TILE 4
#else
#define LANES 4
#define TILE 2
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * LANES)));
#define INLINED static inline __attribute__((always_inline))

INLINED lanes load(const float *at) { return *(const lanes *)at; }
INLINED void store(float *at, lanes value) { *(lanes *)at = value; }

#endif
