/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares src/source/gpu_nvml.h and gpu_nvml.inc with NVIDIA's nvml.h, where there is one: sizes,
 * offsets and constants by their values, functions by their types. */
#include "source/gpu_nvml.h"

#include <stdint.h>
#include <stdio.h>

#if !HAVE_NVML_H
int main(void)
{
    puts("1..0 # SKIP there is no nvml.h: install libnvidia-ml-dev (Debian non-free), or give its "
         "directory by -Dnvml_include=");
    return 0;
}
#else
#include <nvml.h>
#include <stddef.h>

static int n_tests, n_failed;

static void check(const char *what, unsigned long long ours, unsigned long long theirs)
{
    n_tests++;
    n_failed += ours != theirs;
    printf("%s %d %s", ours == theirs ? "ok" : "not ok", n_tests, what);
    printf(ours == theirs ? "\n" : ": %llu here, %llu in nvml.h\n", ours, theirs);
}

#define VALUE(ours, theirs) check(#ours, (unsigned long long)(ours), (unsigned long long)(theirs))
#define SIZE(ours, theirs)  check("size of " #ours, sizeof(ours), sizeof(theirs))
#define FIELD(ours, ours_field, theirs, theirs_field)                                              \
    check("offset of " #ours "." #ours_field, offsetof(ours, ours_field),                          \
          offsetof(theirs, theirs_field));                                                         \
    check("size of " #ours "." #ours_field, sizeof(((ours *)NULL)->ours_field),                    \
          sizeof(((theirs *)NULL)->theirs_field))

static void check_structures(void)
{
    SIZE(nv_device, nvmlDevice_t);
    SIZE(nv_return, nvmlReturn_t);
    SIZE(nv_utilization, nvmlUtilization_t);
    FIELD(nv_utilization, gpu, nvmlUtilization_t, gpu);
    FIELD(nv_utilization, memory, nvmlUtilization_t, memory);
    SIZE(nv_memory, nvmlMemory_t);
    FIELD(nv_memory, total, nvmlMemory_t, total);
    FIELD(nv_memory, free, nvmlMemory_t, free);
    FIELD(nv_memory, used, nvmlMemory_t, used);
    SIZE(nv_memory_v2, nvmlMemory_v2_t);
    FIELD(nv_memory_v2, version, nvmlMemory_v2_t, version);
    FIELD(nv_memory_v2, total, nvmlMemory_v2_t, total);
    FIELD(nv_memory_v2, reserved, nvmlMemory_v2_t, reserved);
    FIELD(nv_memory_v2, free, nvmlMemory_v2_t, free);
    FIELD(nv_memory_v2, used, nvmlMemory_v2_t, used);
    SIZE(nv_process, nvmlProcessInfo_v2_t);
    FIELD(nv_process, pid, nvmlProcessInfo_v2_t, pid);
    FIELD(nv_process, memory, nvmlProcessInfo_v2_t, usedGpuMemory);
    FIELD(nv_process, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
    FIELD(nv_process, compute_instance, nvmlProcessInfo_v2_t, computeInstanceId);
    SIZE(nv_process, nvmlProcessInfo_t);
    FIELD(nv_process, memory, nvmlProcessInfo_t, usedGpuMemory);
    FIELD(nv_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
    check("size of the first entries", offsetof(nv_process, gpu_instance),
          sizeof(nvmlProcessInfo_v1_t));
    FIELD(nv_process, memory, nvmlProcessInfo_v1_t, usedGpuMemory);
    SIZE(nv_process_sample, nvmlProcessUtilizationSample_t);
    FIELD(nv_process_sample, pid, nvmlProcessUtilizationSample_t, pid);
    FIELD(nv_process_sample, timestamp, nvmlProcessUtilizationSample_t, timeStamp);
    FIELD(nv_process_sample, sm, nvmlProcessUtilizationSample_t, smUtil);
    FIELD(nv_process_sample, memory, nvmlProcessUtilizationSample_t, memUtil);
    FIELD(nv_process_sample, encoder, nvmlProcessUtilizationSample_t, encUtil);
    FIELD(nv_process_sample, decoder, nvmlProcessUtilizationSample_t, decUtil);
}

static void check_constants(void)
{
    VALUE(NV_OK, NVML_SUCCESS);
    VALUE(NV_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
    VALUE(NV_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
    VALUE(NV_NOT_FOUND, NVML_ERROR_NOT_FOUND);
    VALUE(NV_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
    VALUE(NV_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
    VALUE(NV_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
    VALUE(NV_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
    VALUE(NV_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
    VALUE(NV_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
    VALUE(NV_NO_DATA, NVML_ERROR_NO_DATA);
#ifdef nvmlClocksEventReasonGpuIdle /* since CUDA 12.2 */
    VALUE(NV_DEPRECATED, NVML_ERROR_DEPRECATED);
    VALUE(NV_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
#endif
    VALUE(NV_UUID_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    VALUE(NV_NAME_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
    VALUE(NV_TEMPERATURE_GPU, NVML_TEMPERATURE_GPU);
    VALUE(NV_CLOCK_SM, NVML_CLOCK_SM);
    VALUE(NV_CLOCK_MEMORY, NVML_CLOCK_MEM);
    VALUE(NV_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
    VALUE(NV_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
    VALUE(NV_ECC_VOLATILE, NVML_VOLATILE_ECC);
    VALUE(NV_MIG_ENABLED, NVML_DEVICE_MIG_ENABLE);
    VALUE(NV_NOT_AVAILABLE, (unsigned)NVML_VALUE_NOT_AVAILABLE);
    VALUE(NV_MEMORY_V2, nvmlMemory_v2);
}

#ifndef nvmlClocksEventReasonGpuIdle
#define nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
#endif

/* The rows again, with NVIDIA's types in place of ours. */
#define nv_return             nvmlReturn_t
#define nv_device             nvmlDevice_t
#define nv_temperature_sensor nvmlTemperatureSensors_t
#define nv_clock_type         nvmlClockType_t
#define nv_ecc_error          nvmlMemoryErrorType_t
#define nv_ecc_counter        nvmlEccCounterType_t
#define nv_utilization        nvmlUtilization_t
#define nv_memory             nvmlMemory_t
#define nv_memory_v2          nvmlMemory_v2_t
#define nv_process            nvmlProcessInfo_t
#define nv_process_sample     nvmlProcessUtilizationSample_t

static void check_functions(void)
{
#define NEEDED(type, name, parameters)                                                             \
    check("type of nvml" #name,                                                                    \
          __builtin_types_compatible_p(__typeof__(&nvml##name), type(*) parameters), 1);
#define OPTIONAL(type, name, parameters) NEEDED(type, name, parameters)
#include "source/gpu_nvml.inc"
}

int main(void)
{
    check_structures();
    check_constants();
    check_functions();
    printf("1..%d\n", n_tests);
    return n_failed > 0;
}
#endif
