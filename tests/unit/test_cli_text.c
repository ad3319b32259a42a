/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What sdiag, sshare and scontrol print, read: excerpts of real answers with numbers of their own,
 * and whole ones, as tests/golden/record has recorded them from a seeded sandbox. */
#include "test.h"

#include "files.h"
#include "source/cli.h"
#include "source/cli_format.h"

#include <math.h>
#include <unistd.h>

#define UNKNOWN MODEL_UNKNOWN_U64

static const char *const versions[] = { "20.11", "22.05", "24.11", "26.05" };
enum { FIRST_24 = 2 }; /* where 24.11 stands */

/* Reads `text` in pieces of that many bytes. NULL with the sentence in *err if it is refused. */
static struct section *read_pieces(enum kind kind, const struct answer_class *class,
                                   struct str text, size_t piece, struct err *err)
{
    struct section *section = section_new(kind);
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    int code = 0;

    for (struct str rest = text; rest.n && code == 0; rest = str_skip(rest, piece))
        code = class->feed(answer, str_head(rest, piece), err);
    if (code == 0)
        code = class->end(answer, err);
    answer_free(answer);
    return code == 0 ? section : section_unref(section);
}

static struct section *read_text(enum kind kind, const struct answer_class *class, const char *text)
{
    struct err err = { 0 };
    struct section *section = read_pieces(kind, class, str_of(text), 7, &err);

    if (!section)
        fail_msg("%s", err.text);
    return section;
}

static void assert_refused(enum kind kind, const struct answer_class *class, const char *text,
                           const char *because)
{
    struct err err = { 0 };
    struct section *section = read_pieces(kind, class, str_of(text), 4096, &err);

    if (section)
        fail_msg("\"%s\" has been read", text);
    assert_int_equal(err.code, EBADMSG);
    assert_contains(err.text, because);
}

static struct section *read_recording(enum kind kind, const struct answer_class *class,
                                      const char *version, const char *name)
{
    struct err err = { 0 };
    struct section *section;
    const char *path = source_path("tests/golden/slurm-%s/%s.txt", version, name);

    section = read_pieces(kind, class, read_file(path), 1000, &err);
    if (!section)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(section->skipped, 0);
    return section;
}

static const char sdiag_text[] =
    "*******************************************************\n"
    "sdiag output at Mon Nov 16 00:05:54 2026 (1794787554)\n"
    "Data since      Mon Nov 16 00:02:53 2026 (1794787373)\n"
    "*******************************************************\n"
    "Server thread count:  3\n"
    "RPC queue enabled:    1\n"
    "Agent queue size:     4\n"
    "Agent count:          5\n"
    "Agent thread count:   6\n"
    "DBD Agent queue size: 7\n"
    "\n"
    "Jobs submitted: 120\n"
    "Jobs started:   29\n"
    "Jobs completed: 12\n"
    "Jobs canceled:  2\n"
    "Jobs failed:    1\n"
    "\n"
    "Job states ts:  Mon Nov 16 00:05:53 2026 (1794787553)\n"
    "Jobs pending:   91\n"
    "Jobs running:   13\n"
    "\n"
    "Main schedule statistics (microseconds):\n"
    "\tLast cycle:   196\n"
    "\tMax cycle:    1873\n"
    "\tTotal cycles: 105\n"
    "\tMean cycle:   202\n"
    "\tMean depth cycle:  8\n"
    "\tCycles per minute: 35\n"
    "\tLast queue length: 9\n"
    "\n"
    "Main scheduler exit:\n"
    "\tEnd of job queue:103\n"
    "\tTimeout (max_sched_time): 2\n"
    "\n"
    "Backfilling stats (WARNING: data obtained in the middle of backfilling execution.)\n"
    "\tTotal backfilled jobs (since last slurm start): 4000000000\n"
    "\tTotal backfilled jobs (since last stats cycle start): 14\n"
    "\tTotal backfilled heterogeneous job components: 15\n"
    "\tTotal cycles: 90\n"
    "\tLast cycle when: Mon Nov 16 00:05:52 2026 (1794787552)\n"
    "\tLast cycle: 295\n"
    "\tMax cycle:  2301\n"
    "\tMean cycle: 334\n"
    "\tLast depth cycle: 16\n"
    "\tLast depth cycle (try sched): 17\n"
    "\tDepth Mean: 18\n"
    "\tDepth Mean (try depth): 19\n"
    "\tLast queue length: 20\n"
    "\tQueue length mean: 21\n"
    "\tLast table size: 22\n"
    "\tMean table size: 23\n"
    "\n"
    "Backfill exit\n"
    "\tEnd of job queue:90\n"
    "\tHit table size limit (bf_node_space_size): 0\n"
    "\n"
    "Latency for 1000 calls to gettimeofday(): 24 microseconds\n"
    "\n"
    "Remote Procedure Call statistics by message type\n"
    "\tREQUEST_PARTITION_INFO                  ( 2009) count:61     ave_time:75     "
    "total_time:4597         queued:1      cycle_last:2      cycle_max:3      dropped:4\n"
    "\tACCOUNTING_UPDATE_MSG                   (10001) count:17     ave_time:636    "
    "total_time:10828\n"
    "\n"
    "Remote Procedure Call statistics by user\n"
    "\troot            (       0) count:258    ave_time:167    total_time:43185\n"
    "\tEXAMPLE\\an (odd) name(   70001) count:2      ave_time:895    total_time:1790\n"
    "\n"
    "Pending RPC statistics\n"
    "\tREQUEST_NODE_REGISTRATION_STATUS        ( 1001) count:25    \n"
    "\n"
    "Pending RPCs\n"
    "\t 1: REQUEST_NODE_REGISTRATION_STATUS     n[1-25]\n";

TEST(each_number_of_sdiag_has_its_place)
{
    static const struct {
        size_t offset;
        uint64_t value;
    } rows[] = {
        { offsetof(struct diag, time), 1794787554 },
        { offsetof(struct diag, reset_time), 1794787373 },
        { offsetof(struct diag, server_threads), 3 },
        { offsetof(struct diag, agent_queue), 4 },
        { offsetof(struct diag, agent_count), 5 },
        { offsetof(struct diag, agent_threads), 6 },
        { offsetof(struct diag, dbd_agent_queue), 7 },
        { offsetof(struct diag, clock_usec), 24 },
        { offsetof(struct diag, jobs_submitted), 120 },
        { offsetof(struct diag, jobs_started), 29 },
        { offsetof(struct diag, jobs_completed), 12 },
        { offsetof(struct diag, jobs_canceled), 2 },
        { offsetof(struct diag, jobs_failed), 1 },
        { offsetof(struct diag, jobs_time), 1794787553 },
        { offsetof(struct diag, jobs_pending), 91 },
        { offsetof(struct diag, jobs_running), 13 },
        { offsetof(struct diag, main.last_usec), 196 },
        { offsetof(struct diag, main.max_usec), 1873 },
        { offsetof(struct diag, main.count), 105 },
        { offsetof(struct diag, main.mean_usec), 202 },
        { offsetof(struct diag, main.total_usec), UNKNOWN },
        { offsetof(struct diag, main.last_depth), UNKNOWN },
        { offsetof(struct diag, main.mean_depth), 8 },
        { offsetof(struct diag, main.total_depth), UNKNOWN },
        { offsetof(struct diag, main.last_queue), 9 },
        { offsetof(struct diag, main.mean_queue), UNKNOWN },
        { offsetof(struct diag, main.total_queue), UNKNOWN },
        { offsetof(struct diag, backfilled_jobs), 4000000000 },
        { offsetof(struct diag, backfilled_jobs_since_reset), 14 },
        { offsetof(struct diag, backfilled_het_components), 15 },
        { offsetof(struct diag, backfill.count), 90 },
        { offsetof(struct diag, backfill_last_time), 1794787552 },
        { offsetof(struct diag, backfill.last_usec), 295 },
        { offsetof(struct diag, backfill.max_usec), 2301 },
        { offsetof(struct diag, backfill.mean_usec), 334 },
        { offsetof(struct diag, backfill.total_usec), UNKNOWN },
        { offsetof(struct diag, backfill.last_depth), 16 },
        { offsetof(struct diag, backfill_last_depth_tried), 17 },
        { offsetof(struct diag, backfill.mean_depth), 18 },
        { offsetof(struct diag, backfill_mean_depth_tried), 19 },
        { offsetof(struct diag, backfill_total_depth_tried), UNKNOWN },
        { offsetof(struct diag, backfill.last_queue), 20 },
        { offsetof(struct diag, backfill.mean_queue), 21 },
        { offsetof(struct diag, backfill.total_queue), UNKNOWN },
        { offsetof(struct diag, backfill_last_table), 22 },
        { offsetof(struct diag, backfill_mean_table), 23 },
        { offsetof(struct diag, backfill_total_table), UNKNOWN },
    };
    struct section *section = read_text(KIND_DIAG, &answer_sdiag, sdiag_text);

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = *(uint64_t *)((char *)&section->diag + rows[i].offset);

        if (value != rows[i].value)
            fail_msg("row %zu: got %llu, expected %llu", i, (unsigned long long)value,
                     (unsigned long long)rows[i].value);
    }
    assert_true(section->diag.backfill_is_active);
    assert_int_equal(section->skipped, 0);
    section_unref(section);
}

