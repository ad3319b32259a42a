/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source/source.h"

int source_open(const struct source_settings *settings, const struct clock *clock,
                struct source **ret, struct err *err)
{
    struct str rest = settings->spec;
    struct str name = str_cut(&rest, ':');

    if (str_eq(name, STR("cli")))
        return source_open_cli(settings, clock, ret, err);
    if (str_eq(name, STR("sim")))
        return source_open_sim(rest, clock, ret, err);
    return err_set(err, EINVAL, "there is no source \"%.*s\"; the sources are cli and sim",
                   STR_ARG(str_head(name, 40)));
}

struct source *source_close(struct source *source)
{
    if (source)
        source->class->close(source);
    return NULL;
}
