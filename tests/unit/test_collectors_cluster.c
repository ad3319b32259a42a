/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The collectors that are made of neither jobs nor nodes, on a few rows each. */
#include "collected.h"

#include <math.h>

static struct section *section;

static void tear_down(void)
{
    section = section_unref(section);
}

FIXTURE(NULL, tear_down)

static symbol put(const char *text)
{
    return symbols_put(&section->symbols, str_of(text));
}

static void check_samples(const char *collector, size_t samples)
{
    collect(collector, section, "");
    assert_int_equal(collected.samples, samples);
    assert_int_equal(collected.duplicates, 0);
}

TEST(licences_say_zero_and_leave_out_what_is_unknown)
{
    section = licenses_from(
        "matlab total=10 used=10 free=0 reserved=0 last_consumed=unknown last_deficit=unknown\n"
        "ansys@\"flex\" total=5 used=1 free=2 reserved=2 last_consumed=3 last_deficit=0\n");
    check_family("licenses", section, "slurm_lic_total",
                 "slurm_lic_total{name=\"matlab\"} 10\n"
                 "slurm_lic_total{name=\"ansys@\\\"flex\\\"\"} 5\n");
    check_family("licenses", section, "slurm_lic_used",
                 "slurm_lic_used{name=\"matlab\"} 10\n"
                 "slurm_lic_used{name=\"ansys@\\\"flex\\\"\"} 1\n");
    check_family("licenses", section, "slurm_lic_free",
                 "slurm_lic_free{name=\"matlab\"} 0\n"
                 "slurm_lic_free{name=\"ansys@\\\"flex\\\"\"} 2\n");
    check_family("licenses", section, "slurm_lic_reserved",
                 "slurm_lic_reserved{name=\"matlab\"} 0\n"
                 "slurm_lic_reserved{name=\"ansys@\\\"flex\\\"\"} 2\n");
    check_family("licenses", section, "slurm_lic_last_consumed",
                 "slurm_lic_last_consumed{name=\"ansys@\\\"flex\\\"\"} 3\n");
    check_family("licenses", section, "slurm_lic_last_deficit",
                 "slurm_lic_last_deficit{name=\"ansys@\\\"flex\\\"\"} 0\n");
}

TEST(a_reservation_tells_who_when_and_where)
{
    section = reservations_from("course nodes=n[1-2],g1,n1 node_count=3 core_count=12 active=yes "
                                "start=1794744000 end=1794830400 "
                                "accounts=bio,phys partition=gpu flags=IGNORE_JOBS,SPEC_NODES\n"
                                "later users='ro\not' node_count=unknown core_count=unknown\n");
    check_family("reservations", section, "slurm_reservation_info",
                 "slurm_reservation_info{reservation=\"course\",users=\"\",accounts=\"bio,phys\","
                 "partition=\"gpu\",flags=\"IGNORE_JOBS,SPEC_NODES\"} 1\n"
                 "slurm_reservation_info{reservation=\"later\",users=\"ro\\not\",accounts=\"\","
                 "partition=\"\",flags=\"\"} 1\n");
    check_family("reservations", section, "slurm_reservation_active",
                 "slurm_reservation_active{reservation=\"course\"} 1\n"
                 "slurm_reservation_active{reservation=\"later\"} 0\n");
    check_family("reservations", section, "slurm_reservation_start_time_seconds",
                 "slurm_reservation_start_time_seconds{reservation=\"course\"} 1794744000\n");
    check_family("reservations", section, "slurm_reservation_end_time_seconds",
                 "slurm_reservation_end_time_seconds{reservation=\"course\"} 1794830400\n");
    check_family("reservations", section, "slurm_reservation_nodes",
                 "slurm_reservation_nodes{reservation=\"course\"} 3\n");
    check_family("reservations", section, "slurm_reservation_cores",
                 "slurm_reservation_cores{reservation=\"course\"} 12\n");
    check_family("reservations", section, "slurm_reservation_node_info",
                 "slurm_reservation_node_info{reservation=\"course\",node=\"n1\"} 1\n"
                 "slurm_reservation_node_info{reservation=\"course\",node=\"n2\"} 1\n"
                 "slurm_reservation_node_info{reservation=\"course\",node=\"g1\"} 1\n");
}

