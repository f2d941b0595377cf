import type { FromWorker } from '../../contract/pipe.ts'
import { isObject } from '../../lib/is-object.ts'

/** Reads one line of the pipe, which user code can reach too. Throws if it is not a message. */
export function readMessage(line: string): FromWorker {
  const message: unknown = JSON.parse(line)
  if (!isMessage(message)) throw new Error(`${line.slice(0, 100)} is not a message`)
  return message
}

/** Checks what the pool relies on. Results are checked when they are used, by `reportedResult`. */
function isMessage(message: unknown): message is FromWorker {
  if (!isObject(message)) return false
  switch (message['type']) {
    case 'loaded':
      return (
        isObject(message['manifest']) &&
        (message['secret_variables'] === undefined || isListOf(message['secret_variables'], isText))
      )
    case 'load_failed':
      return isListOf(message['problems'], isObject)
    case 'still_loading':
      return isText(message['file'])
    case 'log':
      return isText(message['id']) && isListOf(message['entries'], (entry) => isObject(entry) && isText(entry['text']))
    case 'completed':
      return isText(message['id']) && typeof message['took_ms'] === 'number'
    case 'returned':
      return isListOf(message['ids'], isText)
    default:
      return false
  }
}

const isText = (value: unknown): boolean => typeof value === 'string'

const isListOf = (value: unknown, fits: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(fits)
