// Whatever the compiler makes of it on any other CPU; on ARM with the product of four bytes.

#include "int8_stack.h"

#include <cmath>
#include <cstring>

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#define LEVEL_NEON
#endif

#define LEVEL plain
#include "int8_body.h"
