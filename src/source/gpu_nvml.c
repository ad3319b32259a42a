/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NVIDIA's GPUs, by NVML: NVML API Reference Guide. A function that the library does not have, or
 * that a GPU does not support, leaves its number absent. */
#include "source/gpu_nvml.h"

#include "base/arena.h"
#include "base/quote.h"
#include "source/gpu_driver.h"

#include <dlfcn.h>
#include <math.h>

enum {
    NVIDIA_MAJOR = 195,
    MOST_INSTANCES = 64, /* of one GPU; MIG has up to 7 */
    FIRST_ENTRIES = 64,  /* of a list of processes */
    MOST_ATTEMPTS = 4,   /* at a list that grows while it is asked for */
    LARGEST_ENTRY = 32,
    FILL = 0xa5,
};

static const uint64_t clock_skew_us = 60 * 1000000;

struct functions {
#define NEEDED(type, name, parameters)   type(*name) parameters;
#define OPTIONAL(type, name, parameters) type(*name) parameters;
#include "source/gpu_nvml.inc"
#undef NEEDED
#undef OPTIONAL
};

static const struct row {
    const char *symbol;
    size_t place;
    bool is_needed;
} rows[] = {
#define NEEDED(type, name, parameters)   { "nvml" #name, offsetof(struct functions, name), true },
#define OPTIONAL(type, name, parameters) { "nvml" #name, offsetof(struct functions, name), false },
#include "source/gpu_nvml.inc"
#undef NEEDED
#undef OPTIONAL
};

/* What does not change while NVML is initialised, and how far processes' use was read. */
struct known {
    char uuid[NV_UUID_SIZE], model[sizeof(((struct gpu_use *)NULL)->model)], minor[8];
    unsigned long long last_sample;
};

struct nvml {
    void *library;
    struct functions call;
    struct known *known; /* by index */
    unsigned n_known;
    unsigned char *entries; /* of the list at hand, LARGEST_ENTRY bytes each */
    unsigned n_room;
};

/* The GPU or instance that is being asked. */
struct subject {
    struct nvml *nvml;
    struct gpu_draft *draft;
    nv_device device;
    unsigned index;
    bool is_lost; /* it is not asked any more */
};

static const char *words_of(const struct functions *call, nv_return code)
{
    const char *words = call->ErrorString(code);

    return words ? words : "NVML does not say why";
}

/* Answers that mean "there is no such number here". */
static bool is_absence(nv_return code)
{
    static const nv_return absences[] = { NV_NOT_SUPPORTED, NV_NOT_FOUND, NV_FUNCTION_NOT_FOUND,
                                          NV_NO_DATA, NV_DEPRECATED };

    for (size_t i = 0; i < COUNT(absences); i++)
        if (code == absences[i])
            return true;
    return false;
}

static bool is_answered(struct subject *subject, const char *function, nv_return code)
{
    if (code == NV_OK || is_absence(code))
        return code == NV_OK;
    subject->is_lost = code == NV_GPU_IS_LOST || code == NV_RESET_REQUIRED;
    gpu_draft_error(subject->draft, "%s of GPU %u: %s", function, subject->index,
                    quote(str_of(words_of(&subject->nvml->call, code))).text);
    return false;
}

/* Whether NVML knows the function and answered it for this GPU. */
#define ASK(subject, name, ...)                                                                    \
    ((subject)->nvml->call.name && !(subject)->is_lost &&                                          \
     is_answered(subject, "nvml" #name,                                                            \
                 (subject)->nvml->call.name((subject)->device, __VA_ARGS__)))

static uint64_t number_of(unsigned value)
{
    return value == NV_NOT_AVAILABLE ? MODEL_UNKNOWN_U64 : value;
}

static double ratio_of(unsigned percent)
{
    return percent > 100 ? NAN : percent / 100.0;
}

static void keep_text(char *to, size_t size, char *text, size_t text_size)
{
    text[text_size - 1] = '\0';
    snprintf(to, size, "%s", text);
}

