/** Tests break "any request" of a process at some requests, at others in each run; `SERVO_FAULTS=all` breaks it at all of them. */
const EVERY = process.env['SERVO_FAULTS'] === 'all' ? 1 : 5

/** True for one request in five. A failure names the request. */
export const isFaultTried = (): boolean => Math.random() * EVERY < 1

/** How far it is from one request that is tried to the next, where the number of requests is not known. */
export const stepToNextFault = (): number => 1 + Math.floor(Math.random() * (2 * EVERY - 1))
