/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of Slurm 20.11 to 26.05 for states, long, short and old, and the order in which one
 * word wins over another: job_state_string() and node_state_string() of Slurm's
 * slurm_protocol_defs.c. */
#include "model/state.h"

/* The bases, then the flags that win over a base, the stronger one first. */
const struct str job_state_words[] = {
    [JOB_PENDING] = STR_INIT("PENDING"),
    [JOB_RUNNING] = STR_INIT("RUNNING"),
    [JOB_SUSPENDED] = STR_INIT("SUSPENDED"),
    [JOB_COMPLETED] = STR_INIT("COMPLETED"),
    [JOB_CANCELLED] = STR_INIT("CANCELLED"),
    [JOB_FAILED] = STR_INIT("FAILED"),
    [JOB_TIMEOUT] = STR_INIT("TIMEOUT"),
    [JOB_NODE_FAIL] = STR_INIT("NODE_FAIL"),
    [JOB_PREEMPTED] = STR_INIT("PREEMPTED"),
    [JOB_BOOT_FAIL] = STR_INIT("BOOT_FAIL"),
    [JOB_DEADLINE] = STR_INIT("DEADLINE"),
    [JOB_OUT_OF_MEMORY] = STR_INIT("OUT_OF_MEMORY"),
    [JOB_BASE_UNKNOWN] = STR_INIT("UNKNOWN"), /* Slurm prints "?" */
    STR_INIT("COMPLETING"),
    STR_INIT("STAGE_OUT"),
    STR_INIT("CONFIGURING"),
    STR_INIT("EXPEDITING"),
    STR_INIT("RESIZING"),
    STR_INIT("REQUEUED"),
    STR_INIT("REQUEUE_FED"),
    STR_INIT("REQUEUE_HOLD"),
    STR_INIT("SPECIAL_EXIT"),
    STR_INIT("STOPPED"),
    STR_INIT("REVOKED"),
    STR_INIT("RESV_DEL_HOLD"),
    STR_INIT("SIGNALING"),
};
const size_t n_job_state_words = COUNT(job_state_words);

/* Of the words above that are flags, in their order. */
static const enum job_flag job_word_flags[] = {
    JOB_COMPLETING, JOB_STAGE_OUT,     JOB_CONFIGURING,  JOB_EXPEDITING,   JOB_RESIZING,
    JOB_REQUEUED,   JOB_REQUEUE_FED,   JOB_REQUEUE_HOLD, JOB_SPECIAL_EXIT, JOB_STOPPED,
    JOB_REVOKED,    JOB_RESV_DEL_HOLD, JOB_SIGNALING,
};
_Static_assert(COUNT(job_word_flags) == COUNT(job_state_words) - JOB_BASES, "one flag a word");

