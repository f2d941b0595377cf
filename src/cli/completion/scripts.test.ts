import { spawnSync } from 'node:child_process'
import { Argument, Command, Option } from 'commander'
import { expect, test } from 'vitest'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { placesOf } from './places.ts'
import { zshScript } from './zsh.ts'

function program(): Command {
  const servo = new Command('servo').version('1')
  servo
    .command('run [selection...]')
    .description("materialize what's stale")
    .option('--partition <key>', 'a partition')
    .option('--limit <number>', 'how many')
  const runs = servo.command('runs').alias('run-s').description('runs')
  runs.command('logs <run>').description('logs').option('-f, --follow', 'go on').option('--project <dir>', 'where')
  servo.command('why <asset> [partition]').description('why')
  servo.command('graph <asset>').addOption(new Option('--format <format>', 'as').choices(['dot', 'mermaid']))
  servo.command('completion').addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
  servo.command('complete <kind>', { hidden: true })
  const schedules = servo.command('schedules').description('schedules')
  for (const each of ['show <schedule>', 'pause <schedule...>', 'create <schedule>']) schedules.command(each)
  servo.command('send <sensor>')
  return servo
}

const places = placesOf(program())

test('what may come next follows from how commands are declared; hidden commands are left out', () => {
  const of = (where: string) => places.find((place) => place.where === where)
  expect(of('')?.commands.map(({ name }) => name)).toEqual([
    'run',
    'runs',
    'why',
    'graph',
    'completion',
    'schedules',
    'send',
    'help',
  ])
  expect(of(' complete')).toBeUndefined()
  expect(of(' run-s logs')).toEqual({ ...of(' runs logs'), where: ' run-s logs' })
  expect(places.map(({ where, argument }) => `${where}: ${argument}`)).toEqual(
    expect.arrayContaining([
      ' run: assets',
      ' runs logs: run',
      ' why: asset-partition',
      ' graph: asset',
      ' completion: one-of:bash,zsh',
      ' schedules show: schedule',
      ' schedules pause: schedules',
      ' schedules create: anything',
      ' send: sensor',
    ]),
  )
  const values = (where: string) => of(where)?.flags.map(({ name, value }) => `${name} ${value}`)
  expect(values(' run')).toEqual(['--partition partition', '--limit anything', '--help undefined'])
  expect(values(' runs logs')).toEqual(['--follow undefined', '--project folder', '--help undefined'])
  expect(values(' graph')).toEqual(['--format one-of:dot,mermaid', '--help undefined'])
})

test('the script for bash has commands, flags and what they take, and bash can read it', () => {
  const script = bashScript(places)
  expect(script).toContain(
    `    ' run') commands='' flags='--partition --limit --help' values=' --partition=partition --limit=anything ' argument='assets' ;;\n`,
  )
  expect(script).toContain(`    ' runs') commands='logs help' flags='--help' values='  ' argument='anything' ;;\n`)
  expect(script).toMatch(/\ncomplete -F _servo_completion servo\n$/)
  expect(spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
})

test('bash quotes what it completes: nobody runs a command by choosing a partition key', () => {
  const keys = ['acme;id', '$(id)', '`id`', "a'b", '~', '{a,b}', 'two words', 'day=2025-01-01,region=eu']
  const script = `${bashScript(places)}
servo() { printf '%s\\n' ${keys.map((key) => `'${key.replaceAll("'", "'\\''")}'`).join(' ')}; }
COMP_LINE='servo run a --partition ' COMP_POINT=24 COMP_WORDBREAKS=' ' COMP_WORDS=(servo run a --partition '') COMP_CWORD=4
_servo_completion
for word in "\${COMPREPLY[@]}"; do eval "printf '%s\\n' $word"; done`
  const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
  expect(stdout.trimEnd().split('\n')).toEqual(keys)
})

test('the scripts for zsh and fish have descriptions too, with their quotes escaped', () => {
  const zsh = zshScript(places)
  expect(zsh).toMatch(/^#compdef servo\n/)
  expect(zsh).toContain(`'run:materialize what'\\''s stale' 'runs:runs'`)
  expect(zsh).toContain(`flags=('--follow:go on' '--project:where' `)
  const fish = fishScript(places)
  const at = (where: string): string => `complete -c servo -n '__servo_at \\'${where}\\''`
  expect(fish).toContain(`\n${at('')} -a run -d 'materialize what\\'s stale'\n`)
  expect(fish).toContain(`\n${at(' run')} -a '(__servo_ask assets)'\n`)
  expect(fish).toContain(`\n${at(' run')} -l partition -x -a '(__servo_ask partition)' -d 'a partition'\n`)
  expect(fish).toContain(`\n${at(' runs logs')} -s f -l follow -d 'go on'\n`)
  expect(fish).toContain(`\n${at(' graph')} -l format -x -a 'dot mermaid' -d `)
})
