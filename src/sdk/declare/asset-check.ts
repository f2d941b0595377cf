import { checkZoneName } from '../../cron/zone-name.ts'
import { type AssetKind, hasRows, isAsset } from '../any-asset.ts'
import { declarationOf } from '../declaration.ts'
import { durationMs, durationWithin, heartbeatBounds } from '../duration.ts'
import { checkedAssetKey, checkedName, invalid, show } from '../invalid.ts'
import { checkNestedNames, checkOptionNames } from '../option-names.ts'
import { checkOwn, isMapped, isOwn } from '../partitions/mapped.ts'
import { isPartitions } from '../partitions/partitions.ts'
import { isRanges } from '../partitions/ranges.ts'
import { isSchema } from '../standard-schema.ts'
import { checkProgram } from './command-check.ts'
import { contextNames } from './context.ts'
import { isIo } from './io.ts'
import { checkKeep } from './keep.ts'
import { checkResources, isOutside } from './option-checks.ts'
import { isCondition } from './when.ts'

/** The options of each kind of asset. Without this check a misspelled option would do nothing. */
const described = ['description', 'group', 'tags', 'owners', 'kinds', 'partitions', 'freshness', 'renamedFrom']
const settings = [
  ...described,
  ...[
    'deps',
    'automation',
    'retry',
    'timeout',
    'heartbeatTimeout',
    'pool',
    'queue',
    'priority',
    'overlap',
    'backfill',
    'keep',
    'version',
    'alwaysNew',
  ],
]
const body = [...settings, 'inputs', 'resources', 'metadata', 'checks', 'run']
const known: Record<AssetKind, readonly string[]> = {
  asset: [...body, 'io'],
  table: [...body, 'schema', 'sql'],
  command: [...settings, 'run', 'inputs', 'output', 'schema', 'checks', 'cwd', 'env', 'files', 'pipes'],
  source: [...described, 'schema', 'uri'],
}

type GivenOptions = Readonly<Record<string, unknown>>

/** The compiler finds most of these mistakes; these checks are for JavaScript, and for values that are computed. */
export function checkedOptions(kind: AssetKind, key: string, given: object): void {
  if (typeof given !== 'object' || given === null)
    throw invalid('bad_options', `${kind} ${key} needs options`, `Write ${kind}('${key}', { … }).`)
  const options = given as GivenOptions
  const refuse = (name: string, hint: string): never => {
    throw invalid(`bad_${name}`, `\`${name}\` of ${key} cannot be ${show(options[name])}`, hint)
  }
  checkOptionNames(`${kind} ${key}`, options, known[kind])
  checkBody(kind, key, options)
  checkReferences(key, options)
  checkTexts(options, refuse)
  checkFiles(key, options)
  if (options['timeout'] !== undefined) someTime(options['timeout'], `\`timeout\` of ${key}`)
  if (options['heartbeatTimeout'] !== undefined) checkHeartbeat(key, options)
  if (options['retry'] !== undefined) checkRetry(key, options['retry'])
  if (options['freshness'] !== undefined) checkFreshness(key, options['freshness'])
  const { priority, overlap, backfill, automation, partitions, alwaysNew } = options
  if (alwaysNew !== undefined && typeof alwaysNew !== 'boolean') refuse('alwaysNew', 'Write true, or leave it out.')
  if (priority !== undefined && !isWhole(priority, -1_000, 1_000))
    refuse('priority', 'Write a whole number from -1000 to 1000.')
  if (overlap !== undefined && !(typeof overlap === 'string' && ['queue', 'skip', 'replace'].includes(overlap)))
    refuse('overlap', "Write 'queue', 'skip' or 'replace'.")
  checkNestedNames(`\`backfill\` of ${key}`, backfill, ['chunk'])
  if (backfill !== undefined && !isWhole(membersOf(backfill)['chunk'], 1, 10_000))
    refuse('backfill', 'Write { chunk: 10 }, with at most 10000.')
  checkKeep(key, options['keep'])
  if (automation !== undefined && !isCondition(automation)) refuse('automation', 'Write automation: when.eager().')
  if (partitions !== undefined && !isPartitions(partitions))
    refuse('partitions', "Write partitions: daily({ start: '2025-01-01' }).")
  if (isRanges(partitions)) checkRanges(kind, key, options)
  for (const one of [...Object.values(options['inputs'] ?? {}), ...listOf(options['deps'])])
    if (isOwn(one)) checkOwn(key, one, isPartitions(partitions) ? partitions : undefined)
}

const isWhole = (value: unknown, least: number, most = Number.POSITIVE_INFINITY): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most

/** The members of what should be an object; none of anything else. */
const membersOf = (value: unknown): GivenOptions =>
  typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {}

