import { spawnSync } from 'node:child_process'

/** A tool of the system, not of ours, whatever looks for those in package.json. */
const FAKETIME = 'faketime'

/** The program itself stays between us and the process, which then hears no signals: its library alone is used. */
const { stdout } = spawnSync(FAKETIME, ['-f', '+0', 'env'], { encoding: 'utf8' })
const library = /^LD_PRELOAD=(.+)$/m.exec(stdout ?? '')?.[1]

/** An environment in which the clock is wrong by so much: `+26h`, `-2d`, `+1y`. The clock that only measures is left alone. */
export function wrongClock(offset: string): Record<string, string> {
  if (library === undefined) throw new Error('faketime is not installed (Debian: apt-get install faketime)')
  return { LD_PRELOAD: library, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

/** True on a bare machine, which is told what it lacks; where all tests must run, those that need a wrong clock fail instead. */
export const lacksWrongClock: boolean = library === undefined && process.env['SERVO_REQUIRE_ALL'] !== '1'

if (lacksWrongClock) console.warn('Wrong clocks are not tested: install faketime (Debian: apt-get install faketime).')
