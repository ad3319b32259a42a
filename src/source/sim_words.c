/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The people, accounts, job names and reasons of the simulated cluster, and its records in Slurm's
 * words. Some names are hostile, as they are on real clusters: whoever shows them must cope. */
#include "source/sim_cluster.h"

static const struct str given_names[] = {
    STR_INIT("alice"),   STR_INIT("bob"),    STR_INIT("carol"),  STR_INIT("dave"),
    STR_INIT("erin"),    STR_INIT("frank"),  STR_INIT("grace"),  STR_INIT("heidi"),
    STR_INIT("ivan"),    STR_INIT("judy"),   STR_INIT("kenji"),  STR_INIT("lena"),
    STR_INIT("mallory"), STR_INIT("niaj"),   STR_INIT("olivia"), STR_INIT("peggy"),
    STR_INIT("quentin"), STR_INIT("rupert"), STR_INIT("sybil"),  STR_INIT("trent"),
    STR_INIT("ursula"),  STR_INIT("victor"), STR_INIT("walter"), STR_INIT("xiu"),
    STR_INIT("yusuf"),   STR_INIT("zoe"),    STR_INIT("amara"),  STR_INIT("bjorn"),
    STR_INIT("chiara"),  STR_INIT("dmitri"), STR_INIT("esther"), STR_INIT("farid"),
    STR_INIT("giulia"),  STR_INIT("hassan"), STR_INIT("ingrid"), STR_INIT("jonas"),
    STR_INIT("khadija"), STR_INIT("luca"),   STR_INIT("marta"),  STR_INIT("nadia"),
};

static const struct str accented_names[] = {
    STR_INIT("andré"), STR_INIT("zoë"),    STR_INIT("jürgen"),
    STR_INIT("søren"), STR_INIT("łukasz"), STR_INIT("山田"),
};

/* "alice", …, then "alicea", "bobb", …, then "alice2a": never the same twice. */
static void put_user(struct buf *buf, uint32_t user)
{
    enum { EVERY = 29 };
    uint32_t round = user / (uint32_t)COUNT(given_names);

    if (user % EVERY == EVERY - 1) {
        uint32_t which = user / EVERY;

        buf_put(buf, accented_names[which % COUNT(accented_names)]);
        if (which >= COUNT(accented_names))
            buf_u64(buf, which / COUNT(accented_names));
        return;
    }
    buf_put(buf, given_names[user % COUNT(given_names)]);
    if (!round)
        return;
    if (round > 26)
        buf_u64(buf, (round - 1) / 26 + 1);
    buf_byte(buf, (char)('a' + (user + round) % 26));
}

const struct str sim_departments[SIM_DEPARTMENTS] = {
    STR_INIT("physics"),  STR_INIT("chemistry"), STR_INIT("biology"), STR_INIT("engineering"),
    STR_INIT("medicine"), STR_INIT("climate"),   STR_INIT("cs"),      STR_INIT("teaching"),
};

static const struct str projects[][SIM_DEPARTMENTS] = {
    { STR_INIT("astro"), STR_INIT("catalysis"), STR_INIT("genomics"), STR_INIT("cfd"),
      STR_INIT("imaging"), STR_INIT("wrf"), STR_INIT("nlp"), STR_INIT("hpc101") },
    { STR_INIT("hep"), STR_INIT("dft"), STR_INIT("proteomics"), STR_INIT("structures"),
      STR_INIT("neuro"), STR_INIT("ocean"), STR_INIT("vision"), STR_INIT("ml-course") },
    { STR_INIT("plasma"), STR_INIT("polymers"), STR_INIT("ecology"), STR_INIT("robotics"),
      STR_INIT("trials"), STR_INIT("ice"), STR_INIT("systems"), STR_INIT("workshops") },
};

static void put_account(struct buf *buf, uint32_t account)
{
    uint32_t row = account / SIM_DEPARTMENTS, department = account % SIM_DEPARTMENTS;

    if (row < COUNT(projects))
        buf_put(buf, projects[row][department]);
    else
        buf_printf(buf, "%.3s%03u", sim_departments[department].p, row);
}

