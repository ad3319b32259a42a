/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of source/sim: the simulated cluster. */
#include "test.h"

#include "base/json.h"
#include "base/num.h"
#include "manual_clock.h"
#include "model/hostlist.h"
#include "model/job_gpus.h"
#include "model/tres.h"
#include "model/units.h"
#include "source/cli_format.h"
#include "sim_print.h"
#include "source/source.h"

#include <math.h>

enum { HOUR = 3600, DAY = 86400 };

enum { SIM_KINDS = KIND_CONFIG + 1 }; /* the simulation tells of the first ones */

static const int64_t times[] = {
    1794225600,           /* a Monday noon */
    1794225600 + 2 * DAY, /* during the weekly maintenance */
    1794225600 + 5 * DAY + 15 * HOUR,
    1735689599, /* about when ids begin */
    100000000,  /* in 1973 */
};

static struct sim parsed(const char *settings)
{
    struct sim sim;
    struct err err;

    if (sim_parse(str_of(settings), &sim, &err) < 0)
        fail_msg("%s: %s", settings, err.text);
    return sim;
}

static struct section *section_of(const char *settings, enum kind kind, int64_t time)
{
    struct sim sim = parsed(settings);

    return sim_section(&sim, kind, time);
}

TEST(settings_have_defaults_that_grow_with_the_nodes)
{
    struct sim sim = parsed("");

    assert_int_equal(sim.nodes, 128);
    assert_int_equal(sim.jobs, 1024);
    assert_int_equal(sim.seed, 1);
    assert_true(sim.users > 20 && sim.users < 200);
    sim = parsed("seed=0,nodes=5000");
    assert_int_equal(sim.nodes, 5000);
    assert_int_equal(sim.jobs, 40000);
    assert_int_equal(sim.seed, 0);
    assert_true(sim.users > 200);
    sim = parsed("users=3,jobs=5000000,nodes=200000,seed=18446744073709551615");
    assert_int_equal(sim.users, 3);
    assert_int_equal(sim.jobs, 5000000);
    assert_true(sim.seed == UINT64_MAX);
}

