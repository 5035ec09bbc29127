/* SPDX-License-Identifier: MIT */
#include "readers/procfs_tree.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "metric.h"
#include "readers/procfs_children.h"
#include "readers/textfile.h"

/* Processes of a tree that are followed. */
#define MEMBERS_MAX 256

#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

/* The thread takes at most this part of the time of one CPU for each of its tasks. */
#define SHARE 100

/* Looking for new processes less often than that is worth a note. */
#define SELDOM_NS  (250 * NSEC_PER_MSEC)
#define SLOW_LOOKS 3

struct member {
	pid_t pid;
	struct procfs_files files;
	uint64_t last[RAW_COUNT];
	uint64_t before[RAW_COUNT]; /* used before the tree was opened */
	bool ignores;               /* the ends of its children: nobody waits for them */
	bool unwaited;              /* nobody in the tree will wait for it */
	bool gone;
};

struct procfs_tree {
	struct procfs_tree *next;
	char *proc_root;
	uint64_t interval_ns;
	pid_t pid;
	uint64_t opened; /* in clock ticks since the boot, as births are told */
	bool followed;   /* by the thread */
	unsigned users;  /* the thread, while it works on it, and the owner */
	uint64_t round;  /* of the thread, in which it had its turn */

	pthread_mutex_t
		lock; /* of what follows; held while members are read, not while they are looked for */
	bool ignores; /* as a member's, of the first process */
	struct member *member;
	size_t count;
	uint64_t past[RAW_COUNT]; /* of those that ended, modulo 2^64 */
	uint64_t pss;
	bool full; /* a process found no place */
	bool told_full;
	uint64_t boundaries; /* a size that was read across one is nobody's */
};

/* --- members --- */

static struct member *member_find(const struct procfs_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->member[i].pid == pid && !t->member[i].gone)
			return &t->member[i];
	return NULL;
}

static bool is_inside(const struct procfs_tree *t, pid_t pid)
{
	return pid == t->pid || member_find(t, pid);
}

static bool ignores_ends(const uint64_t raw[RAW_COUNT])
{
	return raw[RAW_IGNORED] != VALUE_ABSENT && raw[RAW_IGNORED] & UINT64_C(1) << (SIGCHLD - 1);
}

/* SA_NOCLDWAIT does the same as ignoring the signal, and shows nowhere. */
static bool waits_for_children(const struct procfs_tree *t, pid_t pid)
{
	const struct member *m = member_find(t, pid);

	return pid == t->pid ? !t->ignores : m && !m->ignores;
}

static void member_read(struct member *m, uint64_t raw[RAW_COUNT])
{
	m->gone = procfs_file_read(&m->files, FILE_STAT, raw) < 0;
	(void)procfs_file_read(&m->files, FILE_STATUS, raw);
	(void)procfs_file_read(&m->files, FILE_IO, raw);
}

static void member_add(struct procfs_tree *t, pid_t pid)
{
	struct member m = { .pid = pid }, *grown;

	if (t->count == MEMBERS_MAX) {
		t->full = true;
		return;
	}
	grown = reallocarray(t->member, t->count + 1, sizeof(*grown));
	if (!grown)
		return;
	t->member = grown;
	procfs_files_open_child(&m.files, t->proc_root, pid);
	member_read(&m, m.last);
	/* The number may be somebody else's by now. */
	if (m.gone || !is_inside(t, (pid_t)m.last[RAW_PARENT])) {
		procfs_files_close(&m.files);
		return;
	}
	m.ignores = ignores_ends(m.last);
	m.unwaited = !waits_for_children(t, (pid_t)m.last[RAW_PARENT]);
	for (enum raw r = 0; r < RAW_COUNT && m.last[RAW_BORN] < t->opened; r++)
		m.before[r] = m.last[r] == VALUE_ABSENT ? 0 : m.last[r];
	t->member[t->count++] = m;
}

static bool is_counter(enum raw r)
{
	return (r >= RAW_MINFLT && r <= RAW_CSTIME) || r == RAW_READ_BYTES || r == RAW_WRITE_BYTES;
}