static void ask_name(struct subject *subject, char uuid[NV_UUID_SIZE], char *model, size_t size)
{
    char text[NV_NAME_SIZE] = "";

    if (!uuid[0] && ASK(subject, DeviceGetUUID, text, sizeof(text)))
        keep_text(uuid, NV_UUID_SIZE, text, sizeof(text));
    if (!model[0] && ASK(subject, DeviceGetName, text, sizeof(text)))
        keep_text(model, size, text, sizeof(text));
}

static void ask_identity(struct subject *subject, struct gpu_use *use)
{
    struct known *known = &subject->nvml->known[subject->index];
    unsigned minor;

    ask_name(subject, known->uuid, known->model, sizeof(known->model));
    if (!known->minor[0] && ASK(subject, DeviceGetMinorNumber, &minor) && minor < 1 << 20)
        snprintf(known->minor, sizeof(known->minor), "%u", minor);
    memcpy(use->uuid, known->uuid, sizeof(use->uuid));
    memcpy(use->model, known->model, sizeof(use->model));
    memcpy(use->minor, known->minor, sizeof(use->minor));
    use->major = NVIDIA_MAJOR;
}

/* The second version tells what is allocated without what the driver keeps for itself. */
static void ask_memory(struct subject *subject, struct gpu_use *use)
{
    const struct functions *call = &subject->nvml->call;
    nv_memory_v2 newer = { .version = NV_MEMORY_V2 };
    nv_memory memory;

    if (!subject->is_lost && call->DeviceGetMemoryInfo_v2 &&
        call->DeviceGetMemoryInfo_v2(subject->device, &newer) == NV_OK) {
        use->memory_used_bytes = newer.used;
        use->memory_total_bytes = newer.total;
    } else if (ASK(subject, DeviceGetMemoryInfo, &memory)) {
        use->memory_used_bytes = memory.used;
        use->memory_total_bytes = memory.total;
    }
}

static void ask_numbers(struct subject *subject, struct gpu_use *use)
{
    nv_utilization rates;
    unsigned value;
    unsigned long long wide;

    if (ASK(subject, DeviceGetUtilizationRates, &rates)) {
        use->utilization = ratio_of(rates.gpu);
        use->memory_utilization = ratio_of(rates.memory);
    }
    if (ASK(subject, DeviceGetPowerUsage, &value))
        use->power_mw = number_of(value);
    if (ASK(subject, DeviceGetEnforcedPowerLimit, &value))
        use->power_limit_mw = number_of(value);
    if (ASK(subject, DeviceGetTotalEnergyConsumption, &wide))
        use->energy_mj = wide;
    if (ASK(subject, DeviceGetTemperature, NV_TEMPERATURE_GPU, &value))
        use->temperature_celsius = number_of(value);
    if (ASK(subject, DeviceGetClockInfo, NV_CLOCK_SM, &value))
        use->sm_clock_mhz = number_of(value);
    if (ASK(subject, DeviceGetClockInfo, NV_CLOCK_MEMORY, &value))
        use->memory_clock_mhz = number_of(value);
    if (ASK(subject, DeviceGetTotalEccErrors, NV_ECC_CORRECTED, NV_ECC_VOLATILE, &wide))
        use->ecc_corrected = wide;
    if (ASK(subject, DeviceGetTotalEccErrors, NV_ECC_UNCORRECTED, NV_ECC_VOLATILE, &wide))
        use->ecc_uncorrected = wide;
    if (ASK(subject, DeviceGetCurrentClocksEventReasons, &wide) ||
        ASK(subject, DeviceGetCurrentClocksThrottleReasons, &wide))
        use->throttle_reasons = wide;
}

/* One entry for each GPU instance: the compute instances that share one share its memory too. */
static int place_of_instance(const struct gpu_draft *draft, unsigned index, unsigned instance)
{
    for (size_t i = draft->look->n_gpus; i-- > 0 && draft->look->gpus[i].index == index;)
        if (draft->look->gpus[i].instance >= 0 &&
            (unsigned)draft->look->gpus[i].instance == instance)
            return (int)i;
    return -1;
}