/** The items of what should be a list; none of anything else. */
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** A range is made as one value, from which no single partition could be read, so the asset must keep its own data. */
function checkRanges(kind: AssetKind, key: string, { io, schema }: GivenOptions): void {
  if ((kind === 'command' && schema === undefined) || (kind === 'asset' && io === undefined)) return
  throw invalid(
    'bad_ranges',
    `${kind} ${key} uses ranges(), but Servo cannot split a stored range by partition`,
    'Remove ranges(), or store the data yourself: use command() without `output`, or an asset() that returns nothing.',
  )
}

function checkBody(kind: AssetKind, key: string, options: GivenOptions): void {
  const { run, sql, schema, uri, io, metadata } = options
  if (kind === 'table' || kind === 'source') {
    if (!isSchema(schema))
      throw invalid('bad_schema', `${kind} ${key} needs a schema`, 'Write schema: z.object({ id: z.string() }).')
  }
  if (metadata !== undefined && !isSchema(metadata))
    throw invalid('bad_schema', `\`metadata\` of ${key} must be a schema`, 'Write metadata: z.object({ rows: z.number() }).')
  if (io !== undefined && !isIo(io))
    throw invalid('bad_io', `\`io\` of ${key} cannot be ${show(io)}`, "Write io: io('image', { write, read }).")
  if (kind === 'source') {
    if (typeof uri !== 'string' || uri === '')
      throw invalid('bad_uri', `source ${key} needs a uri`, "Write uri: 's3://bucket/orders/*.parquet'.")
    return
  }
  if (kind === 'command') {
    const words = Array.isArray(run) ? run : []
    if (words.length === 0 || words.some((word) => typeof word !== 'string' && typeof word !== 'function') || words[0] === '')
      throw invalid('bad_command', `command ${key} needs a command line in \`run\``, "Write run: ['python3', 'forecast.py'].")
    checkProgram(key, options)
    return
  }
  if (run !== undefined && sql !== undefined)
    throw invalid('run_and_sql', `table ${key} has both run and sql`, 'Keep one of them.')
  if (typeof (run ?? sql) !== 'function')
    throw invalid(
      'no_body',
      `${kind} ${key} needs a body`,
      kind === 'table' ? 'Write run: () => rows, or sql: () => sql`…`.' : 'Write run: () => value.',
    )
}

function checkReferences(key: string, { inputs, deps, resources, checks, renamedFrom }: GivenOptions): void {
  for (const [name, input] of Object.entries(inputs ?? {})) {
    if (contextNames.some((taken) => taken === name))
      throw invalid(
        'input_name_taken',
        `${key} has an input called \`${name}\`, which is a reserved name`,
        'Choose another name for the input.',
      )
    if (isOwn(input)) continue
    if (!isAsset(input) && !isMapped(input))
      throw invalid(
        'bad_input',
        `input \`${name}\` of ${key} must be an asset, not ${show(input)}`,
        'Import the asset and pass it, or list its key in `deps`.',
      )
    const from = isMapped(input) ? input.asset : input
    if (declarationOf(from)?.kind === 'command' && !hasRows(from))
      throw invalid(
        'no_value',
        `input \`${name}\` of ${key} is a command: it stores its own data, so there is no value to load`,
        'List it in `deps`, or let the command return rows: give it `output` and `schema`.',
      )
  }
  if (deps !== undefined && !Array.isArray(deps))
    throw invalid(
      'bad_deps',
      `\`deps\` of ${key} must be an array, not ${show(deps)}`,
      "Write deps: [orders, 'raw/customers'].",
    )
  for (const dep of listOf(deps)) {
    if (isAsset(dep) || isMapped(dep) || isOwn(dep)) continue
    checkedAssetKey(dep, `an asset or an asset key, in \`deps\` of ${key}`)
  }
  checkResources(key, resources)
  for (const [name, check] of Object.entries(checks ?? {})) {
    checkNestedNames(`check ${show(name)} of ${key}`, check, ['test', 'severity'])
    const { test, severity } = typeof check === 'function' ? { test: check, severity: 'error' } : membersOf(check)
    if (typeof test !== 'function' || name === '' || (severity !== 'error' && severity !== 'warn'))
      throw invalid(
        'bad_check',
        `check ${show(name)} of ${key} must be a function or a check, not ${show(check)}`,
        "Write 'one row per id': check.unique('id').",
      )
  }
  if (renamedFrom !== undefined) checkedAssetKey(renamedFrom, `the former key of ${key}`)
}

