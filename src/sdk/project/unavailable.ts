import type { AssetDefinitionInput, ProjectManifestInput, ProjectProblem } from '../../contract/project-manifest.ts'
import { isObject } from '../../lib/is-object.ts'
import type { Config, Environment } from '../declare/config.ts'

/** Declarations that have a form and nobody who acts on them yet. What is declared works, or it is refused here. */
export function unavailableProblems(manifest: ProjectManifestInput, config: Config, configFile: string): ProjectProblem[] {
  return [...ofConfig(config, configFile), ...manifest.assets.flatMap((asset) => ofAsset(asset, manifest))]
}

const problem = (message: string, hint: string, place: Pick<ProjectProblem, 'file' | 'line'>): ProjectProblem => ({
  code: 'not_available_yet',
  message: `${message} is not available yet`,
  hint,
  ...place,
})

function ofConfig({ environments = {} }: Config, file: string): ProjectProblem[] {
  const others = Object.entries(environments).filter(([name]) => name !== 'dev')
  return [
    ...others.map(([name, environment]) =>
      problem(
        `environment ${name} (${wordsOf(environment)})`,
        'Remove it: for now, a project runs on this machine, by servo dev and servo run.',
        { file },
      ),
    ),
  ]
}

const functions: Readonly<Record<string, string>> = { in_process: 'inProcess', cloud_tasks: 'cloudTasks' }

const wordsOf = ({ storage, queue }: Environment): string =>
  [storage.type, queue.type].map((type) => `${functions[type] ?? type}()`).join(', ')

/** The options, and what to do until they work. */
const policies: Readonly<Record<string, string>> = {
  automation:
    "Remove it, and use a schedule: schedule('nightly', { cron: '0 5 * * *', … }), or a sensor that watches the upstream assets.",
}

function ofAsset(asset: AssetDefinitionInput, { assets }: ProjectManifestInput): ProjectProblem[] {
  const { asset_key, policies: said = {}, file, line } = asset
  const place = { file, line }
  const found = Object.entries(policies)
    .filter(([name]) => said[name] !== undefined)
    .map(([name, hint]) => problem(`${name} of ${asset_key}`, hint, place))
  if (isObject(said['freshness']) && said['freshness']['warn_ms'] !== undefined)
    found.push(problem(`freshness.warn of ${asset_key}`, 'Remove it: { within } alone says when the asset is stale.', place))
  // Workers elsewhere load what they like; those of this machine read files.
  if (asset.queue !== undefined && asset.queue !== null && asset.queue !== 'default') return found
  for (const [input, { asset_key: from }] of Object.entries(asset.inputs ?? {})) {
    const { uri } = assets.find((one) => one.asset_key === from) ?? {}
    const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(uri ?? '')?.[1]
    if (scheme === undefined || scheme === 'file') continue
    found.push(
      problem(
        `input ${input} of ${asset_key}: the source ${from} at ${scheme}://`,
        `Mount or copy the data, and use a path relative to the project. Or list the source in deps, and read ${scheme}:// in the body.`,
        place,
      ),
    )
  }
  return found
}