/* The place of a MIG device, or -1. */
static int ask_instance(struct subject *subject)
{
    struct gpu_use *use;
    unsigned id;
    int place;

    if (!ASK(subject, DeviceGetGpuInstanceId, &id) || id > INT32_MAX)
        return -1;
    place = place_of_instance(subject->draft, subject->index, id);
    if (place >= 0)
        return place;
    place = gpu_draft_gpu(subject->draft, subject->index, (int)id);
    if (place < 0)
        return -1;
    use = &subject->draft->look->gpus[place];
    ask_name(subject, use->uuid, use->model, sizeof(use->model));
    ask_memory(subject, use);
    return place;
}

/* False when the ceiling is reached. */
static bool enlarge_entries(struct nvml *nvml, unsigned n)
{
    unsigned wanted = n > nvml->n_room * 2 ? n : nvml->n_room * 2;

    if (nvml->n_room == GPU_PROCESSES_MAX)
        return false;
    nvml->n_room = wanted < GPU_PROCESSES_MAX ? wanted : GPU_PROCESSES_MAX;
    nvml->entries = heap_resize(nvml->entries, nvml->n_room, LARGEST_ENTRY);
    return true;
}

typedef nv_return list_function(nv_device device, unsigned *n, nv_process *processes);

/* Fills nvml->entries, until there is room for all. Without a function: with the samples of what
 * processes have used. */
static nv_return fetch(struct subject *subject, list_function *function, unsigned *n)
{
    struct nvml *nvml = subject->nvml;
    nv_return code = NV_INSUFFICIENT_SIZE;

    for (int i = 0; i < MOST_ATTEMPTS && code == NV_INSUFFICIENT_SIZE; i++) {
        if (i > 0 && !enlarge_entries(nvml, *n))
            break;
        *n = nvml->n_room;
        memset(nvml->entries, FILL, (size_t)nvml->n_room * LARGEST_ENTRY);
        code = function ? function(subject->device, n, (nv_process *)(void *)nvml->entries)
                        : nvml->call.DeviceGetProcessUtilization(
                              subject->device, (nv_process_sample *)(void *)nvml->entries, n,
                              nvml->known[subject->index].last_sample);
    }
    if (*n > nvml->n_room)
        *n = nvml->n_room;
    return code;
}

/* Entries of one function have had 16 bytes (no suffix), 24, and 32 in drivers 535.43 to 535.86:
 * how far the library has written tells. */
static size_t size_of_entry(const struct nvml *nvml, unsigned n)
{
    size_t written = (size_t)n * LARGEST_ENTRY;

    while (written > 0 && nvml->entries[written - 1] == FILL)
        written--;
    if (written > n * sizeof(nv_process))
        return LARGEST_ENTRY;
    return written > n * offsetof(nv_process, gpu_instance) ? sizeof(nv_process)
                                                            : offsetof(nv_process, gpu_instance);
}

static void keep_processes(struct subject *subject, int place, unsigned n)
{
    size_t size = size_of_entry(subject->nvml, n);

    for (unsigned i = 0; i < n; i++) {
        nv_process process = { .gpu_instance = NV_NOT_AVAILABLE };
        int instance;

        memcpy(&process, subject->nvml->entries + i * size,
               size < sizeof(process) ? size : sizeof(process));
        if (process.pid == 0 || process.pid > INT32_MAX)
            continue;
        instance = place_of_instance(subject->draft, subject->index, process.gpu_instance);
        if (gpu_draft_process(subject->draft, (uint32_t)(instance < 0 ? place : instance),
                              (pid_t)process.pid, process.memory) < 0)
            return;
    }
}

static bool ask_list(struct subject *subject, int place, list_function *function, const char *name)
{
    unsigned n = 0;

    if (!function || subject->is_lost || !is_answered(subject, name, fetch(subject, function, &n)))
        return false;
    keep_processes(subject, place, n);
    return true;
}

/* A process may be in several lists, and one that shares a GPU by MPS in the last one alone. False
 * when those that compute are not told. */
static bool ask_processes(struct subject *subject, int place)
{
    const struct functions *call = &subject->nvml->call;

#define LIST(name) ask_list(subject, place, call->name, "nvml" #name)
    subject->draft->look->gpus[place].tells_processes = LIST(DeviceGetComputeRunningProcesses_v3);
    LIST(DeviceGetGraphicsRunningProcesses_v3);
    LIST(DeviceGetMPSComputeRunningProcesses_v3);
#undef LIST
    return subject->draft->look->gpus[place].tells_processes;
}

