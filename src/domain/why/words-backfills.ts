import { saying, somePartitions, type WordsOf } from './say.ts'

type BackfillCode =
  | 'asked_by_retry'
  | 'backfill_progress'
  | 'chunks_under_way'
  | 'partitions_failed'
  | 'partitions_skipped'
  | 'partitions_overlapped'
  | 'partitions_cancelled'
  | 'chunk_failed'
  | 'log_with'
  | 'stopped_after_failures'
  | 'retry_with'
  | 'continue_with'

const wasOrWere = (count: number): string => (count === 1 ? 'was' : 'were')

const counted = (count: number): string => count.toLocaleString('en')

export const backfillWords: WordsOf<BackfillCode> = {
  asked_by_retry: ({ backfill_id, user, at }, when) => `${user} retried what failed in ${backfill_id} at ${when(at)}`,
  backfill_progress: ({ succeeded, partitions, failed, skipped, cancelled, planned_chunks, total_chunks }) => {
    const others = [
      failed > 0 && `${counted(failed)} failed`,
      skipped > 0 && `${counted(skipped)} ${wasOrWere(skipped)} skipped`,
      cancelled > 0 && `${counted(cancelled)} ${wasOrWere(cancelled)} cancelled`,
    ].filter((one) => one !== false)
    const ended = [`${counted(succeeded)} of ${counted(partitions)} partitions succeeded`, ...others].join(', ')
    return `${ended}; ${counted(planned_chunks)} of ${counted(total_chunks)} chunks are planned`
  },
  chunks_under_way: ({ run_ids, count, most }) => {
    const more = count - run_ids.length
    return `${count} of at most ${most} runs ${count === 1 ? 'is' : 'are'} under way: ${run_ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  },
  partitions_failed: ({ asset_key, partition_keys, count }) => `${somePartitions(asset_key, partition_keys, count)} failed`,
  partitions_skipped: ({ asset_key, partition_keys, count, cause }) => {
    const needed = count === 1 ? 'what it needs was not made' : 'what they need was not made'
    const because = cause === null ? needed : `${somePartitions(cause.asset_key, cause.partition_keys, cause.count)} failed`
    return `${somePartitions(asset_key, partition_keys, count)} ${wasOrWere(count)} skipped because ${because}`
  },
  partitions_overlapped: ({ asset_key, partition_keys, count }) =>
    `${somePartitions(asset_key, partition_keys, count)} ${wasOrWere(count)} skipped because another run was making ${count === 1 ? 'it, or what it needs' : 'them, or what they need'}`,
  partitions_cancelled: ({ asset_key, partition_keys, count }) =>
    `${somePartitions(asset_key, partition_keys, count)} ${wasOrWere(count)} cancelled with ${count === 1 ? 'its run' : 'their runs'}`,
  chunk_failed: ({ run_id, task_key, error }) =>
    task_key === null ? `${run_id} could not be planned${saying(error)}` : `${task_key} failed in ${run_id}${saying(error)}`,
  log_with: ({ command }) => `read the log: ${command}`,
  stopped_after_failures: ({ most, failed }) =>
    `${failed} ${failed === 1 ? 'chunk has' : 'chunks have'} failed, and after ${most} it plans no more`,
  retry_with: ({ command }) => `retry what failed: ${command}`,
  continue_with: ({ count, command }) => {
    // Of what existed before, nobody can tell by then which was to be made again.
    const left = command.endsWith('--skip-existing') ? 'what does not exist' : 'what is left'
    return `${counted(count)} ${count === 1 ? 'partition was' : 'partitions were'} not made; make ${left}: ${command}`
  },
}
