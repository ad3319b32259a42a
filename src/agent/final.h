/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is told of a job that has ended on this node: one JSON object. What is not known is absent.
 *
 *   job_id, node, begin_time, end_time   which, where, and when the agent saw it first and last:
 *                                        UTC seconds
 *   uid, user, account
 *   allocated             {cpus, memory_bytes, gpus}
 *   cpu_seconds, user_seconds, system_seconds, throttled_seconds, periods, throttled_periods,
 *   memory_peak_bytes, limit_hits, oom_kills, page_faults, major_page_faults, pids_peak
 *                         as the kernel counts them for its cgroup
 *   pressure_seconds      {cpu_some, cpu_full, memory_some, memory_full, io_some, io_full}
 *   io                    {read_bytes, write_bytes, read_chars, write_chars, reads, writes}
 *   devices               [{name, read_bytes, write_bytes, reads, writes}]
 *   processes_peak, threads_peak, files_peak   the most in any look
 *   uses_scratch          true or false
 *   names                 [{name, cpu_seconds}] of its processes, those that used most first
 *   gpus                  [{id, model, memory_peak_bytes, energy_joules}]; the energy is that of
 *                         the whole GPU between the first and the last look at it
 *   steps                 [{id, the kernel's numbers as above, pressure_seconds, io}]
 *   steps_left_out        how many more there were
 */
#ifndef SONDE_AGENT_FINAL_H
#define SONDE_AGENT_FINAL_H

#include "base/buf.h"
#include "model/usage.h"

enum { FINAL_MAX = 60 * 1024 }; /* bytes; the exporter takes 64 KB */

/* False if the job is none of Slurm's, whose ids are numbers. */
bool final_put(struct buf *to, const struct job_use *use, size_t steps_left_out, int64_t end_time);

#endif
