/* A fake of NVIDIA's management library (libnvidia-ml.so.1) that answers from a machine description.
 *
 * The variable KDOCTOR_NVML_MACHINE names the description: a text file of lines "key value". Keys:
 *
 *   system.<fact>                 a fact of the driver, for example system.driver_version
 *   gpu.<i>.<fact>                a fact of GPU i, for example gpu.0.name; gpu.*.<fact> of every other GPU
 *   gpu.<i>.nvlink.<n>.<fact>     a fact of its NVLink n; gpu.<i>.nvlink.*.<fact> of each of its links
 *   gpu.<i>.field.<id>            a field value (nvmlDeviceGetFieldValues); "!13" answers with that error code
 *   pair.<i>.<j>.<fact>           a fact of two GPUs (i < j), in NVML's numbers; pair.*.<fact> of every other pair
 *   call.<function>               what the call does instead of an answer: an NVML error code, "hang" or "crash"
 *   gpu.<i>.call.<function>       the same, only for GPU i
 *   gpu.<i>.call.*                the same, for every call for GPU i
 *   call.*                        the same, for every call for a GPU that has no line with its name
 *   latency_us                    how long every call takes, in microseconds
 *
 * A value "?<path> <one> <other>" is <one> while the file exists, and <other> after that. With it, the training of a test
 * makes a GPU busy, hot or silent.
 *
 * Missing facts, and facts with the value "-", return NVML_ERROR_NOT_SUPPORTED (3). Lines that begin with # are
 * comments. Signatures and structures follow the public documentation of NVML. A new numeric fact is one line in a
 * table at the end of this file.
 *
 * The options -DWITHOUT_PROCESSES_V3 and -DWITHOUT_MEMORY_V2 remove these functions, and -DOLD removes the functions
 * that came with driver 520 and later, to imitate old drivers.
 */

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25, UNKNOWN = 999 };
enum { TABLE_SIZE = 1 << 15, MAX_GPUS = 64, KEY_SIZE = 128 };

typedef unsigned long long u64;

/* A device handle is the address of its own entry here. */
static char devices[MAX_GPUS];
static atomic_int readings[MAX_GPUS];

static struct line { char *key, *value; } table[TABLE_SIZE];
static long latency_us;

static struct line *find(const char *key) {
    unsigned hash = 2166136261u;
    for (const char *c = key; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    unsigned place = hash % TABLE_SIZE;
    while (table[place].key && strcmp(table[place].key, key)) place = (place + 1) % TABLE_SIZE;
    return &table[place];
}

/* What a value is at this moment; what follows its piece of the text is left for the readers to stop at. */
static const char *at_this_moment(const char *value) {
    char path[1024];
    if (!value || sscanf(value, "?%1023s", path) != 1) return value;
    const char *one = strchr(value, ' '), *other = one ? strchr(one + 1, ' ') : NULL;
    return !other ? NULL : access(path, F_OK) ? other + 1 : one + 1;
}

static const char *get(const char *key) {
    const char *value = at_this_moment(find(key)->value);
    return value && strcmp(value, "-") && strncmp(value, "- ", 2) ? value : NULL;
}

/* Read once, before any thread can ask. */
__attribute__((constructor)) static void load(void) {
    const char *path = getenv("KDOCTOR_NVML_MACHINE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char text[1024];
    int count = 0;
    while (file && fgets(text, sizeof text, file) && count++ < TABLE_SIZE / 2) {
        text[strcspn(text, "\r\n")] = 0;
        char *space = strchr(text, ' ');
        if (!space || text[0] == '#') continue;
        *space = 0;
        struct line *line = find(text);
        if (!line->key) line->key = strdup(text);
        line->value = strdup(space + 1);
    }
    if (file) fclose(file);
    const char *latency = get("latency_us");
    latency_us = latency ? atol(latency) : 0;
}

static const char *get_system(const char *fact) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "system.%s", fact);
    return get(key);
}

