/* SPDX-License-Identifier: MIT */
/* jphase doctor: what limits the numbers here and the command that changes it. */
#include <errno.h>
#include <stdarg.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"
#include "feature.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "log.h"
#include "readers/kfile.h"
#include "readers/mounts.h"
#include "readers/span.h"
#include "readers/textfile.h"

#define KERNEL_MAJOR 4
#define KERNEL_MINOR 18

/* A process costs the collector about 20 descriptors. */
#define NOFILE_ENOUGH 4096

static const char *const health_names[] = {
	[HEALTH_OK] = "ok",
	[HEALTH_LIMITED] = "limited",
	[HEALTH_MISSING] = "missing",
};

void finding_set(struct finding *f, enum health health, const char *format, ...)
{
	va_list args;

	f->health = health;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

const char *own_program(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	return n > 0 ? path : "jphase";
}

void finding_fix(struct finding *f, const char *format, ...)
{
	size_t used = strlen(f->fix);
	size_t room = sizeof(f->fix) - used;
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(f->fix + used, room, format, args);
	va_end(args);
	if (size < 0 || (size_t)size + 1 >= room) {
		f->fix[used] = '\0';
		return;
	}
	memcpy(f->fix + used + size, "\n", 2);
}

int doctor_number(const char *root, const char *file, long *ret)
{
	char text[64], *end;
	int err = textfile_read(text, sizeof(text), "%s/%s", root, file);
	long value;

	if (err < 0)
		return err;
	value = strtol(text, &end, 10);
	if (end == text || *end)
		return -EINVAL;
	*ret = value;
	return 0;
}

bool doctor_status(const struct reader_env *env, const char *field, char *ret, size_t room)
{
	char path[4096];
	struct span rest, line, word;
	bool found = false;
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/self/status", env->proc_root);
	if (kfile_load(path, &text, &size) < 0)
		return false;
	rest = span_of(text, size);
	while (!found && span_line(&rest, &line)) {
		found = span_is(span_take(&line, ':'), field) && span_word(&line, &word);
		if (found)
			snprintf(ret, room, "%.*s", (int)span_size(word), word.at);
	}
	free(text);
	return found;
}

static void check_kernel(const struct reader_env *env, struct finding *ret)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	(void)env;
	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2) {
		finding_set(ret, HEALTH_LIMITED, "of unknown version");
		return;
	}
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		finding_set(ret, HEALTH_MISSING, "%.64s is too old: Linux %d.%d is needed",
			name.release, KERNEL_MAJOR, KERNEL_MINOR);
	else if (!feature_has(FEATURE_PIDFD))
		finding_set(ret, HEALTH_LIMITED,
			"%.64s: the end of other processes is seen late (pidfd came with 5.3)",
			name.release);
	else if (feature_has(FEATURE_PERF) && !feature_has(FEATURE_INHERITED_GROUPS))
		finding_set(ret, HEALTH_LIMITED,
			"%.64s: no inherited groups, so events are read one by one", name.release);
	else
		finding_set(ret, HEALTH_OK, "Linux %.64s", name.release);
}

static void check_memory(const struct reader_env *env, struct finding *ret)
{
	(void)env;
	if (feature_has(FEATURE_MEMFD))
		finding_set(ret, HEALTH_OK, "sealed memory can be made");
	else
		finding_set(ret, HEALTH_MISSING,
			"memfd_create is refused: programs cannot send markers (a seccomp filter?)");
}

static void check_descriptors(const struct reader_env *env, struct finding *ret)
{
	struct rlimit limit;

	(void)env;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
		finding_set(ret, HEALTH_LIMITED, "the limit is unknown");
		return;
	}
	if (limit.rlim_max >= NOFILE_ENOUGH) {
		finding_set(ret, HEALTH_OK, "up to %llu may be open",
			(unsigned long long)limit.rlim_max);
		return;
	}
	finding_set(ret, HEALTH_LIMITED,
		"up to %llu may be open: enough for about %llu processes at a time",
		(unsigned long long)limit.rlim_max, (unsigned long long)limit.rlim_max / 20);
	finding_fix(ret, "sudo prlimit --pid $$ --nofile=65536");
}

