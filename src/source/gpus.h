/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The GPUs of this node, asked on a thread of its own: a driver that hangs delays nobody else.
 * NVIDIA's through NVML (libnvidia-ml.so.1, opened when it is there; NVML API reference), AMD's
 * from sysfs (Documentation/gpu/amdgpu of the kernel). */
#ifndef SONDE_SOURCE_GPUS_H
#define SONDE_SOURCE_GPUS_H

#include "base/clock.h"
#include "base/err.h"
#include "model/usage.h"

#include <stdatomic.h>

enum { GPUS_MAX = 128, GPU_PROCESSES_MAX = 4096 };

/* One look at all of them; immutable, shared by counting references. */
struct gpu_look {
    atomic_uint refs;
    int64_t mono_ns;
    struct gpu_use *gpus; /* whole GPUs, each followed by its instances */
    size_t n_gpus;
    struct gpu_process *processes;
    size_t n_processes;
    int up;        /* 1: a driver answers; 0: there is one, and it does not; -1: there is none */
    size_t errors; /* questions that the driver refused */
    char first_error[160]; /* a sentence about the first, or empty */
};

struct gpu_look *gpu_look_unref(struct gpu_look *look); /* returns NULL */

struct gpus;

struct gpus_config {
    const char *nvml; /* library; NULL: libnvidia-ml.so.1, once NVIDIA's driver is loaded */
    const char *sys;  /* "/sys" */
    const char *proc; /* "/proc": tells whether NVIDIA's driver is loaded */
    const struct clock *clock; /* must outlive gpus_stop; the rest is copied */
};

/* Starts the thread, which looks at once. Without a driver there is nothing in its looks; it tries
 * again, less and less often, because a driver may be loaded after the agent has started. */
int gpus_start(const struct gpus_config *config, struct gpus **ret, struct err *err);

/* Waits a second for a look that is under way. The thread of a driver that hangs is left behind and
 * frees what it has when the driver ever answers. Returns NULL. */
struct gpus *gpus_stop(struct gpus *gpus);

/* Has the thread look again; returns at once. To be called at each tick, gpus may be NULL. Nothing
 * happens within a second of the last look: drivers count processes' use in such periods. */
void gpus_ask(struct gpus *gpus);

/* The newest look, or NULL: none yet, or none younger than `max_age_ns`. Unref it. */
struct gpu_look *gpus_latest(struct gpus *gpus, int64_t max_age_ns);

/* Whether this node has GPUs, by the last look or the one under way; gpus may be NULL. */
bool gpus_present(struct gpus *gpus);

/* Names of the bits in throttle_reasons: ended by name = NULL. */
struct gpu_throttle {
    uint64_t bit;
    const char *name; /* "sw_power_cap" */
};
extern const struct gpu_throttle gpu_throttles[];

#endif
