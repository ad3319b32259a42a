/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thread that reads the GPUs of this node. */
#include "source/gpus.h"

#include "base/arena.h"
#include "base/thread.h"
#include "source/gpu_driver.h"

#include <math.h>

static const int64_t shortest_interval_ns = 900 * NS_PER_MS; /* a tick of 1 s may come early */
static const int64_t first_retry_ns = 15 * NS_PER_SEC, last_retry_ns = 300 * NS_PER_SEC;
static const int64_t grace_ns = NS_PER_SEC;

static const struct gpu_driver *const drivers[] = { &gpu_nvml, &gpu_amd };

/* How it stands with one driver. Used by the thread alone. */
struct standing {
    bool is_open;
    void *opened;
    int64_t retry_at_ns, retry_ns;
    struct err err; /* why not; code 0: there is none */
};

struct gpus {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* asked, or ending, or ended */
    struct gpus_config config;
    char *nvml, *sys, *proc; /* what the config points to */
    struct standing standings[COUNT(drivers)];

    bool is_asked, is_ending, has_ended;
    bool is_left_behind; /* the thread frees everything when it ends */
    bool is_present;     /* see gpus_present */
    int64_t began_ns;    /* of the last look */
    struct gpu_look *latest;
    pthread_t thread;
};

const struct gpu_throttle gpu_throttles[] = {
    { 0x1, "gpu_idle" },
    { 0x2, "applications_clocks_setting" },
    { 0x4, "sw_power_cap" },
    { 0x8, "hw_slowdown" },
    { 0x10, "sync_boost" },
    { 0x20, "sw_thermal_slowdown" },
    { 0x40, "hw_thermal_slowdown" },
    { 0x80, "hw_power_brake_slowdown" },
    { 0x100, "display_clock_setting" },
    { 0, NULL },
};

struct gpu_look *gpu_look_unref(struct gpu_look *look)
{
    if (!look || atomic_fetch_sub(&look->refs, 1) > 1)
        return NULL;
    free(look->gpus);
    free(look->processes);
    free(look);
    return NULL;
}

void gpu_draft_error(struct gpu_draft *draft, const char *format, ...)
{
    struct gpu_look *look = draft->look;
    va_list args;

    if (look->errors++)
        return;
    va_start(args, format);
    vsnprintf(look->first_error, sizeof(look->first_error), format, args);
    va_end(args);
}

int gpu_draft_gpu(struct gpu_draft *draft, unsigned index, int instance)
{
    struct gpu_look *look = draft->look;

    if (look->n_gpus == GPUS_MAX) {
        gpu_draft_error(draft, "there are more than %d GPUs and instances; the rest is left out",
                        GPUS_MAX);
        return -1;
    }
    look->gpus = heap_grow(look->gpus, look->n_gpus, &draft->gpu_room, sizeof(*look->gpus));
    look->gpus[look->n_gpus] = (struct gpu_use){
        .index = index,
        .instance = instance,
        .utilization = NAN,
        .memory_utilization = NAN,
        .memory_used_bytes = MODEL_UNKNOWN_U64,
        .memory_total_bytes = MODEL_UNKNOWN_U64,
        .power_mw = MODEL_UNKNOWN_U64,
        .power_limit_mw = MODEL_UNKNOWN_U64,
        .energy_mj = MODEL_UNKNOWN_U64,
        .temperature_celsius = MODEL_UNKNOWN_U64,
        .sm_clock_mhz = MODEL_UNKNOWN_U64,
        .memory_clock_mhz = MODEL_UNKNOWN_U64,
        .ecc_corrected = MODEL_UNKNOWN_U64,
        .ecc_uncorrected = MODEL_UNKNOWN_U64,
        .throttle_reasons = MODEL_UNKNOWN_U64,
    };
    return (int)look->n_gpus++;
}

static struct gpu_process *find_process(struct gpu_look *look, uint32_t gpu, pid_t pid)
{
    for (size_t i = look->n_processes; i-- > 0;)
        if (look->processes[i].pid == pid && look->processes[i].gpu == gpu)
            return &look->processes[i];
    return NULL;
}

