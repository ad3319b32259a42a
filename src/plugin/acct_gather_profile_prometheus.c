/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's plugin acct_gather_profile/prometheus: what Slurm calls by name, in the order of
 * src/interfaces/acct_gather_profile.c of its sources. It takes samples in slurmstepd and leaves
 * the telling to a thread (plugin/sender.h). slurmctld and slurmd load it too, and only read
 * options. */
#include <slurm/slurm_version.h>

#include "src/common/slurm_xlator.h"
#include "src/common/assoc_mgr.h"
#include "src/common/read_config.h"
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/acct_gather_profile.h"
#else
#include "src/common/slurm_acct_gather_profile.h"
#endif
#include "src/slurmd/slurmstepd/slurmstepd_job.h"

/* Slurm's headers have members that are called as a banned function is: for this file the
 * compiler's -include was held back by defining what guards it. */
#undef SONDE_BANNED_H
#include "base/banned.h"

#include "base/num.h"
#include "plugin/conf.h"
#include "plugin/sender.h"

#include <limits.h>

/* Slurm finds them by name; its headers do not declare them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 11, 0)
typedef List list_pointer;
#else
typedef list_t *list_pointer;
#endif

/* What the end of a step may wait for us; tests give it the time that a busy machine needs. */
#ifndef END_WITHIN_MS
#define END_WITHIN_MS 100
#endif

enum {
    FIELDS_MAX = 128,  /* of a dataset, as Slurm describes it */
    NOBODYS = INT_MAX, /* a dataset that is not kept. An error would be logged at each sample */
};

const char plugin_name[] = "sonde's profiling to Prometheus";
const char plugin_type[] = "acct_gather_profile/prometheus";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* For sonde admin plugin-check: a key that is not among these is fatal to Slurm's daemons. */
#define CONF_WORD(key, name) name " "
const char sonde_profile_keys[] = CONF_ALL(CONF_WORD);
#undef CONF_WORD

static struct {
    struct profile_conf conf;
    char why_off[300];              /* "" if the options are good */
    unsigned n_conf_sets;           /* that had any of our keys, and so all others' too */
    uint32_t running;               /* ACCT_GATHER_PROFILE_*: what of this step is sampled */
    const stepd_step_rec_t *record; /* Slurm's own, for as long as the step lasts */
    struct profile_step step;
    struct samples *samples; /* until fini: Slurm's threads may still add some after the end */
    struct sender *sender;
    bool was_started; /* or was tried to */
    bool is_child;    /* a forked one, which leaves everything alone */
} plugin = { .why_off = "acct_gather.conf was not read" };

/* Never as an error: what slurmstepd logs as one while tasks run is also written to their stderr,
 * and a receiver that is away is none of the user's business. */
static void log_sentence(bool is_error, const char *sentence)
{
    info("%s: %s%s", plugin_type, is_error ? "trouble: " : "", sentence);
}

int init(void)
{
    return SLURM_SUCCESS;
}

void acct_gather_profile_p_conf_options(s_p_options_t **full_options, int *full_options_cnt)
{
    /* All of them as text: a value that Slurm cannot read as a number is fatal to its daemons. */
    s_p_options_t options[CONF_KEYS + 1] = { 0 };

    for (int key = 0; key < CONF_KEYS; key++) {
        options[key].key = (char *)conf_names[key];
        options[key].type = S_P_STRING;
    }
    transfer_s_p_options(full_options, options, full_options_cnt);
}

/* Slurm 24.11 calls it twice: what is wrong is said once. */
void acct_gather_profile_p_conf_set(s_p_hashtbl_t *tbl)
{
    char *values[CONF_KEYS] = { NULL };
    char why[sizeof(plugin.why_off)] = "";
    bool has_any = false;

    for (int key = 0; tbl && key < CONF_KEYS; key++)
        has_any |= s_p_get_string(&values[key], conf_names[key], tbl);
    plugin.n_conf_sets += has_any;
    conf_read((const char *const *)values, &plugin.conf, why, sizeof(why));
    for (int key = 0; key < CONF_KEYS; key++)
        xfree(values[key]);
    if (why[0] && strcmp(why, plugin.why_off) != 0)
        error("%s: %s. Nothing is profiled.", plugin_type, why);
    memcpy(plugin.why_off, why, sizeof(why));
}

static void append_pair(list_pointer list, const char *name, const char *value)
{
    config_key_pair_t *pair = xmalloc(sizeof(*pair));

    pair->name = xstrdup(name);
    pair->value = xstrdup(value);
    list_append(list, pair);
}