TEST(the_lists_of_sdiag_are_read_row_by_row)
{
    struct section *section = read_text(KIND_DIAG, &answer_sdiag, sdiag_text);
    const struct diag *diag = &section->diag;
    const struct rpc *rpc = diag->rpc_by_type;

    assert_int_equal(diag->main.n_exits, 2);
    assert_str(section_text(section, diag->main.exit[0].reason), "End of job queue");
    assert_int_equal(diag->main.exit[0].count, 103);
    assert_str(section_text(section, diag->main.exit[1].reason), "Timeout (max_sched_time)");
    assert_int_equal(diag->main.exit[1].count, 2);
    assert_int_equal(diag->backfill.n_exits, 2);
    assert_int_equal(diag->backfill.exit[1].count, 0);

    assert_int_equal(diag->n_rpc_by_type, 2);
    assert_str(section_text(section, rpc[0].name), "REQUEST_PARTITION_INFO");
    assert_int_equal(rpc[0].id, 2009);
    assert_int_equal(rpc[0].count, 61);
    assert_int_equal(rpc[0].total_usec, 4597);
    assert_int_equal(rpc[0].queued, 1);
    assert_int_equal(rpc[0].last_cycle, 2);
    assert_int_equal(rpc[0].max_cycle, 3);
    assert_int_equal(rpc[0].dropped, 4);
    assert_int_equal(rpc[1].id, 10001);
    assert_int_equal(rpc[1].total_usec, 10828);
    assert_true(rpc[1].queued == UNKNOWN && rpc[1].dropped == UNKNOWN);

    assert_int_equal(diag->n_rpc_by_user, 2);
    assert_str(section_text(section, diag->rpc_by_user[0].name), "root");
    assert_int_equal(diag->rpc_by_user[0].id, 0);
    assert_str(section_text(section, diag->rpc_by_user[1].name), "EXAMPLE\\an (odd) name");
    assert_int_equal(diag->rpc_by_user[1].id, 70001);
    assert_int_equal(diag->rpc_by_user[1].count, 2);

    assert_int_equal(diag->n_rpc_pending, 1);
    assert_str(section_text(section, diag->rpc_pending[0].name),
               "REQUEST_NODE_REGISTRATION_STATUS");
    assert_int_equal(diag->rpc_pending[0].id, 1001);
    assert_int_equal(diag->rpc_pending[0].count, 25);
    section_unref(section);
}

/* Right after slurmctld has started, and of a release that nobody has seen yet. */
TEST(what_sdiag_does_not_tell_is_unknown)
{
    struct section *section = read_text(KIND_DIAG, &answer_sdiag,
                                        "sdiag output at Sun Nov 15 23:32:41 2026 (1794785561)\n"
                                        "Server thread count:  -1\n"
                                        "Agent count:  99999999999999999999999\n"
                                        "Main schedule statistics (microseconds):\n"
                                        "\tLast cycle:   \n"
                                        "\tTotal cycles: 0\n"
                                        "Statistics of a third scheduler\n"
                                        "\tTotal cycles: 77\n"
                                        "\tEnd of job queue:77\n"
                                        "Backfilling stats\n"
                                        "\tLast cycle when: N/A\n"
                                        "Remote Procedure Call statistics by message type\n"
                                        "\tNo RPCs recorded yet.\n"
                                        "\tREQUEST_PING ( 1008) count:\n"
                                        "\tREQUEST_PING\n"
                                        "Pending RPC statistics\n"
                                        "\tNo pending RPCs\n");
    const struct diag *diag = &section->diag;

    assert_true(diag->server_threads == UNKNOWN && diag->agent_count == UNKNOWN);
    assert_true(diag->jobs_submitted == UNKNOWN && diag->clock_usec == UNKNOWN);
    assert_true(diag->main.last_usec == UNKNOWN && diag->main.mean_usec == UNKNOWN);
    assert_int_equal(diag->main.count, 0);
    assert_true(diag->backfill.count == UNKNOWN);
    assert_int_equal(diag->backfill_last_time, 0);
    assert_false(diag->backfill_is_active);
    assert_int_equal(diag->main.n_exits + diag->backfill.n_exits, 0);
    assert_int_equal(diag->n_rpc_by_type, 1);
    assert_true(diag->rpc_by_type[0].count == UNKNOWN);
    assert_int_equal(diag->n_rpc_pending, 0);
    assert_int_equal(section->skipped, 1);
    assert_str(section->skipped_example, "REQUEST_PING");
    section_unref(section);
}

TEST(the_first_of_two_numbers_with_one_label_counts)
{
    struct section *section = read_text(KIND_DIAG, &answer_sdiag,
                                        "sdiag output at now (1794785561)\n"
                                        "sdiag output at later (1794785999)\n"
                                        "Jobs submitted: 5\n"
                                        "Jobs submitted: 6\n");

    assert_int_equal(section->diag.time, 1794785561);
    assert_int_equal(section->diag.jobs_submitted, 5);
    section_unref(section);
}

TEST(recorded_statistics_are_complete)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section = read_recording(KIND_DIAG, &answer_sdiag, versions[i], "sdiag");
        const struct diag *diag = &section->diag;
        uint64_t by_type = 0, by_user = 0, exits = 0;

        assert_true(diag->time > diag->reset_time && diag->reset_time > 1700000000);
        assert_true(diag->jobs_submitted >= 120 && diag->jobs_submitted < 150);
        assert_true(diag->jobs_running > 0 && diag->jobs_running < 100);
        assert_true(diag->main.mean_usec > 0 && diag->main.mean_usec <= diag->main.max_usec);
        assert_true(diag->backfill.mean_usec > 0 && diag->backfill.mean_usec < UNKNOWN);
        assert_true(diag->backfill_mean_table > 0 && diag->backfill_mean_table < UNKNOWN);
        for (size_t k = 0; k < diag->n_rpc_by_type; k++)
            by_type += diag->rpc_by_type[k].count;
        for (size_t k = 0; k < diag->n_rpc_by_user; k++)
            by_user += diag->rpc_by_user[k].count;
        assert_true(by_type > 200 && by_type == by_user);
        for (size_t k = 0; k < diag->main.n_exits; k++)
            exits += diag->main.exit[k].count;
        assert_int_equal(exits, i < FIRST_24 ? 0 : diag->main.count);
        section_unref(section);
    }
}

TEST(licences_are_read_with_or_without_what_newer_releases_tell)
{
    struct section *section =
        read_text(KIND_LICENSES, &answer_licenses,
                  "LicenseName=ansys Total=4 Used=3 Free=1 Reserved=2 Remote=no\n"
                  "LicenseName=comsol@flex Total=18446744073709551614 Used=0 Free=4 Reserved=0 "
                  "Remote=yes LastConsumed=5 LastDeficit=6 LastUpdate=1794787249 Nodes=(null)\n");
    const struct license *license = section->licenses.license;

    assert_int_equal(section->licenses.n, 2);
    assert_str(section_text(section, license[0].name), "ansys");
    assert_int_equal(license[0].total, 4);
    assert_int_equal(license[0].used, 3);
    assert_int_equal(license[0].free, 1);
    assert_int_equal(license[0].reserved, 2);
    assert_false(license[0].is_remote);
    assert_true(license[0].last_consumed == UNKNOWN && license[0].last_deficit == UNKNOWN);
    assert_str(section_text(section, license[1].name), "comsol@flex");
    assert_true(license[1].total == UINT64_MAX - 1);
    assert_true(license[1].is_remote);
    assert_int_equal(license[1].last_consumed, 5);
    assert_int_equal(license[1].last_deficit, 6);
    section_unref(section);
}