TEST(bad_settings_are_refused_with_a_sentence)
{
    static const struct {
        const char *settings, *says;
    } cases[] = {
        { "node=1", "did you mean \"nodes\"" },
        { "jbos=1", "did you mean \"jobs\"" },
        { "sed=1", "did you mean \"seed\"" },
        { "nodes=0", "nodes must be a whole number from 1 to 200000, not \"0\"" },
        { "jobs=0", "jobs must be" },
        { "users=0", "users must be" },
        { "nodes=200001", "200001" },
        { "jobs=5000001", "5000000" },
        { "users=100001", "100000" },
        { "nodes=-1", "\"-1\"" },
        { "nodes=1e3", "\"1e3\"" },
        { "nodes", "nodes must be" },
        { "nodes=", "nodes must be" },
        { "nodes=10,", "no setting \"\"" },
        { "nodes=10 jobs=5", "nodes must be" },
        { "a\nb=1", "a\\nb" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sim sim = { .nodes = 77 };
        struct err err;

        assert_int_equal(sim_parse(str_of(cases[i].settings), &sim, &err), -EINVAL);
        assert_contains(err.text, cases[i].says);
        assert_int_equal(sim.nodes, 77);
    }
}

static int append(void *ctx, struct str piece)
{
    buf_put(ctx, piece);
    return 0;
}

static struct buf printed(const char *settings, enum sim_format format, int64_t time)
{
    struct sim sim = parsed(settings);
    struct buf buf;

    buf_init(&buf, (size_t)256 << 20);
    assert_int_equal(sim_print(&sim, format, STR("@t@"), time, append, &buf), 0);
    assert_false(buf.over);
    return buf;
}

TEST(the_same_seed_and_time_give_the_same_bytes)
{
    for (enum sim_format format = SIM_SQUEUE_TEXT; format <= SIM_SINFO_LINES; format++) {
        struct buf first = printed("nodes=40,jobs=200,seed=5", format, times[0]);
        struct buf again = printed("nodes=40,jobs=200,seed=5", format, times[0]);
        struct buf other = printed("nodes=40,jobs=200,seed=6", format, times[0]);
        struct buf later = printed("nodes=40,jobs=200,seed=5", format, times[0] + HOUR);

        assert_true(str_eq(buf_str(&first), buf_str(&again)));
        assert_false(str_eq(buf_str(&first), buf_str(&other)));
        assert_false(str_eq(buf_str(&first), buf_str(&later)));
        buf_free(&first);
        buf_free(&again);
        buf_free(&other);
        buf_free(&later);
    }
}

TEST(the_queue_is_as_long_as_asked_for)
{
    static const char *const settings[] = {
        "",
        "nodes=10000,jobs=20000",
        "nodes=100,jobs=20000",
        "nodes=5000,jobs=200,seed=3",
        "nodes=10,jobs=5",
        "nodes=1,jobs=1",
        "nodes=1,jobs=5000", /* more than it will ever do */
        "nodes=1000,jobs=1000,seed=2",
    };

    for (size_t i = 0; i < COUNT(settings); i++)
        for (size_t k = 0; k < COUNT(times); k++) {
            struct section *section = section_of(settings[i], KIND_JOBS, times[k]);
            double wanted = (double)parsed(settings[i]).jobs;

            /* Few jobs cannot be told to a tenth. */
            if (fabs((double)section->jobs.n - wanted) > wanted / 10 + 3 * sqrt(wanted))
                fail_msg("%s: %zu records", settings[i], section->jobs.n);
            section_unref(section);
        }
}

static int by_id(const void *a, const void *b)
{
    const struct job *left = a, *right = b;

    return (left->id > right->id) - (left->id < right->id);
}

TEST(ids_are_unique_and_grow_with_the_time_of_submission)
{
    static const char *const settings[] = { "", "nodes=500,jobs=30000,seed=9", "nodes=3,jobs=10" };

    for (size_t i = 0; i < COUNT(settings); i++) {
        struct section *section = section_of(settings[i], KIND_JOBS, times[0]);
        struct job *jobs = section->jobs.job;

        qsort(jobs, section->jobs.n, sizeof(*jobs), by_id);
        for (size_t k = 1; k < section->jobs.n; k++) {
            assert_true(jobs[k - 1].id > 0 && jobs[k].id <= 67043328);
            assert_int_not_equal(jobs[k - 1].id, jobs[k].id);
            assert_true(jobs[k - 1].submit_time <= jobs[k].submit_time);
        }
        section_unref(section);
    }
}

static const struct job *find_job(const struct section *section, uint32_t id)
{
    struct job key = { .id = id };

    return bsearch(&key, section->jobs.job, section->jobs.n, sizeof(key), by_id);
}

#define assert_same_text(a, left, b, right)                                                        \
    assert_true(str_eq(section_text(a, left), section_text(b, right)))

TEST(a_running_job_is_the_same_a_minute_later)
{
    struct section *now = section_of("nodes=64,jobs=500,seed=4", KIND_JOBS, times[0]);
    struct section *then = section_of("nodes=64,jobs=500,seed=4", KIND_JOBS, times[0] + 60);
    size_t running = 0;

    qsort(then->jobs.job, then->jobs.n, sizeof(struct job), by_id);
    for (size_t i = 0; i < now->jobs.n; i++) {
        const struct job *job = &now->jobs.job[i], *later;

        if (job->state.base != JOB_RUNNING)
            continue;
        later = find_job(then, job->id);
        assert_non_null(later); /* it still runs, or has ended less than five minutes ago */
        assert_int_not_equal(later->state.base, JOB_PENDING);
        assert_int_equal(later->submit_time, job->submit_time);
        assert_int_equal(later->start_time, job->start_time);
        assert_int_equal(later->cpus, job->cpus);
        assert_int_equal(later->time_limit_minutes, job->time_limit_minutes);
        assert_int_equal(later->user_id, job->user_id);
        assert_same_text(now, job->user, then, later->user);
        assert_same_text(now, job->name, then, later->name);
        assert_same_text(now, job->nodes, then, later->nodes);
        assert_same_text(now, job->tres, then, later->tres);
        running++;
    }
    assert_true(running > 100);
    section_unref(now);
    section_unref(then);
}

/* Follows every job of a small cluster from minute to minute. */
TEST(a_job_waits_then_runs_then_has_ended_and_never_turns_back)
{
    struct section *before = NULL;
    size_t started = 0, ended = 0, gone = 0;

    for (int64_t time = times[0]; time < times[0] + 2 * HOUR; time += 240) {
        struct section *now = section_of("nodes=16,jobs=80,seed=8", KIND_JOBS, time);

        qsort(now->jobs.job, now->jobs.n, sizeof(struct job), by_id);
        for (size_t i = 0; before && i < before->jobs.n; i++) {
            const struct job *job = &before->jobs.job[i], *later = find_job(now, job->id);
            bool is_array = job->array_job_id && job->array_task_id == MODEL_UNKNOWN_U32;

            if (!later) {
                gone++;
                assert_true(job->state.base > JOB_SUSPENDED || is_array);
                continue;
            }
            /* The last task of an array takes the number under which the others waited. */
            if (is_array && later->array_task_id != MODEL_UNKNOWN_U32)
                continue;
            assert_int_equal(job->submit_time, later->submit_time);
            assert_same_text(before, job->user, now, later->user);
            if (job->state.base != JOB_PENDING)
                assert_int_not_equal(later->state.base, JOB_PENDING);
            if (job->state.base > JOB_SUSPENDED)
                assert_int_equal(later->state.base, job->state.base);
            started += job->state.base == JOB_PENDING && later->state.base == JOB_RUNNING;
            ended += job->state.base == JOB_RUNNING && later->state.base > JOB_SUSPENDED;
        }
        section_unref(before);
        before = now;
    }
    section_unref(before);
    assert_true(started > 2 && ended > 2 && gone > 2);
}

TEST(a_finished_job_is_seen_for_five_minutes)
{
    struct section *now = section_of("", KIND_JOBS, times[0]);
    size_t seen = 0;

    for (size_t i = 0; i < now->jobs.n; i++) {
        const struct job *job = &now->jobs.job[i];

        if (job->state.base <= JOB_SUSPENDED)
            continue;
        assert_true(job->end_time <= times[0]);
        /* Slurm counts from when the nodes are free again. */
        assert_true(job->end_time > times[0] - 300 - 45);
        seen += job->end_time < times[0] - 200;
    }
    assert_true(seen > 3);
    section_unref(now);
}

struct sums {
    uint64_t cpus, memory, gpus, jobs;
};

static uint64_t gpus_in(struct str gres)
{
    struct gres_item item;
    uint64_t gpus = 0;

    for (struct str rest = gres; gres_next(&rest, &item, NULL);)
        gpus += item.count;
    return gpus;
}

static struct sums held_by_jobs(const struct section *section)
{
    struct sums sums = { 0 };

    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];
        struct tres tres;

        if (!job_holds_resources(job->state))
            continue;
        assert_true(tres_parse(section_text(section, job->tres), &tres));
        sums.cpus += job->cpus;
        sums.memory += job->memory_bytes;
        sums.gpus += tres.gpus == TRES_UNKNOWN ? 0 : tres.gpus;
        sums.jobs++;
    }
    return sums;
}

static struct sums allocated_on_nodes(const struct section *section)
{
    struct sums sums = { 0 };

    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];
        uint64_t gpus = gpus_in(section_text(section, node->gres));
        uint64_t gpus_used = gpus_in(section_text(section, node->gres_used));

        assert_true(node->cpus_alloc <= node->cpus);
        assert_int_equal(node->cpus_alloc + node->cpus_idle + node->cpus_other, node->cpus);
        assert_true(node->memory_alloc_bytes <= node->memory_bytes);
        assert_true(gpus_used <= gpus);
        if (node->state.base == NODE_DOWN || node->state.base == NODE_IDLE)
            assert_int_equal(node->cpus_alloc, 0);
        if (node->state.base == NODE_ALLOCATED)
            assert_int_equal(node->cpus_alloc, node->cpus);
        sums.cpus += node->cpus_alloc;
        sums.memory += node->memory_alloc_bytes;
        sums.gpus += gpus_used;
    }
    return sums;
}

