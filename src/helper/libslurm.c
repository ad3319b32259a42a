/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sonde-libslurm-RELEASE: what libslurm tells, as sections on a socket (source/wire). A process of
 * its own, as slurm_init() exits on trouble. Compiles with slurm/slurm.h of 20.11 to 26.05; HAVE_*
 * come from src/meson.build. Each value is what squeue, sinfo, sdiag, sshare and scontrol
 * make of the same struct. */
#include "base/num.h"
#include "base/users.h"
#include "model/job_gpus.h"
#include "model/job_gres.h"
#include "model/section.h"
#include "model/tres.h"
#include "model/units.h"
#include "helper/message_names.h"
#include "source/wire.h"

#include <math.h>
#include <signal.h>
#include <sys/prctl.h>

/* Names that slurm.h has too. */
#define JOB_PENDING   SLURM_JOB_PENDING
#define JOB_RUNNING   SLURM_JOB_RUNNING
#define JOB_SUSPENDED SLURM_JOB_SUSPENDED
#define JOB_CANCELLED SLURM_JOB_CANCELLED
#define JOB_FAILED    SLURM_JOB_FAILED
#define JOB_TIMEOUT   SLURM_JOB_TIMEOUT
#define JOB_NODE_FAIL SLURM_JOB_NODE_FAIL
#define JOB_PREEMPTED SLURM_JOB_PREEMPTED
#define JOB_BOOT_FAIL SLURM_JOB_BOOT_FAIL
#define JOB_DEADLINE  SLURM_JOB_DEADLINE
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

/* Exported, but declared in no header that is installed. */
#if HAVE_SLURM_JOB_STATE_REASON_STRING
extern const char *slurm_job_state_reason_string(unsigned reason);
#define reason_word slurm_job_state_reason_string
#else
extern const char *slurm_job_reason_string(unsigned reason);
#define reason_word slurm_job_reason_string
#endif
extern int32_t slurm_bit_set_count(void *bitmap);
extern char *slurm_reservation_flags_string(reserve_info_t *reservation);
extern void slurm_free_stats_response_msg(stats_info_response_msg_t *message);
extern void slurm_xfree(void **item);

enum {
    MINUTE = 60,
    MEBIBYTE = 1 << 20,
    FIRST_NAMES_MS = 2000, /* how long the directory is waited for when a kind is told first … */
    NEW_NAMES_MS = 200,    /* … and whenever somebody new has come */
};

#define TIME_MAX INT64_C(253402300799) /* the year 9999 */

struct helper {
    struct users *users;
    unsigned told; /* KIND_BIT of what has been told before */
    struct section *section;
    int64_t last_update; /* of what was loaded; 0: Slurm does not say */
    char warning[sizeof(((struct err *)0)->text)];
};

/* Any loader's failure. Some set errno, some return the code itself. */
static int slurm_code(int returned)
{
#if HAVE_SLURM_GET_ERRNO
    int code = slurm_get_errno();
#else
    int code = errno;
#endif

    return returned > 0 ? returned : code;
}

static const struct advice {
    int code, error;
    const char *words;
} advices[] = {
    { ESLURM_USER_ID_MISSING, EREMOTEIO,
      "PrivateData hides it from a user whom Slurm does not know; sacctmgr add user makes him "
      "known" },
    { ESLURM_ACCESS_DENIED, EACCES, "Slurm does not let this user see it" },
    /* What slurmctld 24.11 answers a client of 26.05, and 22.05 one of 24.11. */
    { SLURM_PROTOCOL_AUTHENTICATION_ERROR, EPROTO,
      "either slurmctld is older than Slurm " RELEASE ", for which this helper is built, or munge "
      "does not run here with the controller's key" },
    { SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT, EPROTO,
      "slurmctld closed the connection: either it is older than Slurm " RELEASE ", for which this "
      "helper is built, or its log has the reason" },
    { ESLURM_PROTOCOL_INCOMPLETE_PACKET, EREMOTEIO, "is munge running, and slurmctld not busy?" },
    { SLURM_PROTOCOL_VERSION_ERROR, EPROTO,
      "slurmctld does not support clients of Slurm " RELEASE ", for which this helper is built" },
    { SLURM_COMMUNICATIONS_CONNECTION_ERROR, EREMOTEIO, "is slurmctld running?" },
    { SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, EREMOTEIO, "is slurmctld running?" },
    { SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, ETIMEDOUT, "is slurmctld busy or down?" },
};

/* Sets the sentence for a loader that failed. -EALREADY if there is nothing new. */
static int judge(const char *loader, int returned, struct err *err)
{
    int code = slurm_code(returned);

    if (code == SLURM_NO_CHANGE_IN_DATA)
        return -EALREADY;
    for (size_t i = 0; i < COUNT(advices); i++)
        if (advices[i].code == code)
            return err_set(err, advices[i].error, "%s: %s; %s", loader, slurm_strerror(code),
                           advices[i].words);
    return err_set(err, EREMOTEIO, "%s: %s", loader, slurm_strerror(code));
}

