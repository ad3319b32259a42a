/* SPDX-License-Identifier: GPL-2.0-or-later */
/* It has no locks, so that a fork at any moment leaves none held in the child: thread and
 * sender_stop tell each other by atomic variables, and by eventfds (eventfd(2)) to wait for. A
 * thread that is left behind frees what there is. */
#include "plugin/sender.h"

#include "plugin/outlet.h"
#include "plugin/pace.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/random.h>

/* Address space: what is not used is not taken, but for a stack of megabytes the kernel may take a
 * huge page. libcurl with TLS, and the name service's modules, were seen to use a tenth of it. */
enum {
    STACK_BYTES = 256 * 1024,
    HOPELESS_MS = 20, /* what a receiver that did not answer gets at the end: it may be back */
};

struct sender {
    struct samples *samples;
    struct profile_step step;
    struct profile_settings settings;
    sender_log *log;
    struct outlet *outlet;
    int wake_fd, end_fd; /* the thread is to stop; it ends */
    pthread_t thread;
    _Atomic int64_t stop_ns;    /* until then the end may take */
    atomic_bool is_left_behind; /* or has ended: whoever sets it first leaves the other to free */

    /* The thread's. */
    unsigned failures; /* in a row */
    bool was_too_large;
};

static int64_t now_ns(void)
{
    return clock_mono(&clock_real);
}

static uint32_t random_number(void)
{
    uint32_t number;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < (ssize_t)sizeof(number))
        number = (uint32_t)now_ns();
    return number;
}

static void say(const struct sender *sender, bool is_error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Nobody listens to a thread that was left behind. */
static void say(const struct sender *sender, bool is_error, const char *format, ...)
{
    char sentence[sizeof(((struct err *)0)->text) + 300];
    va_list args;

    if (atomic_load(&sender->is_left_behind))
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    sender->log(is_error, sentence);
}

static struct telling telling_of(const struct sender *sender)
{
    return (struct telling){ sender->samples, &sender->step, &sender->settings };
}

static void settle(struct sender *sender, int code, const struct err *err)
{
    if (code < 0 && sender->failures++ == 0)
        say(sender, true, "%s (the next line about it will say that it works)", err->text);
    if (code == 0 && sender->failures) {
        say(sender, false, "samples reach %s again, after %u turns that did not",
            sender->outlet->peer, sender->failures);
        sender->failures = 0;
    }
    if (sender->outlet->n_too_large && !sender->was_too_large) {
        sender->was_too_large = true;
        say(sender, true, "%zu metrics of this step are left out: all together are too large",
            sender->outlet->n_too_large);
    }
}

static void take_turn(struct sender *sender)
{
    struct telling telling = telling_of(sender);
    struct patience patience = { now_ns() + sender->settings.timeout_ms * NS_PER_MS,
                                 sender->wake_fd };
    struct err err = { 0 };
    int code = sender->outlet->tell(sender->outlet, &telling, &patience, &err);

    if (code != -ECANCELED)
        settle(sender, code, &err);
}

/* False: it took too long. */
static bool is_woken(const struct patience *patience)
{
    struct pollfd wake = { .fd = patience->wake_fd, .events = POLLIN };
    int left_ms, n;

    do {
        left_ms = patience_left_ms(patience);
        n = poll(&wake, 1, left_ms);
    } while (n <= 0 && left_ms);
    return n > 0;
}

static void take_turns(struct sender *sender)
{
    unsigned frequency = sender->settings.frequency_seconds;
    struct patience pause = { now_ns() + pace_first_ns(frequency, random_number()),
                              sender->wake_fd };

    while (!is_woken(&pause)) {
        int64_t begin_ns = now_ns();
        unsigned failures;

        take_turn(sender);
        failures = sender->outlet->is_remote ? sender->failures : 0;
        pause.until_ns = begin_ns + pace_next_ns(frequency, failures, random_number());
    }
}

static void finish(struct sender *sender)
{
    struct telling telling = telling_of(sender);
    struct patience patience = { atomic_load(&sender->stop_ns), -1 };
    int64_t moment_ns = now_ns() + HOPELESS_MS * NS_PER_MS;
    struct err err = { 0 };

    if (sender->failures && moment_ns < patience.until_ns)
        patience.until_ns = moment_ns;
    if (sender->outlet->end(sender->outlet, &telling, &patience, &err) < 0 && !sender->failures)
        say(sender, true,
            "%s (what was told of this step stays there until it is found to be over)", err.text);
}

static struct sender *sender_free(struct sender *sender)
{
    if (sender->outlet)
        sender->outlet->free(sender->outlet);
    if (sender->wake_fd >= 0)
        close(sender->wake_fd);
    if (sender->end_fd >= 0)
        close(sender->end_fd);
    samples_free(sender->samples);
    free(sender);
    return NULL;
}

static void *run(void *arg)
{
    struct sender *sender = arg;

    take_turns(sender);
    finish(sender);
    sender->outlet = sender->outlet->free(sender->outlet);
    eventfd_write(sender->end_fd, 1);
    if (atomic_exchange(&sender->is_left_behind, true))
        sender_free(sender);
    return NULL;
}

static int start_thread(struct sender *sender, struct err *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&sender->thread, &attr, run, sender);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (code)
        return err_set(err, code, "cannot start a thread: %s", err_words(code));
    pthread_setname_np(sender->thread, "sonde-profile");
    return 0;
}

static int prepare(struct sender *sender, struct err *err)
{
    const struct profile_settings *settings = &sender->settings;

    sender->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sender->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sender->wake_fd < 0 || sender->end_fd < 0)
        return err_set(err, errno, "cannot make an eventfd: %s", err_words(errno));
    sender->outlet = settings->socket[0] ? outlet_agent_new(settings, err)
                                         : outlet_pushgateway_new(settings, &sender->step, err);
    /* It knows the password. */
    explicit_bzero(sender->settings.url, sizeof(sender->settings.url));
    return sender->outlet ? start_thread(sender, err) : -err->code;
}

struct sender *sender_start(struct samples *samples, const struct profile_step *step,
                            const struct profile_settings *settings, sender_log *log, char *why,
                            size_t room)
{
    struct sender *sender = calloc(1, sizeof(*sender));
    struct err err = { 0 };

    if (!sender) {
        snprintf(why, room, "there is no memory for a sender");
        return NULL;
    }
    sender->samples = samples_ref(samples);
    sender->step = *step;
    sender->settings = *settings;
    sender->log = log;
    if (prepare(sender, &err) < 0) {
        snprintf(why, room, "%s", err.text);
        return sender_free(sender);
    }
    return sender;
}

bool sender_stop(struct sender *sender, unsigned within_ms)
{
    int64_t within_ns = within_ms * NS_PER_MS, begin_ns = now_ns();
    struct patience patience = { begin_ns + within_ns, sender->end_fd };
    pthread_t thread = sender->thread;

    /* The thread needs a moment to free what it has. */
    atomic_store(&sender->stop_ns, begin_ns + within_ns - within_ns / 10);
    eventfd_write(sender->wake_fd, 1);
    if (!is_woken(&patience) && !atomic_exchange(&sender->is_left_behind, true)) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    sender_free(sender);
    return true;
}