TEST(reservations_name_no_more_nodes_than_there_is_room_for)
{
    section = reservations_from("most nodes=n[1-19999]\n"
                                "too_many nodes=m[1-2]\n"
                                "odd nodes=m[1-\n"
                                "last nodes=m1\n");
    collect("reservations", section, "");
    assert_int_equal(collected.folded, 2);
    assert_contains(collected.text.p, "{reservation=\"most\",node=\"n19999\"} 1\n");
    assert_contains(collected.text.p, "{reservation=\"last\",node=\"m1\"} 1\n");
    assert_null(strstr(collected.text.p, "reservation=\"too_many\",node"));
    assert_null(strstr(collected.text.p, "reservation=\"odd\",node"));
}

TEST(a_reservation_told_twice_is_shown_once)
{
    section = reservations_from("twin node_count=1 core_count=0\n"
                                "twin node_count=2 core_count=0\n");
    check_family("reservations", section, "slurm_reservation_nodes",
                 "slurm_reservation_nodes{reservation=\"twin\"} 1\n");
    check_samples("reservations", 4);
}

TEST(shares_tell_parent_and_infinity)
{
    section = shares_from(
        "bio raw_shares=30 normalised_shares=0.375 raw_usage=1205 normalised_usage=0.25 "
        "effective_usage=0.5 factor=unknown level=0.75\n"
        "bio user=alice is_parent=yes raw_shares=unknown normalised_shares=unknown factor=1 "
        "level=inf\n"
        "bio user=bob partition=gpu raw_shares=1 normalised_shares=0.1 raw_usage=7 "
        "normalised_usage=unknown effective_usage=unknown factor=0.125 level=2\n");
    check_family("fairshare", section, "slurm_account_fairshare_raw_shares",
                 "slurm_account_fairshare_raw_shares{account=\"bio\"} 30\n");
    check_family("fairshare", section, "slurm_account_fairshare_norm_shares",
                 "slurm_account_fairshare_norm_shares{account=\"bio\"} 0.375\n");
    check_family("fairshare", section, "slurm_account_fairshare_raw_usage",
                 "slurm_account_fairshare_raw_usage{account=\"bio\"} 1205\n");
    check_family("fairshare", section, "slurm_account_fairshare_norm_usage",
                 "slurm_account_fairshare_norm_usage{account=\"bio\"} 0.25\n");
    check_family("fairshare", section, "slurm_account_fairshare_effective_usage",
                 "slurm_account_fairshare_effective_usage{account=\"bio\"} 0.5\n");
    check_family("fairshare", section, "slurm_account_fairshare_factor", "");
    check_family("fairshare", section, "slurm_account_fairshare_level",
                 "slurm_account_fairshare_level{account=\"bio\"} 0.75\n");
    check_family("fairshare", section, "slurm_account_fairshare_uses_parent", "");
    check_family("fairshare", section, "slurm_user_fairshare_raw_shares",
                 "slurm_user_fairshare_raw_shares{account=\"bio\",user=\"bob\",partition=\"gpu\"} "
                 "1\n");
    check_family("fairshare", section, "slurm_user_fairshare_uses_parent",
                 "slurm_user_fairshare_uses_parent{account=\"bio\",user=\"alice\",partition=\"\"} "
                 "1\n");
    check_family("fairshare", section, "slurm_user_fairshare_raw_usage",
                 "slurm_user_fairshare_raw_usage{account=\"bio\",user=\"alice\",partition=\"\"} 0\n"
                 "slurm_user_fairshare_raw_usage{account=\"bio\",user=\"bob\",partition=\"gpu\"} "
                 "7\n");
    check_family("fairshare", section, "slurm_user_fairshare_factor",
                 "slurm_user_fairshare_factor{account=\"bio\",user=\"alice\",partition=\"\"} 1\n"
                 "slurm_user_fairshare_factor{account=\"bio\",user=\"bob\",partition=\"gpu\"} "
                 "0.125\n");
    check_family("fairshare", section, "slurm_user_fairshare_level",
                 "slurm_user_fairshare_level{account=\"bio\",user=\"alice\",partition=\"\"} +Inf\n"
                 "slurm_user_fairshare_level{account=\"bio\",user=\"bob\",partition=\"gpu\"} 2\n");
}

