// The JavaScript that is published. Node takes about a millisecond to load a module, and a server has some four hundred: joined into
// fewer files it starts in half the time. A module is in one file only, whoever loads it, so that there is one copy of it.

import path from 'node:path'
import { build, type Plugin } from 'rolldown'

const root = path.resolve(import.meta.dirname, '..')

/** Files that something starts or imports by name. They keep their place, so that they are found as in src/. */
const entries = [
  'index',
  'test',
  'client/index',
  'testing/conformance/index',
  'cli/bin',
  'cli/main',
  'cli/check/check-process',
  'server/machine/worker-process',
  'server/machine/query-process',
  'engine/publish/encoder-thread',
  'adapters/fs/writer-thread',
]

const TOP = '@top@'

/** Lets `import.meta` name the place that a module has in src/, whichever file it ends up in. */
const ownPlaces: Plugin = {
  name: 'own-places',
  transform(code, id) {
    if (!code.includes('import.meta.')) return null
    const file = path.relative(path.join(root, 'src'), id).replaceAll(path.sep, '/').replace(/\.ts$/, '.js')
    const places: Record<string, string> = {
      url: `new URL('${TOP}/${file}', import.meta.url).href`,
      filename: `(import.meta.dirname + '/${TOP}/${file}')`,
      dirname: `(import.meta.dirname + '/${TOP}/${path.posix.dirname(file)}')`,
    }
    return code.replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, what: string) => places[what] ?? '')
  },
  renderChunk(code, { fileName }) {
    return code.includes(TOP) ? code.replaceAll(TOP, path.posix.relative(path.posix.dirname(fileName), '.') || '.') : null
  },
}

/** The files, by their names below dist/. */
export async function bundle(): Promise<{ name: string; code: string }[]> {
  const { output } = await build({
    cwd: root,
    input: Object.fromEntries(entries.map((name) => [name, path.join(root, 'src', `${name}.ts`)])),
    platform: 'node',
    // Packages are installed beside ours, and projects share them.
    external: /^[^./]/,
    plugins: [ownPlaces],
    write: false,
    output: { format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' },
  })
  return output.flatMap((file) => (file.type === 'chunk' ? [{ name: file.fileName, code: file.code }] : []))
}
