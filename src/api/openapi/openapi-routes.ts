import { z } from 'zod'
import { named } from '../answers/told.ts'
import { textAnswer } from '../routing/answer.ts'
import { openRoute, type Route } from '../routing/route.ts'
import { openApiOf } from './document.ts'
import { referencePage } from './reference-page.ts'

const DOCUMENT = '/api/v1/openapi.json'

const document = named('OpenApiDocument', z.looseObject({ openapi: z.string() }))

/** Nothing may be loaded, run or framed but the page's own style and script, which are named by their hashes. */
const policyOf = (hashes: readonly string[]): string =>
  `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src ${hashes[0]}; script-src ${hashes[1]}`

const headersOf = (hashes: readonly string[]): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policyOf(hashes),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
})

/** The description of these routes, for programs and for people. It says nothing that the documentation does not, so everybody may read it. */
export function openApiRoutes(described: readonly Route[]): Route[] {
  let made: { openapi: string } | undefined
  let page: ReturnType<typeof referencePage> | undefined
  const routes: Route[] = [
    openRoute({
      method: 'GET',
      path: DOCUMENT,
      operation: 'getOpenApi',
      summary: 'Describes this API as an OpenAPI document.',
      answer: document,
      isTagged: true,
      handle: () => documentOf(),
    }),
    openRoute({
      method: 'GET',
      path: '/api/v1/docs',
      operation: 'getReference',
      summary: 'Shows this API as a page.',
      answer: textAnswer('text/html'),
      handle: () => {
        page ??= referencePage(documentOf())
        return new Response(page.html, { headers: headersOf(page.hashes) })
      },
    }),
  ]
  const documentOf = () => {
    made ??= { openapi: '', ...openApiOf([...described, ...routes]) }
    return made
  }
  return routes
}