TEST(a_forged_licence_changes_no_other)
{
    struct section *section =
        read_text(KIND_LICENSES, &answer_licenses,
                  "LicenseName=evil LicenseName=ansys Total=999 Total=4 Used=x Free=-1 Remote=no\n"
                  "LicenseName=ansys Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"
                  "LicenseName= Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"
                  "LicenseName=half\n"
                  "\n"
                  "something else\n");

    assert_int_equal(section->licenses.n, 2);
    assert_str(section_text(section, section->licenses.license[0].name), "evil LicenseName=ansys");
    assert_true(section->licenses.license[0].used == UNKNOWN);
    assert_true(section->licenses.license[0].free == UNKNOWN);
    assert_str(section_text(section, section->licenses.license[1].name), "ansys");
    assert_int_equal(section->licenses.license[1].total, 4);
    assert_int_equal(section->skipped, 3);
    section_unref(section);
}

/* As scontrol prints them without --oneliner, in 22.05 and in 26.05. */
TEST(a_licence_may_take_several_lines)
{
    struct section *section = read_text(KIND_LICENSES, &answer_licenses,
                                        "LicenseName=ansys\n"
                                        "    Total=4 Used=3 Free=1 Reserved=2 Remote=no\n"
                                        "LicenseName=comsol@flex\n"
                                        "    Total=9 Used=0 Free=9 Reserved=0 Remote=yes\n"
                                        "    LastConsumed=5 LastDeficit=6 LastUpdate=1794787249\n"
                                        "\n"
                                        "    Total=1 LicenseName=nobody\n"
                                        "LicenseName=half\n");
    const struct license *license = section->licenses.license;

    assert_int_equal(section->licenses.n, 2);
    assert_str(section_text(section, license[0].name), "ansys");
    assert_int_equal(license[0].total, 4);
    assert_int_equal(license[0].reserved, 2);
    assert_str(section_text(section, license[1].name), "comsol@flex");
    assert_true(license[1].is_remote);
    assert_int_equal(license[1].last_deficit, 6);
    assert_int_equal(section->skipped, 2);
    assert_str(section->skipped_example, "Total=1 LicenseName=nobody");
    section_unref(section);
}

TEST(a_licence_has_an_end)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 8 << 20);
    buf_text(&text, "LicenseName=ansys Total=4 Used=3 Free=1\nLicenseName=endless\n");
    while (text.n < (LINES_MAX * 3) / 2)
        buf_text(&text, " Total=4 Used=3 Free=1 Reserved=0 Remote=no\n");
    buf_text(&text, "LicenseName=matlab Total=4 Used=3 Free=1\n");
    section = read_text(KIND_LICENSES, &answer_licenses, text.p);
    assert_int_equal(section->licenses.n, 2);
    assert_int_equal(section->skipped, 1);
    section_unref(section);
    buf_free(&text);
}

TEST(recorded_licences_add_up)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section =
            read_recording(KIND_LICENSES, &answer_licenses, versions[i], "licenses");
        const struct license *license = section->licenses.license;

        assert_int_equal(section->licenses.n, 3);
        for (size_t k = 0; k < section->licenses.n; k++)
            assert_int_equal(license[k].used + license[k].free, license[k].total);
        assert_str(section_text(section, license[2].name), "matlab");
        assert_int_equal(license[2].total, 10);
        assert_int_equal(license[2].used, 4);
        assert_true(license[1].is_remote && !license[2].is_remote);
        assert_int_equal(license[1].last_consumed == UNKNOWN, i < FIRST_24);
        section_unref(section);
    }
}

#define RESERVATION_END                                                                            \
    " Features=(null) PartitionName=cpu Flags=IGNORE_JOBS,SPEC_NODES   NodeName=c1 CoreIDs=0-1 "   \
    "TRES=cpu=2 Users=alice,bob Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE "     \
    "BurstBuffer=(null) MaxStartDelay=(null)"

TEST(a_reservation_is_read_whatever_its_name)
{
    struct section *section =
        read_text(KIND_RESERVATIONS, &answer_reservations,
                  "ReservationName=my course x=1 State=ACTIVE StartTime=1794808877 "
                  "EndTime=1794809477 Duration=00:10:00 Nodes=c[1-2] NodeCnt=2 "
                  "CoreCnt=8" RESERVATION_END "\n");
    const struct reservation *reservation = section->reservations.reservation;

    assert_int_equal(section->reservations.n, 1);
    assert_str(section_text(section, reservation->name), "my course x=1 State=ACTIVE");
    assert_str(section_text(section, reservation->nodes), "c[1-2]");
    assert_str(section_text(section, reservation->users), "alice,bob");
    assert_str(section_text(section, reservation->accounts), "");
    assert_str(section_text(section, reservation->partition), "cpu");
    assert_str(section_text(section, reservation->flags), "IGNORE_JOBS,SPEC_NODES");
    assert_str(section_text(section, reservation->tres), "cpu=2");
    assert_int_equal(reservation->node_count, 2);
    assert_int_equal(reservation->core_count, 8);
    assert_int_equal(reservation->start_time, 1794808877);
    assert_int_equal(reservation->end_time, 1794809477);
    assert_false(reservation->is_active);
    section_unref(section);
}

TEST(a_reservations_comment_forges_nothing)
{
    struct section *section = read_text(
        KIND_RESERVATIONS, &answer_reservations,
        "ReservationName=a StartTime=1 EndTime=2 Duration=00:10:00 Nodes=c1 NodeCnt=1 "
        "CoreCnt=4" RESERVATION_END " Comment=evil State=ACTIVE NodeCnt=999\n"
        "ReservationName=forged StartTime=1 EndTime=2 State=ACTIVE\n"
        "third line\n"
        "ReservationName=b StartTime=3 EndTime=4 Duration=00:10:00 Nodes=c1 NodeCnt=4294967296 "
        "CoreCnt=-4" RESERVATION_END "\n");
    const struct reservation *reservation = section->reservations.reservation;

    assert_int_equal(section->reservations.n, 2);
    assert_false(reservation[0].is_active);
    assert_int_equal(reservation[0].node_count, 1);
    assert_str(section_text(section, reservation[1].name), "b");
    assert_int_equal(reservation[1].node_count, MODEL_UNKNOWN_U32);
    assert_int_equal(reservation[1].core_count, MODEL_UNKNOWN_U32);
    assert_int_equal(section->skipped, 1);
    assert_str(section->skipped_example,
               "ReservationName=forged StartTime=1 EndTime=2 State=ACTIVE");
    section_unref(section);
}

#define RESERVATION_BEGIN                                                                          \
    " StartTime=1 EndTime=2 Duration=00:10:00 Nodes=c1 NodeCnt=1 CoreCnt=4" RESERVATION_END

TEST(the_lines_of_a_comment_are_no_records_that_cannot_be_read)
{
    struct section *section =
        read_text(KIND_RESERVATIONS, &answer_reservations,
                  "ReservationName=a" RESERVATION_BEGIN " Comment=first line\n"
                  "second line\n"
                  "\n"
                  "Nodes=c9 State=ACTIVE\n"
                  "ReservationName=b Comment=odd" RESERVATION_BEGIN "\n"
                  "nobody's line\n"
                  "ReservationName=c" RESERVATION_BEGIN "\n");

    assert_int_equal(section->reservations.n, 3);
    assert_int_equal(section->skipped, 1);
    assert_str(section->skipped_example, "nobody's line");
    section_unref(section);
}

TEST(recorded_reservations_are_those_of_the_seed)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section =
            read_recording(KIND_RESERVATIONS, &answer_reservations, versions[i], "reservations");
        const struct reservation *reservation = section->reservations.reservation;

        assert_int_equal(section->reservations.n, 2);
        assert_str(section_text(section, reservation[0].name), "maint1");
        assert_str(section_text(section, reservation[0].users), "root");
        assert_str(section_text(section, reservation[0].flags), "MAINT,IGNORE_JOBS,SPEC_NODES");
        assert_int_equal(reservation[0].end_time - reservation[0].start_time, 3600);
        assert_false(reservation[0].is_active);
        assert_str(section_text(section, reservation[1].name), "course");
        assert_str(section_text(section, reservation[1].accounts), "bio");
        assert_str(section_text(section, reservation[1].nodes), "c3");
        assert_true(reservation[1].is_active);
        assert_int_equal(reservation[1].core_count, 4);
        section_unref(section);
    }
}

TEST(a_cluster_without_any_says_so)
{
    struct section *section =
        read_text(KIND_LICENSES, &answer_licenses, "No licenses configured in Slurm.\n");

    assert_int_equal(section->licenses.n + section->skipped, 0);
    section_unref(section);
    section = read_text(KIND_RESERVATIONS, &answer_reservations, "No reservations in the system\n");
    assert_int_equal(section->reservations.n + section->skipped, 0);
    section_unref(section);
    section = read_text(KIND_ASSOCIATIONS, &answer_associations,
                        "Current Association Manager state\n\n"
                        "No associations currently cached in Slurm.\n\n"
                        "No QOS currently cached in Slurm.\n\n");
    assert_int_equal(section->associations.n + section->associations.n_qos + section->skipped, 0);
    section_unref(section);
    section = read_text(KIND_SHARES, &answer_sshare, "\n");
    assert_int_equal(section->shares.n + section->skipped, 0);
    section_unref(section);
}

