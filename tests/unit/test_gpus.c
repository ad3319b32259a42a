/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NVIDIA's part on libraries with NVML's ABI and invented GPUs (tests/gpu/nvml_standin.c), AMD's on
 * made trees that look like /sys of a node with GPUs of AMD. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "files.h"
#include "kernel_time.h"
#include "manual_clock.h"
#include "source/gpu_nvml.h"
#include "source/gpus.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>

static const char standin[] = NVML_STANDINS "/nvml_standin.so";
static const char default_library[] = "libnvidia-ml.so.1";
static const int64_t tick_ns = 15 * NS_PER_SEC;

static const char *missing_function;
static const char *library_by_default; /* what libnvidia-ml.so.1 is here; NULL: nothing */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    if (strcmp(name, default_library) != 0)
        return __real_dlopen(name, flags);
    return library_by_default ? __real_dlopen(library_by_default, flags) : NULL;
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    return missing_function && strcmp(name, missing_function) == 0 ? NULL
                                                                   : __real_dlsym(library, name);
}

struct fixture {
    struct manual_clock clock;
    struct gpus_config config;
    struct gpus *gpus;
    struct gpu_look *look;
    void *library; /* the stand-in, kept open so that it keeps count */
};

static struct fixture *fixture;

/* Moved into place: the stand-in may be reading it. */
static void invent(const char *text)
{
    replace_file("gpus", text);
}

static void setup(void)
{
    fixture = heap_alloc(sizeof(*fixture));
    missing_function = NULL;
    library_by_default = NULL;
    manual_clock_init(&fixture->clock, 1800000000 * NS_PER_SEC, 5000 * NS_PER_SEC);
    setenv("SONDE_NVML_STANDIN", test_path("gpus"), 1);
    fixture->config =
        (struct gpus_config){ standin, test_path("sys"), test_path("proc"), &fixture->clock.clock };
    fixture->library = __real_dlopen(standin, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(fixture->library);
}

static void teardown(void)
{
    gpu_look_unref(fixture->look);
    gpus_stop(fixture->gpus);
    dlclose(fixture->library);
    manual_clock_destroy(&fixture->clock);
    free(fixture);
}

FIXTURE(setup, teardown)

static unsigned count_calls(const char *name)
{
    unsigned (*count)(const char *);
    void *function = __real_dlsym(fixture->library, "standin_calls");

    memcpy(&count, &function, sizeof(count));
    return count(name);
}

static unsigned count_hanging(void)
{
    unsigned (*count)(void);
    void *function = __real_dlsym(fixture->library, "standin_hanging");

    memcpy(&count, &function, sizeof(count));
    return count();
}

/* Whether a look of this very moment has come. */
static bool has_looked(void)
{
    fixture->look = gpu_look_unref(fixture->look);
    fixture->look = gpus_latest(fixture->gpus, 0);
    return fixture->look != NULL;
}

static const struct gpu_look *start(void)
{
    struct err err = { 0 };

    if (gpus_start(&fixture->config, &fixture->gpus, &err) < 0)
        fail_msg("%s", err.text);
    wait_until_true(has_looked());
    return fixture->look;
}

static const struct gpu_look *look_again(void)
{
    manual_clock_advance(&fixture->clock, tick_ns);
    gpus_ask(fixture->gpus);
    wait_until_true(has_looked());
    return fixture->look;
}

static const struct gpu_look *look_at(const char *gpus)
{
    invent(gpus);
    return fixture->gpus ? look_again() : start();
}

static const struct gpu_process *process_of(const struct gpu_look *look, uint32_t gpu, pid_t pid)
{
    for (size_t i = 0; i < look->n_processes; i++)
        if (look->processes[i].gpu == gpu && look->processes[i].pid == pid)
            return &look->processes[i];
    fail_msg("process %d is not on GPU %u", pid, gpu);
    return NULL;
}

static void assert_ratio(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-9)
        fail_msg("%g, not %g", actual, expected);
}

TEST(a_node_with_four_gpus_tells_all_of_them)
{
    const struct gpu_look *look =
        look_at("gpu\n"
                "gpu uuid=GPU-1 name=NVIDIA_A100 minor=3 utilization=97 "
                "memory_utilization=41 total=1000 used=300 reserved=50 power=250000 "
                "limit=400000 energy=77 temperature=61 sm_clock=1410 memory_clock=1215 "
                "corrected=2 uncorrected=1 reasons=0x24\n"
                "process pid=100 memory=200\n"
                "process pid=101 memory=-1\n"
                "gpu\ngpu\nprocess pid=102 memory=5\n");
    const struct gpu_use *gpu = &look->gpus[1];

    assert_int_equal(look->up, 1);
    assert_int_equal(look->errors, 0);
    assert_string_equal(look->first_error, "");
    assert_int_equal(look->n_gpus, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(look->gpus[i].index, i);
        assert_int_equal(look->gpus[i].instance, -1);
    }
    assert_string_equal(gpu->uuid, "GPU-1");
    assert_string_equal(gpu->model, "NVIDIA A100");
    assert_string_equal(gpu->minor, "3");
    assert_int_equal(gpu->major, 195);
    assert_ratio(gpu->utilization, 0.97);
    assert_ratio(gpu->memory_utilization, 0.41);
    assert_int_equal(gpu->memory_used_bytes, 300);
    assert_int_equal(gpu->memory_total_bytes, 1000);
    assert_int_equal(gpu->power_mw, 250000);
    assert_int_equal(gpu->power_limit_mw, 400000);
    assert_int_equal(gpu->energy_mj, 77);
    assert_int_equal(gpu->temperature_celsius, 61);
    assert_int_equal(gpu->sm_clock_mhz, 1410);
    assert_int_equal(gpu->memory_clock_mhz, 1215);
    assert_int_equal(gpu->ecc_corrected, 2);
    assert_int_equal(gpu->ecc_uncorrected, 1);
    assert_int_equal(gpu->throttle_reasons, 0x24);
    assert_true(gpu->tells_processes);
    assert_true(look->gpus[0].tells_processes);
    assert_int_equal(look->n_processes, 3);
    assert_int_equal(process_of(look, 1, 100)->memory_bytes, 200);
    assert_true(process_of(look, 1, 101)->memory_bytes == MODEL_UNKNOWN_U64);
    assert_int_equal(process_of(look, 3, 102)->memory_bytes, 5);
}

