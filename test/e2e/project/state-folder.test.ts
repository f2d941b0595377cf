import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { servo, shell } from '../support/servo.ts'

const ASSETS = `import { asset, command, table } from 'servo-flow'
import { z } from 'zod'
export const rows = table('rows', { schema: z.object({ id: z.number() }), run: () => [{ id: 1 }] })
export const value = asset('value', { run: () => { console.log('made'); return { secret: 1 } } })
export const program = command('program', { run: ['sh', '-c', 'echo made'] })
`

/** `drwx------` as `700`, by path below the folder. */
const rights = (dir: string): Map<string, string> =>
  new Map(
    [dir, ...fs.readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((name) => path.join(dir, name))].map((name) => [
      path.relative(dir, name),
      (fs.statSync(name).mode & 0o777).toString(8),
    ]),
  )

test('[S12] the state is for its owner alone, whatever the umask is, and Git does not see it', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const { code, stderr } = await shell(`umask 000; servo run '*' && servo run rows`, project.dir)
  expect(code, stderr).toBe(0)
  const all = rights(project.file('.servo'))
  expect(all.size).toBeGreaterThan(30)
  const open = [...all].filter(
    ([name, mode]) => mode !== (fs.statSync(project.file(`.servo/${name}`)).isFile() ? '600' : '700'),
  )
  expect(open).toEqual([])

  expect(fs.readFileSync(project.file('.servo/.gitignore'), 'utf8')).toBe('*\n')
  // A folder that came open from elsewhere is closed by the next process that writes to it.
  fs.chmodSync(project.file('.servo'), 0o755)
  // Written once: whoever removes it wants the state in Git.
  project.remove('.servo/.gitignore')
  await project.servo('run', 'rows')
  expect(fs.existsSync(project.file('.servo/.gitignore'))).toBe(false)
  expect(fs.statSync(project.file('.servo')).mode & 0o777).toBe(0o700)
  // Commands about the state find the project as others do.
  fs.mkdirSync(project.file('assets/below'))
  expect(await servo(['verify'], { cwd: project.file('assets/below') })).toMatchObject({ code: 0 })
})

test('[S12] a command that is refused makes no folder for the state, and the first run makes one that Git does not see', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const refused = [
    'run nope',
    'run nope --dry-run',
    'run --failed',
    'runs rerun run_nope',
    'backfills create rows --all --wait',
    'backfills create nope',
    'partitions add customer acme',
    'tokens list',
  ]
  // Unset, as it is for a user: the tests share a cache of compiled code.
  const tried = `unset NODE_COMPILE_CACHE; for command in ${refused.map((command) => `'${command}'`).join(' ')}; do servo $command; done`
  await shell(tried, project.dir)
  expect(fs.readdirSync(project.dir)).not.toContain('.servo')
  await shell(`unset NODE_COMPILE_CACHE; umask 000; servo run value`, project.dir)
  expect(fs.readFileSync(project.file('.servo/.gitignore'), 'utf8')).toBe('*\n')
  expect(fs.statSync(project.file('.servo')).mode & 0o777).toBe(0o700)
})