TEST(an_answer_that_is_cut_off_or_none_is_refused)
{
    assert_refused(KIND_LICENSES, &answer_licenses, "LicenseName=ansys Total=4 Used=3 Free=1",
                   "in the middle of a line");
    assert_refused(KIND_RESERVATIONS, &answer_reservations, "ReservationName=a StartTime=1",
                   "in the middle of a line");
    assert_refused(KIND_SHARES, &answer_sshare, "root||||0.000000|6419||1.0", "middle of a line");
    assert_refused(KIND_DIAG, &answer_sdiag, "sdiag output at now (1794785561)\nJobs submitted: 1",
                   "in the middle of a line");
    assert_refused(KIND_DIAG, &answer_sdiag, "", "no statistics");
    assert_refused(KIND_DIAG, &answer_sdiag, "No data available\n", "no statistics");
    assert_refused(KIND_ASSOCIATIONS, &answer_associations, "", "no associations");
    assert_refused(KIND_CONFIG, &answer_config, "", "no configuration");
    assert_refused(KIND_LICENSES, &answer_licenses, "slurm: busy\nLicenseName=half\n",
                   "the first of 2 is \"slurm: busy\"");
    assert_refused(KIND_RESERVATIONS, &answer_reservations, "ReservationName=a State=ACTIVE\n",
                   "the first of 1 is \"ReservationName=a State=ACTIVE\"");
    assert_refused(KIND_SHARES, &answer_sshare, "Account|User\n", "the first of 1 is");
    assert_refused(KIND_CONFIG, &answer_config, "SLURM_VERSION = 22.0", "middle of a line");
}

TEST(a_share_is_a_row_of_fields)
{
    struct section *section =
        read_text(KIND_SHARES, &answer_sshare,
                  "root||||0.000000|6419||1.000000||\n"
                  " ops|||20|0.196078|1069|0.166570|0.166570||1.177156\n"
                  "  ops|dave|debug|2|0.166667|18446744073709551615|0.5|0.25|0.888889|inf\n");
    const struct share *share = section->shares.share;

    assert_int_equal(section->shares.n, 3);
    assert_str(section_text(section, share[0].account), "root");
    assert_true(share[0].raw_shares == UNKNOWN && !share[0].is_parent);
    assert_true(share[0].normalised_shares == 0 && share[0].raw_usage == 6419);
    assert_true(isnan(share[0].normalised_usage) && share[0].effective_usage == 1);
    assert_true(isnan(share[0].factor) && isnan(share[0].level));
    assert_int_equal(share[1].user, 0);
    assert_int_equal(share[1].raw_shares, 20);
    assert_true(share[1].level == 1.177156 && isnan(share[1].factor));
    assert_str(section_text(section, share[2].user), "dave");
    assert_str(section_text(section, share[2].partition), "debug");
    assert_true(share[2].normalised_usage == 0.5 && share[2].effective_usage == 0.25);
    assert_true(share[2].factor == 0.888889 && isinf(share[2].level));
    section_unref(section);
}

TEST(the_tree_of_shares_is_told_by_blanks)
{
    static const char *const parents[] = { "", "root", "root", "a", "a", "b", "b", "root", "c" };
    struct section *section = read_text(KIND_SHARES, &answer_sshare,
                                        "root||||0|0|0|0|0|0\n"
                                        " root|root||1|0|0|0|0|0|0\n"
                                        " a|||1|0|0|0|0|0|0\n"
                                        "  a|alice||1|0|0|0|0|0|0\n"
                                        "  b|||1|0|0|0|0|0|0\n"
                                        "   b|bob||1|0|0|0|0|0|0\n"
                                        "   b|alice||parent|0|0|0|0|0|\n"
                                        " c|||1|0|0|0|0|0|0\n"
                                        "  d|||1|0|0|0|0|0|0\n");

    assert_int_equal(section->shares.n, COUNT(parents));
    for (size_t i = 0; i < COUNT(parents); i++)
        assert_str(section_text(section, section->shares.share[i].parent), parents[i]);
    assert_true(section->shares.share[6].is_parent);
    assert_true(section->shares.share[6].raw_shares == UNKNOWN);
    assert_true(isnan(section->shares.share[6].level));
    section_unref(section);
}

/* With PrivateData=usage sshare tells nobody but ourselves, and no tree. */
TEST(users_without_their_accounts_still_have_a_parent)
{
    struct section *section =
        read_text(KIND_SHARES, &answer_sshare, "bio|alice||1|0.008170|0||0.000000|1.000000|0.5\n");

    assert_str(section_text(section, section->shares.share[0].parent), "bio");
    section_unref(section);
}

/* With PriorityFlags=NO_FAIR_TREE, and before the first calculation, it is 0 for everybody. */
TEST(a_level_that_was_not_computed_is_unknown)
{
    struct section *section = read_text(KIND_SHARES, &answer_sshare,
                                        "root||||1.000000|7||1.000000|0.500000|0.000000\n"
                                        " a|||0|0.000000|2||0.000000||0.000000\n"
                                        " b|||1|0.009804|2||0.000000||0.000000\n");

    assert_true(isnan(section->shares.share[0].level));
    assert_true(section->shares.share[1].level == 0); /* has no shares */
    assert_true(isnan(section->shares.share[2].level));
    section_unref(section);
}

TEST(odd_rows_of_shares_are_left_out)
{
    struct buf text;
    struct section *section;

    buf_init(&text, 1 << 16);
    buf_text(&text, "root||||0|0|0|0|0|0\n"
                    "too|few|fields\n"
                    "one|too||1|0|0|0|0|0|0|many\n"
                    "|alice||1|0|0|0|0|0|0\n");
    for (int i = 0; i < 1000; i++)
        buf_byte(&text, ' ');
    buf_text(&text, "deep|||1|0|0|0|0|0|0\n"
                    "huge|||99999999999999999999|1e999|x|nan|-|0|0\n");
    section = read_text(KIND_SHARES, &answer_sshare, text.p);
    assert_int_equal(section->shares.n, 2);
    assert_int_equal(section->skipped, 4);
    assert_true(section->shares.share[1].raw_shares == UNKNOWN);
    assert_true(isnan(section->shares.share[1].raw_usage));
    section_unref(section);
    buf_free(&text);
}

TEST(recorded_shares_are_a_tree_that_adds_up)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section =
            read_recording(KIND_SHARES, &answer_sshare, versions[i], "sshare");
        const struct shares *shares = &section->shares;
        double users = 0, of_top = 0;

        assert_int_equal(shares->n, 15);
        for (size_t k = 0; k < shares->n; k++) {
            const struct share *share = &shares->share[k];

            users += share->user ? share->raw_usage : 0;
            if (k && str_eq(section_text(section, share->parent), STR("root")))
                of_top += share->normalised_shares;
            assert_int_equal(share->is_parent,
                             str_eq(section_text(section, share->user), STR("erin")));
            assert_true(share->user == 0 || (share->factor > 0 && share->factor <= 1));
        }
        assert_true(fabs(users - shares->share[0].raw_usage) < (double)shares->n);
        assert_true(fabs(of_top - 1) < 1e-5);
        section_unref(section);
    }
}

