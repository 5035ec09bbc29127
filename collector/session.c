/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "internal/sys.h"
#include "internal/util.h"
#include "members.h"
#include "sigspec.h"
#include "snapshot.h"

/* The working directory is left soon. */
static int find_folder(const char *chosen, const char *what, char room[PATH_MAX], const char **ret,
	char ret_error[SESSION_ERROR_ROOM])
{
	if (!chosen)
		return 0;
	if (!realpath(chosen, room)) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "cannot read %s from \"%.200s\": %s", what,
			chosen, strerror(errno));
		return -EINVAL;
	}
	*ret = room;
	return 0;
}

static bool have_thread_counters(const struct session *s)
{
	for (size_t i = 0; i < s->sources.count; i++)
		if (s->sources.source[i].present && s->sources.source[i].ops->per_thread)
			return true;
	return false;
}

/* What keeps the kernel from sampling, or 0. */
static int prepare_sampling(struct session *s, char reason[READER_REASON_ROOM])
{
	int err = 0;

	if (!s->regions) {
		snprintf(reason, READER_REASON_ROOM, "no chosen source counts single threads");
		return -ENOTSUP;
	}
	for (size_t i = 0; i < s->sources.count && err == 0; i++) {
		const struct source *source = &s->sources.source[i];

		if (source->present && source->ops->can_sample)
			err = source->ops->can_sample(&s->env, reason);
	}
	return err < 0 ? err : probe_prepare(&s->probe, reason);
}

static int choose_mode(struct session *s, char ret_error[SESSION_ERROR_ROOM])
{
	char reason[READER_REASON_ROOM];
	int err;

	s->mode = (enum session_mode)s->config->mode;
	s->regions = have_thread_counters(s);
	if (s->mode != MODE_AUTO && s->mode != MODE_EXACT)
		return 0;
	err = prepare_sampling(s, reason);
	if (err == 0) {
		s->mode = MODE_EXACT;
		return 0;
	}
	if (s->mode == MODE_EXACT) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "cannot use exact mode: %s", reason);
		return err;
	}
	s->mode = MODE_SYNC;
	snprintf(s->not_exact, sizeof(s->not_exact), "%s", reason);
	return 0;
}

static const struct source *chosen_source(const struct session *s, const char *name)
{
	for (size_t i = 0; i < s->sources.count; i++)
		if (str_eq(s->sources.source[i].ops->name, name))
			return &s->sources.source[i];
	return NULL;
}

/* Who asks for an idle baseline asks for energy. */
static int check_idle(const struct session *s, char ret_error[SESSION_ERROR_ROOM])
{
	const struct source *energy = chosen_source(s, "energy");

	if (!s->config->idle_ns || (energy && energy->present))
		return 0;
	snprintf(ret_error, SESSION_ERROR_ROOM, "idle-baseline needs energy counters: %s",
		energy ? energy->absent : "the sources that were chosen leave them out");
	return -ENODEV;
}

int session_prepare(
	struct session *s, const struct config *chosen, char ret_error[SESSION_ERROR_ROOM])
{
	int err, signals;

	*s = (struct session){
		.config = chosen,
		.env = { .proc_root = "/proc", .sys_root = "/sys", .events = chosen->events,
			.idle_ns = chosen->idle_ns, .interval_ns = chosen->interval_ns,
			.perf_cgroup = chosen->scope == PERF_OF_CGROUP, .cpus = chosen->cpus,
			.reset_peak = chosen->reset_peak },
		.probe = { .tracefs = -1, .anchor = -1, .site.file = -1 },
		.shared = { .ring_fd = -1, .page_fd = -1, .presence_fd = -1 },
		.welcome = {
			.length = sizeof(s->welcome),
			.abi_major = JPHASE_ABI_MAJOR,
			.abi_minor = JPHASE_ABI_MINOR,
			.records = (uint32_t)chosen->ring,
		},
	};
	if (chosen->signals) {
		signals = sigspec_parse(chosen->signals, s->welcome.signal, ret_error);
		if (signals < 0)
			return signals;
		s->welcome.signals = (uint32_t)signals;
	}
	err = source_choose(chosen->sources, &s->sources, ret_error);
	if (err == 0)
		err = find_folder(chosen->powercap_root, "energy", s->powercap_root,
			&s->env.powercap_root, ret_error);
	if (err == 0)
		err = find_folder(chosen->cgroup_root, "cgroups", s->cgroup_root,
			&s->env.cgroup_root, ret_error);
	if (err == 0)
		err = source_probe(&s->sources, &s->env, ret_error);
	if (err == 0)
		err = check_idle(s, ret_error);
	return err < 0 ? err : choose_mode(s, ret_error);
}

