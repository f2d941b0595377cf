import { ServoError } from '../lib/error.ts'

/**
 * The place of the state is not the one any more that this process began with. It must neither go on nor begin an empty state there: what
 * it knows belongs to the other place.
 */
export const stateMoved = (dir?: string): ServoError =>
  new ServoError(
    'conflict',
    STATE_MOVED,
    `the state folder${dir === undefined ? '' : ` ${dir}`} was moved, replaced or deleted while this process was using it`,
    {
      hint: 'This process stopped and wrote nothing more. Put the folder back, or restore a backup (servo restore), and start again. Stop the server before you move its state.',
    },
  )

export const STATE_MOVED = 'state_moved'
