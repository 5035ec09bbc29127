/* SPDX-License-Identifier: MIT */
/* storm THREADS COUNT: each thread begins "storm" so many times, without a pause. */
#include <pthread.h>
#include <stdlib.h>

#include <jphase/jphase.h>

#define THREADS_MAX 64

static long count;

static void *rage(void *data)
{
	for (long i = 0; i < count; i++)
		joule_phase("storm");
	return data;
}

int main(int argc, char **argv)
{
	int threads = argc == 3 ? atoi(argv[1]) : 0;
	pthread_t thread[THREADS_MAX];

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	count = atol(argv[2]);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, rage, NULL) != 0)
			return 1;
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
