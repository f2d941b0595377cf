import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type CommandRun, runCommand } from '../../src/worker/command.ts'
import { encodeParameter, type PipesContext } from '../../src/worker/pipes.ts'

interface Message {
  readonly method: string
  readonly params: Record<string, unknown>
}

interface Transcript {
  readonly name: string
  readonly script: string
  readonly context: PipesContext
  readonly exit_code: number | null
  readonly messages: readonly Message[]
}

interface Table {
  readonly vectors: readonly { readonly json: object; readonly encoded_by_node: string }[]
  readonly cases: readonly Transcript[]
}

/** What the real dagster-pipes package said, recorded. */
const tableFile = path.resolve(import.meta.dirname, '../../../shared/tables/pipes.json')
const table: Table = fs.existsSync(tableFile)
  ? (JSON.parse(fs.readFileSync(tableFile, 'utf8')) as Table)
  : { vectors: [], cases: [] }

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-dagster-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/** A Python that has the package, or undefined with the reason on the screen. */
const python = ((): string | undefined => {
  try {
    if (table.cases.length === 0) throw new Error(`there is no ${tableFile}`)
    execFileSync('python3', ['-m', 'venv', path.join(folder, 'venv')], { stdio: 'pipe' })
    const found = path.join(folder, 'venv', 'bin', 'python')
    execFileSync(found, ['-m', 'pip', 'install', '--quiet', 'dagster-pipes'], { stdio: 'pipe' })
    return found
  } catch (error) {
    console.warn(`Pipes is not tested against the real package: ${(error as Error).message.split('\n')[0]}`)
    return undefined
  }
})()

function running(script: string, context: PipesContext, more: Partial<CommandRun> = {}) {
  const file = path.join(folder, 's.py')
  fs.writeFileSync(file, script)
  const logs: string[] = []
  const run: CommandRun = {
    assetKey: context.asset_keys[0] ?? '',
    words: [python ?? '', file],
    cwd: folder,
    env: process.env,
    pipes: true,
    context,
    signal: new AbortController().signal,
    retryOn: () => true,
    print: () => undefined,
    log: ({ level, text }) => void logs.push(`${level}: ${text}`),
    ...more,
  }
  return { run, logs, result: runCommand(run) }
}

const context = (name: string): Transcript => table.cases.find((it) => it.name === name) as Transcript

test.each(table.vectors)('parameters are written as Node and Python both read them: %o', ({ json, encoded_by_node }) => {
  expect(encodeParameter(json)).toBe(encoded_by_node)
})

describe.skipIf(python === undefined)('a script that uses the dagster-pipes package runs unchanged', () => {
  test('metadata, data version, checks, logs and messages of its own are kept', async () => {
    const { script, context: given } = context('ok')
    const { result, logs } = running(script, given)
    expect(await result).toEqual({
      outcome: 'SUCCEEDED',
      output: {
        metadata: { rows: 3, url: { raw_value: 'http://x', type: 'url' }, custom_messages: [{ a: [1] }] },
        checks: [{ name: 'not_null', ok: true, severity: 'warn', metadata: { rows: 3 } }],
        data_version: 'v1',
      },
    })
    expect(logs).toEqual(['info: hello'])
  })

  test('one that never closes has done its work, and is told how to tell it better', async () => {
    const { script, context: given } = context('no_close')
    const { result, logs } = running(script, given)
    expect((await result).outcome).toBe('SUCCEEDED')
    expect(logs).toEqual(['info: x', expect.stringContaining('warn: The program ended without closing Pipes')])
  })

  test('one that never opens is told so only if it should have', async () => {
    for (const [pipes, expected] of [
      [true, [expect.stringContaining('never opened Pipes')]],
      [undefined, []],
    ] as const) {
      const { result, logs } = running('print("hi")', context('ok').context, { pipes })
      expect((await result).outcome).toBe('SUCCEEDED')
      expect(logs).toEqual(expected)
    }
  })

  test('an exception is the failure, with its Python traceback, and what was reported before is kept', async () => {
    const { script, context: given, messages } = context('double_materialize')
    const { error, outcome } = await running(script, given).result
    const exception = messages.at(-1)?.params['exception'] as { message: string }
    expect(outcome).toBe('FAILED')
    expect(error).toMatchObject({ category: 'user', message: exception.message.trim(), retryable: true })
    expect(error?.stack).toContain('s.py", line 3, in <module>')
    expect(error?.stack).toMatch(/^Traceback \(most recent call last\):/)
  })

  test('the script sees the context it was given', async () => {
    const { script, context: given, messages } = context('context_access')
    const { output } = await running(script, given).result
    const custom = messages.find(({ method }) => method === 'report_custom_message')?.params['payload']
    expect(output?.metadata).toEqual({ custom_messages: [custom] })
  })

  test('an interrupt is told in the words of Python', async () => {
    const { script, context: given } = context('sigint')
    expect((await running(script, given).result).error).toMatchObject({ message: 'KeyboardInterrupt' })
  })

  test('every case of the table is covered here', () => {
    expect(table.cases.map(({ name }) => name)).toEqual(['ok', 'no_close', 'double_materialize', 'context_access', 'sigint'])
  })

  test('messages arrive while the script is running, and cancelling it is not its failure', async () => {
    const abort = new AbortController()
    const script =
      'import time\nfrom dagster_pipes import open_dagster_pipes\nwith open_dagster_pipes() as c:\n    c.log.warning("begun"); time.sleep(1000)'
    const { result } = running(script, context('ok').context, { signal: abort.signal, log: () => abort.abort() })
    expect((await result).outcome).toBe('CANCELLED')
  })

  test('a check that does not pass fails the attempt unless it only warns', async () => {
    const script = (severity: string) =>
      `from dagster_pipes import open_dagster_pipes\nwith open_dagster_pipes() as c:\n    c.report_asset_check("full", False, severity="${severity}")`
    const failed = await running(script('ERROR'), context('ok').context).result
    expect(failed).toMatchObject({ outcome: 'FAILED', error: { category: 'invalid' }, output: { checks: [{ ok: false }] } })
    expect((await running(script('WARN'), context('ok').context).result).outcome).toBe('SUCCEEDED')
  })

  test('the cause of an exception is part of its traceback', async () => {
    const script =
      'from dagster_pipes import open_dagster_pipes\nwith open_dagster_pipes() as c:\n    try:\n        1 / 0\n    except Exception as e:\n        raise ValueError("worse") from e'
    const { error } = await running(script, context('ok').context).result
    expect(error?.message).toBe('ValueError: worse')
    expect(error?.stack).toMatch(/ZeroDivisionError[\s\S]*direct cause of[\s\S]*ValueError: worse/)
  })
})