/* Calls a loader, and makes its result one of ours. */
#define LOAD(function, err, ...)                                                                   \
    ({                                                                                             \
        int returned;                                                                              \
        errno = 0;                                                                                 \
        returned = function(__VA_ARGS__);                                                          \
        returned == SLURM_SUCCESS ? 0 : judge(#function, returned, err);                           \
    })

/* The records of a list, which may be missing. */
#define EACH(record, list)                                                                         \
    __auto_type walk = (list) ? slurm_list_iterator_create(list) : NULL;                           \
    walk && (((record) = slurm_list_next(walk)) || (slurm_list_iterator_destroy(walk), 0));

static uint32_t number32(uint32_t value)
{
    return value == NO_VAL || value == INFINITE ? MODEL_UNKNOWN_U32 : value;
}

static uint64_t number64(uint64_t value)
{
    return value == NO_VAL64 || value == INFINITE64 ? MODEL_UNKNOWN_U64 : value;
}

static uint64_t mebibytes(uint64_t value)
{
    return number64(value) >= MODEL_UNKNOWN_U64 / MEBIBYTE ? MODEL_UNKNOWN_U64 : value * MEBIBYTE;
}

static int64_t moment(time_t seconds)
{
    return seconds > 0 && seconds <= TIME_MAX ? seconds : 0;
}

/* Some members are double, in which NO_VAL64 is not exact. */
static double real(long double value)
{
    double rounded = (double)value;

    return rounded == (double)NO_VAL || rounded == (double)NO_VAL64 ? (double)NAN : rounded;
}

/* Slurm's words; what it prints where there is nothing is nothing. */
static symbol text(struct helper *helper, const char *words)
{
    struct str all = str_of(words);

    return units_absent(all) ? 0 : symbols_put(&helper->section->symbols, all);
}

/* What somebody has named: a user may be called none. */
static symbol name(struct helper *helper, const char *words)
{
    struct str all = str_of(words);

    return !all.n || str_eq(all, STR("(null)")) || str_eq(all, STR("N/A"))
               ? 0
               : symbols_put(&helper->section->symbols, all);
}

static symbol user(struct helper *helper, uid_t uid)
{
    char known[USERS_NAME_MAX];

    users_user(helper->users, uid, known);
    return symbols_put(&helper->section->symbols, str_of(known));
}

/* Waits for the names that have just been asked for, but not for long. */
static void settle_names(struct helper *helper)
{
    bool is_told = helper->told & KIND_BIT(helper->section->kind);
    int64_t wait_ms = is_told ? NEW_NAMES_MS : FIRST_NAMES_MS;

    users_settle(helper->users, clock_mono(&clock_real) + wait_ms * NS_PER_MS);
    helper->told |= KIND_BIT(helper->section->kind);
}

static void ask_name(struct helper *helper, uid_t uid)
{
    char ignored[USERS_NAME_MAX];

    users_user(helper->users, uid, ignored);
}

/* Each flag by its word, which model/state has too. */
struct flag {
    uint32_t bit;
    struct str word;
};

#define FLAG(bit, word)                                                                            \
    {                                                                                              \
        bit, STR_INIT(word)                                                                        \
    }

static const struct flag job_flags[] = {
    FLAG(JOB_LAUNCH_FAILED, "LAUNCH_FAILED"),
#ifdef JOB_UPDATE_DB
    FLAG(JOB_UPDATE_DB, "UPDATE_DB"),
#endif
    FLAG(JOB_REQUEUE, "REQUEUED"),
    FLAG(JOB_REQUEUE_HOLD, "REQUEUE_HOLD"),
    FLAG(JOB_SPECIAL_EXIT, "SPECIAL_EXIT"),
    FLAG(JOB_RESIZING, "RESIZING"),
    FLAG(JOB_CONFIGURING, "CONFIGURING"),
    FLAG(JOB_COMPLETING, "COMPLETING"),
    FLAG(JOB_STOPPED, "STOPPED"),
    FLAG(JOB_RECONFIG_FAIL, "RECONFIG_FAIL"),
    FLAG(JOB_POWER_UP_NODE, "POWER_UP_NODE"),
    FLAG(JOB_REVOKED, "REVOKED"),
    FLAG(JOB_REQUEUE_FED, "REQUEUE_FED"),
    FLAG(JOB_RESV_DEL_HOLD, "RESV_DEL_HOLD"),
    FLAG(JOB_SIGNALING, "SIGNALING"),
    FLAG(JOB_STAGE_OUT, "STAGE_OUT"),
#ifdef JOB_EXPEDITING
    FLAG(JOB_EXPEDITING, "EXPEDITING"),
#endif
};

static struct job_state job_state_of(uint32_t slurms)
{
    uint32_t base = slurms & JOB_STATE_BASE;
    struct job_state state = JOB_STATE_NONE;

    if (base < JOB_BASE_UNKNOWN)
        state.base = (uint8_t)base; /* the numbers are the same */
    for (size_t i = 0; i < COUNT(job_flags); i++)
        if (slurms & job_flags[i].bit)
            job_state_add(&state, job_flags[i].word);
    return state;
}

static const struct flag node_flags[] = {
#ifdef NODE_STATE_EXTERNAL
    FLAG(NODE_STATE_EXTERNAL, "external"),
#endif
    FLAG(NODE_STATE_RES, "reserved"),
    FLAG(NODE_STATE_UNDRAIN, "undrain"),
    FLAG(NODE_STATE_CLOUD, "cloud"),
    FLAG(NODE_RESUME, "resume"),
    FLAG(NODE_STATE_DRAIN, "drain"),
    FLAG(NODE_STATE_COMPLETING, "completing"),
    FLAG(NODE_STATE_NO_RESPOND, "not_responding"),
    FLAG(NODE_STATE_FAIL, "fail"),
    FLAG(NODE_STATE_MAINT, "maintenance"),
    FLAG(NODE_STATE_POWERING_DOWN, "powering_down"),
#ifdef NODE_STATE_POWER_SAVE /* up to 20.11 */
    FLAG(NODE_STATE_POWER_SAVE, "powered_down"),
    FLAG(NODE_STATE_POWER_UP, "powering_up"),
    FLAG(NODE_STATE_REBOOT, "reboot_requested"),
    FLAG(NODE_STATE_CANCEL_REBOOT, "reboot_canceled"),
    FLAG(NODE_STATE_DYNAMIC, "dynamic_future"),
#else
    FLAG(NODE_STATE_POWERED_DOWN, "powered_down"),
    FLAG(NODE_STATE_POWERING_UP, "powering_up"),
    FLAG(NODE_STATE_POWER_DOWN, "power_down"),
    FLAG(NODE_STATE_POWER_UP, "power_up"),
    FLAG(NODE_STATE_REBOOT_REQUESTED, "reboot_requested"),
    FLAG(NODE_STATE_REBOOT_CANCEL, "reboot_canceled"),
#endif
#ifdef NODE_STATE_DYNAMIC_FUTURE
    FLAG(NODE_STATE_DYNAMIC_FUTURE, "dynamic_future"),
#endif
#ifdef NODE_STATE_REBOOT_ISSUED
    FLAG(NODE_STATE_REBOOT_ISSUED, "reboot_issued"),
#endif
#ifdef NODE_STATE_PLANNED
    FLAG(NODE_STATE_PLANNED, "planned"),
#endif
#ifdef NODE_STATE_INVALID_REG
    FLAG(NODE_STATE_INVALID_REG, "invalid_reg"),
#endif
#ifdef NODE_STATE_POWER_DRAIN
    FLAG(NODE_STATE_POWER_DRAIN, "power_drain"),
#endif
#ifdef NODE_STATE_DYNAMIC_NORM
    FLAG(NODE_STATE_DYNAMIC_NORM, "dynamic_norm"),
#endif
#ifdef NODE_STATE_BLOCKED
    FLAG(NODE_STATE_BLOCKED, "blocked"),
#endif
};

static struct node_state node_state_of(uint32_t slurms)
{
    uint32_t base = slurms & NODE_STATE_BASE;
    struct node_state state = NODE_STATE_NONE;

    if (base < NODE_BASES)
        state.base = (uint8_t)base; /* the numbers are the same */
    for (size_t i = 0; i < COUNT(node_flags); i++)
        if (slurms & node_flags[i].bit)
            node_state_add(&state, node_flags[i].word);
    return state;
}

/* Tasks of an array that wait together are one record, with a list of them. */
static void fill_array(struct job *job, const slurm_job_info_t *from)
{
    bool is_list = from->array_task_str && from->array_task_str[0];

    job->array_task_id = MODEL_UNKNOWN_U32;
    job->tasks = 1;
    if (!is_list && from->array_task_id == NO_VAL)
        return;
    job->array_job_id = from->array_job_id;
    if (!is_list)
        job->array_task_id = number32(from->array_task_id);
    else if (from->array_bitmap)
        job->tasks = (uint32_t)slurm_bit_set_count(from->array_bitmap);
}

static void fill_resources(struct helper *helper, struct job *job, const slurm_job_info_t *from)
{
    const char *words = from->tres_alloc_str ? from->tres_alloc_str : from->tres_req_str;
    struct tres tres;

    tres_parse(str_of(words), &tres);
    job->tres = text(helper, words);
    job->memory_bytes = tres.memory_bytes;
    job->cpus = tres.cpus < UINT32_MAX ? (uint32_t)tres.cpus : number32(from->num_cpus);
    job->node_count = tres.nodes < UINT32_MAX ? (uint32_t)tres.nodes : number32(from->num_nodes);
}

static void fill_job(struct helper *helper, struct job *job, const slurm_job_info_t *from,
                     time_t now)
{
    bool is_endless = from->time_limit == INFINITE && from->end_time > now;

    *job = (struct job){
        .id = from->job_id,
        .het_job_id = from->het_job_id,
        .het_offset = from->het_job_id ? from->het_job_offset : 0,
        .user_id = from->user_id,
        .restarts = from->restart_cnt,
        .state = job_state_of(from->job_state),
        .user = from->user_name ? name(helper, from->user_name) : 0,
        .account = name(helper, from->account),
        .qos = name(helper, from->qos),
        .name = symbols_put(&helper->section->symbols, str_of(from->name)),
        .reservation = name(helper, from->resv_name),
        .licenses = text(helper, from->licenses),
        .features = text(helper, from->features),
        .partition = name(helper, from->partition),
        .reason =
            text(helper, from->state_desc ? from->state_desc : reason_word(from->state_reason)),
        .nodes = text(helper, from->nodes),
        .alloc_node = name(helper, from->alloc_node),
        .time_limit_minutes = number32(from->time_limit),
        .priority = from->priority,
        .submit_time = moment(from->submit_time),
        .eligible_time = moment(from->eligible_time),
        .start_time = moment(from->start_time),
        .end_time = is_endless ? 0 : moment(from->end_time),
    };
    if (!job->user)
        job->user = user(helper, from->user_id);
    fill_array(job, from);
    fill_resources(helper, job, from);
}

static void fill_gpus(struct helper *helper, struct job_gpus_reader *reader, const struct job *job,
                      const slurm_job_info_t *from)
{
    job_gpus_begin(reader);
    for (size_t i = 0; from->gres_detail_str && i < from->gres_detail_cnt; i++)
        job_gpus_detail(reader, str_of(from->gres_detail_str[i]));
    if (!job_gpus_end(reader, job))
        snprintf(helper->warning, sizeof(helper->warning),
                 "the GPUs of job %u are not told: its gres_detail does not fit its nodes",
                 job->id);
}

/* The total lists also those GRES that are not in AccountingStorageTRES. */
static void fill_gres(struct helper *helper, struct job *job, const slurm_job_info_t *from)
{
    struct job_gres gres;

    if (!from->gres_total)
        return;
    job_gres_begin(&gres, helper->section);
    job_gres_add(&gres, str_of(from->gres_total));
    job->gres = job_gres_end(&gres, job);
}

static void fill_jobs(struct helper *helper, const job_info_msg_t *all)
{
    time_t now = (time_t)(clock_wall(&clock_real) / NS_PER_SEC);
    struct jobs *jobs = &helper->section->jobs;
    struct job_gpus_reader gpus;

    jobs->job = ARENA_ARRAY(&helper->section->arena, struct job, all->record_count);
    job_gpus_init(&gpus, helper->section);
    for (size_t i = 0; i < all->record_count; i++) {
        struct job *job = &jobs->job[jobs->n];

        if (!all->job_array[i].job_id)
            continue;
        fill_job(helper, job, &all->job_array[i], now);
        fill_gpus(helper, &gpus, job, &all->job_array[i]);
        fill_gres(helper, job, &all->job_array[i]);
        jobs->n++;
    }
    job_gpus_free(&gpus);
}

/* SHOW_DETAIL is what makes Slurm tell which GPUs a job holds. */
static int tell_jobs(struct helper *helper, int64_t since, struct err *err)
{
    job_info_msg_t *all = NULL;
    int code = LOAD(slurm_load_jobs, err, since, &all, SHOW_ALL | SHOW_LOCAL | SHOW_DETAIL);

    if (code < 0)
        return code;
    helper->last_update = all->last_update;
    for (size_t i = 0; i < all->record_count; i++)
        ask_name(helper, all->job_array[i].user_id);
    settle_names(helper);
    fill_jobs(helper, all);
    slurm_free_job_info_msg(all);
    return 0;
}

/* What is not allocated on a node that takes no job is not idle, as sinfo says. */
static void fill_usage(struct node *node, const node_info_t *from)
{
#if HAVE_NODE_ALLOC_CPUS
    uint16_t cpus = from->alloc_cpus;
    uint64_t memory = from->alloc_memory;
#else
    uint16_t cpus = 0;
    uint64_t memory = 0;

    slurm_get_select_nodeinfo(from->select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED,
                              &cpus);
    slurm_get_select_nodeinfo(from->select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC,
                              NODE_STATE_ALLOCATED, &memory);
#endif
    uint32_t rest = cpus < from->cpus ? (uint32_t)from->cpus - cpus : 0;
    bool is_usable = node->state.base != NODE_DOWN && !(from->node_state & NODE_STATE_DRAIN);

    node->cpus = from->cpus;
    node->cpus_alloc = cpus;
    node->cpus_idle = is_usable ? rest : 0;
    node->cpus_other = is_usable ? 0 : rest;
    node->memory_alloc_bytes = mebibytes(memory);
}

static void fill_node(struct helper *helper, struct node *node, const node_info_t *from)
{
    *node = (struct node){
        .name = name(helper, from->name),
        .state = node_state_of(from->node_state),
        .cpu_load = from->cpu_load == NO_VAL ? (double)NAN : from->cpu_load / 100.0,
        .memory_bytes = mebibytes(from->real_memory),
        .memory_free_bytes = mebibytes(from->free_mem),
        .gres = text(helper, from->gres),
        .gres_used = text(helper, from->gres_used),
        .features = text(helper, from->features),
        .version = text(helper, from->version),
        .reason = text(helper, from->reason),
        .weight = from->weight,
    };
#if HAVE_NODE_RESV_NAME
    node->reservation = name(helper, from->resv_name);
#endif
    if (node->reason) {
        node->reason_user = from->reason_uid == NO_VAL ? 0 : user(helper, from->reason_uid);
        node->reason_time = moment(from->reason_time);
    }
    fill_usage(node, from);
}

/* Some nodes have no name: they are hidden from us. Gives each node's place in the section, or
 * UINT32_MAX. */
static uint32_t *fill_nodes(struct helper *helper, const node_info_msg_t *all)
{
    struct nodes *nodes = &helper->section->nodes;
    uint32_t *places = heap_array(all->record_count + 1, sizeof(*places));

    for (size_t i = 0; i < all->record_count; i++)
        if (all->node_array[i].reason && all->node_array[i].reason_uid != NO_VAL)
            ask_name(helper, all->node_array[i].reason_uid);
    settle_names(helper);
    nodes->node = ARENA_ARRAY(&helper->section->arena, struct node, all->record_count);
    for (size_t i = 0; i < all->record_count; i++) {
        const node_info_t *from = &all->node_array[i];

        places[i] = UINT32_MAX;
        if (!from->name || !from->name[0])
            continue;
        places[i] = (uint32_t)nodes->n;
        fill_node(helper, &nodes->node[nodes->n++], from);
    }
    return places;
}

/* Calls `visit` for each node of each partition; node_inx has pairs of first and last, and ends
 * with -1. */
static void visit_members(struct nodes *nodes, const partition_info_msg_t *all,
                          const uint32_t *places, size_t n_places,
                          void (*visit)(struct nodes *nodes, struct node *node, uint32_t partition))
{
    for (uint32_t p = 0; p < all->record_count; p++) {
        const int32_t *range = all->partition_array[p].node_inx;

        for (; range && range[0] >= 0 && range[1] >= 0; range += 2)
            for (size_t i = (size_t)range[0]; i <= (size_t)range[1] && i < n_places; i++)
                if (places[i] != UINT32_MAX)
                    visit(nodes, &nodes->node[places[i]], p);
    }
}

static void count_member(struct nodes *nodes, struct node *node, uint32_t partition)
{
    (void)partition;
    node->n_partitions++;
    nodes->n_membership++;
}

static void add_member(struct nodes *nodes, struct node *node, uint32_t partition)
{
    nodes->membership[node->first_partition + node->n_partitions++] = partition;
}

static void fill_partitions(struct helper *helper, const partition_info_msg_t *all,
                            const uint32_t *places, size_t n_places)
{
    struct nodes *nodes = &helper->section->nodes;
    uint32_t next = 0;

    nodes->partition = ARENA_ARRAY(&helper->section->arena, struct partition, all->record_count);
    for (size_t i = 0; i < all->record_count; i++) {
        const partition_info_t *from = &all->partition_array[i];

        nodes->partition[nodes->n_partitions++] = (struct partition){
            .name = name(helper, from->name),
            .is_default = from->flags & PART_FLAG_DEFAULT,
            .is_up = from->state_up == PARTITION_UP,
            .time_limit_minutes = number32(from->max_time),
        };
    }
    visit_members(nodes, all, places, n_places, count_member);
    for (size_t i = 0; i < nodes->n; i++) {
        nodes->node[i].first_partition = next;
        next += nodes->node[i].n_partitions;
        nodes->node[i].n_partitions = 0;
    }
    nodes->membership = ARENA_ARRAY(&helper->section->arena, uint32_t, nodes->n_membership);
    visit_members(nodes, all, places, n_places, add_member);
}

/* Both are needed whole as soon as one has changed: the other is then asked for again. */
static int load_nodes(int64_t since, node_info_msg_t **nodes, partition_info_msg_t **partitions,
                      struct err *err)
{
    uint16_t flags = SHOW_ALL | SHOW_DETAIL | SHOW_MIXED | SHOW_LOCAL;
    int of_nodes = LOAD(slurm_load_node, err, since, nodes, flags);
    int of_partitions;

    if (of_nodes < 0 && of_nodes != -EALREADY)
        return of_nodes;
    of_partitions = LOAD(slurm_load_partitions, err, since, partitions, SHOW_ALL | SHOW_LOCAL);
    if (of_nodes == -EALREADY && of_partitions == 0)
        of_nodes = LOAD(slurm_load_node, err, 0, nodes, flags);
    else if (of_nodes == 0 && of_partitions == -EALREADY)
        of_partitions = LOAD(slurm_load_partitions, err, 0, partitions, SHOW_ALL | SHOW_LOCAL);
    return of_nodes < 0 && of_nodes != -EALREADY ? of_nodes : of_partitions;
}

static int tell_nodes(struct helper *helper, int64_t since, struct err *err)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;
    int code = load_nodes(since, &nodes, &partitions, err);

    if (code == 0) {
        uint32_t *places = fill_nodes(helper, nodes);

        fill_partitions(helper, partitions, places, nodes->record_count);
        free(places);
        helper->last_update = nodes->last_update < partitions->last_update
                                  ? nodes->last_update
                                  : partitions->last_update;
    }
    if (nodes)
        slurm_free_node_info_msg(nodes);
    if (partitions)
        slurm_free_partition_info_msg(partitions);
    return code;
}