/* The GPUs of one node that are in use, as the node says or, added to `ret`, as the jobs do. */
static void put_used(struct str gres, struct gpu_indexes *ret)
{
    struct gres_item item;

    for (struct str rest = gres; gres_next(&rest, &item, NULL);)
        if (item.indexes.n)
            assert_true(gpu_indexes_add(ret, item.indexes));
}

static void put_held(const struct section *section, struct str node, struct gpu_indexes *ret)
{
    for (size_t i = 0; i < section->jobs.n_gpus; i++)
        if (str_eq(section_text(section, section->jobs.gpus[i].node), node))
            /* no GPU twice */
            assert_true(gpu_indexes_add(ret, section_text(section, section->jobs.gpus[i].gpus)));
}

static bool has_completing_jobs(const struct section *section)
{
    for (size_t i = 0; i < section->jobs.n; i++)
        if (section->jobs.job[i].state.flags & JOB_COMPLETING)
            return true;
    return false;
}

TEST(gpus_that_jobs_hold_are_those_that_nodes_have_allocated)
{
    size_t n_held = 0;

    for (size_t k = 0; k < COUNT(times); k++) {
        struct section *jobs = section_of("nodes=100,jobs=1500", KIND_JOBS, times[k]);
        struct section *nodes = section_of("nodes=100,jobs=1500", KIND_NODES, times[k]);
        bool is_exact = !has_completing_jobs(jobs); /* of these Slurm does not tell */

        for (size_t i = 0; i < nodes->nodes.n; i++) {
            const struct node *node = &nodes->nodes.node[i];
            struct gpu_indexes used = { 0 }, held = { 0 };

            put_used(section_text(nodes, node->gres_used), &used);
            put_held(jobs, section_text(nodes, node->name), &held);
            for (size_t word = 0; word < COUNT(used.bits); word++)
                assert_int_equal(held.bits[word] & ~used.bits[word], 0);
            if (is_exact)
                assert_memory_equal(&held, &used, sizeof(held));
            n_held += gpu_indexes_count(&held);
        }
        section_unref(jobs);
        section_unref(nodes);
    }
    assert_true(n_held > 100);
}

TEST(what_jobs_hold_is_what_nodes_have_allocated)
{
    static const char *const settings[] = {
        "",
        "nodes=700,jobs=5000,seed=11",
        "nodes=300,jobs=40,seed=12",
        "nodes=1,jobs=30",
        "nodes=30,jobs=3000,seed=13",
    };

    for (size_t i = 0; i < COUNT(settings); i++)
        for (size_t k = 0; k < COUNT(times); k++) {
            struct section *jobs = section_of(settings[i], KIND_JOBS, times[k] + (int64_t)i * 977);
            struct section *nodes =
                section_of(settings[i], KIND_NODES, times[k] + (int64_t)i * 977);
            struct sums held = held_by_jobs(jobs), allocated = allocated_on_nodes(nodes);

            assert_int_equal(held.cpus, allocated.cpus);
            assert_int_equal(held.memory, allocated.memory);
            assert_int_equal(held.gpus, allocated.gpus);
            section_unref(jobs);
            section_unref(nodes);
        }
}

/* About one job a node, so that a unit with two jobs at once would show at once. */
TEST(no_unit_has_two_jobs_at_once_while_one_follows_the_other)
{
    for (int64_t time = times[0]; time < times[0] + HOUR; time += 11) {
        struct section *nodes = section_of("nodes=40,jobs=90,seed=3", KIND_NODES, time);

        allocated_on_nodes(nodes);
        section_unref(nodes);
    }
}

/* Not only in sum: node by node. */
TEST(every_job_runs_on_nodes_that_are_up_and_in_its_partition)
{
    struct section *jobs = section_of("nodes=600,jobs=5000,seed=2", KIND_JOBS, times[1]);
    struct section *nodes = section_of("nodes=600,jobs=5000,seed=2", KIND_NODES, times[1]);
    struct arena arena = { 0 };
    struct map map;
    size_t several = 0;

    map_init(&map, &arena);
    for (size_t i = 0; i < nodes->nodes.n; i++)
        *map_put(&map, section_text(nodes, nodes->nodes.node[i].name)) = &nodes->nodes.node[i];
    assert_int_equal(map.n, nodes->nodes.n);
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];
        struct hostlist hosts;
        struct err err;

        if (!job_holds_resources(job->state))
            continue;
        assert_int_equal(
            hostlist_expand(section_text(jobs, job->nodes), &arena, 1000, &hosts, &err), 0);
        assert_int_equal(hosts.n, job->node_count);
        several += hosts.n > 1;
        for (size_t k = 0; k < hosts.n; k++) {
            const struct node *node = *map_get(&map, hosts.hosts[k]);
            bool is_member = false;

            assert_int_not_equal(node->state.base, NODE_DOWN);
            for (uint32_t m = 0; m < node->n_partitions; m++) {
                uint32_t index = nodes->nodes.membership[node->first_partition + m];

                is_member |= str_eq(section_text(nodes, nodes->nodes.partition[index].name),
                                    section_text(jobs, job->partition));
            }
            assert_true(is_member);
        }
    }
    assert_true(several > 10);
    map_free(&map);
    arena_clear(&arena);
    section_unref(jobs);
    section_unref(nodes);
}

TEST(licences_in_use_are_those_of_running_jobs)
{
    for (size_t k = 0; k < COUNT(times); k++) {
        struct section *jobs = section_of("nodes=300,jobs=3000", KIND_JOBS, times[k]);
        struct section *licenses = section_of("nodes=300,jobs=3000", KIND_LICENSES, times[k]);
        uint64_t used_in_all = 0;

        for (size_t i = 0; i < licenses->licenses.n; i++) {
            const struct license *license = &licenses->licenses.license[i];
            uint64_t used = 0;

            for (size_t j = 0; j < jobs->jobs.n; j++) {
                struct str rest = section_text(jobs, jobs->jobs.job[j].licenses);
                struct str name = str_cut(&rest, ':');
                uint64_t count;

                if (jobs->jobs.job[j].state.base != JOB_RUNNING ||
                    !str_eq(name, section_text(licenses, license->name)))
                    continue;
                assert_true(num_get_u64(rest, &count));
                used += count;
            }
            assert_int_equal(license->used, used);
            assert_true(license->used <= license->total);
            assert_int_equal(license->used + license->free, license->total);
            used_in_all += used;
        }
        assert_true(used_in_all > 0);
        section_unref(jobs);
        section_unref(licenses);
    }
}