TEST(instances_follow_their_gpu_with_their_own_processes)
{
    const struct gpu_look *look =
        look_at("gpu\nprocess pid=99\n"
                "gpu\n"
                "mig gi=3 uuid=MIG-a name=A100_MIG_3g.20gb total=500 used=200\n"
                "process pid=100 memory=7 sm=50\n"
                "mig gi=9 uuid=MIG-b\n"
                "process pid=100 memory=8\n"
                "gpu\nprocess pid=101\n");

    assert_int_equal(look->errors, 0);
    assert_int_equal(look->n_gpus, 5);
    assert_true(isnan(look->gpus[1].utilization));
    assert_int_equal(look->gpus[1].power_mw, 300001);
    assert_int_equal(look->gpus[2].index, 1);
    assert_int_equal(look->gpus[2].instance, 3);
    assert_string_equal(look->gpus[2].uuid, "MIG-a");
    assert_string_equal(look->gpus[2].model, "A100 MIG 3g.20gb");
    assert_int_equal(look->gpus[2].memory_used_bytes, 200);
    assert_int_equal(look->gpus[2].memory_total_bytes, 500);
    assert_true(look->gpus[2].power_mw == MODEL_UNKNOWN_U64);
    assert_int_equal(look->gpus[3].instance, 9);
    assert_int_equal(look->gpus[4].index, 2);
    assert_int_equal(look->n_processes, 4);
    assert_int_equal(process_of(look, 2, 100)->memory_bytes, 7);
    assert_int_equal(process_of(look, 3, 100)->memory_bytes, 8);
    assert_true(isnan(process_of(look, 2, 100)->utilization));
    process_of(look, 4, 101);
}

TEST(compute_instances_of_one_gpu_instance_are_one)
{
    const struct gpu_look *look = look_at("gpu\nmig gi=3 uuid=MIG-a\nprocess pid=100\n"
                                          "mig gi=3 uuid=MIG-b\nprocess pid=101\n");

    assert_int_equal(look->n_gpus, 2);
    assert_string_equal(look->gpus[1].uuid, "MIG-a");
    assert_int_equal(look->n_processes, 2);
    process_of(look, 1, 100);
    process_of(look, 1, 101);
}

TEST(a_whole_gpu_tells_processes_that_its_instances_do_not)
{
    const struct gpu_look *look =
        look_at("gpu\nmig gi=3\nmig gi=4\nprocess pid=100 memory=8\n"
                "fail nvmlDeviceGetComputeRunningProcesses_v3 3 0 mig\n"
                "fail nvmlDeviceGetGraphicsRunningProcesses_v3 3 0 mig\n"
                "fail nvmlDeviceGetMPSComputeRunningProcesses_v3 3 0 mig\n");

    assert_int_equal(look->errors, 0);
    assert_int_equal(look->n_gpus, 3);
    assert_int_equal(look->n_processes, 1);
    assert_int_equal(process_of(look, 2, 100)->memory_bytes, 8);
    assert_true(look->gpus[1].tells_processes);
    assert_true(look->gpus[2].tells_processes);
}

TEST(a_process_in_several_lists_is_one)
{
    const struct gpu_look *look =
        look_at("gpu\nprocess pid=100 list=graphics memory=-1\nprocess pid=100 memory=9\n"
                "process pid=101 list=mps memory=4\nprocess pid=102 list=graphics\n"
                "gpu\nprocess pid=100 list=graphics memory=1\n");

    assert_int_equal(look->n_processes, 4);
    assert_int_equal(process_of(look, 0, 100)->memory_bytes, 9);
    assert_int_equal(process_of(look, 0, 101)->memory_bytes, 4);
    process_of(look, 0, 102);
    process_of(look, 1, 100);
}

