import { end } from './lib/ending.ts'
import { inFlight } from './lib/in-flight.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { Servo } from './lib/servo.ts'
import { median } from './lib/stats.ts'
import { milliseconds, number, ratio } from './lib/table.ts'

/*
 * What a stored JSON value costs, by its size: a hop of a chain in which each asset reads the value of the one before, and runs of
 * one task, each beside assets that store nothing. A small value is recorded with the end of its attempt. The same value through an
 * io is always a file, which is what the limit between the two was chosen by: see ADR 0034.
 */
const SIZES = [16, 512, 1_024, 2_048, 4_096, 8_192, 16_384]
const HOPS = 50
const ROUNDS = Math.max(3, scaled(12))
const RUNS = scaled(3_000)
const AT_A_TIME = 24
const WARM_UP = quick ? 1 : 3

const report = new Report('values', `${ROUNDS} chains of ${HOPS} tasks and ${ROUNDS} times ${RUNS} runs by size, taking turns`)

/** Text that does not compress, and is another each time, as the JSON of a value of this many bytes. */
const TEXT = `const text = (bytes: number): string => randomBytes(Math.ceil(bytes * 0.75)).toString('base64').slice(0, bytes - 2)`
const FILE = `const file = io<string>('file', { write: (value) => JSON.stringify(value), read: (bytes) => JSON.parse(new TextDecoder().decode(bytes)) })`

type Kind = 'nothing' | 'value' | 'file'

function project(kind: Kind, bytes: number): string {
  const stored = kind === 'file' ? 'io: file, ' : ''
  const body = kind === 'nothing' ? 'undefined' : `text(${bytes})`
  const link = kind === 'nothing' ? 'deps: [chain[i - 1]]' : 'inputs: { before: chain[i - 1] }'
  return `import { randomBytes } from 'node:crypto'
import { asset, io } from 'servo-flow'
${TEXT}
${FILE}
export const chain = [asset('chain/0', { ${stored}run: () => ${body} })]
for (let i = 1; i < ${HOPS}; i++) chain.push(asset('chain/' + i, { ${stored}${link}, run: () => ${body} }))
export const one = asset('one', { ${stored}run: () => ${body} })
`
}

interface Measured {
  readonly hops: number[]
  readonly perSecond: number[]
}

async function measure(servo: Servo, into: Measured): Promise<void> {
  let start = performance.now()
  await servo.run('chain/*')
  into.hops.push((performance.now() - start) / HOPS)
  start = performance.now()
  await inFlight(RUNS, AT_A_TIME, () => servo.run('one'))
  into.perSecond.push(RUNS / ((performance.now() - start) / 1_000))
  // Whose turn it is next shall not pay for the tables.
  await servo.orchestrator.publish()
}

async function measureAll(named: ReadonlyMap<string, Servo>): Promise<Map<string, Measured>> {
  const found = new Map<string, Measured>()
  for (const [name, servo] of named) {
    found.set(name, { hops: [], perSecond: [] })
    for (let i = 0; i < WARM_UP; i++) await servo.run('*')
    await inFlight(200, AT_A_TIME, () => servo.run('one'))
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, servo] of named) await measure(servo, found.get(name) ?? { hops: [], perSecond: [] })
  return found
}

const rows: (string | number)[][] = [
  ['JSON', 'hop', ': nothing', 'as a file', ': nothing', 'runs/s', ': nothing', 'as files', ': nothing'],
]
for (const bytes of SIZES) {
  const kinds: Kind[] = ['nothing', 'value', 'file']
  const servos = new Map<string, Servo>()
  for (const kind of kinds) servos.set(kind, await Servo.open({ assets: project(kind, bytes), concurrency: 2 }))
  const found = await measureAll(servos)
  for (const servo of servos.values()) await servo.close()
  const hop = (kind: Kind): number => median(found.get(kind)?.hops ?? [])
  const perSecond = (kind: Kind): number => median(found.get(kind)?.perSecond ?? [])
  rows.push([
    `${bytes} bytes`,
    milliseconds(hop('value')),
    ratio(hop('value') / hop('nothing')),
    milliseconds(hop('file')),
    ratio(hop('file') / hop('nothing')),
    number(perSecond('value')),
    ratio(perSecond('value') / perSecond('nothing')),
    number(perSecond('file')),
    ratio(perSecond('file') / perSecond('nothing')),
  ])
}
report.table('What a stored value costs', rows as string[][])
report.finish()
await end()
