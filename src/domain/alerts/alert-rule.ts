import type { AlertDefinition, AlertKind } from '../../contract/alert.ts'

/** An alert of the project, ready to decide by. */
export interface AlertRule {
  readonly target: string
  readonly on: ReadonlySet<AlertKind>
  /** The assets that it is limited to; undefined for all. */
  readonly assets: ReadonlySet<string> | undefined
  readonly labels: Readonly<Record<string, string>>
  /** What ended before is no news. */
  readonly since: number
}

/** `assets` are those that its selection means in the graph of now. */
export const ruleOf = (
  { name, on, labels }: AlertDefinition,
  { assets, since }: Pick<AlertRule, 'assets' | 'since'>,
): AlertRule => ({ target: name, on: new Set(on), assets, labels, since })

export const hasAsset = ({ assets }: AlertRule, keys: Iterable<string>): boolean => {
  if (assets === undefined) return true
  for (const key of keys) if (assets.has(key)) return true
  return false
}

export const hasLabels = ({ labels }: AlertRule, own: Readonly<Record<string, string>>): boolean =>
  Object.entries(labels).every(([name, value]) => own[name] === value)
