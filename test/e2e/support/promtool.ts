import { spawnSync } from 'node:child_process'

/** A tool of the system, not of ours, whatever looks for those in package.json. */
const PROMTOOL = 'promtool'

/** What Prometheus' own checker has to say of metrics; empty if it finds nothing wrong. */
export function promtoolSays(metrics: string): string {
  const { status, stderr, stdout, error } = spawnSync(PROMTOOL, ['check', 'metrics'], { input: metrics, encoding: 'utf8' })
  if (error !== undefined) throw error
  return status === 0 ? '' : `${stdout}${stderr}` || `it ended with ${status}`
}

/** True on a bare machine, which is told what it lacks; where all tests must run, those that need it fail instead. */
export const lacksPromtool: boolean =
  spawnSync(PROMTOOL, ['--version']).error !== undefined && process.env['SERVO_REQUIRE_ALL'] !== '1'

if (lacksPromtool) console.warn('Metrics are not checked by Prometheus: install promtool (in the Debian package prometheus).')
