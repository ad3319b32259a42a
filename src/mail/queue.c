/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists and renames the entries of the spool for the sender. */
#include "mail/queue.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/quote.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>

static const int64_t leftover_ns = 24 * 3600 * NS_PER_SEC;

static const char *const places[] = { [QUEUE_BAD] = "bad", [QUEUE_GIVEN_UP] = "given-up" };

/* --- names --- */

static bool is_id(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (i == MAIL_ENTRY_ID / 2 ? text.p[i] != '-' : !strchr("0123456789abcdef", text.p[i]))
            return false;
    return text.n == MAIL_ENTRY_ID;
}

static bool cut_suffix(struct str *text, const char *suffix)
{
    if (!str_ends(*text, str_of(suffix)))
        return false;
    text->n -= strlen(suffix);
    return true;
}

/* ID, then perhaps "_" and the moment of the next try, then the suffix. */
static bool read_name(const char *name, struct queue_item *ret)
{
    struct str rest = str_of(name), id;
    struct queue_item item = { 0 };

    item.is_summary = cut_suffix(&rest, QUEUE_SUMMARY_SUFFIX);
    if (!item.is_summary && !cut_suffix(&rest, MAIL_ENTRY_SUFFIX))
        return false;
    id = str_cut(&rest, '_');
    item.was_tried = rest.p;
    if (!is_id(id) || strlen(name) >= sizeof(item.name) ||
        (item.was_tried && !num_get_i64(rest, &item.next_time)))
        return false;
    snprintf(item.name, sizeof(item.name), "%s", name);
    *ret = item;
    return true;
}

/* Who writes a file gives it its name when it is whole, or never. */
static bool is_leftover(const char *name)
{
    uint64_t written_ns = 0;

    if (name[0] != '.' || !str_ends(str_of(name), STR(".new")) ||
        !is_id(str_head(str_of(name + 1), MAIL_ENTRY_ID)))
        return false;
    for (size_t i = 1; i <= 16; i++)
        written_ns =
            written_ns << 4 | (uint64_t)(name[i] <= '9' ? name[i] - '0' : name[i] - 'a' + 10);
    return (int64_t)written_ns < clock_wall(&clock_real) - leftover_ns;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct queue_item *)a)->name, ((const struct queue_item *)b)->name);
}

/* --- opening --- */

