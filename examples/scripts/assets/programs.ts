import { command } from 'servo-flow'

/** A shell script: what it prints is its log, its exit code says how it went. */
export const export_ = command('crm/export', {
  description: 'Makes a small export to work on.',
  run: ['sh', 'scripts/export.sh'],
  env: { ROWS: '25' },
})

/** A Python script: with the dagster-pipes package installed it reports rows and checks, without it it only runs. */
export const scores = command('ml/scores', {
  description: 'Scores every customer of the export.',
  deps: [export_],
  kinds: ['python'],
  run: ['python3', 'scripts/scores.py'],
  retry: 2,
  timeout: '5m',
})
