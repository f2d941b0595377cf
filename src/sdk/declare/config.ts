import { callerOf } from '../caller.ts'
import { withDeclaration } from '../declaration.ts'
import { type Bounds, type Duration, durationWithin, heartbeatBounds } from '../duration.ts'
import { checkedName, invalid, show } from '../invalid.ts'
import { optionHint } from '../option-names.ts'
import { checkServer, type ServerConfig } from '../server-config.ts'
import { type Alert, checkAlerts } from './alerts/alert.ts'
import { checkKeep, type Keep } from './keep.ts'

export type StorageConfig =
  | { readonly type: 'local'; readonly dir: string }
  | { readonly type: 's3' | 'gcs'; readonly uri: string }

export type QueueConfig =
  | { readonly type: 'in_process'; readonly concurrency?: number }
  | { readonly type: 'postgres'; readonly url: string }
  | ({ readonly type: 'cloud_tasks' } & CloudTasksOptions)

export interface CloudTasksOptions {
  project: string
  location: string
  queue: string
  serviceUrl: string
}

export interface Environment {
  storage: StorageConfig
  queue: QueueConfig
}

export interface WorkerQueue {
  /** The URL to which Servo posts work. Without it, workers poll. */
  push?: string
  /** The most attempts that its workers run at a time. Default: 1000. */
  limit?: number
}

/** Timeouts and intervals of Servo; each has a default. */
export interface Timing {
  /** How long a remote worker may send no heartbeat before its attempt counts as lost. Default: `'60s'`. Assets may override it. */
  heartbeatTimeout?: Duration
  /** When to offer work to a queue again if no worker has started it. Default: `'10m'`. */
  stuckDispatch?: Duration
  /** How long attempts of a cancelled run may take to stop before Servo kills them. Default: `'10s'`. */
  cancelGrace?: Duration
  /** How often Servo looks through all unfinished work, in case something was missed. Default: `'5m'`. */
  sweep?: Duration
}

export interface Config {
  /** The name of the project. */
  project: string
  /** The folders of your modules. Servo loads them and registers every exported declaration. */
  dirs: readonly string[]
  /** Environments by name. Only `dev`, this machine, is available yet. Its state is in .servo beside the config. */
  environments?: Readonly<Record<string, Environment>>
  /** Pools by name: how many attempts of a pool run at once. */
  pools?: Readonly<Record<string, number>>
  /** Queues of workers, by name: their push address and limit. `default` is the queue of the local workers. */
  queues?: Readonly<Record<string, WorkerQueue>>
  timing?: Timing
  /** Which stored values are kept, for all assets that do not say it themselves. Default: `'all'`. */
  keep?: Keep | 'all'
  /** Who may call the server besides holders of API tokens, and how much it takes on at a time. */
  server?: ServerConfig
  /** Who is told of failures and of what is late or stale, by webhooks. Only servers send alerts. */
  alerts?: readonly Alert[]
}

export function local(dir: string): StorageConfig {
  if (typeof dir !== 'string' || dir === '')
    throw invalid('bad_storage', `local(${show(dir)}) must name a folder`, "Write local('.servo').")
  return { type: 'local', dir }
}

export function s3(uri: string): StorageConfig {
  return { type: 's3', uri: bucket('s3', 's3://', uri) }
}

export function gcs(uri: string): StorageConfig {
  return { type: 'gcs', uri: bucket('gcs', 'gs://', uri) }
}

function bucket(name: string, scheme: string, uri: unknown): string {
  if (typeof uri === 'string' && uri.startsWith(scheme) && uri.length > scheme.length) return uri
  throw invalid('bad_storage', `${name}(${show(uri)}) must name a bucket`, `Write ${name}('${scheme}my-bucket/servo').`)
}

export function inProcess(options: { concurrency?: number } = {}): QueueConfig {
  const refuse = (what: string): never => {
    throw invalid('bad_queue', what, 'Write inProcess({ concurrency: 8 }).')
  }
  if (typeof options !== 'object' || options === null) refuse(`inProcess() takes an object of options, not ${show(options)}`)
  const { concurrency, ...rest } = options
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) refuse(`inProcess(): unknown option \`${unknown}\``)
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 1))
    refuse(`\`concurrency\` cannot be ${show(concurrency)}`)
  return { type: 'in_process', ...(concurrency !== undefined && { concurrency }) }
}

export function postgres(url: string | undefined): QueueConfig {
  // Not checked further: environments that are not used may lack their variables.
  return { type: 'postgres', url: url ?? '' }
}

export function cloudTasks(options: CloudTasksOptions): QueueConfig {
  for (const name of ['project', 'location', 'queue', 'serviceUrl'] as const) {
    if (typeof options?.[name] !== 'string')
      throw invalid(
        'bad_queue',
        `cloudTasks() needs \`${name}\``,
        'Write cloudTasks({ project, location, queue, serviceUrl }).',
      )
  }
  return { type: 'cloud_tasks', ...options }
}

