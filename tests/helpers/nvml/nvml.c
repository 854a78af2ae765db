/* A stand-in for NVIDIA's management library (libnvidia-ml.so.1), driven by a machine description.
 *
 * The variable KDOCTOR_NVML_MACHINE names the description: a text file of lines "key value". Keys:
 *
 *   system.<fact>                 a fact of the driver, for example system.driver_version
 *   gpu.<i>.<fact>                a fact of GPU i, for example gpu.0.name
 *   pair.<i>.<j>.level            the topology level of two GPUs (i < j), in NVML's numbers
 *   call.<function>               what the call does instead of answering: an NVML error code, "hang" or "crash"
 *   gpu.<i>.call.<function>       the same, for GPU i alone
 *   gpu.<i>.call.*                the same, for every call about GPU i
 *   call.*                        the same, for every call about a GPU, unless the call is named itself
 *
 * A fact that the description lacks is answered with NVML_ERROR_NOT_SUPPORTED (3). Lines that begin with # are
 * comments. Signatures and structures follow NVML's public documentation; a new numeric fact is one line in the
 * table at the end of this file.
 *
 * Built with -DWITHOUT_PROCESSES_V3 or -DWITHOUT_MEMORY_V2, it lacks that function, as old drivers do.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };
enum { MAX_LINES = 4096, MAX_GPUS = 64, KEY_SIZE = 128 };

typedef unsigned long long u64;

/* A device handle is the address of its own entry here. */
static char devices[MAX_GPUS];

static struct line { char *key, *value; } lines[MAX_LINES];
static int line_count = -1;

static void load(void) {
    const char *path = getenv("KDOCTOR_NVML_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[1024];
    line_count = 0;
    while (file && fgets(text, sizeof text, file) && line_count < MAX_LINES) {
        text[strcspn(text, "\r\n")] = 0;
        char *space = strchr(text, ' ');
        if (!space || text[0] == '#') continue;
        *space = 0;
        lines[line_count].key = strdup(text);
        lines[line_count++].value = strdup(space + 1);
    }
    if (file) fclose(file);
}

static const char *get(const char *key) {
    if (line_count < 0) load();
    for (int i = 0; i < line_count; i++)
        if (!strcmp(lines[i].key, key)) return lines[i].value;
    return NULL;
}

static const char *get_system(const char *fact) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "system.%s", fact);
    return get(key);
}

static const char *get_gpu(int index, const char *fact) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "gpu.%d.%s", index, fact);
    return get(key);
}

static int gpu_count(void) {
    const char *text = get_system("count");
    return text ? atoi(text) : 0;
}

static int index_of(void *device) {
    long index = (char *)device - devices;
    return index >= 0 && index < MAX_GPUS ? (int)index : -1;
}

static int obey(const char *order) {
    if (!order) return SUCCESS;
    if (!strcmp(order, "hang")) for (;;) pause();
    if (!strcmp(order, "crash")) raise(SIGSEGV);
    return atoi(order);
}

/* What a call about the driver is told to do. */
static int system_call(const char *function) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "call.%s", function);
    return obey(get(key));
}

/* What a call about GPU i is told to do: the most special order counts. */
static int gpu_call(int index, const char *function) {
    char key[KEY_SIZE];
    const char *order;
    if (index < 0) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "call.%s", function);
    if ((order = get_gpu(index, key))) return obey(order);
    if ((order = get_gpu(index, "call.*"))) return obey(order);
    if ((order = get(key))) return obey(order);
    return obey(get("call.*"));
}

static int text(const char *value, char *buffer, unsigned size) {
    if (!value) return NOT_SUPPORTED;
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return SUCCESS;
}

#define TRY(call) do { int code_ = (call); if (code_ != SUCCESS) return code_; } while (0)

/* --- the library --------------------------------------------------------------------------------------------- */

int nvmlInit_v2(void) { return system_call("nvmlInit"); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return system_call("nvmlInit"); }
int nvmlShutdown(void) { return system_call("nvmlShutdown"); }

const char *nvmlErrorString(int code) {
    static char buffer[64];
    snprintf(buffer, sizeof buffer, "error %d of the stand-in", code);
    return buffer;
}

/* --- the driver ---------------------------------------------------------------------------------------------- */

int nvmlSystemGetDriverVersion(char *buffer, unsigned size) {
    TRY(system_call("nvmlSystemGetDriverVersion"));
    return text(get_system("driver_version"), buffer, size);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    TRY(system_call("nvmlSystemGetCudaDriverVersion_v2"));
    const char *value = get_system("cuda_driver_version");
    if (!value) return NOT_SUPPORTED;
    *version = atoi(value);
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    TRY(system_call("nvmlDeviceGetCount_v2"));
    *count = (unsigned)gpu_count();
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if ((int)index >= gpu_count()) return INVALID_ARGUMENT;
    TRY(gpu_call((int)index, "nvmlDeviceGetHandleByIndex_v2"));
    *device = &devices[index];
    return SUCCESS;
}

