/* SPDX-License-Identifier: MIT */
/* Event lists: their words, the terms of PMUs, and what they mean on a hybrid machine. */
#include "fuzz.h"

#include <stdbool.h>

#include "internal/util.h"
#include "readers/events.h"

#define SYS_ROOT SOURCE_DIR "/tests/fixtures/sys-hybrid"

static struct pmu_list pmus;

static void claim_reason(const char *reason)
{
	CLAIM(reason[0] && memchr(reason, '\0', READER_REASON_ROOM));
}

static void encode(const char *terms)
{
	for (size_t i = 0; i < pmus.count; i++) {
		char reason[READER_REASON_ROOM] = "";
		uint64_t config[PMU_CONFIGS];

		if (pmu_encode(&pmus, &pmus.pmu[i], terms, config, reason) < 0)
			claim_reason(reason);
	}
}

static void resolve(const struct event_words *words)
{
	const struct reader_env env = { .proc_root = "/proc", .sys_root = SYS_ROOT };
	char reason[READER_REASON_ROOM] = "";
	struct events events;

	if (events_resolve(&env, words, &events, reason) < 0) {
		claim_reason(reason);
		return;
	}
	CLAIM(events.count == words->count);
	for (size_t i = 0; i < events.count; i++)
		CLAIM(events.event[i].name && events.event[i].count > 0);
	events_clear(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reason[READER_REASON_ROOM] = "";
	char *text = fuzz_text(data, size);
	struct event_words words;

	if (!pmus.root)
		CLAIM(pmu_list_load(SYS_ROOT, &pmus) == 0 && pmus.count > 0);
	encode(text);
	if (events_parse(text, &words, reason) < 0) {
		claim_reason(reason);
	} else {
		CLAIM(words.count > 0);
		for (size_t i = 0; i < words.count; i++)
			CLAIM(words.word[i].name[0]);
		/* An unknown event costs a walk over all names, so few inputs get there. */
		if (size % 16 == 0)
			resolve(&words);
		event_words_clear(&words);
	}
	free(text);
	return 0;
}
