/** More at once is a backfill. */
export const MAX_RUNS = 1_000
/** The longest cursor, in characters. */
export const MAX_CURSOR = 65_536
/** As many tries as a definition may allow for a message before it is a dead letter. */
export const MAX_TRIES = 100
/** Runs in a row, each asked for by a sensor because of the one before. More than that is most likely a loop. */
export const MAX_CHAIN = 50
/** Happenings that wait for one sensor. It takes days of failures, or a long pause, to reach it. */
export const MAX_HAPPENINGS = 10_000