TEST(what_processes_use_is_told_since_the_last_look)
{
    const struct gpu_look *look =
        look_at("gpu\nprocess pid=100 sm=70\nprocess pid=101 sm=20\nprocess pid=102\n");

    assert_ratio(process_of(look, 0, 100)->utilization, 0.7);
    assert_ratio(process_of(look, 0, 101)->utilization, 0.2);
    assert_ratio(process_of(look, 0, 102)->utilization, 0);
    look = look_at("gpu\nprocess pid=100\nprocess pid=101 sm=30\n");
    assert_ratio(process_of(look, 0, 100)->utilization, 0);
    assert_ratio(process_of(look, 0, 101)->utilization, 0.3);
    look = look_at("gpu\nprocess pid=100\nprocess pid=101\n");
    assert_ratio(process_of(look, 0, 101)->utilization, 0);
    look = look_at("gpu\nprocess pid=100\nfail nvmlDeviceGetProcessUtilization 3\n");
    assert_true(isnan(process_of(look, 0, 100)->utilization));
    assert_int_equal(look->errors, 0);
}

TEST(samples_that_mean_nothing_are_passed_over)
{
    /* In the far future, from before the last look, of a percentage past 100, of nobody. */
    const struct gpu_look *look =
        look_at("gpu\nprocess pid=100 sm=70\nprocess pid=101\nprocess pid=102\n"
                "sample pid=100 sm=1 time=18446744073709551615\n"
                "sample pid=101 sm=4294967295 time=1000001\n"
                "sample pid=102 sm=44 time=0\n"
                "sample pid=9999 sm=44 time=1000009\n");

    assert_ratio(process_of(look, 0, 100)->utilization, 0.7);
    assert_ratio(process_of(look, 0, 101)->utilization, 0);
    assert_ratio(process_of(look, 0, 102)->utilization, 0);
    assert_int_equal(look->n_processes, 3);
    look = look_at("gpu\nprocess pid=100 sm=60\n"
                   "sample pid=100 sm=11 time=999999\n");
    assert_ratio(process_of(look, 0, 100)->utilization, 0.6);
}

enum kind { U64, RATIO, TEXT, PROCESSES, SHARE, NOTHING };

/* What is absent without a function, and whether its failure is an error. */
static const struct part {
    const char *function;
    enum kind kind;
    size_t place;
} parts[] = {
#define PART(function, kind, field)                                                                \
    {                                                                                              \
        "nvml" #function, kind, offsetof(struct gpu_use, field)                                    \
    }
    PART(DeviceGetUUID, TEXT, uuid),
    PART(DeviceGetName, TEXT, model),
    PART(DeviceGetMinorNumber, TEXT, minor),
    PART(DeviceGetUtilizationRates, RATIO, utilization),
    PART(DeviceGetUtilizationRates, RATIO, memory_utilization),
    PART(DeviceGetPowerUsage, U64, power_mw),
    PART(DeviceGetEnforcedPowerLimit, U64, power_limit_mw),
    PART(DeviceGetTotalEnergyConsumption, U64, energy_mj),
    PART(DeviceGetTemperature, U64, temperature_celsius),
    PART(DeviceGetClockInfo, U64, sm_clock_mhz),
    PART(DeviceGetClockInfo, U64, memory_clock_mhz),
    PART(DeviceGetTotalEccErrors, U64, ecc_corrected),
    PART(DeviceGetTotalEccErrors, U64, ecc_uncorrected),
    /* each of these has another that takes its place */
    PART(DeviceGetMemoryInfo, NOTHING, index),
    PART(DeviceGetMemoryInfo_v2, NOTHING, index),
    PART(DeviceGetCurrentClocksEventReasons, NOTHING, index),
    PART(DeviceGetCurrentClocksThrottleReasons, NOTHING, index),
    PART(DeviceGetGraphicsRunningProcesses_v3, NOTHING, index),
    PART(DeviceGetMPSComputeRunningProcesses_v3, NOTHING, index),
    PART(DeviceGetComputeRunningProcesses_v3, PROCESSES, index),
    PART(DeviceGetProcessUtilization, SHARE, index),
    PART(DeviceGetMigMode, NOTHING, index),
#undef PART
};

static const char two_gpus[] = "gpu\nprocess pid=100 sm=10\ngpu\nprocess pid=101 sm=20\n";

static bool has_process(const struct gpu_look *look, uint32_t gpu)
{
    for (size_t i = 0; i < look->n_processes; i++)
        if (look->processes[i].gpu == gpu)
            return true;
    return false;
}

static bool is_absent(const struct gpu_look *look, uint32_t gpu, const struct part *part)
{
    const char *place = (const char *)&look->gpus[gpu] + part->place;
    uint64_t number;
    double ratio;

    switch (part->kind) {
    case U64:
        memcpy(&number, place, sizeof(number));
        return number == MODEL_UNKNOWN_U64;
    case RATIO:
        memcpy(&ratio, place, sizeof(ratio));
        return isnan(ratio);
    case TEXT:
        return !place[0];
    case PROCESSES:
        return !has_process(look, gpu) && !look->gpus[gpu].tells_processes;
    case SHARE:
        return isnan(process_of(look, gpu, gpu ? 101 : 100)->utilization);
    default:
        return false;
    }
}

/* All parts of a GPU but those of one function. */
static void assert_only_that_is_absent(const struct gpu_look *look, uint32_t gpu,
                                       const char *function)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        bool is_it = function && strcmp(parts[i].function, function) == 0;
        bool is_expected = is_it && parts[i].kind != NOTHING;

        /* without processes there is nobody who uses anything */
        if (parts[i].kind == SHARE && !has_process(look, gpu))
            continue;
        if (is_absent(look, gpu, &parts[i]) != is_expected)
            fail_msg("without %s, %s is %s of GPU %u", function ? function : "nothing",
                     parts[i].function, is_expected ? "told" : "not told", gpu);
    }
    assert_true(look->gpus[gpu].memory_used_bytes != MODEL_UNKNOWN_U64);
    assert_true(look->gpus[gpu].memory_total_bytes != MODEL_UNKNOWN_U64);
    assert_int_equal(look->gpus[gpu].throttle_reasons, 4);
}

