// AVX2, which CPUs for laptops and desktops have had since 2013.

#if defined(__x86_64__)

#include "int8_stack.h"

#include <cmath>
#include <cstring>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define LEVEL avx2
#define LEVEL_AVX2
#include "int8_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
