import fs from 'node:fs'
import path from 'node:path'
import { problemOf } from '../../src/api/problem.ts'
import { exitCodeOf } from '../../src/cli/output.ts'
import { type ErrorKind, ServoError } from '../../src/lib/error.ts'
import { errorGroups } from './error-codes.ts'
import { code, page, row, table } from './markdown.ts'

const src = path.resolve(import.meta.dirname, '../../src')

/** How errors and problems are made. A code that is put together from parts is not found; the page lists it all the same. */
const made: readonly { readonly pattern: RegExp; readonly kind?: ErrorKind }[] = [
  { pattern: /new ServoError\(\s*'(?<kind>\w+)',\s*'(?<code>\w+)'/g },
  { pattern: /kind: '(?<kind>\w+)',\s*code: '(?<code>\w+)'/g },
  { pattern: /\binvalid\(\s*'(?<code>\w+)'/g, kind: 'invalid' },
  { pattern: /\brefused?\(\s*'(?<code>[a-z]+_[a-z_]+)'/g, kind: 'invalid' },
  { pattern: /\bcheck(?:Labels|WholeNumber)\(\s*'(?<code>\w+)'/g, kind: 'invalid' },
  { pattern: /\brefusedTransition\(\s*'(?<code>\w+)'/g, kind: 'conflict' },
  { pattern: /\bnotReady\(\s*'(?<code>\w+)'/g, kind: 'unavailable' },
  { pattern: /\bdamagedFile\(\s*'(?<code>\w+)'/g, kind: 'corrupt' },
  { pattern: /\bmismatch\(\s*'(?<code>\w+)'/g, kind: 'corrupt' },
  // A problem of a project, which has a code and no kind.
  { pattern: /\bcode: '(?<code>\w+)'/g },
]

/** Codes of something else: an issue of zod, reasons of ticks, and what is wrong with a key, which the message carries. */
const others = new Set([
  'custom',
  'catchup_limit',
  'catchup_window',
  'unknown_key',
  'outside_range',
  'not_closed',
  'other_kind',
])

/** Kinds of codes that the source passes on from somewhere else. */
const passedOn: readonly (readonly [ErrorKind, readonly string[]])[] = [
  ['invalid', ['wrong_audience']],
  ['conflict', ['sensor_paused', 'disabled', 'removed', 'automation_paused', 'stale_attempt', 'wrong_attempt_id']],
  ['unavailable', ['paused', 'disabled', 'automation_paused', 'no_answer_yet', 'not_reached', 'no_access']],
]

/** Every code that the source names, with its kinds as far as they stand beside it. */
export function codesInSource(): ReadonlyMap<string, ReadonlySet<ErrorKind>> {
  const found = new Map<string, Set<ErrorKind>>()
  for (const text of sources()) {
    for (const { pattern, kind: usual } of made) {
      for (const { groups = {} } of text.matchAll(pattern)) {
        const { kind = usual, code: name = '' } = groups
        if (others.has(name)) continue
        const kinds = found.get(name) ?? new Set()
        if (kind !== undefined) kinds.add(kind as ErrorKind)
        found.set(name, kinds)
      }
    }
  }
  for (const [kind, names] of passedOn) for (const name of names) found.set(name, new Set(found.get(name)).add(kind))
  return found
}

/** The text of all modules but tests. */
export function sources(): readonly string[] {
  return fs
    .readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.startsWith('testing'))
    .sort()
    .map((file) => fs.readFileSync(path.join(src, file), 'utf8'))
}

const kinds: Readonly<Record<ErrorKind, string>> = {
  invalid: 'The request or the code is wrong. Change it.',
  not_found: 'The thing that was named does not exist.',
  conflict: 'The present state rules it out.',
  unavailable: 'Something needed is missing for now. Trying again may help.',
  corrupt: 'A file is damaged.',
  bug: 'A mistake of Servo. Please report it.',
}

export function errorsPage(): string {
  const known = codesInSource()
  const statusOf = (kind: ErrorKind, name: string): number => problemOf(new ServoError(kind, name, '')).status
  return page(
    '# Errors',
    'Every error has a `kind`, a stable `code`, a message and usually a hint. Programs should test `kind` and `code`; messages change. With `--json` a command prints `{"error":{"kind","code","message","hint"}}` on standard error; the HTTP API answers with `application/problem+json`. The kind decides the exit code of a command and the status of an answer.',
    table(
      ['kind', 'exit code', 'HTTP status', ''],
      Object.entries(kinds).map(([kind, text]) => [
        code(kind),
        String(exitCodeOf(kind as ErrorKind, '')),
        String(statusOf(kind as ErrorKind, '')),
        text,
      ]),
    ),
    'A code without a kind is that of a problem in a list. A status is listed with a code where it differs from that of its kind. Exit codes 0 and 1 of `servo run`, `servo check` and `servo doctor` are answers, not errors: [exit codes](../cli.md#for-programs).',
    ...errorGroups.flatMap(({ title, about, codes }) => [
      `## ${title}`,
      about,
      [
        row('code', 'kind', 'meaning'),
        '| --- | --- | --- |',
        ...Object.entries(codes).map(([name, text]) => {
          const own = [...(known.get(name) ?? [])]
          const exact = [
            ...new Set(
              own.map((kind) => statusOf(kind, name)).filter((status, at) => status !== statusOf(own[at] ?? 'bug', '')),
            ),
          ]
          return row(code(name), own.map(code).join(', '), text + (exact.length > 0 ? ` HTTP ${exact.join(', ')}.` : ''))
        }),
      ].join('\n'),
    ]),
  )
}