static void check_proc(const struct reader_env *env, struct finding *ret)
{
	char path[4096], value[32];
	bool hidden;
	char *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/self/mountinfo", env->proc_root);
	if (kfile_load(path, &text, &size) < 0) {
		finding_set(ret, HEALTH_MISSING, "%s is not mounted", env->proc_root);
		finding_fix(ret, "sudo mount -t proc proc /proc");
		return;
	}
	hidden = mounts_option(text, size, "/proc", "hidepid", value, sizeof(value)) &&
		 !str_eq(value, "0") && !str_eq(value, "off");
	free(text);
	if (!hidden) {
		finding_set(ret, HEALTH_OK, "processes are visible");
		return;
	}
	finding_set(ret, geteuid() == 0 ? HEALTH_OK : HEALTH_LIMITED,
		"mounted with hidepid=%s: other users' processes cannot be measured", value);
	finding_fix(ret, "sudo mount -o remount,hidepid=0 /proc");
}

static const struct check general_checks[] = {
	{ "kernel", check_kernel },
	{ "shared memory", check_memory },
	{ "descriptors", check_descriptors },
	{ "/proc", check_proc },
	{ NULL, NULL },
};

static void finding_print(const char *what, const struct finding *f)
{
	char left[64];
	const char *fix = f->fix;

	snprintf(left, sizeof(left), "%-7s %s", health_names[f->health], what);
	cli_help_line(stdout, left, f->text);
	while (*fix) {
		int size = (int)strcspn(fix, "\n");

		printf("%10s> %.*s\n", "", size, fix);
		fix += size + (fix[size] == '\n');
	}
}

static void checks_run(const struct check *checks, const struct reader_env *env)
{
	for (; checks->what; checks++) {
		struct finding f = { .health = HEALTH_OK };

		checks->check(env, &f);
		finding_print(checks->what, &f);
	}
}

static size_t readers_run(const struct reader_env *env)
{
	size_t working = 0;

	for (size_t i = 0; reader_registry[i]; i++) {
		const struct reader_ops *ops = reader_registry[i];
		char reason[READER_REASON_ROOM] = "";
		struct finding f = { .health = HEALTH_OK };
		char what[32];
		int err = ops->probe(env, reason);

		working += err == 0;
		finding_set(&f, err < 0 ? HEALTH_MISSING : HEALTH_OK, "%s",
			err < 0 ? reason : "can be used");
		snprintf(what, sizeof(what), "%s reader", ops->name);
		finding_print(what, &f);
	}
	return working;
}

static const struct opt doctor_opts[] = {
	OPT_END,
};

static int doctor_run(int argc, char **argv)
{
	static const struct reader_env env = { .proc_root = "/proc", .sys_root = "/sys" };
	char error[CLI_ERROR_ROOM];
	int first = cli_parse(doctor_opts, argc, argv, error);
	size_t working;

	if (first < 0 || first < argc) {
		say("%s%s", first < 0 ? error : "doctor takes no argument: ",
			first < 0 ? "" : argv[first]);
		return EXIT_USAGE;
	}
	checks_run(general_checks, &env);
	checks_run(doctor_perf_checks, &env);
	checks_run(doctor_cgroup_checks, &env);
	checks_run(doctor_energy_checks, &env);
	working = readers_run(&env);
	if (working == 0 || !feature_has(FEATURE_MEMFD)) {
		puts("\njphase cannot measure here.");
		return EXIT_FAILED;
	}
	puts("\njphase works here; jphase list shows what it can count.");
	return EXIT_OK;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "",
	.summary = "Show what limits the numbers here and the command that changes it",
	.opts = doctor_opts,
	.run = doctor_run,
};
