import { defineEvent } from '../../model/event.ts'
import { changesRegime } from '../schedules/regime.ts'
import { automationSwitch, switchAutomation } from './switch-automation.ts'

export const AutomationResumed = defineEvent({
  type: 'AutomationResumed',
  version: 1,
  doc: 'All schedules and sensors were resumed.',
  payload: automationSwitch,
  idempotencyKey: (change) => `automation_resume:${change.request_id}`,
  dedup: 'key',
  ordered: [changesRegime],
  fold: (context) => switchAutomation(context, 'ACTIVE'),
})
