type Answering = (request: Request, env?: object) => Promise<Response>

/** The request names something that is not there, as far as the code that is loaded knows. */
const isUnknown = ({ status }: Response): boolean => status === 400 || status === 404

/**
 * Answers a request that is refused while the code is loaded again once more afterwards: what it names may be declared in the file that
 * was just saved. A refused request has changed nothing. `reload` returns the end of what is under way, if anything is.
 */
export function answeringAgain(answer: Answering, reload: () => Promise<void> | undefined): Answering {
  return async (request, env) => {
    const underWay = reload()
    if (underWay === undefined) return await answer(request, env)
    const again = request.clone()
    const first = await answer(request, env)
    if (!isUnknown(first)) return first
    await underWay
    return await answer(again, env)
  }
}