static const nv_process_sample *newest_sample(const nv_process_sample *samples, unsigned n,
                                              pid_t pid, unsigned long long after,
                                              unsigned long long until)
{
    const nv_process_sample *newest = NULL;

    for (unsigned i = 0; i < n; i++) {
        const nv_process_sample *sample = &samples[i];

        /* Drivers have been seen to add entries with times and numbers that mean nothing. */
        if (sample->pid == (unsigned)pid && sample->sm <= 100 && sample->timestamp > after &&
            sample->timestamp <= until && (!newest || sample->timestamp > newest->timestamp))
            newest = sample;
    }
    return newest;
}

/* NVML lists processes that have used the GPU since the last time it was asked: one that is on the
 * GPU and not in this list has not. */
static void ask_utilization(struct subject *subject, int place, size_t first)
{
    struct gpu_look *look = subject->draft->look;
    struct nvml *nvml = subject->nvml;
    struct known *known = &nvml->known[subject->index];
    const unsigned long long after = known->last_sample;
    const unsigned long long until = subject->draft->began_wall_us + clock_skew_us;
    const nv_process_sample *samples;
    nv_return code;
    unsigned n = 0;

    if (!nvml->call.DeviceGetProcessUtilization || subject->is_lost)
        return;
    code = fetch(subject, NULL, &n);
    if (code == NV_NOT_FOUND)
        n = 0;
    else if (!is_answered(subject, "nvmlDeviceGetProcessUtilization", code))
        return;
    samples = (const nv_process_sample *)(const void *)nvml->entries;
    for (size_t i = first; i < look->n_processes; i++) {
        struct gpu_process *process = &look->processes[i];
        const nv_process_sample *sample;

        if (process->gpu != (uint32_t)place)
            continue;
        sample = newest_sample(samples, n, process->pid, after, until);
        process->utilization = sample ? sample->sm / 100.0 : 0;
        if (sample && sample->timestamp > known->last_sample)
            known->last_sample = sample->timestamp;
    }
}

/* The handle of each MIG device tells of its own processes. Where one does not (hosts of virtual
 * GPUs), the whole GPU's tells of all, with the number of the instance. */
static void ask_instances(struct subject *subject, int place)
{
    struct gpu_look *look = subject->draft->look;
    bool is_told = true;
    unsigned n;

    if (!ASK(subject, DeviceGetMaxMigDeviceCount, &n))
        return;
    for (unsigned i = 0; i < n && i < MOST_INSTANCES; i++) {
        struct subject instance = *subject;
        int place_of_it;

        if (!ASK(subject, DeviceGetMigDeviceHandleByIndex, i, &instance.device))
            continue;
        place_of_it = ask_instance(&instance);
        if (place_of_it >= 0)
            is_told &= ask_processes(&instance, place_of_it);
        subject->is_lost |= instance.is_lost;
    }
    if (!is_told && ask_processes(subject, place))
        for (size_t i = (size_t)place; i < look->n_gpus; i++)
            look->gpus[i].tells_processes = true;
}

static void ask_gpu(struct nvml *nvml, struct gpu_draft *draft, unsigned index)
{
    struct subject subject = { .nvml = nvml, .draft = draft, .index = index };
    int place = gpu_draft_gpu(draft, draft->n_whole++, -1);
    size_t first_process = draft->look->n_processes;
    unsigned mig = 0, pending;
    struct gpu_use *use;

    if (place < 0)
        return;
    subject.is_lost = !is_answered(&subject, "nvmlDeviceGetHandleByIndex_v2",
                                   nvml->call.DeviceGetHandleByIndex_v2(index, &subject.device));
    use = &draft->look->gpus[place];
    ask_identity(&subject, use);
    ask_memory(&subject, use);
    ask_numbers(&subject, use);
    if (ASK(&subject, DeviceGetMigMode, &mig, &pending) && mig == NV_MIG_ENABLED) {
        ask_instances(&subject, place);
    } else {
        ask_processes(&subject, place);
        ask_utilization(&subject, place, first_process);
    }
}

