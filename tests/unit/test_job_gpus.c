/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's detail of a job's GRES says of the GPUs that it holds. Texts as Slurm 20.11 to 26.05
 * write them. */
#include "test.h"

#include "model/job_gpus.h"

static void check_detail(const char *detail, const char *expected)
{
    struct gpu_indexes indexes;
    struct buf text;

    if (!gpu_indexes_of_detail(str_of(detail), &indexes))
        fail_msg("\"%s\" was not read", detail);
    buf_init(&text, 8192);
    gpu_indexes_put(&indexes, &text);
    if (!str_eq(buf_str(&text), str_of(expected)))
        fail_msg("\"%s\" gives \"%.*s\" and not \"%s\"", detail, STR_ARG(buf_str(&text)), expected);
    buf_free(&text);
}

TEST(indexes_of_gpus_of_every_type_are_told_together)
{
    static const struct {
        const char *detail, *indexes;
    } rows[] = {
        { "gpu:2(IDX:0-1)", "0-1" },
        { "gpu:a100:2(IDX:0,3)", "0,3" },
        { "gpu:a100:6(IDX:0-2,5-7)", "0-2,5-7" },
        { "gpu:v100:1(IDX:1),gpu:a100:0(IDX:)", "1" },
        { "gpu:a100:1(IDX:2),gpu:v100:1(IDX:1)", "1-2" },
        { "gpu:a100_1g.5gb:3(IDX:4-6)", "4-6" },
        { "gpu:1g.5gb:1(IDX:63),gpu:2g.10gb:2(IDX:64,128)", "63-64,128" },
        { "gpu:a100:1(IDX:1023)", "1023" },
        { "craynetwork:1(IDX:0),gpu:a100:1(IDX:7),bandwidth:lustre(CNT:4294967296)", "7" },
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_detail(rows[i].detail, rows[i].indexes);
}

TEST(what_has_no_index_or_is_shared_holds_no_gpu)
{
    static const char *const details[] = {
        "",
        "(null)",
        "gpu:a100:0(IDX:)",
        "gpu:a100:0(IDX:N/A)",
        "gpu:a100(CNT:2)",
        "gpu(CNT:2)",
        "shard:a100:4(IDX:0)",
        "shard:a100:4(0/8,4/8)",
        "mps:a100:100(IDX:1)",
        "gpu:a100:18446744073709551613(IDX:0-3)", /* no_consume */
        "tmpfs:500",
    };

    for (size_t i = 0; i < COUNT(details); i++)
        check_detail(details[i], "");
}

TEST(a_detail_that_contradicts_itself_is_refused)
{
    static const char *const details[] = {
        "gpu:a100:3(IDX:0-1)", /* a list that was cut off */
        "gpu:a100:1(IDX:0-1)",
        "gpu:a100:2(IDX:1-0)",
        "gpu:a100:2(IDX:0,0)",
        "gpu:a100:2(IDX:0-)",
        "gpu:a100:2(IDX:-1)",
        "gpu:a100:2(IDX:0,)",
        "gpu:a100:2(IDX:0 1)",
        "gpu:a100:2(IDX:a-b)",
        "gpu:a100:1(IDX:1024)",
        "gpu:a100:1(IDX:99999999999999999999)",
        "gpu:a100:18446744073709551612(IDX:0-18446744073709551611)",
        "gpu:a100:1(IDX:0),gpu:v100:1(IDX:0)", /* one GPU twice */
        "gpu:a100:1IDX:0)",
        ",gpu:a100:1(IDX:0),:)",
    };

    for (size_t i = 0; i < COUNT(details); i++) {
        struct gpu_indexes indexes;

        if (gpu_indexes_of_detail(str_of(details[i]), &indexes))
            fail_msg("\"%s\" was read", details[i]);
    }
}

TEST(indexes_are_given_one_by_one_and_counted)
{
    static const unsigned wanted[] = { 0, 62, 63, 64, 127, 128, 1023 };
    struct gpu_indexes indexes = { 0 };
    size_t n = 0;

    assert_true(gpu_indexes_add(&indexes, STR("1023,62-64,0")));
    assert_true(gpu_indexes_add(&indexes, STR("127-128")));
    for (unsigned gpu = 0; gpu_indexes_next(&indexes, &gpu); gpu++)
        assert_int_equal(gpu, wanted[n++]);
    assert_int_equal(n, COUNT(wanted));
    assert_int_equal(gpu_indexes_count(&indexes), COUNT(wanted));
    assert_false(gpu_indexes_add(&indexes, STR("128")));
    assert_false(gpu_indexes_next(&indexes, &(unsigned){ GPU_INDEXES_MAX }));
}

static struct section *section;
static struct job_gpus_reader reader;

static void set_up(void)
{
    section = section_new(KIND_JOBS);
    job_gpus_init(&reader, section);
}

static void tear_down(void)
{
    job_gpus_free(&reader);
    section_unref(section);
}

/* Reads one job of those nodes; the details end with NULL, an empty one is none. */
static bool read_job(uint32_t id, struct job_state state, const char *nodes,
                     const char *const *details)
{
    struct job job = { .id = id, .state = state };

    job.nodes = symbols_put(&section->symbols, str_of(nodes));
    job_gpus_begin(&reader);
    for (; *details; details++)
        job_gpus_detail(&reader, str_of(*details));
    return job_gpus_end(&reader, &job);
}

static const struct job_state running = { JOB_RUNNING, 0 };

#define DETAILS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check_row(size_t i, uint32_t job_id, const char *node, const char *gpus)
{
    assert_true(i < section->jobs.n_gpus);
    assert_int_equal(section->jobs.gpus[i].job_id, job_id);
    assert_str(section_text(section, section->jobs.gpus[i].node), node);
    assert_str(section_text(section, section->jobs.gpus[i].gpus), gpus);
}

TEST(the_nth_detail_is_of_the_nth_node, .set_up = set_up, .tear_down = tear_down)
{
    assert_true(read_job(7, running, "g[1-2]", DETAILS("gpu:a100:2(IDX:2-3)", "gpu:2(IDX:0,2)")));
    /* In the order of slurmctld's table of nodes, which need not be that of their names. */
    assert_true(read_job(9, running, "g12,c1,g[3,2]",
                         DETAILS("gpu:1(IDX:0)", "", "gpu:1(IDX:3)", "gpu:1(IDX:2)")));
    assert_true(read_job(10, running, "c[1-4]", DETAILS("", "", "", "")));
    assert_int_equal(section->jobs.n_gpus, 5);
    check_row(0, 7, "g1", "2-3");
    check_row(1, 7, "g2", "0,2");
    check_row(2, 9, "g12", "0");
    check_row(3, 9, "g3", "3");
    check_row(4, 9, "g2", "2");
}

TEST(details_that_do_not_fit_the_nodes_tell_nothing, .set_up = set_up, .tear_down = tear_down)
{
    assert_false(read_job(1, running, "g[1-3]", DETAILS("gpu:1(IDX:0)", "gpu:1(IDX:1)")));
    assert_false(read_job(2, running, "g1", DETAILS("gpu:1(IDX:0)", "gpu:1(IDX:1)")));
    assert_false(read_job(3, running, "", DETAILS("gpu:1(IDX:0)")));
    assert_false(read_job(4, running, "g[", DETAILS("gpu:1(IDX:0)")));
    assert_false(read_job(5, running, "g[0-4294967295]", DETAILS("gpu:1(IDX:0)")));
    assert_false(read_job(6, running, "g[1-2]", DETAILS("gpu:1(IDX:0)", "gpu:2(IDX:0)")));
    assert_int_equal(section->jobs.n_gpus, 0);
    assert_true(read_job(7, running, "g1", DETAILS("gpu:1(IDX:5)")));
    check_row(0, 7, "g1", "5");
}

TEST(only_jobs_that_have_their_nodes_hold_gpus, .set_up = set_up, .tear_down = tear_down)
{
    static const struct {
        struct job_state state;
        bool holds;
    } rows[] = {
        { { JOB_PENDING, 0 }, false },
        { { JOB_RUNNING, 0 }, true },
        { { JOB_RUNNING, JOB_CONFIGURING }, true },
        { { JOB_SUSPENDED, 0 }, true }, /* it has released its CPUs only */
        { { JOB_RUNNING, JOB_COMPLETING }, false },
        { { JOB_COMPLETED, JOB_COMPLETING }, false },
        { { JOB_FAILED, 0 }, false },
    };

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        size_t before = section->jobs.n_gpus;

        assert_true(read_job(i + 1, rows[i].state, "g1", DETAILS("gpu:1(IDX:0)")));
        assert_int_equal(section->jobs.n_gpus - before, rows[i].holds);
        /* nor is anything wrong with what is said of others */
        assert_int_equal(read_job(i + 1, rows[i].state, "g1", DETAILS("gpu:1(IDX:x)")),
                         !rows[i].holds);
    }
}

