/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Matches cgroup paths with templates and finds the job in them. */
#include "source/cgroup_rows.h"

#include "base/num.h"

#include <limits.h>

enum {
    DEEPEST_SCOPE = 8, /* a slurmd in a container has its scope below that of the container */
    COMPONENTS = 12,
    WILD = 2, /* in one component: more would make matching slow for a hostile name */
    PARTS = 2 * WILD + 1,
    ROWS = 32,
};

#define STEPS_V1 "/job_{job}/step_{step}/task_{task}"
#define STEPS_V2 "/step_{step}/user/task_{task}"

const struct cgroup_row cgroup_slurm_rows[] = {
    { "slurm v1", "slurm/uid_{uid}" STEPS_V1, .has_stepd = true },
    { "slurm v1, several slurmd", "slurm_{node}/uid_{uid}" STEPS_V1, .has_stepd = true },
    { "slurm v2", "**/slurmstepd.scope/job_{job}" STEPS_V2, true, true, "slurm" },
    { "slurm v2 by SLUID", "**/slurmstepd.scope/{sluid}" STEPS_V2, true, true, "slurm" },
    { "slurm v2, several slurmd", "**/{node}_slurmstepd.scope/job_{job}" STEPS_V2, true, true,
      "slurm" },
    { "slurm v2 by SLUID, several slurmd", "**/{node}_slurmstepd.scope/{sluid}" STEPS_V2, true,
      true, "slurm" },
    { 0 },
};

/* What may stand in braces, and the star. */
enum word { WORD_JOB, WORD_SLUID, WORD_UID, WORD_STEP, WORD_TASK, WORD_NODE, WORD_ANY, WORDS };

/* A piece of a component: text, or a word that stands for some. */
struct part {
    bool is_word;
    enum word word;
    struct str text;
};

struct component {
    struct part part[PARTS];
    size_t n;
    enum cgroup_level level;
    bool is_any_depth; /* ** */
};

struct template
{
    const struct cgroup_row *row;
    bool is_added; /* by the configuration */
    struct component component[COMPONENTS];
    size_t n;
    size_t job; /* which component is the job's */
};

struct cgroup_rows {
    struct arena arena;
    struct template *template[ROWS];
    size_t n;
};

/* A decimal number as Slurm prints it: without a sign, without zeros before it. */
static bool is_number(struct str text, uint64_t most)
{
    uint64_t value;

    return num_get_u64(text, &value) && value <= most && (text.p[0] != '0' || text.n == 1);
}

static bool is_job_id(struct str text)
{
    return is_number(text, UINT32_MAX) && text.p[0] != '0';
}

/* "s" and 13 characters of Crockford's base 32. */
static bool is_sluid(struct str text)
{
    if (text.n != 14 || text.p[0] != 's')
        return false;
    for (size_t i = 1; i < text.n; i++)
        if (!memchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", text.p[i], 32))
            return false;
    return true;
}

static bool is_uid(struct str text)
{
    return is_number(text, MODEL_UNKNOWN_U32 - 1);
}

/* "batch", "extern", "interactive", "0", "0+1"; a later Slurm may have others. */
static bool is_step(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            c != '+' && c != '_')
            return false;
    }
    return true;
}

/* Strict, because under v1 a step's directory belongs to the user, who can make others in it. */
static bool is_task(struct str text)
{
    return is_number(text, UINT32_MAX) || str_eq(text, STR("special"));
}

static bool is_anything(struct str text)
{
    (void)text;
    return true;
}

#define PLACE(member)                                                                              \
    offsetof(struct cgroup_match, member), sizeof(((struct cgroup_match *)0)->member)

