import fs from 'node:fs'
import path from 'node:path'
import { alertKinds } from '../../src/contract/alert.ts'
import { timingBounds } from '../../src/sdk/declare/config.ts'
import { sources } from './errors.ts'
import { code, page, table } from './markdown.ts'

const declarations = ['declare/config', 'declare/alerts/alert', 'server-config']
  .map((name) => fs.readFileSync(path.resolve(import.meta.dirname, `../../src/sdk/${name}.ts`), 'utf8'))
  .join('\n')

interface Field {
  readonly name: string
  readonly type: string
  readonly isOptional: boolean
  readonly doc: string
}

/** The fields of an interface of the config, each with the comment above it. */
function fieldsOf(name: string): readonly Field[] {
  const [, body] = new RegExp(`^export interface ${name} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(declarations) ?? []
  if (body === undefined) throw new Error(`the config has no interface ${name}`)
  return [...body.matchAll(/^(?: {2}\/\*\* (.*) \*\/\n)? {2}(\w+)(\??): (.+)$/gm)].map(
    ([, doc = '', field = '', optional, type = '']) => ({ name: field, type, isOptional: optional === '?', doc }),
  )
}

/** What the fields are that have no comment, because their type says it all to an author. */
const said: Readonly<Record<string, string>> = {
  'Config.timing': 'How patient Servo is: [timing](#timing).',
  'ServerConfig.limits': 'How much it takes on at a time: [limits](#serverlimits).',
  'Environment.storage': "Where the state is kept. For `dev`: `local('.servo')`.",
  'Environment.queue':
    'Where attempts run. For `dev`: `inProcess({ concurrency: 8 })`; without `concurrency` there is no cap on all queues together.',
}

function fieldTable(name: string, last?: readonly [string, (field: Field) => string]): string {
  const fields = fieldsOf(name)
  return table(
    ['field', 'type', 'required', '', ...(last === undefined ? [] : [last[0]])],
    fields.map((field) => [
      code(field.name),
      code(field.type.replaceAll(/\breadonly |Readonly<(.+)>$/g, '$1')),
      field.isOptional ? '' : 'yes',
      field.doc || (said[`${name}.${field.name}`] ?? ''),
      ...(last === undefined ? [] : [last[1](field)]),
    ]),
  )
}

/** The variables that Servo itself reads. The golden test fails when the source reads another. */
export const variables: Readonly<Record<string, string>> = {
  SERVO_CHECK_ANSWERS: 'Set to `1`, a server compares each answer with the schema of its route. For tests.',
  SERVO_DEBUG: 'Set to `1`, a command that fails prints the stack of its error.',
  SERVO_LEASE_MS:
    'How long a candidate waits for a sign of life from a leader, in milliseconds; 10000 by default. It must be the same for every process of a project.',
  SERVO_LOOK_MS: 'How often the leader lists the ledger for segments of other processes, in milliseconds; 10000 by default.',
  SERVO_PUBLIC_URL:
    'The address by which others reach the server: a name it goes by, where workers of other machines report to, and the audience of Pub/Sub pushes.',
  SERVO_RETENTION_MS:
    'How long values that `keep` does not keep are left to readers, and how long a pass waits for more, in milliseconds; a quarter of an hour and a minute by default. For tests.',
  SERVO_TOKEN: 'The token for the server at `SERVO_URL`.',
  SERVO_URL: 'The address of a server elsewhere that commands ask. From the environment only, not from files of a project.',
  SERVO_WATCH: "Set to `off`, Servo does not watch the ledger's folder. For network file systems, which do not report changes.",
}

/** Variables that Servo sets, for its own processes and for programs that it starts. */
export const notSettings: readonly string[] = [
  'SERVO_WORKER',
  'SERVO_ASSET',
  'SERVO_PARTITION',
  'SERVO_PARTITION_',
  'SERVO_WINDOW_START',
  'SERVO_WINDOW_END',
  'SERVO_RUN_ID',
  'SERVO_ATTEMPT',
  'SERVO_INPUT_',
  'SERVO_INPUTS',
  'SERVO_OUTPUT',
]

/** Every variable that begins with SERVO_ in the source, but for those of examples in comments and messages. */
export const variablesInSource = (): ReadonlySet<string> =>
  new Set(sources().flatMap((text) => [...text.matchAll(/(?:'|\.)(SERVO_[A-Z_]+)\b/g)].map(([, name = '']) => name)))

export function configPage(): string {
  return page(
    '# Config',
    '`servo.config.ts` in the project folder exports what `defineConfig()` returns. A field that does not exist is refused when the project loads. [The SDK](../sdk.md#a-project) has an example with every field.',
    fieldTable('Config'),
    '## environments',
    fieldTable('Environment'),
    "`dev` takes `local('.servo')` and `inProcess()`. Other environments (`s3`, `gcs`, `postgres`, `cloudTasks`) are refused as `not_available_yet`.",
    '## queues',
    'The key is the name that assets give as `queue`. [Workers](../workers.md) says how a worker takes work.',
    fieldTable('WorkerQueue'),
    '## timing',
    'Durations are texts such as `500ms`, `30s`, `5m`, `2h` or `7d`.',
    fieldTable('Timing', ['from, to', ({ name }) => boundsText(name)]),
    '## keep',
    'Which stored values are kept of each partition. An asset may say otherwise with `keep` of its own. Runs, events and tables are kept for ever: [What Servo keeps](../how-to/retention.md).',
    table(
      ['field', 'type', 'from, to', ''],
      [
        [code('versions'), code('number'), '1, 1000', 'The newest so many materializations; 1, the current one, unless set.'],
        [code('days'), code('number'), '0, 36500', 'How long a value stays after it was pushed out of these; 0 unless set.'],
      ],
    ),
    '## server',
    'Who may call the server besides holders of API tokens, and how much it takes on. [Deploy](../how-to/deploy.md#who-may-call) has examples.',
    fieldTable('ServerConfig'),
    '### server.oidc',
    fieldTable('Oidc'),
    '### server.limits',
    fieldTable('LimitsConfig'),
    '## alerts',
    `Who is told, by webhook: [Observe Servo](../how-to/observe.md#alerts). \`on\` takes ${alertKinds.map(code).join(', ')}.`,
    fieldTable('Alert'),
    '## Environment variables',
    'Servo reads these from the environment, then from `.env.local` and `.env` in the project folder. The first that sets a variable counts.',
    table(
      ['variable', ''],
      Object.entries(variables).map(([name, text]) => [code(name), text]),
    ),
    'Resources read a variable for each field of their `config`: the field `apiToken` of `shop-api` is `SERVO_SHOP_API_API_TOKEN`. `TRACEPARENT` continues a trace, and the variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT`, …) send [traces](../how-to/observe.md#traces). `NO_COLOR`, `FORCE_COLOR`, `CI` and `TERM` mean what they mean to other programs.',
  )
}

function boundsText(name: string): string {
  const bounds = Object.entries(timingBounds).find(([field]) => field === name)?.[1]
  return bounds === undefined ? '' : `${code(bounds.least)}, ${code(bounds.most)}`
}
