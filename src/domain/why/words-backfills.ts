import { somePartitions, type WordsOf } from './say.ts'

type BackfillCode =
  | 'asked_by_retry'
  | 'backfill_progress'
  | 'chunks_under_way'
  | 'partitions_failed'
  | 'partitions_skipped'
  | 'stopped_after_failures'
  | 'retry_with'

const counted = (count: number): string => count.toLocaleString('en')

export const backfillWords: WordsOf<BackfillCode> = {
  asked_by_retry: ({ backfill_id, user, at }, when) => `${user} retried what failed in ${backfill_id} at ${when(at)}`,
  backfill_progress: ({ ended, succeeded, partitions, planned_chunks, total_chunks }) =>
    `${counted(ended)} of ${counted(partitions)} partitions have ended, ${counted(succeeded)} of them well; ${counted(planned_chunks)} of ${counted(total_chunks)} chunks are planned`,
  chunks_under_way: ({ run_ids, count, most }) => {
    const more = count - run_ids.length
    return `${count} of at most ${most} runs ${count === 1 ? 'is' : 'are'} under way: ${run_ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  },
  partitions_failed: ({ asset_key, partition_keys, count }) => `${somePartitions(asset_key, partition_keys, count)} failed`,
  partitions_skipped: ({ asset_key, partition_keys, count }) =>
    `${somePartitions(asset_key, partition_keys, count)} ${count === 1 ? 'was' : 'were'} skipped, because something upstream failed or another run was making it`,
  stopped_after_failures: ({ most, failed }) =>
    `${failed} ${failed === 1 ? 'chunk has' : 'chunks have'} failed, and after ${most} it plans no more`,
  retry_with: ({ command }) => `retry what failed: ${command}`,
}
