import { describe, expect, test } from 'vitest'
import { messageOf, ServoError } from '../../../lib/error.ts'
import { defineConfig } from '../config.ts'
import { type Alert, describeAlert, secretsOfAlert } from './alert.ts'

const declare = (...alerts: Alert[]) => defineConfig({ project: 'shop', dirs: ['assets'], alerts })
const good: Alert = { on: ['run.failed'], to: 'https://alerts.example/servo', secret: 'ALERT_SECRET' }
const refusalOf = (alert: object): string => {
  try {
    declare({ ...good, ...alert })
    return 'accepted'
  } catch (error) {
    return error instanceof ServoError ? `${error.message} ${error.hint}` : messageOf(error)
  }
}

describe('alerts of the config', () => {
  test('[H10] are named by their host or their variable, unless they have a name', () => {
    const slack: Alert = { on: ['asset.stale'], to: { env: 'SLACK_URL' }, format: 'slack' }
    const named = [good, slack, { ...slack, name: 'oncall' }].map(describeAlert)
    expect(named.map(({ name }) => name)).toEqual(['alerts.example', 'SLACK_URL', 'oncall'])
    expect(named.flatMap(secretsOfAlert)).toEqual(['ALERT_SECRET', 'SLACK_URL', 'SLACK_URL'])
    expect(() => declare(good, good)).toThrow('two alerts are named alerts.example')
  })

  test.each([
    [{ on: ['run.fail'] }, /unknown kind "run.fail" Choose from run.failed/],
    [{ on: [] }, /`on` of an alert cannot be/],
    [{ too: 'x' }, /unknown option `too`/],
    [{ to: 'slack://#data' }, /begins with slack:.*incoming webhook/],
    [{ to: 'http://alerts.example' }, /begins with http:, not https:.*allowPrivate/],
    [{ to: 'https://ada:s3cret@alerts.example' }, /^`to` of an alert has a user name in it Take it out/],
    [{ to: { env: 'https://hooks.example/s3cret' } }, /^`to` of an alert must name an environment variable/],
    [{ secret: 'whsec_s3cret' + '/+' }, /^`secret` of alert alerts.example must be the name of an environment variable/],
    [{ secret: undefined }, /needs a secret to sign/],
    [{ format: 'slack' }, /has a secret, but format: 'slack' is not signed/],
    [{ format: 'teams' }, /`format` of alert alerts.example cannot be "teams"/],
    [{ on: ['run.failed', 'schedule.late'], select: 'mart/*' }, /`select` of .* cannot limit schedule.late Declare another/],
    [{ on: ['asset.stale'], labels: { team: 'shop' } }, /`labels` of .* cannot limit asset.stale/],
  ])('[T14] %j is refused with what to write instead', (alert, says) => {
    const refusal = refusalOf(alert)
    expect(refusal).toMatch(says)
    expect(refusal).not.toContain('s3cret')
  })
})