/* Who waits for a process gets its numbers as those of a child; else they would be lost. */
static void member_end(struct procfs_tree *t, const struct member *m)
{
	for (enum raw r = 0; r < RAW_COUNT; r++) {
		if (!is_counter(r) || m->last[r] == VALUE_ABSENT)
			continue;
		t->past[r] += (m->unwaited ? m->last[r] : 0) - m->before[r];
	}
}

/* Between boundaries nobody else notices, and there is room for so many only. */
static void members_end(struct procfs_tree *t)
{
	uint64_t raw[RAW_COUNT];

	for (size_t i = 0; i < t->count; i++) {
		struct member *m = &t->member[i];

		if (m->gone || procfs_file_read(&m->files, FILE_STAT, raw) >= 0)
			continue;
		m->gone = true;
		member_end(t, m);
	}
}

static void members_forget(struct procfs_tree *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->member[i].gone)
			procfs_files_close(&t->member[i].files);
		else
			t->member[kept++] = t->member[i];
	t->count = kept;
}

/* Those whose parents come later in the list are found in the next round. */
static void members_add(struct procfs_tree *t, const struct edges *e)
{
	size_t before;

	do {
		before = t->count;
		for (size_t i = 0; i < e->count; i++)
			if (is_inside(t, e->edge[i].parent) && !is_inside(t, e->edge[i].pid))
				member_add(t, e->edge[i].pid);
	} while (t->count > before);
}

/* all: of the whole machine, read where it is needed and empty. */
static void update(struct procfs_tree *t, struct edges *all)
{
	struct edges own = { 0 };
	bool listed = children_below(t->proc_root, t->pid, MEMBERS_MAX, &own);

	if (!listed && !all->count)
		(void)children_all(t->proc_root, all);
	pthread_mutex_lock(&t->lock);
	members_end(t);
	members_forget(t);
	members_add(t, listed ? &own : all);
	pthread_mutex_unlock(&t->lock);
	free(own.edge);
}

void procfs_tree_update(struct procfs_tree *t)
{
	struct edges all = { 0 };

	update(t, &all);
	free(all.edge);
}

/* --- numbers --- */

/* What the process itself has from the kernel as of one thread, or as its own peak, stays so. */
static bool is_gauge(enum raw r)
{
	return r >= RAW_VM_SIZE && r <= RAW_THREADS && r != RAW_VM_HWM;
}

static void add_to(uint64_t *sum, uint64_t value)
{
	if (*sum != VALUE_ABSENT && value != VALUE_ABSENT)
		*sum += value;
}

/* One that has ended has no memory any more. */
static void add_process(uint64_t raw[RAW_COUNT], const uint64_t now[RAW_COUNT])
{
	if (now[RAW_VM_RSS] != VALUE_ABSENT)
		add_to(&raw[RAW_PROCESSES], 1);
}

/* What it has used will be asked for when it has ended. */
static void member_keep(struct member *m, const uint64_t now[RAW_COUNT])
{
	for (enum raw r = 0; r < RAW_COUNT; r++)
		if (is_counter(r) && now[r] != VALUE_ABSENT)
			m->last[r] = now[r];
}

static void member_count(struct procfs_tree *t, struct member *m, uint64_t raw[RAW_COUNT])
{
	uint64_t now[RAW_COUNT];

	member_read(m, now);
	if (m->gone) {
		member_end(t, m);
		return;
	}
	m->ignores = ignores_ends(now);
	m->unwaited = !waits_for_children(t, (pid_t)now[RAW_PARENT]);
	member_keep(m, now);
	for (enum raw r = 0; r < RAW_COUNT; r++) {
		if (is_counter(r)) {
			if (m->last[r] != VALUE_ABSENT)
				add_to(&raw[r], m->last[r] - m->before[r]);
		} else if (is_gauge(r)) {
			add_to(&raw[r], now[r]);
		}
	}
	add_process(raw, now);
}

static void member_measure(struct member *m, uint64_t raw[RAW_COUNT])
{
	uint64_t now[RAW_COUNT];

	memcpy(now, m->last, sizeof(now));
	(void)procfs_file_read(&m->files, FILE_STATUS, now);
	if (m->unwaited) {
		(void)procfs_file_read(&m->files, FILE_STAT, now);
		member_keep(m, now);
	}
	for (enum raw r = 0; r < RAW_COUNT; r++)
		if (is_gauge(r))
			add_to(&raw[r], now[r]);
	add_process(raw, now);
}