static const char associations_text[] =
    "Current Association Manager state\n"
    "\n"
    "Association Records\n"
    "\n"
    "ClusterName=sandbox Account=guests UserName= Partition= Priority=0 ID=5\n"
    "    SharesRaw/Norm/Level/Factor=1/0.01/102/0.00\n"
    "    UsageRaw/Norm/Efctv=176.15/0.03/0.03\n"
    "    ParentAccount=root(1) Lft=10 DefAssoc=No\n"
    "    GrpJobs=30(1) GrpJobsAccrue=N(0)\n"
    "    GrpSubmitJobs=500(21) GrpWall=60000(2.87)\n"
    "    GrpTRES=cpu=64(2),mem=64000(100),node=N(1),gres/gpu:a100=0(0)\n"
    "    GrpTRESMins=cpu=100000(3),mem=10000000(286),node=N(2)\n"
    "    GrpTRESRunMins=cpu=50000(57),mem=N(5713)\n"
    "    MaxJobs=20(1) MaxJobsAccrue= MaxSubmitJobs=400(21) MaxWallPJ=\n"
    "    MaxTRESPJ=\n"
    "    MaxTRESPN=\n"
    "    MaxTRESMinsPJ=\n"
    "    MinPrioThresh=\n"
    "    Comment=evil GrpJobs=1(1)\n"
    "    GrpWall=1(1)\n"
    "ClusterName=sandbox Account=guests UserName=mallory(2006) Partition=debug Priority=0 ID=15\n"
    "    GrpJobs=N(1) GrpJobsAccrue=N(0)\n"
    "    GrpTRES=\n"
    "    MaxJobs=20(1) MaxJobsAccrue= MaxSubmitJobs=400(21) MaxWallPJ=\n"
    "\n"
    "QOS Records\n"
    "\n"
    "QOS=normal(1)\n"
    "    UsageRaw=5204.976610\n"
    "    GrpJobs=N(13) GrpJobsAccrue=N(12) GrpSubmitJobs=N(100) GrpWall=N(2.00)\n"
    "QOS=gpu(4)\n"
    "    GrpJobs=7(3) GrpJobsAccrue=N(1) GrpSubmitJobs=N(2) GrpWall=N(0.12)\n"
    "    GrpTRES=cpu=N(2),mem=N(500)\n"
    "    PreemptMode=OFF\n"
    "    Priority=500\n"
    "    Account Limits\n"
    "      bio\n"
    "        MaxJobsPA=9(1) MaxJobsAccruePA=N(1) MaxSubmitJobsPA=N(2)\n"
    "        MaxTRESPA=cpu=5(2),mem=N(500)\n"
    "    User Limits\n"
    "      2003\n"
    "        MaxJobsPU=20(1) MaxJobsAccruePU=N(1) MaxSubmitJobsPU=50(9)\n"
    "        MaxTRESPU=cpu=N(2),mem=2048(500),gres/gpu=4(2)\n"
    "      bob(2002)\n"
    "        MaxJobsPU=20(3) MaxJobsAccruePU=N(1) MaxSubmitJobsPU=50(2)\n"
    "        MaxTRESPU=cpu=N(2),mem=2048(100),gres/gpu=4(3)\n";

struct expected_limit {
    enum limit_kind kind;
    const char *tres;
    uint64_t limit, used;
};

static void assert_limits(const struct section *section, uint32_t first, uint32_t n,
                          const struct expected_limit *expected, size_t n_expected)
{
    assert_int_equal(n, n_expected);
    for (size_t i = 0; i < n; i++) {
        const struct limit *limit = &section->associations.limit[first + i];

        assert_int_equal(limit->kind, expected[i].kind);
        assert_str(section_text(section, limit->tres), expected[i].tres);
        assert_int_equal(limit->limit, expected[i].limit);
        assert_int_equal(limit->used, expected[i].used);
    }
}

TEST(limits_come_in_base_units_with_what_is_used)
{
    static const struct expected_limit of_account[] = {
        { LIMIT_JOBS, "", 30, 1 },
        { LIMIT_SUBMITTED, "", 500, 21 },
        { LIMIT_WALL_SECONDS, "", 3600000, 172 },
        { LIMIT_TRES, "cpu", 64, 2 },
        { LIMIT_TRES, "mem", 64000ull << 20, 100 << 20 },
        { LIMIT_TRES, "gres/gpu:a100", 0, 0 },
        { LIMIT_TRES_SECONDS, "cpu", 6000000, 180 },
        { LIMIT_TRES_SECONDS, "mem", (600000000ull << 20), 17160ull << 20 },
        { LIMIT_TRES_RUN_SECONDS, "cpu", 3000000, 3420 },
        { LIMIT_USER_JOBS, "", 20, UNKNOWN }, /* handed down to its users */
        { LIMIT_USER_SUBMITTED, "", 400, UNKNOWN },
    };
    static const struct expected_limit of_user[] = {
        { LIMIT_USER_JOBS, "", 20, 1 },
        { LIMIT_USER_SUBMITTED, "", 400, 21 },
    };
    struct section *section = read_text(KIND_ASSOCIATIONS, &answer_associations, associations_text);
    const struct association *association = section->associations.association;

    assert_int_equal(section->associations.n, 2);
    assert_str(section_text(section, association[0].account), "guests");
    assert_int_equal(association[0].user, 0);
    assert_int_equal(association[0].partition, 0);
    assert_limits(section, association[0].first_limit, association[0].n_limits, of_account,
                  COUNT(of_account));
    assert_str(section_text(section, association[1].user), "mallory");
    assert_str(section_text(section, association[1].partition), "debug");
    assert_limits(section, association[1].first_limit, association[1].n_limits, of_user,
                  COUNT(of_user));
    assert_int_equal(section->skipped, 0);
    section_unref(section);
}

TEST(of_a_qos_the_user_who_uses_most_is_told)
{
    static const struct expected_limit of_gpu[] = {
        { LIMIT_JOBS, "", 7, 3 },
        { LIMIT_USER_JOBS, "", 20, 3 },
        { LIMIT_USER_SUBMITTED, "", 50, 9 },
        { LIMIT_USER_TRES, "mem", 2048ull << 20, 500 << 20 },
        { LIMIT_USER_TRES, "gres/gpu", 4, 3 },
    };
    struct section *section = read_text(KIND_ASSOCIATIONS, &answer_associations, associations_text);
    const struct qos *qos = section->associations.qos;

    assert_int_equal(section->associations.n_qos, 2);
    assert_str(section_text(section, qos[0].name), "normal");
    assert_int_equal(qos[0].n_limits, 0);
    assert_str(section_text(section, qos[1].name), "gpu");
    assert_limits(section, qos[1].first_limit, qos[1].n_limits, of_gpu, COUNT(of_gpu));
    section_unref(section);
}

TEST(limits_that_cannot_be_read_are_none)
{
    static const struct expected_limit expected[] = {
        { LIMIT_SUBMITTED, "", 18446744073709551614ull, UNKNOWN },
        { LIMIT_TRES, "gres/gpu", 3, UNKNOWN },
    };
    struct section *section =
        read_text(KIND_ASSOCIATIONS, &answer_associations,
                  "Current Association Manager state\n"
                  "    GrpJobs=1(1)\n"
                  "ClusterName=x Account= UserName= Partition=\n"
                  "    GrpJobs=1(1)\n"
                  "ClusterName=x UserName=nobody\n"
                  "QOS=\n"
                  "    GrpJobs=1(1)\n"
                  "ClusterName=x Account=a UserName= Partition=\n"
                  "    GrpJobs=-1(1) GrpSubmitJobs=18446744073709551614(x) GrpWall=)(\n"
                  "    GrpTRES=cpu=(1),mem=18446744073709551614(1),=4(1),gres/gpu=3,,billing\n"
                  "    GrpTRESMins=cpu=999999999999999999(0)\n"
                  "    MaxJobsPU=4(1)\n");
    const struct associations *all = &section->associations;

    assert_int_equal(all->n, 1);
    assert_limits(section, all->association[0].first_limit, all->association[0].n_limits, expected,
                  COUNT(expected));
    assert_int_equal(all->n_limits, COUNT(expected));
    assert_int_equal(section->skipped, 3);
    section_unref(section);
}

/* There are not so many resources; and each is compared with those before it. */
TEST(an_endless_list_of_limits_is_cut)
{
    struct section *section;
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_text(&text, "Current Association Manager state\nQOS=q(1)\n        MaxTRESPU=");
    for (unsigned i = 0; i < 1500; i++)
        buf_printf(&text, "gres/x%u=1(0),", i);
    buf_text(&text, "\n");
    section = read_text(KIND_ASSOCIATIONS, &answer_associations, text.p);
    assert_int_equal(section->associations.qos[0].n_limits, 1000);
    assert_int_equal(section->skipped, 500);
    assert_str(section->skipped_example, "gres/x1000");
    section_unref(section);
    buf_free(&text);
}

static const struct limit *find_limit(const struct section *section, uint32_t first, uint32_t n,
                                      enum limit_kind kind, const char *tres)
{
    for (uint32_t i = first; i < first + n; i++) {
        const struct limit *limit = &section->associations.limit[i];

        if (limit->kind == kind && str_eq(section_text(section, limit->tres), str_of(tres)))
            return limit;
    }
    fail_msg("no limit %d on \"%s\"", kind, tres);
    return NULL;
}

