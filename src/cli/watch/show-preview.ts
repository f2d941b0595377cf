import type { PreviewTask, RunPreview } from '../../api/run-contract.ts'
import { alignRows, type Cell } from '../columns.ts'
import { colours, note, print, printable } from '../output.ts'
import { tasksText } from '../show-run.ts'

/** As many lines as one reads; `--json` has every task. */
const SHOWN = 40

/** Prints what a run would do: a line for the tasks of an asset that have the same reasons. */
export function printPreview({ tasks, left_out, nothing_to_do }: RunPreview): void {
  for (const { asset_key, why } of left_out) note(`${asset_key} is left out: ${why}`)
  if (nothing_to_do !== null) {
    print(nothing_to_do)
    return
  }
  print(`would run ${tasksText(tasks.length)}; nothing is recorded`)
  const groups = [...groupsOf(tasks).values()]
  for (const text of alignRows(groups.slice(0, SHOWN).map(cellsOf))) print(`  ${text}`)
  if (groups.length > SHOWN) print(colours.dim(`  and ${groups.length - SHOWN} more lines: --json has every task`))
}

function groupsOf(tasks: readonly PreviewTask[]): Map<string, PreviewTask[]> {
  const groups = new Map<string, PreviewTask[]>()
  for (const task of tasks) {
    const name = [task.asset_key, ...task.reasons].join('\0')
    groups.set(name, [...(groups.get(name) ?? []), task])
  }
  return groups
}

function cellsOf(group: readonly PreviewTask[]): Cell[] {
  const [first, last] = [group[0], group.at(-1)]
  const name = printable(first?.task_key ?? '')
  const what = first === last ? name : `${name} to ${printable(last?.partition_key ?? '')}`
  return [
    { text: what },
    { text: first === last ? '' : tasksText(group.length), right: true },
    { text: reasonWords(first?.reasons ?? []), paint: colours.dim },
  ]
}

const reasonWords = (reasons: readonly string[]): string =>
  reasons.length === 0 ? 'selected' : reasons.map((reason) => reason.replaceAll('_', ' ')).join(', ')
