/* SPDX-License-Identifier: MIT */
/* Signals that the user chose as markers. */
#include "shim.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "internal/util.h"

static struct jphase_signal chosen[JPHASE_SIGNALS_MAX];
static uint32_t chosen_count;

static const struct jphase_signal *find(int number)
{
	for (uint32_t i = 0; i < chosen_count; i++)
		if (chosen[i].number == number)
			return &chosen[i];
	return NULL;
}

/* Runs in any thread at any moment.  A value sent by sigqueue selects NAME.value. */
static void handle(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	const struct jphase_signal *signal = find(number);
	char name[JPHASE_SIGNAL_NAME + 24];
	struct text t = { .buf = name, .room = sizeof(name) };

	(void)context;
	if (!signal)
		return;
	text_add(&t, signal->name);
	if (info->si_code == SI_QUEUE) {
		text_add(&t, ".");
		text_add_number(&t, info->si_value.sival_int);
	}
	emit(&(struct marker){ .kind = JPHASE_PHASE,
		.flags = JPHASE_FLAG_SIGNAL,
		.name = name,
		.id = (uint64_t)number });
	errno = saved_errno;
}

static void notice(enum jphase_notice what, const struct jphase_signal *signal)
{
	char name[JPHASE_SIGNAL_NAME + 32];
	struct text t = { .buf = name, .room = sizeof(name) };

	text_add_number(&t, signal->number);
	text_add(&t, "=");
	text_add(&t, signal->name);
	emit(&(struct marker){ .kind = JPHASE_NOTICE, .name = name, .id = (uint64_t)what });
}

/* Constructor only. */
void signals_install(const struct jphase_welcome *welcome)
{
	struct sigaction action = {
		.sa_sigaction = handle,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	sigfillset(&action.sa_mask);
	chosen_count = MIN(welcome->signals, (uint32_t)JPHASE_SIGNALS_MAX);
	memcpy(chosen, welcome->signal, sizeof(chosen));
	for (uint32_t i = 0; i < chosen_count; i++) {
		chosen[i].name[JPHASE_SIGNAL_NAME - 1] = '\0';
		if (sigaction(chosen[i].number, &action, NULL) < 0)
			notice(JPHASE_NOTICE_SIGNAL_FAILED, &chosen[i]);
	}
}

/* Destructor of the first process. */
void signals_check(void)
{
	for (uint32_t i = 0; i < chosen_count; i++) {
		struct sigaction now;

		if (sigaction(chosen[i].number, NULL, &now) == 0 && now.sa_sigaction != handle)
			notice(JPHASE_NOTICE_SIGNAL_TAKEN, &chosen[i]);
	}
}
