import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { ServoClient } from '../../../src/client/client.ts'
import { type LocalComponents, localComponents, secretsFile } from '../../../src/server/components.ts'
import { type Ran, Servo } from './servo.ts'
import { asked } from './session.ts'

const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'shop', dirs: ['assets'], pools: { narrow: 1 } })
`

/** Commands that handle signals, wait for others, or let modules print: they have a process of their own. */
const OF_ITS_OWN = /^(?:check|dev|start|init)\b|\s(?:--wait|--follow|-f)\b/

/** A project in a folder of its own, with what a user's project has: a config, modules, and packages. */
export class TestProject {
  readonly dir: string
  readonly #started = new Set<Servo>()
  readonly #components: LocalComponents

  constructor(files: Readonly<Record<string, string>>) {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-e2e-'))
    fs.symlinkSync(path.resolve(import.meta.dirname, '../../../node_modules'), path.join(this.dir, 'node_modules'))
    this.#components = localComponents(this.file('.servo'))
    for (const [name, text] of Object.entries({ 'servo.config.ts': CONFIG, ...files })) this.write(name, text)
  }

  file(name: string): string {
    return path.join(this.dir, name)
  }

  write(name: string, text = ''): void {
    fs.mkdirSync(path.dirname(this.file(name)), { recursive: true })
    fs.writeFileSync(this.file(name), text)
  }

  has(name: string): boolean {
    return fs.existsSync(this.file(name))
  }

  remove(name: string): void {
    fs.rmSync(this.file(name))
  }

  /** Begins a command in the project, by a Node of its own if told. */
  begin(args: readonly string[], env?: Record<string, string>, node?: string): Servo {
    const begun = new Servo(args, { cwd: this.dir, ...(env !== undefined && { env }), ...(node !== undefined && { node }) })
    this.#started.add(begun)
    return begun
  }

  /** Runs a command to its end: in a process of its own or, if it ends by itself, in one that all such commands of the tests share. */
  async servo(...args: string[]): Promise<Ran> {
    return await (OF_ITS_OWN.test(args.join(' ')) ? this.begin(args).ended : this.asked(...args))
  }

  /** Runs a command in a process that stays: the same code without the start, which costs more than most commands. */
  async asked(...args: string[]): Promise<Ran> {
    return await asked(this.dir, ...args)
  }

  /** What a command prints with --json. */
  async json(...args: string[]) {
    const { stdout, stderr, code } = await this.servo(...args, '--json')
    if (code !== 0) throw new Error(`servo ${args.join(' ')} ended with ${code}: ${stderr}`)
    return JSON.parse(stdout)
  }

  /** Rows of the published tables, without a process for the question: DuckDB is loaded once for all tests. */
  async query(sql: string): Promise<Record<string, unknown>[]> {
    return await this.#components.sql(sql)
  }

  /** Starts `servo dev` on any free port and waits until it is ready. */
  async dev(...args: string[]): Promise<Servo> {
    return await this.devIn({}, ...args)
  }

  /** The same with more in its environment. */
  async devIn(env: Record<string, string>, ...args: string[]): Promise<Servo> {
    const dev = this.begin(['dev', '--port', '0', ...args], env)
    await dev.says(/ready in \d+ ms/)
    return dev
  }

  /** The server that runs now, spoken to without a process per question. */
  async client(): Promise<ServoClient> {
    const leader = await this.#components.lease.leader()
    return new ServoClient({ url: leader?.address as string, token: this.token, waitSec: 10 })
  }

  /** Requests a run of the server that runs now, as `servo run --detach` does; returns its id. */
  async request(...selection: string[]): Promise<string> {
    const { run_id } = await (await this.client()).runs.request({ select: selection }, 'somebody')
    return run_id
  }

  /** What the server that runs now knows of a run, as `servo runs show --json` prints it. */
  async shown(runId: string) {
    return await (await this.client()).runs.get(runId)
  }

  /** A server that says itself where it listens; it may not be the one that the folder names. */
  clientOf(dev: Servo): ServoClient {
    return new ServoClient({ url: dev.url, token: this.token, waitSec: 10 })
  }

  /** The file with the secrets of the workspace. */
  get secrets(): string {
    return secretsFile(this.file('.servo'))
  }

  /** What lets a program of this machine speak to the server. */
  get token(): string {
    return this.#secret<{ api_token: string }>().api_token
  }

  /** What run ids are made with. */
  get runIdSecret(): { id: string; value: string } {
    return this.#secret<{ run_ids: { id: string; value: string } }>().run_ids
  }

  #secret<T>(): T {
    return JSON.parse(fs.readFileSync(this.secrets, 'utf8')) as T
  }

  /** Leaves nothing: no process, no folder. */
  async end(): Promise<void> {
    for (const each of this.#started) {
      each.kill('SIGKILL')
      await each.ended
    }
    fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A project for one test. */
export function projectOf(files: Readonly<Record<string, string>>): TestProject {
  const project = new TestProject(files)
  onTestFinished(() => project.end())
  return project
}
