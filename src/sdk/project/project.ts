import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type ProjectManifestInput, type ProjectProblem, projectManifest } from '../../contract/project-manifest.ts'
import type { SensorDefinitionInput } from '../../contract/sensor.ts'
import { type AnyAsset, isAsset } from '../any-asset.ts'
import { type Declaration, declarationOf, knownDeclaration, optionsOf } from '../declaration.ts'
import { secretsOfAlert } from '../declare/alerts/alert.ts'
import { type Config, checkedConfig } from '../declare/config.ts'
import { type AnyResource, secretVariablesOf } from '../declare/resource.ts'
import { isSensor, type Sensor } from '../declare/sensor.ts'
import type { Schedule } from '../declare/trigger.ts'
import type { DescribingErrors } from '../described-error.ts'
import { issuesText } from '../standard-schema.ts'
import { type CommandCode, codePatterns, filesOf } from './command-files.ts'
import { describeProject, relativePath } from './describe.ts'
import { graphProblems, poolProblems } from './graph-problems.ts'
import { importWithin, Unfinished } from './import-within.ts'
import { loadProblem } from './load-problem.ts'
import { hideModuleWarning } from './module-warning.ts'
import { isInside, Modules } from './modules.ts'
import { partitionProblems } from './partition-problems.ts'
import { configFile, modulesUnder } from './project-files.ts'
import { scheduleProblems } from './schedule-problems.ts'
import { unavailableProblems } from './unavailable.ts'
import { unfinishedProblem } from './unfinished-problem.ts'

/** A project with everything it declares, ready to run. */
export interface Project {
  readonly manifest: ProjectManifestInput
  readonly assets: ReadonlyMap<string, AnyAsset>
  readonly resources: ReadonlyMap<string, AnyResource>
  readonly schedules: ReadonlyMap<string, Schedule>
  readonly sensors: ReadonlyMap<string, Sensor>
  readonly config: Config
  /** Environment variables with secrets: of resources that declare them, and of webhooks. */
  readonly secretVariables: readonly string[]
}

export interface BrokenProject {
  readonly problems: readonly ProjectProblem[]
  /** What it declares nevertheless, if its config could be loaded. */
  readonly declared?: DeclaredParts
}

/** What a project declares, apart from how its parts fit together. */
export type DeclaredParts = Pick<Project, 'manifest' | 'assets' | 'resources' | 'secretVariables'>

/**
 * Loads a project by running its modules. Call it once in a process, which then belongs to the project: to load it anew, start
 * another one.
 */
export async function loadProject(
  dir: string,
  /** Takes secrets out of what modules throw. */
  redact?: (text: string) => string,
  /** Called with a module that has not finished after some seconds. */
  onSlow?: (file: string) => void,
): Promise<Project | BrokenProject> {
  hideModuleWarning()
  const root = path.resolve(dir)
  const loading = new ProjectLoader({ root, ...(redact && { redact }) }, (file) => onSlow?.(relativePath(root, file)))
  const config = await loading.config()
  if (config === undefined) return loading.broken()
  await loading.modules(config.dirs)
  return loading.finish(config)
}

const EXAMPLE = `import { defineConfig } from 'servo-flow'

export default defineConfig({
  project: 'shop',
  dirs: ['assets'],
})`

class ProjectLoader {
  readonly #root: string
  readonly #describing: DescribingErrors
  readonly #modules: Modules
  readonly #problems: ProjectProblem[] = []
  readonly #onSlow: (file: string) => void
  /** Set when a module did not finish: others may import it, and would not finish either. */
  #isStuck = false
  #configName = 'servo.config.ts'
  /** Every importer of a broken module fails with the same error. */
  readonly #reported = new Set<unknown>()
  /** Every declaration, with the module that exported it first. */
  readonly #found = new Map<object, string>()

  constructor(describing: DescribingErrors, onSlow: (file: string) => void) {
    this.#describing = describing
    this.#onSlow = onSlow
    this.#root = describing.root
    this.#modules = new Modules(this.#root)
  }