/* Short words, and flags that only the JSON lists and job_state_string_complete() name. */
static const struct {
    struct str word;
    enum job_base base;
    uint32_t flag;
} job_aliases[] = {
    { STR_INIT("R"), JOB_RUNNING, 0 },
    { STR_INIT("PD"), JOB_PENDING, 0 },
    { STR_INIT("CG"), JOB_BASE_UNKNOWN, JOB_COMPLETING },
    { STR_INIT("CF"), JOB_BASE_UNKNOWN, JOB_CONFIGURING },
    { STR_INIT("CD"), JOB_COMPLETED, 0 },
    { STR_INIT("CA"), JOB_CANCELLED, 0 },
    { STR_INIT("F"), JOB_FAILED, 0 },
    { STR_INIT("TO"), JOB_TIMEOUT, 0 },
    { STR_INIT("S"), JOB_SUSPENDED, 0 },
    { STR_INIT("NF"), JOB_NODE_FAIL, 0 },
    { STR_INIT("PR"), JOB_PREEMPTED, 0 },
    { STR_INIT("BF"), JOB_BOOT_FAIL, 0 },
    { STR_INIT("DL"), JOB_DEADLINE, 0 },
    { STR_INIT("OOM"), JOB_OUT_OF_MEMORY, 0 },
    { STR_INIT("SO"), JOB_BASE_UNKNOWN, JOB_STAGE_OUT },
    { STR_INIT("RS"), JOB_BASE_UNKNOWN, JOB_RESIZING },
    { STR_INIT("RQ"), JOB_BASE_UNKNOWN, JOB_REQUEUED },
    { STR_INIT("RF"), JOB_BASE_UNKNOWN, JOB_REQUEUE_FED },
    { STR_INIT("RH"), JOB_BASE_UNKNOWN, JOB_REQUEUE_HOLD },
    { STR_INIT("SE"), JOB_BASE_UNKNOWN, JOB_SPECIAL_EXIT },
    { STR_INIT("ST"), JOB_BASE_UNKNOWN, JOB_STOPPED },
    { STR_INIT("RV"), JOB_BASE_UNKNOWN, JOB_REVOKED },
    { STR_INIT("RD"), JOB_BASE_UNKNOWN, JOB_RESV_DEL_HOLD },
    { STR_INIT("SI"), JOB_BASE_UNKNOWN, JOB_SIGNALING },
    { STR_INIT("LAUNCH_FAILED"), JOB_BASE_UNKNOWN, JOB_LAUNCH_FAILED },
    { STR_INIT("POWER_UP_NODE"), JOB_BASE_UNKNOWN, JOB_POWER_UP_NODE },
    { STR_INIT("RECONFIG_FAIL"), JOB_BASE_UNKNOWN, JOB_RECONFIG_FAIL },
    { STR_INIT("UPDATE_DB"), JOB_BASE_UNKNOWN, JOB_UPDATE_DB },
};

static void add_job_meaning(struct job_state *state, enum job_base base, uint32_t flag)
{
    if (base != JOB_BASE_UNKNOWN)
        state->base = (uint8_t)base;
    state->flags |= flag;
}

bool job_state_add(struct job_state *state, struct str word)
{
    const struct str by = STR("CANCELLED by "); /* sacct names who did it */

    if (str_eq_nocase(str_head(word, by.n), by))
        word = job_state_words[JOB_CANCELLED];
    for (size_t i = 0; i < n_job_state_words; i++) {
        if (i == JOB_BASE_UNKNOWN || !str_eq_nocase(word, job_state_words[i]))
            continue;
        if (i < JOB_BASES)
            add_job_meaning(state, (enum job_base)i, 0);
        else
            add_job_meaning(state, JOB_BASE_UNKNOWN, job_word_flags[i - JOB_BASES]);
        return true;
    }
    for (size_t i = 0; i < COUNT(job_aliases); i++) {
        if (str_eq_nocase(word, job_aliases[i].word)) {
            add_job_meaning(state, job_aliases[i].base, job_aliases[i].flag);
            return true;
        }
    }
    return false;
}

static void put_word(struct buf *buf, struct str word, bool *is_first)
{
    if (!*is_first)
        buf_byte(buf, '+');
    buf_put(buf, word);
    *is_first = false;
}

void job_state_put(struct buf *buf, struct job_state state)
{
    uint32_t left = state.flags;
    bool is_first = true;

    if (state.base != JOB_BASE_UNKNOWN || !left)
        put_word(buf, job_state_words[state.base], &is_first);
    for (size_t i = 0; i < COUNT(job_word_flags); i++) {
        if (left & job_word_flags[i])
            put_word(buf, job_state_words[JOB_BASES + i], &is_first);
        left &= ~(uint32_t)job_word_flags[i];
    }
    for (size_t i = 0; i < COUNT(job_aliases); i++)
        if (left & job_aliases[i].flag)
            put_word(buf, job_aliases[i].word, &is_first);
}

bool job_state_parse(struct str text, struct job_state *ret)
{
    struct job_state state = JOB_STATE_NONE;
    bool is_known = true;

    for (struct str rest = text; rest.p;) {
        struct str word = str_cut(&rest, '+');

        is_known &=
            job_state_add(&state, word) || str_eq_nocase(word, job_state_words[JOB_BASE_UNKNOWN]);
    }
    *ret = state;
    return is_known;
}

size_t job_state_index(struct job_state state)
{
    for (size_t i = 0; i < COUNT(job_word_flags); i++)
        if (state.flags & job_word_flags[i])
            return JOB_BASES + i;
    return state.base;
}