TEST(an_account_with_several_rows_has_the_first)
{
    section = shares_from("bio raw_shares=1\n"
                          "bio partition=gpu raw_shares=2\n"
                          "bio user=alice raw_shares=3\n"
                          "bio user=alice raw_shares=4\n");
    check_family("fairshare", section, "slurm_account_fairshare_raw_shares",
                 "slurm_account_fairshare_raw_shares{account=\"bio\"} 1\n");
    check_family("fairshare", section, "slurm_user_fairshare_raw_shares",
                 "slurm_user_fairshare_raw_shares{account=\"bio\",user=\"alice\",partition=\"\"} "
                 "3\n");
    check_samples("fairshare", 14);
}

TEST(users_beyond_the_ceiling_are_counted_as_folded)
{
    enum { USERS = 20003 };

    section = section_new(KIND_SHARES);
    for (unsigned i = 0; i < USERS; i++)
        section_add(section, "'' user=u%u\n", i);
    collect("fairshare", section, "");
    assert_int_equal(collected.folded, 3 * 7);
    assert_int_equal(collected.samples, 20000 * 7);
}

TEST(the_limits_of_an_account_are_those_of_its_own_row)
{
    /* the last is of a second cluster, say */
    section = associations_from("bio partition=gpu\n"
                                "limit jobs 99 0\n"
                                "bio\n"
                                "limit tres 100 40 tres=cpu\n"
                                "limit tres 1T 0 tres=mem\n"
                                "limit tres 8 8 tres=gres/gpu:a100\n"
                                "limit jobs 0 0\n"
                                "limit submitted 500 unknown\n"
                                "bio user=alice\n"
                                "limit jobs 7 3\n"
                                "bio\n"
                                "limit jobs 55 0\n");
    check_family("limits", section, "slurm_account_cpu_limit",
                 "slurm_account_cpu_limit{account=\"bio\"} 100\n");
    check_family("limits", section, "slurm_account_mem_limit",
                 "slurm_account_mem_limit{account=\"bio\"} 1099511627776\n");
    check_family("limits", section, "slurm_account_job_alloc_limit",
                 "slurm_account_job_alloc_limit{account=\"bio\"} 0\n");
    check_family("limits", section, "slurm_account_job_limit",
                 "slurm_account_job_limit{account=\"bio\"} 500\n");
    check_family("limits", section, "slurm_association_jobs_limit",
                 "slurm_association_jobs_limit{account=\"bio\",user=\"\",partition=\"gpu\"} 99\n"
                 "slurm_association_jobs_limit{account=\"bio\",user=\"\",partition=\"\"} 0\n"
                 "slurm_association_jobs_limit{account=\"bio\",user=\"alice\",partition=\"\"} 7\n");
    check_family("limits", section, "slurm_association_jobs_used",
                 "slurm_association_jobs_used{account=\"bio\",user=\"\",partition=\"gpu\"} 0\n"
                 "slurm_association_jobs_used{account=\"bio\",user=\"\",partition=\"\"} 0\n"
                 "slurm_association_jobs_used{account=\"bio\",user=\"alice\",partition=\"\"} 3\n");
    check_family("limits", section, "slurm_association_submitted_jobs_used", "");
    check_family("limits", section, "slurm_association_tres_limit",
                 "slurm_association_tres_limit{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"cpu\"} 100\n"
                 "slurm_association_tres_limit{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"mem\"} 1099511627776\n"
                 "slurm_association_tres_limit{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"gres/gpu:a100\"} 8\n");
    check_family("limits", section, "slurm_association_tres_used",
                 "slurm_association_tres_used{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"cpu\"} 40\n"
                 "slurm_association_tres_used{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"mem\"} 0\n"
                 "slurm_association_tres_used{account=\"bio\",user=\"\",partition=\"\",tres="
                 "\"gres/gpu:a100\"} 8\n");
}