int gpu_draft_process(struct gpu_draft *draft, uint32_t gpu, pid_t pid, uint64_t memory_bytes)
{
    struct gpu_look *look = draft->look;
    struct gpu_process *known = find_process(look, gpu, pid);

    if (known) {
        if (known->memory_bytes == MODEL_UNKNOWN_U64)
            known->memory_bytes = memory_bytes;
        return 0;
    }
    if (look->n_processes == GPU_PROCESSES_MAX) {
        gpu_draft_error(draft, "there are more than %d processes on GPUs; the rest is left out",
                        GPU_PROCESSES_MAX);
        return -1;
    }
    look->processes = heap_grow(look->processes, look->n_processes, &draft->process_room,
                                sizeof(*look->processes));
    look->processes[look->n_processes++] = (struct gpu_process){
        .pid = pid,
        .gpu = gpu,
        .memory_bytes = memory_bytes,
        .utilization = NAN,
    };
    return 0;
}

/* Less and less often for as long as it does not work. That there is none is no error. */
static void put_off(struct standing *standing, int64_t now_ns)
{
    int64_t longer_ns = standing->retry_ns ? standing->retry_ns * 2 : first_retry_ns;

    standing->retry_ns = longer_ns < last_retry_ns ? longer_ns : last_retry_ns;
    standing->retry_at_ns = now_ns + standing->retry_ns;
    if (standing->err.code == ENODEV)
        standing->err.code = 0;
}

static void set_present(struct gpus *gpus, bool is_present)
{
    pthread_mutex_lock(&gpus->lock);
    gpus->is_present = is_present;
    pthread_mutex_unlock(&gpus->lock);
}

/* May hang from here on: what is known before that is set first. */
static int open_driver(struct gpus *gpus, const struct gpu_driver *driver,
                       struct standing *standing)
{
    if (!driver->is_present(&gpus->config))
        return err_set(&standing->err, ENODEV, "there is no such GPU");
    set_present(gpus, true);
    return driver->open(&gpus->config, &standing->opened, &standing->err);
}

static void look_at(struct gpus *gpus, size_t index, int64_t now_ns, struct gpu_draft *draft)
{
    const struct gpu_driver *driver = drivers[index];
    struct standing *standing = &gpus->standings[index];

    if (!standing->is_open && now_ns >= standing->retry_at_ns) {
        standing->is_open = open_driver(gpus, driver, standing) == 0;
        if (!standing->is_open)
            put_off(standing, now_ns);
    }
    if (standing->is_open) {
        if (driver->look(standing->opened, draft, &standing->err) == 0) {
            standing->retry_ns = 0;
            standing->err.code = 0;
            draft->look->up = 1;
            return;
        }
        driver->close(standing->opened);
        standing->is_open = false;
        put_off(standing, now_ns);
    }
    if (standing->err.code)
        gpu_draft_error(draft, "%s", standing->err.text);
}

static struct gpu_look *take_look(struct gpus *gpus, int64_t mono_ns, int64_t wall_ns)
{
    struct gpu_draft draft = {
        .look = heap_alloc(sizeof(*draft.look)),
        .began_wall_us = wall_ns < 0 ? 0 : (uint64_t)wall_ns / 1000,
    };
    struct gpu_look *look = draft.look;

    atomic_init(&look->refs, 1);
    look->mono_ns = mono_ns;
    look->up = -1;
    for (size_t i = 0; i < COUNT(drivers); i++)
        look_at(gpus, i, mono_ns, &draft);
    if (look->up < 0 && look->errors)
        look->up = 0;
    set_present(gpus, look->up >= 0);
    return look;
}

static struct gpus *destroy(struct gpus *gpus)
{
    gpu_look_unref(gpus->latest);
    pthread_cond_destroy(&gpus->changed);
    pthread_mutex_destroy(&gpus->lock);
    free(gpus->nvml);
    free(gpus->sys);
    free(gpus->proc);
    free(gpus);
    return NULL;
}

static void close_drivers(struct gpus *gpus)
{
    for (size_t i = 0; i < COUNT(drivers); i++)
        if (gpus->standings[i].is_open)
            drivers[i]->close(gpus->standings[i].opened);
}

/* The lock is not held while a driver is at work. Once the end has been asked for, the clock may be
 * no more. */