TEST(a_call_that_fails_costs_its_number_on_that_gpu)
{
    static const char *const have_others[] = { "nvmlDeviceGetMemoryInfo",
                                               "nvmlDeviceGetMemoryInfo_v2",
                                               "nvmlDeviceGetCurrentClocksThrottleReasons" };

    for (size_t i = 0; i < COUNT(parts); i++) {
        const struct gpu_look *look;
        bool is_error = true;
        char text[256];

        for (size_t k = 0; k < COUNT(have_others); k++)
            is_error &= strcmp(parts[i].function, have_others[k]) != 0;
        snprintf(text, sizeof(text), "%sfail %s 999 1\n", two_gpus, parts[i].function);
        fixture->gpus = gpus_stop(fixture->gpus); /* what does not change is asked for once */
        look = look_at(text);
        assert_int_equal(look->up, 1);
        assert_int_equal(look->n_gpus, 2);
        assert_only_that_is_absent(look, 0, NULL);
        assert_only_that_is_absent(look, 1, parts[i].function);
        assert_int_equal(look->errors > 0, is_error);
        if (is_error) {
            assert_contains(look->first_error, parts[i].function);
            assert_contains(look->first_error, "of GPU 1: stand-in\\nerror");
        }
    }
}

TEST(what_is_not_supported_is_absent_without_an_error)
{
    static const int absences[] = { 3, 13, 21, 26 };
    char text[256];

    for (size_t i = 0; i < COUNT(absences); i++) {
        const struct gpu_look *look;

        snprintf(text, sizeof(text), "%sfail nvmlDeviceGetTotalEccErrors %d\n", two_gpus,
                 absences[i]);
        look = look_at(text);
        assert_int_equal(look->errors, 0);
        assert_only_that_is_absent(look, 0, "nvmlDeviceGetTotalEccErrors");
    }
}

TEST(a_function_that_is_missing_costs_its_number)
{
    for (size_t i = 0; i < COUNT(parts); i++) {
        const struct gpu_look *look;
        struct part part = parts[i];

        /* Lists of processes have older functions. */
        if (part.kind == PROCESSES)
            continue;
        fixture->gpus = gpus_stop(fixture->gpus);
        missing_function = part.function;
        look = look_at(two_gpus);
        assert_int_equal(look->up, 1);
        assert_int_equal(look->errors, 0);
        assert_only_that_is_absent(look, 0, part.function);
        assert_only_that_is_absent(look, 1, part.function);
    }
}

TEST(without_a_function_that_is_needed_the_library_is_refused)
{
    static const char *const needed[] = { "nvmlInit_v2", "nvmlShutdown", "nvmlErrorString",
                                          "nvmlDeviceGetCount_v2",
                                          "nvmlDeviceGetHandleByIndex_v2" };

    for (size_t i = 0; i < COUNT(needed); i++) {
        const struct gpu_look *look;

        fixture->gpus = gpus_stop(fixture->gpus);
        missing_function = needed[i];
        look = look_at(two_gpus);
        assert_int_equal(look->up, 0);
        assert_int_equal(look->n_gpus, 0);
        assert_int_equal(look->errors, 1);
        assert_contains(look->first_error, needed[i]);
    }
}

TEST(another_library_is_refused)
{
    const struct gpu_look *look;

    fixture->config.nvml = NVML_STANDINS "/not_nvml.so";
    look = look_at(two_gpus);
    assert_int_equal(look->up, 0);
    assert_contains(look->first_error, "nvmlInit_v2");
}

TEST(an_old_library_tells_the_same_by_older_functions)
{
    const struct gpu_look *look;

    fixture->config.nvml = NVML_STANDINS "/nvml_standin_old.so";
    look = look_at("gpu used=1000 reserved=24\nprocess pid=100 sm=10\nprocess pid=102 "
                   "memory=77\ngpu\nprocess pid=101 sm=20\n");
    assert_int_equal(look->errors, 0);
    assert_int_equal(look->n_gpus, 2);
    assert_only_that_is_absent(look, 0, NULL);
    assert_only_that_is_absent(look, 1, NULL);
    assert_int_equal(look->gpus[0].memory_used_bytes, 1024);
    assert_int_equal(process_of(look, 0, 102)->memory_bytes, 77);
}

TEST(the_first_lists_of_processes_have_shorter_entries)
{
    const struct gpu_look *look;

    fixture->config.nvml = NVML_STANDINS "/nvml_standin_old.so";
    missing_function = "nvmlDeviceGetComputeRunningProcesses_v2";
    look = look_at("gpu\nprocess pid=100 memory=11\nprocess pid=101 memory=12\n");
    assert_int_equal(look->n_processes, 2);
    assert_int_equal(process_of(look, 0, 100)->memory_bytes, 11);
    assert_int_equal(process_of(look, 0, 101)->memory_bytes, 12);
}

