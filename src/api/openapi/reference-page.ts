import { sha256Bytes } from '../../lib/hash.ts'
import { isObject } from '../../lib/is-object.ts'

type Json = Readonly<Record<string, unknown>>

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --dim: #777 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line) }
input { font: inherit; width: 100%; padding: .4rem .6rem; box-sizing: border-box; position: sticky; top: .5rem }
details { border-bottom: 1px solid var(--line); padding: .35rem 0 } summary { cursor: pointer }
code, pre { font: 13px/1.45 ui-monospace, monospace } pre { overflow: auto; padding: .6rem; border: 1px solid var(--line) }
.method { display: inline-block; min-width: 4.2rem; font-weight: 600 } .dim { color: var(--dim) }
table { border-collapse: collapse; width: 100% } td { border-top: 1px solid var(--line); padding: .2rem .6rem .2rem 0; vertical-align: top }
[hidden] { display: none }
`

const SCRIPT = `
const input = document.querySelector('input')
const all = [...document.querySelectorAll('details')].map((each) => [each, each.textContent.toLowerCase()])
input.addEventListener('input', () => {
  const words = input.value.toLowerCase().split(/\\s+/)
  for (const [each, text] of all) each.hidden = !words.every((word) => text.includes(word))
  for (const part of document.querySelectorAll('section')) part.hidden = part.querySelector('details:not([hidden])') === null
})
if (location.hash !== '') document.getElementById(decodeURIComponent(location.hash.slice(1)))?.setAttribute('open', '')
`

/** The whole document as one page that needs nothing else. `hashes` name its style and its script for a policy that forbids all others. */
export function referencePage(document: Json): { html: string; hashes: readonly string[] } {
  const { info, paths, components } = document
  const operations = membersOf(paths).flatMap(([path, methods]) =>
    membersOf(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation: objectOf(operation) })),
  )
  const tags = [...new Set(operations.map(({ operation }) => textOf(listOf(operation.tags)[0])))].sort()
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => textOf(listOf(operation.tags)[0]) === tag)
    return `<section><h2>${escaped(tag)}</h2>${own.map(operationHtml).join('')}</section>`
  })
  const schemas = membersOf(objectOf(components).schemas).map(
    ([name, schema]) =>
      `<details id="${escaped(name)}"><summary><code>${escaped(name)}</code></summary>${schemaHtml(schema)}</details>`,
  )
  const title = `${textOf(objectOf(info).title)} API`
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><h1>${escaped(title)}</h1><p>${escaped(textOf(objectOf(info).description))} <a href="openapi.json">openapi.json</a></p>
<input type="search" placeholder="Search: runs cancel" aria-label="Search">
${sections.join('\n')}
<section><h2>schemas</h2>${schemas.join('\n')}</section>
<script>${SCRIPT}</script></body></html>
`
  return { html, hashes: [STYLE, SCRIPT].map((text) => `'sha256-${Buffer.from(sha256Bytes(text)).toString('base64')}'`) }
}

function operationHtml({ path, method, operation }: { path: string; method: string; operation: Json }): string {
  const id = textOf(operation.operationId)
  const needs = listOf(operation.security).flatMap((each) =>
    membersOf(each).map(([scheme, roles]) => [scheme, ...listOf(roles)].join(' ')),
  )
  const parameters = listOf(operation.parameters).map((each) => {
    const { name, in: where, description, schema } = objectOf(each)
    return `<tr><td><code>${escaped(textOf(name))}</code></td><td class="dim">${escaped(textOf(where))}</td><td>${escaped(textOf(description))} ${schemaText(schema)}</td></tr>`
  })
  const body = contentHtml(objectOf(operation.requestBody).content)
  const answers = membersOf(operation.responses).map(([status, response]) => {
    const { $ref, description, content } = objectOf(response)
    const isProblem = $ref !== undefined
    return `<tr><td>${escaped(status)}</td><td>${isProblem ? '<a href="#Problem">problem</a>' : `${escaped(textOf(description))}${contentHtml(content)}`}</td></tr>`
  })
  return `<details id="${escaped(id)}"><summary><span class="method">${method}</span><code>${escaped(path)}</code> <span class="dim">${escaped(textOf(operation.summary))}</span></summary>
<p class="dim">${escaped(id)}${needs.length > 0 ? ` · needs ${escaped(needs.join(' or '))}` : ''}</p>
${parameters.length > 0 ? `<table>${parameters.join('')}</table>` : ''}${body === '' ? '' : `<p>Body</p>${body}`}
<p>Answers</p><table>${answers.join('')}</table></details>`
}

const contentHtml = (content: unknown): string =>
  membersOf(content)
    .map(([type, media]) => {
      const { schema, 'x-itemSchema': item, example } = objectOf(media)
      const shown = example === undefined ? '' : `<pre>${escaped(JSON.stringify(example, null, 2))}</pre>`
      return `<div><code class="dim">${escaped(type)}</code>${schemaHtml(item ?? schema)}${shown}</div>`
    })
    .join('')

/** A link to a schema that has a name, or the schema itself. */
function schemaHtml(schema: unknown): string {
  const { $ref } = objectOf(schema)
  if (typeof $ref === 'string') return ` ${schemaText(schema)}`
  return membersOf(schema).length === 0 ? '' : `<pre>${linked(escaped(JSON.stringify(schema, null, 2)))}</pre>`
}

function schemaText(schema: unknown): string {
  const { $ref } = objectOf(schema)
  if (typeof $ref !== 'string') return `<code class="dim">${escaped(JSON.stringify(schema) ?? '')}</code>`
  const name = escaped($ref.split('/').at(-1) ?? '')
  return `<a href="#${name}"><code>${name}</code></a>`
}

/** References in text that is escaped already become links. */
const linked = (html: string): string =>
  html.replaceAll(/#\/components\/schemas\/(\w+)/g, (whole, name: string) => `<a href="#${name}">${whole}</a>`)

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => escapes[character] ?? '')

const objectOf = (value: unknown): Json => (isObject(value) ? value : {})
const membersOf = (value: unknown): [string, unknown][] => Object.entries(objectOf(value))
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
