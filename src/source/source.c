/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the source that a setting names. */
#include "source/source.h"

#include "base/quote.h"

/* Every way into Slurm. */
static const struct {
    struct str name;
    int (*open)(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err);
} sources[] = {
    { STR_INIT("auto"), source_open_auto }, { STR_INIT("libslurm"), source_open_libslurm },
    { STR_INIT("rest"), source_open_rest }, { STR_INIT("json"), source_open_json },
    { STR_INIT("cli"), source_open_cli },   { STR_INIT("replay"), source_open_replay },
    { STR_INIT("sim"), source_open_sim },
};

struct str source_details(const struct source_settings *settings)
{
    struct str rest = settings->spec;

    str_cut(&rest, ':');
    return rest;
}

/* Which of them it is, or -EINVAL. */
static int find(const struct source_settings *settings, struct err *err)
{
    struct str rest = settings->spec;
    struct str name = str_cut(&rest, ':');
    char known[100] = "";

    for (size_t i = 0; i < COUNT(sources); i++) {
        size_t n = strlen(known);

        if (str_eq(sources[i].name, name))
            return (int)i;
        snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", sources[i].name.p);
    }
    return err_set(err, EINVAL, "there is no source \"%s\"; there are: %s", quote(name).text,
                   known);
}

int source_check(const struct source_settings *settings, struct err *err)
{
    int which = find(settings, err);

    return which < 0 ? which : 0;
}

int source_open(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err)
{
    int which = find(settings, err);

    return which < 0 ? which : sources[which].open(settings, clock, ret, err);
}

void source_tell(const struct source *source, struct source_about *ret)
{
    *ret = (struct source_about){ .door = source->class->name };
    if (source->class->tell)
        source->class->tell(source, ret);
}

void source_cancel(struct source *source)
{
    atomic_store(&source->cancelled, true);
    if (source->class->cancel)
        source->class->cancel(source);
}

struct source *source_close(struct source *source)
{
    if (source)
        source->class->close(source);
    return NULL;
}
