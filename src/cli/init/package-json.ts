import { ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'
import { jsonMistake } from '../../lib/text/json-mistake.ts'

/** What a project wants to have in its package.json. */
export interface Wanted {
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

export interface Merged {
  readonly text: string
  /** `scripts.dev` */
  readonly added: readonly string[]
  /** What is there and differs. */
  readonly kept: readonly string[]
  /** True if Node and TypeScript read its files as modules. */
  readonly isModule: boolean
  /** True if it says that they are none, as `npm init` does. */
  readonly isCommonJs: boolean
}

/** Adds what a package.json lacks. What it has stays, in its order and indentation. */
export function mergedPackage(marked: string, wanted: Wanted, file: string): Merged {
  // npm reads a file with a byte order mark too.
  const text = marked.replace(/^\uFEFF/, '')
  const description = parsed(text, file)
  const [added, kept]: [string[], string[]] = [[], []]
  for (const [section, entries] of Object.entries(wanted)) {
    const present = description[section]
    if (present !== undefined && (!isObject(present) || Array.isArray(present)))
      throw unusable(file, `"${section}" is not an object`)
    const members: Record<string, unknown> = { ...present }
    for (const [name, value] of Object.entries(entries)) {
      if (isDependency(section, name, description)) continue
      if (members[name] === undefined) {
        members[name] = value
        added.push(`${section}.${name}`)
      } else if (members[name] !== value) kept.push(`${section}.${name}`)
    }
    if (Object.keys(members).length > 0) description[section] = members
  }
  const indent = /^[\t ]+/m.exec(text)?.[0] ?? '  '
  const { type } = description
  const merged = { text: `${JSON.stringify(description, null, indent)}\n`, added, kept }
  return { ...merged, isModule: type === 'module', isCommonJs: type === 'commonjs' }
}

/** A package may be listed in the other section, and is then installed too. */
function isDependency(section: string, name: string, description: Record<string, unknown>): boolean {
  const other = { dependencies: 'devDependencies', devDependencies: 'dependencies' }[section]
  const listed = other === undefined ? undefined : description[other]
  return isObject(listed) && Object.hasOwn(listed, name)
}

function parsed(text: string, file: string): Record<string, unknown> {
  const mistake = jsonMistake(text)
  if (mistake !== undefined)
    throw unusable(`${file}:${mistake.line}:${mistake.column}`, `it is not valid JSON: ${mistake.what}`)
  const value: unknown = JSON.parse(text)
  if (!isObject(value) || Array.isArray(value)) throw unusable(file, 'it is not an object')
  return { ...value }
}

const unusable = (where: string, why: string): ServoError =>
  new ServoError('invalid', 'bad_package_json', `cannot add to ${where}: ${why}`, {
    hint: 'Correct the file. Nothing was written.',
  })