static void fill_reservation(struct helper *helper, struct reservation *to, reserve_info_t *from,
                             time_t now)
{
    char *flags = slurm_reservation_flags_string(from);

    *to = (struct reservation){
        .name = name(helper, from->name),
        .nodes = text(helper, from->node_list),
        .users = name(helper, from->users),
        .accounts = name(helper, from->accounts),
        .partition = name(helper, from->partition),
        .flags = text(helper, flags),
        .tres = text(helper, from->tres_str),
        .node_count = number32(from->node_cnt),
        .core_count = number32(from->core_cnt),
        .is_active = from->start_time <= now && from->end_time >= now,
        .start_time = moment(from->start_time),
        .end_time = moment(from->end_time),
    };
    slurm_xfree((void **)&flags);
}

/* Always all of them: whether one is active changes with the time alone. */
static int tell_reservations(struct helper *helper, int64_t since, struct err *err)
{
    struct reservations *reservations = &helper->section->reservations;
    time_t now = (time_t)(clock_wall(&clock_real) / NS_PER_SEC);
    reserve_info_msg_t *all = NULL;
    int code = LOAD(slurm_load_reservations, err, 0, &all);

    (void)since;
    if (code < 0)
        return code;
    reservations->reservation =
        ARENA_ARRAY(&helper->section->arena, struct reservation, all->record_count);
    for (size_t i = 0; i < all->record_count; i++)
        if (all->reservation_array[i].name)
            fill_reservation(helper, &reservations->reservation[reservations->n++],
                             &all->reservation_array[i], now);
    slurm_free_reservation_info_msg(all);
    return 0;
}