static const struct {
    struct str name;
    bool (*is_slurms)(struct str text); /* whether Slurm would write that */
    bool (*is_others)(struct str text);
    size_t offset, size;     /* in struct cgroup_match */
    enum cgroup_level level; /* of a directory with it in its name */
} words[WORDS] = {
    [WORD_JOB] = { STR_INIT("job"), is_job_id, is_anything, PLACE(job), CGROUP_JOB },
    [WORD_SLUID] = { STR_INIT("sluid"), is_sluid, is_sluid, PLACE(sluid), CGROUP_JOB },
    [WORD_UID] = { STR_INIT("uid"), is_uid, is_uid, PLACE(uid), CGROUP_SCOPE },
    [WORD_STEP] = { STR_INIT("step"), is_step, is_anything, PLACE(step), CGROUP_STEP },
    [WORD_TASK] = { STR_INIT("task"), is_task, is_anything, PLACE(task), CGROUP_TASK },
    [WORD_NODE] = { STR_INIT("node"), is_anything, is_anything, PLACE(node), CGROUP_SCOPE },
    [WORD_ANY] = { STR_INIT("*"), is_anything, is_anything, 0, 0, CGROUP_SCOPE },
};

/* Templates. */

static int add_part(struct component *component, struct part part, struct err *err)
{
    const struct part *before = component->n ? &component->part[component->n - 1] : NULL;
    size_t n_wild = 1;

    if (part.is_word) {
        for (size_t i = 0; i < component->n; i++)
            n_wild += component->part[i].is_word;
        if (n_wild > WILD)
            return err_set(err, EINVAL,
                           "at most %d of {…} and * may stand in the name of one directory", WILD);
        if (before && before->is_word)
            return err_set(err, EINVAL, "two of {…} and * need text between them");
    }
    component->part[component->n++] = part;
    return 0;
}

/* "{job}" at the start of *rest. */
static int read_word(struct str *rest, bool is_added, struct part *ret, struct err *err)
{
    size_t end = str_find(*rest, '}');
    struct str name = str_head(str_skip(*rest, 1), end - 1);

    if (end == rest->n)
        return err_set(err, EINVAL, "a { has no }");
    *rest = str_skip(*rest, end + 1);
    for (enum word word = 0; word < WORD_ANY; word++) {
        if (!str_eq(name, words[word].name) || (word == WORD_SLUID && is_added))
            continue;
        *ret = (struct part){ .is_word = true, .word = word };
        return 0;
    }
    return err_set(err, EINVAL,
                   "{%.*s} is not known: there are {job}, {uid}, {step}, {task}, {node} and *",
                   (int)(name.n < 40 ? name.n : 40), name.p);
}

static int read_part(struct str *rest, bool is_added, struct part *ret, struct err *err)
{
    size_t n = 0;

    if (rest->p[0] == '{')
        return read_word(rest, is_added, ret, err);
    if (rest->p[0] == '*') {
        *rest = str_skip(*rest, 1);
        *ret = (struct part){ .is_word = true, .word = WORD_ANY };
        return 0;
    }
    while (n < rest->n && rest->p[n] != '{' && rest->p[n] != '*')
        n++;
    *ret = (struct part){ .text = str_head(*rest, n) };
    *rest = str_skip(*rest, n);
    return 0;
}

static bool is_name(struct str text)
{
    return text.n && !str_eq(text, STR(".")) && !str_eq(text, STR(".."));
}

static int read_component(struct str text, bool is_added, struct component *ret, struct err *err)
{
    int code = 0;

    *ret = (struct component){ .level = CGROUP_SCOPE };
    if (!is_name(text))
        return err_set(err, EINVAL, "an empty name, \".\" or \"..\" is no directory of jobs");
    if (str_eq(text, STR("**"))) {
        *ret = (struct component){ .level = CGROUP_ABOVE, .is_any_depth = true };
        return 0;
    }
    while (text.n && !code) {
        struct part part = { 0 };

        code = read_part(&text, is_added, &part, err);
        if (!code)
            code = add_part(ret, part, err);
    }
    return code;
}

static bool has_text(const struct component *component)
{
    for (size_t i = 0; i < component->n; i++)
        if (!component->part[i].is_word)
            return true;
    return false;
}

static int check_any_depth(const struct template *template, struct err *err)
{
    for (size_t i = 0; i < template->n; i++)
        if (template->component[i].is_any_depth &&
            (i > 0 || template->n < 2 || !has_text(&template->component[1])))
            return err_set(err, EINVAL,
                           "** may only be the first directory, and a name must "
                           "follow it");
    return 0;
}