static void *look_when_asked(void *arg)
{
    struct gpus *gpus = arg;
    bool is_left_behind;

    pthread_mutex_lock(&gpus->lock);
    while (!gpus->is_ending) {
        struct gpu_look *look;
        int64_t wall_ns;

        if (!gpus->is_asked) {
            pthread_cond_wait(&gpus->changed, &gpus->lock);
            continue;
        }
        gpus->began_ns = clock_mono(gpus->config.clock);
        wall_ns = clock_wall(gpus->config.clock);
        pthread_mutex_unlock(&gpus->lock);
        look = take_look(gpus, gpus->began_ns, wall_ns);
        pthread_mutex_lock(&gpus->lock);
        gpus->is_asked = false;
        gpu_look_unref(gpus->latest);
        gpus->latest = look;
    }
    pthread_mutex_unlock(&gpus->lock);
    close_drivers(gpus);
    pthread_mutex_lock(&gpus->lock);
    gpus->has_ended = true;
    is_left_behind = gpus->is_left_behind;
    pthread_cond_broadcast(&gpus->changed);
    pthread_mutex_unlock(&gpus->lock);
    if (is_left_behind)
        destroy(gpus);
    return NULL;
}

int gpus_start(const struct gpus_config *config, struct gpus **ret, struct err *err)
{
    struct gpus *gpus = heap_alloc(sizeof(*gpus));
    int code;

    pthread_mutex_init(&gpus->lock, NULL);
    clock_cond_init(&gpus->changed);
    gpus->nvml = config->nvml ? heap_str(str_of(config->nvml)) : NULL;
    gpus->sys = heap_str(str_of(config->sys));
    gpus->proc = heap_str(str_of(config->proc));
    gpus->config = (struct gpus_config){ gpus->nvml, gpus->sys, gpus->proc, config->clock };
    gpus->is_asked = true;
    code = thread_start(&gpus->thread, "gpus", look_when_asked, gpus, err);
    if (code < 0) {
        destroy(gpus);
        return code;
    }
    *ret = gpus;
    return 0;
}

/* In real time, whatever the clock of the looks: a driver does not know it. */
static bool await_end(struct gpus *gpus)
{
    int64_t deadline_ns = clock_mono(&clock_real) + grace_ns;
    bool in_time = true;

    while (!gpus->has_ended && in_time)
        in_time = clock_wait(&clock_real, &gpus->changed, &gpus->lock, deadline_ns);
    return gpus->has_ended;
}

struct gpus *gpus_stop(struct gpus *gpus)
{
    pthread_t thread;
    bool has_ended;

    if (!gpus)
        return NULL;
    pthread_mutex_lock(&gpus->lock);
    thread = gpus->thread;
    gpus->is_ending = true;
    pthread_cond_broadcast(&gpus->changed);
    has_ended = await_end(gpus);
    gpus->is_left_behind = !has_ended;
    pthread_mutex_unlock(&gpus->lock);
    if (!has_ended) {
        pthread_detach(thread);
        return NULL;
    }
    pthread_join(thread, NULL);
    return destroy(gpus);
}

void gpus_ask(struct gpus *gpus)
{
    if (!gpus)
        return;
    pthread_mutex_lock(&gpus->lock);
    if (!gpus->is_asked &&
        clock_mono(gpus->config.clock) - gpus->began_ns >= shortest_interval_ns) {
        gpus->is_asked = true;
        pthread_cond_broadcast(&gpus->changed);
    }
    pthread_mutex_unlock(&gpus->lock);
}

bool gpus_present(struct gpus *gpus)
{
    bool is_present;

    if (!gpus)
        return false;
    pthread_mutex_lock(&gpus->lock);
    is_present = gpus->is_present;
    pthread_mutex_unlock(&gpus->lock);
    return is_present;
}

struct gpu_look *gpus_latest(struct gpus *gpus, int64_t max_age_ns)
{
    struct gpu_look *look = NULL;

    if (!gpus)
        return NULL;
    pthread_mutex_lock(&gpus->lock);
    if (gpus->latest && clock_mono(gpus->config.clock) - gpus->latest->mono_ns <= max_age_ns) {
        look = gpus->latest;
        atomic_fetch_add(&look->refs, 1);
    }
    pthread_mutex_unlock(&gpus->lock);
    return look;
}