static void check_job(const struct section *section, const struct job *job, int64_t now)
{
    struct tres tres;
    uint64_t hosts;
    struct err err;

    assert_true(tres_parse(section_text(section, job->tres), &tres));
    assert_int_equal(tres.cpus, job->cpus);
    assert_int_equal(tres.nodes, job->node_count);
    assert_true(tres.memory_bytes == job->memory_bytes);
    assert_true(job->cpus > 0 && job->node_count > 0 && job->memory_bytes > 0);
    assert_true(job->user && job->account && job->partition && job->qos && job->name);
    assert_true(job->submit_time > 0 && job->submit_time <= now);
    assert_true(job->tasks > 0);
    if (job->nodes) {
        assert_int_equal(hostlist_count(section_text(section, job->nodes), &hosts, &err), 0);
        assert_int_equal(hosts, job->node_count);
        assert_true(job->start_time >= job->submit_time && job->start_time <= now);
        assert_true(job->eligible_time <= job->start_time);
    }
    if (job->state.base == JOB_PENDING) {
        assert_int_equal(job->nodes, 0);
        assert_int_not_equal(job->reason, 0);
        assert_true(job->start_time == 0 || job->start_time >= now - 60);
    }
    if (job->state.base == JOB_RUNNING) {
        assert_int_equal(job->reason, 0);
        if (job->time_limit_minutes != MODEL_UNKNOWN_U32) {
            assert_int_equal(job->end_time, job->start_time + job->time_limit_minutes * 60);
            assert_true(job->end_time + 30 >= now);
        }
    }
    if (job->state.base > JOB_SUSPENDED)
        assert_true(job->end_time >= job->start_time && job->end_time <= now);
}

TEST(every_job_makes_sense)
{
    static const char *const settings[] = { "", "nodes=200,jobs=4000,seed=21",
                                            "nodes=900,jobs=100,seed=22", "nodes=1,jobs=1" };

    for (size_t i = 0; i < COUNT(settings); i++)
        for (size_t k = 0; k < COUNT(times); k++) {
            struct section *section = section_of(settings[i], KIND_JOBS, times[k]);

            for (size_t j = 0; j < section->jobs.n; j++)
                check_job(section, &section->jobs.job[j], times[k]);
            section_unref(section);
        }
}

TEST(the_queue_has_all_sorts_of_jobs)
{
    static const char *const reasons[] = {
        "Priority",
        "Resources",
        "Dependency",
        "JobHeldUser",
        "JobHeldAdmin",
        "BeginTime",
        "QOSMaxCpuPerUserLimit",
        "AssocGrpCpuLimit",
        "AssocMaxJobsLimit",
        "Licenses",
        "QOSMaxGRESPerUser",
        "JobArrayTaskLimit",
    };
    static const enum job_base bases[] = {
        JOB_PENDING,   JOB_RUNNING,       JOB_COMPLETED, JOB_FAILED,
        JOB_CANCELLED, JOB_OUT_OF_MEMORY, JOB_TIMEOUT,
    };
    struct section *section = section_of("nodes=1500,jobs=12000", KIND_JOBS, times[0]);
    size_t by_base[JOB_BASES] = { 0 }, waiting_tasks = 0, tasks = 0, components = 0, two = 0;

    for (size_t i = 0; i < COUNT(reasons); i++)
        assert_non_null(map_get(&section->symbols.map, str_of(reasons[i])));
    for (size_t i = 0; i < section->jobs.n; i++) {
        const struct job *job = &section->jobs.job[i];

        by_base[job->state.base]++;
        waiting_tasks += job->tasks > 1;
        tasks += job->array_job_id && job->state.base == JOB_RUNNING;
        components += job->het_job_id != 0;
        two += str_eq(section_text(section, job->partition), STR("cpu,long"));
        if (job->het_job_id)
            assert_int_equal(job->id, job->het_job_id + job->het_offset);
        if (job->tasks > 1)
            assert_int_equal(job->id, job->array_job_id);
    }
    for (size_t i = 0; i < COUNT(bases); i++)
        assert_true(by_base[bases[i]] > 0);
    assert_true(waiting_tasks > 50 && tasks > 50 && components > 10 && two > 5);
    assert_int_equal(components % 2, 0);
    section_unref(section);
}

/* A node that went down less than two hours before, with its name and the time; 0 if there is none.
 */
static int64_t find_failure(const char *settings, int64_t time, char *ret_name, size_t n)
{
    struct section *section = section_of(settings, KIND_NODES, time);
    int64_t failure = 0;

    for (size_t i = 0; i < section->nodes.n && !failure; i++) {
        const struct node *node = &section->nodes.node[i];

        if (!str_eq(section_text(section, node->reason), STR("Not responding")))
            continue;
        assert_int_equal(node->state.base, NODE_DOWN);
        assert_true(node->state.flags & NODE_NOT_RESPONDING);
        snprintf(ret_name, n, "%.*s", STR_ARG(section_text(section, node->name)));
        failure = node->reason_time;
    }
    section_unref(section);
    return failure;
}

/* How many jobs on that one node are in that state. */
static size_t count_on(const char *settings, int64_t time, const char *node, enum job_base base)
{
    struct section *section = section_of(settings, KIND_JOBS, time);
    size_t n = 0;

    for (size_t i = 0; i < section->jobs.n; i++)
        n += section->jobs.job[i].state.base == base &&
             str_eq(section_text(section, section->jobs.job[i].nodes), str_of(node));
    section_unref(section);
    return n;
}

TEST(a_failing_node_takes_its_jobs_with_it)
{
    const char *settings = "nodes=1500,jobs=12000";
    size_t failures = 0, jobs = 0;

    for (int64_t time = times[0]; time < times[0] + DAY && jobs == 0; time += 2 * HOUR) {
        char node[64];
        int64_t failure = find_failure(settings, time, node, sizeof(node));
        size_t running;

        if (!failure)
            continue;
        failures++;
        running = count_on(settings, failure - 1, node, JOB_RUNNING);
        assert_int_equal(count_on(settings, failure, node, JOB_NODE_FAIL), running);
        assert_int_equal(count_on(settings, failure, node, JOB_RUNNING), 0);
        jobs += running;
    }
    assert_true(failures > 0 && jobs > 0);
}

