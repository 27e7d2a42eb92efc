import { createHash, randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, renameSync, utimesSync } from 'node:fs'
import { mkdir, open, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { formatExactDuration } from '../../public/format.ts'
import { DeckError, errorCode, errorText } from '../errors.ts'
import { ARCHIVE } from '../system/archive.ts'
import { createSemaphore } from '../system/semaphore.ts'
import { whyDistrusted } from '../system/trust.ts'
import { appKey } from './app-key.ts'
import { scriptPath } from '../system/built.ts'
import type { Store } from './store.ts'
import type { OwnDeck } from './deck-adapter.ts'

/**
 * Unpacks what was pushed to the fleet for an app into `<releases.root>/fleet-<member>.<app>/<digest>`, which is either
 * whole or not there. Only this app writes to that folder, and it removes nothing outside of it.
 */
export type Packages = ReturnType<typeof createPackages>
export type Unpack = (where: { file: string, folder: string, signal: AbortSignal }) => Promise<void>

const THREAD = scriptPath('unpack-thread.js')
const MAX_HEAP_MB = 256
const UNPACK_MS = 15 * 60_000
/** The names of folders that are not whole yet, or are about to be removed, begin with it. */
const UNFINISHED = '.unfinished-'
const WHOLE = /^[0-9a-f]{64}$/
/** So many stay, whether or not a release needs them. */
const KEPT = 3
const PAGE = 100

export function createPackages ({ root, member, app, store, releases, onError, unpack = unpackInThread }: {
  /** releases.root */
  root: string | undefined,
  member: string,
  app: string,
  store: Pick<Store, 'read'>,
  /** all that a rollback may need */
  releases: () => Iterable<{ path: string }>,
  /** for errors that harm no deploy */
  onError: (error: unknown) => void,
  unpack?: Unpack
}) {
  const turns = createSemaphore(1)
  const closing = new AbortController()
  const own = `fleet-${member}.${appKey(app)}`

  return {
    /**
     * Returns a folder below releases.root.
     * @throws {DeckError} path-refused, fleet-away, not-found, invalid-body; then nothing of it stays on the disk
     */
    fetch: (digest: string): Promise<string> =>
      turns.run(async () => {
        const home = await homeOf(root, own)
        await removeUnfinished(home)
        const folder = path.join(home, digest.slice('sha256:'.length))
        if (!isFolder(folder)) await fetchPackage(digest, { home, folder })
        const now = new Date()
        // `clean` removes those that were used longest ago.
        utimesSync(folder, now, now)
        return folder
      }),

    /** Removes what an earlier master has left unfinished. @returns never rejects */
    sweep: (): Promise<void> =>
      turns.run(async () => {
        const home = root === undefined ? null : path.join(root, own)
        if (home !== null && isFolder(home)) await removeUnfinished(home)
      }).catch(onError),

    /** Removes what no release needs any more. @returns never rejects */
    clean: (): Promise<void> =>
      turns.run(async () => {
        if (root === undefined) return
        const home = path.join(await realpath(root), own)
        if (!isFolder(home)) return
        const needed = new Set(
          Array.from(releases(), (release) => path.relative(home, release.path).split(path.sep)[0])
        )
        for (const name of newestFirst(home).slice(KEPT)) {
          // It is renamed first, so that half of it is never taken for a whole.
          if (!needed.has(name)) renameSync(path.join(home, name), path.join(home, `${UNFINISHED}${randomUUID()}`))
        }
        await removeUnfinished(home)
      }).catch(onError),

    /** Ends what it unpacks at the moment. */
    close () {
      closing.abort(new Error('the master is stopping'))
    }
  }

  async function fetchPackage (digest: string, { home, folder }: { home: string, folder: string }) {
    const unfinished = path.join(home, `${UNFINISHED}${randomUUID()}`)
    const file = `${unfinished}.tgz`
    try {
      await saveArchive(store.read(digest), { file, digest })
      await mkdir(unfinished, { mode: 0o755 })
      closing.signal.throwIfAborted()
      await unpack({ file, folder: unfinished, signal: closing.signal })
      renameSync(unfinished, folder)
    } catch (error) {
      throw error instanceof DeckError
        ? error
        : new DeckError('invalid-body', `cannot unpack ${digest}: ${reasonOf(error, home)}`, { cause: error })
    } finally {
      await Promise.all([file, unfinished].map((each) => rm(each, { recursive: true, force: true }))).catch(onError)
    }
  }
}

/** @returns names of whole packages, the one used last first */
function newestFirst (home: string): string[] {
  return readdirSync(home).filter((name) => WHOLE.test(name)).map((name) => ({ name,
    usedMs: lstatSync(path.join(home, name)).mtimeMs })
  ).sort((one, other) => other.usedMs - one.usedMs).map(({ name }) => name)
}

/** Returns the folder of this app alone @throws {DeckError} path-refused */
async function homeOf (root: string | undefined, own: string): Promise<string> {
  if (root === undefined)
    throw new DeckError('path-refused', 'releases.root: expected a folder to unpack pushes into, received nothing')
  const folder = await realpath(root).catch((error) => {
    throw new DeckError('path-refused',
      `releases.root: expected a readable folder, received ${root} (${errorCode(error)})`, { cause: error })
  })
  const home = path.join(folder, own)
  try {
    mkdirSync(home, { mode: 0o755 })
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'EEXIST')
      throw new DeckError('path-refused', `releases.root: expected a writable folder, received ${root} (${code})`, {
        cause: error
      })
  }
  const why = isFolder(home) ? whyDistrusted(home) : 'is no folder'
  if (why)
    throw new DeckError('path-refused',
      `releases.root: expected ${home} to be a folder that only this user can write, but it ${why}`)
  return home
}

