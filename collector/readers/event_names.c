/* SPDX-License-Identifier: MIT */
#include "readers/event_names.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <strings.h>

#include "internal/util.h"

/* Newer than some headers. */
#define SW_CGROUP_SWITCHES 11

#define HARDWARE(n, c, d)                                                                          \
	{                                                                                          \
		.name = (n), .group = "hardware", .description = (d), .type = PERF_TYPE_HARDWARE,  \
		.config = (c)                                                                      \
	}
#define SOFTWARE(n, c, d)                                                                          \
	{                                                                                          \
		.name = (n), .group = "software", .description = (d), .type = PERF_TYPE_SOFTWARE,  \
		.config = (c)                                                                      \
	}

static const struct event_name generic[] = {
	HARDWARE("cycles", PERF_COUNT_HW_CPU_CYCLES, "CPU cycles"),
	HARDWARE("cpu-cycles", PERF_COUNT_HW_CPU_CYCLES, "CPU cycles"),
	HARDWARE("instructions", PERF_COUNT_HW_INSTRUCTIONS, "retired instructions"),
	HARDWARE("cache-references", PERF_COUNT_HW_CACHE_REFERENCES, "last-level cache accesses"),
	HARDWARE("cache-misses", PERF_COUNT_HW_CACHE_MISSES, "last-level cache misses"),
	HARDWARE("branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "retired branches"),
	HARDWARE("branch-instructions", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "retired branches"),
	HARDWARE("branch-misses", PERF_COUNT_HW_BRANCH_MISSES, "mispredicted branches"),
	HARDWARE("bus-cycles", PERF_COUNT_HW_BUS_CYCLES, "bus cycles"),
	HARDWARE("stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
		"cycles without an instruction to issue"),
	HARDWARE("stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
		"cycles waiting for data or execution units"),
	HARDWARE("ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES, "cycles at the nominal frequency"),
	SOFTWARE("task-clock", PERF_COUNT_SW_TASK_CLOCK, "time on a CPU"),
	SOFTWARE("cpu-clock", PERF_COUNT_SW_CPU_CLOCK, "time on a CPU, by the CPU's timer"),
	SOFTWARE("page-faults", PERF_COUNT_SW_PAGE_FAULTS, "page faults"),
	SOFTWARE("faults", PERF_COUNT_SW_PAGE_FAULTS, "page faults"),
	SOFTWARE("minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, "page faults without a disk read"),
	SOFTWARE("major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, "page faults with a disk read"),
	SOFTWARE("context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "context switches"),
	SOFTWARE("cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "context switches"),
	SOFTWARE("cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "moves to another CPU"),
	SOFTWARE("migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "moves to another CPU"),
	SOFTWARE("alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS,
		"unaligned accesses that the kernel mended"),
	SOFTWARE("emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS,
		"instructions that the kernel emulated"),
	SOFTWARE("cgroup-switches", SW_CGROUP_SWITCHES, "switches to a task of another cgroup"),
};

#define CACHE_LOADS      (1u << PERF_COUNT_HW_CACHE_OP_READ)
#define CACHE_STORES     (1u << PERF_COUNT_HW_CACHE_OP_WRITE)
#define CACHE_PREFETCHES (1u << PERF_COUNT_HW_CACHE_OP_PREFETCH)
#define CACHE_ALL        (CACHE_LOADS | CACHE_STORES | CACHE_PREFETCHES)

static const struct cache {
	const char *name;
	const char *description;
	uint64_t id;
	unsigned operations; /* that make sense for it */
} caches[] = {
	{ "L1-dcache", "level 1 data cache", PERF_COUNT_HW_CACHE_L1D, CACHE_ALL },
	{ "L1-icache", "level 1 instruction cache", PERF_COUNT_HW_CACHE_L1I,
		CACHE_LOADS | CACHE_PREFETCHES },
	{ "LLC", "last-level cache", PERF_COUNT_HW_CACHE_LL, CACHE_ALL },
	{ "dTLB", "data address translation", PERF_COUNT_HW_CACHE_DTLB, CACHE_ALL },
	{ "iTLB", "instruction address translation", PERF_COUNT_HW_CACHE_ITLB, CACHE_LOADS },
	{ "branch", "branch prediction", PERF_COUNT_HW_CACHE_BPU, CACHE_LOADS },
	{ "node", "memory of the own node", PERF_COUNT_HW_CACHE_NODE, CACHE_ALL },
};

static const struct cache_operation {
	const char *access;
	const char *miss;
	uint64_t id;
} cache_operations[] = {
	{ "loads", "load-misses", PERF_COUNT_HW_CACHE_OP_READ },
	{ "stores", "store-misses", PERF_COUNT_HW_CACHE_OP_WRITE },
	{ "prefetches", "prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH },
};

static int cache_each(const struct cache *cache, const struct cache_operation *operation,
	int (*fn)(const struct event_name *name, void *arg), void *arg)
{
	char text[32];
	struct event_name name = {
		.name = text,
		.group = "cache",
		.description = cache->description,
		.type = PERF_TYPE_HW_CACHE,
		.config = cache->id | operation->id << 8,
	};
	int err;

	name.config |= (uint64_t)PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16;
	snprintf(text, sizeof(text), "%s-%s", cache->name, operation->access);
	err = fn(&name, arg);
	if (err)
		return err;
	name.config |= (uint64_t)PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
	snprintf(text, sizeof(text), "%s-%s", cache->name, operation->miss);
	return fn(&name, arg);
}

int event_names_each(int (*fn)(const struct event_name *name, void *arg), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(generic) && err == 0; i++)
		err = fn(&generic[i], arg);
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cache_operations) && err == 0; j++)
			if (caches[i].operations & 1u << cache_operations[j].id)
				err = cache_each(&caches[i], &cache_operations[j], fn, arg);
	return err;
}

/* The four that have names of their own in recordings. */
static const struct spelling {
	const char *written; /* '-' stands for '_' too */
	const char *metric;
	uint64_t config;
} spellings[] = {
	{ "cycles", "CPU_CYCLES", PERF_COUNT_HW_CPU_CYCLES },
	{ "cpu-cycles", "CPU_CYCLES", PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", "INSTRUCTIONS", PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-misses", "CACHE_MISSES", PERF_COUNT_HW_CACHE_MISSES },
	{ "branch-misses", "BRANCH_MISSES", PERF_COUNT_HW_BRANCH_MISSES },
};

static bool is_spelled(const char *name, const char *written)
{
	for (; *written && *name; written++, name++) {
		char letter = *name == '_' ? '-' : *name;

		if (letter >= 'A' && letter <= 'Z')
			letter = (char)(letter - 'A' + 'a');
		if (letter != *written)
			return false;
	}
	return *written == *name;
}

static const struct spelling *spelling_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
		if (is_spelled(name, spellings[i].written))
			return &spellings[i];
	return NULL;
}

const char *event_name_metric(const char *name)
{
	const struct spelling *spelling = spelling_find(name);

	return spelling ? spelling->metric : NULL;
}

struct search {
	const char *name;
	uint32_t *type;
	uint64_t *config;
};

static int search_compare(const struct event_name *name, void *arg)
{
	const struct search *search = arg;

	if (strcasecmp(name->name, search->name) != 0)
		return 0;
	*search->type = name->type;
	*search->config = name->config;
	return 1;
}

int event_name_find(const char *name, uint32_t *ret_type, uint64_t *ret_config)
{
	const struct spelling *spelling = spelling_find(name);
	struct search search = { name, ret_type, ret_config };

	if (spelling) {
		*ret_type = PERF_TYPE_HARDWARE;
		*ret_config = spelling->config;
		return 0;
	}
	return event_names_each(search_compare, &search) ? 0 : -ENOENT;
}