/* Where each word stands: the component, or COMPONENTS. */
static int find_words(const struct template *template, size_t place[WORDS], struct err *err)
{
    for (enum word word = 0; word < WORDS; word++)
        place[word] = COMPONENTS;
    for (size_t i = 0; i < template->n; i++) {
        const struct component *component = &template->component[i];

        for (size_t k = 0; k < component->n; k++) {
            const struct part *part = &component->part[k];

            if (!part->is_word || part->word == WORD_ANY)
                continue;
            if (place[part->word] != COMPONENTS)
                return err_set(err, EINVAL, "{%s} stands there twice", words[part->word].name.p);
            place[part->word] = i;
        }
    }
    return 0;
}

static int check_order(const size_t place[WORDS], size_t job, struct err *err)
{
    static const enum word given_by_the_scheduler[] = { WORD_UID, WORD_NODE };
    static const enum word below_a_job[] = { WORD_STEP, WORD_TASK };

    if (job == COMPONENTS)
        return err_set(err, EINVAL, "it has no {job}: say where the id of a job stands");
    for (size_t i = 0; i < COUNT(given_by_the_scheduler); i++)
        if (place[given_by_the_scheduler[i]] != COMPONENTS &&
            place[given_by_the_scheduler[i]] > job)
            return err_set(err, EINVAL,
                           "{%s} must not stand below {job}: jobs can make directories there",
                           words[given_by_the_scheduler[i]].name.p);
    for (size_t i = 0; i < COUNT(below_a_job); i++)
        if (place[below_a_job[i]] <= job)
            return err_set(err, EINVAL, "{%s} must stand in a directory of its own, below {job}",
                           words[below_a_job[i]].name.p);
    if (place[WORD_STEP] != COMPONENTS && place[WORD_TASK] <= place[WORD_STEP])
        return err_set(err, EINVAL, "{task} must stand in a directory of its own, below {step}");
    return 0;
}

static enum cgroup_level level_of(size_t i, const size_t place[WORDS], size_t job)
{
    for (enum word word = 0; word < WORD_ANY; word++)
        if (place[word] == i && words[word].level > CGROUP_SCOPE)
            return words[word].level;
    if (i < job)
        return CGROUP_SCOPE;
    return i > place[WORD_STEP] && i < place[WORD_TASK] ? CGROUP_STEP_USER : CGROUP_BELOW;
}

static int read_template(struct template *template, struct str path, struct err *err)
{
    size_t place[WORDS];
    int code = 0;

    if (path.n && path.p[0] == '/')
        return err_set(err, EINVAL,
                       "leave out the first slash: the path begins at the mount point "
                       "of the hierarchy");
    for (struct str rest = path; rest.p && !code;) {
        struct str text = str_cut(&rest, '/');

        if (template->n == COMPONENTS)
            return err_set(err, EINVAL, "it has more than %d directories", COMPONENTS);
        code = read_component(text, template->is_added, &template->component[template->n++], err);
    }
    if (!code)
        code = check_any_depth(template, err);
    if (!code)
        code = find_words(template, place, err);
    if (code < 0)
        return code;
    template->job = place[WORD_JOB] < place[WORD_SLUID] ? place[WORD_JOB] : place[WORD_SLUID];
    code = check_order(place, template->job, err);
    for (size_t i = 0; i < template->n && !code; i++)
        if (!template->component[i].is_any_depth)
            template->component[i].level = level_of(i, place, template->job);
    return code;
}

static int add_row(struct cgroup_rows *rows, const struct cgroup_row *row, bool is_added,
                   struct err *err)
{
    struct template *template = ARENA_NEW(&rows->arena, struct template);
    int code;

    *template = (struct template){ .row = row, .is_added = is_added };
    code = read_template(template, str_of(row->path), err);
    if (code == 0)
        rows->template[rows->n++] = template;
    return code;
}

struct cgroup_rows *cgroup_rows_new(void)
{
    struct cgroup_rows *rows = heap_alloc(sizeof(*rows));
    struct err err;

