/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of NVML's ABI that is used, written down here so that NVIDIA's header is not needed to
 * build (NVML API Reference Guide). tests/gpu/test_nvml_abi.c compares it with nvml.h. */
#ifndef SONDE_SOURCE_GPU_NVML_H
#define SONDE_SOURCE_GPU_NVML_H

/* NVIDIA's are enums without negative members. */
typedef unsigned nv_return, nv_temperature_sensor, nv_clock_type, nv_ecc_error, nv_ecc_counter;
typedef struct nv_device *nv_device;

enum {
    NV_OK = 0,
    NV_UNINITIALIZED = 1,
    NV_NOT_SUPPORTED = 3,
    NV_NOT_FOUND = 6,
    NV_INSUFFICIENT_SIZE = 7,
    NV_DRIVER_NOT_LOADED = 9,
    NV_FUNCTION_NOT_FOUND = 13,
    NV_GPU_IS_LOST = 15,
    NV_RESET_REQUIRED = 16,
    NV_VERSION_MISMATCH = 18,
    NV_NO_DATA = 21,
    NV_DEPRECATED = 26,
    NV_GPU_NOT_FOUND = 28,
};

enum {
    NV_UUID_SIZE = 96,
    NV_NAME_SIZE = 96,
    NV_TEMPERATURE_GPU = 0,
    NV_CLOCK_SM = 1,
    NV_CLOCK_MEMORY = 2,
    NV_ECC_CORRECTED = 0,
    NV_ECC_UNCORRECTED = 1,
    NV_ECC_VOLATILE = 0, /* since the driver was loaded */
    NV_MIG_ENABLED = 1,
};

#define NV_NOT_AVAILABLE UINT32_MAX /* in place of a number; ULLONG_MAX in a wider one */

typedef struct {
    unsigned gpu, memory; /* percent */
} nv_utilization;

typedef struct {
    unsigned long long total, free, used; /* bytes; used: what the driver keeps for itself too */
} nv_memory;

typedef struct {
    unsigned version; /* NV_MEMORY_V2 */
    unsigned long long total, reserved, free, used;
} nv_memory_v2;

#define NV_MEMORY_V2 (unsigned)(sizeof(nv_memory_v2) | 2 << 24)

/* Of _v2 and _v3. The first functions, without a suffix, end each entry after its memory. */
typedef struct {
    unsigned pid;
    unsigned long long memory;               /* bytes */
    unsigned gpu_instance, compute_instance; /* NV_NOT_AVAILABLE: not MIG */
} nv_process;

typedef struct {
    unsigned pid;
    unsigned long long timestamp;          /* microseconds since the epoch */
    unsigned sm, memory, encoder, decoder; /* percent */
} nv_process_sample;

#endif