static const char *get_gpu(int index, const char *fact) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "gpu.%d.%s", index, fact);
    if (find(key)->value) return get(key);
    snprintf(key, sizeof key, "gpu.*.%s", fact);
    return get(key);
}

static const char *get_link(int index, unsigned link, const char *fact) {
    char own[KEY_SIZE / 2], any[KEY_SIZE / 2], key[KEY_SIZE];
    snprintf(own, sizeof own, "nvlink.%u.%s", link, fact);
    snprintf(any, sizeof any, "nvlink.*.%s", fact);
    snprintf(key, sizeof key, "gpu.%d.%s", index, own);
    if (find(key)->value) return get(key);
    snprintf(key, sizeof key, "gpu.*.%s", own);
    if (find(key)->value) return get(key);
    return get_gpu(index, any);
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
    if (latency_us) nanosleep(&(struct timespec){latency_us / 1000000, latency_us % 1000000 * 1000}, NULL);
    if (!order) return SUCCESS;
    if (!strncmp(order, "hang", 4)) for (;;) pause();
    if (!strncmp(order, "crash", 5)) raise(SIGSEGV);
    return atoi(order);
}

/* What a call about the driver is told to do. */
static int system_call(const char *function) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "call.%s", function);
    return obey(get(key));
}

static const char *own_order(int index, const char *function) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "gpu.%d.call.%s", index, function);
    return get(key);
}

/* What a call about GPU i is told to do: the most special order counts. */
static int gpu_call(int index, const char *function) {
    char key[KEY_SIZE];
    const char *order;
    if (index < 0) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "call.%s", function);
    if ((order = own_order(index, function))) return obey(order);
    if ((order = own_order(index, "*"))) return obey(order);
    if ((order = get(key))) return obey(order);
    return obey(get("call.*"));
}

static int text(const char *value, char *buffer, unsigned size) {
    if (!value) return NOT_SUPPORTED;
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return SUCCESS;
}

static int number(const char *value, unsigned *found) {
    if (!value) return NOT_SUPPORTED;
    *found = (unsigned)strtol(value, NULL, 0);
    return SUCCESS;
}

static int number64(const char *value, u64 *found) {
    if (!value) return NOT_SUPPORTED;
    *found = strtoull(value, NULL, 0);
    return SUCCESS;
}

#define TRY(call) do { int code_ = (call); if (code_ != SUCCESS) return code_; } while (0)
#define VERSION(structure, number) ((unsigned)(sizeof(structure) | (number) << 24))

/* --- the library --------------------------------------------------------------------------------------------- */

int nvmlInit_v2(void) { return system_call("nvmlInit"); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return system_call("nvmlInit"); }
int nvmlShutdown(void) { return system_call("nvmlShutdown"); }

const char *nvmlErrorString(int code) {
    static _Thread_local char buffer[64];
    snprintf(buffer, sizeof buffer, "error %d of the stand-in", code);
    return buffer;
}

/* --- the driver ---------------------------------------------------------------------------------------------- */

int nvmlSystemGetDriverVersion(char *buffer, unsigned size) {
    TRY(system_call("nvmlSystemGetDriverVersion"));
    return text(get_system("driver_version"), buffer, size);
}

int nvmlSystemGetNVMLVersion(char *buffer, unsigned size) {
    TRY(system_call("nvmlSystemGetNVMLVersion"));
    return text(get_system("nvml_version"), buffer, size);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    TRY(system_call("nvmlSystemGetCudaDriverVersion_v2"));
    return number(get_system("cuda_driver_version"), (unsigned *)version);
}

/* The fact "process.<pid>" is a program's path. */
int nvmlSystemGetProcessName(unsigned pid, char *buffer, unsigned size) {
    char key[KEY_SIZE];
    TRY(system_call("nvmlSystemGetProcessName"));
    snprintf(key, sizeof key, "process.%u", pid);
    return text(get_system(key), buffer, size);
}

