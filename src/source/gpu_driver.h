/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What gpus.c asks of a vendor's driver, and the look that a driver fills. All of it is called on
 * the thread of gpus.c and may take as long as it does. */
#ifndef SONDE_SOURCE_GPU_DRIVER_H
#define SONDE_SOURCE_GPU_DRIVER_H

#include "source/gpus.h"

/* A look that is being taken. */
struct gpu_draft {
    struct gpu_look *look;
    size_t gpu_room, process_room;
    unsigned n_whole;       /* GPUs, without their instances: the index of the next one */
    uint64_t began_wall_us; /* since the epoch */
};

/* Adds a GPU or an instance of which nothing is known yet, and returns its place in look->gpus, or
 * -1 past the ceiling, which counts as an error. */
int gpu_draft_gpu(struct gpu_draft *draft, unsigned index, int instance);

/* Adds a process, or says the memory of the one that is on this GPU already: -1 past the ceiling.
 */
int gpu_draft_process(struct gpu_draft *draft, uint32_t gpu, pid_t pid, uint64_t memory_bytes);

void gpu_draft_error(struct gpu_draft *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct gpu_driver {
    /* Whether this node has such GPUs, found without the driver, so that it does not hang. */
    bool (*is_present)(const struct gpus_config *config);
    /* 0, or -ENODEV: there is none on this node; anything else is an error with its sentence. */
    int (*open)(const struct gpus_config *config, void **ret, struct err *err);
    /* 0, or as above: then it has to be opened again. What concerns one number or one GPU goes into
     * the draft as an error instead. */
    int (*look)(void *opened, struct gpu_draft *draft, struct err *err);
    void (*close)(void *opened);
};

extern const struct gpu_driver gpu_nvml, gpu_amd;

#endif
