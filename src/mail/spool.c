/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variables are those of slurm.conf(5), MailProg, from Slurm 21.08 on; 20.11 tells no more than
 * SLURM_CLUSTER_NAME. */
#include "mail/spool.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "base/quote.h"
#include "model/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>

/* The directory of a small spool is not counted: that would take longer than all the rest. No file
 * system says fewer bytes of a name than ZFS, which says one. */
enum { COUNTED_BYTES = MAIL_SPOOL_MAX };

static const int64_t last_time = INT64_C(253402300799); /* of the year 9999 */

#define PLACE(member) offsetof(struct mail_entry, member)

/* JSON makes up to six bytes of one: together they stay below MAIL_ENTRY_MAX. */
static const struct {
    const char *key, *variable;
    size_t offset, most;
} texts[] = {
    { "to", NULL, PLACE(to), MAIL_ADDRESS_MAX },
    { "subject", NULL, PLACE(subject), 400 },
    { "event", "SLURM_JOB_MAIL_TYPE", PLACE(event), 64 },
    { "cluster", "SLURM_CLUSTER_NAME", PLACE(cluster), 64 },
    { "name", "SLURM_JOB_NAME", PLACE(name), 256 },
    { "user", "SLURM_JOB_USER", PLACE(user), 64 },
    { "account", "SLURM_JOB_ACCOUNT", PLACE(account), 128 },
    { "partition", "SLURM_JOB_PARTITION", PLACE(partition), 256 },
    { "state", "SLURM_JOB_STATE", PLACE(state), 64 },
    { "exit_code", "SLURM_JOB_EXIT_CODE2", PLACE(exit_code), 32 },
    { "nodes", "SLURM_JOB_NODELIST", PLACE(nodes), 512 },
    { "run_time", "SLURM_JOB_RUN_TIME", PLACE(run_time), 32 },
    { "queued_time", "SLURM_JOB_QUEUED_TIME", PLACE(queued_time), 32 },
};

static const struct {
    const char *key, *variable;
    size_t offset;
} numbers[] = {
    { "job_id", "SLURM_JOB_ID", PLACE(job_id) },
    { "array_job_id", "SLURM_ARRAY_JOB_ID", PLACE(array_job_id) },
    { "array_task_id", "SLURM_ARRAY_TASK_ID", PLACE(array_task_id) },
    { "het_job_id", "SLURM_HET_JOB_ID", PLACE(het_job_id) },
    { "het_offset", "SLURM_HET_JOB_OFFSET", PLACE(het_offset) },
};

static struct str *text_at(const struct mail_entry *entry, size_t offset)
{
    return (struct str *)((uintptr_t)entry + offset);
}

static uint32_t *number_at(const struct mail_entry *entry, size_t offset)
{
    return (uint32_t *)((uintptr_t)entry + offset);
}

static void clear_entry(struct mail_entry *entry)
{
    *entry = (struct mail_entry){ 0 };
    for (size_t i = 0; i < COUNT(texts); i++)
        *text_at(entry, texts[i].offset) = STR("");
    for (size_t i = 0; i < COUNT(numbers); i++)
        *number_at(entry, numbers[i].offset) = MODEL_UNKNOWN_U32;
}

/* --- from Slurm --- */

/* Slurm prints what it does not have as "(null)". */
static struct str variable(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return strcmp(*env + n + 1, "(null)") == 0 ? STR("") : str_of(*env + n + 1);
    return STR("");
}

static uint32_t number_of(struct str text)
{
    uint64_t value;

    return num_get_u64(text, &value) && value < MODEL_UNKNOWN_U32 ? (uint32_t)value
                                                                  : MODEL_UNKNOWN_U32;
}