TEST(entries_of_any_size_that_drivers_have_had_are_read)
{
    static const int sizes[] = { 16, 24, 32 };

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (unsigned n = 0; n <= 3; n++) {
            const struct gpu_look *look;
            char text[256];

            snprintf(text, sizeof(text), "gpu\n%s%s%sentry_size %d\n",
                     n > 0 ? "process pid=100 memory=11\n" : "",
                     n > 1 ? "process pid=101 memory=-1\n" : "",
                     n > 2 ? "process pid=102 memory=0\n" : "", sizes[i]);
            look = look_at(text);
            assert_int_equal(look->n_processes, n);
            if (n > 0)
                assert_int_equal(process_of(look, 0, 100)->memory_bytes, 11);
            if (n > 1)
                assert_true(process_of(look, 0, 101)->memory_bytes == MODEL_UNKNOWN_U64);
            if (n > 2)
                assert_int_equal(process_of(look, 0, 102)->memory_bytes, 0);
        }
}

static void invent_processes(unsigned n)
{
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_text(&text, "gpu\n");
    for (unsigned i = 0; i < n; i++)
        buf_printf(&text, "process pid=%u sm=5\n", 1000 + i);
    invent(text.p);
    buf_free(&text);
}

TEST(long_lists_of_processes_are_read_whole_up_to_the_ceiling)
{
    const struct gpu_look *look;

    invent_processes(700);
    look = start();
    assert_int_equal(look->n_processes, 700);
    assert_int_equal(look->errors, 0);
    assert_ratio(process_of(look, 0, 1699)->utilization, 0.05);

    invent_processes(GPU_PROCESSES_MAX);
    look = look_again();
    assert_int_equal(look->n_processes, GPU_PROCESSES_MAX);

    invent_processes(GPU_PROCESSES_MAX + 1);
    look = look_again();
    assert_true(look->errors > 0);
    assert_contains(look->first_error, "nvmlDeviceGetComputeRunningProcesses_v3");
    assert_int_equal(look->gpus[0].power_mw, 300000);
}

TEST(what_a_library_says_is_not_trusted)
{
    struct buf text;
    const struct gpu_look *look;

    buf_init(&text, 4096);
    buf_text(&text, "gpu utilization=101 memory_utilization=4294967295 power=4294967295 "
                    "minor=4294967295 name=");
    for (int i = 0; i < 150; i++)
        buf_byte(&text, 'n');
    buf_text(&text, " uuid=");
    for (int i = 0; i < 150; i++)
        buf_byte(&text, 'u');
    buf_text(&text, "\nprocess pid=0\nprocess pid=4294967295\n"
                    "fail nvmlDeviceGetGraphicsRunningProcesses_v3 7\n");
    look = look_at(text.p);
    assert_true(isnan(look->gpus[0].utilization));
    assert_true(isnan(look->gpus[0].memory_utilization));
    assert_true(look->gpus[0].power_mw == MODEL_UNKNOWN_U64);
    assert_string_equal(look->gpus[0].minor, "");
    assert_int_equal(strlen(look->gpus[0].model), sizeof(look->gpus[0].model) - 1);
    assert_int_equal(strlen(look->gpus[0].uuid), sizeof(look->gpus[0].uuid) - 1);
    assert_int_equal(look->n_processes, 0);
    assert_contains(look->first_error, "nvmlDeviceGetGraphicsRunningProcesses_v3");
    buf_free(&text);

    look = look_at("gpu\ncount 4000000000\n");
    assert_int_equal(look->n_gpus, GPUS_MAX);
    assert_int_equal(look->gpus[0].power_mw, 300000);
    assert_string_equal(look->gpus[1].uuid, "");
    assert_true(look->errors > 0);
}

TEST(a_lost_gpu_keeps_its_name_and_the_others_go_on)
{
    const struct gpu_look *look = look_at(two_gpus);
    unsigned n;

    n = count_calls("nvmlDeviceGetTemperature");
    assert_int_equal(n, 2);
    look = look_at("gpu\nprocess pid=100\ngpu\nfail nvmlDeviceGetPowerUsage 15 0\n");
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->errors, 1);
    assert_string_equal(look->first_error, "nvmlDeviceGetPowerUsage of GPU 0: GPU is lost");
    assert_string_equal(look->gpus[0].uuid, "GPU-00000000-0000-0000-0000-000000000000");
    assert_true(look->gpus[0].temperature_celsius == MODEL_UNKNOWN_U64);
    assert_int_equal(look->n_processes, 0);
    assert_false(look->gpus[0].tells_processes);
    assert_true(look->gpus[1].tells_processes);
    assert_int_equal(look->gpus[1].temperature_celsius, 61);
    assert_int_equal(count_calls("nvmlDeviceGetTemperature"), n + 1);

    look = look_at("gpu\ngpu\nfail nvmlDeviceGetHandleByIndex_v2 15 0\n");
    assert_int_equal(look->errors, 1);
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->gpus[1].temperature_celsius, 61);
}

TEST(a_driver_that_is_loaded_later_is_found)
{
    const struct gpu_look *look = start();
    unsigned n_ticks = 0;

    assert_int_equal(look->up, -1);
    assert_int_equal(look->n_gpus, 0);
    assert_int_equal(look->errors, 0);
    for (int i = 0; i < 100; i++)
        look_again();
    /* after 15 s, 30 s, 60 s, 120 s, 240 s, and every 300 s: 465 s and then (1500 - 465) / 300 */
    assert_int_equal(count_calls("nvmlInit_v2"), 1 + 5 + 3);

    invent(two_gpus);
    do
        look = look_again();
    while (look->n_gpus == 0 && ++n_ticks < 30);
    assert_true(n_ticks <= 20);
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->up, 1);
}

