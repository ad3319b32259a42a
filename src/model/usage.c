/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets usage to unknown, and adds and subtracts I/O. */
#include "model/usage.h"

#include <math.h>

static const struct cgroup_use unknown = {
    .cpu_ns = MODEL_UNKNOWN_U64,
    .cpu_user_ns = MODEL_UNKNOWN_U64,
    .cpu_system_ns = MODEL_UNKNOWN_U64,
    .periods = MODEL_UNKNOWN_U64,
    .throttled_periods = MODEL_UNKNOWN_U64,
    .throttled_ns = MODEL_UNKNOWN_U64,
    .memory_bytes = MODEL_UNKNOWN_U64,
    .memory_peak_bytes = MODEL_UNKNOWN_U64,
    .memory_limit_bytes = MODEL_UNKNOWN_U64,
    .anon_bytes = MODEL_UNKNOWN_U64,
    .file_bytes = MODEL_UNKNOWN_U64,
    .mapped_bytes = MODEL_UNKNOWN_U64,
    .shmem_bytes = MODEL_UNKNOWN_U64,
    .swap_bytes = MODEL_UNKNOWN_U64,
    .kernel_bytes = MODEL_UNKNOWN_U64,
    .page_faults = MODEL_UNKNOWN_U64,
    .major_page_faults = MODEL_UNKNOWN_U64,
    .limit_hits = MODEL_UNKNOWN_U64,
    .oom_kills = MODEL_UNKNOWN_U64,
    .pressure_ns = { MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64,
                     MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64 },
    .pids = MODEL_UNKNOWN_U64,
    .pids_peak = MODEL_UNKNOWN_U64,
    .cpus = MODEL_UNKNOWN_U64,
};

void cgroup_use_clear(struct cgroup_use *use)
{
    *use = unknown;
}

void io_use_clear(struct io_use *use)
{
    *use = (struct io_use){ MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64,
                            MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64, MODEL_UNKNOWN_U64 };
}

void io_add(struct io_use *to, const struct io_use *io)
{
    to->read_bytes += io->read_bytes;
    to->write_bytes += io->write_bytes;
    to->read_chars += io->read_chars;
    to->write_chars += io->write_chars;
    to->reads += io->reads;
    to->writes += io->writes;
}

static uint64_t difference(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

void io_subtract(struct io_use *from, const struct io_use *io)
{
    from->read_bytes = difference(from->read_bytes, io->read_bytes);
    from->write_bytes = difference(from->write_bytes, io->write_bytes);
    from->read_chars = difference(from->read_chars, io->read_chars);
    from->write_chars = difference(from->write_chars, io->write_chars);
    from->reads = difference(from->reads, io->reads);
    from->writes = difference(from->writes, io->writes);
}

bool io_is_none(const struct io_use *io)
{
    return !(io->read_bytes || io->write_bytes || io->read_chars || io->write_chars || io->reads ||
             io->writes);
}

void job_use_clear(struct job_use *use)
{
    *use = (struct job_use){
        .uid = MODEL_UNKNOWN_U32,
        .cgroup = unknown,
        .cpu_ratio = NAN,
        .allocated_cpus = MODEL_UNKNOWN_U64,
        .allocated_memory_bytes = MODEL_UNKNOWN_U64,
        .allocated_gpus = MODEL_UNKNOWN_U64,
        .processes = MODEL_UNKNOWN_U64,
        .threads = MODEL_UNKNOWN_U64,
        .resident_bytes = MODEL_UNKNOWN_U64,
        .descriptors = MODEL_UNKNOWN_U64,
        .files = MODEL_UNKNOWN_U64,
        .uses_scratch = MODEL_UNKNOWN_U64,
        .processes_peak = MODEL_UNKNOWN_U64,
        .threads_peak = MODEL_UNKNOWN_U64,
        .files_peak = MODEL_UNKNOWN_U64,
    };
    io_use_clear(&use->io);
}
