/* SPDX-License-Identifier: MIT */
#include "support/measure.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "internal/util.h"

void wait_for_recording(const char *file)
{
	for (int i = 0; i < 1000; i++) {
		int fd = open(file, O_RDONLY | O_CLOEXEC);
		bool free_now = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;

		if (fd >= 0)
			close(fd);
		if (free_now)
			return;
		usleep(10000);
	}
	fail_msg("%s: still being written after 10 s, or never made", file);
}

static void append(const char **list, size_t room, const char *word)
{
	size_t n = 0;

	while (list[n])
		n++;
	assert_true(n + 1 < room);
	list[n] = word;
}

static void append_all(const char **list, size_t room, const char *const *words)
{
	for (; *words; words++)
		append(list, room, *words);
}

void measure_start(struct measured *m)
{
	struct child *c = &m->child;
	char *output = NULL;

	if (!m->dir)
		m->dir = tmpdir_make();
	free(m->file);
	m->file = text_make("%s/test.msgpack", m->dir);
	memset(c->argv, 0, sizeof(c->argv));
	memset(c->env, 0, sizeof(c->env));
	c->cwd = m->cwd ? m->cwd : m->dir;
	if (m->way == WAY_RUN) {
		const char *const start[] = { JPHASE, "run", "-q", "-o", m->file, NULL };

		append_all(c->argv, RUN_WORDS, m->through);
		append_all(c->argv, RUN_WORDS, start);
		append_all(c->argv, RUN_WORDS, m->options);
		append(c->argv, RUN_WORDS, "--");
	} else {
		output = text_make("JPHASE_OUTPUT=%s", m->file);
		append(c->env, RUN_WORDS, "LD_PRELOAD=" LIBJPHASE);
		append(c->env, RUN_WORDS, output);
	}
	append_all(c->argv, RUN_WORDS, m->argv);
	append_all(c->env, RUN_WORDS, m->env);
	assert_int_equal(run_start(c), 0);
	free(output);
}

void measure_finish(struct measured *m)
{
	run_finish(&m->child);
	if (m->child.timed_out)
		fail_msg("%s did not end", m->argv[0]);
	wait_for_recording(m->file);
	measure_load(m);
}

void measure(struct measured *m)
{
	measure_start(m);
	measure_finish(m);
}

/* Is that process a collector which writes that file? */
static bool writes(const char *pid, const char *file)
{
	static const char name[] = "jphase\0collect";
	char *path = text_make("/proc/%s/cmdline", pid), *line, to[PATH_MAX];
	bool found = false;
	size_t bytes;

	line = file_read(path, &bytes);
	free(path);
	if (!line || bytes < sizeof(name) || memcmp(line, name, sizeof(name)) != 0) {
		free(line);
		return false;
	}
	free(line);
	for (int fd = 3; fd < 64 && !found; fd++) {
		ssize_t n;

		path = text_make("/proc/%s/fd/%d", pid, fd);
		n = readlink(path, to, sizeof(to) - 1);
		free(path);
		to[n < 0 ? 0 : n] = '\0';
		found = str_eq(to, file);
	}
	return found;
}

pid_t collector_of(const char *file)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t pid = 0;

	while (proc && !pid && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			writes(entry->d_name, file))
			pid = (pid_t)atol(entry->d_name);
	if (proc)
		closedir(proc);
	return pid;
}

pid_t wait_for_collector(const char *file)
{
	for (int i = 0; i < 1000; i++) {
		pid_t pid = collector_of(file);

		if (pid)
			return pid;
		usleep(5000);
	}
	fail_msg("%s: nobody has begun to write it after 5 s", file);
	return 0;
}

/* How often a busy machine gets another chance, and when a marker gives up. */
#define CALM_ATTEMPTS  10
#define MARKER_WAIT_NS (50 * NSEC_PER_MSEC)

bool measure_was_calm(const struct measured *m)
{
	for (size_t i = 0; i < m->model->row_count; i++)
		if (m->model->rows[i].begin_ns - m->model->rows[i].entry_ns >= MARKER_WAIT_NS)
			return false;
	return true;
}

void measure_calmly(struct measured *m)
{
	for (int i = 0; i < CALM_ATTEMPTS; i++) {
		measure(m);
		if (measure_was_calm(m))
			return;
		/* Or it would become an older one beside the next. */
		unlink(m->file);
	}
	print_message("markers had to wait for more than 50 ms each time: too busy a machine\n");
	measure_clear(m);
	skip();
}

void measure_load(struct measured *m)
{
	int fd, err;

	m->model = m->model ? model_close(m->model) : NULL;
	assert_int_equal(model_open(&m->model), 0);
	fd = open(m->file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	err = model_read(m->model, fd, m->file);
	close(fd);
	if (err < 0)
		fail_msg("%s: cannot be read: %s; %s", m->file, strerror(-err), m->child.err);
	assert_int_equal(model_finish(m->model, BY_PHASE), 0);
}

void measure_clear(struct measured *m)
{
	if (m->model)
		model_close(m->model);
	run_clear(&m->child);
	free(m->file);
	tmpdir_remove(m->dir);
	*m = (struct measured){ .way = WAY_RUN };
}

size_t phase_count(const struct measured *m, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < m->model->row_count; i++)
		count += str_eq(m->model->rows[i].name, name);
	return count;
}

const struct row *phase_at(const struct measured *m, const char *name, size_t n)
{
	for (size_t i = 0; i < m->model->row_count; i++)
		if (str_eq(m->model->rows[i].name, name) && n-- == 0)
			return &m->model->rows[i];
	fail_msg("no phase is called %s (standard error: %s)", name, m->child.err);
	return NULL;
}

struct value value_of(const struct measured *m, const struct row *row, const char *metric)
{
	for (size_t i = 0; i < m->model->column_count; i++)
		if (str_eq(m->model->columns[i].name, metric))
			return model_value(m->model, row, i);
	fail_msg("no metric is called %s", metric);
	return (struct value){ .state = VALUE_MISSING };
}

uint64_t counted(const struct measured *m, const struct row *row, const char *metric)
{
	struct value v = value_of(m, row, metric);

	if (v.state != VALUE_COUNTED)
		fail_msg("%s of %s was not counted: %s", metric, row->name,
			v.note ? v.note : "no reason");
	return v.number;
}

void need_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		print_message("perf_event_open: %s; the test needs root or "
			      "perf_event_paranoid at most 1\n",
			strerror(errno));
		skip();
	}
	close((int)fd);
}
