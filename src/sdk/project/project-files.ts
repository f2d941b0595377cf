import fs from 'node:fs'
import path from 'node:path'

const configNames = ['servo.config.ts', 'servo.config.mts', 'servo.config.js', 'servo.config.mjs']

export function configFile(root: string): string | undefined {
  return configNames.map((name) => path.join(root, name)).find((file) => fs.existsSync(file))
}

const isModule = (name: string): boolean =>
  /\.m?[jt]s$/.test(name) && !/\.d\.m?ts$/.test(name) && !/\.test\.m?[jt]s$/.test(name)

/** The modules below a folder, or undefined when there is no such folder. */
export function modulesUnder(folder: string): string[] | undefined {
  if (!fs.existsSync(folder)) return undefined
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const file = path.join(folder, entry.name)
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) return []
      if (entry.isDirectory()) return modulesUnder(file) ?? []
      return isModule(entry.name) ? [file] : []
    })
}