struct str job_state_word(struct job_state state)
{
    return job_state_words[job_state_index(state)];
}

bool job_holds_resources(struct job_state state)
{
    /* squeue's text hides RUNNING behind these. */
    const uint32_t of_a_running_job = JOB_CONFIGURING | JOB_RESIZING | JOB_SIGNALING | JOB_STOPPED;

    if (state.flags & JOB_COMPLETING)
        return true;
    if (state.base == JOB_BASE_UNKNOWN)
        return state.flags & of_a_running_job;
    return state.base == JOB_RUNNING || state.base == JOB_SUSPENDED;
}

bool job_holds_cpus(struct job_state state)
{
    return job_holds_resources(state) && state.base != JOB_SUSPENDED;
}

bool job_requests_resources(struct job_state state)
{
    /* squeue's text shows these instead of PENDING. */
    const uint32_t of_a_pending_job = JOB_EXPEDITING | JOB_REQUEUED | JOB_REQUEUE_FED |
                                      JOB_REQUEUE_HOLD | JOB_SPECIAL_EXIT | JOB_RESV_DEL_HOLD;

    if (job_holds_resources(state) || state.flags & (JOB_REVOKED | JOB_STAGE_OUT))
        return false;
    if (state.base == JOB_BASE_UNKNOWN)
        return state.flags & of_a_pending_job;
    return state.base == JOB_PENDING;
}

static const struct str node_base_words[NODE_BASES] = {
    [NODE_UNKNOWN] = STR_INIT("unknown"), [NODE_DOWN] = STR_INIT("down"),
    [NODE_IDLE] = STR_INIT("idle"),       [NODE_ALLOCATED] = STR_INIT("allocated"),
    [NODE_ERROR] = STR_INIT("error"),     [NODE_MIXED] = STR_INIT("mixed"),
    [NODE_FUTURE] = STR_INIT("future"),
};

/* In the order of Slurm's StateComplete; the last three it never prints there. */
static const struct {
    struct str word;
    enum node_flag flag;
} node_flags[] = {
    { STR_INIT("blocked"), NODE_BLOCKED },
    { STR_INIT("cloud"), NODE_CLOUD },
    { STR_INIT("completing"), NODE_COMPLETING },
    { STR_INIT("drain"), NODE_DRAIN },
    { STR_INIT("dynamic_future"), NODE_DYNAMIC_FUTURE },
    { STR_INIT("dynamic_norm"), NODE_DYNAMIC_NORM },
    { STR_INIT("external"), NODE_EXTERNAL },
    { STR_INIT("invalid_reg"), NODE_INVALID_REG },
    { STR_INIT("fail"), NODE_FAIL },
    { STR_INIT("maintenance"), NODE_MAINTENANCE },
    { STR_INIT("power_down"), NODE_POWER_DOWN },
    { STR_INIT("power_up"), NODE_POWER_UP },
    { STR_INIT("powered_down"), NODE_POWERED_DOWN },
    { STR_INIT("reboot_requested"), NODE_REBOOT_REQUESTED },
    { STR_INIT("reboot_issued"), NODE_REBOOT_ISSUED },
    { STR_INIT("reserved"), NODE_RESERVED },
    { STR_INIT("resume"), NODE_RESUME },
    { STR_INIT("not_responding"), NODE_NOT_RESPONDING },
    { STR_INIT("planned"), NODE_PLANNED },
    { STR_INIT("powering_up"), NODE_POWERING_UP },
    { STR_INIT("powering_down"), NODE_POWERING_DOWN },
    { STR_INIT("power_drain"), NODE_POWER_DRAIN },
    { STR_INIT("reboot_canceled"), NODE_REBOOT_CANCEL },
    { STR_INIT("undrain"), NODE_UNDRAIN },
};

/* Short, old and composite words. Their base is taken only where none was named.
 * "draining" and "failing" say that jobs run there, not whether they fill the node: ALLOCATED, as
 * Slurm itself says to those who do not ask for MIXED. "drained" says that none runs: IDLE, though
 * a node that went down after it was drained is told by the same word; only StateComplete tells. */
