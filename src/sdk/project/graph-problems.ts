import type { AssetDefinitionInput, ProjectManifestInput, ProjectProblem } from '../../contract/project-manifest.ts'
import type { SensorDefinitionInput } from '../../contract/sensor.ts'
import { nearest } from '../../lib/nearest.ts'

interface Place {
  readonly file?: string | null | undefined
  readonly line?: number | null | undefined
}

const at = ({ file, line }: Place) => ({ file, line })

/** Problems between the definitions of a project. */
export function graphProblems(manifest: ProjectManifestInput): ProjectProblem[] {
  return [
    ...alikeKeys(manifest),
    ...missingDependencies(manifest),
    ...missingSelections(manifest),
    ...sharedPaths(manifest),
    ...cycleProblems(manifest.assets),
  ]
}

/** Assets are tables to SQL and folders to the file system; neither of them distinguishes case everywhere. */
const alikeKeys = ({ assets }: ProjectManifestInput): ProjectProblem[] =>
  [...Map.groupBy(assets, ({ asset_key }) => asset_key.toLowerCase()).values()].flatMap(([first, ...others]) =>
    others.map((other) => ({
      code: 'duplicate_key',
      message: `assets ${first?.asset_key} and ${other.asset_key} differ only in case, which SQL and some file systems ignore`,
      hint: 'Rename one of them. With `renamedFrom` it keeps its history.',
      ...at(other),
    })),
  )

const upstreamOf = (asset: AssetDefinitionInput): string[] => [
  ...Object.values(asset.inputs ?? {}).map((input) => input.asset_key),
  ...(asset.deps ?? []).map((dep) => dep.asset_key),
]

function missingDependencies({ assets }: ProjectManifestInput): ProjectProblem[] {
  const keys = new Set(assets.map((asset) => asset.asset_key))
  return assets.flatMap((asset) =>
    [...new Set(upstreamOf(asset))]
      .filter((key) => !keys.has(key))
      .map((key) => ({
        code: 'missing_dependency',
        message: `${asset.asset_key} depends on the unknown asset ${key}`,
        hint: missingHint(key, keys),
        ...at(asset),
      })),
  )
}

function missingSelections({ assets, schedules = [], sensors = [] }: ProjectManifestInput): ProjectProblem[] {
  const keys = new Set(assets.map((asset) => asset.asset_key))
  const missing = (owner: string, verb: string, selected: readonly string[], place: Place): ProjectProblem[] =>
    selected
      .filter((key) => !keys.has(key))
      .map((key) => ({
        code: 'missing_dependency',
        message: `${owner} ${verb} the unknown asset ${key}`,
        hint: missingHint(key, keys),
        ...at(place),
      }))
  return [
    ...schedules.flatMap((schedule) => missing(`schedule ${schedule.name}`, 'selects', schedule.asset_selection, schedule)),
    ...sensors.flatMap((sensor) => [
      ...missing(`sensor ${sensor.name}`, 'selects', sensor.asset_selection ?? [], sensor),
      ...missing(`sensor ${sensor.name}`, 'watches', watchedBy(sensor), sensor),
    ]),
  ]
}

const watchedBy = ({ config }: SensorDefinitionInput): readonly string[] =>
  config.type === 'asset' || config.type === 'run' ? (config.assets ?? []) : []

/** A message goes to one sensor. */
function sharedPaths({ sensors = [] }: ProjectManifestInput): ProjectProblem[] {
  const owners = new Map<string, string>()
  return sensors.flatMap((sensor) => {
    const { config, name } = sensor
    if (config.type !== 'webhook') return []
    const first = owners.get(config.path)
    owners.set(config.path, first ?? name)
    if (first === undefined) return []
    const message = `sensors ${first} and ${name} have the same webhook path: ${config.path}`
    return [{ code: 'duplicate_path', message, hint: 'Change one of the paths, or merge the sensors.', ...at(sensor) }]
  })
}

function missingHint(key: string, keys: ReadonlySet<string>): string {
  const near = nearest(key, keys)
  return near === undefined
    ? `Correct the key, or export ${key} from a module in dirs of servo.config.ts.`
    : `Did you mean ${near}?`
}

export function poolProblems({ assets, pools = {} }: ProjectManifestInput): ProjectProblem[] {
  return assets
    .filter(({ pool }) => pool && !Object.hasOwn(pools, pool))
    .map((asset) => {
      const near = nearest(asset.pool ?? '', Object.keys(pools))
      return {
        code: 'unknown_pool',
        message: `${asset.asset_key} uses the unknown pool ${asset.pool}`,
        hint: near === undefined ? `Add it to servo.config.ts: pools: { '${asset.pool}': 4 }.` : `Did you mean ${near}?`,
        ...at(asset),
      }
    })
}

/** The assets that it waits for. A dependency on its own past is not a cycle: every window needs only earlier ones. */
function waitsFor(asset: AssetDefinitionInput): string[] {
  const named = [...Object.values(asset.inputs ?? {}), ...(asset.deps ?? [])]
  const isPast = ({ asset_key, mapping }: (typeof named)[number]) =>
    asset_key === asset.asset_key && asset.partitions && mapping
  return named.filter((one) => !isPast(one)).map(({ asset_key }) => asset_key)
}

/** Each cycle once, from its first asset all the way round. */
function cycleProblems(assets: readonly AssetDefinitionInput[]): ProjectProblem[] {
  const byKey = new Map(assets.map((asset) => [asset.asset_key, asset]))
  const state = new Map<string, 'open' | 'done'>()
  const problems: ProjectProblem[] = []
  for (const start of byKey.keys()) {
    // An explicit stack, because a chain of a thousand assets is deep and still valid.
    const trail: { key: string; rest: string[] }[] = []
    const enter = (key: string): void => {
      state.set(key, 'open')
      trail.push({ key, rest: waitsFor(byKey.get(key) as AssetDefinitionInput).filter((it) => byKey.has(it)) })
    }
    if (!state.has(start)) enter(start)
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const next = top.rest.shift()
      if (next === undefined) {
        state.set(top.key, 'done')
        trail.pop()
      } else if (!state.has(next)) enter(next)
      else if (state.get(next) === 'open') {
        const loop = trail.map(({ key }) => key).slice(trail.findIndex(({ key }) => key === next))
        problems.push(assetCycleProblem([...loop, next], byKey.get(next) as AssetDefinitionInput))
      }
    }
  }
  return problems
}

function assetCycleProblem(loop: readonly string[], first: AssetDefinitionInput): ProjectProblem {
  return {
    code: 'cycle',
    message: `assets depend on each other in a cycle: ${loop.join(' → ')}`,
    hint: 'Each arrow means "depends on". Remove one of these dependencies, or split one of the assets.',
    ...at(first),
  }
}
