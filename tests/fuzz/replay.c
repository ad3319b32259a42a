/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target without a fuzzer: on every file of a corpus, and on a bounded number of
 * mutations of each that are the same in every run. Prints TAP (testanything.org). When the target
 * fails, the input is left in a file crash-… to be given again by its name. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"

#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum { INPUT_MAX = 4 << 20, MUTATIONS = 200, STACKED_MAX = 4 };

struct file {
    char *name; /* without its directory */
    struct buf content;
};

struct corpus {
    struct file *file;
    size_t n;
};

/* What is being run, for the signal handler. */
static struct {
    size_t test;
    const char *name;
    size_t mutation; /* 0: the file as it is */
    const uint8_t *data;
    size_t size;
} now;

static void write_all(int fd, const void *data, size_t size)
{
    for (const char *p = data; size;) {
        ssize_t n = write(fd, p, size);

        if (n <= 0)
            return;
        p += n;
        size -= (size_t)n;
    }
}

/* Runs in the thread that failed, maybe within malloc: nothing here allocates. */
static void keep_what_failed(int number)
{
    static char line[512];
    char path[] = "crash-0000000000000000";
    uint64_t seed = fuzz_seed(now.data, now.size);
    int fd;

    for (size_t i = sizeof(path) - 2; path[i] != '-'; i--, seed >>= 4)
        path[i] = "0123456789abcdef"[seed & 15];
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        write_all(fd, now.data, now.size);
        close(fd);
    }
    snprintf(line, sizeof(line), "not ok %zu - %.300s, mutation %zu, input left in %s\n", now.test,
             now.name, now.mutation, path);
    write_all(STDOUT_FILENO, line, strlen(line));
    /* SA_RESETHAND: now as if nobody had asked for it. */
    raise(number);
}

/* Also when the stack is what ran out. SIGABRT is how the sanitizers end; what they catch before
 * that is left to them, because they tell more. */
