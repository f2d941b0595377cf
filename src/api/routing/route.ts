import type { Context } from 'hono'
import type { z } from 'zod'
import { isObject } from '../../lib/is-object.ts'
import { type Access, admit, type Caller } from '../access/access.ts'
import type { Role } from '../access/roles.ts'
import { known } from '../answers/told.ts'
import { readBody } from '../read-body.ts'
import type { KeptAnswers } from '../request/kept-answers.ts'
import { checkedQuery } from '../request/parameters.ts'
import { type ReadFrom, type ReadParameters, type Reads, readParameters, takeReadParameters } from '../request/reads.ts'
import { requestIdInHeader } from '../request/request-id.ts'
import { type Answer, type Handled, respond } from './answer.ts'

/** The path below which everything is that needs a token. */
export const BASE = '/api/v1/orchestration'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** A proof that a caller brings instead of an API token: the token of an attempt, or the signature of a message. */
export type OwnProof = 'task_token' | 'signature'

/** What a route needs of its caller. */
export type Need = Role | OwnProof | 'nothing'

/** What a route says of itself to whoever calls it. */
interface Described {
  readonly method: Method
  /** Names it in the OpenAPI document, and in clients that are generated from it. */
  readonly operation: string
  /** What it does, in a line. */
  readonly summary: string
  /** The parameters it takes; undefined if it takes none, `ignored` if it does not look at them. */
  readonly query?: z.ZodObject | 'ignored' | undefined
  /** The JSON it takes; undefined if it takes none, or reads the body by rules of its own. */
  readonly body?: z.ZodType | undefined
  /** A body, for readers of the documentation. */
  readonly example?: object | undefined
  readonly answer: Answer
  /** True for answers that are large and change seldom: they have an ETag, and 304 tells a caller that it has the newest one. */
  readonly isTagged?: boolean | undefined
  /** Statuses of its problems, besides those that follow from what it needs and takes. */
  readonly problems?: readonly number[] | undefined
}

/** A route as it is declared, once. The router, the documentation, clients and tests are made from this. */
export interface Route extends Described {
  /** With `:name` for each part that varies. */
  readonly path: string
  readonly needs: Need
  /** The status of an answer, the usual one first. */
  readonly statuses: readonly [number, ...number[]]
  /** True if it may wait for long, until there is something to answer. */
  readonly waits: boolean
  /** A change may be asked for under an id, and a read may wait until it shows a change. Callers who prove who they are in a way of their own do neither. */
  readonly does: 'change' | 'read' | 'other'
  /** Answers a request for this route: first who calls, then what is asked. */
  readonly serve: (c: Context, by: Served) => Promise<Response>
}

/** What routes are served with. */
export interface Served {
  readonly access: Access
  /** Recognizes requests that are repeated. */
  readonly answers?: Pick<KeptAnswers, 'once'> | undefined
  /** Lets reads wait. */
  readonly reads?: Reads | undefined
  /** True if each answer is compared with its schema before it is sent; by default in tests. */
  readonly checksAnswers?: boolean | undefined
}

/** The names of the parts of a path that vary. */
type ParamsOf<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [N in Name]: string } & ParamsOf<`/${Rest}`>
  : P extends `${string}:${infer Name}`
    ? { readonly [N in Name]: string }
    : object

/** A request that was let in, with everything about it checked. */
export interface Admitted<P extends string, Q, B, By> {
  readonly by: By
  readonly params: ParamsOf<P>
  readonly query: Q
  readonly body: B
  readonly request: Request
  /** All values of a parameter that may be repeated. */
  repeated(name: string & keyof Q): string[] | undefined
}

interface Declaration<P extends string, Q, B, By, A extends Answer> extends Described {
  readonly path: P
  readonly query?: (z.ZodObject & z.ZodType<Q>) | 'ignored'
  readonly body?: z.ZodType<B>
  readonly answer: A
  /** 200 if absent. */
  readonly statuses?: readonly [number, ...number[]]
  /** True if it may wait for long, until there is something to answer; absent if not. */
  readonly waits?: boolean
  /** What a read is answered from; from memory if absent. */
  readonly readsFrom?: ReadFrom
  /** True if an answer shows everything on record, also if the caller does not ask for that. */
  readonly isFresh?: boolean
  /** True if the answer has a secret that is told once. */
  readonly tellsSecret?: boolean
  /** Returns what the answer is made of. */
  readonly handle: (asked: Admitted<P, Q, B, By>) => Handled<A> | Promise<Handled<A>>
}