TEST(a_library_of_another_version_is_said_until_it_fits)
{
    const struct gpu_look *look = look_at("gpu\nfail nvmlInit_v2 18\n");

    assert_int_equal(look->up, 0);
    assert_int_equal(look->errors, 1);
    assert_contains(look->first_error, "different versions");
    look_again();
    look = look_again();
    assert_int_equal(count_calls("nvmlInit_v2"), 2);
    assert_contains(look->first_error, "different versions");
    look = look_at(two_gpus);
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->errors, 0);
}

TEST(a_driver_that_goes_is_closed_and_opened_again)
{
    const struct gpu_look *look = look_at(two_gpus);

    look = look_at("gpu\nfail nvmlDeviceGetCount_v2 9\n");
    assert_int_equal(look->up, -1);
    assert_int_equal(look->n_gpus, 0);
    assert_int_equal(count_calls("nvmlShutdown"), 1);
    look = look_at(two_gpus);
    assert_int_equal(look->n_gpus, 2);
    look = look_at("gpu\nfail nvmlDeviceGetCount_v2 999\n");
    assert_int_equal(look->up, 0);
    assert_contains(look->first_error, "nvmlDeviceGetCount_v2: stand-in\\nerror");
    fixture->gpus = gpus_stop(fixture->gpus);
    assert_int_equal(count_calls("nvmlShutdown"), 2);
}

TEST(without_nvidia_there_is_nothing_and_no_error)
{
    const struct gpu_look *look;

    fixture->config.nvml = NULL;
    library_by_default = standin;
    look = look_at(two_gpus);
    assert_int_equal(look->up, -1);
    assert_int_equal(look->errors, 0);
    assert_int_equal(count_calls("nvmlInit_v2"), 0);

    write_file("proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54\n");
    look = look_again();
    assert_int_equal(look->n_gpus, 2);
}

TEST(a_library_that_cannot_be_opened_is_said)
{
    const struct gpu_look *look;

    fixture->config.nvml = "/nonexistent/nvml.so";
    look = start();
    assert_int_equal(look->up, 0);
    assert_contains(look->first_error, "/nonexistent/nvml.so cannot be opened");
    fixture->gpus = gpus_stop(fixture->gpus);

    write_file("proc/driver/nvidia/version", "");
    fixture->config.nvml = NULL;
    look = start();
    assert_int_equal(look->up, 0);
    assert_contains(look->first_error, "libnvidia-ml1");
}

/* Returns although the driver hangs. The time for which it waits is over when it begins. */
static void stop_while_it_hangs(void)
{
    time_leap(-NS_PER_SEC);
    fixture->gpus = gpus_stop(fixture->gpus);
    time_leap(NS_PER_SEC);
}

TEST(a_driver_that_hangs_delays_nobody)
{
    struct gpu_look *look;

    look_at(two_gpus);
    invent("gpu\nhang nvmlDeviceGetTemperature\n");
    manual_clock_advance(&fixture->clock, tick_ns);
    gpus_ask(fixture->gpus);
    wait_until_true(count_hanging() == 1);

    look = gpus_latest(fixture->gpus, 2 * tick_ns);
    assert_int_equal(look->n_gpus, 2);
    gpu_look_unref(look);
    manual_clock_advance(&fixture->clock, tick_ns + 1);
    gpus_ask(fixture->gpus);
    assert_null(gpus_latest(fixture->gpus, 2 * tick_ns));

    stop_while_it_hangs();
    invent(two_gpus);
    wait_until_true(count_calls("nvmlShutdown") == 1);
}

TEST(a_driver_that_hung_is_listened_to_again)
{
    look_at(two_gpus);
    invent("gpu\nhang nvmlDeviceGetMigMode\n");
    manual_clock_advance(&fixture->clock, tick_ns);
    gpus_ask(fixture->gpus);
    wait_until_true(count_hanging() == 1);
    manual_clock_advance(&fixture->clock, tick_ns);
    invent("gpu\ngpu\ngpu\n");
    /* The look that hung comes first, and is as old as its beginning. */
    wait_until_true((gpus_ask(fixture->gpus), has_looked()));
    assert_int_equal(fixture->look->n_gpus, 3);
}

TEST(stopping_does_not_wait_for_a_driver_that_never_opened)
{
    struct err err;

    invent("gpu\nhang nvmlInit_v2\n");
    assert_int_equal(gpus_start(&fixture->config, &fixture->gpus, &err), 0);
    wait_until_true(count_hanging() == 1);
    assert_null(gpus_latest(fixture->gpus, INT64_MAX));
    assert_true(gpus_present(fixture->gpus)); /* so that this can be reported before any look */
    stop_while_it_hangs();
    invent(two_gpus);
    wait_until_true(count_calls("nvmlShutdown") == 1);
}

