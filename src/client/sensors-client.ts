import type { SensorsApi } from '../api/automation/sensor-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Asks a server about its sensors, and tells it what to do with them. */
export function sensorsClient(server: Connection): Remote<SensorsApi> {
  const at = (idOrName: string, more = ''): string => `/sensors/${encodeURIComponent(idOrName)}${more}`
  const expecting = (what: string, expected: number | undefined): string =>
    `/${what}${queryText({ expected_state_version: expected })}`
  return {
    list: (query = {}) => server.json('GET', `/sensors${queryText(query)}`),
    get: (idOrName) => server.json('GET', at(idOrName)),
    evals: (idOrName, query = {}) => server.json('GET', at(idOrName, `/evals${queryText(query)}`)),
    deadLetters: (idOrName, query = {}) => server.json('GET', at(idOrName, `/dead-letters${queryText(query)}`)),
    create: (body, user) => server.json('POST', '/sensors', { body, user }),
    update: (idOrName, body, user, expected) =>
      server.json('PATCH', at(idOrName, queryText({ expected_state_version: expected })), { body, user }),
    remove: (idOrName, body, user, expected) =>
      server.json('DELETE', at(idOrName, queryText({ ...body, expected_state_version: expected })), { user }),
    pause: (idOrName, body, user, expected) => server.json('POST', at(idOrName, expecting('pause', expected)), { body, user }),
    resume: (idOrName, body, user, expected) =>
      server.json('POST', at(idOrName, expecting('resume', expected)), { body, user }),
    resetCursor: (idOrName, body, user, expected) =>
      server.json('POST', at(idOrName, expecting('reset-cursor', expected)), { body, user }),
    evaluate: (idOrName, body, user) => server.json('POST', at(idOrName, '/evaluate'), { body, user }),
    replay: (idOrName, messageId, body, user) =>
      server.json('POST', at(idOrName, `/dead-letters/${encodeURIComponent(messageId)}/replay`), { body, user }),
  }
}
