/* SPDX-License-Identifier: MIT */
/* What cgroup v2 offers, and to whose processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "doctor.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "readers/cgroup_controllers.h"

/* Each level must pass a controller on to the next, from the root down. */
static void enable_fix(const struct cgroup_place *place, unsigned wanted, struct finding *ret)
{
	char folder[CONTROLLERS_PATH_ROOM], command[CONTROLLERS_PATH_ROOM];

	for (size_t depth = 0; controllers_ancestor(place, depth, folder) || depth == 0; depth++) {
		controllers_command(folder, wanted, command, sizeof(command));
		if (*command)
			finding_fix(ret, "%s", command);
	}
}

static void check_mount(const struct reader_env *env, struct finding *ret)
{
	char reason[READER_REASON_ROOM];
	struct cgroup_mount mount;
	unsigned v1 = controllers_on_v1(env);
	char names[CONTROLLERS_TEXT_ROOM];

	if (cgroup_mount_find(env, &mount, reason) < 0) {
		finding_set(ret, HEALTH_MISSING, "%s", reason);
		return;
	}
	finding_set(ret, v1 ? HEALTH_LIMITED : HEALTH_OK, "mounted at %.300s%s%s%s", mount.path,
		v1 ? "; this is a hybrid host: version 1 has " : "",
		controllers_names(v1, "", ", ", names), v1 ? ", which are missing here" : "");
	if (v1)
		finding_fix(ret, "add to the kernel's command line: %s",
			access("/run/systemd/system", F_OK) == 0
				? "systemd.unified_cgroup_hierarchy=1"
				: "cgroup_no_v1=all");
	cgroup_mount_clear(&mount);
}

static void check_controllers(const struct reader_env *env, struct finding *ret)
{
	char reason[READER_REASON_ROOM], names[CONTROLLERS_TEXT_ROOM], gives[CONTROLLERS_TEXT_ROOM];
	struct cgroup_place place;
	unsigned offered, active, lacking;

	if (cgroup_place_find(env, getpid(), &place, reason) < 0) {
		finding_set(ret, HEALTH_MISSING, "%s", reason);
		return;
	}
	offered = controllers_in(place.root_path, "cgroup.controllers");
	active = controllers_in(place.group_path, "cgroup.controllers");
	if (str_eq(place.root_path, place.group_path))
		active &= controllers_in(place.root_path, "cgroup.subtree_control");
	lacking = offered & ~active;
	if (active == CONTROLLERS_ALL)
		finding_set(ret, HEALTH_OK, "cpu, memory, io and pids are enabled");
	else if (lacking)
		finding_set(ret, HEALTH_LIMITED, "not enabled for groups here: %s (%s)",
			controllers_names(lacking, "", ", ", names),
			controllers_gives(lacking, gives));
	else
		finding_set(ret, HEALTH_LIMITED, "not in this hierarchy%s: %s (%s)",
			controllers_on_v1(env) ? " but in version 1" : "",
			controllers_names(CONTROLLERS_ALL & ~offered, "", ", ", names),
			controllers_gives(CONTROLLERS_ALL & ~offered, gives));
	enable_fix(&place, lacking, ret);
	cgroup_place_clear(&place);
}

static void own_group_fix(const struct cgroup_place *place, struct finding *ret)
{
	char word[CONTROLLERS_PATH_ROOM];

	if (access(place->group_path, W_OK) == 0) {
		finding_fix(ret, "jphase run --cgroup create -- PROGRAM");
		return;
	}
	if (access("/run/systemd/system", F_OK) == 0) {
		finding_fix(ret,
			"systemd-run %s--scope -p Delegate=yes jphase run --cgroup create -- PROGRAM",
			geteuid() == 0 ? "" : "--user ");
		return;
	}
	controllers_shell_word(place->root_path, word, sizeof(word));
	finding_fix(ret, "sudo mkdir -p %.1500s/jphase", word);
	finding_fix(ret, "echo $$ | sudo tee %.1500s/jphase/cgroup.procs", word);
}

static void check_group(const struct reader_env *env, struct finding *ret)
{
	char reason[READER_REASON_ROOM];
	struct cgroup_place place;
	uint64_t others = 0;

	if (cgroup_place_find(env, getpid(), &place, reason) < 0) {
		finding_set(ret, HEALTH_MISSING, "%s", reason);
		return;
	}
	(void)cgroup_place_others(&place, getpid(), &others);
	/* The shell that started us is one. */
	if (others <= 1) {
		finding_set(ret, HEALTH_OK, "programs started here have a group of their own");
	} else {
		finding_set(ret, HEALTH_LIMITED,
			"%.200s is shared with %llu other processes, and so are the proc_ values of "
			"the cgroup reader",
			place.group_path, (unsigned long long)others);
		own_group_fix(&place, ret);
	}
	cgroup_place_clear(&place);
}

/* What --cgroup create needs. */
static void check_making(const struct reader_env *env, struct finding *ret)
{
	char reason[READER_REASON_ROOM];
	struct cgroup_place place;
	struct statvfs fs;

	if (cgroup_place_find(env, getpid(), &place, reason) < 0) {
		finding_set(ret, HEALTH_MISSING, "%s", reason);
		return;
	}
	if (access(place.group_path, W_OK) == 0) {
		finding_set(ret, HEALTH_OK, "--cgroup create can make groups in %.300s",
			place.group_path);
	} else if (statvfs(place.group_path, &fs) == 0 && fs.f_flag & ST_RDONLY) {
		finding_set(ret, HEALTH_LIMITED,
			"--cgroup create cannot work: %.300s is mounted read-only, as in a container",
			place.root_path);
		finding_fix(ret, "docker run --privileged --cgroupns=private ...");
	} else {
		finding_set(ret, HEALTH_LIMITED,
			"--cgroup create cannot work: %.300s belongs to another user",
			place.group_path);
		finding_fix(ret, "systemd-run --user --scope -p Delegate=yes jphase run "
				 "--cgroup create -- PROGRAM");
	}
	cgroup_place_clear(&place);
}

static void check_pressure(const struct reader_env *env, struct finding *ret)
{
	char path[CONTROLLERS_PATH_ROOM], text[16];
	int fd;
	ssize_t size;

	snprintf(path, sizeof(path), "%s/pressure/cpu", env->proc_root);
	fd = sys_open(path, O_RDONLY, 0);
	size = fd < 0 ? fd : sys_pread(fd, text, sizeof(text), 0);
	sys_close(fd);
	if (size > 0) {
		finding_set(ret, HEALTH_OK, "stall times are kept");
		return;
	}
	finding_set(ret, HEALTH_LIMITED, "stall times (pressure) are not kept");
	finding_fix(ret, "add to the kernel's command line: psi=1");
}

const struct check doctor_cgroup_checks[] = {
	{ "cgroup v2", check_mount },
	{ "controllers", check_controllers },
	{ "own group", check_group },
	{ "making groups", check_making },
	{ "pressure", check_pressure },
	{ NULL, NULL },
};