/** A link to a folder is none. */
function isFolder (file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false
}

async function removeUnfinished (home: string) {
  const names = readdirSync(home).filter((name) => name.startsWith(UNFINISHED))
  await Promise.all(names.map((name) => rm(path.join(home, name), { recursive: true, force: true, maxRetries: 2 })))
}

/** @throws {DeckError} invalid-body */
async function saveArchive (source: AsyncIterable<Uint8Array>, { file, digest }: { file: string, digest: string }) {
  const hash = createHash('sha256')
  const handle = await open(file, 'wx', 0o600)
  let bytes = 0
  try {
    for await (const piece of source) {
      bytes += piece.length
      if (bytes > ARCHIVE.maxBytes)
        throw new DeckError('invalid-body', `${digest} is larger than ${ARCHIVE.maxBytes} bytes`)
      hash.update(piece)
      await handle.appendFile(piece)
    }
  } finally {
    await handle.close()
  }
  const received = `sha256:${hash.digest('hex')}`
  if (received !== digest)
    throw new DeckError('invalid-body', `the archive in NATS has changed: expected ${digest}, received ${received}`)
}

/** A thread keeps a hostile archive from blocking the master, and limits its memory. */
async function unpackInThread ({ signal, ...where }: Parameters<Unpack>[0]): ReturnType<Unpack> {
  const thread = new Worker(THREAD, { execArgv: [], env: {}, workerData: where,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
  let timer
  try {
    const { problem } = await new Promise<{ problem: string | null }>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`it takes more than ${formatExactDuration(UNPACK_MS)}`)), UNPACK_MS)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      thread.once('message', resolve)
      thread.once('error', reject)
      thread.once('exit', () => reject(new Error('the thread that unpacks it has crashed')))
    })
    if (problem !== null) throw new Error(problem)
  } finally {
    clearTimeout(timer)
    await thread.terminate()
  }
}

function reasonOf (error: unknown, home: string) {
  const code = errorCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT' ? `the disk with ${home} is full` : errorText(error)
}

export function* allReleases (releases: OwnDeck['releases']): Generator<{ path: string }> {
  let cursor: string | undefined
  do {
    const { items, next } = releases.list({ limit: PAGE, cursor })
    yield* items
    cursor = next ?? undefined
  } while (cursor !== undefined)
}
