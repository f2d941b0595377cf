import type { EventsAfter, EventsApi, WireEvent } from '../api/events/event-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Reads from a server what happened, and as it happens. */
export function eventsClient(server: Connection): Remote<EventsApi> {
  return {
    page: ({ limit, after, run, type, asset } = {}) =>
      server.json('GET', `${pathOf({ run })}${queryText({ limit, cursor: after, type, asset, follow: false })}`),
    async *follow({ after, run, type, asset }, signal) {
      const path = `${pathOf({ run })}${queryText({ cursor: after, type, asset, follow: true })}`
      for await (const line of server.texts(path, signal))
        if (line.startsWith(DATA)) yield JSON.parse(line.slice(DATA.length)) as WireEvent
    },
  }
}

const DATA = 'data: '

const pathOf = ({ run }: Pick<EventsAfter, 'run'>): string =>
  run === undefined ? '/events' : `/runs/${encodeURIComponent(run)}/events`