static const struct str job_stems[] = {
    STR_INIT("relax"),        STR_INIT("vasp_opt"),      STR_INIT("gromacs_npt"),
    STR_INIT("train_resnet"), STR_INIT("bert-finetune"), STR_INIT("snakejob.bwa"),
    STR_INIT("nf-ALIGN"),     STR_INIT("jupyter"),       STR_INIT("bash"),
    STR_INIT("simpleFoam"),   STR_INIT("wrf_d02"),       STR_INIT("cp2k_scan"),
    STR_INIT("lammps-eq"),    STR_INIT("fluent"),        STR_INIT("blastp"),
    STR_INIT("star_align"),   STR_INIT("mcmc"),          STR_INIT("sweep"),
    STR_INIT("orca_sp"),      STR_INIT("namd_prod"),     STR_INIT("cesm_run"),
    STR_INIT("lattice"),      STR_INIT("preprocess"),    STR_INIT("eval"),
    STR_INIT("amber_md"),     STR_INIT("phonon"),        STR_INIT("nek5000"),
    STR_INIT("alphafold"),    STR_INIT("diffusion"),     STR_INIT("matlab_fit"),
    STR_INIT("R_boot"),       STR_INIT("test"),
};

static const struct str hostile_names[] = {
    STR_INIT("new\nline"),
    STR_INIT("tab\there"),
    STR_INIT("we|ird, na\"me \xc3\xa9"),
    STR_INIT("<script>alert(1)</script>"),
    STR_INIT("'; DROP TABLE jobs; --"),
    STR_INIT("{{7*7}} ${HOME} `id`"),
    STR_INIT("back\\slash\\"),
    STR_INIT("not utf-8: \xff\xfe\x80"),
    STR_INIT("\x1b[31mred\x1b[0m"),
    STR_INIT("a_very_long_name_that_somebody_made_from_all_the_parameters_of_the_run"
             "__lr=0.0001__batch=512__epochs=300__optimizer=adamw__schedule=cosine"
             "__warmup=10__seed=1234567890__dataset=imagenet21k__augment=randaugment"),
};

enum { NUMBERED = 100 }; /* names with each stem: bare, and numbered from 1 */

static void put_job_name(struct buf *buf, uint32_t name)
{
    if (name >= COUNT(job_stems) * NUMBERED) {
        buf_put(buf, hostile_names[name - COUNT(job_stems) * NUMBERED]);
        return;
    }
    buf_put(buf, job_stems[name / NUMBERED]);
    if (name % NUMBERED)
        buf_printf(buf, "_%02u", name % NUMBERED);
}

uint32_t sim_pick_name(const struct sim_cluster *cluster, uint64_t key, uint64_t burst)
{
    uint32_t stem = (uint32_t)sim_pick(burst, SIM_SALT_NAME, COUNT(job_stems));

    if (sim_pick(key, SIM_SALT_HOSTILE, 1000) < 5)
        return cluster->n_names - 1 - (uint32_t)(key % COUNT(hostile_names));
    if (sim_pick(burst, SIM_SALT_NAME_NUMBER, 100) < 40)
        return stem * NUMBERED;
    return stem * NUMBERED + 1 + (uint32_t)sim_pick(key, SIM_SALT_NAME_NUMBER, NUMBERED - 1);
}

static struct str *make_words(struct sim_cluster *cluster, uint32_t n,
                              void (*put)(struct buf *buf, uint32_t which))
{
    struct str *words = ARENA_ARRAY(&cluster->arena, struct str, n);
    struct buf buf;

    buf_init(&buf, 4096);
    for (uint32_t i = 0; i < n; i++) {
        buf_reset(&buf);
        put(&buf, i);
        words[i] = arena_str(&cluster->arena, buf_str(&buf));
    }
    buf_free(&buf);
    return words;
}

void sim_words_init(struct sim_cluster *cluster)
{
    cluster->n_accounts = SIM_DEPARTMENTS * (1 + cluster->n_users / (5 * SIM_DEPARTMENTS));
    cluster->n_names = (uint32_t)(COUNT(job_stems) * NUMBERED + COUNT(hostile_names));
    cluster->users = make_words(cluster, cluster->n_users, put_user);
    cluster->accounts = make_words(cluster, cluster->n_accounts, put_account);
    cluster->names = make_words(cluster, cluster->n_names, put_job_name);
}