TEST(where_room_is_short_users_lose_their_limits_and_accounts_do_not)
{
    enum { USERS = 50003 };

    section = section_new(KIND_ASSOCIATIONS);
    for (unsigned i = 0; i < USERS; i++)
        section_add(section, "physics user=u%u\nlimit jobs 7 %s\n", i, i ? "1" : "unknown");
    section_add(section, "last\nlimit jobs 7 1\n");
    check_family("limits", section, "slurm_account_job_alloc_limit",
                 "slurm_account_job_alloc_limit{account=\"last\"} 7\n");
    collect("limits", section, "");
    assert_contains(collected.text.p,
                    "slurm_association_jobs_limit{account=\"physics\",user=\"u49998\"");
    assert_null(strstr(collected.text.p, "\"u49999\""));
    assert_int_equal(collected.folded, 4 * 2); /* limit and use of each */
}

static void check_kind(const char *kind, bool has_tres, const char *limit, const char *used)
{
    static const struct {
        const char *prefix, *labels;
    } owners[] = {
        { "slurm_qos_", "qos=\"high\"" },
        { "slurm_association_", "account=\"bio\",user=\"alice\",partition=\"gpu\"" },
    };
    const char *tres = has_tres ? ",tres=\"cpu\"" : "";
    size_t n_owners = strcmp(kind, "user_tres") == 0 ? 1 : 2;

    section = associations_from("bio user=alice partition=gpu\n"
                                "limit %s 10 3 tres=%s\n"
                                "qos high\n"
                                "limit %s 10 3 tres=%s\n",
                                kind, has_tres ? "cpu" : "", kind, has_tres ? "cpu" : "");
    collect("limits", section, "");
    assert_int_equal(collected.samples, 2 * n_owners);
    for (size_t i = 0; i < n_owners; i++) {
        struct buf line;

        buf_init(&line, 4096);
        buf_printf(&line, "\n%s%s{%s%s} 10\n", owners[i].prefix, limit, owners[i].labels, tres);
        assert_contains(collected.text.p, line.p);
        buf_reset(&line);
        buf_printf(&line, "\n%s%s{%s%s} 3\n", owners[i].prefix, used, owners[i].labels, tres);
        assert_contains(collected.text.p, line.p);
        buf_free(&line);
    }
    section = section_unref(section);
}

TEST(each_kind_of_limit_has_its_families)
{
    check_kind("jobs", false, "jobs_limit", "jobs_used");
    check_kind("submitted", false, "submitted_jobs_limit", "submitted_jobs_used");
    check_kind("wall", false, "wall_limit_seconds", "wall_used_seconds");
    check_kind("tres", true, "tres_limit", "tres_used");
    check_kind("tres_time", true, "tres_time_limit_seconds", "tres_time_used_seconds");
    check_kind("running_tres_time", true, "running_tres_time_limit_seconds",
               "running_tres_time_used_seconds");
    check_kind("user_jobs", false, "user_jobs_limit", "user_jobs_used");
    check_kind("user_submitted", false, "user_submitted_jobs_limit", "user_submitted_jobs_used");
    check_kind("user_tres", true, "user_tres_limit", "user_tres_used");
}

TEST(hidden_data_is_told_by_word)
{
    section = section_new(KIND_CONFIG);
    section->config.cluster = put("hal\"9000");
    section->config.version = put("24.11.5");
    section->config.hidden = 1 << PRIVATE_JOBS | 1 << PRIVATE_EVENTS;
    check_family("config", section, "slurm_config_info",
                 "slurm_config_info{cluster_name=\"hal\\\"9000\",version=\"24.11.5\"} 1\n");
    check_family("config", section, "sonde_source_limited",
                 "sonde_source_limited{reason=\"accounts\"} 0\n"
                 "sonde_source_limited{reason=\"events\"} 1\n"
                 "sonde_source_limited{reason=\"jobs\"} 1\n"
                 "sonde_source_limited{reason=\"nodes\"} 0\n"
                 "sonde_source_limited{reason=\"partitions\"} 0\n"
                 "sonde_source_limited{reason=\"reservations\"} 0\n"
                 "sonde_source_limited{reason=\"usage\"} 0\n"
                 "sonde_source_limited{reason=\"users\"} 0\n");
}

