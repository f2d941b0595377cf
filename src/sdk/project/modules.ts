import fs from 'node:fs'
import { registerHooks } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { sha256 } from '../../lib/hash.ts'

/** This file runs as .ts from the sources and as .js when published; so does what projects import. */
const extension = path.extname(import.meta.url)
const ours: Readonly<Record<string, string>> = {
  'servo-flow': new URL(`../../index${extension}`, import.meta.url).href,
  'servo-flow/test': new URL(`../../test${extension}`, import.meta.url).href,
  'servo-flow/client': new URL(`../../client/index${extension}`, import.meta.url).href,
}

export interface FailedImport {
  readonly specifier: string
  readonly importer: string
}

/** The imports between the modules of a project, as Node loads them. */
export class Modules {
  readonly #root: string
  readonly #imports = new Map<string, Set<string>>()
  readonly #failed = new WeakMap<object, FailedImport>()
  readonly #hashes = new Map<string, string>()
  readonly #versions = new Map<string, string>()

  /** Listens from now on, for as long as the process lives: a body may import something when it runs. */
  constructor(root: string) {
    this.#root = root
    registerHooks({
      resolve: (specifier, context, next) => {
        const url = ours[specifier]
        // Definitions and the code that reads them must be of one copy, also when the project has installed another.
        if (url !== undefined) return { url, shortCircuit: true }
        try {
          const found = next(specifier, context)
          this.#record(context.parentURL, found.url)
          return this.#needsFormat(found) ? { ...found, format: 'module-typescript' } : found
        } catch (error) {
          const importer = fileOf(context.parentURL)
          if (importer !== undefined && typeof error === 'object' && error !== null)
            this.#failed.set(error, { specifier, importer })
          throw error
        }
      },
    })
  }

  /** Which import failed, if an error comes from that. */
  failedImport(error: unknown): FailedImport | undefined {
    return typeof error === 'object' && error !== null ? this.#failed.get(error) : undefined
  }

  /** The file that a module means by a specifier; undefined for a package that is not ours. */
  resolved(specifier: string, importer: string): string | undefined {
    const file =
      fileOf(ours[specifier]) ?? (specifier.startsWith('.') ? path.resolve(path.dirname(importer), specifier) : undefined)
    return file !== undefined && fs.existsSync(file) ? file : undefined
  }

  /** The path of imports from a module back to itself, if there is one. */
  importCycle(file: string): string[] | undefined {
    const visited = new Set<string>()
    const walk = (at: string, trail: string[]): string[] | undefined => {
      for (const next of this.#imports.get(at) ?? []) {
        if (next === file) return [...trail, at, file]
        if (visited.has(next) || isPackage(next)) continue
        visited.add(next)
        const found = walk(next, [...trail, at])
        if (found !== undefined) return found
      }
      return undefined
    }
    return walk(file, [])
  }

  /** A module and all that it imports, but of packages only what it imports itself. */
  reachedFrom(file: string): ReadonlySet<string> {
    const reached = new Set<string>([file])
    // Iterating a set also visits what is added on the way.
    for (const at of reached) {
      if (isPackage(at)) continue
      for (const next of [...(this.#imports.get(at) ?? []), ...this.#importedLater(at)]) reached.add(next)
    }
    return reached
  }

  /**
   * A version of a module's code: changes when it does, or something that it imports, and at no other time. Of packages the
   * version counts.
   */
  codeVersion(file: string): string {
    const known = this.#versions.get(file)
    if (known !== undefined) return known
    const contents = new Set([...this.reachedFrom(file)].map((at) => this.#contentOf(at)))
    const version = sha256([...contents].sort().join('\n')).slice(0, 16)
    this.#versions.set(file, version)
    return version
  }

  /** The version of code that is a module and other files. */
  codeVersionWith(file: string, others: readonly string[]): string {
    const version = this.codeVersion(file)
    if (others.length === 0) return version
    const contents = others.map((each) => `${path.relative(this.#root, each)} ${sha256(bytesOf(each))}`)
    return sha256([version, ...contents].join('\n')).slice(0, 16)
  }

  #record(parentUrl: string | undefined, url: string): void {
    const [importer, imported] = [fileOf(parentUrl), fileOf(url)]
    if (importer === undefined || imported === undefined) return
    const known = this.#imports.get(importer)
    if (known === undefined) this.#imports.set(importer, new Set([imported]))
    else known.add(imported)
  }

  /** In a package without a "type", Node guesses the module format and warns. Types can only be stripped from modules. */
  #needsFormat({ url, format }: { url: string; format?: string | null | undefined }): boolean {
    const file = fileOf(url)
    return !format && file !== undefined && file.endsWith('.ts') && !isPackage(file) && isInside(this.#root, file)
  }

  /** Files that `import('./late.ts')` names: they are loaded when a body runs, after the version is made. */
  #importedLater(file: string): string[] {
    const names = [...textOf(file).matchAll(/\bimport\(\s*(['"])(\.{1,2}\/[^'"]+)\1\s*[,)]/g)].map((match) => match[2] ?? '')
    return names.map((name) => path.resolve(path.dirname(file), name)).filter((it) => fs.existsSync(it))
  }

  #contentOf(file: string): string {
    const known = this.#hashes.get(file)
    const content =
      known ?? (isPackage(file) ? packageVersion(file) : `${path.relative(this.#root, file)} ${sha256(textOf(file))}`)
    if (known === undefined) this.#hashes.set(file, content)
    return content
  }
}

const fileOf = (url: string | undefined): string | undefined => (url?.startsWith('file:') ? fileURLToPath(url) : undefined)

const isPackage = (file: string): boolean => file.includes(`${path.sep}node_modules${path.sep}`)

export const isInside = (folder: string, file: string): boolean => file.startsWith(folder + path.sep)

function textOf(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** A file that is gone by now is as good as empty. */
function bytesOf(file: string): Uint8Array {
  try {
    return fs.readFileSync(file)
  } catch {
    return new Uint8Array()
  }
}

/** `zod@4.1.0`, from the package.json of the package that a file belongs to. */
function packageVersion(file: string): string {
  const marker = `${path.sep}node_modules${path.sep}`
  const start = file.lastIndexOf(marker) + marker.length
  const [scope = '', rest = ''] = file.slice(start).split(path.sep)
  const name = scope.startsWith('@') ? path.join(scope, rest) : scope
  const description = textOf(path.join(file.slice(0, start), name, 'package.json'))
  return `${name}@${/"version"\s*:\s*"([^"]*)"/.exec(description)?.[1] ?? ''}`
}