static void make_room(struct nvml *nvml, unsigned n_gpus)
{
    if (n_gpus > nvml->n_known) {
        nvml->known = heap_resize(nvml->known, n_gpus, sizeof(*nvml->known));
        memset(nvml->known + nvml->n_known, 0, (n_gpus - nvml->n_known) * sizeof(*nvml->known));
        nvml->n_known = n_gpus;
    }
    nvml->n_room = FIRST_ENTRIES;
    nvml->entries = heap_array(nvml->n_room, LARGEST_ENTRY);
}

/* What NVML itself refuses, rather than a GPU. */
static int refuse(const struct functions *call, const char *function, nv_return code,
                  struct err *err)
{
    if (code == NV_DRIVER_NOT_LOADED || code == NV_GPU_NOT_FOUND)
        return err_set(err, ENODEV, "there is no GPU of NVIDIA");
    if (code == NV_VERSION_MISMATCH)
        return err_set(err, EPROTO,
                       "NVIDIA's library and kernel module are of different versions; load the "
                       "module again, or boot");
    return err_set(err, EIO, "%s: %s", function, quote(str_of(words_of(call, code))).text);
}

static int look(void *opened, struct gpu_draft *draft, struct err *err)
{
    struct nvml *nvml = opened;
    unsigned n = 0;
    nv_return code = nvml->call.DeviceGetCount_v2(&n);

    if (code != NV_OK)
        return refuse(&nvml->call, "nvmlDeviceGetCount_v2", code, err);
    if (n > GPUS_MAX)
        n = GPUS_MAX;
    make_room(nvml, n);
    for (unsigned i = 0; i < n; i++)
        ask_gpu(nvml, draft, i);
    free(nvml->entries);
    return 0;
}

/* Lists of processes are the only functions that have a third version; the older ones fill the same
 * entries, or shorter ones. */
static void *find_function(void *library, const char *name)
{
    static const char *const older[] = { "_v2", "" };
    void *function = dlsym(library, name);
    struct str stem = str_of(name);
    char older_name[64];

    if (function || !str_ends(stem, STR("_v3")))
        return function;
    stem.n -= strlen("_v3");
    for (size_t i = 0; i < COUNT(older) && !function; i++) {
        snprintf(older_name, sizeof(older_name), "%.*s%s", STR_ARG(stem), older[i]);
        function = dlsym(library, older_name);
    }
    return function;
}

static int find_functions(void *library, const char *path, struct functions *call, struct err *err)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        void *function = find_function(library, rows[i].symbol);

        if (!function && rows[i].is_needed)
            return err_set(err, ENOSYS, "%s has no %s; install the library of NVIDIA's driver",
                           path, rows[i].symbol);
        memcpy((char *)call + rows[i].place, &function, sizeof(function));
    }
    return 0;
}

/* Without the driver NVML would start a program to load it (nvidia-modprobe). */
static bool is_present(const struct gpus_config *config)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/driver/nvidia/version", config->proc);
    return config->nvml || access(path, F_OK) == 0;
}

static int open_nvml(const struct gpus_config *config, void **ret, struct err *err)
{
    const char *path = config->nvml ? config->nvml : "libnvidia-ml.so.1";
    struct nvml *nvml = heap_alloc(sizeof(*nvml));
    nv_return init;
    int code;

    nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        free(nvml);
        return err_set(err, ENOENT,
                       "%s cannot be opened; install the library of NVIDIA's driver (Debian: "
                       "libnvidia-ml1)",
                       path);
    }
    code = find_functions(nvml->library, path, &nvml->call, err);
    init = code < 0 ? NV_OK : nvml->call.Init_v2();
    if (init != NV_OK)
        code = refuse(&nvml->call, "nvmlInit_v2", init, err);
    if (code < 0) {
        dlclose(nvml->library);
        free(nvml);
        return code;
    }
    *ret = nvml;
    return 0;
}

static void close_nvml(void *opened)
{
    struct nvml *nvml = opened;

    nvml->call.Shutdown();
    dlclose(nvml->library);
    free(nvml->known);
    free(nvml);
}

const struct gpu_driver gpu_nvml = { is_present, open_nvml, look, close_nvml };