void procfs_tree_add(struct procfs_tree *t, bool gauges_only, uint64_t raw[RAW_COUNT])
{
	pthread_mutex_lock(&t->lock);
	if (!gauges_only)
		t->ignores = ignores_ends(raw);
	for (size_t i = 0; i < t->count; i++) {
		struct member *m = &t->member[i];

		if (m->gone)
			continue;
		if (gauges_only)
			member_measure(m, raw);
		else
			member_count(t, m, raw);
	}
	for (enum raw r = 0; r < RAW_COUNT && !gauges_only; r++)
		if (is_counter(r))
			add_to(&raw[r], t->past[r]);
	if (!gauges_only) {
		t->boundaries++;
		t->pss = VALUE_ABSENT;
	}
	pthread_mutex_unlock(&t->lock);
}

/* --- proportional set sizes --- */

static uint64_t pss_of(const char *proc_root, pid_t pid)
{
	const struct kfile_key key = { .name = "Pss" };
	char text[4096];
	uint64_t pss = VALUE_ABSENT;
	int size = textfile_read(text, sizeof(text), "%s/%d/smaps_rollup", proc_root, (int)pid);

	if (size > 0)
		(void)kfile_labelled(text, (size_t)size, &key, 1, &pss);
	return pss;
}

static size_t members_list(struct procfs_tree *t, pid_t pids[MEMBERS_MAX], uint64_t *ret_boundaries)
{
	size_t count;

	pthread_mutex_lock(&t->lock);
	*ret_boundaries = t->boundaries;
	count = t->count;
	for (size_t i = 0; i < count; i++)
		pids[i] = t->member[i].pid;
	pthread_mutex_unlock(&t->lock);
	return count;
}

static void pss_update(struct procfs_tree *t)
{
	pid_t pids[MEMBERS_MAX];
	uint64_t boundaries;
	size_t count = members_list(t, pids, &boundaries);
	uint64_t sum = pss_of(t->proc_root, t->pid);

	for (size_t i = 0; i < count; i++)
		add_to(&sum, pss_of(t->proc_root, pids[i]));
	pthread_mutex_lock(&t->lock);
	if (t->boundaries == boundaries)
		t->pss = sum;
	pthread_mutex_unlock(&t->lock);
}

uint64_t procfs_tree_take_pss(struct procfs_tree *t)
{
	uint64_t pss;

	pthread_mutex_lock(&t->lock);
	pss = t->pss;
	t->pss = VALUE_ABSENT;
	pthread_mutex_unlock(&t->lock);
	return pss;
}

/* --- the thread --- */

