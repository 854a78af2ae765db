/* A fake of the CUDA driver (libcuda.so.1) with the calls of tests/gpu/occupy.py, and one GPU.
 *
 * While a process holds memory, the file named by KDOCTOR_FAKE_CUDA_HELD exists. A description of the fake NVML can
 * refer to that file. After an allocation of more than a GiB in pieces, the memory is exhausted.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t held;
static const size_t total = 23034ul << 20;

static const char *file(void) { return getenv("KDOCTOR_FAKE_CUDA_HELD"); }

__attribute__((destructor)) static void end(void) {
    if (held && file()) unlink(file());
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal ? 101 : 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &held, device; }
int cuCtxSetCurrent(void *context) { return context ? 0 : 201; }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *all) { return *free_bytes = total - held, *all = total, 0; }

int cuMemAlloc_v2(unsigned long long *pointer, size_t size) {
    if (held + size > total) return 2;
    FILE *mark = file() ? fopen(file(), "w") : NULL;
    if (mark) fclose(mark);
    held += size;
    return *pointer = held, 0;
}
