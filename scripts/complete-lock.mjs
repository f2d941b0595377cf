// Adds to package-lock.json the binaries of platforms that the registry at hand does not carry; `npm run relock` calls it.
//
// npm leaves an optional dependency out of the lock file when the registry does not have it, which a mirror may not
// for other platforms than its own; and then `npm ci` refuses that lock file everywhere. Their versions are exact in
// the package that asks for them, and their names say where they run, so we can write the entries down ourselves.
// They carry no integrity; a relock on a machine with a full registry adds it.

import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

function platformOf(name) {
  const words = name.split(/[-/]/)
  const os = words.filter((word) => systems.includes(word))
  const cpu = words.filter((word) => processors.includes(word))
  if (cpu.length !== 1 || (os.length !== 1 && cpu[0] !== 'wasm32')) {
    throw new Error(`${name} is not in the lock file, and its name does not say for which platform it is. Add it by hand.`)
  }
  const libc = os[0] === 'linux' && (/musl/.test(name) ? ['musl'] : /gnu/.test(name) ? ['glibc'] : undefined)
  return { cpu, libc: libc || undefined, os: os.length > 0 ? os : undefined }
}

const file = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', 'package-lock.json')
const lock = JSON.parse(fs.readFileSync(file, 'utf8'))
const added = []
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    if (lock.packages[key]) continue
    if (!/^\d/.test(version)) throw new Error(`${name} is asked for as "${version}", which is not one version. Add it by hand.`)
    const { cpu, libc, os } = platformOf(name)
    // npm's own order of the fields, so that its next visit changes nothing.
    lock.packages[key] = { version, cpu, dev: parent.dev, libc, optional: true, os, peer: parent.peer }
    added.push(`${name}@${version}`)
  }
}
const [rootEntry, ...rest] = Object.entries(lock.packages)
lock.packages = Object.fromEntries([rootEntry, ...rest.sort(([a], [b]) => a.localeCompare(b, 'en'))])
fs.writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`)
console.log(added.length === 0 ? 'the lock file is complete' : `completed the lock file with\n  ${added.join('\n  ')}`)