static bool is_hostile(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.p[i] < 0x20 || (unsigned char)name.p[i] >= 0x7f ||
            strchr("<>\"'|\\`${}", name.p[i]))
            return true;
    return name.n > 64;
}

TEST(few_job_names_are_hostile_but_some_are)
{
    struct section *section = section_of("nodes=1000,jobs=10000", KIND_JOBS, times[0]);
    size_t hostile = 0, newlines = 0;

    for (size_t i = 0; i < section->jobs.n; i++) {
        struct str name = section_text(section, section->jobs.job[i].name);

        hostile += is_hostile(name);
        newlines += str_find(name, '\n') < name.n;
    }
    assert_true(hostile > 10 && hostile * 100 < section->jobs.n);
    assert_true(newlines > 0);
    section_unref(section);
}

TEST(nodes_are_in_all_sorts_of_states)
{
    static const char *const words[] = { "idle",     "mixed", "allocated", "drained",
                                         "draining", "down",  "maint",     "reboot" };
    struct section *section = section_of("nodes=5000", KIND_NODES, times[1]);
    bool seen[COUNT(words)] = { false };
    uint32_t flags = 0;
    size_t shared = 0, with_reason = 0;

    for (size_t i = 0; i < section->nodes.n; i++) {
        const struct node *node = &section->nodes.node[i];

        for (size_t k = 0; k < COUNT(words); k++)
            seen[k] |= str_eq(node_state_word(node->state), str_of(words[k]));
        flags |= node->state.flags;
        shared += node->n_partitions > 1;
        with_reason += node->reason != 0;
        assert_int_equal(node->reason != 0, node->reason_user != 0);
        assert_true(node->reason == 0 || (node->reason_time > 0 && node->reason_time <= times[1]));
    }
    for (size_t k = 0; k < COUNT(words); k++)
        if (!seen[k])
            fail_msg("no node is %s", words[k]);
    assert_true(flags & NODE_NOT_RESPONDING);
    assert_true(flags & NODE_POWERED_DOWN);
    assert_true(flags & NODE_RESERVED);
    assert_true(flags & NODE_PLANNED);
    assert_true(flags & NODE_COMPLETING);
    assert_true(shared > 100 && with_reason > 50);
    section_unref(section);
}

TEST(reservations_come_before_they_begin_and_mark_their_nodes)
{
    struct section *resvs = section_of("nodes=200", KIND_RESERVATIONS, times[1]);
    struct section *nodes = section_of("nodes=200", KIND_NODES, times[1]);
    size_t active = 0, inactive = 0;

    for (size_t i = 0; i < resvs->reservations.n; i++) {
        const struct reservation *resv = &resvs->reservations.reservation[i];
        uint32_t marked = 0;
        uint64_t hosts;
        struct err err;

        assert_int_equal(hostlist_count(section_text(resvs, resv->nodes), &hosts, &err), 0);
        assert_int_equal(hosts, resv->node_count);
        assert_true(resv->end_time > times[1]);
        assert_int_equal(resv->is_active, resv->start_time <= times[1]);
        active += resv->is_active;
        inactive += !resv->is_active;
        for (size_t k = 0; k < nodes->nodes.n; k++)
            marked += str_eq(section_text(nodes, nodes->nodes.node[k].reservation),
                             section_text(resvs, resv->name));
        /* A node that is out of order on its own is not also told to be in maintenance. */
        assert_true(resv->is_active ? marked > 0 && marked <= resv->node_count : marked == 0);
    }
    assert_true(active >= 2);
    section_unref(resvs);
    section_unref(nodes);
    resvs = section_of("nodes=200", KIND_RESERVATIONS, times[0]);
    for (size_t i = 0; i < resvs->reservations.n; i++)
        inactive += !resvs->reservations.reservation[i].is_active;
    assert_true(inactive > 0);
    section_unref(resvs);
}

TEST(statistics_count_what_the_queue_shows_and_grow_until_midnight)
{
    struct diag before = { 0 };
    struct section *jobs = section_of("", KIND_JOBS, times[0]);
    struct section *diag = section_of("", KIND_DIAG, times[0]);
    uint64_t pending = 0, running = 0, by_type = 0, by_user = 0;

    for (size_t i = 0; i < jobs->jobs.n; i++) {
        if (jobs->jobs.job[i].state.base == JOB_PENDING)
            pending += jobs->jobs.job[i].tasks;
        running += jobs->jobs.job[i].state.base == JOB_RUNNING;
    }
    assert_int_equal(diag->diag.jobs_pending, pending);
    assert_int_equal(diag->diag.jobs_running, running);
    for (size_t i = 0; i < diag->diag.n_rpc_by_type; i++)
        by_type += diag->diag.rpc_by_type[i].count;
    for (size_t i = 0; i < diag->diag.n_rpc_by_user; i++)
        by_user += diag->diag.rpc_by_user[i].count;
    assert_int_equal(by_type, by_user);
    section_unref(jobs);
    section_unref(diag);
    for (int64_t time = times[0] - 12 * HOUR; time < times[0] + 12 * HOUR; time += 1777) {
        diag = section_of("", KIND_DIAG, time);
        assert_int_equal(diag->diag.reset_time, times[0] - 12 * HOUR);
        assert_true(diag->diag.jobs_submitted >= before.jobs_submitted);
        assert_true(diag->diag.jobs_started >= before.jobs_started);
        assert_true(diag->diag.jobs_completed >= before.jobs_completed);
        assert_true(diag->diag.main.total_usec >= before.main.total_usec);
        assert_true(diag->diag.backfill.count >= before.backfill.count);
        assert_int_equal(diag->diag.main.exit[0].count + diag->diag.main.exit[1].count,
                         diag->diag.main.count);
        before = diag->diag;
        section_unref(diag);
    }
    assert_true(before.jobs_submitted > 500);
}

static uint64_t submitted_by(int64_t time)
{
    struct section *diag = section_of("nodes=500", KIND_DIAG, time);
    uint64_t submitted = diag->diag.jobs_submitted;

    section_unref(diag);
    return submitted;
}

