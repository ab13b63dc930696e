// Threads that share the parts of one job. They sleep while there is nothing to do, since others may
// need the cores.

#pragma once

#include <cstdint>

using Part = void (*)(void* job, int64_t part);

// Does parts 0 to `parts` - 1 of a job, by this thread and up to `threads` - 1 others; where the
// others are busy with somebody else's job, by this thread alone. Returns when all are done.
void share(Part part, void* job, int64_t parts, int threads);