#ifndef OLD
struct conf_compute_state { unsigned environment, feature, devtools; };
struct conf_compute_settings { unsigned version, environment, feature, devtools, multi_gpu; };

int nvmlSystemGetConfComputeState(struct conf_compute_state *state) {
    TRY(system_call("nvmlSystemGetConfComputeState"));
    memset(state, 0, sizeof *state);
    return number(get_system("conf_compute"), &state->feature);
}

int nvmlSystemGetConfComputeSettings(struct conf_compute_settings *settings) {
    TRY(system_call("nvmlSystemGetConfComputeSettings"));
    if (settings->version != VERSION(*settings, 1u)) return VERSION_MISMATCH;
    return number(get_system("conf_compute_multi_gpu"), &settings->multi_gpu);
}

int nvmlSystemGetConfComputeGpusReadyState(unsigned *ready) {
    TRY(system_call("nvmlSystemGetConfComputeGpusReadyState"));
    return number(get_system("conf_compute_ready"), ready);
}
#endif

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

static int pci(const char *value, struct pci *info) {
    memset(info, 0, sizeof *info);
    if (value) sscanf(value, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    return text(value, info->bus_id, sizeof info->bus_id);
}

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetPciInfo_v3"));
    return pci(get_gpu(index_of(device), "bus_id"), info);
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetCudaComputeCapability"));
    const char *value = get_gpu(index_of(device), "compute_capability");
    return value && sscanf(value, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

static int memory(int index, u64 *total, u64 *used) {
    TRY(number64(get_gpu(index, "memory_total"), total));
    return number64(get_gpu(index, "memory_used"), used);
}

static u64 reserved(int index) {
    u64 bytes = 0;
    return number64(get_gpu(index, "memory_reserved"), &bytes) == SUCCESS ? bytes : 0;
}

struct memory { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };

/* The first version counts what the driver reserves for itself as used. */
int nvmlDeviceGetMemoryInfo(void *device, struct memory *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMemoryInfo"));
    TRY(memory(index_of(device), &info->total, &info->used));
    info->used += reserved(index_of(device));
    info->free = info->total - info->used;
    return SUCCESS;
}

#ifndef WITHOUT_MEMORY_V2
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMemoryInfo_v2"));
    if (info->version != VERSION(*info, 2u)) return VERSION_MISMATCH;
    TRY(memory(index_of(device), &info->total, &info->used));
    info->reserved = reserved(index_of(device));
    info->free = info->total - info->used - info->reserved;
    return SUCCESS;
}
#endif

struct bar1 { u64 total, free, used; };

int nvmlDeviceGetBAR1MemoryInfo(void *device, struct bar1 *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetBAR1MemoryInfo"));
    memset(info, 0, sizeof *info);
    return number64(get_gpu(index_of(device), "bar1_total"), &info->total);
}

struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };

/* The facts "processes" and "graphics_processes": "pid:bytes" or "pid:-" (memory not available), separated by commas. */
static int processes(int index, const char *fact, unsigned *count, struct process *found) {
    const char *cursor = get_gpu(index, fact);
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
    return processes(index_of(device), "processes", count, found);
}

#ifndef WITHOUT_PROCESSES_V3
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *found) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetComputeRunningProcesses_v3"));
    return processes(index_of(device), "processes", count, found);
}
#endif

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *found) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetGraphicsRunningProcesses_v3"));
    return processes(index_of(device), "graphics_processes", count, found);
}

/* The fact "clock_event_reasons": one bit mask a reading, separated by commas; the last one stays. */
static int clock_event_reasons(int index, u64 *reasons) {
    const char *cursor = get_gpu(index, "clock_event_reasons");
    for (int skip = cursor ? atomic_fetch_add(&readings[index], 1) : 0; skip > 0 && strchr(cursor, ','); skip--)
        cursor = strchr(cursor, ',') + 1;
    return number64(cursor, reasons);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, u64 *reasons) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetCurrentClocksThrottleReasons"));
    return clock_event_reasons(index_of(device), reasons);
}

