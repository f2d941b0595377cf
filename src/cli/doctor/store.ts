import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { checkStateFolder } from '../../adapters/fs/state-folder.ts'
import { newestManifest } from '../../engine/manifest/stored-manifests.ts'
import { Paths } from '../../engine/paths.ts'
import { hasErrorCode } from '../../lib/error.ts'
import { counted } from '../../lib/text/counted.ts'
import { type LocalComponents, secretsFile } from '../../server/components.ts'
import { examine, type Finding, fine, problem, warning } from './finding.ts'

/** The folder of the state: whether it can be used, who else can read it, and whether the newest manifest is sound. */
export async function storeFindings(components: LocalComponents): Promise<Finding[]> {
  const { servoDir } = components
  if (!checkStateFolder(servoDir)) {
    const parent = dirname(servoDir)
    const why = await obstacle(parent)
    if (why === undefined) return [fine('store', `no state yet; the first servo dev or servo run creates ${servoDir}`)]
    const hint = why === 'EROFS' ? MOUNT : 'Check its owner and permissions.'
    return [problem('store', `${parent} is not writable, so Servo cannot keep state there`, hint)]
  }
  const obstacles = await unusable(components)
  const manifest = await examine('store', async () => [await manifestFinding(components)])
  // What cannot be used is not fine, whatever is in it.
  const besides = obstacles.length === 0 ? manifest : manifest.filter(({ level }) => level !== 'ok')
  return [...obstacles, ...(await openToOthers(servoDir)), ...besides]
}

/** Everything is written below these. */
async function unusable({ servoDir, dataDir, scope }: LocalComponents): Promise<Finding[]> {
  const paths = new Paths(scope)
  const below = [paths.ledger, paths.archives, paths.manifests, paths.state].map((path) => join(servoDir, path))
  for (const folder of [servoDir, dataDir, join(dataDir, 'lease'), ...below]) {
    if ((await stat(folder).catch(undefinedIfAbsent)) === undefined) continue
    const why = await obstacle(folder)
    if (why === undefined) continue
    if (why === 'EROFS') return [problem('store', `${folder} is on a read-only file system`, MOUNT)]
    return [
      problem('store', `this user cannot read and write ${folder}`, 'Run Servo as the owner, or change the owner (chown -R).'),
    ]
  }
  return []
}

const MOUNT = 'Mount it writable, or move the project to a disk that is.'

/** Why a folder cannot be read and written, as the system calls it; undefined if it can. */
const obstacle = (folder: string): Promise<string | undefined> =>
  access(folder, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
  )

/** Below a folder that only its owner can enter, nothing else needs to be looked at but what is most secret. */
async function openToOthers(servoDir: string): Promise<Finding[]> {
  // Windows has other permissions.
  if (process.platform === 'win32') return []
  const found: Finding[] = []
  for (const path of [servoDir, secretsFile(servoDir)]) {
    const entry = await stat(path).catch(undefinedIfAbsent)
    if (entry === undefined) continue
    const name = relative(dirname(servoDir), path)
    if ((entry.mode & 0o077) !== 0)
      found.push(
        warning(
          'store',
          `${name} is open to other users (mode ${(entry.mode & 0o777).toString(8)})`,
          `Close it: chmod -R go= ${servoDir}`,
        ),
      )
    if (entry.uid !== process.getuid?.())
      found.push(
        warning(
          'store',
          `${name} belongs to another user (uid ${entry.uid})`,
          'Run Servo as that user: it cannot read files that another user creates.',
        ),
      )
  }
  return found
}

async function manifestFinding({ store, scope, servoDir }: LocalComponents): Promise<Finding> {
  const { number, published_at, watermarks } = await newestManifest(store, new Paths(scope), scope)
  if (number === 0) return fine('store', `${servoDir}; nothing published yet`)
  return fine('store', `${servoDir}; manifest ${number} of ${published_at}, ${counted(watermarks.events, 'event')}`)
}

function undefinedIfAbsent(error: unknown): undefined {
  if (!hasErrorCode(error, 'ENOENT')) throw error
}