TEST(traced_jobs_tell_of_themselves)
{
    struct traced_job job[] = {
        { .id = 42,
          .cpu_percent = 187.5,
          .memory_bytes = 1048576,
          .read_bytes = 0,
          .write_bytes = NAN,
          .threads = 8,
          .allocated_cpus = 4,
          .allocated_memory_bytes = UINT64_C(8) << 30,
          .n_hosts = 2 },
        { .id = 4294967295,
          .cpu_percent = NAN,
          .memory_bytes = NAN,
          .read_bytes = NAN,
          .write_bytes = NAN,
          .threads = NAN,
          .allocated_cpus = MODEL_UNKNOWN_U32,
          .allocated_memory_bytes = MODEL_UNKNOWN_U64,
          .first_host = 2,
          .n_hosts = 1 },
        { .id = 42, .cpu_percent = 1 },
    };
    struct traced_host host[] = { { .pid = 4711 }, { .pid = 12 }, { .pid = 0 } };

    section = section_new(KIND_TRACES);
    section->traces =
        (struct traces){ .job = job, .n = COUNT(job), .host = host, .n_hosts = COUNT(host) };
    job[0].user = job[2].user = put("al\\ice");
    host[0].name = put("n1");
    host[1].name = put("n2");
    check_family("trace", section, "slurm_proc_cpu_usage",
                 "slurm_proc_cpu_usage{jobid=\"42\",username=\"al\\\\ice\"} 187.5\n");
    check_family("trace", section, "slurm_proc_mem_usage",
                 "slurm_proc_mem_usage{jobid=\"42\",username=\"al\\\\ice\"} 1048576\n");
    check_family("trace", section, "slurm_proc_read_bytes",
                 "slurm_proc_read_bytes{jobid=\"42\",username=\"al\\\\ice\"} 0\n");
    check_family("trace", section, "slurm_proc_write_bytes", "");
    check_family("trace", section, "slurm_proc_threadcount",
                 "slurm_proc_threadcount{jobid=\"42\",username=\"al\\\\ice\"} 8\n");
    check_family("trace", section, "slurm_proc_pid",
                 "slurm_proc_pid{jobid=\"42\",hostname=\"n1\"} 4711\n"
                 "slurm_proc_pid{jobid=\"42\",hostname=\"n2\"} 12\n");
    check_family("trace", section, "slurm_job_cpu_alloc", "slurm_job_cpu_alloc{jobid=\"42\"} 4\n");
    check_family("trace", section, "slurm_job_mem_alloc",
                 "slurm_job_mem_alloc{jobid=\"42\"} 8589934592\n");
}

TEST(the_whole_text_of_a_traced_job_is_what_dashboards_know)
{
    struct traced_job job = { .id = 7,
                              .cpu_percent = 99.5,
                              .memory_bytes = 2048,
                              .read_bytes = 4096,
                              .write_bytes = 8192,
                              .threads = 3,
                              .allocated_cpus = 2,
                              .allocated_memory_bytes = UINT64_C(1) << 30,
                              .n_hosts = 1 };
    struct traced_host host = { .pid = 4711 };

    section = section_new(KIND_TRACES);
    job.user = put("bob");
    host.name = put("n1");
    section->traces = (struct traces){ .job = &job, .n = 1, .host = &host, .n_hosts = 1 };
    collect("trace", section, "");
    assert_string_equal(
        collected.text.p,
        "# HELP slurm_proc_cpu_usage CPU that a traced job's processes use, in percent of one "
        "core.\n"
        "# TYPE slurm_proc_cpu_usage gauge\n"
        "slurm_proc_cpu_usage{jobid=\"7\",username=\"bob\"} 99.5\n"
        "# HELP slurm_proc_mem_usage Memory that a traced job's processes use, in bytes.\n"
        "# TYPE slurm_proc_mem_usage gauge\n"
        "slurm_proc_mem_usage{jobid=\"7\",username=\"bob\"} 2048\n"
        "# HELP slurm_proc_read_bytes Bytes that a traced job's processes have read.\n"
        "# TYPE slurm_proc_read_bytes gauge\n"
        "slurm_proc_read_bytes{jobid=\"7\",username=\"bob\"} 4096\n"
        "# HELP slurm_proc_write_bytes Bytes that a traced job's processes have written.\n"
        "# TYPE slurm_proc_write_bytes gauge\n"
        "slurm_proc_write_bytes{jobid=\"7\",username=\"bob\"} 8192\n"
        "# HELP slurm_proc_threadcount Threads of a traced job's processes.\n"
        "# TYPE slurm_proc_threadcount gauge\n"
        "slurm_proc_threadcount{jobid=\"7\",username=\"bob\"} 3\n"
        "# HELP slurm_proc_pid Process id of a traced job on a host, the lowest if there are "
        "several.\n"
        "# TYPE slurm_proc_pid gauge\n"
        "slurm_proc_pid{jobid=\"7\",hostname=\"n1\"} 4711\n"
        "# HELP slurm_job_cpu_alloc CPUs that Slurm has allocated to a traced job.\n"
        "# TYPE slurm_job_cpu_alloc gauge\n"
        "slurm_job_cpu_alloc{jobid=\"7\"} 2\n"
        "# HELP slurm_job_mem_alloc Memory that Slurm has allocated to a traced job, in bytes.\n"
        "# TYPE slurm_job_mem_alloc gauge\n"
        "slurm_job_mem_alloc{jobid=\"7\"} 1073741824\n");
}

