import { declarationOf } from '../declaration.ts'
import { invalid, show } from '../invalid.ts'

export function checkWholeNumber(
  code: string,
  option: string,
  value: unknown,
  { least, most, hint }: { readonly least: number; readonly most: number; readonly hint: string },
): void {
  if (value === undefined) return
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return
  throw invalid(code, `${option} must be a whole number from ${least} to ${most}, not ${show(value)}`, hint)
}

/** Labels of runs: texts by name. */
export function checkLabels(code: string, option: string, labels: unknown): void {
  if (labels === undefined) return
  const texts = typeof labels === 'object' && labels !== null && !Array.isArray(labels) ? Object.entries(labels) : [['', 0]]
  if (texts.every(([name, text]) => name !== '' && typeof text === 'string')) return
  throw invalid(
    code,
    `${option} must be an object of strings, not ${show(labels)}`,
    "Write an object of strings: { team: 'shop' }.",
  )
}

export function checkResources(owner: string, resources: unknown): void {
  for (const [name, resource] of Object.entries(resources ?? {})) {
    if (declarationOf(resource)?.kind !== 'resource')
      throw invalid(
        'bad_resource',
        `resource \`${name}\` of ${owner} cannot be ${show(resource)}`,
        'Pass a value that resource() returned.',
      )
  }
}

/** True for a path or glob that leads out of the project folder, where nobody notices changes. */
export const isOutside = (pattern: string): boolean =>
  /^(?:[\\/]|[A-Za-z]:)/.test(pattern) || pattern.split(/[\\/]/).includes('..')