TEST(recorded_limits_are_those_of_the_seed)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section =
            read_recording(KIND_ASSOCIATIONS, &answer_associations, versions[i], "associations");
        const struct associations *all = &section->associations;
        size_t limited = 0;

        assert_int_equal(all->n, 15);
        assert_int_equal(all->n_qos, 4);
        for (size_t k = 0; k < all->n; k++) {
            const struct association *of = &all->association[k];

            limited += of->n_limits > 0;
            if (of->user || !str_eq(section_text(section, of->account), STR("physics")))
                continue;
            assert_int_equal(of->n_limits, 1);
            assert_int_equal(all->limit[of->first_limit].limit, 12);
            assert_true(all->limit[of->first_limit].used > 0);
            assert_true(all->limit[of->first_limit].used <= 12);
        }
        assert_int_equal(limited, 5); /* guests, mallory, dave in debug, erin, physics */
        assert_str(section_text(section, all->qos[3].name), "gpu");
        assert_int_equal(find_limit(section, all->qos[3].first_limit, all->qos[3].n_limits,
                                    LIMIT_USER_TRES, "gres/gpu")
                             ->used,
                         2);
        section_unref(section);
    }
}

static const char config_text[] = "Configuration data as of 1794787554\n"
                                  "AccountingStorageType   = accounting_storage/slurmdbd\n"
                                  "ClusterName             = sandbox\n"
                                  "PrivateData             = cloud,jobs,Usage,something\n"
                                  "SlurmUser               = slurm(64030)\n"
                                  "SLURM_VERSION           = 22.05.8\n"
                                  "\n"
                                  "Cgroup Support Configuration:\n"
                                  "ClusterName             = other\n"
                                  "PrivateData             = none\n"
                                  "\n"
                                  "Slurmctld(primary) at sonde is UP\n";

enum { BOTH = 1 << PRIVATE_JOBS | 1 << PRIVATE_USAGE };

/* As that user would have read it. */
static struct section *read_config(const char *text, uint32_t user_id)
{
    struct section *section = section_new(KIND_CONFIG);
    struct answer *answer = answer_new(&answer_config, section, SIZE_MAX);
    struct err err;

    assert_int_equal(section->config.user_id, geteuid());
    section->config.user_id = user_id;
    assert_int_equal(answer_config.feed(answer, str_of(text), &err), 0);
    assert_int_equal(answer_config.end(answer, &err), 0);
    answer_free(answer);
    return section;
}

TEST(private_data_hides_from_all_but_root_and_slurm)
{
    static const struct {
        uint32_t user_id;
        unsigned hidden;
    } rows[] = { { 0, 0 }, { 64030, 0 }, { 2001, BOTH } };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_config(config_text, rows[i].user_id);

        assert_str(section_text(section, section->config.cluster), "sandbox");
        assert_str(section_text(section, section->config.version), "22.05.8");
        assert_int_equal(section->config.hidden, rows[i].hidden);
        assert_int_equal(section->config.private, BOTH);
        section_unref(section);
    }
}

TEST(recorded_configurations_hide_nothing)
{
    static const char *const full[] = { "20.11.4", "22.05.8", "24.11.5", "26.05.5" };

    for (size_t i = 0; i < COUNT(versions); i++) {
        struct section *section =
            read_recording(KIND_CONFIG, &answer_config, versions[i], "config");

        assert_str(section_text(section, section->config.cluster), "sandbox");
        assert_str(section_text(section, section->config.version), full[i]);
        assert_int_equal(section->config.hidden, 0);
        section_unref(section);
    }
}

static void tell_users(struct section *section, const char *text)
{
    struct answer *answer = answer_new(&answer_config_user, section, SIZE_MAX);
    struct err err;

    assert_int_equal(answer_config_user.feed(answer, str_of(text), &err), 0);
    assert_int_equal(answer_config_user.end(answer, &err), 0);
    answer_free(answer);
}