/* What a licence server has said last is told of its licences only. */
static void fill_license(struct helper *helper, struct license *license,
                         const slurm_license_info_t *from)
{
    *license = (struct license){
        .name = name(helper, from->name),
        .is_remote = from->remote,
        .total = from->total,
        .used = from->in_use,
        .free = from->available,
        .reserved = from->reserved,
        .last_consumed = MODEL_UNKNOWN_U64,
        .last_deficit = MODEL_UNKNOWN_U64,
    };
#if HAVE_LICENSE_LAST_CONSUMED
    if (from->remote) {
        license->last_consumed = from->last_consumed;
        license->last_deficit = from->last_deficit;
    }
#endif
}

static int tell_licenses(struct helper *helper, int64_t since, struct err *err)
{
    struct licenses *licenses = &helper->section->licenses;
    license_info_msg_t *all = NULL;
    int code = LOAD(slurm_load_licenses, err, since, &all, SHOW_ALL);

    if (code < 0)
        return code;
    helper->last_update = all->last_update;
    licenses->license = ARENA_ARRAY(&helper->section->arena, struct license, all->num_lic);
    for (size_t i = 0; i < all->num_lic; i++)
        fill_license(helper, &licenses->license[licenses->n++], &all->lic_array[i]);
    slurm_free_license_info_msg(all);
    return 0;
}

