import { randomBytes } from 'node:crypto'
import {
  type BigIntStats,
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { type ClaimPlace, FIRST_SIGN, type Sign, type Standing } from '../../lease/claim-place.ts'
import { claimedLease, type LeaseOptions } from '../../lease/claimed-lease.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import {
  eitherText,
  isBoolean,
  isInteger,
  isText,
  objectOf,
  orAbsent,
  orNull,
  type Shape,
  type Shaped,
} from '../../lib/shape.ts'
import type { Lease } from '../../ports/lease.ts'
import { asRoot, errnoOf, isMissing, OWN_FILE, OWN_FOLDER, toReadAtOnce } from './disk.ts'
import { type Attempted, explainFailure } from './failure.ts'
import { type WatchFolder, watchFolder } from './folder-watch.ts'
import { fsStore } from './object-store.ts'
import { isProvenDead, ownIdentity } from './process-identity.ts'

export interface FsLeaseOptions extends LeaseOptions {
  readonly watch?: WatchFolder
}

/** As wide as the numbers of manifests. */
const padNumber = (number: number): string => String(number).padStart(12, '0')
const MAX_NUMBER = 999_999_999_999
const CLAIM = /^(\d{12})\.json$/
const OF_CLAIM = /^(\d{12})\./

const isClaimFile = objectOf({
  /** The number of the claim, under the name that the file has always had for it. */
  epoch: isInteger,
  name: isText,
  term: eitherText('standing', 'brief'),
  pid: isInteger,
  since: orNull(isText),
  boot_id: orNull(isText),
  pid_namespace: orNull(isText),
  machine_id: orNull(isText),
  host: isText,
  /** The folder that the claim was made in. A copy of the file stands in another, and claims nothing. */
  folder: objectOf({ device: isText, inode: isText }),
})
type ClaimFile = Shaped<typeof isClaimFile>

const isSignFile = objectOf({ renewals: isInteger, address: orNull(isText), released: isBoolean, kept: orAbsent(isText) })

/**
 * A lease in a folder of its own, for processes on one machine or on several that share the folder:
 *
 *     000000000007.json              the seventh claim: a file that appears whole and never changes
 *     000000000007.sign.json         the state of the holder: replaced
 *     000000000007.challenge-{id}    a candidate requests a sign of life
 *
 * Calls are synchronous where they wait for no disk: a holder answers a challenge in the same moment in which it sees it,
 * however much its process has to do. A sign need not survive a power cut, because its process does not either.
 *
 * A holder keeps the folder open. As long as it does, no folder that is put in its place can be given its inode.
 */
export function fsLease(dir: string, { watch = watchFolder, ...options }: FsLeaseOptions): Lease {
  return claimedLease(claimsIn(resolve(dir), watch), options)
}