TEST(a_look_outlives_the_next_one_and_the_thread)
{
    struct gpu_look *first;

    look_at(two_gpus);
    first = gpus_latest(fixture->gpus, tick_ns);
    look_at("gpu\n");
    assert_int_equal(fixture->look->n_gpus, 1);
    fixture->gpus = gpus_stop(fixture->gpus);
    assert_int_equal(first->n_gpus, 2);
    assert_int_equal(process_of(first, 1, 101)->memory_bytes, 1 << 30);
    assert_null(gpu_look_unref(first));
}

TEST(a_look_is_not_taken_again_within_a_second)
{
    look_at(two_gpus);
    manual_clock_advance(&fixture->clock, 800 * NS_PER_MS);
    gpus_ask(fixture->gpus);
    assert_int_equal(look_again()->n_gpus, 2);
    assert_int_equal(count_calls("nvmlDeviceGetCount_v2"), 2);
}

TEST(nobody_is_asked_without_gpus)
{
    gpus_ask(NULL);
    assert_null(gpus_latest(NULL, INT64_MAX));
    assert_null(gpus_stop(NULL));
    assert_null(gpu_look_unref(NULL));
}

TEST(every_reason_to_slow_down_has_a_name)
{
    uint64_t all = 0;

    for (const struct gpu_throttle *throttle = gpu_throttles; throttle->name; throttle++) {
        assert_int_equal(all & throttle->bit, 0);
        all |= throttle->bit;
    }
    assert_int_equal(all, 0x1ff);
}

/* As NVIDIA's header of CUDA 11.8 and of 12.4 has them, on 64 bits; test_nvml_abi reads the header
 * itself where there is one. */
TEST(structures_have_the_sizes_of_nvidias)
{
    assert_int_equal(sizeof(nv_utilization), 8);
    assert_int_equal(sizeof(nv_memory), 24);
    assert_int_equal(sizeof(nv_memory_v2), 40);
    assert_int_equal(NV_MEMORY_V2, 0x2000028);
    assert_int_equal(sizeof(nv_process), 24);
    assert_int_equal(offsetof(nv_process, gpu_instance), 16);
    assert_int_equal(sizeof(nv_process_sample), 32);
    assert_int_equal(offsetof(nv_process_sample, sm), 16);
}

/* card1 and card10 are AMD's, card2 is not; card1-DP-1 is a connector. */
static void make_amd_tree(void)
{
#define DRM   "sys/class/drm/"
#define KFD   "sys/class/kfd/kfd/"
#define HWMON "/device/hwmon/hwmon7/"
    write_file(DRM "card10/device/vendor", "0x1002\n");
    write_file(DRM "card10/device/gpu_busy_percent", "100\n");
    write_file(DRM "card10/device/drm/renderD137/dev", "226:137\n");
    write_file(DRM "card10" HWMON "power1_input", "90000000\n");
    write_file(DRM "card10" HWMON "temp2_input", "71000\n");
    write_file(DRM "card1/device/vendor", "0x1002\n");
    write_file(DRM "card1/device/unique_id", "a1b2c3d4e5f60718\n");
    write_file(DRM "card1/device/product_name", "AMD Instinct MI210\n");
    write_file(DRM "card1/device/gpu_busy_percent", "93\n");
    write_file(DRM "card1/device/mem_busy_percent", "12\n");
    write_file(DRM "card1/device/mem_info_vram_used", "1000000\n");
    write_file(DRM "card1/device/mem_info_vram_total", "68702699520\n");
    write_file(DRM "card1/device/drm/card1/dev", "226:1\n");
    write_file(DRM "card1/device/drm/renderD129/dev", "226:129\n");
    write_file(DRM "card1/device/hwmon/hwmon7/power1_average", "251000000\n");
    write_file(DRM "card1" HWMON "power1_cap", "300000000\n");
    write_file(DRM "card1" HWMON "temp1_input", "54000\n");
    write_file(DRM "card1" HWMON "freq1_input", "1700000000\n");
    write_file(DRM "card1" HWMON "freq2_input", "1600000000\n");
    write_file(DRM "card1/device/ras/umc_err_count", "ue: 1\nce: 3\n");
    write_file(DRM "card1/device/ras/gfx_err_count", "ue: 0\nce: 4\nde: 9\n");
    write_file(DRM "card1/device/ras/features", "feature mask: 0x5\n");
    write_file(DRM "card2/device/vendor", "0x1a03\n");
    write_file(DRM "card1-DP-1/device/vendor", "0x1002\n");
    write_file(DRM "renderD129/device/vendor", "0x1002\n");
    write_file(KFD "topology/nodes/0/gpu_id", "0\n");
    write_file(KFD "topology/nodes/0/properties", "cpu_cores_count 64\ndrm_render_minor 0\n");
    write_file(KFD "topology/nodes/1/gpu_id", "51000\n");
    write_file(KFD "topology/nodes/1/properties",
               "simd_count 416\ndrm_render_minor 129\nhive_id 0\n");
    write_file(KFD "topology/nodes/2/gpu_id", "52000\n");
    write_file(KFD "topology/nodes/2/properties", "drm_render_minor 137\n");
    write_file(KFD "proc/4242/vram_51000", "8192\n");
    write_file(KFD "proc/4242/vram_52000", "0\n");
    write_file(KFD "proc/4343/vram_51000", "1\n");
    write_file(KFD "proc/4343/vram_52000", "4096\n");
    write_file(KFD "proc/4444/vram_99999", "4096\n");
    write_file(KFD "proc/self/vram_51000", "4096\n");
}