#if HAVE_STATS_EXITS
/* In the order of slurm.h's enums, in the words of sdiag. */
static const struct str main_exits[] = {
    STR_INIT("End of job queue"),        STR_INIT("Hit default_queue_depth"),
    STR_INIT("Hit sched_max_job_start"), STR_INIT("Blocked on licenses"),
    STR_INIT("Hit max_rpc_cnt"),         STR_INIT("Timeout (max_sched_time)"),
};
static const struct str backfill_exits[] = {
    STR_INIT("End of job queue"),
    STR_INIT("Hit bf_max_job_start"),
    STR_INIT("Hit bf_max_job_test"),
    STR_INIT("System state changed"),
    STR_INIT("Hit table size limit (bf_node_space_size)"),
    STR_INIT("Timeout (bf_max_time)"),
};

static void fill_exits(struct helper *helper, struct cycle *cycle, const struct str *words,
                       size_t n_words, const uint32_t *counts, size_t n)
{
    cycle->exit = ARENA_ARRAY(&helper->section->arena, struct cycle_exit, n);
    for (size_t i = 0; i < n && i < n_words; i++)
        cycle->exit[cycle->n_exits++] = (struct cycle_exit){
            .reason = symbols_put(&helper->section->symbols, words[i]),
            .count = counts[i],
        };
}
#endif

static uint64_t mean(uint64_t sum, uint64_t count)
{
    return count ? sum / count : MODEL_UNKNOWN_U64;
}

static void fill_cycles(struct helper *helper, struct diag *diag,
                        const stats_info_response_msg_t *from)
{
    uint64_t n = from->bf_cycle_counter;

    diag->main = (struct cycle){
        .count = from->schedule_cycle_counter,
        .last_usec = from->schedule_cycle_last,
        .max_usec = from->schedule_cycle_max,
        .mean_usec = mean(from->schedule_cycle_sum, from->schedule_cycle_counter),
        .total_usec = from->schedule_cycle_sum,
        .last_depth = MODEL_UNKNOWN_U64,
        .mean_depth = mean(from->schedule_cycle_depth, from->schedule_cycle_counter),
        .total_depth = from->schedule_cycle_depth,
        .last_queue = from->schedule_queue_len,
        .mean_queue = MODEL_UNKNOWN_U64,
        .total_queue = MODEL_UNKNOWN_U64,
    };
    diag->backfill = (struct cycle){
        .count = n,
        .last_usec = from->bf_cycle_last,
        .max_usec = from->bf_cycle_max,
        .mean_usec = mean(from->bf_cycle_sum, n),
        .total_usec = from->bf_cycle_sum,
        .last_depth = from->bf_last_depth,
        .mean_depth = mean(from->bf_depth_sum, n),
        .total_depth = from->bf_depth_sum,
        .last_queue = from->bf_queue_len,
        .mean_queue = mean(from->bf_queue_len_sum, n),
        .total_queue = from->bf_queue_len_sum,
    };
    diag->backfill_is_active = from->bf_active;
    diag->backfilled_jobs = from->bf_backfilled_jobs;
    diag->backfilled_jobs_since_reset = from->bf_last_backfilled_jobs;
    diag->backfilled_het_components = from->bf_backfilled_het_jobs;
    diag->backfill_last_depth_tried = from->bf_last_depth_try;
    diag->backfill_mean_depth_tried = mean(from->bf_depth_try_sum, n);
    diag->backfill_total_depth_tried = from->bf_depth_try_sum;
    diag->backfill_last_table = from->bf_table_size;
    diag->backfill_mean_table = mean(from->bf_table_size_sum, n);
    diag->backfill_total_table = from->bf_table_size_sum;
    diag->backfill_last_time = moment(from->bf_when_last_cycle);
#if HAVE_STATS_EXITS
    fill_exits(helper, &diag->main, main_exits, COUNT(main_exits), from->schedule_exit,
               from->schedule_exit_cnt);
    fill_exits(helper, &diag->backfill, backfill_exits, COUNT(backfill_exits), from->bf_exit,
               from->bf_exit_cnt);
#else
    (void)helper;
#endif
}

/* As sdiag calls it: by its number if no name is known. */
static symbol message(struct helper *helper, unsigned number)
{
    char digits[NUM_U64_MAX];

    for (size_t i = 0; i < COUNT(message_names); i++)
        if (message_names[i].number == number)
            return symbols_put(&helper->section->symbols, message_names[i].name);
    return symbols_put(&helper->section->symbols,
                       (struct str){ digits, num_put_u64(digits, number) });
}