/* Everything unknown, as a release tells it that has none of it. */
static struct diag *new_diag(void)
{
    section = section_new(KIND_DIAG);
    memset(&section->diag, 0xff, sizeof(section->diag));
    section->diag.time = section->diag.reset_time = 0;
    section->diag.jobs_time = section->diag.backfill_last_time = 0;
    section->diag.main.exit = section->diag.backfill.exit = NULL;
    section->diag.main.n_exits = section->diag.backfill.n_exits = 0;
    section->diag.backfill_is_active = false;
    section->diag.rpc_by_type = section->diag.rpc_by_user = NULL;
    section->diag.n_rpc_by_type = section->diag.n_rpc_by_user = 0;
    section->diag.rpc_pending = NULL;
    section->diag.n_rpc_pending = 0;
    section->diag.running = NULL;
    return &section->diag;
}

static struct rpc rpc(symbol name, uint64_t count, uint64_t total_usec)
{
    return (struct rpc){ .name = name,
                         .count = count,
                         .total_usec = total_usec,
                         .queued = MODEL_UNKNOWN_U64,
                         .dropped = MODEL_UNKNOWN_U64,
                         .last_cycle = MODEL_UNKNOWN_U64,
                         .max_cycle = MODEL_UNKNOWN_U64 };
}

TEST(statistics_have_the_names_and_units_that_dashboards_know)
{
    struct diag *diag = new_diag();
    struct rpc types[] = { rpc(put("REQUEST_PING"), 6, 1955), rpc(put("REQUEST_NEVER"), 0, 0) };
    struct rpc users[] = { rpc(put("root"), 10, 500), rpc(put("nobody"), 1, 2),
                           rpc(put("nobody"), 3, 4) };

    diag->rpc_by_type = types;
    diag->n_rpc_by_type = COUNT(types);
    diag->rpc_by_user = users;
    diag->n_rpc_by_user = COUNT(users);
    diag->server_threads = 3;
    diag->dbd_agent_queue = 0;
    diag->backfilled_jobs = 8;
    diag->backfill.count = 21;
    diag->backfill.total_usec = 20013;
    diag->backfill.last_depth = 6;
    diag->backfill_last_depth_tried = 4;
    check_family("diag", section, "slurm_rpc_user_count",
                 "slurm_rpc_user_count{user=\"root\"} 10\n"
                 "slurm_rpc_user_count{user=\"nobody\"} 4\n");
    check_family("diag", section, "slurm_rpc_user_total_time",
                 "slurm_rpc_user_total_time{user=\"root\"} 500\n"
                 "slurm_rpc_user_total_time{user=\"nobody\"} 6\n");
    check_family("diag", section, "slurm_rpc_msg_type_count",
                 "slurm_rpc_msg_type_count{type=\"REQUEST_PING\"} 6\n"
                 "slurm_rpc_msg_type_count{type=\"REQUEST_NEVER\"} 0\n");
    check_family("diag", section, "slurm_rpc_msg_type_avg_time",
                 "slurm_rpc_msg_type_avg_time{type=\"REQUEST_PING\"} 325\n");
    check_family("diag", section, "slurm_rpc_msg_type_total_time",
                 "slurm_rpc_msg_type_total_time{type=\"REQUEST_PING\"} 1955\n"
                 "slurm_rpc_msg_type_total_time{type=\"REQUEST_NEVER\"} 0\n");
    check_family("diag", section, "slurm_daemon_thread_count", "slurm_daemon_thread_count 3\n");
    check_family("diag", section, "slurm_dbd_agent_queue_size", "slurm_dbd_agent_queue_size 0\n");
    check_family("diag", section, "slurm_backfill_job_count", "slurm_backfill_job_count 8\n");
    check_family("diag", section, "slurm_backfill_cycle_count", "slurm_backfill_cycle_count 21\n");
    check_family("diag", section, "slurm_backfill_last_depth", "slurm_backfill_last_depth 6\n");
    check_family("diag", section, "slurm_backfill_last_depth_try_sched",
                 "slurm_backfill_last_depth_try_sched 4\n");
    check_family("diag", section, "slurm_backfill_cycle_counter",
                 "slurm_backfill_cycle_counter 21\n");
}

