import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { crashFolder } from './support/folder.ts'

/** The ways to a disk of one's own: root may mount one, and where user namespaces are on, anybody may. */
const ways = [
  ['unshare', '--mount'],
  ['unshare', '--user', '--map-root-user', '--mount'],
]
const mounting = ['sh', '-c', 'mount -t tmpfs -o size=2m,mode=755 tmpfs "$0" && exec "$@"']
const way = ways.find(([file, ...args]) => spawnSync(file!, [...args, ...mounting, '/mnt', 'true']).status === 0)
const mayBeLeftOut = way === undefined && process.env['SERVO_REQUIRE_ALL'] !== '1'

test.skipIf(mayBeLeftOut)(
  '[I1] on a disk that fills up or becomes read-only, appends fail with a reason and work again later; nothing is lost or half there (needs to mount a disk: be root, or allow user namespaces)',
  async () => {
    expect(way, 'a disk can be mounted').toBeDefined()
    const dir = await crashFolder()
    const [file, ...args] = [...way!, ...mounting, dir, process.execPath, join(import.meta.dirname, 'support/disk.ts'), dir]
    const { stdout, stderr } = spawnSync(file!, args, { encoding: 'utf8', timeout: 100_000 })
    expect(stdout, stderr).not.toBe('')
    expect(JSON.parse(stdout)).toEqual({
      before: ['ok', 'ok'],
      full: 'unavailable disk_full, with a hint',
      fullAgain: 'unavailable disk_full, with a hint',
      temporaryFiles: [],
      publishWhileFull: expect.stringMatching(/^(ok|unavailable disk_full, with a hint)$/),
      withRoom: ['ok', 'ok'],
      readOnly: ['unavailable read_only, with a hint', 'ok'],
      writableAgain: ['ok', 'ok'],
      verify: { ok: true, problems: [], unfolded: [] },
      unacknowledged: 0,
    })
  },
)