uint32_t sim_user_account(const struct sim_cluster *cluster, uint32_t user)
{
    uint64_t key = sim_hash(cluster->key ^ SIM_SALT_ACCOUNT, user);

    return (uint32_t)sim_below(key, cluster->n_accounts);
}

uint32_t sim_user_second_account(const struct sim_cluster *cluster, uint32_t user)
{
    uint64_t key = sim_hash(cluster->key ^ SIM_SALT_ACCOUNT, user);
    uint32_t first = (uint32_t)sim_below(key, cluster->n_accounts);

    if (sim_pick(key, SIM_SALT_ACCOUNT, 100) >= 20)
        return SIM_NONE;
    return (first + 1) % cluster->n_accounts;
}

const struct str sim_reservation_names[SIM_RESVS] = {
    [SIM_RESV_MAINT] = STR_INIT("maint-weekly"),
    [SIM_RESV_COURSE] = STR_INIT("course-ml"),
    [SIM_RESV_CAMPAIGN] = STR_INIT("campaign"),
};

const struct str sim_license_names[SIM_LICENSES] = {
    STR_INIT("matlab"),
    STR_INIT("ansys"),
    STR_INIT("comsol"),
    STR_INIT("abaqus@flex"),
};

const struct str sim_qos[SIM_QOSES] = {
    [SIM_QOS_NORMAL] = STR_INIT("normal"), [SIM_QOS_HIGH] = STR_INIT("high"),
    [SIM_QOS_LOW] = STR_INIT("low"),       [SIM_QOS_LONG] = STR_INIT("long"),
    [SIM_QOS_DEBUG] = STR_INIT("debug"),   [SIM_QOS_SCAVENGER] = STR_INIT("scavenger"),
};

const struct str sim_logins[SIM_LOGINS] = { STR_INIT("login1"), STR_INIT("login2"),
                                            STR_INIT("login3") };

const struct str sim_reasons[SIM_REASONS] = {
    [SIM_REASON_NONE] = STR_INIT("None"),
    [SIM_REASON_PRIORITY] = STR_INIT("Priority"),
    [SIM_REASON_RESOURCES] = STR_INIT("Resources"),
    [SIM_REASON_DEPENDENCY] = STR_INIT("Dependency"),
    [SIM_REASON_HELD_USER] = STR_INIT("JobHeldUser"),
    [SIM_REASON_HELD_ADMIN] = STR_INIT("JobHeldAdmin"),
    [SIM_REASON_BEGIN_TIME] = STR_INIT("BeginTime"),
    [SIM_REASON_QOS_CPUS] = STR_INIT("QOSMaxCpuPerUserLimit"),
    [SIM_REASON_QOS_GRES] = STR_INIT("QOSMaxGRESPerUser"),
    [SIM_REASON_ASSOC_CPUS] = STR_INIT("AssocGrpCpuLimit"),
    [SIM_REASON_ASSOC_JOBS] = STR_INIT("AssocMaxJobsLimit"),
    [SIM_REASON_LICENSES] = STR_INIT("Licenses"),
    [SIM_REASON_NODES] = STR_INIT("ReqNodeNotAvail"),
    [SIM_REASON_ARRAY_LIMIT] = STR_INIT("JobArrayTaskLimit"),
    [SIM_REASON_EXIT_CODE] = STR_INIT("NonZeroExitCode"),
    [SIM_REASON_TIME_LIMIT] = STR_INIT("TimeLimit"),
    [SIM_REASON_OUT_OF_MEMORY] = STR_INIT("OutOfMemory"),
    [SIM_REASON_NODE_DOWN] = STR_INIT("NodeDown"),
};