    for (const struct cgroup_row *row = cgroup_slurm_rows; row->name; row++)
        if (add_row(rows, row, false, &err) < 0)
            abort();
    return rows;
}

struct cgroup_rows *cgroup_rows_free(struct cgroup_rows *rows)
{
    if (rows)
        arena_clear(&rows->arena);
    free(rows);
    return NULL;
}

static bool has_control(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return true;
    return false;
}

static bool has_row(const struct cgroup_rows *rows, struct str name)
{
    for (size_t i = 0; i < rows->n; i++)
        if (str_eq(name, str_of(rows->template[i] -> row -> name)))
            return true;
    return false;
}

static int add_text(struct cgroup_rows *rows, struct str text, struct err *err)
{
    struct str path = text, name = str_trim(str_cut(&path, '=')), version = { 0 };
    struct cgroup_row *row;

    if (has_control(text))
        return err_set(err, EINVAL, "it has a control character");
    if (path.p)
        version = str_cut(&path, ':');
    if (!name.n || !path.p || (!str_eq(version, STR("v1")) && !str_eq(version, STR("v2"))))
        return err_set(err, EINVAL, "write it as NAME=v1:PATH or NAME=v2:PATH");
    if (has_row(rows, name))
        return err_set(err, EINVAL, "there is another of that name");
    if (rows->n == ROWS)
        return err_set(err, EINVAL, "there are more than %d", ROWS);
    row = ARENA_NEW(&rows->arena, struct cgroup_row);
    row->name = arena_str(&rows->arena, name).p;
    row->path = arena_str(&rows->arena, path).p;
    row->is_v2 = version.p[1] == '2';
    return add_row(rows, row, true, err);
}

int cgroup_rows_add(struct cgroup_rows *rows, struct str text, struct err *err)
{
    struct err reason = { 0 };
    int code = add_text(rows, text, &reason);

    if (code < 0)
        return err_set(err, -code, "the layout of cgroups \"%.*s\": %s",
                       (int)(text.n < 200 ? text.n : 200), text.p, reason.text);
    return 0;
}

/* Matching. */

static bool fits(const struct template *template, enum word word, struct str text)
{
    if (word == WORD_ANY)
        return true;
    if (!text.n || (word != WORD_UID && text.n >= words[word].size))
        return false;
    return template->is_added ? words[word].is_others(text) : words[word].is_slurms(text);
}

/* Leaves in `value` what each part of the component stands for. */
static bool match_parts(const struct template *template, const struct part *part, size_t n,
                        struct str text, struct str *value)
{
    if (n == 0)
        return text.n == 0;
    if (!part->is_word)
        return str_starts(text, part->text) &&
               match_parts(template, part + 1, n - 1, str_skip(text, part->text.n), value + 1);
    for (size_t taken = 0; taken <= text.n; taken++) {
        *value = str_head(text, taken);
        if (fits(template, part->word, *value) &&
            match_parts(template, part + 1, n - 1, str_skip(text, taken), value + 1))
            return true;
    }
    return false;
}

static bool match_component(const struct template *template, size_t i, struct str text,
                            struct str value[PARTS])
{
    const struct component *component = &template->component[i];

    return match_parts(template, component->part, component->n, text, value);
}

/* How far a row has come on the way down a path. */
struct lead {
    bool is_lost;     /* it does not lead there */
    bool is_named;    /* it has a name for the last component, not ** */
    size_t next;      /* of its components */
    size_t swallowed; /* components of the path, by ** */
};

/* One component further. */
static void follow(const struct template *template, struct str text, struct lead *lead)
{
    bool is_any_depth = template->component[lead->next].is_any_depth;
    struct str value[PARTS];

    lead->is_named = match_component(template, lead->next + is_any_depth, text, value);
    if (lead->is_named)
        lead->next += 1 + is_any_depth;
    else if (is_any_depth && lead->swallowed < DEEPEST_SCOPE)
        lead->swallowed++;
    else
        lead->is_lost = true;
}

/* Whoever still takes this component for a part of ** has lost it to a row that has a name for
 * it: within a scope, nothing may look like another. */