static int lock_directory(struct queue *queue, const char *name, struct err *err)
{
    struct stat status;

    if (fstat(queue->directory, &status) < 0)
        return err_set(err, errno, "cannot look at %s: %s", name, err_words(errno));
    queue->owner = status.st_uid;
    if (status.st_mode & S_IWOTH)
        return err_set(err, EPERM,
                       "everybody may write into %s, and have mail sent to anybody: chmod o-w it",
                       name);
    queue->lock = openat(queue->directory, "lock",
                         O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
    if (queue->lock < 0)
        return err_set(err, errno,
                       "cannot write into %s: %s; who sends mail must be in the group that owns it",
                       name, err_words(errno));
    if (flock(queue->lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, errno == EWOULDBLOCK ? EBUSY : errno, "cannot lock %s: %s", name,
                       errno == EWOULDBLOCK ? "another sonde report --drain has it"
                                            : err_words(errno));
    return 0;
}

static DIR *list(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !listing)
        close(fd);
    return listing;
}

static size_t count_files(int directory, const char *name)
{
    DIR *listing = list(directory, name);
    size_t n = 0;

    while (listing && readdir(listing))
        n++;
    if (listing)
        closedir(listing);
    return n > 2 ? n - 2 : 0; /* "." and ".." */
}

/* For the whole group, whoever is the first: root, by hand, or the service. */
static int open_place(struct queue *queue, size_t i, const char *name, struct err *err)
{
    if (mkdirat(queue->directory, places[i], 0770) == 0)
        fchmodat(queue->directory, places[i], 0770, 0);
    else if (errno != EEXIST)
        return err_set(err, errno, "cannot make %s in %s: %s", places[i], name, err_words(errno));
    queue->n_aside[i] = count_files(queue->directory, places[i]);
    return 0;
}

int queue_open(const char *directory, struct log *log, struct queue **ret, struct err *err)
{
    struct queue *queue = heap_alloc(sizeof(*queue));
    struct quote name = quote(str_of(directory));
    int code = 0;

    *queue = (struct queue){ .log = log, .lock = -1 };
    queue->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (queue->directory < 0)
        code =
            err_set(err, errno, "cannot open the mail spool %s: %s", name.text, err_words(errno));
    if (code == 0)
        code = lock_directory(queue, name.text, err);
    for (size_t i = 0; code == 0 && i < QUEUE_PLACES; i++)
        code = open_place(queue, i, name.text, err);
    if (code < 0)
        queue_close(queue);
    else
        *ret = queue;
    return code;
}

struct queue *queue_close(struct queue *queue)
{
    if (queue) {
        if (queue->lock >= 0)
            close(queue->lock);
        if (queue->directory >= 0)
            close(queue->directory);
        free(queue->items);
        free(queue);
    }
    return NULL;
}

/* --- one of them --- */

static int read_all(int fd, struct buf *to, struct err *err)
{
    enum { PIECE = 4096 };
    ssize_t n = 1;

    while (n > 0) {
        char *room = buf_room(to, PIECE);

        if (!room)
            return err_set(err, EFBIG, "it has more than %zu bytes", to->max - PIECE);
        n = read(fd, room, PIECE);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            to->n += (size_t)n;
    }
    buf_end(to);
    return n < 0 ? err_set(err, EAGAIN, "cannot read it: %s", err_words(errno)) : 0;
}

static int check_file(const struct queue *queue, int fd, struct err *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return err_set(err, EBADMSG, "it is no file");
    if (status.st_uid != queue->owner && status.st_uid != geteuid() && status.st_uid != 0)
        return err_set(err, EPERM, "it belongs to user %ju, not to the owner of the spool",
                       (uintmax_t)status.st_uid);
    return 0;
}

int queue_read(const struct queue *queue, const struct queue_item *item, struct buf *to,
               struct err *err)
{
    int fd = openat(queue->directory, item->name,
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    int code;

    /* ENXIO: a socket, or a FIFO; ELOOP: a link. */
    if (fd < 0 && (errno == ENXIO || errno == ELOOP))
        return err_set(err, EBADMSG, "it is no file");
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ENOENT, "it is gone");
    if (fd < 0)
        return err_set(err, EAGAIN,
                       "cannot open it: %s; the group that owns the spool must be "
                       "able to read it",
                       err_words(errno));
    code = check_file(queue, fd, err);
    if (code == 0)
        code = read_all(fd, to, err);
    close(fd);
    return code;
}

void queue_remove(struct queue *queue, struct queue_item *item)
{
    if (unlinkat(queue->directory, item->name, 0) < 0 && errno != ENOENT) {
        LOG(queue->log, LOG_ERROR, "cannot remove a mail from the spool; it may be sent again",
            LOG_STR("file", item->name), LOG_STR("err", err_words(errno)));
        item->is_done = true;
        return;
    }
    item->name[0] = '\0';
}

void queue_postpone(struct queue *queue, struct queue_item *item, int64_t next_time)
{
    char name[QUEUE_NAME];

    snprintf(name, sizeof(name), "%.*s_%" PRId64 "%s", STR_ARG(queue_id(item)), next_time,
             item->is_summary ? QUEUE_SUMMARY_SUFFIX : MAIL_ENTRY_SUFFIX);
    item->next_time = next_time;
    item->was_tried = true;
    if (renameat(queue->directory, item->name, queue->directory, name) == 0)
        memcpy(item->name, name, sizeof(name));
}

void queue_set_aside(struct queue *queue, struct queue_item *item, enum queue_place place)
{
    char name[QUEUE_NAME + sizeof("given-up/")];

    snprintf(name, sizeof(name), "%s/%s", places[place], item->name);
    if (queue->n_aside[place] >= QUEUE_ASIDE_MAX) {
        queue_remove(queue, item);
        return;
    }
    if (renameat(queue->directory, item->name, queue->directory, name) == 0) {
        queue->n_aside[place]++;
        item->name[0] = '\0';
    } else {
        LOG(queue->log, LOG_ERROR, "cannot move a mail out of the way", LOG_STR("to", name),
            LOG_STR("err", err_words(errno)));
        /* One that was given up must not be tried for ever. */
        item->is_done = true;
        if (place == QUEUE_GIVEN_UP)
            queue_remove(queue, item);
    }
}

void queue_remove_entry(struct queue *queue, struct str name)
{
    char *text = heap_str(name);
    struct queue_item item;

    if (read_name(text, &item) && !item.is_summary)
        unlinkat(queue->directory, text, 0);
    free(text);
}

int queue_add_summary(struct queue *queue, struct str document, struct err *err)
{
    char name[MAIL_ENTRY_ID + sizeof(QUEUE_SUMMARY_SUFFIX)];

    mail_entry_new_id(name);
    memcpy(name + MAIL_ENTRY_ID, QUEUE_SUMMARY_SUFFIX, sizeof(QUEUE_SUMMARY_SUFFIX));
    queue->seen_ns = 0;
    return mail_spool_write(queue->directory, name, document, err);
}

/* --- all of them --- */

struct listing {
    struct queue_item *items;
    size_t n, n_room;
};

static int list_names(struct queue *queue, struct listing *listing, struct err *err)
{
    DIR *directory = list(queue->directory, ".");
    struct dirent *entry;

    if (!directory)
        return err_set(err, errno, "cannot list the mail spool: %s", err_words(errno));
    while ((entry = readdir(directory)) && listing->n < MAIL_SPOOL_MAX) {
        listing->items =
            heap_grow(listing->items, listing->n, &listing->n_room, sizeof(*listing->items));
        if (read_name(entry->d_name, &listing->items[listing->n]))
            listing->n++;
        else if (is_leftover(entry->d_name))
            unlinkat(queue->directory, entry->d_name, 0);
    }
    closedir(directory);
    if (listing->n)
        qsort(listing->items, listing->n, sizeof(*listing->items), by_name);
    return 0;
}

struct loader {
    int (*load)(void *ctx, struct str document, struct queue_item *item, struct err *err);
    void *ctx;
    struct buf entry, summary;
    size_t n_unreadable;
    struct err unreadable; /* why, of the first */
};

static void load_item(struct queue *queue, struct loader *loader, struct queue_item *item)
{
    struct buf *document = item->is_summary ? &loader->summary : &loader->entry;
    struct err err;
    int code;

    buf_reset(document);
    code = queue_read(queue, item, document, &err);
    if (code == 0)
        code = loader->load(loader->ctx, buf_str(document), item, &err);
    if (code == 0)
        return;
    if (code == -ENOENT) {
        item->name[0] = '\0';
        return;
    }
    if (code == -EAGAIN) {
        if (loader->n_unreadable++ == 0)
            loader->unreadable = err;
        item->name[0] = '\0'; /* until the next look */
        return;
    }
    LOG(queue->log, LOG_WARN, "a file in the mail spool is no mail, and was moved to bad",
        LOG_STR("file", item->name), LOG_STR("err", err.text));
    queue_set_aside(queue, item, QUEUE_BAD);
}

/* One line, however many there are, and none if there are no more than before. */
static void tell_unreadable(struct queue *queue, const struct loader *loader)
{
    if (loader->n_unreadable > queue->n_unreadable)
        LOG(queue->log, LOG_WARN, "mails in the spool cannot be read; they stay there",
            LOG_INT("mails", loader->n_unreadable), LOG_STR("err", loader->unreadable.text));
    queue->n_unreadable = loader->n_unreadable;
}

/* Both are in order. What was known keeps what was known of it. */
static void take_listing(struct queue *queue, struct loader *loader, struct listing *listing)
{
    size_t old = 0, n = 0;

    for (size_t i = 0; i < listing->n; i++) {
        struct queue_item *item = &listing->items[i];

        while (old < queue->n && by_name(&queue->items[old], item) < 0)
            old++;
        if (old < queue->n && by_name(&queue->items[old], item) == 0)
            *item = queue->items[old++];
        else
            load_item(queue, loader, item);
        if (item->name[0])
            listing->items[n++] = *item;
    }
    free(queue->items);
    queue->items = listing->items;
    queue->n_room = listing->n_room;
    queue->n = n;
}

void queue_forget(struct queue *queue)
{
    queue->n = 0;
    queue->seen_ns = 0;
}

int queue_scan(struct queue *queue,
               int (*load)(void *ctx, struct str document, struct queue_item *item,
                           struct err *err),
               void *ctx, struct err *err)
{
    struct loader loader = { .load = load, .ctx = ctx };
    struct listing listing = { 0 };
    int64_t now_ns = clock_wall(&clock_real), changed_ns;
    struct stat status;
    int code;

    if (fstat(queue->directory, &status) < 0)
        return err_set(err, errno, "cannot look at the mail spool: %s", err_words(errno));
    changed_ns = status.st_mtim.tv_sec * NS_PER_SEC + status.st_mtim.tv_nsec;
    if (changed_ns == queue->seen_ns)
        return 0;
    code = list_names(queue, &listing, err);
    if (code < 0)
        return code;
    /* It may change again within the same tick of the kernel's clock. */
    queue->seen_ns = now_ns - changed_ns > NS_PER_SEC ? changed_ns : 0;
    buf_init(&loader.entry, MAIL_ENTRY_MAX + 4096);
    buf_init(&loader.summary, QUEUE_SUMMARY_MAX);
    take_listing(queue, &loader, &listing);
    tell_unreadable(queue, &loader);
    buf_free(&loader.entry);
    buf_free(&loader.summary);
    return 0;
}
