/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library with NVML's ABI (NVML API Reference Guide) and GPUs that a file invents, so that the
 * real code can be run without any. The file is named by SONDE_NVML_STANDIN in the environment and
 * read again whenever GPUs are counted; without one, no driver is loaded. Its lines:
 *     gpu [KEY=VALUE…]             the next GPU; keys as in `keys` below, the rest has values that
 *                                  follow from its index; _ stands for a space
 *     mig [gi=ID] [KEY=VALUE…]     the next MIG device of that GPU, which then is in MIG mode
 *     process pid=PID [memory=BYTES] [sm=PERCENT] [list=compute|graphics|mps]
 *                                  on the last GPU or MIG device; memory=-1: not available
 *     sample pid=PID sm=PERCENT time=MICROSECONDS
 *                                  one that the driver adds to those of the processes
 *     fail FUNCTION CODE [INDEX [mig]]
 *                                  that function returns that code (for that GPU; for its MIG
 *                                  devices alone)
 *     hang FUNCTION                it does not return for as long as this line is there
 *     entry_size BYTES             of lists of processes, 16, 24 or 32 (drivers 535.43 to 535.86)
 *     count N                      GPUs that there are said to be
 * Built with STANDIN_OLD it lacks what drivers before 510 and GPUs before MIG lack. */
#include "source/gpu_nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_DEVICES = 256, MOST_PROCESSES = 8192, MOST_RULES = 32, INVALID_ARGUMENT = 2 };

struct nv_device {
    unsigned index; /* of the GPU */
    int parent;     /* of a MIG device: place of its GPU; -1: a GPU */
    unsigned n_mig;
    char uuid[200], name[200];
    unsigned long long minor, gpu_percent, memory_percent, total, used, reserved;
    unsigned long long power, limit, energy, temperature, sm_clock, memory_clock;
    unsigned long long corrected, uncorrected, reasons, gi;
};

#define KEY(name, field)                                                                           \
    {                                                                                              \
        name, offsetof(struct nv_device, field)                                                    \
    }
static const struct {
    const char *name;
    size_t place;
} keys[] = {
    KEY("minor", minor),
    KEY("utilization", gpu_percent),
    KEY("memory_utilization", memory_percent),
    KEY("total", total),
    KEY("used", used),
    KEY("reserved", reserved),
    KEY("power", power),
    KEY("limit", limit),
    KEY("energy", energy),
    KEY("temperature", temperature),
    KEY("sm_clock", sm_clock),
    KEY("memory_clock", memory_clock),
    KEY("corrected", corrected),
    KEY("uncorrected", uncorrected),
    KEY("reasons", reasons),
    KEY("gi", gi),
};

enum list { COMPUTE, GRAPHICS, MPS };

static struct {
    struct nv_device devices[MOST_DEVICES];
    unsigned n_devices, n_gpus, claimed;
    struct {
        int device;
        enum list list;
        unsigned pid, sm;
        unsigned long long memory;
    } processes[MOST_PROCESSES];
    unsigned n_processes;
    nv_process_sample samples[MOST_RULES];
    unsigned n_samples;
    struct {
        char function[64];
        nv_return code;
        long index;
        bool is_hang, is_mig;
    } rules[MOST_RULES];
    unsigned n_rules;
    size_t entry_size;
    bool has_file;
} world;

static unsigned n_init;                /* nvmlInit_v2 minus nvmlShutdown */
static unsigned long long sample_time; /* goes on by a second whenever GPUs are counted */

/* What a test asks from its own thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char function[64];
    unsigned n;
} calls[64];
static unsigned n_hanging;

/* How often a function has been called since the library was opened, and how many hang now. */
unsigned standin_calls(const char *function);
unsigned standin_hanging(void);

unsigned standin_calls(const char *function)
{
    unsigned n = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(calls[i].function, function) == 0)
            n = calls[i].n;
    pthread_mutex_unlock(&lock);
    return n;
}

unsigned standin_hanging(void)
{
    unsigned n;

    pthread_mutex_lock(&lock);
    n = n_hanging;
    pthread_mutex_unlock(&lock);
    return n;
}

