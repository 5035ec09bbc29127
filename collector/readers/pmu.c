/* SPDX-License-Identifier: MIT */
#include "readers/pmu.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal/util.h"
#include "readers/reason.h"
#include "readers/textfile.h"

#define DEVICES   "%s/bus/event_source/devices"
#define CPU_MAX   65536
#define TEXT_ROOM 4096

static int cpus_add(struct pmu_cpus *cpus, long first, long last)
{
	size_t added = (size_t)(last - first) + 1;
	int *grown = reallocarray(cpus->cpu, cpus->count + added, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	cpus->cpu = grown;
	for (long cpu = first; cpu <= last; cpu++)
		cpus->cpu[cpus->count++] = (int)cpu;
	return 0;
}

/* One number; NULL if there is none. */
static const char *cpu_parse(const char *text, long *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*ret = strtol(text, &end, 10);
	return *ret < CPU_MAX ? end : NULL;
}

/* The kernel writes them in order, so no CPU comes twice. */
static int cpus_parse_ranges(const char *text, struct pmu_cpus *cpus)
{
	long first, last, least = 0;
	int err;

	for (;;) {
		text = cpu_parse(text, &first);
		last = first;
		if (text && *text == '-')
			text = cpu_parse(text + 1, &last);
		if (!text || first < least || last < first)
			return -EINVAL;
		err = cpus_add(cpus, first, last);
		if (err < 0)
			return err;
		if (*text == '\0')
			return 0;
		if (*text++ != ',')
			return -EINVAL;
		least = last + 1;
	}
}

int pmu_cpus_parse(const char *text, struct pmu_cpus *ret)
{
	struct pmu_cpus cpus = { 0 };
	int err = cpus_parse_ranges(text, &cpus);

	if (err < 0) {
		pmu_cpus_clear(&cpus);
		return err;
	}
	*ret = cpus;
	return 0;
}

void pmu_cpus_clear(struct pmu_cpus *cpus)
{
	free(cpus->cpu);
	*cpus = (struct pmu_cpus){ 0 };
}

static void pmu_clear(struct pmu *pmu)
{
	free(pmu->name);
	pmu_cpus_clear(&pmu->cpumask);
}

/* -ENODEV: a directory that is no PMU. */
static int pmu_load(const char *root, const char *name, struct pmu *ret)
{
	struct pmu pmu = { 0 };
	char text[TEXT_ROOM];

	if (textfile_read(text, sizeof(text), "%s/%s/type", root, name) <= 0)
		return -ENODEV;
	pmu.type = (uint32_t)strtoul(text, NULL, 10);
	pmu.subset = textfile_read(text, sizeof(text), "%s/%s/cpus", root, name) >= 0;
	pmu.core = pmu.subset || str_eq(name, "cpu");
	if (textfile_read(text, sizeof(text), "%s/%s/cpumask", root, name) > 0)
		pmu_cpus_parse(text, &pmu.cpumask);
	pmu.name = strdup(name);
	if (!pmu.name) {
		pmu_clear(&pmu);
		return -ENOMEM;
	}
	*ret = pmu;
	return 0;
}

static int list_add(struct pmu_list *list, const char *name)
{
	struct pmu *grown;
	int err;

	grown = reallocarray(list->pmu, list->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->pmu = grown;
	err = pmu_load(list->root, name, &grown[list->count]);
	if (err == -ENODEV)
		return 0;
	if (err == 0)
		list->count++;
	return err;
}

static int pmu_compare(const void *a, const void *b)
{
	const struct pmu *x = a, *y = b;

	return x->type == y->type ? strcmp(x->name, y->name) : x->type < y->type ? -1 : 1;
}

int pmu_list_load(const char *sys_root, struct pmu_list *ret)
{
	struct pmu_list list = { 0 };
	struct dirent *entry;
	DIR *dir;
	int err = 0;

	if (asprintf(&list.root, DEVICES, sys_root) < 0)
		return -ENOMEM;
	dir = opendir(list.root);
	while (dir && err == 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = list_add(&list, entry->d_name);
	if (dir)
		closedir(dir);
	if (err < 0) {
		pmu_list_clear(&list);
		return err;
	}
	if (list.count)
		qsort(list.pmu, list.count, sizeof(*list.pmu), pmu_compare);
	*ret = list;
	return 0;
}

void pmu_list_clear(struct pmu_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		pmu_clear(&list->pmu[i]);
	free(list->pmu);
	free(list->root);
	*list = (struct pmu_list){ 0 };
}

const struct pmu *pmu_find(const struct pmu_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_eq(list->pmu[i].name, name))
			return &list->pmu[i];
	return NULL;
}

const struct pmu *pmu_find_type(const struct pmu_list *list, uint32_t type)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pmu[i].type == type)
			return &list->pmu[i];
	return NULL;
}