/** Declares a route for callers with a role. */
export function route<P extends string, Q, B, A extends Answer>(
  declaration: Declaration<P, Q, B, Caller, A> & { readonly needs: Role },
): Route {
  const { needs } = declaration
  return declared(declaration, needs, ({ request }, access) => admit(access, request, needs))
}

/** Declares a route whose callers prove who they are in a way of their own. `admit` throws if they do not. */
export function provenRoute<P extends string, Q, B, By, A extends Answer>(
  declaration: Declaration<P, Q, B, By, A> & {
    readonly needs: OwnProof
    readonly admit: (asked: Pick<Admitted<P, Q, B, By>, 'request' | 'params'>) => By
  },
): Route {
  return declared(declaration, declaration.needs, declaration.admit)
}

/** Declares a route for everybody. */
export function openRoute<P extends string, Q, B, A extends Answer>(declaration: Declaration<P, Q, B, undefined, A>): Route {
  return declared(declaration, 'nothing', () => undefined)
}

function declared<P extends string, Q, B, By, A extends Answer>(
  declaration: Declaration<P, Q, B, By, A>,
  needs: Need,
  letIn: (asked: Pick<Admitted<P, Q, B, By>, 'request' | 'params'>, access: Access) => By | Promise<By>,
): Route {
  const {
    method,
    operation,
    summary,
    path,
    query,
    body,
    example,
    problems,
    isTagged,
    statuses = [200],
    waits = false,
    readsFrom = 'memory',
    tellsSecret = false,
    isFresh = false,
    handle,
  } = declaration
  const does = kindOf(method, path, needs)
  return {
    method,
    operation,
    summary,
    path,
    needs,
    query,
    body,
    example,
    answer: declaration.answer,
    problems,
    isTagged,
    statuses,
    waits,
    does,
    async serve(c, { access, answers, reads, checksAnswers = false }) {
      const request = c.req.raw
      // The router has matched the path, so that all its parts are there; what has a schema has its type, and nobody asks for the rest.
      const params: ParamsOf<P> = known(c.req.param())
      // Nothing of a request is looked at, and no byte of its body is read, before its caller is known.
      const by = await letIn({ request, params }, access)
      const { reading, rest } = does === 'read' ? takeReadParameters(c.req.query()) : { reading: {}, rest: c.req.query() }
      const inQuery = query === 'ignored' ? undefined : checkedQuery(request, rest, query)
      const inBody = body === undefined ? undefined : await readBody(request, body, does === 'change')
      const asked = {
        by,
        params,
        query: known<Q>(inQuery?.query),
        body: known<B>(inBody?.body),
        request,
        repeated: (name: string) => c.req.queries(name),
      }
      if (isFresh || Object.keys(reading).length > 0) {
        const said = { ...(isFresh && { fresh: 'true' }), ...reading }
        await reads?.shows(known<ReadParameters>(checkedQuery(request, said, readParameters).query), readsFrom)
      }
      const work = async (): Promise<Response> => {
        const handled: unknown = await handle(asked)
        return await respond(request, declaration.answer, handled, { status: statuses[0], checksAnswers, isTagged })
      }
      const id = does === 'change' ? (inBody?.requestId ?? inQuery?.requestId ?? requestIdInHeader(request)) : undefined
      if (id === undefined || answers === undefined || isDry(asked.body)) return await work()
      const said = saidIn({ query: asked.query, body: asked.body })
      // Whoever may change something has a role, and so a name.
      const { name: caller } = known<Caller>(by)
      return await answers.once({ caller, target: `${method} ${c.req.path}`, id, said }, work, !tellsSecret)
    },
  }
}

/** Whoever needs an operator or an administrator changes something; viewers look, also where they post what they look for. */
function kindOf(method: Method, path: string, needs: Need): Route['does'] {
  if (!path.startsWith(BASE) || needs === 'worker' || needs === 'nothing') return 'other'
  if (needs === 'task_token' || needs === 'signature') return 'other'
  return method === 'GET' || needs === 'viewer' ? 'read' : 'change'
}

/** A request that records nothing may be followed by the one that does, under the same id. */
const isDry = (body: unknown): boolean => isObject(body) && body['dry_run'] === true

/** What a request says besides its id, as JSON has it. */
const saidIn = (said: object): unknown =>
  JSON.parse(JSON.stringify(said, (name, value) => (name === 'request_id' ? undefined : value)))