static const struct str drain_reasons[] = {
    STR_INIT("bad DIMM A3, ticket 4711"),
    STR_INIT("NHC: check_fs_mount: /scratch not mounted"),
    STR_INIT("Kill task failed"),
    STR_INIT("IB link down, cable ordered"),
    STR_INIT("fan failure"),
    STR_INIT("disk \"sdb\" failing | ticket #31 <urgent>"),
    STR_INIT("firmware update"),
    STR_INIT("MCE: uncorrectable ECC error"),
};

static const struct str down_reasons[] = {
    STR_INIT("PSU failure"),
    STR_INIT("board swap, RMA 20391"),
    STR_INIT("Node unexpectedly rebooted"),
    STR_INIT("no network since power cut"),
};

static const struct str admins[] = { STR_INIT("root"), STR_INIT("ops-anna"), STR_INIT("ops-lee") };

struct str sim_outage_reason(const struct sim_outage *outage, int64_t time)
{
    switch (outage->kind) {
    case SIM_OUTAGE_DRAIN:
        return drain_reasons[sim_pick(outage->key, SIM_SALT_REASON, COUNT(drain_reasons))];
    case SIM_OUTAGE_DOWN:
        if (time < outage->begin + SIM_SLURMD_TIMEOUT)
            return STR("");
        if (time < outage->begin + SIM_UNNOTICED)
            return STR("Not responding");
        return down_reasons[sim_pick(outage->key, SIM_SALT_REASON, COUNT(down_reasons))];
    case SIM_OUTAGE_REBOOT:
        return STR("reboot ASAP: kernel update");
    default:
        return STR("");
    }
}

struct str sim_outage_admin(const struct sim_outage *outage, int64_t time)
{
    if (outage->kind == SIM_OUTAGE_DOWN && time < outage->begin + SIM_UNNOTICED)
        return STR("slurm");
    return admins[sim_pick(outage->key, SIM_SALT_ADMIN, COUNT(admins))];
}

void sim_put_partitions(struct buf *buf, const struct sim_job *job)
{
    buf_put(buf, sim_partitions[job->partition].name);
    if (job->partition2 != SIM_NONE) {
        buf_byte(buf, ',');
        buf_put(buf, sim_partitions[job->partition2].name);
    }
}

void sim_put_reason(struct buf *buf, const struct sim_cluster *cluster, const struct sim_job *job)
{
    buf_put(buf, sim_reasons[job->reason]);
    if (job->reason == SIM_REASON_NODES) {
        buf_text(buf, ", UnavailableNodes:");
        sim_put_node(buf, cluster, job->missing_node);
    }
}

void sim_put_licenses(struct buf *buf, const struct sim_job *job)
{
    buf_put(buf, sim_license_names[job->license]);
    buf_byte(buf, ':');
    buf_u64(buf, job->license_count);
}

void sim_put_memory(struct buf *buf, uint64_t mib)
{
    static const char units[] = "MGTP";
    const char *unit = units;

    for (; mib && mib % 1024 == 0 && unit[1]; unit++)
        mib /= 1024;
    buf_u64(buf, mib);
    if (mib)
        buf_byte(buf, *unit);
}

void sim_put_tres(struct buf *buf, const struct sim_job *job, bool as_requested)
{
    buf_text(buf, "cpu=");
    buf_u64(buf, job->cpus);
    buf_text(buf, ",mem=");
    sim_put_memory(buf, job->memory_mib);
    buf_text(buf, ",node=");
    buf_u64(buf, job->node_count);
    buf_text(buf, ",billing=");
    buf_u64(buf, job->cpus + 16 * (uint64_t)job->gpus);
    if (!job->gpus)
        return;
    buf_text(buf, ",gres/gpu=");
    buf_u64(buf, job->gpus);
    if (as_requested && !job->asks_gpu_type)
        return;
    buf_text(buf, ",gres/gpu:");
    buf_put(buf, sim_kinds[job->kind].gpu);
    buf_byte(buf, '=');
    buf_u64(buf, job->gpus);
}

struct str sim_job_features(const struct sim_job *job)
{
    /* The second one of the node's: the processor. */
    struct str rest = sim_kinds[job->kind].features;

    if (!job->has_features)
        return STR("");
    str_cut(&rest, ',');
    return str_cut(&rest, ',');
}
