/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where names stand in the texts that a section has: scontrol(1) for reservations, squeue(1) for
 * reasons, slurm.conf(5) for TRES. What is not known to be Slurm's own is taken for a name. */
#include "source/pseudonyms.h"

#include "base/map.h"
#include "model/hostlist.h"

enum {
    HOSTS_MAX = 1 << 17,    /* of a list; a longer one is taken for one name */
    FIRST_USER_ID = 100000, /* less one */
};

enum names {
    NAMES_USER,
    NAMES_USER_ID,
    NAMES_ACCOUNT,
    NAMES_JOB,
    NAMES_NODE,
    NAMES_RESERVATION,
    NAMES_CLUSTER,
    NAMES_LICENSE,
    NAMES_REMARK,
    NAMES,
};

static const char *const words[NAMES] = {
    [NAMES_USER] = "user",       [NAMES_ACCOUNT] = "account",         [NAMES_JOB] = "job",
    [NAMES_NODE] = "node",       [NAMES_RESERVATION] = "reservation", [NAMES_CLUSTER] = "cluster",
    [NAMES_LICENSE] = "license", [NAMES_REMARK] = "remark",
};

/* What every site has: it tells nothing, and collectors or readers know it. */
static const struct {
    enum names names;
    struct str name;
} kept_names[] = {
    { NAMES_USER, STR_INIT("root") },
    { NAMES_USER, STR_INIT("slurm") },
    { NAMES_USER, STR_INIT("nobody") },
    { NAMES_ACCOUNT, STR_INIT("root") },
};
static const uint32_t kept_user_ids[] = { 0, 65534, MODEL_UNKNOWN_U32 };

/* What Slurm itself gives as the reason of a job or a node, between commas; spaces may be
 * underscores. The words of a job's reason that stand alone need not be here.
 * slurmctld's job_scheduler.c, node_scheduler.c, node_mgr.c. */
static const struct str slurms_words[] = {
    STR_INIT("UnavailableNodes"),
    STR_INIT("Reserved for maintenance"),
    STR_INIT("May be reserved for other job"),
    STR_INIT("Nodes required for job are DOWN"),
    STR_INIT("DRAINED or reserved for jobs in higher priority partitions"),
    STR_INIT("job requeued in held state"),
    STR_INIT("launch failed requeued held"),
    STR_INIT("launch failure limit exceeded requeued held"),
    STR_INIT("user env retrieval failed requeued held"),
    STR_INIT("Not responding"),
    STR_INIT("Kill task failed"),
    STR_INIT("Prolog error"),
    STR_INIT("Epilog error"),
    STR_INIT("Reboot ASAP"),
};

struct pseudonyms {
    struct arena arena;
    struct map maps[NAMES]; /* the place of a name in its map is its number, less one */
};

struct pseudonyms *pseudonyms_new(void)
{
    struct pseudonyms *pseudonyms = heap_alloc(sizeof(*pseudonyms));

    for (int i = 0; i < NAMES; i++)
        map_init(&pseudonyms->maps[i], &pseudonyms->arena);
    return pseudonyms;
}

struct pseudonyms *pseudonyms_free(struct pseudonyms *pseudonyms)
{
    if (pseudonyms) {
        for (int i = 0; i < NAMES; i++)
            map_free(&pseudonyms->maps[i]);
        arena_clear(&pseudonyms->arena);
        free(pseudonyms);
    }
    return NULL;
}

uint32_t pseudonyms_user_id(struct pseudonyms *pseudonyms, uint32_t id)
{
    struct str key = { (const char *)&id, sizeof(id) };

    for (size_t i = 0; i < COUNT(kept_user_ids); i++)
        if (id == kept_user_ids[i])
            return id;
    return FIRST_USER_ID + 1 + (uint32_t)map_index(&pseudonyms->maps[NAMES_USER_ID], key);
}

static bool is_kept(enum names names, struct str name)
{
    for (size_t i = 0; i < COUNT(kept_names); i++)
        if (kept_names[i].names == names && str_eq(kept_names[i].name, name))
            return true;
    return !name.n;
}

static void put_name(struct pseudonyms *pseudonyms, enum names names, struct str name,
                     struct buf *to)
{
    if (is_kept(names, name)) {
        buf_put(to, name);
        return;
    }
    buf_text(to, words[names]);
    buf_u64(to, map_index(&pseudonyms->maps[names], name) + 1);
}

/* "alice,bob"; in reservations "-alice" is everybody else. */
static void put_list(struct pseudonyms *pseudonyms, enum names names, struct str list,
                     struct buf *to)
{
    for (struct str rest = list; rest.p;) {
        struct str name = str_cut(&rest, ',');

        if (str_starts(name, STR("-"))) {
            buf_byte(to, '-');
            name = str_skip(name, 1);
        }
        put_name(pseudonyms, names, name, to);
        if (rest.p)
            buf_byte(to, ',');
    }
}

/* ":4", "=1", "*2" or nothing: what may follow a name and tells no other. */
static size_t count_length(struct str text)
{
    size_t n = text.n;

    while (n && text.p[n - 1] >= '0' && text.p[n - 1] <= '9')
        n--;
    return n && n < text.n && memchr(":=*", text.p[n - 1], 3) ? text.n - n + 1 : 0;
}

/* "matlab:4,ansys@server", "a:1|b:2" where either will do. */
static void put_licenses(struct pseudonyms *pseudonyms, enum names names, struct str list,
                         struct buf *to)
{
    while (list.n) {
        size_t n = 0, count;

        while (n < list.n && !memchr(",;|", list.p[n], 3))
            n++;
        count = count_length(str_head(list, n));
        put_name(pseudonyms, names, str_head(list, n - count), to);
        buf_put(to, str_head(str_skip(list, n - count), count + (n < list.n)));
        list = str_skip(list, n + 1);
    }
}

