import type { PreviewGroup, RunPreview } from '../../api/run-contract.ts'
import { counted } from '../../lib/text/counted.ts'
import { type Cell, tableRows } from '../columns.ts'
import { colours, note, print, printable, screenWidth } from '../output.ts'
import { tasksText } from '../show-run.ts'

/** As many lines as one reads; `--json` has every task. */
const SHOWN = 40
/** As many ranges of partitions as fit into a line. */
const SHOWN_RANGES = 3

/** Prints what a run would do: a line for the tasks of an asset that have the same reasons. */
export function printPreview({ tasks, groups, left_out, nothing_to_do }: RunPreview): void {
  for (const { asset_key, why } of left_out) note(`skipping ${asset_key}: ${why}`)
  if (nothing_to_do !== null) {
    print(nothing_to_do)
    return
  }
  print(`would run ${tasksText(tasks.length)}; nothing is recorded`)
  for (const text of tableRows(groups.slice(0, SHOWN).map(cellsOf), screenWidth() - 2)) print(`  ${text}`)
  if (groups.length > SHOWN) print(colours.dim(`  and ${counted(groups.length - SHOWN, 'more line')}; --json has every task`))
}

function cellsOf({ selections, tasks, reasons }: PreviewGroup): Cell[] {
  const more = selections.length - SHOWN_RANGES
  const what = selections.slice(0, SHOWN_RANGES).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return [
    { text: printable(what) },
    { text: tasks === 1 ? '' : tasksText(tasks), right: true },
    { text: reasonWords(reasons), paint: colours.dim },
  ]
}

const reasonWords = (reasons: readonly string[]): string =>
  reasons.length === 0 ? 'selected' : reasons.map((reason) => reason.replaceAll('_', ' ')).join(', ')
