import { readFileSync } from 'node:fs'
import { basename, dirname, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assert } from '../../lib/assert.ts'
import { isObject } from '../../lib/is-object.ts'
import { isText, objectOf, type Shaped } from '../../lib/shape.ts'

/** The versions that Servo is built and tested with: a project begins with the same. */
const isOwnPackage = objectOf({
  name: isText,
  version: isText,
  engines: objectOf({ node: isText }),
  dependencies: objectOf({ zod: isText }),
  devDependencies: objectOf({ '@types/node': isText, typescript: isText }),
})
export type OwnPackage = Shaped<typeof isOwnPackage>

/** The folder of the package that this file belongs to, from the sources and when installed. */
export const packageDir: string = resolve(fileURLToPath(new URL('../../..', import.meta.url)))

export function ownPackage(): OwnPackage {
  const described: unknown = JSON.parse(readFileSync(resolve(packageDir, 'package.json'), 'utf8'))
  assert(isOwnPackage(described), 'package.json of the package lacks a version')
  return described
}

/**
 * What a project in this folder lists to get this very package: the tarball or folder that it was installed from, or its version
 * if it came from a registry. npm keeps that on record beside what it installs, for npx too.
 */
export function ownSpec(projectDir: string, { name, version }: Pick<OwnPackage, 'name' | 'version'>, dir = packageDir): string {
  const isInstalled = basename(dirname(dir)) === 'node_modules'
  const origin = isInstalled ? installedFrom(name, dirname(dir)) : dir
  return origin === undefined ? `^${version}` : `file:${relative(projectDir, origin).replaceAll(sep, '/')}`
}

/** The file that npm installed a package from; undefined if it came from a registry, or another program installed it. */
function installedFrom(name: string, modules: string): string | undefined {
  const resolved = resolvedIn(resolve(modules, '.package-lock.json'), `node_modules/${name}`)
  return resolved?.startsWith('file:') ? resolve(dirname(modules), resolved.slice('file:'.length)) : undefined
}

function resolvedIn(lockFile: string, path: string): string | undefined {
  try {
    const lock: unknown = JSON.parse(readFileSync(lockFile, 'utf8'))
    const entry = isObject(lock) && isObject(lock['packages']) ? lock['packages'][path] : undefined
    return isObject(entry) && isText(entry['resolved']) ? entry['resolved'] : undefined
  } catch {
    // Other package managers keep other records.
    return undefined
  }
}
