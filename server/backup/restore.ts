import { randomUUID } from 'node:crypto'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync,
  statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { checkCopy, moveTokens } from '../../db/copy.ts'
import { rootOf } from '../admin/tokens.ts'
import { DeckError, errorText } from '../errors.ts'
import { ARCHIVE } from '../system/archive.ts'
import { openDataDir, type DataDir } from '../system/data-dir.ts'
import { readJson, storeJson } from '../system/json-file.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { unpackArchive } from '../system/unpack.ts'
import { filesOf, FORMAT, HISTORY, MANIFEST, MANIFEST_FILE, placesOf, type Manifest } from './manifest.ts'

/** `staging`: where it is unpacked; `tokens`: how many there are */
export type Backup = Manifest & { staging: string, tokens: number, close: () => void }

/** What a master has left of the time before, which is of nobody who comes after. */
const LEFT_BEHIND = [HISTORY, `${HISTORY}-wal`, `${HISTORY}-shm`, 'memory.json', 'runs.json', 'apps']

/**
 * Unpacks a backup into a folder of its own, and checks all that is in it.
 * @throws {DeckError} usage: the file is no backup, or others could have written it
 */
export async function openBackup (file: string): Promise<Backup> {
  const reason = whyPathDistrusted(file)
  if (reason !== null)
    throw new DeckError('usage', `restore: expected a file that only root and this user can write, but ${reason}`)
  const staging = mkdtempSync(path.join(tmpdir(), 'clusterdeck-restore-'))
  const close = () => rmSync(staging, { recursive: true, force: true })
  try {
    const { bavail, bsize } = statfsSync(staging)
    await unpackArchive(file, staging, { ...ARCHIVE, maxDepth: 3, maxUnpackedBytes: bavail * bsize })
    return { ...readBackup(staging), staging, close }
  } catch (error) {
    close()
    throw new DeckError('usage', `restore: expected a backup of clusterdeck, received ${file}: ${errorText(error)}`, {
      cause: error
    })
  }
}

/** @throws {Error} why the folder has no backup */
function readBackup (staging: string): Manifest & { tokens: number } {
  const content = readJson(path.join(staging, MANIFEST_FILE))
  if (Object(content).format > FORMAT) throw new Error('it is of a newer clusterdeck')
  const { data: manifest, error } = MANIFEST.safeParse(content)
  if (error)
    throw new Error(`${MANIFEST_FILE}: ${error.issues[0].path.join('.') || 'there is none'} is not as expected`)
  checkPlaces(manifest)
  const known = new Set([MANIFEST_FILE,
    ...placesOf(manifest).flatMap(({ inside }) => filesOf(manifest).map((name) => path.join(inside, name)))])
  const entries = readdirSync(staging, { recursive: true, withFileTypes: true }).filter((each) => !each.isDirectory())
  const tokens = entries.map((entry) => {
    const name = path.relative(staging, path.join(entry.parentPath, entry.name))
    if (!entry.isFile() || !known.has(name)) throw new Error(`${name}: no backup has such a file`)
    if (entry.name !== HISTORY) return 0
    try {
      return checkCopy(path.join(staging, name))
    } catch (error) {
      throw new Error(`${name}: ${errorText(error)}`, { cause: error })
    }
  })
  return { ...manifest, tokens: tokens.reduce((sum, each) => sum + each, 0) }
}

/** @throws {Error} two apps would be in one place, or a place is unknown */
function checkPlaces ({ apps }: Manifest) {
  for (const key of ['id', 'name', 'dataDir'] as const) {
    const values = apps.map(({ record }) => record[key])
    if (new Set(values).size < values.length) throw new Error(`two apps have the same ${key}`)
  }
  const odd = apps.find(({ record: { dataDir } }) => path.resolve(dataDir) !== dataDir)
  if (odd) throw new Error(`${odd.record.dataDir} is no absolute path`)
}

/** `folder`: of the host. Returns the files whose place is taken. */
export function takenPlaces ({ apps }: Pick<Manifest, 'apps'>, folder: string): string[] {
  const list = path.join(folder, 'apps')
  return [...existsSync(list) ? readdirSync(list).map((name) => path.join(list, name)) : [],
    ...placesOf({ folder, apps }).map(({ dataDir }) => path.join(dataDir, HISTORY)).filter((file) => existsSync(file))]
}

/** `fresh`: a folder in the data folder, with what belongs there */
type Place = { dataDir: DataDir, fresh: string }

/**
 * Puts a backup in place, where no host runs. What is there is put aside, into a folder beside it. `folder`: of the host
 * @returns the folders with what was put aside
 * @throws {DeckError} master-running, data-dir-unusable, not-stored; then nothing is put in place
 */
export async function restoreBackup (backup: Backup, folder: string): Promise<string[]> {
  const places: Place[] = []
  try {
    for (const { inside, dataDir } of placesOf({ ...backup, folder })) {
      const place = openPlace(dataDir)
      places.push(place)
      await fillPlace(place, path.join(backup.staging, inside), backup)
    }
    await writeList(path.join(places[0].fresh, 'apps'), backup)
    // From here on files are renamed alone, which a full disk does not keep from being done.
    return places.flatMap(putInPlace)
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('not-stored', `nothing is restored: ${errorText(error)}`, { cause: error })
  } finally {
    for (const { dataDir, fresh } of places) {
      rmSync(fresh, { recursive: true, force: true })
      dataDir.release({ handsOver: false })
    }
  }
}

/** @throws {DeckError} master-running, data-dir-unusable */
function openPlace (folder: string): Place {
  const dataDir = openDataDir(folder)
  if (dataDir.away) throw new DeckError('data-dir-unusable', dataDir.away)
  dataDir.lock()
  return { dataDir, fresh: path.join(folder, `restored-${randomUUID()}`) }
}

async function fillPlace ({ dataDir, fresh }: Place, from: string, { hasSecrets }: Backup) {
  mkdirSync(fresh, { mode: 0o700 })
  for (const name of filesOf({ hasSecrets }).filter((each) => existsSync(path.join(from, each)))) {
    copyFileSync(path.join(from, name), path.join(fresh, name))
    chmodSync(path.join(fresh, name), 0o600)
    if (name === HISTORY && !hasSecrets) moveTokens(path.join(fresh, name), rootOf(dataDir.token()))
  }
}

async function writeList (list: string, { apps }: Backup) {
  mkdirSync(list, { mode: 0o700 })
  for (const { record } of apps) await storeJson(path.join(list, `${record.id}.json`), record)
}

/** Returns the folder with what was put aside; none: nothing was there. */
function putInPlace ({ dataDir: { folder }, fresh }: Place): string[] {
  const left = LEFT_BEHIND.filter((name) => existsSync(path.join(folder, name)))
  const aside = left.length === 0 ? [] : [mkdtempSync(path.join(folder, 'before-restore-'))]
  for (const place of aside) for (const name of left) renameSync(path.join(folder, name), path.join(place, name))
  for (const name of readdirSync(fresh)) renameSync(path.join(fresh, name), path.join(folder, name))
  return aside
}