function claimsIn(dir: string, watch: WatchFolder): ClaimPlace {
  const store = fsStore(dir)
  const own = ownIdentity()
  const writer = randomBytes(6).toString('hex')
  /** The folder in which each claim of this process was created, open until its holder leaves. */
  const claimedIn = new Map<number, number>()
  const signOf = (number: number): string => `${dir}/${padNumber(number)}.sign.json`

  function namesIn(): string[] {
    return attempt('list', '', () => readdirSync(dir)) ?? []
  }

  /** Undefined when what it is about is not there. */
  function attempt<T>(verb: Attempted['verb'], path: string, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (isMissing(error)) return undefined
      throw explainFailure(error, { verb, path, dir })
    }
  }

  function jsonOf<T>(file: string, shape: Shape<T>): T | undefined {
    const text = textOf(file)
    if (text === undefined) return undefined
    try {
      const value: unknown = JSON.parse(text)
      return shape(value) ? value : undefined
    } catch {
      return undefined
    }
  }

  /** Only regular files are read: for a pipe this process would wait for ever, and deaf to signals. */
  function textOf(file: string): string | undefined {
    let fd: number | undefined
    try {
      fd = openSync(file, toReadAtOnce)
      if (!fstatSync(fd).isFile()) throw corruptLease(file, 'is not a file')
      return readFileSync(fd, 'utf8')
    } catch (error) {
      // A symlink, and a socket.
      if (['ELOOP', 'ENXIO'].includes(errnoOf(error) ?? '')) throw corruptLease(file, 'is not a file')
      if (isMissing(error)) return undefined
      throw explainFailure(error, { verb: 'read', path: file, dir })
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  function openFolder(): number {
    try {
      mkdirSync(dir, { recursive: true, mode: OWN_FOLDER })
      return openSync(dir, asRoot)
    } catch (error) {
      if (isInTheWay(dir)) throw corruptLease(dir, 'is where a folder should be')
      throw explainFailure(error, { verb: 'create', path: '', dir })
    }
  }

  function leave(number: number): void {
    const fd = claimedIn.get(number)
    claimedIn.delete(number)
    if (fd !== undefined) closeSync(fd)
  }

  const readSign = (number: number): Sign | undefined => jsonOf(signOf(number), isSignFile)

  function standing(number: number): Standing {
    const sign = readSign(number) ?? FIRST_SIGN
    const claim = jsonOf(`${dir}/${padNumber(number)}.json`, isClaimFile)
    const { address } = sign
    // A claim that cannot be read has a holder that we cannot name, which may live and answer.
    if (claim === undefined) {
      const leader = { number, name: 'unknown', term: 'standing', address, pid: 0, host: 'unknown' } as const
      return { number, leader, sign, isVacant: sign.released }
    }
    const { name, term, pid, host } = claim
    const isVacant = sign.released || isCopied(claim) || isProvenDead(claim, own)
    return { number, leader: { number, name, term, address, pid, host }, sign, isVacant }
  }

  function isCopied({ folder, boot_id }: ClaimFile): boolean {
    const stat = attempt('list', '', () => statSync(dir, { bigint: true }))
    if (stat === undefined) return true
    const here = identityOf(stat)
    // Devices are numbered anew by each machine at each start; two machines that share a folder agree on the inode only.
    return here.inode !== folder.inode || (boot_id === own.boot_id && here.device !== folder.device)
  }

  return {
    async create(number, { name, term }) {
      if (number > MAX_NUMBER) throw corruptLease(dir, 'holds a claim whose number is too large')
      const folder = openFolder()
      let isOurs = false
      try {
        const claim: ClaimFile = { epoch: number, name, term, ...own, folder: identityOf(fstatSync(folder, { bigint: true })) }
        const outcome = await store.create(`${padNumber(number)}.json`, Buffer.from(`${JSON.stringify(claim, null, 2)}\n`))
        isOurs = outcome === 'written'
        return outcome
      } catch (error) {
        throw isServoError(error) && error.code === 'path_conflict'
          ? corruptLease(dir, 'holds something that is not a claim', error)
          : error
      } finally {
        if (isOurs) {
          leave(number)
          claimedIn.set(number, folder)
        } else closeSync(folder)
        await store.close()
      }
    },

    newest() {
      const number = newestOf(namesIn())
      return number === 0 ? undefined : standing(number)
    },

    look(number) {
      const names = namesIn()
      const prefix = `${padNumber(number)}.challenge-`
      return { newest: newestOf(names), challenges: names.filter((name) => name.startsWith(prefix)) }
    },

    moved(number) {
      const fd = claimedIn.get(number)
      if (fd === undefined) return true
      try {
        const [here, claimed] = [statSync(dir, { bigint: true }), fstatSync(fd, { bigint: true })]
        return here.dev !== claimed.dev || here.ino !== claimed.ino
      } catch {
        return true
      }
    },

    leave,

    readSign,

    writeSign(number, sign) {
      const temp = `${dir}/.sign-${process.pid}-${writer}`
      attempt('put', signOf(number), () => {
        try {
          writeFileSync(temp, JSON.stringify(sign), { mode: OWN_FILE })
          renameSync(temp, signOf(number))
        } catch (error) {
          removeQuietly(temp)
          throw errnoOf(error) === 'EISDIR' ? corruptLease(signOf(number), 'is not a file', error) : error
        }
      })
    },

    challenge(number) {
      const file = `${dir}/${padNumber(number)}.challenge-${randomBytes(6).toString('hex')}`
      attempt('create', file, () => writeFileSync(file, '', { flag: 'wx', mode: OWN_FILE }))
      return () => removeQuietly(file)
    },

    answered(_, challenges) {
      for (const challenge of challenges) removeQuietly(`${dir}/${challenge}`)
    },

    remove(number) {
      for (const name of namesIn()) if (numberIn(name, OF_CLAIM) === number) removeQuietly(`${dir}/${name}`)
    },

    removeBelow(number) {
      for (const name of namesIn()) if (numberIn(name, OF_CLAIM) < number) removeQuietly(`${dir}/${name}`)
    },

    // Not of temporary names: a sign that cannot be given would call for the next try by itself.
    watch: (changed, deaf) => watch(dir, (name) => !name?.startsWith('.') && changed(), deaf),
  }
}

const corruptLease = (what: string, is: string, cause?: unknown): ServoError =>
  new ServoError('corrupt', 'lease_damaged', `the lease cannot be read: ${what} ${is}`, {
    hint: `Delete ${what} while no server runs.`,
    facts: { path: what },
    cause,
  })

function newestOf(names: readonly string[]): number {
  return Math.max(0, ...names.map((name) => numberIn(name, CLAIM)).filter((number) => !Number.isNaN(number)))
}

/** NaN for a name that has none, so every comparison with it is false. */
function numberIn(name: string, pattern: RegExp): number {
  return Number(pattern.exec(name)?.[1] ?? Number.NaN)
}

const identityOf = ({ dev, ino }: BigIntStats): ClaimFile['folder'] => ({ device: String(dev), inode: String(ino) })

/** True if something has the name of the folder and is neither a folder nor a symlink to one. */
function isInTheWay(dir: string): boolean {
  const named = lstatSync(dir, { throwIfNoEntry: false })
  return named !== undefined && statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true
}

/** What stays is removed by the next holder. */
function removeQuietly(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // Nothing depends on it.
  }
}
