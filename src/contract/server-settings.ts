import { z } from 'zod'
import { roles } from './roles.ts'

const claimValue = z.union([z.string().max(1_000), z.number(), z.boolean()])
/** The claims that a token must have, each with one of these values. */
const claims = z.record(z.string().min(1).max(200), z.array(claimValue).min(1).max(1_000))

/** Somebody whose tokens count, and what their bearers may do. */
const oidcIssuer = z.object({
  /** As its tokens name it. Its keys are found below it. */
  issuer: z.string().max(1_000),
  /** A token must be meant for one of these. */
  audience: z.array(z.string().min(1).max(1_000)).min(1).max(20),
  /** The claims that give each role; the highest that a token has counts. */
  roles: z.partialRecord(z.enum(roles), z.union([claims, z.literal('everyone')])),
  /** The claim that is put on record as the actor. */
  actor: z.string().min(1).max(200).default('sub'),
})
export type OidcIssuer = z.infer<typeof oidcIssuer>

const count = z.number().int().min(1).max(1_000_000)

/** How much a server takes on before it refuses; absent for what it takes on by default. */
const serverLimits = z.object({
  /** Requests of one caller. */
  requests_per_second: count.optional(),
  /** Requests of one address that bring no token that counts. */
  refused_per_second: count.optional(),
  requests_in_flight: count.optional(),
  streams: count.optional(),
  connections: count.optional(),
  /** How long a request may take to arrive. */
  request_timeout_ms: z.number().int().min(100).max(3_600_000).optional(),
})
export type ServerLimits = z.infer<typeof serverLimits>

/** What a project says of its server. */
export const serverSettings = z.object({
  oidc: z.array(oidcIssuer).max(10).default([]),
  limits: serverLimits.default({}),
})
export type ServerSettings = z.infer<typeof serverSettings>