TEST(what_slurm_counts_goes_on_and_the_rest_is_of_now)
{
    struct diag *diag = new_diag(), running;
    symbol ping = put("REQUEST_PING"), root = put("root");
    struct rpc type_now = rpc(ping, 1, 10), type_ever = rpc(ping, 1001, 2500000);
    struct rpc user_now = rpc(root, 2, 20), user_ever = rpc(root, 1002, 1);
    struct cycle_exit exit = { put("End of job queue"), 77 };
    struct pending_rpc waiting = { put("REQUEST_LAUNCH_PROLOG"), 6017, 5 };

    type_now.queued = 4;
    type_now.dropped = 0;
    type_now.last_cycle = 2;
    type_now.max_cycle = 9;
    type_ever.dropped = 3;
    diag->reset_time = 1794700800;
    diag->agent_queue = 1;
    diag->agent_count = 2;
    diag->agent_threads = 3;
    diag->clock_usec = 27;
    diag->jobs_submitted = 5;
    diag->main = (struct cycle){ .count = 2,
                                 .last_usec = 122,
                                 .max_usec = 5514,
                                 .mean_usec = 2818,
                                 .total_usec = MODEL_UNKNOWN_U64,
                                 .last_depth = MODEL_UNKNOWN_U64,
                                 .mean_depth = 3,
                                 .total_depth = MODEL_UNKNOWN_U64,
                                 .last_queue = 1,
                                 .mean_queue = MODEL_UNKNOWN_U64,
                                 .total_queue = MODEL_UNKNOWN_U64 };
    diag->backfill_is_active = true;
    diag->backfill_last_time = 1794769493;
    diag->rpc_by_type = &type_now;
    diag->rpc_by_user = &user_now;
    diag->n_rpc_by_type = diag->n_rpc_by_user = 1;
    diag->rpc_pending = &waiting;
    diag->n_rpc_pending = 1;
    running = *diag;
    running.jobs_submitted = 905;
    running.main.count = 802;
    running.main.total_usec = 1500000;
    running.main.exit = &exit;
    running.main.n_exits = 1;
    running.rpc_by_type = &type_ever;
    running.rpc_by_user = &user_ever;
    diag->running = &running;
    check_family("scheduler", section, "slurm_scheduler_reset_time_seconds",
                 "slurm_scheduler_reset_time_seconds 1794700800\n");
    check_family("scheduler", section, "slurm_scheduler_agent_queue_messages",
                 "slurm_scheduler_agent_queue_messages 1\n");
    check_family("scheduler", section, "slurm_scheduler_agents", "slurm_scheduler_agents 2\n");
    check_family("scheduler", section, "slurm_scheduler_agent_threads",
                 "slurm_scheduler_agent_threads 3\n");
    check_family("scheduler", section, "slurm_scheduler_clock_call_seconds",
                 "slurm_scheduler_clock_call_seconds 2.7e-8\n");
    check_family("scheduler", section, "slurm_scheduler_jobs_submitted_total",
                 "slurm_scheduler_jobs_submitted_total 905\n");
    check_family("scheduler", section, "slurm_scheduler_jobs_started_total", "");
    check_family("scheduler", section, "slurm_scheduler_cycles_total",
                 "slurm_scheduler_cycles_total{scheduler=\"main\"} 802\n");
    check_family("scheduler", section, "slurm_scheduler_cycle_seconds_total",
                 "slurm_scheduler_cycle_seconds_total{scheduler=\"main\"} 1.5\n");
    check_family("scheduler", section, "slurm_scheduler_last_cycle_seconds",
                 "slurm_scheduler_last_cycle_seconds{scheduler=\"main\"} 0.000122\n");
    check_family("scheduler", section, "slurm_scheduler_mean_cycle_seconds",
                 "slurm_scheduler_mean_cycle_seconds{scheduler=\"main\"} 0.002818\n");
    check_family("scheduler", section, "slurm_scheduler_max_cycle_seconds",
                 "slurm_scheduler_max_cycle_seconds{scheduler=\"main\"} 0.005514\n");
    check_family("scheduler", section, "slurm_scheduler_cycle_exits_total",
                 "slurm_scheduler_cycle_exits_total{scheduler=\"main\",reason=\"End of job "
                 "queue\"} 77\n");
    check_family("scheduler", section, "slurm_scheduler_examined_jobs_total", "");
    check_family("scheduler", section, "slurm_scheduler_mean_examined_jobs",
                 "slurm_scheduler_mean_examined_jobs{scheduler=\"main\"} 3\n");
    check_family("scheduler", section, "slurm_scheduler_last_queue_jobs",
                 "slurm_scheduler_last_queue_jobs{scheduler=\"main\"} 1\n");
    check_family("scheduler", section, "slurm_scheduler_backfill_active",
                 "slurm_scheduler_backfill_active 1\n");
    check_family("scheduler", section, "slurm_scheduler_backfill_last_cycle_time_seconds",
                 "slurm_scheduler_backfill_last_cycle_time_seconds 1794769493\n");
    check_family("scheduler", section, "slurm_scheduler_rpcs_total",
                 "slurm_scheduler_rpcs_total{type=\"REQUEST_PING\"} 1001\n");
    check_family("scheduler", section, "slurm_scheduler_rpc_seconds_total",
                 "slurm_scheduler_rpc_seconds_total{type=\"REQUEST_PING\"} 2.5\n");
    check_family("scheduler", section, "slurm_scheduler_rpcs_dropped_total",
                 "slurm_scheduler_rpcs_dropped_total{type=\"REQUEST_PING\"} 3\n");
    check_family("scheduler", section, "slurm_scheduler_rpcs_queued",
                 "slurm_scheduler_rpcs_queued{type=\"REQUEST_PING\"} 4\n");
    check_family("scheduler", section, "slurm_scheduler_rpc_last_batch",
                 "slurm_scheduler_rpc_last_batch{type=\"REQUEST_PING\"} 2\n");
    check_family("scheduler", section, "slurm_scheduler_rpc_max_batch",
                 "slurm_scheduler_rpc_max_batch{type=\"REQUEST_PING\"} 9\n");
    check_family("scheduler", section, "slurm_scheduler_user_rpcs_total",
                 "slurm_scheduler_user_rpcs_total{user=\"root\"} 1002\n");
    check_family("scheduler", section, "slurm_scheduler_user_rpc_seconds_total",
                 "slurm_scheduler_user_rpc_seconds_total{user=\"root\"} 0.000001\n");
    check_family("scheduler", section, "slurm_scheduler_pending_rpcs",
                 "slurm_scheduler_pending_rpcs{type=\"REQUEST_LAUNCH_PROLOG\"} 5\n");
}

TEST(statistics_that_nobody_keeps_are_those_of_slurm)
{
    struct diag *diag = new_diag();

    diag->jobs_failed = 4;
    diag->backfilled_het_components = 2;
    check_family("scheduler", section, "slurm_scheduler_jobs_failed_total",
                 "slurm_scheduler_jobs_failed_total 4\n");
    check_family("scheduler", section, "slurm_scheduler_backfilled_het_components_total",
                 "slurm_scheduler_backfilled_het_components_total 2\n");
    check_samples("scheduler", 3); /* and whether backfill is active */
    check_samples("diag", 0);
}
