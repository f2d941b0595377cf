import { roomOn, type Space } from '../../adapters/system/disk-room.ts'
import { type Finding, fine, problem, warning } from './finding.ts'

/** Compares Node with what the package asks for, such as `>=22.18`. */
export function nodeFinding(
  version: string,
  { version: own, engines }: { version: string; engines: { node: string } },
): Finding {
  const said = `Node ${version.replace(/^v/, '')}; Servo ${own} needs ${engines.node}`
  const isEnough = compareVersions(numbersIn(version), numbersIn(engines.node)) >= 0
  return isEnough ? fine('node', said) : problem('node', said, 'Install Node 24 (https://nodejs.org, or: nvm install 24).')
}

const numbersIn = (text: string): number[] => (/\d+(?:\.\d+)*/.exec(text)?.[0] ?? '').split('.').map(Number)

function compareVersions(one: readonly number[], other: readonly number[]): number {
  for (let i = 0; i < other.length; i++) {
    const difference = (one[i] ?? 0) - (other[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

export function diskFinding(folder: string, space: Space): Finding {
  const { state, message, hint } = roomOn(folder, space)
  if (hint === null) return fine('disk', message)
  return state === 'none' ? problem('disk', message, hint) : warning('disk', message, hint)
}
