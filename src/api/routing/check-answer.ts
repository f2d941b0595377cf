import type { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'

/**
 * Throws if an answer is not what its schema says, a field that the schema does not have included. Tests have every answer of a server
 * checked. In production nobody pays for it: the compiler has compared the types.
 */
export function checkAnswer(schema: z.ZodType, answer: unknown): void {
  const sent: unknown = JSON.parse(JSON.stringify(answer) ?? 'null')
  const parsed = schema.safeParse(sent)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw wrongAnswer(issue?.path ?? [], issue?.message ?? 'is not as declared')
  }
  const more = unknownField(sent, parsed.data)
  if (more !== undefined) throw wrongAnswer(more, 'is not declared')
}

/** The path of the first field that the schema dropped. */
function unknownField(sent: unknown, parsed: unknown): PropertyKey[] | undefined {
  if (Array.isArray(sent) && Array.isArray(parsed)) return firstOf(sent.entries(), (at) => parsed[at])
  if (!isObject(sent) || !isObject(parsed)) return undefined
  const dropped = Object.keys(sent).find((name) => !Object.hasOwn(parsed, name))
  return dropped === undefined ? firstOf(Object.entries(sent), (name) => parsed[name]) : [dropped]
}

function firstOf<K extends PropertyKey>(
  members: Iterable<[K, unknown]>,
  parsed: (name: K) => unknown,
): PropertyKey[] | undefined {
  for (const [name, value] of members) {
    const deeper = unknownField(value, parsed(name))
    if (deeper !== undefined) return [name, ...deeper]
  }
  return undefined
}

const wrongAnswer = (path: readonly PropertyKey[], why: string): ServoError =>
  new ServoError(
    'bug',
    'wrong_answer',
    `the answer differs from its schema at ${path.map(String).join('.') || 'the top'}: ${why}`,
    {
      hint: 'Correct the answer, or the schema that its route declares.',
    },
  )