TEST(operators_and_administrators_see_all)
{
    static const char users[] =
        "Current Association Manager state\n\nUser Records\n\n"
        "UserName=dave(2004) DefAccount=ops DefWckey= AdminLevel=Operator\n"
        "UserName=an (odd) one(2005) DefAccount=bio DefWckey= AdminLevel=Administrator\n"
        "UserName=alice(2001) DefAccount=physics DefWckey= AdminLevel=Not Set\n"
        "UserName=alice(2001) DefAccount=physics DefWckey= AdminLevel=Operator\n"
        "UserName=Operator(12001) DefAccount=physics DefWckey= AdminLevel=None\n";
    static const struct {
        uint32_t user_id;
        unsigned hidden;
        const char *name;
    } rows[] = {
        { 2004, 0, "dave" },         { 2005, 0, "an (odd) one" }, { 2001, BOTH, "alice" },
        { 12001, BOTH, "Operator" }, { 2010, BOTH, "" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct section *section = read_config(config_text, rows[i].user_id);

        tell_users(section, users);
        assert_int_equal(section->config.hidden, rows[i].hidden);
        assert_int_equal(section->config.private, BOTH);
        assert_str(section_text(section, section->config.user), rows[i].name);
        section_unref(section);
    }
}

TEST(what_is_hidden_is_said_with_what_to_do)
{
    struct section *section = read_config(config_text, 2001);
    char warning[SOURCE_WARNING] = "as it was";
    struct err err = { .text = "scontrol: Invalid user id" };

    config_warn(section, &err, warning);
    assert_contains(warning, "PrivateData hides jobs, usage of others from user id 2001");
    assert_contains(warning, "sacctmgr add user");
    assert_contains(warning, "Invalid user id");
    tell_users(section, "UserName=alice(2001) DefAccount=a DefWckey= AdminLevel=Not Set\n");
    config_warn(section, NULL, warning);
    assert_contains(warning, "from user alice: ");
    assert_contains(warning, "sacctmgr modify user alice set adminlevel=operator");
    section->config.hidden = (1 << PRIVATE_DATA) - 1;
    config_warn(section, NULL, warning);
    assert_contains(warning, "adminlevel=operator"); /* the longest is not cut */
    section->config.hidden = 0;
    snprintf(warning, sizeof(warning), "as it was");
    config_warn(section, NULL, warning);
    assert_string_equal(warning, "as it was");
    section_unref(section);
}

enum { NOBODY = 65534 };

/* Commands of its own in test_dir(), run as somebody who is not root. */
struct fake {
    struct source *source;
};

static void fake_open(struct fake *fake, const char *scontrol, const char *sshare)
{
    struct source_settings settings = { .spec = STR("cli"), .max_answer = 1 << 20 };
    struct err err;

    if (geteuid() == 0)
        need("root"); /* which can become another user */
    write_script("scontrol", scontrol);
    write_script("sshare", sshare);
    settings.bin_path = str_of(test_dir());
    if (source_open(&settings, &clock_real, &fake->source, &err) < 0)
        fail_msg("%s", err.text);
}

static void fake_close(struct fake *fake)
{
    source_close(fake->source);
}

static int fake_read(struct fake *fake, enum kind kind, struct section **ret,
                     char warning[SOURCE_WARNING], struct err *err)
{
    int64_t deadline = clock_mono(&clock_real) + TEST_DEADLINE;
    uid_t user = geteuid();
    int code;

    if (user == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    code = fake->source->class->read(fake->source, kind, deadline, ret, warning, err);
    assert_int_equal(seteuid(user), 0);
    return code;
}

TEST(a_failing_second_question_loses_no_configuration)
{
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct fake fake;
    struct err err;

    fake_open(&fake,
              "case \"$*\" in\n"
              "'show config') printf 'ClusterName = c\\nPrivateData = jobs\\n' ;;\n"
              "*) echo 'slurm_load_assoc_mgr_info error: Invalid user id' >&2; exit 1 ;;\n"
              "esac",
              ":");
    assert_int_equal(fake_read(&fake, KIND_CONFIG, &section, warning, &err), 0);
    assert_str(section_text(section, section->config.cluster), "c");
    assert_int_equal(section->config.hidden, 1 << PRIVATE_JOBS);
    assert_contains(warning, "PrivateData hides jobs of others");
    assert_contains(warning, "Invalid user id");
    section_unref(section);
    fake_close(&fake);
}

TEST(an_operator_is_found_by_the_second_question)
{
    char warning[SOURCE_WARNING] = "", script[512];
    uid_t user = geteuid() == 0 ? NOBODY : geteuid();
    struct section *section;
    struct fake fake;
    struct err err;

    snprintf(script, sizeof(script),
             "case \"$*\" in\n"
             "'show config') printf 'ClusterName = c\\nPrivateData = jobs\\n' ;;\n"
             "'show assoc_mgr flags=users') echo 'UserName=me(%u) DefAccount=a "
             "AdminLevel=Operator' ;;\n"
             "esac",
             (unsigned)user);
    fake_open(&fake, script, ":");
    assert_int_equal(fake_read(&fake, KIND_CONFIG, &section, warning, &err), 0);
    assert_int_equal(section->config.hidden, 0);
    assert_string_equal(warning, "");
    assert_true(section->bytes_read > 60); /* of both */
    section_unref(section);
    fake_close(&fake);
}

TEST(a_cluster_without_slurmdbd_is_told_how_to_do_without)
{
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct fake fake;
    struct err err;

    fake_open(&fake, "echo 'Invalid user id' >&2; exit 1",
              "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1");
    assert_int_equal(fake_read(&fake, KIND_SHARES, &section, warning, &err), -EOPNOTSUPP);
    assert_contains(err.text, "keeps no associations");
    assert_contains(err.text, "--no-collector.fairshare");
    assert_int_equal(fake_read(&fake, KIND_ASSOCIATIONS, &section, warning, &err), -EREMOTEIO);
    assert_contains(err.text, "sacctmgr add user");
    assert_contains(err.text, "Invalid user id");
    write_script("sshare", ":");
    assert_int_equal(fake_read(&fake, KIND_SHARES, &section, warning, &err), 0);
    assert_int_equal(section->shares.n, 0);
    assert_contains(warning, "tells of no association");
    section_unref(section);
    fake_close(&fake);
}

/* One row of sinfo, of which only state and CPUs matter. */
static int read_sinfo(const struct answer_class *class, const char *state, const char *cpus,
                      struct node *ret)
{
    struct section *section = section_new(KIND_NODES);
    struct answer *answer = answer_new(class, section, SIZE_MAX);
    const char *token = ((struct framed *)answer)->frame.token;
    struct err err = { 0 };
    struct buf row;
    int code;

    buf_init(&row, 4096);
    for (int i = 0; i < SINFO_N_FIELDS; i++)
        buf_printf(&row, "%s%s",
                   i == SINFO_STATE  ? state
                   : i == SINFO_CPUS ? cpus
                   : i == SINFO_NODE ? "n1"
                                     : "N/A",
                   token);
    buf_byte(&row, '\n');
    assert_int_equal(class->feed(answer, buf_str(&row), &err), 0);
    code = class->end(answer, &err);
    assert_int_equal(section->nodes.n, 1);
    *ret = section->nodes.node[0];
    answer_free(answer);
    section_unref(section);
    buf_free(&row);
    return code;
}

static struct node read_node(const char *state, const char *cpus)
{
    struct node node;

    assert_int_equal(read_sinfo(&answer_sinfo, state, cpus, &node), 0);
    return node;
}

/* Slurm 22.05 says allocated where scontrol says MIXED+DRAIN. */
TEST(a_draining_node_that_is_half_used_is_mixed)
{
    assert_int_equal(read_node("allocated+drain", "7/0/1/8").state.base, NODE_MIXED);
    assert_int_equal(read_node("allocated+drain", "8/0/0/8").state.base, NODE_ALLOCATED);
    assert_int_equal(read_node("allocated", "7/1/0/8").state.base, NODE_ALLOCATED);
    assert_int_equal(read_node("idle+drain", "0/0/8/8").state.base, NODE_IDLE);
    assert_int_equal(read_node("allocated+drain", "?").state.base, NODE_ALLOCATED);
}

/* 20.11 leaves it empty and is asked for StateLong instead. */
TEST(a_release_without_complete_states_is_passed_over)
{
    struct node node;

    assert_int_equal(read_sinfo(&answer_sinfo, "", "0/8/0/8", &node), -EOPNOTSUPP);
    assert_int_equal(read_sinfo(&answer_sinfo_older, "", "0/8/0/8", &node), 0);
    assert_int_equal(node.state.base, NODE_UNKNOWN);
    assert_int_equal(read_sinfo(&answer_sinfo_older, "draining*", "3/0/5/8", &node), 0);
    assert_int_equal(node.state.base, NODE_MIXED);
    assert_int_equal(node.state.flags, NODE_DRAIN | NODE_NOT_RESPONDING);
}

TEST(a_release_is_asked_for_the_words_that_it_knows)
{
    struct buf format;
    struct section *section = section_new(KIND_NODES);
    struct answer *answer = answer_new(&answer_sinfo_older, section, SIZE_MAX);

    buf_init(&format, 4096);
    answer_sinfo_older.put_format(answer, &format);
    assert_contains(format.p, ",StateLong:@");
    assert_int_equal(str_find_str(buf_str(&format), STR("StateComplete")), format.n);
    buf_free(&format);
    answer_free(answer);
    section_unref(section);
}

/* One row of squeue, of which only these matter. */
static struct section *read_squeue(const char *user, const char *user_id, const char *alloc_node)
{
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_squeue, section, SIZE_MAX);
    const char *token = ((struct framed *)answer)->frame.token;
    struct err err = { 0 };
    struct buf row;

    buf_init(&row, 4096);
    for (int i = 0; i < SQUEUE_N_FIELDS; i++)
        buf_printf(&row, "%s%s",
                   i == SQUEUE_JOB_ID       ? "7"
                   : i == SQUEUE_USER_NAME  ? user
                   : i == SQUEUE_USER_ID    ? user_id
                   : i == SQUEUE_ALLOC_NODE ? alloc_node
                                            : "N/A",
                   token);
    buf_byte(&row, '\n');
    assert_int_equal(answer_squeue.feed(answer, buf_str(&row), &err), 0);
    assert_int_equal(answer_squeue.end(answer, &err), 0);
    answer_free(answer);
    buf_free(&row);
    return section;
}

TEST(squeue_tells_where_a_job_was_submitted)
{
    static const struct {
        const char *field, *told;
    } hosts[] = { { "login1", "login1" }, { "a\n|\"b", "a\n|\"b" }, { "", "" }, { "N/A", "" } };

    for (size_t i = 0; i < COUNT(hosts); i++) {
        struct section *section = read_squeue("alice", "2001", hosts[i].field);

        assert_str(section_text(section, section->jobs.job[0].alloc_node), hosts[i].told);
        section_unref(section);
    }
}

TEST(a_user_whom_no_directory_knows_is_told_by_his_number)
{
    static const struct {
        const char *name, *id, *told;
    } users[] = {
        { "nobody", "2001", "2001" },
        { "", "2001", "2001" },
        { "alice", "2001", "alice" },
        { "nobody", "65534", "nobody" },
        { "nobody", "99", "nobody" },
        { "", "0", "0" },
        { "nobody", "1000", "1000" },
        { "nobody", "N/A", "nobody" },
        { "", "N/A", "" },
    };

    for (size_t i = 0; i < COUNT(users); i++) {
        struct section *section = read_squeue(users[i].name, users[i].id, "");

        assert_str(section_text(section, section->jobs.job[0].user), users[i].told);
        section_unref(section);
    }
}

/* What answer_owners makes of a text in which ~ stands for the token, in pieces of that size. NULL
 * with the sentence in *err if it is refused. */
static struct section *read_owners(const char *text, size_t piece, struct err *err)
{
    struct section *section = section_new(KIND_JOBS);
    struct answer *answer = answer_new(&answer_owners, section, SIZE_MAX);
    struct buf bytes;
    int code = 0;

    buf_init(&bytes, 1 << 16);
    for (; *text; text++) {
        if (*text == '~')
            buf_text(&bytes, ((struct owned *)answer)->token);
        else
            buf_byte(&bytes, *text);
    }
    for (struct str rest = buf_str(&bytes); rest.n && code == 0; rest = str_skip(rest, piece))
        code = answer_owners.feed(answer, str_head(rest, piece), err);
    if (code == 0)
        code = answer_owners.end(answer, err);
    answer_free(answer);
    buf_free(&bytes);
    return code == 0 ? section : section_unref(section);
}

struct owned_expected {
    uint32_t id;
    const char *account, *user;
    uint32_t user_id;
};

static void assert_owners(const char *text, uint64_t skipped, const struct owned_expected *expected,
                          size_t n)
{
    static const size_t pieces[] = { 1, 7, 65536 };

    for (size_t k = 0; k < COUNT(pieces); k++) {
        struct err err = { 0 };
        struct section *section = read_owners(text, pieces[k], &err);

        if (!section)
            fail_msg("%s", err.text);
        assert_int_equal(section->jobs.n, n);
        assert_int_equal(section->skipped, skipped);
        for (size_t i = 0; i < n; i++) {
            const struct job *job = &section->jobs.job[i];

            assert_int_equal(job->id, expected[i].id);
            assert_int_equal(job->user_id, expected[i].user_id);
            assert_str(section_text(section, job->account), expected[i].account);
            assert_str(section_text(section, job->user), expected[i].user);
        }
        section_unref(section);
    }
}

TEST(owners_come_in_fields_that_end_with_the_token)
{
    static const struct owned_expected expected[] = {
        { 7, "physics", "alice", 1000 },
        { 4294967294, "", "2001", 2001 },
        { 8, "a b", "dom\\jo doe", 3 },
    };

    assert_owners("7~physics~alice~1000~\n4294967294~(null)~nobody~2001~\n"
                  "8~a b~dom\\jo doe~3~\n",
                  0, expected, COUNT(expected));
}

TEST(of_a_job_whose_owner_is_wanted_nothing_else_is_known)
{
    struct err err = { 0 };
    struct section *section = read_owners("7~physics~alice~1000~\n", 100, &err);
    const struct job *job = &section->jobs.job[0];

    assert_int_equal(job->tasks, 1);
    assert_int_equal(job->array_job_id, 0);
    assert_int_equal(job->array_task_id, MODEL_UNKNOWN_U32);
    assert_int_equal(job->cpus, MODEL_UNKNOWN_U32);
    assert_int_equal(job->node_count, MODEL_UNKNOWN_U32);
    assert_int_equal(job->memory_bytes, UNKNOWN);
    assert_int_equal(job->time_limit_minutes, MODEL_UNKNOWN_U32);
    assert_int_equal(job->priority, UNKNOWN);
    assert_int_equal(job->start_time, 0);
    assert_int_equal(job->state.base, JOB_STATE_NONE.base);
    assert_int_equal(job->partition, 0);
    assert_true(section->jobs.lacks_features);
    assert_true(section->jobs.lacks_qos);
    section_unref(section);
}

TEST(records_of_owners_that_are_none_are_left_out)
{
    static const struct owned_expected expected[] = { { 7, "physics", "alice", 1000 } };

    assert_owners("Welcome to the cluster\n1 2 3\n\n7~physics~alice~1000~\n8 physics bob\n"
                  "9~physics~bob~\n10~physics~bob~1~more\n11~physics~bob~1~more~\n"
                  "0~physics~bob~1~\nx~physics~bob~1~\n12~phy\nsics~bob~1~\n",
                  10, expected, COUNT(expected));
}

TEST(without_any_token_owners_come_in_words)
{
    static const struct owned_expected expected[] = {
        { 7, "physics", "alice", MODEL_UNKNOWN_U32 },
        { 8, "", "bob", MODEL_UNKNOWN_U32 },
        { 9, "", "carol", MODEL_UNKNOWN_U32 },
        { 10, "maths", "dave", MODEL_UNKNOWN_U32 },
    };

    assert_owners("JOBID ACCOUNT USER\n7 physics alice\n8 bob\n  9\t(null)  carol \r\n\n11\n"
                  "12_[1-3] physics alice\n13 physics alice more\n10 maths dave",
                  4, expected, COUNT(expected));
}

TEST(no_jobs_are_no_error)
{
    assert_owners("", 0, NULL, 0);
    assert_owners("\n", 0, NULL, 0);
}

TEST(owners_that_cannot_be_read_or_are_cut_off_are_refused)
{
    static const struct {
        const char *text, *because;
    } cases[] = {
        { "slurm_load_jobs error\n", "none of its lines can be read" },
        { "7~physics~alice~1000~\n8~physics~al", "in the middle of a line" },
        { "7~physics~alice~1000~\n8", "in the middle of a line" },
        { "7~physics~al", "in the middle of a line" },
        { "7~physics~\n", "none of its lines can be read" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err err = { 0 };

        assert_null(read_owners(cases[i].text, 5, &err));
        assert_int_equal(err.code, EBADMSG);
        assert_contains(err.text, cases[i].because);
        assert_null(strchr(err.text, '@')); /* the token makes another sentence of it each time */
    }
}

/* Answers no question but that for the owners. */
static const char owners_squeue[] =
    "[ \"$*\" = '--noheader --all --local --states=all' ] || exit 1\n"
    "t=${SQUEUE_FORMAT2#*:}; t=${t%%,*}\n"
    "[ \"$SQUEUE_FORMAT2\" = \"JobID:$t,Account:$t,UserName:$t,UserID:$t\" ] || exit 2\n"
    "echo \"7${t}physics${t}alice${t}1000$t\"";

TEST(where_only_owners_are_wanted_squeue_is_asked_for_no_more)
{
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct fake fake;
    struct err err;

    fake_open(&fake, ":", ":");
    write_script("squeue", owners_squeue);
    assert_int_equal(fake_read(&fake, KIND_JOBS, &section, warning, &err), -EREMOTEIO);
    fake.source->depth = SOURCE_OWNERS;
    if (fake_read(&fake, KIND_JOBS, &section, warning, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(section->jobs.n, 1);
    assert_int_equal(section->jobs.job[0].id, 7);
    section_unref(section);
    write_script("squeue", "echo 7 physics alice; echo 8 bob");
    assert_int_equal(fake_read(&fake, KIND_JOBS, &section, warning, &err), 0);
    assert_int_equal(section->jobs.n, 2);
    section_unref(section);
    write_script("squeue", ":");
    assert_int_equal(fake_read(&fake, KIND_JOBS, &section, warning, &err), 0);
    assert_int_equal(section->jobs.n, 0);
    section_unref(section);
    fake_close(&fake);
}

TEST(where_only_owners_are_wanted_no_json_is_asked_for)
{
    struct source_settings settings = { .spec = STR("json"), .max_answer = 1 << 20 };
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct fake fake;
    struct err err;

    fake_open(&fake, ":", ":");
    write_script("squeue", owners_squeue);
    source_close(fake.source);
    settings.bin_path = str_of(test_dir());
    assert_int_equal(source_open(&settings, &clock_real, &fake.source, &err), 0);
    fake.source->depth = SOURCE_OWNERS;
    if (fake_read(&fake, KIND_JOBS, &section, warning, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(section->jobs.n, 1);
    section_unref(section);
    fake_close(&fake);
}

TEST(words_of_a_command_of_the_sites_own_tell_owners_only)
{
    struct source_settings settings = { .spec = STR("cli"), .max_answer = 1 << 20 };
    char warning[SOURCE_WARNING] = "";
    struct section *section;
    struct source *source;
    struct err err;

    settings.commands[KIND_JOBS] = STR("echo 7 physics alice");
    assert_int_equal(source_open(&settings, &clock_real, &source, &err), 0);
    /* In words it tells whose a job is, and that is not enough to be one elsewhere. */
    assert_int_equal(source->class->read(source, KIND_JOBS, clock_mono(&clock_real) + TEST_DEADLINE,
                                         &section, warning, &err),
                     -EBADMSG);
    source->depth = SOURCE_OWNERS;
    assert_int_equal(source->class->read(source, KIND_JOBS, clock_mono(&clock_real) + TEST_DEADLINE,
                                         &section, warning, &err),
                     0);
    assert_int_equal(section->jobs.n, 1);
    assert_str(section_text(section, section->jobs.job[0].account), "physics");
    section_unref(section);
    source_close(source);
}

TEST(where_only_owners_are_wanted_squeue_is_enough)
{
    struct fake fake;
    struct err err;

    fake_open(&fake, ":", ":");
    write_script("squeue", ":");
    assert_int_equal(fake.source->class->probe(fake.source, &err), -ENOENT);
    assert_contains(err.text, "sinfo is not to be found");
    fake.source->depth = SOURCE_OWNERS;
    assert_int_equal(fake.source->class->probe(fake.source, &err), 0);
    fake_close(&fake);
}

TEST(rpcs_of_users_whom_no_directory_knows_are_kept_apart)
{
    struct section *section =
        read_text(KIND_DIAG, &answer_sdiag,
                  "sdiag output at now (1794769240)\n"
                  "Remote Procedure Call statistics by user\n"
                  "\tnobody          (    2001) count:6      ave_time:325    total_time:1952\n"
                  "\tnobody          (    2002) count:7      ave_time:325    total_time:1952\n"
                  "\tnobody          (   65534) count:8      ave_time:325    total_time:1952\n");
    const struct diag *diag = &section->diag;

    assert_int_equal(diag->n_rpc_by_user, 3);
    assert_str(section_text(section, diag->rpc_by_user[0].name), "2001");
    assert_str(section_text(section, diag->rpc_by_user[1].name), "2002");
    assert_str(section_text(section, diag->rpc_by_user[2].name), "nobody");
    assert_int_equal(diag->rpc_by_user[1].count, 7);
    section_unref(section);
}
