/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Licences from scontrol show licenses --json (from Slurm 23.02 on) and slurmrestd's /licenses: the
 * LICENSE parser of Slurm's data_parser plugins. */
#include "source/json_answers.h"
#include "source/json_table.h"

struct json_licenses {
    struct json_answer json;
    size_t room;            /* of the section's array */
    struct license license; /* the one being read */
};

static const struct json_member license_members[] = {
    MEMBER(struct license, "LicenseName", SHAPE_NAME, name),
    MEMBER(struct license, "Total", SHAPE_U64, total),
    MEMBER(struct license, "Used", SHAPE_U64, used),
    MEMBER(struct license, "Free", SHAPE_U64, free),
    MEMBER(struct license, "Reserved", SHAPE_U64, reserved),
    MEMBER(struct license, "Remote", SHAPE_TRUTH, is_remote),
    MEMBER(struct license, "LastConsumed", SHAPE_U64, last_consumed),
    MEMBER(struct license, "LastDeficit", SHAPE_U64, last_deficit),
};

static void *begin_license(struct answer *answer)
{
    struct license *license = &((struct json_licenses *)answer)->license;

    *license = (struct license){
        .total = MODEL_UNKNOWN_U64,
        .used = MODEL_UNKNOWN_U64,
        .free = MODEL_UNKNOWN_U64,
        .reserved = MODEL_UNKNOWN_U64,
        .last_consumed = MODEL_UNKNOWN_U64,
        .last_deficit = MODEL_UNKNOWN_U64,
    };
    return license;
}

/* What a remote server was last seen to lack is 0 for a licence that has none. */
static void end_license(struct answer *answer, void *record)
{
    struct json_licenses *all = (struct json_licenses *)answer;
    struct licenses *licenses = &answer->section->licenses;
    struct license *license = record;

    if (!license->is_remote)
        license->last_consumed = license->last_deficit = MODEL_UNKNOWN_U64;
    if (!license->name) {
        answer_leave_out(answer, STR("a licence without a name"));
        return;
    }
    licenses->license = section_grow(answer->section, licenses->license, licenses->n, &all->room,
                                     sizeof(*licenses->license));
    licenses->license[licenses->n++] = *license;
}

static const struct json_table license_table = {
    .members = license_members,
    .n = COUNT(license_members),
    .begin = begin_license,
    .end = end_license,
};

static const struct json_member document_members[] = {
    MEMBER_LIST("licenses", &license_table),
    MEMBER_ERRORS,
};

static const struct json_table document = {
    .members = document_members,
    .n = COUNT(document_members),
};

static void begin(struct answer *answer)
{
    json_answer_begin(answer, &document);
}

static void release(struct answer *answer)
{
    json_answer_free(answer);
    arena_adopt(&answer->section->arena, answer->section->licenses.license);
}

const struct answer_class answer_json_licenses = {
    .size = sizeof(struct json_licenses),
    .begin = begin,
    .feed = json_answer_feed,
    .end = json_answer_end,
    .free = release,
};