int session_group(struct session *s, pid_t pid, char ret_error[SESSION_ERROR_ROOM])
{
	struct cgroup_choice choice = {
		.where = s->config->cgroup,
		.attach = s->config->cgroup_attach,
	};
	char reason[READER_REASON_ROOM] = "";
	int err;

	if (!choice.where || s->group)
		return 0;
	err = cgroup_own_open(&s->env, &choice, pid, &s->group, reason);
	if (err < 0) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "%s", reason);
		return err;
	}
	s->env.cgroup_path = cgroup_own_path(s->group);
	s->env.cgroup_own = cgroup_own_is_new(s->group);
	return 0;
}

/* In the group before anything of it is read. */
static int enter_group(
	struct session *s, const struct session_start *start, char ret_error[SESSION_ERROR_ROOM])
{
	char reason[READER_REASON_ROOM] = "";
	int err = session_group(s, start->pid, ret_error);

	if (err < 0 || !s->group || start->placed || !cgroup_own_takes(s->group))
		return err;
	err = cgroup_own_attach(s->group, start->pid, reason);
	if (err < 0)
		snprintf(ret_error, SESSION_ERROR_ROOM, "%s", reason);
	return err;
}

void session_leave_group(struct session *s)
{
	char reason[READER_REASON_ROOM];

	if (s->group && cgroup_own_leave(s->group, reason) < 0 && s->recorder)
		session_note(s, NULL, "%s", reason);
}

static int make_address(struct session *s, int launcher)
{
	char address[JPHASE_SESSION_ROOM];
	int n, err;

	if (getrandom(s->token, sizeof(s->token), 0) != (ssize_t)sizeof(s->token))
		return -EIO;
	jobs_init(&s->jobs, s->shared.page);
	err = control_start(&s->jobs, s->token, launcher, address, &s->control);
	if (err < 0)
		return err;
	n = snprintf(s->welcome.session, sizeof(s->welcome.session), "%.30s:", address);
	for (size_t i = 0; i < sizeof(s->token); i++)
		n += snprintf(s->welcome.session + n, sizeof(s->welcome.session) - (size_t)n,
			"%02x", s->token[i]);
	return 0;
}

struct reader_target session_target(const struct session *s, pid_t pid, bool on_exec)
{
	return (struct reader_target){ .env = &s->env, .pid = pid, .enable_on_exec = on_exec };
}

/* Opens the readers that serve the whole session, on the first process's group. */
static void open_shared_readers(
	struct session *s, const struct reader_target *target, char (*reasons)[READER_REASON_ROOM])
{
	for (size_t i = 0; i < s->sources.count; i++) {
		struct source *source = &s->sources.source[i];

		if (source->present && !source->ops->per_process &&
			source->ops->open(target, &source->shared, reasons[i]) < 0)
			source->shared = NULL;
	}
}

static int open_readers(
	struct session *s, struct process *p, bool on_exec, char ret_error[SESSION_ERROR_ROOM])
{
	char reasons[SOURCE_MAX][READER_REASON_ROOM] = { "" };
	struct reader_target target = session_target(s, p->pid, on_exec);
	int err;

	/* perf first: it needs the most descriptors, and no other can stand in for it. */
	err = process_open(p, &s->sources, &target, reasons);
	if (err < 0) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "%s",
			err == -ESRCH ? "the program has already ended" : strerror(-err));
		return err;
	}
	open_shared_readers(s, &target, reasons);
	err = source_describe(&s->sources, p->reader, reasons, ret_error);
	if (err < 0)
		return err;
	s->values = calloc(snapshot_values(&s->sources) + 1, sizeof(*s->values));
	s->sampled = calloc(CONSUMER_BATCH * s->sources.values + 1, sizeof(*s->sampled));
	return s->values && s->sampled ? 0 : -ENOMEM;
}

static const char *mode_of(const struct session *s)
{
	return mode_names[s->mode];
}

static int write_header(struct session *s, const struct session_start *start)
{
	struct recorder_reader readers[SOURCE_MAX];

	for (size_t i = 0; i < s->sources.count; i++) {
		const struct source *source = &s->sources.source[i];

		readers[i] = (struct recorder_reader){
			.name = source->ops->name,
			.critical = source->ops->critical,
			.absent = source->present ? NULL : source->absent,
			.metrics = source->present ? &source->metrics : NULL,
		};
	}
	return recorder_header(s->recorder, &(struct recorder_header){
						    .command = start->command,
						    .command_bytes = start->command_bytes,
						    .mode = mode_of(s),
						    .poll_ns = s->config->poll_ns,
						    .interval_ns = s->config->interval_ns,
						    .ring_records = s->shared.records,
						    .pid = start->pid,
						    .readers = readers,
						    .reader_count = s->sources.count,
						    .token_pattern = s->config->token_pattern,
					    });
}

