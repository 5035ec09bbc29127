/* SPDX-License-Identifier: MIT */
/* Who may read the processor's energy counters. */
#include <stdio.h>

#include "doctor.h"
#include "internal/sys.h"
#include "internal/util.h"
#include "readers/energy.h"

#define RULE                                                                                       \
	"SUBSYSTEM==\"powercap\", ACTION==\"add\", KERNEL==\"intel-rapl:*\", "                     \
	"RUN+=\"/bin/chmod a+r %S%p/energy_uj\""

static size_t count_absent(const struct energy_counters *list, const char **ret_reason)
{
	size_t absent = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!list->counter[i].absent)
			continue;
		*ret_reason = list->counter[i].absent;
		absent++;
	}
	return absent;
}

static void readable_fix(const struct reader_env *env, struct finding *ret)
{
	finding_fix(
		ret, "sudo chmod a+r %.500s/class/powercap/intel-rapl*:*/energy_uj", env->sys_root);
	finding_fix(ret, "echo '%s' | sudo tee /etc/udev/rules.d/60-jphase-energy.rules", RULE);
	finding_fix(ret, "sudo setcap cap_perfmon,cap_dac_read_search=ep \"%s\"", own_program());
}

static bool check_rapl_perf(const struct reader_env *env, struct finding *ret)
{
	struct energy_counters list = { 0 };
	struct energy_bank *bank = NULL;
	char reason[READER_REASON_ROOM];
	int err = rapl_perf_way.open(env, &list, &bank, reason);

	if (err == 0)
		finding_set(ret, HEALTH_OK, "%zu counters by perf events", list.count);
	else
		finding_set(ret, HEALTH_MISSING, "%s", reason);
	if (err == -EACCES || err == -EPERM)
		finding_fix(ret, "sudo setcap cap_perfmon=ep \"%s\"", own_program());
	rapl_perf_way.close(bank);
	energy_counters_clear(&list);
	return err != -ENODEV;
}

static bool check_powercap(const struct reader_env *env, struct finding *ret)
{
	struct energy_counters list = { 0 };
	struct energy_bank *bank = NULL;
	char reason[READER_REASON_ROOM];
	const char *why = reason;
	size_t absent;
	int err = powercap_way.open(env, &list, &bank, reason);

	absent = count_absent(&list, &why);
	if (err == 0 && absent == 0)
		finding_set(ret, HEALTH_OK, "%zu zones can be read", list.count);
	else
		finding_set(ret, err < 0 ? HEALTH_MISSING : HEALTH_LIMITED, "%s", why);
	if (err == -EACCES || absent)
		readable_fix(env, ret);
	powercap_way.close(bank);
	energy_counters_clear(&list);
	return err != -ENODEV;
}

/* One of the two ways is enough; the zones, if there are any, have the simpler fix. */
static void check_energy(const struct reader_env *env, struct finding *ret)
{
	struct finding zones = { .health = HEALTH_OK };
	bool perf = check_rapl_perf(env, ret);

	if (ret->health == HEALTH_OK)
		return;
	if (check_powercap(env, &zones) || !perf)
		*ret = zones;
}

const struct check doctor_energy_checks[] = {
	{ "energy", check_energy },
	{ NULL, NULL },
};