TEST(more_is_submitted_by_day_than_by_night_or_on_sunday)
{
    int64_t midnight = times[0] - 12 * HOUR, sunday = midnight + 6 * DAY;
    uint64_t night = submitted_by(midnight + 5 * HOUR);
    uint64_t day = submitted_by(midnight + 16 * HOUR) - submitted_by(midnight + 11 * HOUR);
    uint64_t on_sunday = submitted_by(sunday + 16 * HOUR) - submitted_by(sunday + 11 * HOUR);

    assert_true(day > 2 * night);
    assert_true(day > on_sunday * 5 / 4);
    assert_true(on_sunday > night);
}

/* What is used under a limit, of the limits of one kind and TRES in a run; all of them are there.
 */
static uint64_t used_of(const struct section *section, uint32_t first, uint32_t n,
                        enum limit_kind kind, const char *tres)
{
    for (uint32_t i = first; i < first + n; i++) {
        const struct limit *limit = &section->associations.limit[i];

        if (limit->kind == kind && str_eq(section_text(section, limit->tres), str_of(tres)))
            return limit->used;
    }
    fail_msg("there is no limit %u on %s", kind, tres);
    return 0;
}

TEST(limits_are_used_by_the_jobs_that_can_be_seen)
{
    struct section *limits = section_of("nodes=500", KIND_ASSOCIATIONS, times[0]);
    struct section *jobs = section_of("nodes=500", KIND_JOBS, times[0]);
    const struct associations *all = &limits->associations;
    uint64_t used = 0, held = 0, held_in_long = 0;
    size_t users = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct association *of = &all->association[i];

        users += of->user != 0;
        assert_true(of->first_limit + of->n_limits <= all->n_limits);
        if (!of->user && of->n_limits)
            used += used_of(limits, of->first_limit, of->n_limits, LIMIT_TRES, "cpu");
    }
    for (size_t i = 0; i < jobs->jobs.n; i++) {
        const struct job *job = &jobs->jobs.job[i];

        if (!job_holds_resources(job->state))
            continue;
        held += job->cpus;
        if (str_eq(section_text(jobs, job->qos), STR("long")))
            held_in_long += job->cpus;
    }
    assert_true(users > 100);
    assert_true(held > 1000);
    assert_int_equal(used, held);
    for (size_t i = 0; i < all->n_qos; i++)
        if (str_eq(section_text(limits, all->qos[i].name), STR("long")))
            assert_int_equal(
                used_of(limits, all->qos[i].first_limit, all->qos[i].n_limits, LIMIT_TRES, "cpu"),
                held_in_long);
    assert_true(held_in_long > 0);
    section_unref(limits);
    section_unref(jobs);
}

TEST(the_simulated_cluster_hides_nothing)
{
    struct section *section = section_of("", KIND_CONFIG, times[0]);

    assert_str(section_text(section, section->config.cluster), "simulated");
    assert_str(section_text(section, section->config.version), "24.11.5");
    assert_int_equal(section->config.hidden, 0);
    section_unref(section);
}

TEST(the_share_tree_adds_up)
{
    struct section *section = section_of("nodes=500", KIND_SHARES, times[0]);
    const struct share *rows = section->shares.share;
    double users = 0, accounts = 0, shares_of_top = 0;
    struct arena arena = { 0 };
    struct map seen;

    map_init(&seen, &arena);
    for (size_t i = 0; i < section->shares.n; i++) {
        struct str account = section_text(section, rows[i].account);
        struct str parent = section_text(section, rows[i].parent);

        if (i) /* parents first */
            assert_non_null(map_get(&seen, rows[i].user ? account : parent));
        map_put(&seen, account);
        if (rows[i].user) {
            users += rows[i].raw_usage;
            assert_true(rows[i].factor > 0 && rows[i].factor <= 1);
            assert_true(rows[i].is_parent == (rows[i].raw_shares == MODEL_UNKNOWN_U64));
        } else {
            assert_true(isnan(rows[i].factor));
        }
        if (i && str_eq(parent, STR("root"))) {
            shares_of_top += rows[i].normalised_shares;
            accounts += rows[i].effective_usage;
        }
    }
    assert_true(fabs(users - rows[0].raw_usage) < 1);
    assert_true(rows[0].raw_usage > 1e9);
    assert_true(fabs(shares_of_top - 1) < 1e-9);
    assert_true(fabs(accounts - 1) < 1e-9);
    map_free(&seen);
    arena_clear(&arena);
    section_unref(section);
}

TEST(users_have_names_of_their_own_and_some_are_not_ascii)
{
    struct section *section = section_of("nodes=100,users=5000", KIND_SHARES, times[0]);
    struct arena arena = { 0 };
    struct map names;
    size_t other = 0;

    map_init(&names, &arena);
    for (size_t i = 0; i < section->shares.n; i++) {
        struct str user = section_text(section, section->shares.share[i].user);

        if (!user.n || map_get(&names, user))
            continue; /* people may have two accounts */
        map_put(&names, user);
        other += (unsigned char)user.p[user.n - 1] >= 0x80 || (unsigned char)user.p[0] >= 0x80;
    }
    assert_int_equal(names.n, 5000 + 1); /* root too */
    assert_true(other > 0 && other < 500);
    map_free(&names);
    arena_clear(&arena);
    section_unref(section);
}

/* The next record of fields that each end with @t@. */
static bool next_record(struct str *rest, struct str *fields, size_t n)
{
    const struct str token = STR("@t@");

    if (!rest->n)
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t at = str_find_str(*rest, token);

        assert_true(at < rest->n);
        fields[i] = str_head(*rest, at);
        *rest = str_skip(*rest, at + token.n);
    }
    assert_true(rest->n && rest->p[0] == '\n');
    *rest = str_skip(*rest, 1);
    return true;
}

#define assert_field(field, section, symbol, absent)                                               \
    do {                                                                                           \
        struct str text_ = section_text(section, symbol);                                          \
        if (!str_eq(field, text_.n ? text_ : STR(absent)))                                         \
            fail_msg("\"%.*s\" is not \"%.*s\"", STR_ARG(field), STR_ARG(text_));                  \
    } while (0)