static const struct {
    struct str word;
    enum node_base base;
    uint32_t flags;
} node_aliases[] = {
    { STR_INIT("alloc"), NODE_ALLOCATED, 0 },
    { STR_INIT("mix"), NODE_MIXED, 0 },
    { STR_INIT("futr"), NODE_FUTURE, 0 },
    { STR_INIT("unk"), NODE_UNKNOWN, 0 },
    { STR_INIT("invalid"), NODE_UNKNOWN, 0 },
    { STR_INIT("drained"), NODE_IDLE, NODE_DRAIN },
    { STR_INIT("draining"), NODE_ALLOCATED, NODE_DRAIN },
    { STR_INIT("drng"), NODE_ALLOCATED, NODE_DRAIN },
    { STR_INIT("failing"), NODE_ALLOCATED, NODE_FAIL },
    { STR_INIT("failg"), NODE_ALLOCATED, NODE_FAIL },
    { STR_INIT("comp"), NODE_UNKNOWN, NODE_COMPLETING },
    { STR_INIT("maint"), NODE_UNKNOWN, NODE_MAINTENANCE },
    { STR_INIT("resv"), NODE_UNKNOWN, NODE_RESERVED },
    { STR_INIT("plnd"), NODE_UNKNOWN, NODE_PLANNED },
    { STR_INIT("block"), NODE_UNKNOWN, NODE_BLOCKED },
    { STR_INIT("inval"), NODE_UNKNOWN, NODE_INVALID_REG },
    { STR_INIT("reboot"), NODE_UNKNOWN, NODE_REBOOT_REQUESTED },
    { STR_INIT("boot"), NODE_UNKNOWN, NODE_REBOOT_REQUESTED },
    { STR_INIT("cancel_reboot"), NODE_UNKNOWN, NODE_REBOOT_CANCEL },
    { STR_INIT("canc_r"), NODE_UNKNOWN, NODE_REBOOT_CANCEL },
    { STR_INIT("pow_dn"), NODE_UNKNOWN, NODE_POWER_DOWN },
    { STR_INIT("pow_up"), NODE_UNKNOWN, NODE_POWER_UP },
    { STR_INIT("powered_dn"), NODE_UNKNOWN, NODE_POWERED_DOWN },
    { STR_INIT("powring_dn"), NODE_UNKNOWN, NODE_POWERING_DOWN },
    { STR_INIT("resm"), NODE_UNKNOWN, NODE_RESUME },
    { STR_INIT("ext"), NODE_UNKNOWN, NODE_EXTERNAL },
    { STR_INIT("power"), NODE_UNKNOWN, NODE_POWERED_DOWN },      /* 20.11 */
    { STR_INIT("power_save"), NODE_UNKNOWN, NODE_POWERED_DOWN }, /* 20.11 */
    { STR_INIT("dynamic"), NODE_UNKNOWN, NODE_DYNAMIC_FUTURE },  /* 20.11 */
    { STR_INIT("perfctrs"), NODE_IDLE, 0 }, /* up to 23.11, on Cray: idle, its counters in use */
    { STR_INIT("npc"), NODE_IDLE, 0 },
};

static const struct {
    char suffix;
    enum node_flag flag;
} node_suffixes[] = {
    { '*', NODE_NOT_RESPONDING },   { '~', NODE_POWERED_DOWN },  { '#', NODE_POWERING_UP },
    { '!', NODE_POWER_DOWN },       { '%', NODE_POWERING_DOWN }, { '$', NODE_MAINTENANCE },
    { '@', NODE_REBOOT_REQUESTED }, { '^', NODE_REBOOT_ISSUED }, { '-', NODE_PLANNED },
};

static uint32_t take_suffixes(struct str *word)
{
    uint32_t flags = 0;

    while (word->n) {
        size_t i = 0;

        while (i < COUNT(node_suffixes) && node_suffixes[i].suffix != word->p[word->n - 1])
            i++;
        if (i == COUNT(node_suffixes))
            break;
        flags |= node_suffixes[i].flag;
        word->n--;
    }
    return flags;
}