#ifndef OLD
int nvmlDeviceGetCurrentClocksEventReasons(void *device, u64 *reasons) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetCurrentClocksEventReasons"));
    return clock_event_reasons(index_of(device), reasons);
}

struct margin { unsigned version; int margin; };

int nvmlDeviceGetMarginTemperature(void *device, struct margin *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMarginTemperature"));
    if (info->version != VERSION(*info, 1u)) return VERSION_MISMATCH;
    return number(get_gpu(index_of(device), "temperature_margin"), (unsigned *)&info->margin);
}

struct sram { unsigned version; u64 counts[11]; unsigned threshold_exceeded; };

int nvmlDeviceGetSramEccErrorStatus(void *device, struct sram *status) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetSramEccErrorStatus"));
    if (status->version != VERSION(*status, 1u)) return VERSION_MISMATCH;
    return number(get_gpu(index_of(device), "sram_threshold_exceeded"), &status->threshold_exceeded);
}

struct fabric { unsigned version; unsigned char cluster[16]; int status; unsigned clique, state, health; };

int nvmlDeviceGetGpuFabricInfoV(void *device, struct fabric *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetGpuFabricInfoV"));
    if (info->version != VERSION(*info, 2u)) return VERSION_MISMATCH;
    TRY(number(get_gpu(index_of(device), "fabric_state"), &info->state));
    if (number(get_gpu(index_of(device), "fabric_status"), (unsigned *)&info->status) != SUCCESS) info->status = SUCCESS;
    if (number(get_gpu(index_of(device), "fabric_health"), &info->health) != SUCCESS) info->health = 0;
    return SUCCESS;
}

int nvmlDeviceValidateInforom(void *device) { return gpu_call(index_of(device), "nvmlDeviceValidateInforom"); }

struct repair { unsigned version, channel, tpc; };

int nvmlDeviceGetRepairStatus(void *device, struct repair *status) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetRepairStatus"));
    if (status->version != VERSION(*status, 1u)) return VERSION_MISMATCH;
    TRY(number(get_gpu(index_of(device), "channel_repair_pending"), &status->channel));
    return number(get_gpu(index_of(device), "tpc_repair_pending"), &status->tpc);
}

struct unrepairable { unsigned version, flag; };

int nvmlDeviceGetUnrepairableMemoryFlag_v1(void *device, struct unrepairable *status) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetUnrepairableMemoryFlag_v1"));
    return number(get_gpu(index_of(device), "unrepairable_memory"), &status->flag);
}

struct addressing { unsigned version, value; };

int nvmlDeviceGetAddressingMode(void *device, struct addressing *info) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetAddressingMode"));
    if (info->version != VERSION(*info, 1u)) return VERSION_MISMATCH;
    return number(get_gpu(index_of(device), "addressing_mode"), &info->value);
}
#endif

/* Facts ecc_corrected_volatile, ecc_uncorrected_aggregate and so on. */
int nvmlDeviceGetTotalEccErrors(void *device, unsigned type, unsigned counter, u64 *count) {
    char fact[KEY_SIZE];
    TRY(gpu_call(index_of(device), "nvmlDeviceGetTotalEccErrors"));
    snprintf(fact, sizeof fact, "ecc_%s_%s", type ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
    return number64(get_gpu(index_of(device), fact), count);
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetTemperature"));
    return sensor ? INVALID_ARGUMENT : number(get_gpu(index_of(device), "temperature"), degrees);
}

int nvmlDeviceGetTemperatureThreshold(void *device, unsigned threshold, unsigned *degrees) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetTemperatureThreshold"));
    if (threshold > 1) return NOT_SUPPORTED;
    return number(get_gpu(index_of(device), threshold ? "temperature_slowdown" : "temperature_shutdown"), degrees);
}

static int clock_info(int index, unsigned type, const char *limit, unsigned *mhz) {
    char fact[KEY_SIZE];
    snprintf(fact, sizeof fact, "clock_%s%s", type == 1 ? "sm" : type == 2 ? "memory" : "other", limit);
    return number(get_gpu(index, fact), mhz);
}