void mail_entry_of_environment(char *const *env, const char *subject, const char *to, int64_t now,
                               struct mail_entry *ret)
{
    clear_entry(ret);
    for (size_t i = 0; i < COUNT(texts); i++)
        if (texts[i].variable)
            *text_at(ret, texts[i].offset) = variable(env, texts[i].variable);
    for (size_t i = 0; i < COUNT(numbers); i++)
        *number_at(ret, numbers[i].offset) = number_of(variable(env, numbers[i].variable));
    ret->to = str_of(to);
    ret->subject = str_of(subject);
    ret->written_time = now;
    /* No variable tells this one for sure. It stands where no job's name can be: before it. The
     * task, the state and the exit code are then those of some task. */
    ret->is_array = str_starts(ret->subject, STR("Slurm Array Summary "));
    if (ret->is_array) {
        ret->array_task_id = MODEL_UNKNOWN_U32;
        ret->state = ret->exit_code = ret->nodes = ret->run_time = STR("");
    }
}

/* --- writing --- */

static struct str cut_text(struct str text, size_t most)
{
    if (text.n <= most)
        return text;
    while (most && ((unsigned char)text.p[most] & 0xc0) == 0x80)
        most--;
    return str_head(text, most);
}

static void put_entry(struct buf *to, const struct mail_entry *entry)
{
    buf_text(to, "{\"written\":");
    buf_i64(to, entry->written_time);
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct str text = *text_at(entry, texts[i].offset);

        if (!text.n)
            continue;
        buf_printf(to, ",\"%s\":", texts[i].key);
        buf_json(to, cut_text(text, texts[i].most));
    }
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (*number_at(entry, numbers[i].offset) != MODEL_UNKNOWN_U32)
            buf_printf(to, ",\"%s\":%" PRIu32, numbers[i].key,
                       *number_at(entry, numbers[i].offset));
    if (entry->is_array)
        buf_text(to, ",\"is_array\":true");
    buf_text(to, "}\n");
}

void mail_entry_new_id(char id[MAIL_ENTRY_ID + 1])
{
    uint64_t unguessed;

    if (getrandom(&unguessed, sizeof(unguessed), 0) != sizeof(unguessed))
        abort();
    snprintf(id, MAIL_ENTRY_ID + 1, "%016" PRIx64 "-%016" PRIx64, (uint64_t)clock_wall(&clock_real),
             unguessed);
}

static int write_all(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes = str_skip(bytes, (size_t)n);
    }
    return 0;
}

/* Readable for the group, whatever the umask: that is how the sender gets at it. */
static bool fill_file(int fd, struct str document)
{
    return fchmod(fd, 0640) == 0 && write_all(fd, document) == 0 && fsync(fd) == 0;
}

int mail_spool_write(int directory, const char *name, struct str document, struct err *err)
{
    char hidden[128];
    int fd;
    bool ok;

    snprintf(hidden, sizeof(hidden), ".%s.new", name);
    fd = openat(directory, hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot make a file: %s", err_words(errno));
    ok = fill_file(fd, document) && renameat(directory, hidden, directory, name) == 0 &&
         fsync(directory) == 0;
    if (!ok) {
        err_set(err, errno, "cannot write a file: %s", err_words(errno));
        unlinkat(directory, hidden, 0);
    }
    close(fd);
    return ok ? 0 : -err->code;
}

static bool is_full(int directory)
{
    struct stat status;
    DIR *listing;
    size_t n = 0;
    int fd;

    if (fstat(directory, &status) < 0 || status.st_size < COUNTED_BYTES)
        return false;
    fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    while (n < MAIL_SPOOL_MAX && readdir(listing))
        n++;
    closedir(listing);
    return n >= MAIL_SPOOL_MAX;
}

static int write_entry(int directory, const struct mail_entry *entry, struct err *err)
{
    char name[MAIL_ENTRY_ID + sizeof(MAIL_ENTRY_SUFFIX)];
    struct buf document;
    int code;

    if (is_full(directory))
        return err_set(err, ENOSPC, "%d mails wait already; is anybody sending them?",
                       MAIL_SPOOL_MAX);
    mail_entry_new_id(name);
    memcpy(name + MAIL_ENTRY_ID, MAIL_ENTRY_SUFFIX, sizeof(MAIL_ENTRY_SUFFIX));
    buf_init(&document, MAIL_ENTRY_MAX);
    put_entry(&document, entry);
    code = mail_spool_write(directory, name, buf_str(&document), err);
    buf_free(&document);
    return code;
}

int mail_spool_add(const char *directory, const struct mail_entry *entry, struct err *err)
{
    int fd, code;

    /* What is left of an address that was cut would be another one. */
    if (!entry->to.n || entry->to.n > MAIL_ADDRESS_MAX)
        return err_set(err, EINVAL, "the recipient \"%s\" is %s", quote(entry->to).text,
                       entry->to.n ? "too long" : "empty");
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ENOENT,
                       "there is no directory %s; make it with install -d -m 2770 -o SLURMUSER -g "
                       "GROUP, where GROUP is that of whoever sends the mails",
                       quote(str_of(directory)).text);
    if (fd < 0)
        return err_set(err, errno, "cannot open %s: %s", quote(str_of(directory)).text,
                       err_words(errno));
    code = write_entry(fd, entry, err);
    if (code < 0)
        err_prefix(err, "%s", quote(str_of(directory)).text);
    close(fd);
    return code;
}

