/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "calibrate.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "sigspec.h"
#include "snapshot.h"

/* Processes that we could not confirm and still keep apart. */
#define STRANGERS_MAX 256

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
		.probe = { .tracefs = -1, .anchor = -1 },
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

static struct reader_target target_of(const struct session *s, pid_t pid, bool on_exec)
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
	struct reader_target target = target_of(s, p->pid, on_exec);
	int err;

	/* perf first: it needs the most descriptors, and no other can stand in for it. */
	err = process_open(p, &s->sources, &target, reasons);
	if (err == -ESRCH) {
		snprintf(ret_error, SESSION_ERROR_ROOM, "the program has already ended");
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

/* The process's first phase is called START; with counters it has a baseline. */
struct birth {
	const char *how;  /* "first", "exec", "fork" */
	uint64_t time_ns; /* a forked child's: of its first marker */
	pid_t parent;
	const char *absent; /* why it has no counters, or NULL */
};

static void record_start(struct session *s, struct process *p, const struct birth *birth)
{
	/* What a forked child did before its first marker was counted by nobody. */
	bool baseline = !str_eq(birth->how, "fork");
	uint64_t time = birth->time_ns;

	recorder_process(s->recorder, time, p->index, p->as_named, birth->parent, p->name,
		birth->how, birth->absent);
	p->last_ns = time;
	recorder_marker(s->recorder, &(struct record_marker){
					     .time_ns = time,
					     .process = p->index,
					     .tid = (uint32_t)p->as_named,
					     .kind = JPHASE_PHASE,
					     .name = "START",
					     .snapshot = baseline ? snapshot_of(s, p) : 0,
					     .done_ns = time,
				     });
}

/* Defines the probe where the first process has the library. */
static void begin_sampling(struct session *s, pid_t pid, uint64_t site)
{
	int err;

	if (s->mode != MODE_EXACT || s->probe.id || !site)
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

static void attach_others(struct session *s, const struct session_start *start, uint64_t since_ns)
{
	if (!start->attached)
		return;
	for (size_t i = 0; i < start->other_count; i++)
		if (!session_join(s, (pid_t)start->others[i], "attach", now_ns()))
			session_note(s, NULL, "process %u had ended before it could be attached to",
				start->others[i]);
	session_note(s, NULL,
		"attaching took %.1f ms; what a thread did that another one started just then may "
		"be missing",
		(double)(now_ns() - since_ns) / NSEC_PER_MSEC);
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

int session_begin(struct session *s, const struct session_start *start, int launcher,
	char ret_error[SESSION_ERROR_ROOM])
{
	uint64_t since_ns = now_ns();
	struct process_facts facts;
	struct process *p;
	int err;

	err = recorder_open(start->output_fd, s->config->fsync, &s->recorder);
	if (err == 0)
		err = shared_open((uint32_t)s->config->ring, flags_of(s), &s->shared);
	if (err == 0) {
		consumer_init(&s->consumer, s->shared.ring, s->shared.records);
		err = shared_own(&s->shared);
	}
	if (err == 0)
		err = make_address(s, launcher);
	if (err == 0)
		err = process_facts(start->pid, &facts);
	p = err == 0 ? process_add(&s->processes) : NULL;
	if (!p) {
		err = err < 0 ? err : -ENOMEM;
		snprintf(ret_error, SESSION_ERROR_ROOM, "cannot start measuring: %s",
			err == -EFBIG ? "the limit on the size of files (ulimit -f) is too low"
				      : strerror(-err));
		return err;
	}

	s->launched = start->launched;
	s->attached = start->attached;
	mark_output(s, start->pid);
	p->pid = start->pid;
	p->as_named = facts.inner;
	p->first = p->confirmed = true;
	/* Before its exec the program still has our name. */
	snprintf(p->name, sizeof(p->name), "%s",
		start->launched ? basename(start->command) : facts.name);
	err = enter_group(s, start, ret_error);
	if (err == 0)
		err = open_readers(s, p, start->launched, ret_error);
	if (err < 0)
		return err;
	write_header(s, start);
	note_group(s);
	record_start(s, p,
		&(struct birth){ .how = "first", .time_ns = now_ns(), .parent = facts.parent });
	for (size_t i = 0; start->privileged && i < s->sources.count; i++)
		if (p->reader[i] && s->sources.source[i].ops->lost)
			snapshot_give_up(s, p, i, READER_LOST_AT_EXEC);
	note_signals(s);
	begin_sampling(s, start->pid, start->site);
	if (s->not_exact[0])
		session_note(s, NULL, "not exact: %s", s->not_exact);
	control_watch(s->control, p->pidfd, p->index);
	attach_others(s, start, since_ns);
	return 0;
}

static int send_welcome(int socket, struct jphase_welcome *welcome, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(JPHASE_WELCOME_FDS * sizeof(int))];
	} control = { .buf = "" };
	struct iovec iov = { .iov_base = welcome, .iov_len = sizeof(*welcome) };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = count ? control.buf : NULL,
		.msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0,
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	if (c) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int session_welcome(struct session *s, int socket, bool first)
{
	const int fds[JPHASE_WELCOME_FDS] = { s->shared.ring_fd, s->shared.page_fd,
		s->shared.presence_fd };
	struct jphase_welcome welcome = s->welcome;

	welcome.first = first;
	return send_welcome(socket, &welcome, fds, JPHASE_WELCOME_FDS);
}

int session_offer_group(const struct session *s, int socket)
{
	struct jphase_welcome welcome = s->welcome;
	const char *text;
	size_t used = 0;
	int fd = cgroup_own_fd(s->group);

	for (size_t i = 0; (text = cgroup_own_note(s->group, i)); i++)
		if (used + strlen(text) + 2 < sizeof(welcome.message))
			used += (size_t)sprintf(
				welcome.message + used, "%s%s", used ? "\n" : "", text);
	/* A group that is only looked at is not entered. */
	return send_welcome(socket, &welcome, &fd, cgroup_own_takes(s->group));
}

void session_refuse(int socket, int status, const char *message)
{
	struct jphase_welcome welcome = {
		.length = sizeof(welcome),
		.abi_major = JPHASE_ABI_MAJOR,
		.abi_minor = JPHASE_ABI_MINOR,
		.status = status,
	};

	snprintf(welcome.message, sizeof(welcome.message), "%s", message);
	/* Nobody else can be told if this fails. */
	send(socket, &welcome, sizeof(welcome), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A process that is proven to be ours gets its own counters. */
static struct process *join(struct session *s, pid_t pid, const struct process_facts *facts,
	const char *how, uint64_t time_ns)
{
	char reasons[SOURCE_MAX][READER_REASON_ROOM] = { "" };
	struct reader_target target = target_of(s, pid, false);
	struct birth birth = { .how = how, .time_ns = time_ns, .parent = facts->parent };
	struct process *p;
	int err;

	p = process_add(&s->processes);
	if (!p)
		return NULL;
	p->pid = pid;
	p->as_named = facts->inner;
	p->confirmed = true;
	p->calibrates = calibrate_is(s, pid);
	snprintf(p->name, sizeof(p->name), "%s", facts->name);
	err = process_open(p, &s->sources, &target, reasons);
	if (err < 0) {
		p->confirmed = false;
		birth.absent = "not counted: the process has already ended";
	}
	for (size_t i = 0; i < s->sources.count && !birth.absent; i++)
		if (reasons[i][0])
			birth.absent = reasons[i];
	record_start(s, p, &birth);
	if (p->pidfd >= 0)
		control_watch(s->control, p->pidfd, p->index);
	return p;
}

struct process *session_join(struct session *s, pid_t pid, const char *how, uint64_t time_ns)
{
	struct process_facts facts;

	if (process_facts(pid, &facts) < 0 || facts.tgid != pid)
		return NULL;
	return join(s, pid, &facts, how, time_ns);
}

void session_register(struct session *s, const struct job *job)
{
	struct process *p = process_find_pid(&s->processes, job->pid);
	struct process_facts facts;

	if (p && process_is_replaced(p, now_ns()))
		p = NULL;
	begin_sampling(s, job->pid, job->site);
	/* The same pid after an exec keeps its group. */
	if (!p && process_facts(job->pid, &facts) == 0)
		p = join(s, job->pid, &facts, calibrate_is(s, job->pid) ? "calibration" : "exec",
			now_ns());
	if (p)
		session_welcome(s, job->fd, p->first);
	close(job->fd);
}

struct thread *session_thread(struct session *s, struct process *p, pid_t tid)
{
	struct reader_target target = target_of(s, tid, false);
	char reason[READER_REASON_ROOM];
	struct thread *t;

	/* In another pid namespace its number means nothing to us. */
	if (!s->regions || !p->confirmed || p->pid != p->as_named)
		return NULL;
	t = thread_find(&p->threads, tid);
	if (t)
		return t;
	target.alone = true;
	target.probe = s->probe.id;
	s->samples |= target.probe != 0;
	s->threads_seen = true;
	probe_anchor(&s->probe);
	t = thread_open(&p->threads, &s->sources, p->pid, &target, reason);
	if (t && reason[0] && !p->threads_noted && !p->calibrates) {
		p->threads_noted = true;
		session_note(s, p, "regions have times but no counters: %s", reason);
	}
	return t;
}

/*
 * as_named may be a thread: in a forked child whose other threads mark first
 * they take their own number for the process's.
 */
static struct process *adopt_confirmed(struct session *s, pid_t as_named, uint64_t time_ns)
{
	struct process_facts facts;
	struct process *p;
	pid_t pid;

	if (process_facts(as_named, &facts) < 0)
		return NULL;
	pid = facts.tgid;
	p = pid == as_named ? NULL : process_find_pid(&s->processes, pid);
	if (!p) {
		if (pid != as_named && process_facts(pid, &facts) < 0)
			return NULL;
		if (facts.inner != pid || !process_maps_ring(pid, &s->shared))
			return NULL;
		p = join(s, pid, &facts, "fork", time_ns);
	}
	if (p && pid != as_named)
		p->alias = as_named;
	return p;
}

/* One that was seen before takes the marks of those beyond the limit. */
static struct process *stranger(struct session *s)
{
	struct process *any = NULL;
	size_t count = 0;

	for (size_t i = 0; i < s->processes.count; i++)
		if (!s->processes.live[i]->confirmed) {
			any = s->processes.live[i];
			count++;
		}
	return count < STRANGERS_MAX ? NULL : any;
}

struct process *session_adopt(struct session *s, pid_t as_named, uint64_t time_ns)
{
	struct process *p = adopt_confirmed(s, as_named, time_ns);

	if (p)
		return p;
	/* Whoever it is: it keeps its markers as they are and gets no counters. */
	p = stranger(s);
	if (p)
		return p;
	p = process_add(&s->processes);
	if (!p)
		return NULL;
	p->as_named = as_named;
	record_start(s, p,
		&(struct birth){
			.how = "fork",
			.time_ns = time_ns,
			.absent =
				"not counted: the process had ended before its counters could be opened",
		});
	return p;
}

void session_bury(struct session *s, struct process *p)
{
	struct process_end end = process_end_of(p);
	struct record_exit exit = {
		.time_ns = MAX(now_ns(), p->last_ns),
		.process = p->index,
		.status = end.status,
		.user_us = end.user_us,
		.system_us = end.system_us,
		.peak_bytes = VALUE_ABSENT,
	};

	if (p->first && s->launched && s->command.kind == JOB_COMMAND) {
		exit.status = s->command.status;
		exit.user_us = s->command.user_us;
		exit.system_us = s->command.system_us;
		exit.peak_bytes = s->command.peak_bytes;
	}
	/* After its own exit marker there is nothing left to charge. */
	if (p->confirmed && !p->ended)
		exit.snapshot = snapshot_of(s, p);
	recorder_exit(s->recorder, &exit);
	if (p->confirmed && !p->replaced)
		consumer_bury(&s->consumer, p->as_named);
	process_remove(&s->processes, p);
}

static void record_loss(struct session *s, const char *what, uint64_t count)
{
	if (!count)
		return;
	s->lost += count;
	recorder_loss(s->recorder, now_ns(), what, count);
}

void session_record_losses(struct session *s)
{
	struct consumer_losses losses = consumer_take_losses(&s->consumer);

	record_loss(s, "dropped", losses.dropped + s->outside_lost);
	record_loss(s, "revoked", losses.revoked);
	record_loss(s, "claim", losses.claims);
	record_loss(s, "invalid", losses.invalid);
	record_loss(s, "unknown", s->unknown);
	s->unknown = s->outside_lost = 0;
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