/* --- one GPU ------------------------------------------------------------------------------------------------- */

int nvmlDeviceGetName(void *device, char *buffer, unsigned size) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetName"));
    return text(get_gpu(index_of(device), "name"), buffer, size);
}

int nvmlDeviceGetUUID(void *device, char *buffer, unsigned size) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetUUID"));
    return text(get_gpu(index_of(device), "uuid"), buffer, size);
}

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetPciInfo_v3"));
    const char *value = get_gpu(index_of(device), "bus_id");
    memset(info, 0, sizeof *info);
    if (value) sscanf(value, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    return text(value, info->bus_id, sizeof info->bus_id);
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetCudaComputeCapability"));
    const char *value = get_gpu(index_of(device), "compute_capability");
    return value && sscanf(value, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

static int memory(int index, u64 *total, u64 *used) {
    const char *total_text = get_gpu(index, "memory_total"), *used_text = get_gpu(index, "memory_used");
    if (!total_text || !used_text) return NOT_SUPPORTED;
    *total = strtoull(total_text, NULL, 10);
    *used = strtoull(used_text, NULL, 10);
    return SUCCESS;
}

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };

/* The first version counts what the driver reserves for itself as used. */
int nvmlDeviceGetMemoryInfo(void *device, struct memory *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMemoryInfo"));
    TRY(memory(index_of(device), &info->total, &info->used));
    const char *reserved = get_gpu(index_of(device), "memory_reserved");
    info->used += reserved ? strtoull(reserved, NULL, 10) : 0;
    info->free = info->total - info->used;
    return SUCCESS;
}

#ifndef WITHOUT_MEMORY_V2
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMemoryInfo_v2"));
    if (info->version != (sizeof *info | 2u << 24)) return 25; /* argument version mismatch */
    TRY(memory(index_of(device), &info->total, &info->used));
    const char *reserved = get_gpu(index_of(device), "memory_reserved");
    info->reserved = reserved ? strtoull(reserved, NULL, 10) : 0;
    info->free = info->total - info->used - info->reserved;
    return SUCCESS;
}
#endif

struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };

/* The fact "processes": "pid:bytes" or "pid:-" (memory not available), separated by commas. */
static int processes(int index, unsigned *count, struct process *found) {
    const char *cursor = get_gpu(index, "processes");
    unsigned room = found ? *count : 0, n = 0;
    while (cursor && *cursor) {
        char *end;
        unsigned pid = (unsigned)strtoul(cursor, &end, 10);
        if (*end != ':') return UNKNOWN;
        u64 bytes = end[1] == '-' ? ~0ULL : strtoull(end + 1, NULL, 10);
        if (n < room) found[n] = (struct process){pid, bytes, ~0u, ~0u};
        n++;
        cursor = strchr(end, ',');
        if (cursor) cursor++;
    }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count, struct process *found) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetComputeRunningProcesses_v2"));
    return processes(index_of(device), count, found);
}

#ifndef WITHOUT_PROCESSES_V3
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *found) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetComputeRunningProcesses_v3"));
    return processes(index_of(device), count, found);
}
#endif

int nvmlDeviceGetTopologyCommonAncestor(void *first, void *second, int *level) {
    char key[KEY_SIZE];
    int a = index_of(first), b = index_of(second);
    TRY(gpu_call(a, "nvmlDeviceGetTopologyCommonAncestor"));
    TRY(gpu_call(b, "nvmlDeviceGetTopologyCommonAncestor"));
    snprintf(key, sizeof key, "pair.%d.%d.level", a < b ? a : b, a < b ? b : a);
    const char *value = get(key);
    if (!value) return NOT_SUPPORTED;
    *level = atoi(value);
    return SUCCESS;
}

/* Calls that give one number: the function and the fact. */
#define NUMBERS(X) \
    X(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation") \
    X(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max") \
    X(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width") \
    X(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max") \
    X(nvmlDeviceGetPerformanceState, "performance_state")

#define DEFINE_NUMBER(function, fact) \
    int function(void *device, unsigned *number) { \
        TRY(gpu_call(index_of(device), #function)); \
        const char *value = get_gpu(index_of(device), fact); \
        if (!value) return NOT_SUPPORTED; \
        *number = (unsigned)strtoul(value, NULL, 10); \
        return SUCCESS; \
    }

NUMBERS(DEFINE_NUMBER)
