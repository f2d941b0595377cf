import { defineEvent } from '../../model/event.ts'
import { changesRegime } from '../schedules/regime.ts'
import { automationSwitch, switchAutomation } from './switch-automation.ts'

export const AutomationPaused = defineEvent({
  type: 'AutomationPaused',
  version: 1,
  doc: 'All schedules and sensors were paused.',
  payload: automationSwitch,
  idempotencyKey: (change) => `automation_pause:${change.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold: (context) => switchAutomation(context, 'PAUSED'),
})