bool pmu_is_hybrid(const struct pmu_list *list)
{
	size_t subsets = 0;

	for (size_t i = 0; i < list->count; i++)
		subsets += list->pmu[i].subset;
	return subsets > 1;
}

/* What pmu_encode works on. */
struct encoding {
	const struct pmu_list *list;
	const struct pmu *pmu;
	uint64_t *config;
	char *reason;
};

/* Which word a format, or a term of that very name, means. */
static int config_index(const char *name, size_t length)
{
	static const char *const names[PMU_CONFIGS] = { "config", "config1", "config2" };

	for (int i = 0; i < PMU_CONFIGS; i++)
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
			return i;
	return -ENOENT;
}

/* Moves the low bits of *value to bits first to last of *config, and out of *value. */
static void bits_put(uint64_t *config, long first, long last, uint64_t *value)
{
	for (long bit = first; bit <= last; bit++) {
		*config = (*config & ~(UINT64_C(1) << bit)) | (*value & 1) << bit;
		*value >>= 1;
	}
}

/* format is as the kernel writes it: "config1:0-7,32". */
static int format_put(struct encoding *e, const char *format, uint64_t *value)
{
	const char *at = strchr(format, ':');
	int index = at ? config_index(format, (size_t)(at - format)) : -ENOENT;
	long first, last;

	if (index < 0)
		return -EOPNOTSUPP;
	do {
		at = cpu_parse(at + 1, &first);
		last = first;
		if (at && *at == '-')
			at = cpu_parse(at + 1, &last);
		if (!at || first > 63 || last > 63)
			return -EOPNOTSUPP;
		bits_put(&e->config[index], first, last, value);
	} while (*at == ',');
	return 0;
}

static int term_value(struct encoding *e, const char *name, const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0)
		return 0;
	reason_set(e->reason, "the value of \"%.60s\" is not a number: \"%.60s\"", name, text);
	return -EINVAL;
}

static int term_put(struct encoding *e, const char *name, const char *format, uint64_t value)
{
	uint64_t rest = value;
	int err = format_put(e, format, &rest);

	if (err < 0)
		reason_set(e->reason, "the kernel describes \"%.60s\" as \"%.60s\", which is new",
			name, format);
	else if (rest)
		reason_set(e->reason, "%#llx is too large for \"%.60s\" of %.60s",
			(unsigned long long)value, name, e->pmu->name);
	return err < 0 ? err : rest ? -EINVAL : 0;
}

static int terms_put(struct encoding *e, char *terms, bool from_kernel);

/* The events of sysfs are terms themselves. */
static int event_put(struct encoding *e, const char *name)
{
	char text[TEXT_ROOM];
	int size;

	size = textfile_read(
		text, sizeof(text), "%s/%s/events/%s", e->list->root, e->pmu->name, name);
	if (size < 0) {
		reason_set(e->reason, "%.60s has no event or term \"%.60s\"", e->pmu->name, name);
		return -ENOENT;
	}
	return terms_put(e, text, true);
}

