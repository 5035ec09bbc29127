/* SPDX-License-Identifier: MIT */
#include "calibrate.h"

#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "internal/util.h"
#include "library.h"

/* It takes some ten milliseconds; a machine that needs longer does without. */
#define CALIBRATE_NS (500 * NSEC_PER_MSEC)

static bool start(struct session *s)
{
	char preload[PATH_MAX + 16], path[PATH_MAX], session[JPHASE_SESSION_ROOM + 16];
	/* Regions only where there were some: a probe that was not needed is not set up. */
	char *argv[] = { (char *)"jphase", (char *)"calibrate",
		s->threads_seen ? (char *)"regions" : NULL, NULL };
	char *env[] = { preload, session, NULL };

	if (library_find(path) < 0)
		return false;
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", path);
	snprintf(session, sizeof(session), "JPHASE_SESSION=%s", s->welcome.session);
	return posix_spawn(&s->calibration.pid, "/proc/self/exe", NULL, NULL, argv, env) == 0;
}

/* In async nobody waits, and a marker's cost is what its thread measures. */
static bool is_wanted(const struct session *s)
{
	return !s->calibration.done && !s->config->no_calibrate && s->mode != MODE_ASYNC &&
	       s->markers > 0;
}

bool calibrate(struct session *s, uint64_t now_ns)
{
	if (s->calibration.pid > 0) {
		if (waitpid(s->calibration.pid, NULL, WNOHANG) == 0 &&
			now_ns < s->calibration.until_ns)
			return true;
		s->calibration.pid = 0;
		return false;
	}
	if (!is_wanted(s))
		return false;
	s->calibration.done = true;
	s->calibration.until_ns = now_ns + CALIBRATE_NS;
	return shared_renew_presence(&s->shared) == 0 && start(s);
}

bool calibrate_is(const struct session *s, pid_t pid)
{
	return s->calibration.pid > 0 && s->calibration.pid == pid;
}
