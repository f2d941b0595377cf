import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { hasErrorCode, isServoError, messageOf } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { jsonMistake } from '../../lib/text/json-mistake.ts'
import { type Frame, pathOf, placesIn } from '../caller.ts'
import { type DescribingErrors, describeError } from '../described-error.ts'
import { relativePath } from './describe.ts'
import { isInside, type Modules } from './modules.ts'

/** Describes why a module could not be loaded, with the place that its author has to repair. */
export function loadProblem(error: unknown, file: string, describing: DescribingErrors, modules: Modules): ProjectProblem {
  const { root } = describing
  return (
    packageProblem(error, root) ??
    importProblem(error, root, modules) ??
    syntaxProblem(error, file, root, modules) ??
    importCycleProblem(error, file, root, modules) ??
    thrownProblem(error, file, describing, modules)
  )
}

/** `(file, line)` of a problem, relative to the project. */
const at = (root: string, file: string, line: number | undefined): { file: string; line?: number } => ({
  file: relativePath(root, file),
  ...(line !== undefined && { line }),
})

/** Node names a package.json that it cannot parse, and nothing more. */
function packageProblem(error: unknown, root: string): ProjectProblem | undefined {
  const file = hasErrorCode(error, 'ERR_INVALID_PACKAGE_CONFIG')
    ? /package config (.+?package\.json)/.exec(messageOf(error))?.[1]
    : undefined
  if (file === undefined) return undefined
  const { what, line, column } = jsonMistake(fs.readFileSync(file, 'utf8')) ?? {
    what: 'Node cannot read it',
    line: 1,
    column: 1,
  }
  return {
    code: 'bad_package_json',
    message: `not valid JSON: ${what}`,
    hint: 'Correct it. Node reads it to load the modules in this folder and below.',
    ...at(root, file, line),
    column,
  }
}

function importProblem(error: unknown, root: string, modules: Modules): ProjectProblem | undefined {
  const failed = modules.failedImport(error)
  if (failed === undefined) return undefined
  const { specifier, importer } = failed
  const isFile = specifier.startsWith('.') || specifier.startsWith('/')
  return {
    code: 'missing_import',
    message: `cannot find '${specifier}'`,
    hint: isFile ? fileHint(specifier, importer) : `Install it: npm install ${packageOf(specifier)}`,
    ...at(root, importer, lineOf(importer, specifier)),
  }
}

const packageOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')

function fileHint(specifier: string, importer: string): string {
  const stem = specifier.replace(/\.m?js$/, '')
  const exists = (name: string): boolean => fs.existsSync(path.resolve(path.dirname(importer), name))
  const meant = [`${stem}.ts`, `${stem}.mts`, `${specifier}.js`, `${specifier}.mjs`, `${stem}/index.ts`].find(exists)
  return meant === undefined
    ? 'Create that file, or correct the import.'
    : `Write the file name with its extension: '${meant}'.`
}

/** Where a module mentions something first; undefined when it does not. */
function lineOf(file: string, quoted: string): number | undefined {
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  const index = lines.findIndex((line) => line.includes(`'${quoted}'`) || line.includes(`"${quoted}"`))
  return index < 0 ? undefined : index + 1
}

const NO_EXPORT = /^The requested module '(.+)' does not provide an export named '(.+)'/

function syntaxProblem(error: unknown, imported: string, root: string, modules: Modules): ProjectProblem | undefined {
  if (!(error instanceof Error) || error.name !== 'SyntaxError') return undefined
  const { file, line, excerpt } = syntaxPlace(error) ?? checkedSyntax(imported, modules)
  const [, from, name] = NO_EXPORT.exec(error.message) ?? []
  if (name !== undefined) {
    return {
      code: 'missing_import',
      message: `'${from}' has no export '${name}'`,
      hint: exportHint(name, modules.resolved(from ?? '', file)),
      ...at(root, file, line),
    }
  }
  if (hasErrorCode(error, 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')) {
    return {
      code: 'unsupported_typescript',
      message: error.message,
      hint: 'Node removes types and runs the rest, so enums, namespaces and parameter properties do not work. Use a const object or a union of strings. The compiler option erasableSyntaxOnly finds such code.',
      ...at(root, file, line),
    }
  }
  if (IN_A_SCRIPT.test(error.message)) {
    return { code: 'not_a_module', message: error.message, hint: moduleHint(file, root), ...at(root, file, line) }
  }
  const message = [error.message, ...(excerpt ? [excerpt] : [])].join('\n')
  return { code: 'syntax_error', message, ...at(root, file, line) }
}

/** What to do about an import of something that a module does not export. */
function exportHint(name: string, file: string | undefined): string {
  const { values, types } = file === undefined ? { values: [], types: [] } : exportsOf(file)
  if (types.includes(name)) return `It is a type: write import type { ${name} }, because Node removes types.`
  const near = nearest(name, values)
  if (near !== undefined) return `Did you mean ${near}?`
  return `Correct the name. If it is a type, write import type { ${name} }, because Node removes types.`
}

/** The names that a module exports, as far as its text shows them. */
function exportsOf(file: string): { values: string[]; types: string[] } {
  const text = fs.readFileSync(file, 'utf8')
  const declared = [
    ...text.matchAll(/^export\s+(?:declare\s+)?(?:async\s+)?(const|let|function\*?|class|type|interface)\s+(\w+)/gm),
  ]
  const listed = [...text.matchAll(/^export\s+(type\s+)?\{([^}]*)\}/gm)].flatMap(([, type, names = '']) =>
    names.split(',').map((each) => {
      const [, isType, own] = /^\s*(type\s+)?(?:\w+\s+as\s+)?(\w+)\s*$/.exec(each) ?? []
      return { isType: type !== undefined || isType !== undefined, name: own ?? '' }
    }),
  )
  const all = [
    ...declared.map(([, kind = '', name = '']) => ({ isType: kind === 'type' || kind === 'interface', name })),
    ...listed,
  ]
  return {
    values: all.filter(({ isType }) => !isType).map(({ name }) => name),
    types: all.filter(({ isType }) => isType).map(({ name }) => name),
  }
}

