import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ownPackage, ownSpec } from './own-package.ts'

const own = { name: 'servo-flow', version: '1.2.3' }

/** A folder in which npm, or another program, installed the package. */
function installed(resolved?: string): { dir: string; packageDir: string } {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-own-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true }))
  const packageDir = path.join(dir, '_npx/a1b2/node_modules/servo-flow')
  fs.mkdirSync(packageDir, { recursive: true })
  const lock = { packages: { 'node_modules/servo-flow': { version: '1.2.3', resolved } } }
  if (resolved !== undefined) fs.writeFileSync(path.join(packageDir, '../.package-lock.json'), JSON.stringify(lock))
  return { dir, packageDir }
}

test('a package that npm installed from a tarball is listed by its path', () => {
  const { dir, packageDir } = installed('file:../../work/servo-flow-1.2.3.tgz')
  expect(ownSpec(path.join(dir, 'work/shop'), own, packageDir)).toBe('file:../servo-flow-1.2.3.tgz')
})

test('one that came from a registry, or by another program, is listed by its version', () => {
  const { dir, packageDir } = installed('https://registry.example/servo-flow/-/servo-flow-1.2.3.tgz')
  expect(ownSpec(dir, own, packageDir)).toBe('^1.2.3')
  const other = installed()
  expect(ownSpec(other.dir, own, other.packageDir)).toBe('^1.2.3')
})

test('one that nobody installed, such as a clone, is listed by its folder', () => {
  expect(ownSpec('/home/ana/shop', own, '/home/ana/servo')).toBe('file:../servo')
})

test('the package of this source says which versions it is built with', () => {
  expect(ownPackage()).toMatchObject({ name: 'servo-flow', engines: { node: '>=22.18' } })
})