static void fill_rpcs(struct helper *helper, struct diag *diag,
                      const stats_info_response_msg_t *from)
{
    struct arena *arena = &helper->section->arena;

    diag->n_rpc_by_type = from->rpc_type_size;
    diag->rpc_by_type = ARENA_ARRAY(arena, struct rpc, diag->n_rpc_by_type);
    for (size_t i = 0; i < diag->n_rpc_by_type; i++) {
        struct rpc *rpc = &diag->rpc_by_type[i];

        *rpc = (struct rpc){
            .name = message(helper, from->rpc_type_id[i]),
            .id = from->rpc_type_id[i],
            .count = from->rpc_type_cnt[i],
            .total_usec = from->rpc_type_time[i],
        };
        rpc->queued = rpc->dropped = rpc->last_cycle = rpc->max_cycle = MODEL_UNKNOWN_U64;
#if HAVE_STATS_QUEUES
        if (from->rpc_queue_enabled) {
            rpc->queued = from->rpc_type_queued[i];
            rpc->dropped = from->rpc_type_dropped[i];
            rpc->last_cycle = from->rpc_type_cycle_last[i];
            rpc->max_cycle = from->rpc_type_cycle_max[i];
        }
#endif
    }
    for (size_t i = 0; i < from->rpc_user_size; i++)
        ask_name(helper, from->rpc_user_id[i]);
    settle_names(helper);
    diag->n_rpc_by_user = from->rpc_user_size;
    diag->rpc_by_user = ARENA_ARRAY(arena, struct rpc, diag->n_rpc_by_user);
    for (size_t i = 0; i < diag->n_rpc_by_user; i++)
        diag->rpc_by_user[i] = (struct rpc){
            .name = user(helper, from->rpc_user_id[i]),
            .id = from->rpc_user_id[i],
            .count = from->rpc_user_cnt[i],
            .total_usec = from->rpc_user_time[i],
            .queued = MODEL_UNKNOWN_U64,
            .dropped = MODEL_UNKNOWN_U64,
            .last_cycle = MODEL_UNKNOWN_U64,
            .max_cycle = MODEL_UNKNOWN_U64,
        };
    diag->n_rpc_pending = from->rpc_queue_type_count;
    diag->rpc_pending = ARENA_ARRAY(arena, struct pending_rpc, diag->n_rpc_pending);
    for (size_t i = 0; i < diag->n_rpc_pending; i++)
        diag->rpc_pending[i] = (struct pending_rpc){
            .name = message(helper, from->rpc_queue_type_id[i]),
            .id = from->rpc_queue_type_id[i],
            .count = from->rpc_queue_count[i],
        };
}

static int tell_diag(struct helper *helper, int64_t since, struct err *err)
{
    stats_info_request_msg_t request = { .command_id = STAT_COMMAND_GET };
    struct diag *diag = &helper->section->diag;
    stats_info_response_msg_t *from = NULL;
    int code = LOAD(slurm_get_statistics, err, &from, &request);

    (void)since;
    if (code < 0)
        return code;
    *diag = (struct diag){
        .time = moment(from->req_time),
        .reset_time = moment(from->req_time_start),
        .server_threads = from->server_thread_count,
        .agent_queue = from->agent_queue_size,
        .agent_count = from->agent_count,
        .agent_threads = from->agent_thread_count,
        .dbd_agent_queue = from->dbd_agent_queue_size,
        .clock_usec = from->gettimeofday_latency,
        .jobs_submitted = from->jobs_submitted,
        .jobs_started = from->jobs_started,
        .jobs_completed = from->jobs_completed,
        .jobs_canceled = from->jobs_canceled,
        .jobs_failed = from->jobs_failed,
        .jobs_pending = from->jobs_pending,
        .jobs_running = from->jobs_running,
        .jobs_time = moment(from->job_states_ts),
    };
    fill_cycles(helper, diag, from);
    fill_rpcs(helper, diag, from);
    slurm_free_stats_response_msg(from);
    return 0;
}

static int load_manager(uint32_t flags, assoc_mgr_info_msg_t **ret, struct err *err)
{
    assoc_mgr_info_request_msg_t request = { .flags = flags };

    return LOAD(slurm_load_assoc_mgr_info, err, &request, ret);
}

static void free_configuration(slurm_conf_t *configuration)
{
#if HAVE_SLURM_FREE_CONF
    slurm_free_conf(configuration);
#else
    slurm_free_ctl_conf(configuration);
#endif
}

/* With a tree, and in 26.05 without one as well, slurmctld has it of users only. Before, what
 * sshare computes with PriorityFlags=NO_FAIR_TREE. */
static double fair_share(const slurmdb_assoc_rec_t *from, const slurm_conf_t *configuration)
{
    double shares = from->usage->shares_norm, usage = real(from->usage->usage_efctv);

    if (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0) ||
        configuration->priority_flags & PRIORITY_FLAGS_FAIR_TREE)
        return from->user ? real(from->usage->fs_factor) : (double)NAN;
    if (isnan(usage) || !(shares > 0))
        return 0;
    return pow(2, -(usage / shares / configuration->fs_dampening_factor));
}

/* Before the first calculation, and without a tree, it is 0; truly 0 is that of those without
 * shares only. */
static double share_level(const slurmdb_assoc_rec_t *from)
{
    double level = real(from->usage->level_fs), shares = real(from->usage->shares_norm);

    if (from->shares_raw == SLURMDB_FS_USE_PARENT || (level == 0 && !(shares == 0)))
        return (double)NAN;
    return level;
}

static void fill_share(struct helper *helper, struct share *share, const slurmdb_assoc_rec_t *from,
                       const slurm_conf_t *configuration)
{
    bool is_root = !from->user && !(from->parent_acct && from->parent_acct[0]);

    *share = (struct share){
        .account = name(helper, from->acct),
        .user = name(helper, from->user),
        .partition = name(helper, from->partition),
        .is_parent = from->shares_raw == SLURMDB_FS_USE_PARENT,
        .raw_shares = is_root || from->shares_raw == SLURMDB_FS_USE_PARENT ||
                              number32(from->shares_raw) == MODEL_UNKNOWN_U32
                          ? MODEL_UNKNOWN_U64
                          : from->shares_raw,
        .normalised_shares = real(from->usage->shares_norm),
        .raw_usage = floor(real(from->usage->usage_raw)),
        .normalised_usage = real(from->usage->usage_norm),
        .effective_usage = real(from->usage->usage_efctv),
        .factor = fair_share(from, configuration),
        .level = share_level(from),
    };
    share->parent = share->user ? share->account : name(helper, from->parent_acct);
    share_round(share);
}

static int tell_shares(struct helper *helper, int64_t since, struct err *err)
{
    struct shares *shares = &helper->section->shares;
    const slurmdb_assoc_rec_t *from;
    slurm_conf_t *configuration = NULL;
    assoc_mgr_info_msg_t *all = NULL;
    int code = LOAD(slurm_load_ctl_conf, err, 0, &configuration);

    (void)since;
    if (code == 0)
        code = load_manager(ASSOC_MGR_INFO_FLAG_ASSOC, &all, err);
    if (code == 0) {
        size_t most = all->assoc_list ? (size_t)slurm_list_count(all->assoc_list) : 0;

        shares->share = ARENA_ARRAY(&helper->section->arena, struct share, most);
        for (EACH(from, all->assoc_list))
            if (from->usage && from->acct && shares->n < most)
                fill_share(helper, &shares->share[shares->n++], from, configuration);
        slurm_free_assoc_mgr_info_msg(all);
    }
    if (configuration)
        free_configuration(configuration);
    return code;
}

