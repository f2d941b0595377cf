/** The interface that zod, valibot, arktype and others share: https://standardschema.dev */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export function isSchema(value: unknown): value is StandardSchemaV1 {
  // arktype's schemas are functions.
  const holder = typeof value === 'function' || (typeof value === 'object' && value !== null)
  const standard = holder && '~standard' in value ? value['~standard'] : undefined
  return typeof standard === 'object' && standard !== null && 'validate' in standard && typeof standard.validate === 'function'
}

/** `amount: expected number, received string; at: required` */
export function issuesText(issues: readonly SchemaIssue[]): string {
  return issues
    .map((issue) => {
      const where = fieldOf(issue)
      return where === '' ? issue.message : `${where}: ${issue.message}`
    })
    .join('; ')
}

/** `order.id`; empty if the issue is about the value as a whole. */
export const fieldOf = ({ path }: SchemaIssue): string =>
  (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