/* For scontrol show config, which anybody may call. */
void acct_gather_profile_p_conf_values(list_pointer *data)
{
    char value[sizeof(plugin.conf.settings.url)];

    if (plugin.why_off[0]) {
        append_pair(*data, "ProfilePrometheusError", plugin.why_off);
        return;
    }
    for (int key = 0; key < CONF_KEYS; key++)
        if (conf_show(&plugin.conf, key, value, sizeof(value)))
            append_pair(*data, conf_names[key], value);
}

static const uint32_t slurm_bits[PROFILE_KINDS] = {
    [PROFILE_OF_TASK] = ACCT_GATHER_PROFILE_TASK,
    [PROFILE_OF_ENERGY] = ACCT_GATHER_PROFILE_ENERGY,
    [PROFILE_OF_NETWORK] = ACCT_GATHER_PROFILE_NETWORK,
    [PROFILE_OF_FILESYSTEM] = ACCT_GATHER_PROFILE_LUSTRE,
};

/* What is sampled of a job that has not said --profile. */
static uint32_t default_bits(void)
{
    uint32_t bits = 0;

    if (plugin.why_off[0])
        return ACCT_GATHER_PROFILE_NONE;
    for (int kind = 0; kind < PROFILE_KINDS; kind++)
        if (plugin.conf.kinds & 1u << kind)
            bits |= slurm_bits[kind];
    return bits ? bits : ACCT_GATHER_PROFILE_NONE;
}

void acct_gather_profile_p_get(enum acct_gather_profile_info info_type, void *data)
{
    switch (info_type) {
    case ACCT_GATHER_PROFILE_DIR:
        *(char **)data = NULL;
        break;
    case ACCT_GATHER_PROFILE_DEFAULT:
        *(uint32_t *)data = default_bits();
        break;
    case ACCT_GATHER_PROFILE_RUNNING:
        *(uint32_t *)data = plugin.running;
        break;
    }
}

bool acct_gather_profile_p_is_active(uint32_t type)
{
    return plugin.running > ACCT_GATHER_PROFILE_NONE &&
           (type == ACCT_GATHER_PROFILE_NOT_SET || (plugin.running & type));
}

static void copy(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

/* As Slurm's log writes it. */
static void write_step_id(const slurm_step_id_t *id, char *to, size_t room)
{
    static const struct {
        uint32_t id;
        const char *name;
    } special[] = {
        { SLURM_BATCH_SCRIPT, "batch" },
        { SLURM_EXTERN_CONT, "extern" },
#ifdef SLURM_INTERACTIVE_STEP
        { SLURM_INTERACTIVE_STEP, "interactive" },
#endif
    };
    char number[16], component[16] = "";
    const char *name = number;

    snprintf(number, sizeof(number), "%u", id->step_id);
    for (size_t i = 0; i < COUNT(special); i++)
        if (special[i].id == id->step_id)
            name = special[i].name;
    if (id->step_het_comp != NO_VAL)
        snprintf(component, sizeof(component), "+%u", id->step_het_comp);
    snprintf(to, room, "%.11s%.11s", name, component);
}

static bool has_gres(const char *name)
{
    slurmdb_tres_rec_t record = { .type = (char *)"gres", .name = (char *)name };

    return assoc_mgr_find_tres_pos(&record, false) >= 0;
}

static struct profile_quirks quirks(void)
{
    const char *interconnect = slurm_conf.acct_gather_interconnect_type;
    bool is_sysfs = interconnect && strstr(interconnect, "sysfs");

    return (struct profile_quirks){
        /* Since there is a sysfs (22.05); still so in 22.05.8, 23.11.4, 24.11.5 and 25.11.2. */
        .has_swapped_network = is_sysfs,
        .network_times = is_sysfs ? plugin.n_conf_sets : 1,
        .is_filesystem_cumulative = SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0),
        /* Asked as Slurm asks: since 23.11 slurmstepd is not told AccountingStorageTRES. */
        .has_gpu_fields = has_gres("gpumem") && has_gres("gpuutil"),
    };
}

