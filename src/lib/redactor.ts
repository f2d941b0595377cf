/** As words of a name, or parts of one: `API_TOKEN`, `SSHKEY`. */
const SECRET_NAME = /TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL/i

/** What OpenTelemetry sends to a collector with each request. */
const OTLP_HEADERS = /^OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS$/

/** Of what only looks like a secret by its name, shorter values would take words out of text that have nothing to do with it. */
const MIN_LENGTH = 8
/** Whoever declares a secret means it, also if it is short. */
const MIN_DECLARED = 4

/** The longest secret that is also found where text is cut: callers keep this much more of it, and leave that out. */
export const LONGEST_SECRET = 4_096

/** Code that makes a new token a second must not fill the memory. */
const MOST_SECRETS = 1_000

type Environment = Readonly<Record<string, string | undefined>>

/** The secrets of an environment, by the names of their variables: those that are declared, and those whose names look so. */
export function secretsOf(environment: Environment, declared: Iterable<string> = []): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of declared) {
    const value = environment[name] ?? ''
    if (value.trim().length >= MIN_DECLARED) found.set(name, value)
  }
  for (const name of Object.keys(environment)) {
    if (found.has(name)) continue
    const value = environment[name] ?? ''
    const secret = SECRET_NAME.test(name) ? value : (passwordIn(value) ?? '')
    if (secret.trim().length >= MIN_LENGTH) found.set(name, secret)
    if (OTLP_HEADERS.test(name)) for (const [header, each] of headersIn(value)) found.set(`${name} ${header}`, each)
  }
  return found
}

/** `authorization=Bearer%20t0p-s3cret,x-team=shop`: collectors are sent what lets us in. */
function* headersIn(value: string): Generator<[name: string, value: string]> {
  for (const pair of value.split(',')) {
    const at = pair.indexOf('=')
    const text = pair
      .slice(at + 1)
      .replaceAll('%20', ' ')
      .trim()
    // Of `Bearer t0p-s3cret` only the second word is a secret.
    const secret = text.split(/\s+/).at(-1) ?? ''
    if (at > 0 && secret.length >= MIN_LENGTH) yield [pair.slice(0, at).trim(), secret]
  }
}

/** `postgres://shop:the-password@db/shop`. The last `@` counts, as in `new URL()`. */
const passwordIn = (value: string): string | undefined => /^\s*[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:([^\s/?#]+)@/i.exec(value)?.[1]

/** Takes secrets out of text before it leaves the process: what is recorded stays for ever. */
export class Redactor {
  readonly #known = new Set<string>()
  /** Each way to write a secret, and what stands there instead; the longest first, because one may contain another. */
  #forms: (readonly [form: string, instead: string])[] = []

  /** Also secrets that are gone by now were secrets. */
  learn(secrets: ReadonlyMap<string, string>): void {
    let isNew = false
    for (const [name, value] of secrets) {
      if (this.#known.has(value) || this.#known.size >= MOST_SECRETS) continue
      this.#known.add(value)
      isNew = true
      for (const form of formsOf(value)) this.#forms.push([form, `[redacted ${name}]`])
    }
    if (isNew) this.#forms.sort(([a], [b]) => b.length - a.length)
  }

  readonly text = (text: string): string => {
    let redacted = text
    for (const [form, instead] of this.#forms) if (redacted.includes(form)) redacted = redacted.replaceAll(form, () => instead)
    return redacted
  }

  /** All text in a JSON value, names of members included. */
  json(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((item) => this.json(item))
    if (typeof value !== 'object' || value === null) return value
    return this.members(value)
  }

  members(value: object): Record<string, unknown> {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [this.text(name), this.json(member)]))
  }
}

/** The end of text that is kept while it comes, with `LONGEST_SECRET` more than is wanted: half a secret is not recognised. */
export function redactedEnd(kept: string, most: number, redact: (text: string) => string): string {
  const text = redact(kept)
  return (kept.length >= most + LONGEST_SECRET ? text.slice(LONGEST_SECRET) : text).slice(-most)
}

/** A secret as it is, and as it looks in JSON, in JSON within JSON, in an address, and in base64 at whatever place. */
function formsOf(secret: string): Set<string> {
  const value = secret.trim()
  const forms = new Set([secret, value, inJson(value), inJson(inJson(value))])
  for (const part of [passwordIn(value), decoded(value)])
    if (part !== undefined && part.length >= MIN_DECLARED) for (const form of formsOf(part)) forms.add(form)
  if (value.isWellFormed()) {
    const inAddress = encodeURIComponent(value)
    for (const form of [inAddress, inAddress.replaceAll('%20', '+'), encodeURI(value)]) forms.add(form)
  }
  if (value.length >= MIN_LENGTH) for (const form of inBase64(value)) forms.add(form)
  // The ends of lines of a private key are often written as `\n`. What every key begins and ends with is no secret.
  const lines = value.split(/\r?\n|(?:\\r)?\\n/).map((each) => each.trim())
  if (lines.length > 1)
    for (const line of lines)
      if (line.length >= MIN_LENGTH && !line.startsWith('-----')) for (const form of formsOf(line)) forms.add(form)
  return forms
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** What code passes on is often the decoded password of an address. Undefined if nothing is encoded in it. */
function decoded(value: string): string | undefined {
  try {
    const text = decodeURIComponent(value)
    return text === value ? undefined : text
  } catch {
    return undefined
  }
}

/** Three bytes are four characters, so a secret in the middle of something else has one of three forms. */
function* inBase64(value: string): Generator<string> {
  const bytes = Buffer.from(value)
  for (const before of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    // Characters that also depend on what stands before and behind are no part of it.
    const form = encoded.slice([0, 2, 3][before], Math.floor(((before + bytes.length) * 8) / 6))
    yield form
    yield form.replaceAll('+', '-').replaceAll('/', '_')
  }
}
