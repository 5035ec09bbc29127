/* SPDX-License-Identifier: MIT */
/* What the kernel lets us count with perf. */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "doctor.h"
#include "feature.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "library.h"
#include "probe.h"
#include "readers/pmu.h"
#include "site.h"

#define PARANOID "sys/kernel/perf_event_paranoid"

#define CAP_SYS_ADMIN_BIT 21
#define CAP_PERFMON_BIT   38 /* since Linux 5.8 */

#define SECCOMP_FILTERED 2

/* What the kernel starts with. */
#define MLOCK_KB_DEFAULT 516

static bool is_privileged(const struct reader_env *env)
{
	char text[32];
	unsigned long long caps;

	if (!doctor_status(env, "CapEff", text, sizeof(text)))
		return false;
	caps = strtoull(text, NULL, 16);
	return caps >> CAP_SYS_ADMIN_BIT & 1 || caps >> CAP_PERFMON_BIT & 1;
}

static bool is_filtered(const struct reader_env *env)
{
	char text[32];

	return doctor_status(env, "Seccomp", text, sizeof(text)) && atoi(text) == SECCOMP_FILTERED;
}

static const char *container_kind(void)
{
	static const struct {
		const char *file, *kind;
	} signs[] = {
		{ "/.dockerenv", "a docker container" },
		{ "/run/.containerenv", "a podman container" },
		{ "/var/run/secrets/kubernetes.io", "a kubernetes pod" },
		{ "/run/systemd/container", "a container" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (access(signs[i].file, F_OK) == 0)
			return signs[i].kind;
	return NULL;
}

static void container_fix(struct finding *ret)
{
	finding_fix(ret, "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
}

static void check_perf(const struct reader_env *env, struct finding *ret)
{
	if (feature_has(FEATURE_PERF)) {
		finding_set(ret, HEALTH_OK, "perf_event_open works");
		return;
	}
	finding_set(ret, HEALTH_MISSING,
		"perf_event_open is refused%s: no event is counted; procfs and cgroup stand in",
		is_filtered(env) ? " (this process runs under a seccomp filter)" : "");
	if (is_filtered(env) || container_kind())
		container_fix(ret);
	finding_fix(ret, "echo 1 | sudo tee /proc/" PARANOID);
}

static const char *paranoid_allows(long level)
{
	static const char *const allows[] = {
		"everything may be counted",
		"all but raw tracepoints may be counted",
		"own programs may be counted, in user space and in the kernel",
		"own programs may be counted, but in user space only",
		"nothing may be counted without privileges",
	};

	return allows[MAX(0, MIN(level, 3) + 1)];
}

static void check_paranoid(const struct reader_env *env, struct finding *ret)
{
	bool privileged = is_privileged(env);
	long level;

	if (doctor_number(env->proc_root, PARANOID, &level) < 0) {
		finding_set(ret, HEALTH_MISSING,
			"no /proc/" PARANOID ": the kernel was built without CONFIG_PERF_EVENTS");
		return;
	}
	finding_set(ret, level <= 1 || privileged ? HEALTH_OK : HEALTH_LIMITED,
		"perf_event_paranoid is %ld: %s%s", level, paranoid_allows(level),
		level > 1 && privileged ? "; you have the privilege to count everything" : "");
	if (ret->health != HEALTH_OK) {
		finding_fix(ret, "echo 1 | sudo tee /proc/" PARANOID);
		finding_fix(ret, "echo kernel.perf_event_paranoid=1 | "
				 "sudo tee /etc/sysctl.d/60-jphase.conf");
	}
}

static void check_privileges(const struct reader_env *env, struct finding *ret)
{
	if (is_privileged(env)) {
		finding_set(ret, HEALTH_OK, "CAP_PERFMON or CAP_SYS_ADMIN is there");
		return;
	}
	finding_set(ret, HEALTH_LIMITED,
		"no CAP_PERFMON: what others may count is set by perf_event_paranoid");
	finding_fix(ret, "sudo setcap cap_perfmon=ep \"%s\"", own_program());
}

static bool has_core_pmu(const struct reader_env *env)
{
	struct pmu_list pmus = { 0 };
	bool found = false;

	if (pmu_list_load(env->sys_root, &pmus) < 0)
		return false;
	for (size_t i = 0; i < pmus.count; i++)
		found |= pmus.pmu[i].core;
	pmu_list_clear(&pmus);
	return found;
}

static void check_hardware(const struct reader_env *env, struct finding *ret)
{
	if (feature_has(FEATURE_HARDWARE)) {
		finding_set(ret, HEALTH_OK, "the processor's counters can be opened");
		return;
	}
	if (has_core_pmu(env)) {
		finding_set(ret, HEALTH_LIMITED,
			"there are hardware counters, but they may not be opened: see perf level");
		return;
	}
	finding_set(ret, HEALTH_LIMITED,
		"no hardware counters here (a virtual machine without a PMU?): cycles, "
		"instructions, cache and branch misses are not counted");
	finding_fix(ret, "qemu-system-%s -cpu host,pmu=on ...   (on the host)",
#if defined(__aarch64__)
		"aarch64"
#else
		"x86_64"
#endif
	);
}

static void check_watchdog(const struct reader_env *env, struct finding *ret)
{
	long on;

	if (!feature_has(FEATURE_HARDWARE) ||
		doctor_number(env->proc_root, "sys/kernel/nmi_watchdog", &on) < 0 || on == 0) {
		finding_set(ret, HEALTH_OK, "the watchdog takes no counter");
		return;
	}
	finding_set(ret, HEALTH_LIMITED,
		"the kernel's watchdog takes one hardware counter: fewer events fit at once");
	finding_fix(ret, "echo 0 | sudo tee /proc/sys/kernel/nmi_watchdog");
}

static void check_container(const struct reader_env *env, struct finding *ret)
{
	const char *kind = container_kind();

	if (!kind && !is_filtered(env)) {
		finding_set(ret, HEALTH_OK, "none, and no seccomp filter");
		return;
	}
	finding_set(ret, feature_has(FEATURE_PERF) ? HEALTH_OK : HEALTH_LIMITED, "%s%s%s",
		kind ? "inside " : "", kind ? kind : "",
		is_filtered(env) ? (kind ? ", with a seccomp filter" : "a seccomp filter") : "");
	if (!feature_has(FEATURE_PERF))
		container_fix(ret);
}

static void check_locked(const struct reader_env *env, struct finding *ret)
{
	long kb;

	if (doctor_number(env->proc_root, "sys/kernel/perf_event_mlock_kb", &kb) < 0) {
		finding_set(ret, HEALTH_LIMITED, "no perf_event_mlock_kb in this kernel");
		return;
	}
	finding_set(ret, kb >= MLOCK_KB_DEFAULT ? HEALTH_OK : HEALTH_LIMITED,
		"perf_event_mlock_kb is %ld: memory for kernel samples, per CPU", kb);
	if (kb < MLOCK_KB_DEFAULT)
		finding_fix(ret, "echo %d | sudo tee /proc/sys/kernel/perf_event_mlock_kb",
			MLOCK_KB_DEFAULT);
}

/* What lets anybody sample: the definition stays until the machine is started anew. */
static void probe_fix(struct finding *ret)
{
	char library[PATH_MAX];
	struct statfs fs;
	uint64_t offset;

	if (library_find(library) < 0 || site_offset(library, &offset) < 0)
		return;
	if (statfs(PROBE_TRACEFS, &fs) == 0 && fs.f_type != TRACEFS_MAGIC)
		finding_fix(ret, "sudo mount -t tracefs tracefs " PROBE_TRACEFS);
	/* Not by tee: it would seek, which that file refuses, or clear it. */
	finding_fix(ret,
		"sudo sh -c 'echo \"p:" PROBE_GIVEN_NAME " %s:0x%" PRIx64 "\" >> " PROBE_TRACEFS
		"/uprobe_events'",
		library, offset);
	finding_fix(ret, "sudo chmod a+x " PROBE_TRACEFS);
	finding_fix(ret, "sudo chmod a+r " PROBE_TRACEFS "/events/" PROBE_GIVEN_NAME "/id");
}

static void check_regions(const struct reader_env *env, struct finding *ret)
{
	static const char *const how[] = {
		[PROBE_OWN] = "exact: the kernel samples them at their markers",
		[PROBE_GIVEN] = "exact, by the probe " PROBE_GIVEN_NAME " of an administrator",
		[PROBE_PMU] = "exact, for some threads: there is no tracefs that may be used",
	};
	char reason[READER_REASON_ROOM];
	struct probe probe;

	(void)env;
	if (probe_prepare(&probe, reason) < 0) {
		finding_set(ret, HEALTH_LIMITED,
			"read while the thread waits, not sampled by the kernel: that takes root, "
			"or once and for all users:");
		probe_fix(ret);
		return;
	}
	finding_set(ret, probe.origin == PROBE_PMU ? HEALTH_LIMITED : HEALTH_OK, "%s",
		how[probe.origin]);
	if (probe.origin == PROBE_PMU)
		probe_fix(ret);
	sys_close(probe.tracefs);
}

const struct check doctor_perf_checks[] = {
	{ "perf", check_perf },
	{ "perf level", check_paranoid },
	{ "privileges", check_privileges },
	{ "container", check_container },
	{ "hardware", check_hardware },
	{ "watchdog", check_watchdog },
	{ "sample memory", check_locked },
	{ "regions", check_regions },
	{ NULL, NULL },
};
