import { isServoError, type ServoError } from '../../lib/error.ts'

/** The damage that some work met, if any; an outage is thrown. Events that others should have come before may not be foldable. */
export async function corruption(work: () => Promise<void>, isPartial = false): Promise<ServoError | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (isServoError(error, 'corrupt')) return error
    if (isPartial && isServoError(error) && ['fold_failed', 'publish_failed'].includes(error.code)) return error
    throw error
  }
}

export async function unlessCorrupt<T>(reading: Promise<T>): Promise<T | undefined> {
  let read: T | undefined
  await corruption(async () => {
    read = await reading
  })
  return read
}
