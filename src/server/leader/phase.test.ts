import { expect, test } from 'vitest'
import { nextPhase, type Phase } from './phase.ts'

test('an orchestrator leads again after it recovers, and does nothing after it has stopped', () => {
  const phases: Phase[] = ['opening', 'leading', 'recovering', 'stopped']
  const allowed = phases.flatMap((from) => phases.filter((to) => isAllowed(from, to)).map((to) => `${from} → ${to}`))
  expect(allowed).toEqual([
    'opening → leading',
    'opening → stopped',
    'leading → recovering',
    'leading → stopped',
    'recovering → leading',
    'recovering → stopped',
  ])
})

function isAllowed(from: Phase, to: Phase): boolean {
  try {
    return nextPhase(from, to) === to
  } catch {
    return false
  }
}
