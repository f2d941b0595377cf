import type { WireBackfill } from '../../api/automation/backfill-contract.ts'
import { counted } from '../../lib/text/counted.ts'

type Counts = Pick<
  WireBackfill,
  'total_partitions' | 'succeeded_partitions' | 'failed_partitions' | 'skipped_partitions' | 'cancelled_partitions'
>

export const isOver = ({ state }: Pick<WireBackfill, 'state'>): boolean =>
  state === 'SUCCEEDED' || state === 'FAILED' || state === 'CANCELLED'

export const endedOf = (backfill: Counts): number =>
  backfill.succeeded_partitions + backfill.failed_partitions + backfill.skipped_partitions + backfill.cancelled_partitions

/** How many partitions have ended, and how many of them not well: `57 of 57 partitions, 1 failed, 2 skipped`. */
export function countsOf(backfill: Counts): string {
  const { failed_partitions: failed, skipped_partitions: skipped, cancelled_partitions: cancelled } = backfill
  const others = [
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} skipped`,
    cancelled > 0 && `${cancelled} cancelled`,
  ].filter((one) => one !== false)
  return [`${endedOf(backfill)} of ${counted(backfill.total_partitions, 'partition')}`, ...others].join(', ')
}

export const sizeText = (partitions: number, runs: number): string =>
  `${counted(partitions, 'partition')} in ${counted(runs, 'run')}`

/** A backfill that is being cancelled is still running until its runs have ended. */
export const stateText = (backfill: {
  readonly state: WireBackfill['state']
  readonly cancel_requested_at: string | number | null
}): string =>
  backfill.cancel_requested_at !== null && !isOver(backfill) ? 'cancelling' : backfill.state.toLowerCase().replaceAll('_', ' ')
