import type { AssetGraph } from '../../domain/assets/graph.ts'
import { selectedAssets } from '../../domain/selection/selected-assets.ts'
import { isServoError, ServoError } from '../../lib/error.ts'

/** Refuses a selection of which a part means no asset, and names the field that has it. */
export function checkSelection(graph: AssetGraph, field: string, selection: readonly string[]): void {
  const refuse = (why: string, hint?: string): ServoError =>
    new ServoError('invalid', 'bad_selection', `${field}: ${why}`, { facts: { field }, ...(hint !== undefined && { hint }) })
  try {
    for (const one of selection) if (selectedAssets(graph, [one]).length === 0) throw refuse(`${one} selects no asset`)
  } catch (error) {
    if (!isServoError(error) || error.code === 'bad_selection') throw error
    throw refuse(error.message, error.hint)
  }
}