static void put_tres(struct pseudonyms *pseudonyms, enum names names, struct str list,
                     struct buf *to)
{
    static const struct str license = STR_INIT("license/");

    for (struct str rest = list; rest.p;) {
        struct str item = str_cut(&rest, ',');

        if (str_starts(item, license)) {
            buf_put(to, license);
            put_licenses(pseudonyms, names, str_skip(item, license.n), to);
        } else {
            buf_put(to, item);
        }
        if (rest.p)
            buf_byte(to, ',');
    }
}

static void put_nodes(struct pseudonyms *pseudonyms, enum names names, struct str list,
                      struct buf *to)
{
    struct arena arena = { 0 };
    struct hostlist hosts;
    struct buf name;

    if (hostlist_expand(list, &arena, HOSTS_MAX, &hosts, NULL) < 0) {
        put_name(pseudonyms, names, list, to);
        arena_clear(&arena);
        return;
    }
    buf_init(&name, 100);
    for (size_t i = 0; i < hosts.n; i++) {
        buf_reset(&name);
        put_name(pseudonyms, names, hosts.hosts[i], &name);
        hosts.hosts[i] = arena_str(&arena, buf_str(&name));
    }
    hostlist_compress(&hosts, to);
    buf_free(&name);
    arena_clear(&arena);
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* "QOSMaxJobsPerUserLimit": of letters only, beginning with a large one. */
static bool is_reason_word(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!is_letter(text.p[i]))
            return false;
    return text.n && text.p[0] < 'a';
}

static bool is_space(char c)
{
    return c == ' ' || c == '_';
}

static bool is_same_but_for_spaces(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (a.p[i] != b.p[i] && !(is_space(a.p[i]) && is_space(b.p[i])))
            return false;
    return true;
}

static bool is_slurms(struct str text)
{
    for (size_t i = 0; i < COUNT(slurms_words); i++)
        if (is_same_but_for_spaces(text, slurms_words[i]))
            return true;
    return false;
}

static bool is_slurms_reason(struct str text)
{
    struct str rest = text, first = str_cut(&rest, ',');

    if (!is_reason_word(first) && !is_slurms(first))
        return false;
    while (rest.p) {
        struct str part = str_cut(&rest, ',');

        if (!is_slurms(str_skip(part, part.n && is_space(part.p[0]))))
            return false;
    }
    return true;
}

/* "ReqNodeNotAvail, UnavailableNodes:n[1-3]" */
static void put_bare_reason(struct pseudonyms *pseudonyms, enum names names, struct str text,
                            struct buf *to)
{
    struct str nodes = text, reason = str_cut(&nodes, ':');

    if (!is_slurms_reason(reason)) {
        put_name(pseudonyms, names, text, to);
        return;
    }
    buf_put(to, reason);
    if (!nodes.p)
        return;
    buf_byte(to, ':');
    if (str_ends(reason, STR("Nodes")))
        put_nodes(pseudonyms, NAMES_NODE, nodes, to);
    else
        put_name(pseudonyms, names, nodes, to);
}

static void put_reason(struct pseudonyms *pseudonyms, enum names names, struct str text,
                       struct buf *to)
{
    if (!str_starts(text, STR("(")) || !str_ends(text, STR(")"))) {
        put_bare_reason(pseudonyms, names, text, to);
        return;
    }
    buf_byte(to, '(');
    put_bare_reason(pseudonyms, names, str_head(str_skip(text, 1), text.n - 2), to);
    buf_byte(to, ')');
}

static void put_remark(struct pseudonyms *pseudonyms, enum names names, struct str text,
                       struct buf *to)
{
    if (is_slurms(text))
        buf_put(to, text);
    else
        put_name(pseudonyms, names, text, to);
}

static const struct {
    enum names names;
    void (*put)(struct pseudonyms *pseudonyms, enum names names, struct str text, struct buf *to);
} senses[SENSES] = {
    [SENSE_USER] = { NAMES_USER, put_name },
    [SENSE_USERS] = { NAMES_USER, put_list },
    [SENSE_ACCOUNT] = { NAMES_ACCOUNT, put_name },
    [SENSE_ACCOUNTS] = { NAMES_ACCOUNT, put_list },
    [SENSE_JOB_NAME] = { NAMES_JOB, put_name },
    [SENSE_NODE] = { NAMES_NODE, put_name },
    [SENSE_NODES] = { NAMES_NODE, put_nodes },
    [SENSE_RESERVATION] = { NAMES_RESERVATION, put_name },
    [SENSE_RESERVATIONS] = { NAMES_RESERVATION, put_list },
    [SENSE_CLUSTER] = { NAMES_CLUSTER, put_name },
    [SENSE_LICENSE] = { NAMES_LICENSE, put_name },
    [SENSE_LICENSES] = { NAMES_LICENSE, put_licenses },
    [SENSE_TRES] = { NAMES_LICENSE, put_tres },
    [SENSE_REASON] = { NAMES_REMARK, put_reason },
    [SENSE_REMARK] = { NAMES_REMARK, put_remark },
};

void pseudonyms_put(struct pseudonyms *pseudonyms, enum field_sense sense, struct str text,
                    struct buf *to)
{
    if (senses[sense].put)
        senses[sense].put(pseudonyms, senses[sense].names, text, to);
    else
        buf_put(to, text);
}