static void count_call(const char *function)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (!calls[i].function[0])
            snprintf(calls[i].function, sizeof(calls[i].function), "%s", function);
        if (strcmp(calls[i].function, function) == 0) {
            calls[i].n++;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The value of NAME=VALUE among words, or NULL. */
static const char *value_of(char **words, const char *name)
{
    size_t n = strlen(name);

    for (; *words; words++)
        if (strncmp(*words, name, n) == 0 && (*words)[n] == '=')
            return *words + n + 1;
    return NULL;
}

static unsigned long long number_of(char **words, const char *name, unsigned long long otherwise)
{
    const char *value = value_of(words, name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

static void put_text(char *to, size_t size, char **words, const char *name)
{
    const char *value = value_of(words, name);

    if (!value)
        return;
    snprintf(to, size, "%s", value);
    for (; (to = strchr(to, '_')); to++)
        *to = ' ';
}

static void put_values(struct nv_device *device, char **words)
{
    put_text(device->uuid, sizeof(device->uuid), words, "uuid");
    put_text(device->name, sizeof(device->name), words, "name");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        unsigned long long value;

        memcpy(&value, (char *)device + keys[i].place, sizeof(value));
        value = number_of(words, keys[i].name, value);
        memcpy((char *)device + keys[i].place, &value, sizeof(value));
    }
}

static void read_gpu(char **words)
{
    unsigned i = world.n_gpus;

    if (world.n_devices == MOST_DEVICES)
        return;
    world.n_gpus++;
    world.devices[world.n_devices] = (struct nv_device){
        .index = i,
        .parent = -1,
        .minor = i,
        .gpu_percent = 50 + i,
        .memory_percent = 20 + i,
        .total = 40ull << 30,
        .used = (10ull + i) << 30,
        .reserved = 1 << 28,
        .power = 300000 + i,
        .limit = 400000,
        .energy = 5000000000ull + i,
        .temperature = 60 + i,
        .sm_clock = 1410,
        .memory_clock = 1215,
        .corrected = i,
        .uncorrected = 0,
        .reasons = 4,
    };
    snprintf(world.devices[world.n_devices].uuid, sizeof(world.devices[0].uuid),
             "GPU-00000000-0000-0000-0000-%012u", i);
    snprintf(world.devices[world.n_devices].name, sizeof(world.devices[0].name),
             "NVIDIA Stand-in 40GB");
    put_values(&world.devices[world.n_devices++], words);
}

static void read_mig(char **words)
{
    struct nv_device *device = &world.devices[world.n_devices], *gpu = device - 1;

    if (world.n_devices == 0 || world.n_devices == MOST_DEVICES)
        return;
    if (gpu->parent >= 0)
        gpu = &world.devices[gpu->parent];
    *device = (struct nv_device){
        .index = gpu->index,
        .parent = (int)(gpu - world.devices),
        .gi = gpu->n_mig + 7,
        .total = 5ull << 30,
        .used = 1ull << 30,
        .reserved = 1 << 26,
    };
    snprintf(device->uuid, sizeof(device->uuid), "MIG-00000000-0000-0000-%04u-%012u", gpu->index,
             gpu->n_mig);
    snprintf(device->name, sizeof(device->name), "NVIDIA Stand-in 40GB MIG 1g.5gb");
    put_values(device, words);
    gpu->n_mig++;
    world.n_devices++;
}

static void read_process(char **words)
{
    const char *list = value_of(words, "list");
    unsigned i = world.n_processes;

    if (i == MOST_PROCESSES || world.n_devices == 0)
        return;
    world.processes[i].device = (int)world.n_devices - 1;
    world.processes[i].list = !list || list[0] == 'c' ? COMPUTE : list[0] == 'g' ? GRAPHICS : MPS;
    world.processes[i].pid = (unsigned)number_of(words, "pid", 0);
    world.processes[i].sm = (unsigned)number_of(words, "sm", 0);
    world.processes[i].memory = number_of(words, "memory", 1 << 30);
    world.n_processes++;
}

static void read_sample(char **words)
{
    if (world.n_samples < MOST_RULES)
        world.samples[world.n_samples++] = (nv_process_sample){
            .pid = (unsigned)number_of(words, "pid", 0),
            .timestamp = number_of(words, "time", 0),
            .sm = (unsigned)number_of(words, "sm", 0),
        };
}

static void add_rule(char **words, bool is_hang)
{
    if (world.n_rules == MOST_RULES || !words[0])
        return;
    snprintf(world.rules[world.n_rules].function, sizeof(world.rules[0].function), "%s", words[0]);
    world.rules[world.n_rules].code =
        words[1] && !is_hang ? (nv_return)strtoul(words[1], NULL, 0) : NV_OK;
    world.rules[world.n_rules].index = words[1] && words[2] ? strtol(words[2], NULL, 0) : -1;
    world.rules[world.n_rules].is_mig = world.rules[world.n_rules].index >= 0 && words[3];
    world.rules[world.n_rules].is_hang = is_hang;
    world.n_rules++;
}

static void read_fail(char **words)
{
    add_rule(words, false);
}

static void read_hang(char **words)
{
    add_rule(words, true);
}

static void read_entry_size(char **words)
{
    world.entry_size = words[0] ? strtoul(words[0], NULL, 0) : 0;
}

static void read_count(char **words)
{
    world.claimed = words[0] ? (unsigned)strtoul(words[0], NULL, 0) : 0;
}

static const struct {
    const char *word;
    void (*read)(char **words);
} directives[] = {
    { "gpu", read_gpu },         { "mig", read_mig },
    { "process", read_process }, { "sample", read_sample },
    { "fail", read_fail },       { "hang", read_hang },
    { "count", read_count },     { "entry_size", read_entry_size },
};

static void read_line(char *line)
{
    char *words[32] = { NULL }, *rest = line;
    size_t n = 0;

    for (char *word; (word = strsep(&rest, " \n")) && n < 31;)
        if (*word)
            words[n++] = word;
    for (size_t i = 0; n && i < sizeof(directives) / sizeof(directives[0]); i++)
        if (strcmp(words[0], directives[i].word) == 0)
            directives[i].read(words + 1);
}

static void read_world(void)
{
    const char *path = getenv("SONDE_NVML_STANDIN");
    FILE *file = path ? fopen(path, "re") : NULL;
    char line[1024];

    memset(&world, 0, sizeof(world));
    world.entry_size = sizeof(nv_process);
    if (!file)
        return;
    world.has_file = true;
    while (fgets(line, sizeof(line), file))
        read_line(line);
    fclose(file);
}

static bool is_to_hang(const char *function)
{
    for (unsigned i = 0; i < world.n_rules; i++)
        if (world.rules[i].is_hang && strcmp(world.rules[i].function, function) == 0)
            return true;
    return false;
}

static void count_hanging(int change)
{
    pthread_mutex_lock(&lock);
    n_hanging += (unsigned)change;
    pthread_mutex_unlock(&lock);
}

/* The file is all that a driver that hangs listens to. */
static void hang_if_told(const char *function)
{
    static const struct timespec moment = { .tv_nsec = 2000000 };

    if (!is_to_hang(function))
        return;
    count_hanging(1);
    do {
        nanosleep(&moment, NULL);
        read_world();
    } while (is_to_hang(function));
    count_hanging(-1);
}

static nv_return check(const char *function, nv_device device)
{
    ptrdiff_t place = device ? device - world.devices : -1;

    hang_if_told(function);
    for (unsigned i = 0; i < world.n_rules; i++)
        if (strcmp(world.rules[i].function, function) == 0 && !world.rules[i].is_hang &&
            (world.rules[i].index < 0 || (device && world.rules[i].index == (long)device->index)) &&
            (!world.rules[i].is_mig || device->parent >= 0))
            return world.rules[i].code;
    if (n_init == 0)
        return NV_UNINITIALIZED;
    if (device && (place < 0 || place >= (ptrdiff_t)world.n_devices))
        return INVALID_ARGUMENT;
    return NV_OK;
}

static nv_return enter(const char *function, nv_device device)
{
    count_call(function);
    return check(function, device);
}

/* A function of one GPU. */
#define ANSWER(name, parameters, ...)                                                              \
    nv_return name parameters;                                                                     \
    nv_return name parameters                                                                      \
    {                                                                                              \
        nv_return code = enter(#name, device);                                                     \
                                                                                                   \
        if (code == NV_OK) {                                                                       \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return code;                                                                               \
    }

const char *nvmlErrorString(nv_return code);
const char *nvmlErrorString(nv_return code)
{
    return code == NV_GPU_IS_LOST ? "GPU is lost"
           : code == NV_OK        ? "The operation was successful"
                                  : "stand-in\nerror";
}

nv_return nvmlInit_v2(void);
nv_return nvmlInit_v2(void)
{
    nv_return code;

    read_world();
    n_init++;
    code = enter("nvmlInit_v2", NULL);
    if (code == NV_OK && !world.has_file)
        code = NV_DRIVER_NOT_LOADED;
    if (code != NV_OK)
        n_init--;
    return code;
}

nv_return nvmlShutdown(void);
nv_return nvmlShutdown(void)
{
    nv_return code = check("nvmlShutdown", NULL);

    if (n_init)
        n_init--;
    /* Last: who sees it counted may take the library over. */
    count_call("nvmlShutdown");
    return code;
}

nv_return nvmlDeviceGetCount_v2(unsigned *n);
nv_return nvmlDeviceGetCount_v2(unsigned *n)
{
    read_world();
    sample_time += 1000000;
    *n = world.claimed ? world.claimed : world.n_gpus;
    return enter("nvmlDeviceGetCount_v2", NULL);
}

nv_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nv_device *device);
nv_return nvmlDeviceGetHandleByIndex_v2(unsigned index, nv_device *device)
{
    for (unsigned i = 0; i < world.n_devices; i++)
        if (world.devices[i].parent < 0 && world.devices[i].index == index) {
            *device = &world.devices[i];
            return enter("nvmlDeviceGetHandleByIndex_v2", *device);
        }
    return INVALID_ARGUMENT;
}

/* A text that does not fit is written without its NUL, which the real one has never been seen to
 * do. */
static void put(char *to, unsigned size, const char *text)
{
    size_t n = strlen(text) + 1;

    memcpy(to, text, n < size ? n : size);
}

ANSWER(nvmlDeviceGetUUID, (nv_device device, char *text, unsigned size),
       put(text, size, device->uuid))
ANSWER(nvmlDeviceGetName, (nv_device device, char *text, unsigned size),
       put(text, size, device->name))
ANSWER(nvmlDeviceGetMinorNumber, (nv_device device, unsigned *minor),
       *minor = (unsigned)device->minor)

ANSWER(nvmlDeviceGetUtilizationRates, (nv_device device, nv_utilization *rates),
       if (device->parent >= 0 || device->n_mig) return NV_NOT_SUPPORTED;
       rates->gpu = (unsigned)device->gpu_percent; rates->memory = (unsigned)device->memory_percent)
ANSWER(nvmlDeviceGetMemoryInfo, (nv_device device, nv_memory *memory),
       memory->total = device->total;
       memory->used = device->used + device->reserved; memory->free = memory->total - memory->used)
ANSWER(nvmlDeviceGetPowerUsage, (nv_device device, unsigned *mw), *mw = (unsigned)device->power)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, (nv_device device, unsigned *mw),
       *mw = (unsigned)device->limit)
ANSWER(nvmlDeviceGetTotalEnergyConsumption, (nv_device device, unsigned long long *mj),
       *mj = device->energy)
ANSWER(nvmlDeviceGetTemperature,
       (nv_device device, nv_temperature_sensor sensor, unsigned *celsius),
       if (sensor != NV_TEMPERATURE_GPU) return INVALID_ARGUMENT;
       *celsius = (unsigned)device->temperature)
ANSWER(nvmlDeviceGetClockInfo, (nv_device device, nv_clock_type type, unsigned *mhz),
       if (type != NV_CLOCK_SM && type != NV_CLOCK_MEMORY) return INVALID_ARGUMENT;
       *mhz = (unsigned)(type == NV_CLOCK_SM ? device->sm_clock : device->memory_clock))
ANSWER(nvmlDeviceGetTotalEccErrors,
       (nv_device device, nv_ecc_error error, nv_ecc_counter counter, unsigned long long *n),
       if (counter != NV_ECC_VOLATILE) return INVALID_ARGUMENT;
       *n = error == NV_ECC_CORRECTED ? device->corrected : device->uncorrected)
ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, (nv_device device, unsigned long long *reasons),
       *reasons = device->reasons)

static bool is_on(unsigned process, nv_device device)
{
    int place = world.processes[process].device;

    return &world.devices[place] == device ||
           (world.devices[place].parent >= 0 &&
            &world.devices[world.devices[place].parent] == device);
}

static nv_return list_processes(nv_device device, enum list list, size_t size, unsigned *n,
                                void *entries)
{
    unsigned room = *n, found = 0;

    for (unsigned i = 0; i < world.n_processes; i++) {
        struct {
            nv_process process;
            unsigned long long protected;
        } entry = { 0 };

        if (world.processes[i].list != list || !is_on(i, device))
            continue;
        entry.process.pid = world.processes[i].pid;
        entry.process.memory = world.processes[i].memory;
        entry.process.gpu_instance = entry.process.compute_instance = NV_NOT_AVAILABLE;
        if (world.devices[world.processes[i].device].parent >= 0) {
            entry.process.gpu_instance = (unsigned)world.devices[world.processes[i].device].gi;
            entry.process.compute_instance = 0;
        }
        if (found < room)
            memcpy((char *)entries + found * size, &entry, size);
        found++;
    }
    *n = found;
    return found > room ? NV_INSUFFICIENT_SIZE : NV_OK;
}

#define LISTS(suffix, size)                                                                        \
    LIST(Compute, COMPUTE, suffix, size)                                                           \
    LIST(Graphics, GRAPHICS, suffix, size) LIST(MPSCompute, MPS, suffix, size)
#define LIST(kind, list, suffix, size)                                                             \
    ANSWER(nvmlDeviceGet##kind##RunningProcesses##suffix,                                          \
           (nv_device device, unsigned *n, nv_process *processes),                                 \
           code = list_processes(device, list, size, n, processes))

LISTS(, offsetof(nv_process, gpu_instance))
LISTS(_v2, sizeof(nv_process))

static nv_return list_samples(nv_device device, nv_process_sample *samples, unsigned *n,
                              unsigned long long last_seen)
{
    unsigned room = *n, found = 0;

    for (unsigned i = 0; i < world.n_processes; i++)
        if (world.processes[i].sm && is_on(i, device) && sample_time > last_seen) {
            if (samples && found < room)
                samples[found] = (nv_process_sample){ .pid = world.processes[i].pid,
                                                      .timestamp = sample_time,
                                                      .sm = world.processes[i].sm };
            found++;
        }
    for (unsigned i = 0; i < world.n_samples; i++) {
        if (samples && found < room)
            samples[found] = world.samples[i];
        found++;
    }
    *n = found;
    return found == 0 ? NV_NOT_FOUND : found > room || !samples ? NV_INSUFFICIENT_SIZE : NV_OK;
}

ANSWER(nvmlDeviceGetProcessUtilization,
       (nv_device device, nv_process_sample *samples, unsigned *n, unsigned long long last_seen),
       code = device->n_mig ? NV_NOT_SUPPORTED : list_samples(device, samples, n, last_seen))

#ifndef STANDIN_OLD
ANSWER(nvmlDeviceGetMemoryInfo_v2, (nv_device device, nv_memory_v2 *memory),
       if (memory->version != NV_MEMORY_V2) return NV_FUNCTION_NOT_FOUND;
       memory->total = device->total; memory->used = device->used;
       memory->reserved = device->reserved;
       memory->free = memory->total - memory->used - memory->reserved)
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, (nv_device device, unsigned long long *reasons),
       *reasons = device->reasons)
LISTS(_v3, world.entry_size)

ANSWER(nvmlDeviceGetMigMode, (nv_device device, unsigned *now, unsigned *pending),
       *now = *pending = device->n_mig > 0)
ANSWER(nvmlDeviceGetMaxMigDeviceCount, (nv_device device, unsigned *n), *n = device->n_mig + 1)
ANSWER(nvmlDeviceGetMigDeviceHandleByIndex, (nv_device device, unsigned index, nv_device *instance),
       if (index >= device->n_mig) return NV_NOT_FOUND;
       *instance = device + 1 + index)
ANSWER(nvmlDeviceGetGpuInstanceId, (nv_device device, unsigned *id), *id = (unsigned)device->gi)
#endif
