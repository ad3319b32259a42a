/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pool of open readers of a store. */
#include "web/api_readers.h"

#include "store/store.h"

#include <pthread.h>
#include <sys/stat.h>

struct api_readers {
    char *url;
    pthread_mutex_t lock; /* of the next */
    struct api_reader *idle;
};

struct api_readers *api_readers_new(const char *url)
{
    struct api_readers *readers = heap_alloc(sizeof(*readers));

    readers->url = heap_str(str_of(url));
    pthread_mutex_init(&readers->lock, NULL);
    return readers;
}

static void close_reader(struct api_reader *reader)
{
    store_reader_close(reader->store);
    free(reader);
}

static struct api_reader *take_idle(struct api_readers *readers)
{
    struct api_reader *reader;

    pthread_mutex_lock(&readers->lock);
    reader = readers->idle;
    if (reader)
        readers->idle = reader->next;
    pthread_mutex_unlock(&readers->lock);
    return reader;
}

struct api_readers *api_readers_free(struct api_readers *readers)
{
    struct api_reader *reader;

    if (!readers)
        return NULL;
    while ((reader = take_idle(readers)))
        close_reader(reader);
    pthread_mutex_destroy(&readers->lock);
    free(readers->url);
    free(readers);
    return NULL;
}

/* If the file is replaced between the look at it and the opening, the next look finds another. */
static int open_reader(const struct api_readers *readers, const struct stat *file,
                       struct api_reader **ret, struct err *err)
{
    struct store_reader *store;
    int code = store_reader_open(str_of(readers->url), &store, err);

    if (code < 0)
        return code;
    *ret = heap_alloc(sizeof(**ret));
    **ret = (struct api_reader){ .store = store, .device = file->st_dev, .inode = file->st_ino };
    return 0;
}

int api_readers_take(struct api_readers *readers, int64_t deadline_ns, struct api_reader **ret,
                     struct err *err)
{
    char path[STORE_PATH_MAX];
    struct api_reader *reader;
    struct stat file;
    int code = store_path(str_of(readers->url), path, err);

    if (code < 0)
        return code;
    if (stat(path, &file) < 0)
        return err_set(err, errno, "there is no store at %s: %s", path, err_words(errno));
    while ((reader = take_idle(readers))) {
        if (reader->device == file.st_dev && reader->inode == file.st_ino)
            break;
        close_reader(reader);
    }
    if (!reader)
        code = open_reader(readers, &file, &reader, err);
    if (code < 0)
        return code;
    store_reader_deadline(reader->store, deadline_ns);
    *ret = reader;
    return 0;
}

void api_readers_give(struct api_readers *readers, struct api_reader *reader, bool is_good)
{
    if (!reader)
        return;
    if (!is_good) {
        close_reader(reader);
        return;
    }
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->idle;
    readers->idle = reader;
    pthread_mutex_unlock(&readers->lock);
}