/* The limits of one association or QOS as they are collected. */
struct limits {
    struct helper *helper;
    const assoc_mgr_info_msg_t *manager;
    struct limit *limit;
    size_t n, room;
};

static void add_limit(struct limits *limits, enum limit_kind kind, symbol tres, uint64_t limit,
                      uint64_t used, uint64_t unit)
{
    struct limit one = { .kind = (uint8_t)kind, .tres = tres };

    if (limit == MODEL_UNKNOWN_U64 || __builtin_mul_overflow(limit, unit, &one.limit))
        return;
    if (used == MODEL_UNKNOWN_U64 || __builtin_mul_overflow(used, unit, &one.used))
        one.used = MODEL_UNKNOWN_U64;
    limits->limit = heap_grow(limits->limit, limits->n, &limits->room, sizeof(*limits->limit));
    limits->limit[limits->n++] = one;
}

static void add_count(struct limits *limits, enum limit_kind kind, uint32_t limit, uint64_t used)
{
    add_limit(limits, kind, 0, limit == INFINITE || limit == NO_VAL ? MODEL_UNKNOWN_U64 : limit,
              used, 1);
}

/* scontrol tells hundredths of a minute. */
static void add_wall(struct limits *limits, uint32_t minutes, double used_seconds)
{
    double told = nearbyint(used_seconds / MINUTE * 100) / 100;

    if (minutes != INFINITE && minutes != NO_VAL)
        add_limit(limits, LIMIT_WALL_SECONDS, 0, (uint64_t)minutes * MINUTE,
                  told >= 0 && told < 1e15 ? (uint64_t)llround(told * MINUTE) : MODEL_UNKNOWN_U64,
                  1);
}

/* One array by TRES. `divisor` makes of what is used what the limit is in. */
static void add_tres(struct limits *limits, enum limit_kind kind, const uint64_t *limit,
                     const uint64_t *used, uint64_t divisor, uint64_t unit)
{
    const assoc_mgr_info_msg_t *manager = limits->manager;

    for (size_t i = 0; limit && i < manager->tres_cnt; i++) {
        bool is_memory = str_eq(str_of(manager->tres_names[i]), STR("mem"));
        symbol tres;

        if (number64(limit[i]) == MODEL_UNKNOWN_U64)
            continue;
        tres = symbols_put(&limits->helper->section->symbols, str_of(manager->tres_names[i]));
        add_limit(limits, kind, tres, limit[i], used ? used[i] / divisor : MODEL_UNKNOWN_U64,
                  unit * (is_memory ? MEBIBYTE : 1));
    }
}

/* Whole minutes are told, of what is kept in seconds. */
static void add_used_time(struct limits *limits, const uint64_t *limit, const long double *used)
{
    uint64_t *seconds = heap_alloc((limits->manager->tres_cnt + 1) * sizeof(*seconds));

    for (size_t i = 0; used && i < limits->manager->tres_cnt; i++)
        seconds[i] = used[i] >= 0 && used[i] < 0x1p63L ? (uint64_t)used[i] : 0;
    add_tres(limits, LIMIT_TRES_SECONDS, limit, seconds, MINUTE, MINUTE);
    free(seconds);
}

static void add_association(struct limits *limits, const slurmdb_assoc_rec_t *from)
{
    const slurmdb_assoc_usage_t *usage = from->usage;
    uint64_t jobs = from->user ? usage->used_jobs : MODEL_UNKNOWN_U64;
    uint64_t submitted = from->user ? usage->used_submit_jobs : MODEL_UNKNOWN_U64;

    add_count(limits, LIMIT_JOBS, from->grp_jobs, usage->used_jobs);
    add_count(limits, LIMIT_SUBMITTED, from->grp_submit_jobs, usage->used_submit_jobs);
    add_wall(limits, from->grp_wall, usage->grp_used_wall);
    add_tres(limits, LIMIT_TRES, from->grp_tres_ctld, usage->grp_used_tres, 1, 1);
    add_used_time(limits, from->grp_tres_mins_ctld, usage->usage_tres_raw);
    add_tres(limits, LIMIT_TRES_RUN_SECONDS, from->grp_tres_run_mins_ctld,
             usage->grp_used_tres_run_secs, MINUTE, MINUTE);
    add_count(limits, LIMIT_USER_JOBS, from->max_jobs, jobs);
    add_count(limits, LIMIT_USER_SUBMITTED, from->max_submit_jobs, submitted);
}

/* What the one who uses most of a QOS has; nothing until somebody has used it. */
static void add_user_limits(struct limits *limits, const slurmdb_qos_rec_t *from)
{
    uint64_t *most = heap_alloc((limits->manager->tres_cnt + 1) * sizeof(*most));
    uint64_t jobs = 0, submitted = 0;
    const slurmdb_used_limits_t *used;
    bool is_used = false, has_tres = false;

    for (EACH(used, from->usage->user_limit_list)) {
        is_used = true;
        jobs = used->jobs > jobs ? used->jobs : jobs;
        submitted = used->submit_jobs > submitted ? used->submit_jobs : submitted;
        for (size_t i = 0; used->tres && i < limits->manager->tres_cnt; i++) {
            has_tres = true;
            most[i] = used->tres[i] > most[i] ? used->tres[i] : most[i];
        }
    }
    if (is_used) {
        add_count(limits, LIMIT_USER_JOBS, from->max_jobs_pu, jobs);
        add_count(limits, LIMIT_USER_SUBMITTED, from->max_submit_jobs_pu, submitted);
        add_tres(limits, LIMIT_USER_TRES, from->max_tres_pu_ctld, has_tres ? most : NULL, 1, 1);
    }
    free(most);
}

static void add_qos(struct limits *limits, const slurmdb_qos_rec_t *from)
{
    const slurmdb_qos_usage_t *usage = from->usage;

    add_count(limits, LIMIT_JOBS, from->grp_jobs, usage->grp_used_jobs);
    add_count(limits, LIMIT_SUBMITTED, from->grp_submit_jobs, usage->grp_used_submit_jobs);
    add_wall(limits, from->grp_wall, usage->grp_used_wall);
    add_tres(limits, LIMIT_TRES, from->grp_tres_ctld, usage->grp_used_tres, 1, 1);
    add_used_time(limits, from->grp_tres_mins_ctld, usage->usage_tres_raw);
    add_tres(limits, LIMIT_TRES_RUN_SECONDS, from->grp_tres_run_mins_ctld,
             usage->grp_used_tres_run_secs, MINUTE, MINUTE);
    add_user_limits(limits, from);
}