/** A version that is set replaces the hash of the code, so that files could not count. */
function checkFiles(key: string, { files, version }: GivenOptions): void {
  if (files === undefined) return
  if (version !== undefined)
    throw invalid(
      'bad_files',
      `command ${key} has both \`files\` and \`version\`: the version would replace the hash of the files`,
      'Remove one of them.',
    )
  const outside = listOf(files).find((pattern) => typeof pattern === 'string' && isOutside(pattern))
  if (outside !== undefined)
    throw invalid(
      'bad_files',
      `\`files\` of ${key}: ${show(outside)} is outside the project folder`,
      "Write paths or globs relative to the project folder: files: ['ml/**/*.py'].",
    )
}

function checkTexts(options: GivenOptions, refuse: (name: string, hint: string) => never): void {
  for (const name of ['description', 'version', 'group', 'pool', 'cwd']) {
    const value = options[name]
    if (value !== undefined && (typeof value !== 'string' || value === '')) refuse(name, 'Write a non-empty string.')
  }
  if (options['pool'] !== undefined) checkedName(options['pool'], 'pool')
  if (options['queue'] !== undefined) checkedName(options['queue'], 'queue')
  for (const name of ['owners', 'kinds', 'files']) {
    const value = options[name]
    if (value === undefined) continue
    if (!Array.isArray(value) || value.some((item) => typeof item !== 'string' || item === ''))
      refuse(name, `Write an array of strings, even for one: ${name}: ['data'].`)
  }
  for (const name of ['tags', 'env']) {
    const value = options[name]
    if (value === undefined) continue
    const texts = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.values(value) : [0]
    if (texts.some((text) => typeof text !== 'string')) refuse(name, "Write an object of strings: { team: 'shop' }.")
  }
}

function checkHeartbeat(key: string, { heartbeatTimeout, queue }: GivenOptions): void {
  durationWithin(heartbeatTimeout, heartbeatBounds, `\`heartbeatTimeout\` of ${key}`)
  if (queue !== undefined && queue !== 'default') return
  throw invalid(
    'bad_heartbeat_timeout',
    `${key} sets \`heartbeatTimeout\` but runs on local workers, which send no heartbeats`,
    'Set `queue`, or remove `heartbeatTimeout`. To limit how long an attempt takes, set `timeout`.',
  )
}

function checkRetry(key: string, retry: unknown): void {
  checkNestedNames(`\`retry\` of ${key}`, retry, ['attempts', 'backoff', 'initial', 'max', 'jitter', 'on'])
  const { attempts, initial, max, backoff, jitter, on } =
    typeof retry === 'number' ? membersOf({ attempts: retry }) : membersOf(retry)
  if (!isWhole(attempts, 1, 1_000))
    throw invalid(
      'bad_retry',
      `\`retry\` of ${key} cannot be ${show(retry)}`,
      'Write the number of attempts, including the first: 1 to 1000.',
    )
  if (backoff !== undefined && backoff !== 'fixed' && backoff !== 'exponential')
    throw invalid('bad_retry', `\`retry.backoff\` of ${key} cannot be ${show(backoff)}`, "Write 'fixed' or 'exponential'.")
  if (jitter !== undefined && typeof jitter !== 'boolean')
    throw invalid('bad_retry', `\`retry.jitter\` of ${key} cannot be ${show(jitter)}`, 'Write true or false.')
  if (on !== undefined && typeof on !== 'function')
    throw invalid('bad_retry', `\`retry.on\` of ${key} must be a function, not ${show(on)}`, 'Write on: (error) => true.')
  if (initial !== undefined) durationMs(initial, `\`retry.initial\` of ${key}`)
  if (max !== undefined) durationMs(max, `\`retry.max\` of ${key}`)
}

/** A duration that is not zero: nothing ends, or is made, in no time. */
const someTime = (duration: unknown, option: string): number =>
  durationWithin(duration, { least: '1ms', most: '36500d' }, option)

function checkFreshness(key: string, freshness: unknown): void {
  const said = membersOf(freshness)
  if ('within' in said) {
    checkOptionNames(`\`freshness\` of ${key}`, said, ['within', 'warn'])
    someTime(said['within'], `\`freshness.within\` of ${key}`)
    if (said['warn'] !== undefined) durationMs(said['warn'], `\`freshness.warn\` of ${key}`)
    return
  }
  checkOptionNames(`\`freshness\` of ${key}`, said, ['within', 'warn', 'by', 'timezone'])
  const { by, timezone = 'UTC' } = said
  if (typeof by !== 'string' || !/^([01]\d|2[0-3]):[0-5]\d$/.test(by))
    throw invalid(
      'bad_freshness',
      `\`freshness\` of ${key} cannot be ${show(freshness)}`,
      "Write { within: '24h' } or { by: '07:30', timezone: 'Europe/Paris' }.",
    )
  checkZoneName(timezone)
}
