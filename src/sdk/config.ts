import { callerOf } from './caller.ts'
import { withDefinition } from './definition.ts'
import { checkedName, invalid, show } from './invalid.ts'

export type Storage = { readonly type: 'local'; readonly dir: string } | { readonly type: 's3' | 'gcs'; readonly uri: string }

export type Queue =
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
  storage: Storage
  queue: Queue
}

export interface WorkerQueue {
  /** Dispatches are posted here. */
  push: string
}

export interface Alert {
  on: readonly ('run.failed' | 'asset.stale' | 'check.failed')[]
  /** Where to tell it, as a URL: `slack://#data`. */
  to: string
}

export interface Config {
  /** What the project is called. */
  project: string
  /** Folders whose modules are loaded; every exported definition counts. */
  dirs: readonly string[]
  /** By name. Without any, the project lives in a folder beside its config. */
  environments?: Readonly<Record<string, Environment>>
  /** Named limits: how many attempts of a pool run at once. */
  pools?: Readonly<Record<string, number>>
  /** Queues of other workers that want to be told of work, by name: where. Workers of queues that are not here ask for it. */
  queues?: Readonly<Record<string, WorkerQueue>>
  alerts?: readonly Alert[]
}

export function local(dir: string): Storage {
  if (typeof dir !== 'string' || dir === '')
    throw invalid('bad_storage', `local(${show(dir)}) names no folder`, "Write local('.servo').")
  return { type: 'local', dir }
}

export function s3(uri: string): Storage {
  return { type: 's3', uri: bucket('s3', 's3://', uri) }
}

export function gcs(uri: string): Storage {
  return { type: 'gcs', uri: bucket('gcs', 'gs://', uri) }
}

function bucket(name: string, scheme: string, uri: unknown): string {
  if (typeof uri === 'string' && uri.startsWith(scheme) && uri.length > scheme.length) return uri
  throw invalid('bad_storage', `${name}(${show(uri)}) names no bucket`, `Write ${name}('${scheme}my-bucket/servo').`)
}

export function inProcess(options: { concurrency?: number } = {}): Queue {
  const { concurrency } = options
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 1))
    throw invalid('bad_queue', `concurrency is ${show(concurrency)}`, 'Write inProcess({ concurrency: 8 }).')
  return { type: 'in_process', ...(concurrency !== undefined && { concurrency }) }
}

export function postgres(url: string | undefined): Queue {
  // Not checked further: environments that are not used may lack their variables.
  return { type: 'postgres', url: url ?? '' }
}

export function cloudTasks(options: CloudTasksOptions): Queue {
  for (const name of ['project', 'location', 'queue', 'serviceUrl'] as const) {
    if (typeof options?.[name] !== 'string')
      throw invalid('bad_queue', `cloudTasks() has no ${name}`, 'Write cloudTasks({ project, location, queue, serviceUrl }).')
  }
  return { type: 'cloud_tasks', ...options }
}

/** The default export of servo.config.ts. */
export function defineConfig(config: Config): Config {
  return withDefinition(
    { ...checkedConfig(config) },
    { kind: 'config', name: config.project, options: config, ...callerOf(defineConfig) },
  )
}

const isBesideConfig = (storage: Storage): boolean => storage.type === 'local' && /^(\.\/)?\.servo\/?$/.test(storage.dir)

const fields = ['project', 'dirs', 'environments', 'pools', 'queues', 'alerts']

export function checkedConfig(config: Config): Config {
  const refuse = (what: string, hint: string): never => {
    throw invalid('bad_config', what, hint)
  }
  if (typeof config !== 'object' || config === null)
    return refuse(`the config is ${show(config)}`, "Write defineConfig({ project: 'shop', dirs: ['assets'] }).")
  const unknown = Object.keys(config).find((name) => !fields.includes(name))
  if (unknown !== undefined)
    refuse(`the config has the field ${unknown}, which there is not`, `There are: ${fields.join(', ')}.`)
  const { project, dirs, environments = {}, pools = {}, queues = {}, alerts = [] } = config
  checkedName(project, 'project')
  if (!Array.isArray(dirs) || dirs.length === 0 || dirs.some((dir) => typeof dir !== 'string' || dir === ''))
    refuse(`dirs of the config is ${show(dirs)}`, "Write the folders of your assets: dirs: ['assets'].")
  for (const [name, limit] of Object.entries(pools)) {
    checkedName(name, 'pool')
    if (!Number.isInteger(limit) || limit < 1 || limit > 100_000)
      refuse(`pool ${name} is ${show(limit)}`, 'Write how many may run at once: 1 to 100000.')
  }
  for (const [name, queue] of Object.entries(queues)) {
    checkedName(name, 'queue')
    if (name === 'default')
      refuse('the queue default is that of this machine', 'Choose another name, and write it in the assets.')
    if (typeof queue?.push !== 'string' || !/^https?:\/\//.test(queue.push) || !URL.canParse(queue.push))
      refuse(`queue ${name} is ${show(queue)}`, `Write ${name}: { push: 'https://workers.example/tasks' }.`)
  }
  for (const [name, environment] of Object.entries(environments)) {
    checkedName(name, 'environment')
    if (typeof environment?.storage?.type !== 'string' || typeof environment.queue?.type !== 'string')
      refuse(
        `environment ${name} needs a storage and a queue`,
        `Write ${name}: { storage: local('.servo'), queue: inProcess() }.`,
      )
  }
  // What is not used must not look as if it were.
  const { dev } = environments
  if (dev !== undefined && !(isBesideConfig(dev.storage) && dev.queue.type === 'in_process'))
    refuse(
      'environment dev is this machine, which keeps everything in .servo and runs it itself',
      "Write dev: { storage: local('.servo'), queue: inProcess() }; another environment may have others.",
    )
  if (!Array.isArray(alerts) || alerts.some((alert) => !Array.isArray(alert?.on) || typeof alert.to !== 'string'))
    refuse('an alert needs on and to', "Write { on: ['run.failed'], to: 'slack://#data' }.")
  return config
}