void session_begin_sampling(struct session *s, pid_t pid, uint64_t site)
{
	int err;

	if (s->mode != MODE_EXACT || s->probe.defined || !site)
		return;
	err = probe_define(&s->probe, pid, site);
	if (err == 0) {
		s->shared.page->flags |= JPHASE_SESSION_SAMPLES;
		return;
	}
	s->mode = MODE_SYNC;
	session_note(s, NULL, "exact mode could not begin (%s): regions are read as in sync mode",
		strerror(-err));
}

static uint32_t flags_of(const struct session *s)
{
	if (s->mode == MODE_ASYNC)
		return s->config->poll_ns == 0 ? JPHASE_SESSION_RINGS : 0;
	return JPHASE_SESSION_WAITS | JPHASE_SESSION_RINGS |
	       (s->regions ? JPHASE_SESSION_REGIONS : 0);
}

/* Where the first process writes to: the lines of others are not looked at. */
static void mark_output(struct session *s, pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/1", (int)pid);
	if (!s->config->token_pattern || stat(path, &st) < 0)
		return;
	s->shared.page->output_device = st.st_dev;
	s->shared.page->output_inode = st.st_ino;
}

static void note_signals(struct session *s)
{
	bool merges = false;

	for (uint32_t i = 0; i < s->welcome.signals; i++)
		merges |= sigspec_merges(s->welcome.signal[i].number);
	if (merges)
		session_note(s, NULL,
			"pending instances of a standard signal are merged by the kernel: "
			"markers by such signals may be fewer than were sent");
	else if (s->welcome.signals)
		session_note(s, NULL,
			"real-time signals that kill sends to a full queue are merged by the "
			"kernel unseen; sigqueue reports a full queue");
}

static void note_group(struct session *s)
{
	const char *text;

	for (size_t i = 0; s->group && (text = cgroup_own_note(s->group, i)); i++)
		session_note(s, NULL, "%s", text);
}

/* The recording, the shared memory and the address. */
static int open_ways(struct session *s, const struct session_start *start, int launcher)
{
	int err = recorder_open(start->output_fd, s->config->fsync, &s->recorder);

	if (err == 0)
		err = shared_open((uint32_t)s->config->ring, flags_of(s), &s->shared);
	if (err < 0)
		return err;
	consumer_init(&s->consumer, s->shared.ring, s->shared.records);
	err = shared_own(&s->shared);
	return err < 0 ? err : make_address(s, launcher);
}

static void note_choices(struct session *s)
{
	note_signals(s);
}

int session_begin(struct session *s, const struct session_start *start, int launcher,
	char ret_error[SESSION_ERROR_ROOM])
{
	uint64_t since_ns = now_ns();
	struct process *p;
	int err;

	s->launched = start->launched;
	s->attached = start->attached;
	err = open_ways(s, start, launcher);
	if (err == 0)
		err = members_add_first(s, start, &p);
	if (err < 0) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "cannot start measuring: %s",
			err == -EFBIG ? "the limit on the size of files (ulimit -f) is too low"
				      : strerror(-err));
		return err;
	}
	mark_output(s, start->pid);
	err = enter_group(s, start, ret_error);
	if (err == 0)
		err = open_readers(s, p, start->launched, ret_error);
	if (err < 0)
		return err;
	write_header(s, start);
	note_group(s);
	members_start_first(s, p, start->privileged);
	session_begin_sampling(s, start->pid, start->site);
	note_choices(s);
	if (start->attached)
		members_attach(s, start, since_ns);
	return 0;
}

static void record_loss(struct session *s, const char *what, uint64_t count)
{
	if (count)
		recorder_loss(s->recorder, now_ns(), what, count);
}

void session_record_losses(struct session *s)
{
	struct consumer_losses losses = consumer_take_losses(&s->consumer);

	losses.dropped += s->outside_lost;
	s->lost += losses.dropped + losses.revoked + losses.claims + losses.invalid;
	record_loss(s, "dropped", losses.dropped);
	record_loss(s, "revoked", losses.revoked);
	record_loss(s, "claim", losses.claims);
	record_loss(s, "invalid", losses.invalid);
	record_loss(s, "unknown", s->unknown);
	record_loss(s, "sample", s->samples_lost);
	s->unknown = s->outside_lost = s->samples_lost = 0;
	record_loss(s, "backlog", recorder_take_dropped(s->recorder));
}

void session_note(struct session *s, const struct process *p, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	recorder_note(s->recorder, now_ns(), p ? p->index : RECORD_NO_PROCESS, text);
}

void session_end(struct session *s)
{
	/* Its descriptors would be 0, which is somebody's. */
	if (!s->config)
		return;
	session_leave_group(s);
	s->group = cgroup_own_close(s->group);
	s->control = control_stop(s->control);
	process_table_clear(&s->processes);
	probe_remove(&s->probe);
	s->probe.tracefs = sys_close(s->probe.tracefs);
	source_close(&s->sources);
	s->recorder = recorder_close(s->recorder);
	shared_close(&s->shared);
	free(s->values);
	free(s->sampled);
}
