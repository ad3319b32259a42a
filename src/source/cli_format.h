/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields that sonde asks for, in order: squeue(1) and sinfo(1), --Format; sshare(1), --format.
 * Every name has meant the same from Slurm 20.11 to 26.05, but for one that came later. Free text
 * stands last. */
#ifndef SONDE_SOURCE_CLI_FORMAT_H
#define SONDE_SOURCE_CLI_FORMAT_H

/* JobID is the raw id, and PriorityLong the number: JobArrayID and Priority are for people
 * ("6_[1-9]", "0.00000003"). AllocNodes is the one host that a job was submitted from. Times as
 * SLURM_TIME_FORMAT=%s prints them. */
#define SQUEUE_FIELDS(FIELD)                                                                       \
    FIELD(JOB_ID, "JobID")                                                                         \
    FIELD(ARRAY_JOB_ID, "ArrayJobID")                                                              \
    FIELD(ARRAY_TASK_ID, "ArrayTaskID")                                                            \
    FIELD(HET_JOB_ID, "HetJobID")                                                                  \
    FIELD(HET_JOB_OFFSET, "HetJobOffset")                                                          \
    FIELD(USER_ID, "UserID")                                                                       \
    FIELD(USER_NAME, "UserName")                                                                   \
    FIELD(ACCOUNT, "Account")                                                                      \
    FIELD(PARTITION, "Partition")                                                                  \
    FIELD(QOS, "QOS")                                                                              \
    FIELD(STATE, "State")                                                                          \
    FIELD(REASON, "Reason")                                                                        \
    FIELD(NUM_CPUS, "NumCPUs")                                                                     \
    FIELD(NUM_NODES, "NumNodes")                                                                   \
    FIELD(TRES_ALLOC, "tres-alloc")                                                                \
    FIELD(NODE_LIST, "NodeList")                                                                   \
    FIELD(RESERVATION, "Reservation")                                                              \
    FIELD(LICENSES, "Licenses")                                                                    \
    FIELD(FEATURE, "Feature")                                                                      \
    FIELD(PRIORITY, "PriorityLong")                                                                \
    FIELD(TIME_LIMIT, "TimeLimit")                                                                 \
    FIELD(SUBMIT_TIME, "SubmitTime")                                                               \
    FIELD(ELIGIBLE_TIME, "EligibleTime")                                                           \
    FIELD(START_TIME, "StartTime")                                                                 \
    FIELD(END_TIME, "EndTime")                                                                     \
    FIELD(RESTART_COUNT, "RestartCnt")                                                             \
    FIELD(ALLOC_NODE, "AllocNodes")                                                                \
    FIELD(NAME, "Name")

/* Of squeue too, where nothing more is wanted than whose each job is. None is a user's own text. */
#define OWNERS_FIELDS(FIELD)                                                                       \
    FIELD(JOB_ID, "JobID")                                                                         \
    FIELD(ACCOUNT, "Account")                                                                      \
    FIELD(USER_NAME, "UserName")                                                                   \
    FIELD(USER_ID, "UserID")

/* Of sinfo -N, which tells a node once for every partition that has it. */
#define SINFO_FIELDS(FIELD)                                                                        \
    FIELD(NODE, "NodeList")                                                                        \
    FIELD(PARTITION, "Partition")                                                                  \
    FIELD(STATE, "StateComplete")                                                                  \
    FIELD(CPUS, "CPUsState")                                                                       \
    FIELD(MEMORY, "Memory")                                                                        \
    FIELD(ALLOC_MEMORY, "AllocMem")                                                                \
    FIELD(FREE_MEMORY, "FreeMem")                                                                  \
    FIELD(CPU_LOAD, "CPUsLoad")                                                                    \
    FIELD(GRES, "Gres")                                                                            \
    FIELD(GRES_USED, "GresUsed")                                                                   \
    FIELD(FEATURES, "Features")                                                                    \
    FIELD(WEIGHT, "Weight")                                                                        \
    FIELD(VERSION, "Version")                                                                      \
    FIELD(TIME_LIMIT, "Time")                                                                      \
    FIELD(AVAILABLE, "Available")                                                                  \
    FIELD(REASON_TIME, "Timestamp")                                                                \
    FIELD(REASON_USER, "User")                                                                     \
    FIELD(REASON, "Reason")

/* In the place of StateComplete, which 20.11 does not know: one word for all that holds of a node.
 */
#define SINFO_OLDER_STATE "StateLong"

#define SSHARE_FIELDS(FIELD)                                                                       \
    FIELD(ACCOUNT, "Account")                                                                      \
    FIELD(USER, "User")                                                                            \
    FIELD(PARTITION, "Partition")                                                                  \
    FIELD(RAW_SHARES, "RawShares")                                                                 \
    FIELD(NORM_SHARES, "NormShares")                                                               \
    FIELD(RAW_USAGE, "RawUsage")                                                                   \
    FIELD(NORM_USAGE, "NormUsage")                                                                 \
    FIELD(EFFECTIVE_USAGE, "EffectvUsage")                                                         \
    FIELD(FACTOR, "FairShare")                                                                     \
    FIELD(LEVEL, "LevelFS")

#define SQUEUE_FIELD_ENUM(name, text) SQUEUE_##name,
#define OWNERS_FIELD_ENUM(name, text) OWNERS_##name,
#define SINFO_FIELD_ENUM(name, text)  SINFO_##name,
#define SSHARE_FIELD_ENUM(name, text) SSHARE_##name,
#define FIELD_TEXT(name, text)        text,

enum squeue_field { SQUEUE_FIELDS(SQUEUE_FIELD_ENUM) SQUEUE_N_FIELDS };
enum owners_field { OWNERS_FIELDS(OWNERS_FIELD_ENUM) OWNERS_N_FIELDS };
enum sinfo_field { SINFO_FIELDS(SINFO_FIELD_ENUM) SINFO_N_FIELDS };
enum sshare_field { SSHARE_FIELDS(SSHARE_FIELD_ENUM) SSHARE_N_FIELDS };

static const char *const squeue_fields[SQUEUE_N_FIELDS] = { SQUEUE_FIELDS(FIELD_TEXT) };
static const char *const owners_fields[OWNERS_N_FIELDS] = { OWNERS_FIELDS(FIELD_TEXT) };
static const char *const sinfo_fields[SINFO_N_FIELDS] = { SINFO_FIELDS(FIELD_TEXT) };
static const char *const sshare_fields[SSHARE_N_FIELDS] = { SSHARE_FIELDS(FIELD_TEXT) };

#undef SQUEUE_FIELD_ENUM
#undef OWNERS_FIELD_ENUM
#undef SINFO_FIELD_ENUM
#undef SSHARE_FIELD_ENUM
#undef FIELD_TEXT

#endif
