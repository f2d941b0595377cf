import { execFileSync, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer, type Http2ServerRequest, type Http2ServerResponse, type Http2Session } from 'node:http2'
import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { atEnd } from './ending.ts'
import { freePort } from './free-port.ts'
import { dyingWithUs } from './postgres.ts'
import { scratchFolder } from './scratch.ts'

/*
 * Flows of steps whose results are durable, one step after the other, by others: DBOS keeps them in PostgreSQL, Restate in a log of its
 * own. The steps run in the benchmark's process, as both do.
 */

export interface Flows {
  /** Resolves when a flow of so many steps, each of which does `step(n)`, is over. */
  run(steps: number, n: number): Promise<void>
}

type Step = (n: number) => number

const folder = path.resolve(import.meta.dirname, '../peers')

/** A package that only this benchmark needs; installs all of them if they are missing. */
function peer<T>(name: string): T {
  if (!existsSync(path.join(folder, 'node_modules'))) {
    console.log('Installing DBOS and Restate for this benchmark …')
    execFileSync('npm', ['ci', '--silent'], { cwd: folder, stdio: 'inherit' })
  }
  return createRequire(path.join(folder, 'package.json'))(name) as T
}

/** The part of its SDK that is used here. */
interface Dbos {
  setConfig(config: object): void
  registerWorkflow<A extends unknown[]>(body: (...args: A) => Promise<void>, options: object): (...args: A) => Promise<void>
  runStep(step: () => Promise<number>, options: object): Promise<number>
  launch(): Promise<void>
  shutdown(): Promise<void>
}

export async function dbosFlows(postgresUrl: string, step: Step): Promise<Flows> {
  const { DBOS } = peer<{ DBOS: Dbos }>('@dbos-inc/dbos-sdk')
  const run = DBOS.registerWorkflow(
    async (steps: number, n: number) => {
      for (let i = 0; i < steps; i++) await DBOS.runStep(async () => step(n), { name: 'step' })
    },
    { name: 'flow' },
  )
  const systemDatabaseUrl = new URL('/dbos', postgresUrl).href
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl, runAdminServer: false, logLevel: 'error' })
  await DBOS.launch()
  atEnd(() => DBOS.shutdown())
  return { run: (steps, n) => run(steps, n) }
}

interface RestateContext {
  run(name: string, step: () => number): Promise<number>
}

interface Restate {
  service(definition: object): unknown
  createEndpointHandler(options: object): (request: Http2ServerRequest, response: Http2ServerResponse) => void
}

export async function restateFlows(step: Step): Promise<Flows> {
  process.env['RESTATE_LOGGING'] = 'ERROR'
  const sdk = peer<Restate>('@restatedev/restate-sdk')
  const [own, ingress, admin, node] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const handlers = {
    async run(ctx: RestateContext, { steps, n }: { steps: number; n: number }) {
      for (let i = 0; i < steps; i++) await ctx.run('step', () => step(n))
    },
  }
  await serve(sdk.createEndpointHandler({ services: [sdk.service({ name: 'flow', handlers })] }), own)
  startRestate({ ingress, admin, node })
  await registered(admin, own)
  return {
    async run(steps, n) {
      await posted(`http://127.0.0.1:${ingress}/flow/run`, { steps, n })
    },
  }
}

/** Listens until the benchmark ends; `serve` of the SDK would never end. */
async function serve(handler: ReturnType<Restate['createEndpointHandler']>, port: number): Promise<void> {
  const server = createServer(handler)
  const sessions = new Set<Http2Session>()
  server.on('session', (session) => sessions.add(session))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    for (const session of sessions) session.destroy()
  })
}

function startRestate(ports: { ingress: number; admin: number; node: number }): void {
  const server = path.join(
    folder,
    `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
  )
  const [command = '', ...args] = [
    ...dyingWithUs,
    server,
    '--no-logo',
    '--node-name',
    'bench',
    '--base-dir',
    scratchFolder('restate'),
  ]
  const env = {
    ...process.env,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ports.ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${ports.admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${ports.node}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${ports.node}`,
    RESTATE_DISABLE_TELEMETRY: 'true',
    RUST_LOG: 'error',
  }
  const child = spawn(command, args, { env, stdio: 'ignore' })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  atEnd(async () => {
    child.kill('SIGTERM')
    await gone
  })
}

/** Tells the server where the steps are, as soon as it answers. */
async function registered(admin: number, own: number): Promise<void> {
  for (let tried = 1; ; tried++) {
    try {
      return await posted(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${own}` })
    } catch (error) {
      if (tried === 100) throw error
      await setTimeout(200)
    }
  }
}

async function posted(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`)
}