TEST(nodes_and_jobs_tell_whether_there_are_gpus)
{
    static const struct {
        const char *text;
        bool has_gpus;
    } nodes[] = {
        { "", false },
        { "(null)", false },
        { "craynetwork:4,gpumem:80G", false },
        { "craynetwork:4,gpu:a100:4(S:0-1)", true },
    }, jobs[] = {
        { "", false },
        { "cpu=4,mem=10G,license/gpu=1,gres/gpumem=10G", false },
        { "cpu=4,gres/gpu=1", true },
        { "cpu=4,gres/gpu:a100=1", true },
    };

    for (size_t i = 0; i < COUNT(nodes); i++) {
        struct section *of_nodes = section_new(KIND_NODES), *of_jobs = section_new(KIND_JOBS);
        struct node node[3] = { 0 };
        struct job job[3] = { 0 };

        node[1].gres = node[2].gres = symbols_put(&of_nodes->symbols, str_of(nodes[i].text));
        job[1].tres = job[2].tres = symbols_put(&of_jobs->symbols, str_of(jobs[i].text));
        of_nodes->nodes.node = node;
        of_jobs->jobs.job = job;
        assert_false(section_has_gpus(of_nodes));
        assert_false(section_has_gpus(of_jobs));
        of_nodes->nodes.n = of_jobs->jobs.n = 3;
        assert_int_equal(section_has_gpus(of_nodes), nodes[i].has_gpus);
        assert_int_equal(section_has_gpus(of_jobs), jobs[i].has_gpus);
        section_unref(of_nodes);
        section_unref(of_jobs);
    }
}