/* --- reading --- */

static int refuse_value(const char *key, struct err *err)
{
    return err_set(err, EBADMSG, "the value of \"%s\" is of another kind", key);
}

static int take_text(struct json *json, size_t i, struct arena *arena, struct mail_entry *entry,
                     struct err *err)
{
    if (json_next(json) != JSON_STRING)
        return refuse_value(texts[i].key, err);
    *text_at(entry, texts[i].offset) = arena_str(arena, json_text(json));
    return 0;
}

static int take_number(struct json *json, size_t i, struct mail_entry *entry, struct err *err)
{
    uint64_t value;

    if (json_next(json) != JSON_NUMBER || !json_u64(json, &value) || value >= MODEL_UNKNOWN_U32)
        return refuse_value(numbers[i].key, err);
    *number_at(entry, numbers[i].offset) = (uint32_t)value;
    return 0;
}

static int take_member(struct json *json, struct arena *arena, struct mail_entry *entry,
                       struct err *err)
{
    struct str key = json_text(json);

    for (size_t i = 0; i < COUNT(texts); i++)
        if (str_eq(key, str_of(texts[i].key)))
            return take_text(json, i, arena, entry, err);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (str_eq(key, str_of(numbers[i].key)))
            return take_number(json, i, entry, err);
    if (str_eq(key, STR("written")))
        return json_next(json) == JSON_NUMBER && json_i64(json, &entry->written_time) &&
                       entry->written_time >= 0 && entry->written_time <= last_time
                   ? 0
                   : refuse_value("written", err);
    if (str_eq(key, STR("is_array"))) {
        entry->is_array = true;
        return json_next(json) == JSON_TRUE ? 0 : refuse_value("is_array", err);
    }
    json_skip(json);
    return 0;
}

static int take_document(struct json *json, struct arena *arena, struct mail_entry *entry,
                         struct err *err)
{
    enum json_event event = json_next(json);
    int code = 0;

    if (event != JSON_OBJECT)
        return event == JSON_ERROR ? json_error(json, err)
                                   : err_set(err, EBADMSG, "it is no JSON object");
    while (code == 0 && (event = json_next(json)) == JSON_KEY)
        code = take_member(json, arena, entry, err);
    if (code == 0)
        event = json_next(json);
    /* What stopped the scanner says more than what was made of it. */
    if (json_error(json, NULL) < 0)
        return json_error(json, err);
    if (code == 0 && event != JSON_END)
        return err_set(err, EBADMSG, "something follows the JSON object");
    return code;
}

int mail_entry_read(struct str document, struct arena *arena, struct mail_entry *ret,
                    struct err *err)
{
    struct json *json;
    int code;

    clear_entry(ret);
    if (document.n > MAIL_ENTRY_MAX)
        return err_set(err, EFBIG, "it has more than %d bytes", MAIL_ENTRY_MAX);
    json = json_new();
    json_feed(json, document);
    json_finish(json);
    code = take_document(json, arena, ret, err);
    json_free(json);
    if (code == 0 && (!ret->to.n || ret->to.n > MAIL_ADDRESS_MAX))
        code = err_set(err, EBADMSG, "it names no recipient");
    return code;
}