static struct {
	pthread_mutex_t lock; /* of the list and of users; taken before a tree's own */
	pthread_cond_t changed;
	struct procfs_tree *trees;
	uint64_t round;
	bool running;
	bool told_seldom;
	_Atomic bool seldom; /* finding processes takes too long to be done often */
} follower = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Somebody may set the other clock. */
static void follower_prepare(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&follower.changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void tree_free(struct procfs_tree *t)
{
	for (size_t i = 0; i < t->count; i++)
		procfs_files_close(&t->member[i].files);
	free(t->member);
	free(t->proc_root);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* With the list's lock. */
static void tree_put(struct procfs_tree *t)
{
	if (--t->users == 0)
		tree_free(t);
}

/*
 * A tree that has not had its turn in this round, held in place of t; the list
 * may have changed meanwhile.  With the list's lock.
 */
static struct procfs_tree *tree_next(struct procfs_tree *t)
{
	struct procfs_tree *next = follower.trees;

	while (next && next->round == follower.round)
		next = next->next;
	if (next) {
		next->round = follower.round;
		next->users++;
	}
	if (t)
		tree_put(t);
	return next;
}

static void update_all(void)
{
	struct edges all = { 0 };

	for (struct procfs_tree *t = tree_next(NULL); t; t = tree_next(t)) {
		pthread_mutex_unlock(&follower.lock);
		update(t, &all);
		pthread_mutex_lock(&follower.lock);
	}
	free(all.edge);
}

static void measure_all(void)
{
	for (struct procfs_tree *t = tree_next(NULL); t; t = tree_next(t)) {
		pthread_mutex_unlock(&follower.lock);
		pss_update(t);
		pthread_mutex_lock(&follower.lock);
	}
}

/* Both with the list's lock, which they give away meanwhile; each takes its share of the time. */
static struct {
	void (*run)(void);
	uint64_t due_ns;
	unsigned slow; /* how often in a row */
} tasks[] = { { .run = update_all }, { .run = measure_all } };

static uint64_t tasks_run(void)
{
	uint64_t next = UINT64_MAX, pause;

	for (size_t i = 0; i < ARRAY_SIZE(tasks) && follower.trees; i++) {
		uint64_t interval = follower.trees->interval_ns, begin = now_ns(), end;

		if (tasks[i].due_ns <= begin) {
			follower.round++;
			tasks[i].run();
			end = now_ns();
			pause = (end - begin) * SHARE;
			tasks[i].due_ns = end + MAX(interval, pause);
			/* Once may be the machine's doing. */
			tasks[i].slow = pause > MAX(interval, SELDOM_NS) ? tasks[i].slow + 1 : 0;
			if (i == 0 && tasks[i].slow == SLOW_LOOKS)
				follower.seldom = true;
		}
		next = MIN(next, tasks[i].due_ns);
	}
	return next;
}

static void *follow(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&follower.lock);
	while (follower.trees) {
		uint64_t next = tasks_run(), latest = now_ns() + NSEC_PER_SEC;
		struct timespec until = ns_timespec(MIN(next, latest));

		if (follower.trees)
			pthread_cond_timedwait(&follower.changed, &follower.lock, &until);
	}
	follower.running = false;
	pthread_mutex_unlock(&follower.lock);
	return NULL;
}

/* With the list's lock. */
static int follower_start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (follower.running)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&thread, NULL, follow, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		pthread_detach(thread);
	follower.running = err == 0;
	return err;
}

static int tree_follow(struct procfs_tree *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	pthread_once(&once, follower_prepare);
	pthread_mutex_lock(&follower.lock);
	t->next = follower.trees;
	follower.trees = t;
	err = follower_start();
	if (err < 0)
		follower.trees = t->next;
	t->followed = err == 0;
	pthread_cond_signal(&follower.changed);
	pthread_mutex_unlock(&follower.lock);
	return err;
}

static uint64_t ticks_since_boot(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return timespec_ns(&ts) / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

int procfs_tree_open(const struct reader_env *env, pid_t pid, struct procfs_tree **ret)
{
	struct procfs_tree *t = calloc(1, sizeof(*t));
	int err = 0;

	if (!t)
		return -ENOMEM;
	t->proc_root = strdup(env->proc_root);
	t->interval_ns = env->interval_ns;
	t->pid = pid;
	t->opened = ticks_since_boot();
	t->users = 1;
	t->pss = VALUE_ABSENT;
	pthread_mutex_init(&t->lock, NULL);
	if (!t->proc_root)
		err = -ENOMEM;
	else if (env->interval_ns)
		err = tree_follow(t);
	if (err < 0) {
		tree_free(t);
		return err;
	}
	*ret = t;
	return 0;
}

const char *procfs_tree_shortfall(struct procfs_tree *t)
{
	bool full;

	pthread_mutex_lock(&t->lock);
	full = t->full && !t->told_full;
	t->told_full |= full;
	pthread_mutex_unlock(&t->lock);
	if (full)
		return "more than " STRING(MEMBERS_MAX) " processes at once were started by this "
							"one: its values lack those beyond";
	if (!atomic_exchange(&follower.seldom, false) || follower.told_seldom)
		return NULL;
	follower.told_seldom = true;
	return "there are so many processes that new ones are looked for only a few times a "
	       "second: what they use until then is missing";
}

struct procfs_tree *procfs_tree_close(struct procfs_tree *t)
{
	struct procfs_tree **at = &follower.trees;

	if (!t)
		return NULL;
	pthread_mutex_lock(&follower.lock);
	while (t->followed && *at != t)
		at = &(*at)->next;
	if (t->followed) {
		*at = t->next;
		pthread_cond_signal(&follower.changed);
	}
	tree_put(t);
	pthread_mutex_unlock(&follower.lock);
	return NULL;
}