static bool add_node_word(struct node_state *state, struct str word)
{
    for (size_t i = 0; i < NODE_BASES; i++) {
        if (str_eq_nocase(word, node_base_words[i])) {
            state->base = (uint8_t)i;
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(node_flags); i++) {
        if (str_eq_nocase(word, node_flags[i].word)) {
            state->flags |= node_flags[i].flag;
            return true;
        }
    }
    for (size_t i = 0; i < COUNT(node_aliases); i++) {
        if (str_eq_nocase(word, node_aliases[i].word)) {
            if (state->base == NODE_UNKNOWN)
                state->base = (uint8_t)node_aliases[i].base;
            state->flags |= node_aliases[i].flags;
            return true;
        }
    }
    return false;
}

bool node_state_add(struct node_state *state, struct str word)
{
    struct node_state meaning = NODE_STATE_NONE;
    uint32_t flags = take_suffixes(&word);

    meaning.base = state->base;
    if (!add_node_word(&meaning, word))
        return false;
    /* "reboot" is still to come, "reboot^" is under way and no longer to come. */
    if (flags & NODE_REBOOT_ISSUED)
        meaning.flags &= ~(uint32_t)NODE_REBOOT_REQUESTED;
    state->base = meaning.base;
    state->flags |= meaning.flags | flags;
    return true;
}

bool node_state_parse(struct str text, struct node_state *ret)
{
    /* Standing alone, these words hide a base that can only be IDLE: Slurm prints another word for
     * a node in use or down. (For "drain" see "drained".) "completing", "reboot" and "fail" may
     * stand for two bases: theirs stays unknown. */
    const uint32_t idle_alone =
        NODE_RESERVED | NODE_MAINTENANCE | NODE_PLANNED | NODE_BLOCKED | NODE_DRAIN;
    struct node_state state = NODE_STATE_NONE;
    struct str rest = text, first = str_cut(&rest, '+');
    bool is_known = node_state_add(&state, first);

    if (!rest.p) {
        struct node_state alone = NODE_STATE_NONE;

        take_suffixes(&first);
        if (add_node_word(&alone, first) && alone.base == NODE_UNKNOWN && alone.flags & idle_alone)
            state.base = NODE_IDLE;
    }
    while (rest.p) {
        struct str word = str_cut(&rest, '+');

        if (!word.n && !rest.p)
            state.flags |= NODE_COMPLETING; /* "allocated+" */
        else
            is_known &= node_state_add(&state, word);
    }
    *ret = state;
    return is_known;
}

bool node_takes_jobs(struct node_state state)
{
    const unsigned bases = 1 << NODE_DOWN | 1 << NODE_ERROR | 1 << NODE_FUTURE | 1 << NODE_UNKNOWN;
    /* POWERED_DOWN is not one of these: Slurm gives such a node to a job and powers it up. */
    const uint32_t flags = NODE_DRAIN | NODE_FAIL | NODE_NOT_RESPONDING | NODE_MAINTENANCE |
                           NODE_POWERING_DOWN | NODE_POWER_DOWN | NODE_POWER_DRAIN |
                           NODE_REBOOT_ISSUED | NODE_INVALID_REG | NODE_BLOCKED | NODE_EXTERNAL;

    return !(bases >> state.base & 1) && !(state.flags & flags);
}

struct str node_base_word(enum node_base base)
{
    return node_base_words[base];
}

struct str node_flag_word(enum node_flag flag)
{
    for (size_t i = 0; i < COUNT(node_flags); i++)
        if (node_flags[i].flag == flag)
            return node_flags[i].word;
    return STR("");
}

void node_state_put(struct buf *buf, struct node_state state)
{
    buf_put(buf, node_base_words[state.base]);
    for (size_t i = 0; i < COUNT(node_flags); i++) {
        if (state.flags & node_flags[i].flag) {
            buf_byte(buf, '+');
            buf_put(buf, node_flags[i].word);
        }
    }
}

enum node_word {
    WORD_IDLE,
    WORD_MIXED,
    WORD_ALLOCATED,
    WORD_COMPLETING,
    WORD_DOWN,
    WORD_DRAINED,
    WORD_DRAINING,
    WORD_FAIL,
    WORD_FAILING,
    WORD_MAINT,
    WORD_RESERVED,
    WORD_PLANNED,
    WORD_BLOCKED,
    WORD_REBOOT,
    WORD_CANCEL_REBOOT,
    WORD_POWER_UP,
    WORD_POWERING_UP,
    WORD_POWER_DOWN,
    WORD_POWERING_DOWN,
    WORD_POWERED_DOWN,
    WORD_CLOUD,
    WORD_EXTERNAL,
    WORD_DYNAMIC_FUTURE,
    WORD_DYNAMIC_NORM,
    WORD_FUTURE,
    WORD_INVAL,
    WORD_RESUME,
    WORD_UNDRAIN,
    WORD_ERROR,
    WORD_UNKNOWN,
};

const struct str node_state_words[] = {
    [WORD_IDLE] = STR_INIT("idle"),
    [WORD_MIXED] = STR_INIT("mixed"),
    [WORD_ALLOCATED] = STR_INIT("allocated"),
    [WORD_COMPLETING] = STR_INIT("completing"),
    [WORD_DOWN] = STR_INIT("down"),
    [WORD_DRAINED] = STR_INIT("drained"),
    [WORD_DRAINING] = STR_INIT("draining"),
    [WORD_FAIL] = STR_INIT("fail"),
    [WORD_FAILING] = STR_INIT("failing"),
    [WORD_MAINT] = STR_INIT("maint"),
    [WORD_RESERVED] = STR_INIT("reserved"),
    [WORD_PLANNED] = STR_INIT("planned"),
    [WORD_BLOCKED] = STR_INIT("blocked"),
    [WORD_REBOOT] = STR_INIT("reboot"),
    [WORD_CANCEL_REBOOT] = STR_INIT("cancel_reboot"),
    [WORD_POWER_UP] = STR_INIT("power_up"),
    [WORD_POWERING_UP] = STR_INIT("powering_up"),
    [WORD_POWER_DOWN] = STR_INIT("power_down"),
    [WORD_POWERING_DOWN] = STR_INIT("powering_down"),
    [WORD_POWERED_DOWN] = STR_INIT("powered_down"),
    [WORD_CLOUD] = STR_INIT("cloud"),
    [WORD_EXTERNAL] = STR_INIT("external"),
    [WORD_DYNAMIC_FUTURE] = STR_INIT("dynamic_future"),
    [WORD_DYNAMIC_NORM] = STR_INIT("dynamic_norm"),
    [WORD_FUTURE] = STR_INIT("future"),
    [WORD_INVAL] = STR_INIT("inval"),
    [WORD_RESUME] = STR_INIT("resume"),
    [WORD_UNDRAIN] = STR_INIT("undrain"),
    [WORD_ERROR] = STR_INIT("error"),
    [WORD_UNKNOWN] = STR_INIT("unknown"),
};
const size_t n_node_state_words = COUNT(node_state_words);

#define BASE(base) (1u << (base))

enum {
    ANY_BASE = BASE(NODE_BASES) - 1,
    IN_USE = BASE(NODE_ALLOCATED) | BASE(NODE_MIXED),
    NOT_IN_USE = ANY_BASE & ~IN_USE,
    /* An idle node that Slurm marks by a suffix is called idle, not reserved or planned. */
    SUFFIXED = NODE_POWERING_UP | NODE_POWERING_DOWN | NODE_POWERED_DOWN | NODE_POWER_DOWN |
               NODE_NOT_RESPONDING,
};

#define NOTHING_BUT(flag) BASE(NODE_UNKNOWN), flag, ~(uint32_t)(flag)

/* The first row that fits gives the word. */
static const struct {
    enum node_word word;
    uint32_t bases;     /* one of these */
    uint32_t all, none; /* with all of these flags, and none of those */
} node_rules[] = {
    { WORD_INVAL, ANY_BASE, NODE_INVALID_REG, 0 },
    { WORD_MAINT, NOT_IN_USE & ~BASE(NODE_DOWN), NODE_MAINTENANCE, NODE_DRAIN },
    { WORD_REBOOT, NOT_IN_USE, NODE_REBOOT_REQUESTED, 0 },
    { WORD_REBOOT, NOT_IN_USE, NODE_REBOOT_ISSUED, 0 },
    { WORD_DRAINING, IN_USE, NODE_DRAIN, 0 },
    { WORD_DRAINING, ANY_BASE, NODE_DRAIN | NODE_COMPLETING, 0 },
    { WORD_DRAINED, ANY_BASE, NODE_DRAIN, 0 },
    { WORD_FAILING, BASE(NODE_ALLOCATED), NODE_FAIL, 0 },
    { WORD_FAILING, BASE(NODE_MIXED), NODE_FAIL, NODE_CALLED_FAIL },
    { WORD_FAILING, ANY_BASE, NODE_FAIL | NODE_COMPLETING, 0 },
    { WORD_FAIL, ANY_BASE, NODE_FAIL, 0 },
    { WORD_CANCEL_REBOOT, NOTHING_BUT(NODE_REBOOT_CANCEL) },
    { WORD_CLOUD, NOTHING_BUT(NODE_CLOUD) },
    { WORD_EXTERNAL, NOTHING_BUT(NODE_EXTERNAL) },
    { WORD_POWER_DOWN, NOTHING_BUT(NODE_POWER_DOWN) },
    { WORD_POWER_UP, NOTHING_BUT(NODE_POWER_UP) },
    { WORD_POWERING_DOWN, NOTHING_BUT(NODE_POWERING_DOWN) },
    { WORD_POWERED_DOWN, NOTHING_BUT(NODE_POWERED_DOWN) },
    { WORD_POWERING_UP, NOTHING_BUT(NODE_POWERING_UP) },
    { WORD_UNDRAIN, NOTHING_BUT(NODE_UNDRAIN) },
    { WORD_DYNAMIC_FUTURE, NOTHING_BUT(NODE_DYNAMIC_FUTURE) },
    { WORD_DYNAMIC_NORM, NOTHING_BUT(NODE_DYNAMIC_NORM) },
    { WORD_DOWN, BASE(NODE_DOWN), 0, 0 },
    { WORD_ALLOCATED, BASE(NODE_ALLOCATED), 0, 0 },
    { WORD_COMPLETING, ANY_BASE, NODE_COMPLETING, 0 },
    { WORD_RESERVED, BASE(NODE_IDLE), NODE_RESERVED, SUFFIXED },
    { WORD_BLOCKED, BASE(NODE_IDLE), NODE_BLOCKED, SUFFIXED },
    { WORD_PLANNED, BASE(NODE_IDLE), NODE_PLANNED, SUFFIXED },
    { WORD_IDLE, BASE(NODE_IDLE), 0, 0 },
    { WORD_MIXED, BASE(NODE_MIXED), 0, 0 },
    { WORD_FUTURE, BASE(NODE_FUTURE), 0, 0 },
    { WORD_RESUME, ANY_BASE, NODE_RESUME, 0 },
    { WORD_ERROR, BASE(NODE_ERROR), 0, 0 }, /* Slurm prints "?" */
};

/* "24.11.5" is 241105; 0: unknown. */
static uint32_t release_number(struct str version)
{
    uint32_t number = 0;

    for (int part = 0; part < 3; part++) {
        uint32_t value = 0;
        size_t n = 0;

        while (n < version.n && n < 2 && version.p[n] >= '0' && version.p[n] <= '9')
            value = value * 10 + (uint32_t)(version.p[n++] - '0');
        if (part < 2 && (!n || n == version.n || version.p[n] != '.'))
            return 0;
        number = number * 100 + value;
        version = str_skip(version, n + 1);
    }
    return number;
}

void node_state_set_release(struct node_state *state, struct str version)
{
    uint32_t number = release_number(version);

    if (state->base == NODE_MIXED && state->flags & NODE_FAIL && number && number < 251101)
        state->flags |= NODE_CALLED_FAIL;
}

size_t node_state_index(struct node_state state)
{
    for (size_t i = 0; i < COUNT(node_rules); i++)
        if (node_rules[i].bases & BASE(state.base) &&
            (state.flags & node_rules[i].all) == node_rules[i].all &&
            !(state.flags & node_rules[i].none))
            return node_rules[i].word;
    return WORD_UNKNOWN;
}

struct str node_state_word(struct node_state state)
{
    return node_state_words[node_state_index(state)];
}
