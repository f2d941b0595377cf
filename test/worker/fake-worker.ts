// A worker with the real child's code and bodies that misbehave in every way, by the name of the asset.
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import type { AttemptResultInput, DispatchEnvelope } from '../../src/contract/dispatch.ts'
import type { EvaluationReport, EvaluationRequest } from '../../src/contract/evaluation.ts'
import { serveWork } from '../../src/worker/process/child.ts'
import type { AttemptContext } from '../../src/worker/process/received-work.ts'
import { PRINTED_MB } from './printed.ts'

type Body = (envelope: DispatchEnvelope, context: AttemptContext) => unknown

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Lets the code that an ended attempt left floating go on. */
let releaseFloating = () => {}

/** What becomes of a brief attempt, by its partition. */
const surprises: Record<string, Body> = {
  'exits natively': () => (process as unknown as { reallyExit(code: number): void }).reallyExit(1),
  exits: () => process.exit(0),
  'is killed': () => process.kill(process.pid, 'SIGKILL'),
  'throws later': () => {
    process.nextTick(() => {
      throw new Error('out of nowhere')
    })
    return sleep(1_000)
  },
  'takes long': (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  'blocks a while': () => {
    for (const until = performance.now() + 300; performance.now() < until; );
  },
  'blocks for ever': () => {
    for (;;);
  },
}

const bodies: Record<string, Body> = {
  brief: async (envelope, context) => {
    console.log(envelope.attempt_id)
    await surprises[envelope.partition?.key ?? '']?.(envelope, context)
    return envelope.attempt_id
  },
  noop: () => undefined,
  pid: () => process.pid,
  version: () => process.argv[2],
  throws: () => {
    throw new TypeError('no such column')
  },
  exits: ({ partition }) => process.exit(Number(partition?.key)),
  'exits natively': () => (process as unknown as { reallyExit(code: number): void }).reallyExit(137),
  'out of memory': () => {
    const held: unknown[] = []
    for (;;) held.push(new Array(1_000).fill(held.length))
  },
  blocks: () => {
    for (;;);
  },
  'prints and blocks': () => {
    for (;;) console.log('still here')
  },
  'ignores the signal': () => sleep(1e9),
  listens: (_, { signal }) =>
    new Promise((_, reject) => {
      console.log(process.pid)
      signal.addEventListener('abort', () => reject(signal.reason))
    }),
  'prints and throws': () => {
    for (let i = 0; i < 10_000; i++) console.log(`line ${i}`)
    throw new Error('it is all wrong')
  },
  'prints too much': () => {
    const line = 'x'.repeat(1_023)
    for (let i = 0; i < PRINTED_MB * 2 ** 10; i++) console.log(line)
  },
  'prints too much natively': () => {
    const chunk = Buffer.alloc(2 ** 20, `${'y'.repeat(1_023)}\n`)
    for (let i = 0; i < PRINTED_MB; i++) writeFully(1, chunk)
  },
  'says why and is killed': () => {
    console.log('one')
    process.stdout.write('two\n')
    console.error('three')
    process.kill(process.pid, 'SIGKILL')
  },
  'prints in many ways': async () => {
    console.debug('quiet')
    console.info('a %s of %d', 'kind', 3)
    console.warn('careful')
    console.error('bad\nworse')
    process.stdout.write('half ')
    process.stdout.write(Buffer.from('a line\n'))
    process.stderr.write('no newline at the end')
    await new Promise<void>((resolve) => process.stdout.write('6869', 'hex', () => resolve()))
  },
  says: (envelope, { log }) => log({ at: 1, stream: 'log', level: 'info', text: envelope.asset_key, fields: { a: 1 } }),
  'forks a child': () => spawn('sleep', ['1000'], { stdio: 'inherit' }).pid,
  'forks an orphan': () =>
    new Promise((resolve, reject) =>
      execFile('sh', ['-c', 'sleep 1000 >/dev/null 2>&1 & echo $!'], (error, stdout) =>
        error ? reject(error) : resolve(Number(stdout)),
      ),
    ),
  'forks into a session of its own': () => spawn('sleep', ['1000'], { stdio: 'ignore', detached: true }).pid,
  'starts a program and waits': () =>
    new Promise((resolve) =>
      spawn('sh', ['-c', 'echo from a grandchild'], { stdio: 'inherit' }).on('close', () => resolve(process.pid)),
    ),
  'forks and blocks': () => {
    fs.writeFileSync(`${process.env.PID_FILE}.child`, String(spawn('sleep', ['1000'], { stdio: 'ignore' }).pid))
    fs.writeFileSync(process.env.PID_FILE!, String(process.pid))
    for (;;);
  },
  rejects: async () => {
    void Promise.reject(new Error('nobody awaits this'))
    await sleep(10_000)
  },
  'throws in a timer': async () => {
    setTimeout(() => {
      throw new Error('out of nowhere')
    })
    await sleep(10_000)
  },
  'floats on': () => {
    const timer = setInterval(() => console.log('I am still here'), 1)
    setTimeout(() => clearInterval(timer), 1_000)
    return process.pid
  },
  'rejects in the next attempt': () => {
    void new Promise<void>((resolve) => {
      releaseFloating = resolve
    }).then(() => Promise.reject(new Error('too late')))
    return process.pid
  },
  'is the next attempt': async () => {
    releaseFloating()
    // Node reports the rejection as soon as no promise is left to settle, so before the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve))
    return process.pid
  },
  'sleeps a little': async () => {
    await sleep(100)
    return process.pid
  },
  'holds memory': () => {
    ;(globalThis as { held?: Buffer }).held = Buffer.alloc(300 * 2 ** 20, 1)
    return sleep(30).then(() => process.pid)
  },
  'floods the pipe': () => {
    const chunk = Buffer.alloc(2 ** 20, 'z')
    for (;;) writeFully(3, chunk)
  },
  'writes to the pipe': ({ partition }) => writeFully(3, Buffer.from(`${partition?.key}\n`)),
  'speaks for itself': async ({ attempt_id }) => {
    for (let i = 0; i < 20; i++) {
      console.log(attempt_id)
      process.stderr.write(`${attempt_id}\n`)
      if (i % 7 === 0) await sleep(1)
    }
  },
}

function writeFully(fd: number, bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0; ) {
    try {
      rest = rest.subarray(fs.writeSync(fd, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
  }
}

async function execute(envelope: DispatchEnvelope, context: AttemptContext): Promise<AttemptResultInput> {
  if (envelope.asset_key === 'reports another file')
    return { outcome: 'SUCCEEDED', materialization_id: 'm1', output: { path: '../../../../outside.parquet' } }
  if (envelope.asset_key === 'reports less than nothing') return { outcome: 'SUCCEEDED', output: { rows: -1 } }
  try {
    const value = await bodies[envelope.asset_key]!(envelope, context)
    return { outcome: 'SUCCEEDED', output: { metadata: { value } } }
  } catch (error) {
    if (context.signal.aborted) return { outcome: 'CANCELLED' }
    const { message, stack } = error as Error
    return { outcome: 'FAILED', error: { category: 'user', message, stack, retryable: true } }
  }
}

/** What becomes of an evaluation, by the name of its sensor. */
async function evaluate(request: EvaluationRequest, context: AttemptContext): Promise<EvaluationReport> {
  const name = request.of === 'condition' ? request.schedule : request.sensor
  if (request.of === 'condition') return { outcome: 'condition', holds: name === 'open' }
  if (name === 'reports nonsense') return { outcome: 'requests', runs: [{ asset_selection: [] }] }
  if (name === 'answers another question') return { outcome: 'condition', holds: true }
  const cursor = request.of === 'poll' ? request.cursor : null
  const work = { ...envelopeOf(name), ...(cursor !== null && { partition: { key: cursor } }) }
  const value = await bodies[name]!(work, context)
  return { outcome: 'requests', runs: [], cursor: JSON.stringify(value ?? null) }
}

const envelopeOf = (asset_key: string): DispatchEnvelope => ({
  ...{ task_id: 'd_1', task_key: asset_key, run_id: 'run_1', attempt: 1, attempt_id: 'att_1' },
  asset_key,
  payload: { inputs: {}, labels: {} },
})

await serveWork(async () => {
  if (process.argv[2] === 'never loaded') await new Promise((resolve) => setTimeout(resolve, 60_000))
  if (process.argv[2] === 'exits while loading') process.exit(3)
  if (process.argv[2] === 'with a helper') spawn('sleep', ['1000'], { stdio: 'ignore' })
  const brokenBy = process.env['BROKEN_BY']
  if (process.argv[2] === 'broken' || (brokenBy !== undefined && fs.existsSync(brokenBy)))
    return { problems: [{ code: 'syntax_error', message: 'no', file: 'a.ts', line: 3 }] }
  const describing = { root: import.meta.dirname }
  return { manifest: { project: process.argv[2] ?? 'fake', assets: [] }, secretVariables: [], describing, execute, evaluate }
}, Date.now)
