import fs from 'node:fs'
import path from 'node:path'
import { problemOf } from '../../src/api/problem.ts'
import { exitCodeOf } from '../../src/cli/output.ts'
import { type ErrorKind, ServoError } from '../../src/lib/error.ts'
import { errorGroups } from './error-codes.ts'
import { code, page, row, table } from './markdown.ts'

const src = path.resolve(import.meta.dirname, '../../src')

/** How errors and problems are made. A code that is put together from parts is not found; the page lists it all the same. */
const made: readonly RegExp[] = [
  /new ServoError\(\s*'(?<kind>\w+)',\s*'(?<code>\w+)'/g,
  /\binvalid\(\s*'(?<code>\w+)'/g,
  /kind: '(?<kind>\w+)',\s*code: '(?<code>\w+)'/g,
  /\bcode: '(?<code>\w+)'/g,
  /\b(?:refused|notReady|damagedFile|mismatch)\(\s*'(?<code>\w+)'/g,
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

/** Every code that the source names, with its kinds as far as they stand beside it. */
export function codesInSource(): ReadonlyMap<string, ReadonlySet<ErrorKind>> {
  const found = new Map<string, Set<ErrorKind>>()
  for (const text of sources()) {
    for (const { groups = {} } of made.flatMap((pattern) => [...text.matchAll(pattern)])) {
      const { kind, code: name = '' } = groups
      if (others.has(name)) continue
      const kinds = found.get(name) ?? new Set()
      if (kind !== undefined) kinds.add(kind as ErrorKind)
      found.set(name, kinds)
    }
  }
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
    'A status is listed with a code where it differs from that of its kind. Exit codes 0 and 1 of `servo run`, `servo check` and `servo doctor` are answers, not errors: [exit codes](../cli.md#for-programs).',
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
