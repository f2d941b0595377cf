// An orchestrator to be killed: starts one attempt, says so, and waits.

import { WorkerPool } from '../../src/worker/pool/pool.ts'
import { envelope, fakeCommand } from './fake-envelope.ts'

const [, , assetKey = 'noop', pidFile = ''] = process.argv
const pool = new WorkerPool({ command: { ...fakeCommand(), env: { PID_FILE: pidFile } }, size: 1, warm: 1, now: Date.now })
await pool.ready()
await pool.run(envelope(assetKey))
