type Short = string | number | undefined

/** A list is asked with what there is to say; the server has the rest. */
type Asked<T> = T extends { readonly limit: number } ? Partial<T> : T

/**
 * Parameters of a method without the need to say who asks: a server takes that from the token. Only with the token of its machine it
 * believes the name it is given.
 */
type WithoutUser<P extends readonly unknown[]> = P extends [infer A, infer B, infer C extends object, string]
  ? [A, B, C, string?]
  : P extends [infer A, infer B extends object, string, ...infer R extends Short[]]
    ? [A, B, string?, ...Partial<R>]
    : P extends [infer A, string, ...infer R extends Short[]]
      ? [A, string?, ...Partial<R>]
      : P extends [infer A, infer Q extends { readonly limit: number }]
        ? [A, Asked<Q>?]
        : P extends [infer Q extends { readonly limit: number }]
          ? [Asked<Q>?]
          : P

/** A part of a workspace on another machine: the same methods, which take less. */
export type Remote<A> = {
  readonly [K in keyof A]: A[K] extends (...asked: infer P) => infer R ? (...asked: WithoutUser<P>) => R : A[K]
}

/** All pages of a list, one after the other: `for await (const { runs } of pages(client.runs.page, { status: 'FAILED' }))`. */
export async function* pages<Q extends { cursor?: string | undefined }, P extends { readonly next_cursor: string | null }>(
  list: (query: Q) => Promise<P>,
  query: Q,
): AsyncGenerator<P> {
  for (let asked = query; ; ) {
    const page = await list(asked)
    yield page
    if (page.next_cursor === null) return
    asked = { ...asked, cursor: page.next_cursor }
  }
}
