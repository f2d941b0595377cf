import { ServoError } from '../lib/error.ts'

const known = new Set(['UTC'])

/** Refuses what is not the IANA name of a time zone. Offsets are no names, although Intl takes them for some. */
export function checkZoneName(name: unknown): asserts name is string {
  if (typeof name === 'string' && known.has(name)) return
  const shown = JSON.stringify(typeof name === 'string' ? name.slice(0, 60) : (name ?? null))
  if (typeof name === 'string' && /^(?:UTC|GMT)?[+-]\d/i.test(name))
    throw badZone(
      `${shown} is an offset, not a time zone`,
      "Write the IANA name of the zone, such as 'Asia/Kolkata' or 'Europe/Paris', or 'UTC': an offset does not say when clocks change.",
    )
  try {
    if (typeof name !== 'string' || name === '') throw new RangeError('the time zone must be a name')
    new Intl.DateTimeFormat('en', { timeZone: name })
    known.add(name)
  } catch (cause) {
    throw badZone(`${shown} is not a time zone`, "Write an IANA name such as 'Europe/Paris', or 'UTC'.", cause)
  }
}

const badZone = (message: string, hint: string, cause?: unknown): ServoError =>
  new ServoError('invalid', 'bad_timezone', message, { hint, ...(cause === undefined ? {} : { cause }) })
