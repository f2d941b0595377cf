/** Sends one JSON object per line, each as soon as there is one. The first is awaited, so that an error still gets its own status. */
export async function lines(items: AsyncIterable<unknown>): Promise<Response> {
  const iterator = items[Symbol.asyncIterator]()
  let next = await iterator.next()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done) {
        controller.close()
        return
      }
      controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`))
      next = await iterator.next()
    },
    async cancel() {
      await iterator.return?.()
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } })
}