/** The default export of servo.config.ts. */
export function defineConfig(config: Config): Config {
  return withDeclaration(
    { ...checkedConfig(config) },
    { kind: 'config', name: config.project, options: config, ...callerOf(defineConfig) },
  )
}

const isBesideConfig = (storage: StorageConfig): boolean => storage.type === 'local' && /^(\.\/)?\.servo\/?$/.test(storage.dir)

const fields = ['project', 'dirs', 'environments', 'pools', 'queues', 'timing', 'keep', 'server', 'alerts']

/** What each of these may be. */
export const timingBounds: Readonly<Record<keyof Timing, Bounds>> = {
  heartbeatTimeout: heartbeatBounds,
  // A machine may have to be started for the work.
  stuckDispatch: { least: '10s', most: '7d' },
  cancelGrace: { least: '0s', most: '1h' },
  sweep: { least: '1s', most: '1d' },
}

export function checkedConfig(config: Config): Config {
  const refuse = (what: string, hint: string): never => {
    throw invalid('bad_config', what, hint)
  }
  if (typeof config !== 'object' || config === null)
    return refuse(
      `the config must be an object, not ${show(config)}`,
      "Write defineConfig({ project: 'shop', dirs: ['assets'] }).",
    )
  const unknown = Object.keys(config).find((name) => !fields.includes(name))
  if (unknown !== undefined) refuse(`the config: unknown option \`${unknown}\``, optionHint(unknown, fields))
  const { project, dirs, environments = {}, pools = {}, queues = {}, timing = {}, alerts = [] } = config
  if (project === undefined) refuse('the config has no project name', "Add project: 'shop'.")
  checkedName(project, 'project')
  if (!Array.isArray(dirs) || dirs.length === 0 || dirs.some((dir) => typeof dir !== 'string' || dir === ''))
    refuse(`\`dirs\` of the config cannot be ${show(dirs)}`, "Write the folders of your assets: dirs: ['assets'].")
  for (const [name, limit] of Object.entries(pools)) {
    checkedName(name, 'pool')
    if (!Number.isInteger(limit) || limit < 1 || limit > 100_000)
      refuse(`the limit of pool ${name} cannot be ${show(limit)}`, 'Write how many attempts may run at once: 1 to 100000.')
  }
  for (const [name, queue] of Object.entries(queues)) checkQueue(checkedName(name, 'queue'), queue, refuse)
  checkTiming(timing, refuse)
  checkKeep('the config', config.keep)
  checkServer(config.server, refuse)
  for (const [name, environment] of Object.entries(environments)) {
    checkedName(name, 'environment')
    if (typeof environment?.storage?.type !== 'string' || typeof environment.queue?.type !== 'string')
      refuse(
        `environment ${name} needs a storage and a queue`,
        `Write ${name}: { storage: local('.servo'), queue: inProcess() }.`,
      )
  }
  // An option that is not used must not look as if it were.
  const { dev } = environments
  if (dev !== undefined && !(isBesideConfig(dev.storage) && dev.queue.type === 'in_process'))
    refuse(
      'the environment `dev` is this machine: it stores everything in .servo and runs assets itself',
      "Write dev: { storage: local('.servo'), queue: inProcess() }. Other environments may differ.",
    )
  checkAlerts(alerts)
  return config
}

type Refuse = (what: string, hint: string) => never

function checkQueue(name: string, queue: WorkerQueue, refuse: Refuse): void {
  const example = `Write ${name}: { push: 'https://workers.example/tasks', limit: 20 }, or one of the two.`
  if (typeof queue !== 'object' || queue === null || Object.keys(queue).length === 0)
    refuse(`queue ${name} cannot be ${show(queue)}`, example)
  const { push, limit, ...rest } = queue
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined) refuse(`queue ${name}: unknown option \`${unknown}\``, example)
  if (push !== undefined && (typeof push !== 'string' || !/^https?:\/\//.test(push) || !URL.canParse(push)))
    refuse(`\`push\` of queue ${name} must be a URL, not ${show(push)}`, example)
  if (push !== undefined && name === 'default')
    refuse(
      'the queue `default` belongs to the local workers, which have no push address',
      'Choose another name for the queue, and set it as `queue` of the assets.',
    )
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 1 && limit <= 100_000))
    refuse(
      `\`limit\` of queue ${name} cannot be ${show(limit)}`,
      'Write how many attempts its workers may run at once: 1 to 100000.',
    )
}

function checkTiming(timing: Timing, refuse: Refuse): void {
  if (typeof timing !== 'object' || timing === null || Array.isArray(timing))
    refuse(`\`timing\` of the config cannot be ${show(timing)}`, "Write timing: { sweep: '5m' }.")
  for (const [name, duration] of Object.entries(timing)) {
    if (!Object.hasOwn(timingBounds, name))
      refuse(`timing: unknown option \`${name}\``, optionHint(name, Object.keys(timingBounds)))
    if (duration !== undefined) durationWithin(duration as Duration, timingBounds[name as keyof Timing], `\`timing.${name}\``)
  }
}