TEST(gpus_of_amd_are_told_in_the_order_of_their_cards)
{
    const struct gpu_look *look;
    const struct gpu_use *gpu;

    make_amd_tree();
    fixture->config.nvml = NULL;
    look = start();
    assert_int_equal(look->up, 1);
    assert_int_equal(look->errors, 0);
    assert_int_equal(look->n_gpus, 2);
    gpu = &look->gpus[0];
    assert_int_equal(gpu->index, 0);
    assert_int_equal(gpu->instance, -1);
    assert_string_equal(gpu->uuid, "GPU-a1b2c3d4e5f60718");
    assert_string_equal(gpu->model, "AMD Instinct MI210");
    assert_string_equal(gpu->minor, "129");
    assert_int_equal(gpu->major, 226);
    assert_ratio(gpu->utilization, 0.93);
    assert_ratio(gpu->memory_utilization, 0.12);
    assert_int_equal(gpu->memory_used_bytes, 1000000);
    assert_int_equal(gpu->memory_total_bytes, 68702699520);
    assert_int_equal(gpu->power_mw, 251000);
    assert_int_equal(gpu->power_limit_mw, 300000);
    assert_int_equal(gpu->temperature_celsius, 54);
    assert_int_equal(gpu->sm_clock_mhz, 1700);
    assert_int_equal(gpu->memory_clock_mhz, 1600);
    assert_int_equal(gpu->ecc_uncorrected, 1);
    assert_int_equal(gpu->ecc_corrected, 7);
    assert_true(gpu->energy_mj == MODEL_UNKNOWN_U64);
    assert_true(gpu->throttle_reasons == MODEL_UNKNOWN_U64);

    gpu = &look->gpus[1];
    assert_int_equal(gpu->index, 1);
    assert_string_equal(gpu->uuid, "");
    assert_string_equal(gpu->minor, "137");
    assert_ratio(gpu->utilization, 1);
    assert_int_equal(gpu->power_mw, 90000);
    assert_int_equal(gpu->temperature_celsius, 71);
    assert_true(gpu->memory_used_bytes == MODEL_UNKNOWN_U64);
    assert_true(gpu->ecc_corrected == MODEL_UNKNOWN_U64);
}

TEST(processes_of_amd_are_on_gpus_where_they_have_memory)
{
    const struct gpu_look *look;

    make_amd_tree();
    fixture->config.nvml = NULL;
    look = start();
    assert_int_equal(look->n_processes, 3);
    assert_int_equal(process_of(look, 0, 4242)->memory_bytes, 8192);
    assert_int_equal(process_of(look, 0, 4343)->memory_bytes, 1);
    assert_int_equal(process_of(look, 1, 4343)->memory_bytes, 4096);
    assert_true(isnan(process_of(look, 1, 4343)->utilization));
    assert_true(look->gpus[0].tells_processes);

    remove_all("sys/class/kfd/kfd");
    look = look_again();
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->n_processes, 0);
    assert_false(look->gpus[0].tells_processes);
}

TEST(bad_files_of_amd_are_absent)
{
    static const char *const bad[] = {
        "", "\n", "-1\n", "max\n", "\xff\xfe\x01", "99999999999999999999999999999999999999999\n"
    };
    static const char *const files[] = {
        DRM "card1/device/gpu_busy_percent",  DRM "card1/device/mem_info_vram_used",
        DRM "card1" HWMON "power1_average",   DRM "card1" HWMON "temp1_input",
        DRM "card1/device/ras/umc_err_count", DRM "card1/device/ras/gfx_err_count",
        KFD "topology/nodes/1/properties"
    };

    make_amd_tree();
    fixture->config.nvml = NULL;
    start();
    for (size_t i = 0; i < COUNT(bad); i++) {
        const struct gpu_look *look;

        for (size_t k = 0; k < COUNT(files); k++)
            write_file(files[k], bad[i]);
        look = look_again();
        assert_int_equal(look->n_gpus, 2);
        assert_int_equal(look->errors, 0);
        assert_true(isnan(look->gpus[0].utilization));
        assert_true(look->gpus[0].memory_used_bytes == MODEL_UNKNOWN_U64);
        assert_true(look->gpus[0].power_mw == MODEL_UNKNOWN_U64);
        assert_true(look->gpus[0].temperature_celsius == MODEL_UNKNOWN_U64);
        assert_true(look->gpus[0].ecc_corrected == MODEL_UNKNOWN_U64);
        assert_ratio(look->gpus[0].memory_utilization, 0.12);
        assert_int_equal(look->n_processes, 1);
    }
}

TEST(gpus_of_amd_may_go_and_come_and_stand_behind_nvidias)
{
    const struct gpu_look *look;

    make_amd_tree();
    look = look_at(two_gpus);
    assert_int_equal(look->n_gpus, 4);
    assert_int_equal(look->gpus[2].index, 2);
    assert_string_equal(look->gpus[2].model, "AMD Instinct MI210");
    process_of(look, 2, 4242);

    remove_all("sys");
    look = look_again();
    assert_int_equal(look->n_gpus, 2);
    assert_int_equal(look->errors, 0);
    make_amd_tree();
    look = look_again();
    assert_int_equal(look->n_gpus, 4);
}
