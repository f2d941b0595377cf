import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { everyRoute } from '../../../scripts/reference/openapi.ts'
import { NO_ACCESS } from '../access/access.ts'
import { answer, lines } from '../routing/answer.ts'
import { openRoute } from '../routing/route.ts'
import { routerOf } from '../routing/router.ts'
import { openApiOf } from './document.ts'
import { referencePage } from './reference-page.ts'

const routes = everyRoute()

describe('[Q1] a route', () => {
  test('has an operation of its own, and says what it does in a sentence', () => {
    const operations = routes.map(({ operation }) => operation)
    expect(operations.filter((each, at) => operations.indexOf(each) !== at)).toEqual([])
    expect(operations.filter((each) => !/^[a-z][A-Za-z]+$/.test(each))).toEqual([])
    expect(routes.filter(({ summary }) => !/^[A-Z].*[^.]\.$/.test(summary)).map(({ summary }) => summary)).toEqual([])
  })

  test('has an example that it takes, if it has one', () => {
    const shown = routes.filter(({ example }) => example !== undefined)
    expect(shown.length).toBeGreaterThan(10)
    for (const { operation, body, example } of shown)
      expect([operation, body?.safeParse(example).error?.issues]).toEqual([operation, undefined])
  })

  const asked = async (schema: z.ZodType, sent: unknown) => {
    const route = openRoute({
      method: 'GET',
      path: '/x',
      operation: 'x',
      summary: 'Answers.',
      answer: schema,
      handle: () => sent,
    })
    const response = await routerOf([route], NO_ACCESS).request('http://localhost/x')
    return [response.status, await response.json()]
  }
  const declared = z.object({ list: z.array(z.object({ id: z.string() })), at: z.string().nullable() })

  test('sends what it declares, and in tests nothing else: neither another type nor a field too many, at any depth', async () => {
    const right = { list: [{ id: 'a' }], at: null }
    expect(await asked(declared, right)).toEqual([200, right])
    const refused = (place: string) => [
      500,
      expect.objectContaining({ code: 'wrong_answer', detail: expect.stringContaining(place) }),
    ]
    expect(await asked(declared, { ...right, at: 1 })).toEqual(refused('at at:'))
    expect(await asked(declared, { ...right, more: 1 })).toEqual(refused('at more: is not declared'))
    expect(await asked(declared, { ...right, list: [{ id: 'a' }, { id: 'b', more: 1 }] })).toEqual(refused('at list.1.more:'))
    expect(await asked(declared, undefined)).toEqual(refused('at the top'))
  })

  test('that sends a stream is compared line by line', async () => {
    const items = async function* () {
      yield { id: 'a' }
      yield { id: 'b', more: 1 }
    }
    const each = z.object({ id: z.string() })
    const route = openRoute({
      method: 'GET',
      path: '/x',
      operation: 'x',
      summary: 'Streams.',
      answer: lines(each),
      handle: items,
    })
    const response = await routerOf([route], NO_ACCESS).request('http://localhost/x')
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    await expect(response.text()).rejects.toThrow('at more: is not declared')
  })
})

test('[Q2] the same routes give the same document, in whatever order', () => {
  expect(openApiOf(routes)).toEqual(openApiOf(everyRoute()))
  const turned = openApiOf([...routes].reverse())
  expect(turned).toMatchObject({ components: openApiOf(routes)['components'] as object })
})

test('[Q2] the page has every operation and no text of the document as markup, and its policy lets nothing else run', async () => {
  const hostile = '</script><img src=x onerror=alert(1)>"\''
  const route = openRoute({
    method: 'GET',
    path: '/x',
    operation: 'x',
    summary: hostile,
    query: z.object({ q: z.enum([hostile]).describe(hostile) }),
    answer: z.object({ [hostile]: z.string().describe(hostile) }),
    handle: () => answer({}, 200),
  })
  const { html, hashes } = referencePage(openApiOf([...routes, route]))
  expect(html).not.toContain('<img')
  expect(html.match(/<script>/g)).toHaveLength(1)
  expect(html).not.toMatch(/<\w[^>]* (?:src|style|on\w+)=|@import|url\(/)
  for (const { operation } of routes) expect(html).toContain(`<details id="${operation}">`)
  expect(hashes).toEqual([expect.stringMatching(/^'sha256-[\w+/]{43}='$/), expect.stringMatching(/^'sha256-[\w+/]{43}='$/)])
  const served = routes.filter(({ path }) => path === '/api/v1/docs')
  const response = await routerOf(served, NO_ACCESS).request('http://localhost/api/v1/docs')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(response.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; .*style-src 'sha256-[^ ']+'; script-src 'sha256-[^ ']+'$/,
  )
})

describe('[Q3] a list', () => {
  const lists = routes.filter(({ query }) => typeof query === 'object' && 'cursor' in query.shape)

  test('has 50 entries on a page unless told, and from 1 to 1,000', () => {
    expect(lists.length).toBeGreaterThan(12)
    for (const { operation, query } of lists) {
      if (typeof query !== 'object') continue
      const limit = query.shape['limit'] as z.ZodType
      const taken = [undefined, '1', '1000', '0', '1001', 'x'].map((text) => limit.safeParse(text).data)
      expect([operation, taken]).toEqual([operation, [50, 1, 1_000, undefined, undefined, undefined]])
    }
  })

  test('is chosen from by the same words as all others', () => {
    const words = new Set(lists.flatMap(({ query }) => (typeof query === 'object' ? Object.keys(query.shape) : [])))
    expect(
      [...words].filter((word) =>
        ['state', 'states', 'outcome', 'selection', 'assets', 'from', 'to', 'after', 'before'].includes(word),
      ),
    ).toEqual([])
    const bodies = routes.flatMap(({ body }) => (body instanceof z.ZodObject ? Object.keys(body.shape) : []))
    expect(bodies.filter((word) => ['selection', 'assets'].includes(word))).toEqual([])
  })
})

test('[Q4] an answer that is large has an ETag, by which a caller that has it gets 304', async () => {
  expect(routes.filter(({ isTagged }) => isTagged).map(({ operation }) => operation)).toEqual(
    expect.arrayContaining(['getAssetGraph', 'listAssets', 'getAsset', 'getOpenApi']),
  )
  const app = routerOf(
    routes.filter(({ operation }) => operation === 'getOpenApi'),
    NO_ACCESS,
  )
  const ask = async (headers: Record<string, string> = {}) =>
    await app.request('http://localhost/api/v1/openapi.json', { headers })
  const first = await ask()
  const etag = first.headers.get('etag') ?? ''
  expect(await first.json()).toEqual(openApiOf(routes))
  for (const had of [etag, `"other", W/${etag}`, '*']) {
    const again = await ask({ 'if-none-match': had })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
  }
  expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200)
})