static int term_set(struct encoding *e, char *term, bool from_kernel)
{
	char *value_text = strchr(term, '=');
	char format[TEXT_ROOM];
	uint64_t value = 1;
	int err = 0, index;

	if (value_text)
		*value_text++ = '\0';
	/* An argument that the user must give, and does by a term of his own. */
	if (from_kernel && value_text && str_eq(value_text, "?"))
		return 0;
	if (value_text)
		err = term_value(e, term, value_text, &value);
	if (err < 0)
		return err;
	index = config_index(term, strlen(term));
	if (index >= 0 && value_text) {
		e->config[index] = value;
		return 0;
	}
	if (strchr(term, '/') || term[0] == '.' || term[0] == '\0') {
		reason_set(e->reason, "\"%.60s\" is no event or term", term);
		return -ENOENT;
	}
	if (textfile_read(format, sizeof(format), "%s/%s/format/%s", e->list->root, e->pmu->name,
		    term) > 0)
		return term_put(e, term, format, value);
	if (!value_text && !from_kernel)
		return event_put(e, term);
	reason_set(e->reason, "%.60s has no term \"%.60s\"", e->pmu->name, term);
	return -ENOENT;
}

static int terms_put(struct encoding *e, char *terms, bool from_kernel)
{
	char *saved, *term;
	int err = 0;

	for (term = strtok_r(terms, ",", &saved); term && err == 0;
		term = strtok_r(NULL, ",", &saved))
		err = term_set(e, term, from_kernel);
	return err;
}

int pmu_encode(const struct pmu_list *list, const struct pmu *pmu, const char *terms,
	uint64_t ret_config[PMU_CONFIGS], char ret_reason[READER_REASON_ROOM])
{
	uint64_t config[PMU_CONFIGS] = { 0 };
	struct encoding e = { list, pmu, config, ret_reason };
	char *copy;
	int err;

	if (terms[strspn(terms, ",")] == '\0') {
		reason_set(ret_reason, "no event or term stands between the slashes");
		return -EINVAL;
	}
	copy = strdup(terms);
	if (!copy)
		return -ENOMEM;
	err = terms_put(&e, copy, false);
	free(copy);
	if (err == 0)
		memcpy(ret_config, config, sizeof(config));
	return err;
}

bool pmu_event_worth(const struct pmu_list *list, const struct pmu *pmu, const char *event,
	char *ret, size_t room)
{
	char scale[64], unit[64];
	int scale_size, unit_size;

	if (strchr(event, '/'))
		return false;
	scale_size = textfile_read(
		scale, sizeof(scale), "%s/%s/events/%s.scale", list->root, pmu->name, event);
	unit_size = textfile_read(
		unit, sizeof(unit), "%s/%s/events/%s.unit", list->root, pmu->name, event);
	if (scale_size <= 0 && unit_size <= 0)
		return false;
	snprintf(ret, room, "%s%s%s", scale_size > 0 ? scale : "1", unit_size > 0 ? " " : "",
		unit_size > 0 ? unit : "");
	return true;
}

/* Files beside an event that say more about it. */
static bool is_attribute_of_event(const char *file)
{
	static const char *const ends[] = { ".scale", ".unit", ".per-pkg", ".snapshot" };
	size_t length = strlen(file);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (length > strlen(ends[i]) && str_eq(file + length - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

int pmu_each_event(const struct pmu_list *list, const struct pmu *pmu,
	int (*fn)(const char *event, void *arg), void *arg)
{
	struct dirent **entry = NULL;
	char *path;
	int count, err = 0;

	if (asprintf(&path, "%s/%s/events", list->root, pmu->name) < 0)
		return -ENOMEM;
	count = scandir(path, &entry, NULL, alphasort);
	free(path);
	for (int i = 0; i < count; i++) {
		const char *name = entry[i]->d_name;

		if (err == 0 && name[0] != '.' && !is_attribute_of_event(name))
			err = fn(name, arg);
		free(entry[i]);
	}
	free(entry);
	return err;
}