/* Only slurmstepd calls it, before anything is sampled. */
int acct_gather_profile_p_node_step_start(stepd_step_rec_t *step)
{
    struct profile_quirks slurm;

    plugin.running = ACCT_GATHER_PROFILE_NONE;
    if (plugin.why_off[0])
        return SLURM_SUCCESS;
    if (step->profile != ACCT_GATHER_PROFILE_NOT_SET)
        plugin.running = step->profile;
    else
        plugin.running = default_bits();
    if (plugin.running == ACCT_GATHER_PROFILE_NONE)
        return SLURM_SUCCESS;

    slurm = quirks();
    plugin.samples = samples_new(&slurm);
    if (!plugin.samples) {
        log_sentence(true, "no memory for samples: this step is not profiled");
        plugin.running = ACCT_GATHER_PROFILE_NONE;
        return SLURM_SUCCESS;
    }
    plugin.record = step;
    plugin.step.job_id = step->step_id.job_id;
    write_step_id(&step->step_id, plugin.step.step, sizeof(plugin.step.step));
    copy(plugin.step.node, sizeof(plugin.step.node), step->node_name);
    copy(plugin.step.user, sizeof(plugin.step.user), step->user_name);
    copy(plugin.step.cluster, sizeof(plugin.step.cluster), slurm_conf.cluster_name);
    return SLURM_SUCCESS;
}

static void copy_variable(char *to, size_t room, char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            copy(to, room, *env + n + 1);
}

/* The sender is started here, as a batch step has no environment yet when it starts. */
int acct_gather_profile_p_task_start(uint32_t taskid)
{
    struct profile_step *step = &plugin.step;
    char why[300];

    (void)taskid;
    if (!plugin.samples || plugin.was_started)
        return SLURM_SUCCESS;
    plugin.was_started = true;
    copy_variable(step->account, sizeof(step->account), plugin.record->env, "SLURM_JOB_ACCOUNT");
    copy_variable(step->partition, sizeof(step->partition), plugin.record->env,
                  "SLURM_JOB_PARTITION");
    plugin.sender =
        sender_start(plugin.samples, step, &plugin.conf.settings, log_sentence, why, sizeof(why));
    if (!plugin.sender)
        log_sentence(true, why);
    return SLURM_SUCCESS;
}

int64_t acct_gather_profile_p_create_group(const char *name)
{
    (void)name;
    return 0;
}

static bool task_of(const char *dataset, uint32_t *ret)
{
    uint64_t number;

    if (!num_get_u64(str_of(dataset), &number) || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

/* Slurm takes a list, and does not tell which of them a sample is from: they count in different
 * ways. */
static bool has_several_networks(void)
{
    const char *interconnect = slurm_conf.acct_gather_interconnect_type;

    return interconnect && strchr(interconnect, ',');
}

int acct_gather_profile_p_create_dataset(const char *name, int64_t parent,
                                         acct_gather_profile_dataset_t *dataset)
{
    struct samples_field fields[FIELDS_MAX];
    enum profile_kind kind;
    uint32_t task = 0;
    size_t n = 0;
    int id;

    if (!plugin.samples || !name || !profile_kind_of(name, parent != NO_PARENT, &kind) ||
        (kind == PROFILE_OF_NETWORK && has_several_networks()) ||
        (kind == PROFILE_OF_TASK && !task_of(name, &task)))
        return NOBODYS;
    for (; dataset && dataset[n].type != PROFILE_FIELD_NOT_SET && n < FIELDS_MAX; n++)
        fields[n] = (struct samples_field){ .name = dataset[n].name,
                                            .is_double = dataset[n].type == PROFILE_FIELD_DOUBLE };
    id = samples_dataset(plugin.samples, kind, task, fields, n);
    return id < 0 ? NOBODYS : id;
}

int acct_gather_profile_p_add_sample_data(int dataset_id, void *data, time_t sample_time)
{
    (void)sample_time;
    if (plugin.samples)
        samples_add(plugin.samples, dataset_id, data);
    return SLURM_SUCCESS;
}

/* Between fork and exec: the thread is not here, and whatever it held is as it held it. */
void acct_gather_profile_p_child_forked(void)
{
    plugin.is_child = true;
}

int acct_gather_profile_p_task_end(pid_t taskpid)
{
    (void)taskpid;
    return SLURM_SUCCESS;
}

static void stop_sender(void)
{
    if (!plugin.sender || plugin.is_child)
        return;
    if (!sender_stop(plugin.sender, END_WITHIN_MS))
        log_sentence(true, "the step ends before its receiver has answered (what was told of this "
                           "step may stay there until it is found to be over)");
    plugin.sender = NULL;
}

int acct_gather_profile_p_node_step_end(void)
{
    stop_sender();
    return SLURM_SUCCESS;
}

/* Also where a step could not be launched, without any call between start and this. */
int fini(void)
{
    if (plugin.is_child)
        return SLURM_SUCCESS;
    stop_sender();
    plugin.samples = samples_free(plugin.samples);
    plugin.running = ACCT_GATHER_PROFILE_NOT_SET;
    plugin.was_started = false;
    return SLURM_SUCCESS;
}
