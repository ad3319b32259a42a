/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cluster as a source: its settings, and its jobs, nodes, reservations and licences
 * as sections. How it works is told in sim_cluster.h. */
#include "source/sim.h"

#include "base/num.h"
#include "base/quote.h"
#include "source/sim_cluster.h"
#include "source/sim_sections.h"
#include "source/source.h"

static const struct setting {
    struct str key;
    size_t offset;
    uint64_t least, most;
} settings_known[] = {
    { STR_INIT("nodes"), offsetof(struct sim, nodes), 1, SIM_NODES_MAX },
    { STR_INIT("jobs"), offsetof(struct sim, jobs), 1, SIM_JOBS_MAX },
    { STR_INIT("seed"), offsetof(struct sim, seed), 0, UINT64_MAX },
    { STR_INIT("users"), offsetof(struct sim, users), 1, SIM_USERS_MAX },
};
static const size_t n_settings = COUNT(settings_known);

static const struct setting *nearest_setting(struct str key)
{
    const struct setting *nearest = &settings_known[0];

    for (size_t i = 1; i < n_settings; i++)
        if (str_distance(key, settings_known[i].key) < str_distance(key, nearest->key))
            nearest = &settings_known[i];
    return nearest;
}

static int parse_setting(struct str text, struct sim *sim, struct err *err)
{
    struct str value = text, key = str_cut(&value, '=');
    const struct setting *setting = nearest_setting(key);
    uint64_t number;

    if (!str_eq(key, setting->key))
        return err_set(err, EINVAL,
                       "the simulated cluster has no setting \"%s\", did you mean \"%s\"? It has "
                       "nodes, jobs, seed and users, as in nodes=128,jobs=1000,seed=1",
                       quote(key).text, setting->key.p);
    if (!num_get_u64(value, &number) || number < setting->least || number > setting->most)
        return err_set(err, EINVAL,
                       "the simulated cluster's %s must be a whole number from %llu to %llu, not "
                       "\"%s\"",
                       setting->key.p, (unsigned long long)setting->least,
                       (unsigned long long)setting->most, quote(value).text);
    memcpy((char *)sim + setting->offset, &number, sizeof(number));
    return 0;
}

int sim_parse(struct str settings, struct sim *ret, struct err *err)
{
    struct sim sim = { .seed = 1 };

    for (struct str rest = settings; rest.p && settings.n;) {
        int code = parse_setting(str_cut(&rest, ','), &sim, err);

        if (code < 0)
            return code;
    }
    sim_set_defaults(&sim);
    *ret = sim;
    return 0;
}

struct section *sim_section(const struct sim *sim, enum kind kind, int64_t time)
{
    static void (*const fill[KINDS])(const struct sim_cluster *, int64_t, struct section *) = {
        [KIND_JOBS] = sim_fill_jobs,
        [KIND_NODES] = sim_fill_nodes,
        [KIND_RESERVATIONS] = sim_fill_reservations,
        [KIND_LICENSES] = sim_fill_licenses,
        [KIND_DIAG] = sim_fill_diag,
        [KIND_SHARES] = sim_fill_shares,
        [KIND_ASSOCIATIONS] = sim_fill_associations,
        [KIND_CONFIG] = sim_fill_config,
    };
    struct section *section = section_new(kind);
    struct sim_cluster cluster;

    sim_cluster_init(&cluster, sim);
    fill[kind](&cluster, sim_bounded(time), section);
    sim_cluster_free(&cluster);
    return section;
}

struct sim_source {
    struct source source;
    struct sim sim;
};

static int read_sim(struct source *source, enum kind kind, int64_t deadline_ns,
                    struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    const struct sim_source *sim = (const struct sim_source *)source;

    (void)deadline_ns;
    (void)ret_warning;
    (void)err;
    *ret = sim_section(&sim->sim, kind, clock_wall(source->clock) / NS_PER_SEC);
    return 0;
}

static void close_sim(struct source *source)
{
    free(source);
}

static const struct source_class sim_class = {
    .name = "sim",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = read_sim,
    .close = close_sim,
};

int source_open_sim(const struct source_settings *settings, const struct clock *clock,
                    struct source **ret, struct err *err)
{
    struct sim_source *source;
    struct sim sim;
    int code = sim_parse(source_details(settings), &sim, err);

    if (code < 0)
        return code;
    source = heap_alloc(sizeof(*source));
    source->source.class = &sim_class;
    source->source.clock = clock;
    source->source.simulated = true;
    source->sim = sim;
    *ret = &source->source;
    return 0;
}
