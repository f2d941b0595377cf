import { ServoError } from '../../lib/error.ts'

/**
 * A file that a newer version of Servo wrote, and whose checksum is right. It is no damage: whoever mends or passes over what is `corrupt`
 * must not touch it, so it is of another kind.
 */
export const newerFormat = (path: string, message: string): ServoError =>
  new ServoError('conflict', 'unknown_format', message, {
    hint: 'A newer version of Servo wrote it. Upgrade Servo.',
    facts: { path },
  })