int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetClockInfo"));
    return clock_info(index_of(device), type, "", mhz);
}

int nvmlDeviceGetMaxClockInfo(void *device, unsigned type, unsigned *mhz) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMaxClockInfo"));
    return clock_info(index_of(device), type, "_max", mhz);
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failure) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetRemappedRows"));
    TRY(number(get_gpu(index_of(device), "remapped_rows_correctable"), correctable));
    TRY(number(get_gpu(index_of(device), "remapped_rows_uncorrectable"), uncorrectable));
    TRY(number(get_gpu(index_of(device), "remapped_rows_pending"), pending));
    return number(get_gpu(index_of(device), "remapped_rows_failure"), failure);
}

struct utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetUtilizationRates"));
    TRY(number(get_gpu(index_of(device), "utilization_gpu"), &rates->gpu));
    return number(get_gpu(index_of(device), "utilization_memory"), &rates->memory);
}

/* A set of numbers such as "0-3,8" as 64-bit words. */
static int set(const char *value, unsigned words, u64 *found) {
    if (!value) return NOT_SUPPORTED;
    memset(found, 0, words * sizeof *found);
    while (*value) {
        char *end;
        unsigned long first = strtoul(value, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (last / 64 >= words) return INSUFFICIENT_SIZE;
        for (; first <= last; first++) found[first / 64] |= 1ULL << first % 64;
        value = *end == ',' ? end + 1 : "";
    }
    return SUCCESS;
}

int nvmlDeviceGetCpuAffinity(void *device, unsigned words, u64 *found) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetCpuAffinity"));
    return set(get_gpu(index_of(device), "cpu_affinity"), words, found);
}

int nvmlDeviceGetMemoryAffinity(void *device, unsigned words, u64 *found, unsigned scope) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetMemoryAffinity"));
    return scope ? INVALID_ARGUMENT : set(get_gpu(index_of(device), "numa_affinity"), words, found);
}

/* --- field values -------------------------------------------------------------------------------------------- */

struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type;
    int code;
    union { double d; unsigned ui; unsigned long ul; u64 ull; long long sll; int si; unsigned short us; } value;
};

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3, SIGNED_INT = 5, FIELD_LINK_COUNT = 91, FIELD_LINK_SPEED = 164 };

static const char *field_text(int index, const struct field *field) {
    char fact[KEY_SIZE];
    if (field->id == FIELD_LINK_COUNT) return get_gpu(index, "nvlink_count");
    if (field->id == FIELD_LINK_SPEED) return get_link(index, field->scope, "speed_mbps");
    snprintf(fact, sizeof fact, "field.%u", field->id);
    return get_gpu(index, fact);
}

int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields) {
    TRY(gpu_call(index_of(device), "nvmlDeviceGetFieldValues"));
    for (int i = 0; i < count; i++) {
        const char *value = field_text(index_of(device), &fields[i]);
        long found = value ? strtol(value + (*value == '!'), NULL, 0) : 0;
        fields[i].code = !value ? NOT_SUPPORTED : *value == '!' ? (int)found : SUCCESS;
        fields[i].type = found < 0 ? SIGNED_INT : found > 0xffffffffL ? UNSIGNED_LONG_LONG : UNSIGNED_INT;
        fields[i].value.ull = (u64)(found < 0 ? 0 : found);
        if (found < 0) fields[i].value.si = (int)found;
    }
    return SUCCESS;
}

/* --- NVLink -------------------------------------------------------------------------------------------------- */

/* A link exists if the fact nvlinks (their number) says so. */
static int link_call(int index, unsigned link, const char *function) {
    TRY(gpu_call(index, function));
    unsigned links = 0;
    TRY(number(get_gpu(index, "nvlinks"), &links));
    return link < links ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) {
    TRY(link_call(index_of(device), link, "nvmlDeviceGetNvLinkState"));
    return number(get_link(index_of(device), link, "active"), active);
}