  async config(): Promise<Config | undefined> {
    const file = configFile(this.#root)
    if (file === undefined) {
      this.#report({
        code: 'missing_config',
        message: `no servo.config.ts in ${this.#root}`,
        hint: `Create it:\n\n${EXAMPLE}\n`,
      })
      return undefined
    }
    this.#configName = relativePath(this.#root, file)
    const exported = await this.#import(file)
    if (exported === undefined) return undefined
    if (exported['default'] === undefined) {
      this.#report({
        code: 'bad_config',
        message: 'the config has no default export',
        hint: `Export it as default:\n\n${EXAMPLE}\n`,
        file: relativePath(this.#root, file),
      })
      return undefined
    }
    try {
      return checkedConfig(exported['default'] as Config)
    } catch (error) {
      this.#report({ ...loadProblem(error, file, this.#describing, this.#modules), code: 'bad_config' })
      return undefined
    }
  }

  async modules(dirs: readonly string[]): Promise<void> {
    const files = new Set<string>()
    for (const dir of dirs) {
      const below = modulesUnder(path.resolve(this.#root, dir))
      if (below === undefined)
        this.#report({
          code: 'missing_folder',
          message: `folder not found: ${dir}`,
          hint: 'Create it, or change dirs.',
          file: this.#configName,
        })
      for (const file of below ?? []) files.add(file)
    }
    for (const file of files) {
      for (const value of Object.values((await this.#import(file)) ?? {})) this.#collect(value, file, 0)
    }
  }

  finish(config: Config): Project | BrokenProject {
    const loaded = this.#problems.length === 0
    this.#collectUnexported()
    const unique = this.#withoutDuplicates()
    const values = [...unique.values()]
    const about = { config, root: this.#root, codeVersionOf: (value: object) => this.#codeVersion(value) }
    this.#reportMissingFiles(values)
    const watched = [...new Set(values.flatMap((value) => this.#patternsOf(value)))].sort()
    const manifest = { ...describeProject(values, about), ...(watched.length > 0 && { code_files: watched }) }
    this.#problems.push(...poolProblems(manifest), ...unavailableProblems(manifest, config, this.#configName))
    // Do not report what a broken module would have exported: the module itself is reported.
    const isKnown = ({ code }: ProjectProblem): boolean => loaded || code !== 'missing_dependency'
    this.#problems.push(...graphProblems(manifest).filter(isKnown), ...partitionProblems(manifest))
    if (loaded) this.#problems.push(...scheduleProblems(manifest))
    if (loaded && manifest.assets.length === 0) this.#report(emptyProject(config.dirs))
    const checked = projectManifest.safeParse(manifest)
    if (!checked.success)
      this.#report({ code: 'invalid_definition', message: issuesText(checked.error.issues), hint: 'Correct that definition.' })
    const resources: ReadonlyMap<string, AnyResource> = byName(ofKind(values, 'resource'))
    const secretVariables = [
      ...[...resources.values()].flatMap(secretVariablesOf),
      ...(manifest.sensors ?? []).flatMap(secretsOfSensor),
      ...(manifest.alerts ?? []).flatMap(secretsOfAlert),
    ]
    const declared = { manifest, assets: byName(values.filter(isAsset)), resources, secretVariables }
    if (this.#problems.length > 0) return { ...this.broken(), declared }
    return {
      ...declared,
      schedules: byName(ofKind(values, 'schedule')),
      sensors: byName(values.filter(isSensor)),
      config,
    }
  }

  broken(): BrokenProject {
    const place = ({ file, line }: ProjectProblem): string => `${file ?? ''}:${String(line ?? 0).padStart(6, '0')}`
    return { problems: this.#problems.toSorted((a, b) => (place(a) < place(b) ? -1 : 1)) }
  }

  async #import(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    if (this.#isStuck) return undefined
    try {
      const load = (): Promise<Readonly<Record<string, unknown>>> => import(pathToFileURL(file).href)
      const imported = await importWithin(load, { onSlow: () => this.#onSlow(file) })
      if (!(imported instanceof Unfinished)) return imported
      this.#isStuck = true
      this.#report(unfinishedProblem(imported, file, this.#root, this.#modules))
      return undefined
    } catch (error) {
      if (this.#reported.has(error)) return undefined
      this.#reported.add(error)
      this.#report(loadProblem(error, file, this.#describing, this.#modules))
      return undefined
    }
  }

  /** Definitions may also be in exported lists and plain objects. */
  #collect(value: unknown, file: string, depth: number): void {
    if (typeof value !== 'object' || value === null || this.#found.has(value)) return
    if (declarationOf(value) !== undefined) this.#found.set(value, file)
    else if (depth < 4 && (Array.isArray(value) || isPlain(value)))
      for (const member of Object.values(value)) this.#collect(member, file, depth + 1)
  }

  /** Resources and IOs need no export: what counts is that an asset or a sensor uses them. */
  #collectUnexported(): void {
    for (const [value, file] of [...this.#found]) {
      const { resources = {}, io } = optionsOf<{ resources?: object; io?: unknown }>(value)
      for (const used of [...Object.values(resources), io]) this.#collect(used, file, 4)
    }
  }

  #withoutDuplicates(): Map<string, object> {
    const unique = new Map<string, object>()
    for (const value of this.#found.keys()) {
      const declaration = knownDeclaration(value)
      const noun = isAsset(value) ? 'asset' : isSensor(value) ? 'sensor' : declaration.kind
      const id = `${noun} ${declaration.name}`
      const first = unique.get(id)
      if (first === undefined) unique.set(id, value)
      else {
        this.#report({
          code: 'duplicate_key',
          message: `duplicate ${id}: ${this.#spell(knownDeclaration(first))} and ${this.#spell(declaration)}`,
          hint: 'Rename one of them.',
          ...this.#place(declaration),
        })
      }
    }
    return unique
  }

  /** An asset that was made by a package has its code where it is exported. */
  #codeVersion(value: object): string | undefined {
    const { file } = knownDeclaration(value)
    const from = file !== undefined && isInside(this.#root, file) ? file : this.#found.get(value)
    if (from === undefined) return undefined
    const files = new Set(this.#patternsOf(value).flatMap((pattern) => filesOf(this.#root, pattern)))
    return this.#modules.codeVersionWith(from, [...files].sort())
  }

  /** The files besides modules that belong to the code of a command. */
  #patternsOf(value: object): readonly string[] {
    return knownDeclaration(value).kind === 'command' ? codePatterns(this.#root, optionsOf<CommandCode>(value)) : []
  }

  #reportMissingFiles(values: readonly object[]): void {
    for (const value of values) {
      const { files = [] } = optionsOf<CommandCode>(value)
      const { kind, name } = knownDeclaration(value)
      const missing = kind === 'command' ? files.find((pattern) => filesOf(this.#root, pattern).length === 0) : undefined
      if (missing === undefined) continue
      this.#report({
        code: 'missing_file',
        message: `files of ${name}: no file matches ${missing}`,
        hint: 'Use paths or globs relative to the project folder.',
        ...this.#place(knownDeclaration(value)),
      })
    }
  }

  #place({ file, line }: Declaration): { file?: string; line?: number } {
    return file === undefined ? {} : { file: relativePath(this.#root, file), ...(line !== undefined && { line }) }
  }

  #spell(declaration: Declaration): string {
    const { file = 'somewhere', line } = this.#place(declaration)
    return line === undefined ? file : `${file}:${line}`
  }

  #report(problem: ProjectProblem): void {
    const same = ({ code, message, file, line }: ProjectProblem): boolean =>
      code === problem.code && message === problem.message && file === problem.file && line === problem.line
    if (!this.#problems.some(same)) this.#problems.push(problem)
  }
}

function emptyProject(dirs: readonly string[]): ProjectProblem {
  return {
    code: 'empty_project',
    message: `no module under ${dirs.join(', ')} exports an asset`,
    hint: `Create ${path.posix.join(dirs[0] ?? 'assets', 'hello.ts')}:\n\nimport { asset } from 'servo-flow'\n\nexport const hello = asset('hello', { run: () => ({ greeting: 'hello' }) })\n`,
  }
}

const secretsOfSensor = ({ config }: SensorDefinitionInput): readonly string[] =>
  config.type === 'webhook' ? (config.secrets ?? []) : []

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const ofKind = (values: readonly object[], kind: string): { name: string }[] =>
  values.filter((value): value is { name: string } => declarationOf(value)?.kind === kind)

const byName = <T extends object>(values: readonly T[]): ReadonlyMap<string, T> =>
  new Map(values.map((value) => [knownDeclaration(value).name, value]))
