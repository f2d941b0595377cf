import { base32 } from '../../lib/base32.ts'
import { hmacSha256, sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'

export interface TenantSecret {
  /** Recorded with every run, so that a rotated secret changes nothing already created. */
  readonly id: string
  readonly value: string | Uint8Array
}

/** The run id of a run key: the same for ever, and not to be guessed or shared between tenants. */
export function runIdFromRunKey(tenantId: string, workspaceId: string, runKey: string, secret: TenantSecret): string {
  return `run_${base32(hmacSha256(secret.value, `${tenantId}:${workspaceId}:${runKey}`), 26)}`
}

export interface RequestedWork {
  readonly asset_selection: readonly string[]
  /** Only what is in one of these states when the request is made. */
  readonly only?: readonly string[] | undefined
  readonly partition_selection?: readonly string[] | null | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
}

/** One fingerprint for every source of runs. The order in which assets or partitions are named does not matter. */
export function requestFingerprint(work: RequestedWork): string {
  return sha256(
    canonicalJson({
      asset_selection: [...work.asset_selection].sort(),
      partition_selection: work.partition_selection ? [...work.partition_selection].sort() : null,
      labels: work.labels ?? {},
      ...(work.only && { only: [...work.only].sort() }),
    }),
  )
}