int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version) {
    TRY(link_call(index_of(device), link, "nvmlDeviceGetNvLinkVersion"));
    return number(get_link(index_of(device), link, "version"), version);
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *type) {
    TRY(link_call(index_of(device), link, "nvmlDeviceGetNvLinkRemoteDeviceType"));
    return number(get_link(index_of(device), link, "remote_type"), type);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *info) {
    TRY(link_call(index_of(device), link, "nvmlDeviceGetNvLinkRemotePciInfo_v2"));
    return pci(get_link(index_of(device), link, "remote_bus_id"), info);
}

/* --- pairs --------------------------------------------------------------------------------------------------- */

static const char *get_pair(int a, int b, const char *fact) {
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "pair.%d.%d.%s", a < b ? a : b, a < b ? b : a, fact);
    if (find(key)->value) return get(key);
    snprintf(key, sizeof key, "pair.*.%s", fact);
    return get(key);
}

/* One call takes its time once; an order that either GPU has is obeyed. */
static int pair_call(int a, int b, const char *function) {
    int alone = b >= 0 && !own_order(a, function) && !own_order(a, "*") && (own_order(b, function) || own_order(b, "*"));
    return gpu_call(alone ? b : a, function);
}

int nvmlDeviceGetTopologyCommonAncestor(void *first, void *second, unsigned *level) {
    TRY(pair_call(index_of(first), index_of(second), "nvmlDeviceGetTopologyCommonAncestor"));
    return number(get_pair(index_of(first), index_of(second), "level"), level);
}

int nvmlDeviceGetP2PStatus(void *first, void *second, unsigned index, unsigned *status) {
    static const char *facts[] = {"p2p_read", "p2p_write", "p2p_nvlink"};
    TRY(pair_call(index_of(first), index_of(second), "nvmlDeviceGetP2PStatus"));
    return index < 3 ? number(get_pair(index_of(first), index_of(second), facts[index]), status) : INVALID_ARGUMENT;
}

/* --- calls that give one or two numbers ------------------------------------------------------------------------ */

#define NUMBERS(X) \
    X(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation") \
    X(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max") \
    X(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width") \
    X(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max") \
    X(nvmlDeviceGetPerformanceState, "performance_state") \
    X(nvmlDeviceGetArchitecture, "architecture") \
    X(nvmlDeviceGetMinorNumber, "minor_number") \
    X(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_generation_gpu_max") \
    X(nvmlDeviceGetPcieReplayCounter, "pcie_replay_counter") \
    X(nvmlDeviceGetComputeMode, "compute_mode") \
    X(nvmlDeviceGetPersistenceMode, "persistence_mode") \
    X(nvmlDeviceGetFanSpeed, "fan_speed") \
    X(nvmlDeviceGetPowerUsage, "power_draw") \
    X(nvmlDeviceGetEnforcedPowerLimit, "enforced_power_limit") \
    X(nvmlDeviceGetPowerManagementDefaultLimit, "default_power_limit") \
    X(nvmlDeviceGetVirtualizationMode, "virtualization_mode") \
    X(nvmlDeviceGetNumaNodeId, "gpu_numa_id")

#define DEFINE_NUMBER(function, fact) \
    int function(void *device, unsigned *found) { \
        TRY(gpu_call(index_of(device), #function)); \
        return number(get_gpu(index_of(device), fact), found); \
    }

NUMBERS(DEFINE_NUMBER)

#define DEFINE_MODES(function, fact) \
    int function(void *device, unsigned *current, unsigned *pending) { \
        TRY(gpu_call(index_of(device), #function)); \
        TRY(number(get_gpu(index_of(device), fact), current)); \
        return number(get_gpu(index_of(device), fact "_pending"), pending); \
    }

DEFINE_MODES(nvmlDeviceGetMigMode, "mig_mode")
DEFINE_MODES(nvmlDeviceGetEccMode, "ecc_mode")
