/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job and node states as Slurm has them: one base state plus any number of flags.
 * slurm/slurm.h: enum job_states, JOB_*; enum node_states, NODE_STATE_*. */
#ifndef SONDE_MODEL_STATE_H
#define SONDE_MODEL_STATE_H

#include "base/buf.h"
#include "base/str.h"

#include <stdint.h>

enum job_base {
    JOB_PENDING,
    JOB_RUNNING,
    JOB_SUSPENDED,
    JOB_COMPLETED,
    JOB_CANCELLED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_NODE_FAIL,
    JOB_PREEMPTED,
    JOB_BOOT_FAIL,
    JOB_DEADLINE,
    JOB_OUT_OF_MEMORY,
    JOB_BASE_UNKNOWN, /* squeue's text shows only the flag, as in COMPLETING */
    JOB_BASES,
};

enum job_flag {
    JOB_COMPLETING = 1 << 0,
    JOB_CONFIGURING = 1 << 1,
    JOB_RESIZING = 1 << 2,
    JOB_REQUEUED = 1 << 3,
    JOB_REQUEUE_FED = 1 << 4,
    JOB_REQUEUE_HOLD = 1 << 5,
    JOB_SPECIAL_EXIT = 1 << 6,
    JOB_STAGE_OUT = 1 << 7,
    JOB_SIGNALING = 1 << 8,
    JOB_STOPPED = 1 << 9,
    JOB_REVOKED = 1 << 10,
    JOB_RESV_DEL_HOLD = 1 << 11,
    JOB_LAUNCH_FAILED = 1 << 12,
    JOB_POWER_UP_NODE = 1 << 13,
    JOB_RECONFIG_FAIL = 1 << 14,
    JOB_UPDATE_DB = 1 << 15,
    JOB_EXPEDITING = 1 << 16,
};

struct job_state {
    uint8_t base; /* enum job_base */
    uint32_t flags;
};

/* Adds one word ("RUNNING", "completing", "OUT_OF_MEMORY") to *state, which starts as
 * JOB_STATE_NONE. False if no Slurm release has that word. */
#define JOB_STATE_NONE ((struct job_state){ JOB_BASE_UNKNOWN, 0 })
bool job_state_add(struct job_state *state, struct str word);

/* The whole, "RUNNING+COMPLETING", and back. An unknown base is left out beside flags, and UNKNOWN
 * alone. False if any word is unknown (the known ones are kept). */
void job_state_put(struct buf *buf, struct job_state state);
bool job_state_parse(struct str text, struct job_state *ret);

/* The one word that squeue would print: some flags win over the base, as in Slurm's
 * job_state_string(). Upper case; UNKNOWN where Slurm prints "?". Every word this can return is
 * job_state_words[0 … n-1]. */
struct str job_state_word(struct job_state state);
extern const struct str job_state_words[];
extern const size_t n_job_state_words;
size_t job_state_index(struct job_state state); /* into job_state_words */

/* Holds its resources now: running, suspended or completing. */
bool job_holds_resources(struct job_state state);

/* A suspended job, unlike a stopped one, has released its CPUs for other jobs, see squeue(1); its
 * memory and, as gres.html says, its generic resources it keeps. */
bool job_holds_cpus(struct job_state state);

/* Pending, also where squeue shows a flag instead (REQUEUE_HOLD, SPECIAL_EXIT, …). A revoked job is
 * pending or running on another cluster of the federation. */
bool job_requests_resources(struct job_state state);

enum node_base {
    NODE_UNKNOWN,
    NODE_DOWN,
    NODE_IDLE,
    NODE_ALLOCATED,
    NODE_ERROR,
    NODE_MIXED,
    NODE_FUTURE,
    NODE_BASES,
};

enum node_flag {
    NODE_RESERVED = 1 << 0,
    NODE_UNDRAIN = 1 << 1,
    NODE_CLOUD = 1 << 2,
    NODE_RESUME = 1 << 3,
    NODE_DRAIN = 1 << 4,
    NODE_COMPLETING = 1 << 5,
    NODE_NOT_RESPONDING = 1 << 6,
    NODE_POWERED_DOWN = 1 << 7,
    NODE_FAIL = 1 << 8,
    NODE_POWERING_UP = 1 << 9,
    NODE_MAINTENANCE = 1 << 10,
    NODE_REBOOT_REQUESTED = 1 << 11,
    NODE_REBOOT_CANCEL = 1 << 12,
    NODE_POWERING_DOWN = 1 << 13,
    NODE_DYNAMIC_FUTURE = 1 << 14,
    NODE_REBOOT_ISSUED = 1 << 15,
    NODE_PLANNED = 1 << 16,
    NODE_INVALID_REG = 1 << 17,
    NODE_POWER_DOWN = 1 << 18,
    NODE_POWER_UP = 1 << 19,
    NODE_POWER_DRAIN = 1 << 20,
    NODE_DYNAMIC_NORM = 1 << 21,
    NODE_BLOCKED = 1 << 22,
    NODE_EXTERNAL = 1 << 23,

    NODE_CALLED_FAIL = 1 << 30, /* not Slurm's: see node_state_set_release */
};
enum { NODE_FLAGS = 24 }; /* of Slurm */

struct node_state {
    uint8_t base; /* enum node_base */
    uint32_t flags;
};

#define NODE_STATE_NONE ((struct node_state){ NODE_UNKNOWN, 0 })
bool node_state_add(struct node_state *state, struct str word);

/* "idle+drain*", "IDLE+DRAIN+NOT_RESPONDING", "mixed-", "drained": as StateComplete, StateLong and
 * JSON's joined list print it in any release, suffix characters included. False if any word of it
 * is unknown (the known ones are kept). */
bool node_state_parse(struct str text, struct node_state *ret);

/* Slurm starts jobs on it now, or powers it up for one. */
bool node_takes_jobs(struct node_state state);

/* Base in lower case ("idle"), and the whole ("idle+drain+not_responding"). */
struct str node_base_word(enum node_base base);
struct str node_flag_word(enum node_flag flag);
void node_state_put(struct buf *buf, struct node_state state);

/* Releases differ in one word: MIXED+FAIL is "fail" before 25.11.1 and "failing" since. Marks such
 * a state. `version` is the one of the node's slurmd, "24.11.5"; an unknown one is the newest. */
void node_state_set_release(struct node_state *state, struct str version);

/* The one word that sinfo's StateLong prints in that release, lower case without suffix characters:
 * idle, mixed, allocated, drained, draining, down, maint, reserved, planned, … */
struct str node_state_word(struct node_state state);
extern const struct str node_state_words[];
extern const size_t n_node_state_words;
size_t node_state_index(struct node_state state); /* into node_state_words */

#endif