/** What Node says of a module that it reads as a script. */
const IN_A_SCRIPT = /^(Cannot use import statement outside a module|Unexpected token 'export')/

const where = (folder: string): string => (folder === '' ? '' : ` in ${folder}`)

/** Names the package.json that makes Node read a file as a script. */
function moduleHint(file: string, root: string): string {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const description = path.join(folder, 'package.json')
    if (fs.existsSync(description))
      return `Node takes this file for a script. Run npm pkg set type=module${where(path.relative(root, folder))}.`
    if (folder === path.dirname(folder))
      return `Node takes this file for a script. Make the folder a package: npm init --yes && npm pkg set type=module`
  }
}

interface SyntaxPlace {
  readonly file: string
  readonly line?: number
  readonly excerpt?: string
}

/** Node writes file, line and the code above the stack of errors in modules that it strips types from, or links. */
function syntaxPlace({ stack = '' }: Error): SyntaxPlace | undefined {
  const [, where, line, excerpt] = /^(\S.*):(\d+)\n([\s\S]*?)\n\s*SyntaxError/.exec(stack) ?? []
  return where === undefined ? undefined : { file: pathOf(where), line: Number(line), excerpt: (excerpt ?? '').trimEnd() }
}

/** For plain JavaScript Node prints the place only on standard error, and does not name the module in the error. */
function checkedSyntax(imported: string, modules: Modules): SyntaxPlace {
  for (const file of modules.reachedFrom(imported)) {
    if (!/\.[cm]?js$/.test(file)) continue
    const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8' })
    const place = syntaxPlace({ name: '', message: '', stack: stderr })
    if (place !== undefined) return place
  }
  return { file: imported }
}

function importCycleProblem(error: unknown, file: string, root: string, modules: Modules): ProjectProblem | undefined {
  const name = /^Cannot access '(.+)' before initialization$/.exec(messageOf(error))?.[1]
  const place = placeIn(error, root)
  const cycle = name === undefined ? undefined : modules.importCycle(place?.file ?? file)
  if (cycle === undefined) return undefined
  return {
    code: 'import_cycle',
    message: `'${name}' is used before it is defined, because these modules import each other: ${cycle.map((it) => relativePath(root, it)).join(' → ')}`,
    hint: `Refer to one of the assets by its key instead of importing it: deps: ['its/key']. If both need each other's values, split one of them.`,
    ...at(root, place?.file ?? file, place?.line),
  }
}

function thrownProblem(error: unknown, file: string, describing: DescribingErrors, modules: Modules): ProjectProblem {
  const { root } = describing
  const places = ownPlaces(error, root)
  const [place] = places
  const where = at(root, place?.file ?? file, place?.line)
  if (isServoError(error, 'invalid'))
    return { code: 'invalid_definition', message: error.message, ...(error.hint && { hint: error.hint }), ...where }
  const { message, ...detail } = describeError(error, describing)
  return {
    code: 'load_failed',
    message: `importing ${whoThrew(places, file, root, modules)} failed: ${message}`,
    hint: 'Servo imports modules to see what they declare. Do work in the bodies of assets, and open connections in resources.',
    ...where,
    ...(place !== undefined && { column: place.column }),
    detail,
  }
}

/**
 * The module that was being imported: the outermost of the project's own places, whichever module asked for it first. A long stack is cut at
 * that end, so then the innermost is named; without any stack it may be any module that was imported on the way.
 */
function whoThrew(places: readonly Frame[], imported: string, root: string, modules: Modules): string {
  const named = places.length < Error.stackTraceLimit ? places.at(-1) : places[0]
  if (named !== undefined) return relativePath(root, named.file)
  const others = [...modules.reachedFrom(imported)].filter((file) => file !== imported && isOwn(file, root))
  return `${relativePath(root, imported)}${others.length > 0 ? ' (or a module it imports)' : ''}`
}

const isOwn = (file: string, root: string): boolean => isInside(root, file) && !file.includes('node_modules')

/** The places in the project's own code, the innermost first. */
function ownPlaces(error: unknown, root: string): Frame[] {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  return placesIn(stack).filter(({ file }) => isOwn(file, root))
}

const placeIn = (error: unknown, root: string): Frame | undefined => ownPlaces(error, root)[0]