static void assert_number(struct str field, uint64_t expected)
{
    uint64_t number;

    assert_true(num_get_u64(field, &number));
    assert_int_equal(number, expected);
}

static void assert_time(struct str field, int64_t expected)
{
    if (expected)
        assert_number(field, (uint64_t)expected);
    else
        assert_true(str_eq(field, STR("N/A")) || str_eq(field, STR("NONE")));
}

static void assert_array_fields(const struct str *fields, const struct job *job)
{
    uint64_t tasks;

    assert_number(fields[SQUEUE_ARRAY_JOB_ID], job->array_job_id ? job->array_job_id : job->id);
    if (job->array_task_id != MODEL_UNKNOWN_U32) {
        assert_number(fields[SQUEUE_ARRAY_TASK_ID], job->array_task_id);
    } else if (job->array_job_id) {
        assert_true(units_array_tasks(fields[SQUEUE_ARRAY_TASK_ID], &tasks));
        assert_int_equal(tasks, job->tasks);
    } else {
        assert_str(fields[SQUEUE_ARRAY_TASK_ID], "N/A");
    }
}

static void assert_same_job(const struct str *fields, const struct section *section,
                            const struct job *job)
{
    uint64_t seconds;

    assert_number(fields[SQUEUE_JOB_ID], job->id);
    assert_array_fields(fields, job);
    if (job->het_job_id) {
        assert_number(fields[SQUEUE_HET_JOB_ID], job->het_job_id);
        assert_number(fields[SQUEUE_HET_JOB_OFFSET], job->het_offset);
    } else {
        assert_str(fields[SQUEUE_HET_JOB_ID], "N/A");
    }
    assert_number(fields[SQUEUE_USER_ID], job->user_id);
    assert_field(fields[SQUEUE_USER_NAME], section, job->user, "");
    assert_field(fields[SQUEUE_ACCOUNT], section, job->account, "");
    assert_field(fields[SQUEUE_PARTITION], section, job->partition, "");
    assert_field(fields[SQUEUE_QOS], section, job->qos, "");
    assert_true(str_eq(fields[SQUEUE_STATE], job_state_word(job->state)));
    assert_field(fields[SQUEUE_REASON], section, job->reason, "None");
    assert_number(fields[SQUEUE_NUM_CPUS], job->cpus);
    assert_number(fields[SQUEUE_NUM_NODES], job->node_count);
    assert_field(fields[SQUEUE_TRES_ALLOC], section, job->tres, "");
    assert_field(fields[SQUEUE_NODE_LIST], section, job->nodes, "");
    assert_field(fields[SQUEUE_RESERVATION], section, job->reservation, "(null)");
    assert_field(fields[SQUEUE_LICENSES], section, job->licenses, "(null)");
    assert_field(fields[SQUEUE_FEATURE], section, job->features, "(null)");
    assert_number(fields[SQUEUE_PRIORITY], job->priority);
    assert_true(units_time_limit(fields[SQUEUE_TIME_LIMIT], &seconds));
    assert_true(job->time_limit_minutes == MODEL_UNKNOWN_U32
                    ? seconds == UNITS_UNLIMITED
                    : seconds == job->time_limit_minutes * UINT64_C(60));
    assert_time(fields[SQUEUE_SUBMIT_TIME], job->submit_time);
    assert_time(fields[SQUEUE_ELIGIBLE_TIME], job->eligible_time);
    assert_time(fields[SQUEUE_START_TIME], job->start_time);
    assert_time(fields[SQUEUE_END_TIME], job->end_time);
    assert_number(fields[SQUEUE_RESTART_COUNT], job->restarts);
    assert_field(fields[SQUEUE_ALLOC_NODE], section, job->alloc_node, "");
    assert_field(fields[SQUEUE_NAME], section, job->name, "");
}

TEST(squeue_text_tells_what_the_section_does)
{
    const char *settings = "nodes=300,jobs=4000,seed=31";
    struct section *section = section_of(settings, KIND_JOBS, times[0]);
    struct buf text = printed(settings, SIM_SQUEUE_TEXT, times[0]);
    struct str fields[SQUEUE_N_FIELDS], rest = buf_str(&text);
    size_t n = 0;

    for (; next_record(&rest, fields, SQUEUE_N_FIELDS); n++) {
        assert_true(n < section->jobs.n);
        assert_same_job(fields, section, &section->jobs.job[n]);
    }
    assert_int_equal(n, section->jobs.n);
    buf_free(&text);
    section_unref(section);
}

static void assert_same_node(const struct str *fields, const struct section *section,
                             const struct node *node, const struct partition *partition)
{
    struct node_state parsed_state;
    uint64_t cpus[4];
    double load;

    assert_field(fields[SINFO_NODE], section, node->name, "");
    assert_true(str_starts(fields[SINFO_PARTITION], section_text(section, partition->name)));
    assert_int_equal(str_ends(fields[SINFO_PARTITION], STR("*")), partition->is_default);
    assert_true(node_state_parse(fields[SINFO_STATE], &parsed_state));
    assert_int_equal(parsed_state.base, node->state.base);
    assert_int_equal(parsed_state.flags, node->state.flags);
    assert_true(units_aiot(fields[SINFO_CPUS], cpus));
    assert_int_equal(cpus[0], node->cpus_alloc);
    assert_int_equal(cpus[1], node->cpus_idle);
    assert_int_equal(cpus[2], node->cpus_other);
    assert_int_equal(cpus[3], node->cpus);
    assert_number(fields[SINFO_MEMORY], node->memory_bytes >> 20);
    assert_number(fields[SINFO_ALLOC_MEMORY], node->memory_alloc_bytes >> 20);
    if (isnan(node->cpu_load)) {
        assert_str(fields[SINFO_CPU_LOAD], "N/A");
        assert_str(fields[SINFO_FREE_MEMORY], "N/A");
    } else {
        assert_true(num_get_double(fields[SINFO_CPU_LOAD], &load));
        assert_true(fabs(load - node->cpu_load) < 0.005);
        assert_number(fields[SINFO_FREE_MEMORY], node->memory_free_bytes >> 20);
    }
    assert_field(fields[SINFO_GRES], section, node->gres, "(null)");
    assert_field(fields[SINFO_GRES_USED], section, node->gres_used, "gpu:0");
    assert_field(fields[SINFO_FEATURES], section, node->features, "(null)");
    assert_number(fields[SINFO_WEIGHT], node->weight);
    assert_str(fields[SINFO_AVAILABLE], partition->is_up ? "up" : "down");
    assert_field(fields[SINFO_REASON], section, node->reason, "none");
    assert_field(fields[SINFO_REASON_USER], section, node->reason_user, "Unknown");
    if (node->reason_time)
        assert_number(fields[SINFO_REASON_TIME], (uint64_t)node->reason_time);
    else
        assert_str(fields[SINFO_REASON_TIME], "Unknown");
}