static void catch_failures(void)
{
    static char stack[64 * 1024];
    static const int numbers[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    struct sigaction action = { .sa_handler = keep_what_failed,
                                .sa_flags = SA_ONSTACK | SA_RESETHAND };
    stack_t old_stack;

    if (sigaltstack(NULL, &old_stack) == 0 && old_stack.ss_flags & SS_DISABLE)
        sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct sigaction old;

        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}

/* In a block of just its size, so that the address sanitizer sees a read past the end. */
static void run(struct str input)
{
    uint8_t *copy = heap_array(input.n, 1);

    memcpy(copy, input.p, input.n);
    now.data = copy;
    now.size = input.n;
    LLVMFuzzerTestOneInput(copy, input.n);
    free(copy);
}

static size_t below(uint64_t *seed, size_t limit)
{
    return limit ? fuzz_random(seed) % limit : 0;
}

static void replace(struct buf *input, size_t at, size_t removed, struct str added)
{
    struct buf result;

    buf_init(&result, INPUT_MAX);
    buf_put(&result, str_head(buf_str(input), at));
    buf_put(&result, added);
    buf_put(&result, str_skip(buf_str(input), at + removed));
    if (result.over) {
        buf_free(&result);
        return;
    }
    buf_free(input);
    *input = result;
}

static void flip_a_bit(struct buf *input, uint64_t *seed, struct str other)
{
    (void)other;
    if (input->n)
        input->p[below(seed, input->n)] ^= (char)(1 << below(seed, 8));
}

static void set_a_byte(struct buf *input, uint64_t *seed, struct str other)
{
    (void)other;
    if (input->n)
        input->p[below(seed, input->n)] = (char)fuzz_random(seed);
}

static void insert_a_byte(struct buf *input, uint64_t *seed, struct str other)
{
    /* structure in one language or another, and bytes that are special to many */
    static const char bytes[] = "\0\1\t\n\r \"'\\/,:;{}[]()<>&|=%@#*+-.0159aAeEnux\x7f\x80\xc3\xff";

    (void)other;
    replace(input, below(seed, input->n + 1), 0,
            (struct str){ bytes + below(seed, sizeof(bytes) - 1), 1 });
}

static void cut_something_out(struct buf *input, uint64_t *seed, struct str other)
{
    (void)other;
    replace(input, below(seed, input->n), 1 + below(seed, input->n / 4), STR(""));
}

static void cut_the_end_off(struct buf *input, uint64_t *seed, struct str other)
{
    (void)other;
    replace(input, below(seed, input->n), input->n, STR(""));
}

static void splice_in(struct buf *input, uint64_t *seed, struct str other)
{
    struct str part = str_head(str_skip(other, below(seed, other.n)), 1 + below(seed, 64));

    replace(input, below(seed, input->n + 1), below(seed, 16), part);
}

static void go_on_as_another(struct buf *input, uint64_t *seed, struct str other)
{
    replace(input, below(seed, input->n + 1), input->n, str_skip(other, below(seed, other.n)));
}

static void mutate(struct buf *input, uint64_t *seed, struct str other)
{
    static void (*const ways[])(struct buf * input, uint64_t * seed, struct str other) = {
        flip_a_bit,      set_a_byte, insert_a_byte,    cut_something_out,
        cut_the_end_off, splice_in,  go_on_as_another,
    };

    for (size_t left = 1 + below(seed, STACKED_MAX); left; left--)
        ways[below(seed, COUNT(ways))](input, seed, other);
}

static void replay(const struct corpus *corpus, const struct file *file, size_t n_mutations)
{
    struct str content = buf_str(&file->content);
    uint64_t seed = fuzz_seed((const uint8_t *)content.p, content.n);

    now.mutation = 0;
    run(content);
    for (size_t i = 1; i <= n_mutations; i++) {
        const struct file *other = &corpus->file[below(&seed, corpus->n)];
        struct buf input;

        buf_init(&input, INPUT_MAX);
        buf_put(&input, content);
        mutate(&input, &seed, buf_str(&other->content));
        now.mutation = i;
        run(buf_str(&input));
        buf_free(&input);
    }
}

static bool read_file(int directory, const char *name, struct buf *content)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ssize_t n = -1;

    buf_init(content, INPUT_MAX);
    if (fd < 0)
        return false;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= INPUT_MAX)
        n = read(fd, buf_room(content, (size_t)status.st_size), (size_t)status.st_size);
    close(fd);
    if (n < 0)
        return false;
    content->n = (size_t)n;
    buf_end(content);
    return true;
}

static void add_file(struct corpus *corpus, int directory, const char *name)
{
    struct file file;

    if (!read_file(directory, name, &file.content)) {
        printf("Bail out! %s cannot be read, or is larger than %d bytes\n", name, INPUT_MAX);
        exit(1);
    }
    file.name = heap_str(str_of(name));
    corpus->file = heap_resize(corpus->file, corpus->n + 1, sizeof(file));
    corpus->file[corpus->n++] = file;
}

static int is_not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The files of a directory in the order of their names, or one file. */
static struct corpus read_corpus(const char *path)
{
    struct corpus corpus = { 0 };
    struct dirent **entries;
    int n = scandir(path, &entries, is_not_hidden, alphasort);
    int directory;

    if (n < 0) {
        add_file(&corpus, AT_FDCWD, path);
        return corpus;
    }
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < n; i++) {
        add_file(&corpus, directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    close(directory);
    return corpus;
}

int main(int argc, char **argv)
{
    uint64_t n_mutations = MUTATIONS;
    struct corpus corpus;

    if (argc < 2 || argc > 3 || (argc == 3 && !num_get_u64(str_of(argv[2]), &n_mutations))) {
        fprintf(stderr, "usage: %s CORPUS [MUTATIONS OF EACH FILE]\n", argv[0]);
        return 2;
    }
    corpus = read_corpus(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    catch_failures();
    printf("1..%zu\n", corpus.n);
    for (size_t i = 0; i < corpus.n; i++) {
        now.test = i + 1;
        now.name = corpus.file[i].name;
        replay(&corpus, &corpus.file[i], n_mutations);
        printf("ok %zu - %s\n", i + 1, corpus.file[i].name);
    }
    for (size_t i = 0; i < corpus.n; i++) {
        free(corpus.file[i].name);
        buf_free(&corpus.file[i].content);
    }
    free(corpus.file);
    return 0;
}
