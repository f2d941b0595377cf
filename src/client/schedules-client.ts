import type { SchedulesApi } from '../api/automation/schedule-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Asks a server about its schedules, and tells it what to do with them. */
export function schedulesClient(server: Connection): Remote<SchedulesApi> {
  const at = (idOrName: string, more = ''): string => `/schedules/${encodeURIComponent(idOrName)}${more}`
  const expecting = (expected: number | undefined): string => queryText({ expected_state_version: expected })
  return {
    list: (query = {}) => server.json('GET', `/schedules${queryText(query)}`),
    get: (idOrName) => server.json('GET', at(idOrName)),
    ticks: (idOrName, query = {}) => server.json('GET', at(idOrName, `/ticks${queryText(query)}`)),
    allTicks: (query = {}) => server.json('GET', `/ticks${queryText(query)}`),
    create: (body, user) => server.json('POST', '/schedules', { body, user }),
    update: (idOrName, body, user, expected) => server.json('PATCH', at(idOrName, expecting(expected)), { body, user }),
    remove: (idOrName, body, user, expected) =>
      server.json('DELETE', at(idOrName, queryText({ ...body, expected_state_version: expected })), { user }),
    pause: (idOrName, body, user, expected) =>
      server.json('POST', at(idOrName, `/pause${expecting(expected)}`), { body, user }),
    resume: (idOrName, body, user, expected) =>
      server.json('POST', at(idOrName, `/resume${expecting(expected)}`), { body, user }),
    trigger: (idOrName, body, user, expected) =>
      server.json('POST', at(idOrName, `/trigger${expecting(expected)}`), { body, user }),
    catchUp: (body, user) => server.json('POST', '/schedules/catchup', { body, user }),
    automation: () => server.json('GET', '/automation'),
    switchAutomation: (status, body, user) =>
      server.json('POST', `/automation/${status === 'paused' ? 'pause' : 'resume'}`, { body, user }),
  }
}