static void lose_swallowers(const struct cgroup_rows *rows, struct lead leads[ROWS])
{
    bool is_scope = false;

    for (size_t i = 0; i < rows->n; i++)
        is_scope |= !leads[i].is_lost && leads[i].is_named && leads[i].next == 2 &&
                    rows->template[i] -> component[0].is_any_depth;
    for (size_t i = 0; i < rows->n && is_scope; i++)
        leads[i].is_lost |= !leads[i].is_named;
}

/* Which row has come to a job with this component, or -1. */
static int find_job(const struct cgroup_rows *rows, struct str text, struct lead leads[ROWS])
{
    bool is_taken = false;

    for (size_t i = 0; i < rows->n; i++) {
        if (leads[i].is_lost)
            continue;
        follow(rows->template[i], text, &leads[i]);
        if (leads[i].is_lost || !leads[i].is_named)
            continue;
        if (leads[i].next == rows->template[i] -> job + 1) {
            if (!is_taken)
                return (int)i;
            leads[i].is_lost = true;
        }
        is_taken = true;
    }
    lose_swallowers(rows, leads);
    return -1;
}

/* The best of those that lead through, for a path that has not come to a job; or -1. */
static int find_way(const struct cgroup_rows *rows, const struct lead leads[ROWS])
{
    int found = -1;

    for (size_t i = 0; i < rows->n; i++)
        if (!leads[i].is_lost && (found < 0 || (leads[i].is_named && !leads[found].is_named)))
            found = (int)i;
    return found;
}

static void keep_values(const struct component *component, const struct str value[PARTS],
                        struct cgroup_match *ret)
{
    for (size_t i = 0; i < component->n; i++) {
        enum word word = component->part[i].word;
        uint64_t uid;

        if (!component->part[i].is_word || word == WORD_ANY)
            continue;
        if (word != WORD_UID)
            memcpy((char *)ret + words[word].offset, value[i].p, value[i].n);
        else if (num_get_u64(value[i], &uid))
            ret->uid = (uint32_t)uid;
    }
}

/* Along the components of a path after those that ** swallowed. */
static void fill(const struct template *template, struct str rest, size_t swallowed,
                 struct cgroup_match *ret)
{
    size_t next = template->component[0].is_any_depth;
    bool has_left = false; /* the template */

    *ret = (struct cgroup_match){ .row = template->row, .uid = MODEL_UNKNOWN_U32 };
    for (size_t i = 0; i < swallowed && rest.p; i++)
        str_cut(&rest, '/');
    while (rest.p && !has_left) {
        struct str text = str_cut(&rest, '/'), value[PARTS];

        if (next < template->n && match_component(template, next, text, value)) {
            keep_values(&template->component[next], value, ret);
            ret->level = template->component[next++].level;
            continue;
        }
        has_left = true;
        ret->level = ret->level == CGROUP_STEP && template->row->stepd &&
                             str_eq(text, str_of(template->row->stepd))
                         ? CGROUP_STEPD
                         : CGROUP_BELOW;
    }
}

static bool is_path(struct str path)
{
    if (str_find(path, '\0') != path.n)
        return false;
    for (struct str rest = path; rest.p;)
        if (!is_name(str_cut(&rest, '/')))
            return false;
    return true;
}

bool cgroup_rows_match(const struct cgroup_rows *rows, bool is_v2, struct str path,
                       struct cgroup_match *ret)
{
    struct lead leads[ROWS] = { 0 };
    struct str rest = path.n ? path : (struct str){ 0 };
    int found = -1;

    if (path.n && !is_path(path))
        return false;
    for (size_t i = 0; i < rows->n; i++)
        leads[i].is_lost = rows->template[i] -> row -> is_v2 != is_v2;
    while (rest.p && found < 0)
        found = find_job(rows, str_cut(&rest, '/'), leads);
    if (found < 0)
        found = find_way(rows, leads);
    if (found < 0)
        return false;
    fill(rows->template[found], path.n ? path : (struct str){ 0 }, leads[found].swallowed, ret);
    return true;
}