static void fill_associations(struct limits *limits, struct associations *all)
{
    const assoc_mgr_info_msg_t *manager = limits->manager;
    struct helper *helper = limits->helper;
    size_t most = manager->assoc_list ? (size_t)slurm_list_count(manager->assoc_list) : 0;
    const slurmdb_assoc_rec_t *from;

    all->association = ARENA_ARRAY(&helper->section->arena, struct association, most);
    for (EACH(from, manager->assoc_list)) {
        struct association *association = &all->association[all->n];
        size_t first = limits->n;

        if (!from->usage || !from->acct || all->n == most)
            continue;
        add_association(limits, from);
        *association = (struct association){
            .account = name(helper, from->acct),
            .user = name(helper, from->user),
            .partition = name(helper, from->partition),
            .first_limit = (uint32_t)first,
            .n_limits = (uint32_t)(limits->n - first),
        };
        all->n++;
    }
}

static void fill_qos(struct limits *limits, struct associations *all)
{
    const assoc_mgr_info_msg_t *manager = limits->manager;
    size_t most = manager->qos_list ? (size_t)slurm_list_count(manager->qos_list) : 0;
    const slurmdb_qos_rec_t *from;

    all->qos = ARENA_ARRAY(&limits->helper->section->arena, struct qos, most);
    for (EACH(from, manager->qos_list)) {
        size_t first = limits->n;

        if (!from->usage || !from->name || all->n_qos == most)
            continue;
        add_qos(limits, from);
        all->qos[all->n_qos++] = (struct qos){
            .name = name(limits->helper, from->name),
            .first_limit = (uint32_t)first,
            .n_limits = (uint32_t)(limits->n - first),
        };
    }
}

static int tell_associations(struct helper *helper, int64_t since, struct err *err)
{
    struct associations *all = &helper->section->associations;
    assoc_mgr_info_msg_t *manager = NULL;
    int code = load_manager(ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS, &manager, err);
    struct limits limits = { .helper = helper, .manager = manager };

    (void)since;
    if (code < 0)
        return code;
    fill_associations(&limits, all);
    fill_qos(&limits, all);
    all->limit = limits.limit;
    all->n_limits = limits.n;
    arena_adopt(&helper->section->arena, limits.limit);
    slurm_free_assoc_mgr_info_msg(manager);
    return 0;
}

static const struct {
    uint32_t bit;
    enum private_data what;
} private_bits[] = {
    { PRIVATE_DATA_ACCOUNTS, PRIVATE_ACCOUNTS },
    { PRIVATE_DATA_EVENTS, PRIVATE_EVENTS },
    { PRIVATE_DATA_JOBS, PRIVATE_JOBS },
    { PRIVATE_DATA_NODES, PRIVATE_NODES },
    { PRIVATE_DATA_PARTITIONS, PRIVATE_PARTITIONS },
    { PRIVATE_DATA_RESERVATIONS, PRIVATE_RESERVATIONS },
    { PRIVATE_DATA_USAGE, PRIVATE_USAGE },
    { PRIVATE_DATA_USERS, PRIVATE_USERS },
};

/* Nothing is hidden from operators. What cannot be found out about us is a warning's business. */
static void look_up_level(struct helper *helper, struct config *config)
{
    const slurmdb_user_rec_t *from;
    assoc_mgr_info_msg_t *manager = NULL;
    struct err err = { 0 };

    if (load_manager(ASSOC_MGR_INFO_FLAG_USERS, &manager, &err) < 0) {
        snprintf(helper->warning, sizeof(helper->warning), "%s", err.text);
        return;
    }
    for (EACH(from, manager->user_list)) {
        if (from->uid != config->user_id || config->user)
            continue;
        config->user = name(helper, from->name);
        if (from->admin_level >= SLURMDB_ADMIN_OPERATOR)
            config->hidden = 0;
    }
    slurm_free_assoc_mgr_info_msg(manager);
}

static int tell_config(struct helper *helper, int64_t since, struct err *err)
{
    struct config *config = &helper->section->config;
    slurm_conf_t *from = NULL;
    int code = LOAD(slurm_load_ctl_conf, err, 0, &from);

    (void)since;
    if (code < 0)
        return code;
    *config = (struct config){
        .cluster = name(helper, from->cluster_name),
        .version = name(helper, from->version),
        .user_id = geteuid(),
    };
    for (size_t i = 0; i < COUNT(private_bits); i++)
        if (from->private_data & private_bits[i].bit)
            config->private |= 1u << private_bits[i].what;
    if (config->user_id != 0 && config->user_id != from->slurm_user_id)
        config->hidden = config->private;
    free_configuration(from);
    if (config->hidden)
        look_up_level(helper, config);
    return 0;
}

static int (*const tellers[KINDS])(struct helper *helper, int64_t since, struct err *err) = {
    [KIND_NODES] = tell_nodes,
    [KIND_JOBS] = tell_jobs,
    [KIND_RESERVATIONS] = tell_reservations,
    [KIND_LICENSES] = tell_licenses,
    [KIND_DIAG] = tell_diag,
    [KIND_SHARES] = tell_shares,
    [KIND_ASSOCIATIONS] = tell_associations,
    [KIND_CONFIG] = tell_config,
};

static int answer(struct helper *helper, struct wire_request request, struct err *err)
{
    struct err trouble = { 0 };
    int code;

    if (!tellers[request.kind])
        return wire_write_error(STDIN_FILENO, EOPNOTSUPP, STR("libslurm does not tell that"), err);
    helper->section = section_new(request.kind);
    helper->last_update = 0;
    helper->warning[0] = '\0';
    code = tellers[request.kind](helper, request.since, &trouble);
    if (code == 0)
        code = wire_write_section(STDIN_FILENO, helper->section, helper->last_update,
                                  str_of(helper->warning), err);
    else if (code == -EALREADY)
        code = wire_write_unchanged(STDIN_FILENO, err);
    else
        code = wire_write_error(STDIN_FILENO, trouble.code, str_of(trouble.text), err);
    helper->section = section_unref(helper->section);
    return code;
}

int main(void)
{
    struct helper helper = { 0 };
    struct wire_request request;
    struct err err = { 0 };

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also while libslurm does not come back */
    /* Tasks of arrays are counted: to write a list of them whole may take libslurm many seconds. */
    setenv("SLURM_BITSTR_LEN", "64", 1);
    /* Before slurm_init(), which may take a minute, or exit. */
    if (wire_write_hello(STDIN_FILENO, STR(RELEASE), &err) < 0 ||
        wire_read_request(STDIN_FILENO, &request, &err) < 0)
        return EXIT_SUCCESS;
    slurm_init(NULL);
    helper.users = users_new(&users_system, &clock_real);
    while (answer(&helper, request, &err) == 0 &&
           wire_read_request(STDIN_FILENO, &request, &err) == 0)
        ;
    return err.code == EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}
