/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording as a source, played back in real time: docs/recording.md. Each kind begins with its
 * first look; from then on, what is given was the newest after as much time as has passed here. */
#include "source/source.h"

#include "base/quote.h"
#include "source/record_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

enum {
    PIECE = 64 * 1024,
    ABOUT_MAX = 4096, /* bytes within which a document has said what it is */
};

/* What was recorded of a kind. */
struct track {
    struct look {
        unsigned number;   /* of its file */
        int64_t offset_ns; /* from the first one */
    } * looks;
    size_t n, room;
    int64_t began_ns; /* wall time of the first one */
};

struct replay {
    struct source source;
    char *path;
    int directory;
    size_t max_bytes;
    struct track tracks[KINDS];
    int64_t opened_wall_ns, opened_mono_ns;
    int64_t length_ns; /* of the recording: nothing new comes later */
    bool has_warned;   /* of its end */
};

/* A document being read from a file. */
struct document {
    struct source *source; /* NULL: it cannot be cancelled */
    int64_t deadline_ns;
    int fd;
    struct record_reader *reader;
};

static int open_document(const struct replay *replay, const char *name, struct document *ret,
                         struct err *err)
{
    /* Not blocking: a pipe of that name must not be waited for. */
    int fd = openat(replay->directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat about;

    if (fd < 0)
        return err_set(err, errno, "cannot open it: %s", err_words(errno));
    if (fstat(fd, &about) < 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return err_set(err, EINVAL, "it is no file");
    }
    ret->fd = fd;
    ret->reader = record_reader_new(replay->max_bytes);
    return 0;
}

static void close_document(struct document *document)
{
    record_reader_free(document->reader);
    close(document->fd);
}

/* Feeds the next piece of up to `size` bytes; 1 if there was one, 0 at the end. */
static int feed_document(struct document *document, size_t size, struct err *err)
{
    char piece[PIECE];
    ssize_t n;
    int code;

    do
        n = read(document->fd, piece, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_set(err, errno, "cannot read it: %s", err_words(errno));
    code = record_reader_feed(document->reader, (struct str){ piece, (size_t)n }, err);
    return code < 0 ? code : n > 0;
}

static int read_document(struct document *document, struct section **ret, struct err *err)
{
    int code = 1;

    while (code > 0) {
        if (atomic_load(&document->source->cancelled))
            return err_set(err, ECANCELED, "sonde is stopping");
        if (clock_mono(&clock_real) > document->deadline_ns)
            return err_set(err, ETIMEDOUT, "it could not be read in time: raise --slurm.timeout");
        code = feed_document(document, PIECE, err);
    }
    return code < 0 ? code : record_reader_end(document->reader, ret, err);
}

/* Reads no more of a document than what it is. */
static int read_about(const struct replay *replay, const char *name, struct record_about *ret,
                      struct err *err)
{
    struct document document = { 0 };
    int code = open_document(replay, name, &document, err);

    if (code < 0)
        return code;
    code = feed_document(&document, ABOUT_MAX, err);
    if (code >= 0)
        code = record_reader_about(document.reader, ret)
                   ? 0
                   : err_set(err, EBADMSG, "it does not say what it is in its first %d bytes",
                             ABOUT_MAX);
    close_document(&document);
    return code;
}

static int compare_looks(const void *left, const void *right)
{
    const struct look *a = left, *b = right;

    return (a->number > b->number) - (a->number < b->number);
}

static int list_looks(struct replay *replay, struct err *err)
{
    int fd = openat(replay->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    unsigned number;
    enum kind kind;

    if (!directory) {
        if (fd >= 0)
            close(fd);
        return err_set(err, errno, "cannot list the directory: %s", err_words(errno));
    }
    while ((entry = readdir(directory))) {
        struct track *track;
        struct stat about;

        if (!record_name_parse(entry->d_name, &number, &kind) ||
            fstatat(replay->directory, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(about.st_mode))
            continue;
        track = &replay->tracks[kind];
        track->looks = heap_grow(track->looks, track->n, &track->room, sizeof(*track->looks));
        track->looks[track->n++] = (struct look){ .number = number };
    }
    closedir(directory);
    return 0;
}

static int time_look(struct replay *replay, enum kind kind, const struct look *look,
                     struct record_about *ret, struct err *err)
{
    char name[RECORD_NAME_MAX];
    struct err reason;
    int code;

    record_name(look->number, kind, name);
    code = read_about(replay, name, ret, &reason);
    if (code == 0 && ret->kind != kind)
        code = err_set(&reason, EBADMSG, "it tells of %s", kind_name(ret->kind));
    if (code < 0)
        return err_set(err, -code, "%s: %.250s; remove that file to play the others", name,
                       reason.text);
    return 0;
}

/* When each look was. A clock that was set back while it was recorded stands still here. */
static int time_track(struct replay *replay, enum kind kind, struct err *err)
{
    struct track *track = &replay->tracks[kind];
    int64_t last_ns = 0;

    qsort(track->looks, track->n, sizeof(*track->looks), compare_looks);
    for (size_t i = 0; i < track->n; i++) {
        struct record_about about;
        int code = time_look(replay, kind, &track->looks[i], &about, err);

        if (code < 0)
            return code;
        if (!i)
            track->began_ns = about.wall_ns;
        if (about.wall_ns - track->began_ns > last_ns)
            last_ns = about.wall_ns - track->began_ns;
        track->looks[i].offset_ns = last_ns;
        replay->source.simulated |= about.is_simulated;
    }
    if (last_ns > replay->length_ns)
        replay->length_ns = last_ns;
    return 0;
}

static int list_recording(struct replay *replay, struct err *err)
{
    int code = list_looks(replay, err);
    size_t n = 0;

    for (int kind = 0; kind < KINDS && code == 0; kind++) {
        code = replay->tracks[kind].n ? time_track(replay, (enum kind)kind, err) : 0;
        n += replay->tracks[kind].n;
    }
    if (code == 0 && !n)
        code = err_set(err, ENOENT, "there is no recording in it: sonde admin record makes one");
    return code;
}

static const struct look *newest_look(const struct track *track, int64_t elapsed_ns)
{
    size_t low = 0, high = track->n;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (track->looks[middle].offset_ns <= elapsed_ns)
            low = middle;
        else
            high = middle;
    }
    return &track->looks[low];
}

static int replay_read(struct source *source, enum kind kind, int64_t deadline_ns,
                       struct section **ret, char ret_warning[SOURCE_WARNING], struct err *err)
{
    struct replay *replay = (struct replay *)source;
    const struct track *track = &replay->tracks[kind];
    int64_t elapsed_ns = clock_mono(source->clock) - replay->opened_mono_ns;
    struct document document = { .source = source, .deadline_ns = deadline_ns };
    char name[RECORD_NAME_MAX];
    int code;

    if (!track->n)
        return err_set(err, EOPNOTSUPP, "nothing of kind %s was recorded in %s", kind_name(kind),
                       quote(str_of(replay->path)).text);
    record_name(newest_look(track, elapsed_ns)->number, kind, name);
    code = open_document(replay, name, &document, err);
    if (code == 0) {
        code = read_document(&document, ret, err);
        close_document(&document);
    }
    if (code < 0)
        return err_prefix(err, "%s/%s", quote(str_of(replay->path)).text, name);
    record_move_times(*ret, replay->opened_wall_ns / NS_PER_SEC - track->began_ns / NS_PER_SEC);
    if (elapsed_ns >= replay->length_ns && !replay->has_warned) {
        snprintf(ret_warning, SOURCE_WARNING,
                 "the recording has ended: what it told last is told from now on");
        replay->has_warned = true;
    }
    return 0;
}

static void replay_close(struct source *source)
{
    struct replay *replay = (struct replay *)source;

    for (int kind = 0; kind < KINDS; kind++)
        free(replay->tracks[kind].looks);
    if (replay->directory >= 0)
        close(replay->directory);
    free(replay->path);
    free(replay);
}

static const struct source_class replay_class = {
    .name = "replay",
    .kinds = KIND_BIT(KIND_JOBS) | KIND_BIT(KIND_NODES) | KIND_BIT(KIND_RESERVATIONS) |
             KIND_BIT(KIND_LICENSES) | KIND_BIT(KIND_DIAG) | KIND_BIT(KIND_SHARES) |
             KIND_BIT(KIND_ASSOCIATIONS) | KIND_BIT(KIND_CONFIG),
    .read = replay_read,
    .close = replay_close,
};

int source_open_replay(const struct source_settings *settings, const struct clock *clock,
                       struct source **ret, struct err *err)
{
    struct str path = source_details(settings);
    struct replay *replay;
    int code;

    if (!path.n)
        return err_set(err, EINVAL, "replay needs a directory: --source=replay:DIRECTORY");
    replay = heap_alloc(sizeof(*replay));
    replay->source.class = &replay_class;
    replay->source.clock = clock;
    replay->path = heap_str(path);
    replay->max_bytes = settings->max_answer;
    replay->directory = open(replay->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    code = replay->directory < 0
               ? err_set(err, errno, "cannot open the directory: %s", err_words(errno))
               : list_recording(replay, err);
    if (code < 0) {
        replay_close(&replay->source);
        return err_prefix(err, "%s", quote(path).text);
    }
    replay->opened_wall_ns = clock_wall(clock);
    replay->opened_mono_ns = clock_mono(clock);
    *ret = &replay->source;
    return 0;
}