TEST(sinfo_text_tells_each_node_once_a_partition)
{
    const char *settings = "nodes=700,seed=32";
    struct section *section = section_of(settings, KIND_NODES, times[1]);
    struct buf text = printed(settings, SIM_SINFO_TEXT, times[1]);
    struct str fields[SINFO_N_FIELDS], rest = buf_str(&text);
    const struct nodes *nodes = &section->nodes;
    size_t n = 0;

    for (size_t i = 0; i < nodes->n; i++)
        for (uint32_t k = 0; k < nodes->node[i].n_partitions; k++, n++) {
            uint32_t partition = nodes->membership[nodes->node[i].first_partition + k];

            assert_true(next_record(&rest, fields, SINFO_N_FIELDS));
            assert_same_node(fields, section, &nodes->node[i], &nodes->partition[partition]);
        }
    assert_int_equal(rest.n, 0);
    assert_int_equal(n, nodes->n_membership);
    buf_free(&text);
    section_unref(section);
}

/* Members "job_id" or "name" at the depth of records. */
static size_t count_records(struct buf *text, const char *key)
{
    struct json *json = json_new();
    enum json_event event;
    size_t records = 0;

    json_feed(json, buf_str(text));
    while ((event = json_next(json)) > JSON_END)
        records +=
            event == JSON_KEY && json_depth(json) == 3 && str_eq(json_text(json), str_of(key));
    assert_int_equal(event, JSON_MORE);
    json_finish(json);
    assert_int_equal(json_next(json), JSON_END);
    json_free(json);
    return records;
}

TEST(json_is_valid_and_has_every_record)
{
    static const struct {
        enum sim_format format;
        enum kind kind;
        const char *key;
        size_t least, most; /* bytes a record */
    } cases[] = {
        { SIM_SQUEUE_JSON_38, KIND_JOBS, "job_id", 2900, 4500 },
        { SIM_SQUEUE_JSON_42, KIND_JOBS, "job_id", 7000, 11000 },
        { SIM_NODES_JSON_38, KIND_NODES, "hostname", 1000, 2000 },
        { SIM_NODES_JSON_42, KIND_NODES, "hostname", 2000, 4000 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf text = printed("nodes=150,jobs=1500", cases[i].format, times[0]);
        struct section *section = section_of("nodes=150,jobs=1500", cases[i].kind, times[0]);
        size_t records = count_records(&text, cases[i].key);

        assert_int_equal(records, cases[i].kind == KIND_JOBS ? section->jobs.n : section->nodes.n);
        assert_true(text.n / records >= cases[i].least && text.n / records <= cases[i].most);
        section_unref(section);
        buf_free(&text);
    }
}

struct stopping_sink {
    size_t calls, largest;
    size_t stop_after;
};

static int stop_after(void *ctx, struct str piece)
{
    struct stopping_sink *sink = ctx;

    if (piece.n > sink->largest)
        sink->largest = piece.n;
    return ++sink->calls > sink->stop_after ? -EPIPE : 0;
}

TEST(printing_stops_when_the_sink_wants_no_more_and_gives_small_pieces)
{
    struct sim sim = parsed("nodes=700,jobs=3000");

    for (enum sim_format format = SIM_SQUEUE_TEXT; format <= SIM_SINFO_LINES; format++) {
        struct stopping_sink all = { .stop_after = SIZE_MAX }, one = { .stop_after = 1 };

        assert_int_equal(sim_print(&sim, format, STR("|"), times[0], stop_after, &all), 0);
        assert_true(all.calls >= 2);
        assert_true(all.largest < 256 << 10);
        assert_int_equal(sim_print(&sim, format, STR("|"), times[0], stop_after, &one), -EPIPE);
        assert_int_equal(one.calls, 2);
    }
}

TEST(the_source_tells_every_kind_at_the_time_of_its_clock)
{
    struct manual_clock clock;
    struct source *source;
    struct err err;

    manual_clock_init(&clock, times[0] * NS_PER_SEC, 0);
    assert_int_equal(source_open_sim(&(struct source_settings){ .spec = STR("sim:nodes=0") },
                                     &clock.clock, &source, &err),
                     -EINVAL);
    assert_int_equal(
        source_open_sim(&(struct source_settings){ .spec = STR("sim:nodes=20,jobs=50") },
                        &clock.clock, &source, &err),
        0);
    assert_true(source->simulated);
    assert_int_equal(source->class->kinds, KIND_BIT(SIM_KINDS) - 1);
    for (unsigned kind = 0; kind < SIM_KINDS; kind++) {
        char warning[SOURCE_WARNING] = "";
        struct section *section;

        assert_int_equal(
            source->class->read(source, (enum kind)kind, INT64_MAX, &section, warning, &err), 0);
        assert_int_equal(section->kind, kind);
        if (kind == KIND_DIAG)
            assert_int_equal(section->diag.time, times[0]);
        section_unref(section);
    }
    source_close(source);
    manual_clock_destroy(&clock);
}

TEST(any_time_and_size_can_be_asked_for)
{
    static const int64_t extremes[] = { INT64_MIN, -1, 0, 1, INT64_C(1) << 40, INT64_MAX };
    static const char *const settings[] = { "nodes=1,jobs=1", "nodes=2,jobs=9",
                                            "nodes=7,jobs=3,users=1", "nodes=9,jobs=100,users=1" };

    for (size_t i = 0; i < COUNT(settings); i++)
        for (size_t k = 0; k < COUNT(extremes); k++)
            for (unsigned kind = 0; kind < SIM_KINDS; kind++)
                section_unref(section_of(settings[i], (enum kind)kind, extremes[k]));
}
