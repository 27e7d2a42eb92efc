import { randomUUID } from 'node:crypto'
import { createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { copyDatabase } from '../../db/copy.ts'
import { DeckError, errorText } from '../errors.ts'
import { readRecord, type AppRecord } from '../host/records.ts'
import { writeJson } from '../system/json-file.ts'
import { bareRecord } from './bare-record.ts'
import { filesOf, FORMAT, HISTORY, MANIFEST_FILE, placesOf, type Manifest } from './manifest.ts'

/** `folder`: of the host; `isForced`: a file that is there is replaced */
type How = { folder: string, version: string, hasSecrets: boolean, isForced: boolean, signal: AbortSignal }

/**
 * Makes one file of what a host needs to go on elsewhere: the records and histories of its apps, and its own history.
 * It may run meanwhile.
 * @throws {DeckError} usage: there is such a file; not-found: no host has run here; data-dir-unusable: a record cannot
 * be read; not-stored; then nothing is left of it
 */
export async function createBackup (file: string, how: How): Promise<Manifest & { bytes: number }> {
  checkTarget(file, how)
  const records = readRecords(how.folder)
  const staging = `${file}.${randomUUID()}`
  try {
    mkdirSync(staging, { mode: 0o700 })
    const manifest = await copyAll(records, staging, how)
    const packed = path.join(staging, 'packed')
    await pack(staging, packed, how.signal)
    checkTarget(file, how)
    renameSync(packed, file)
    return { ...manifest, bytes: statSync(file).size }
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('not-stored', `the backup ${file} is not written: ${errorText(error)}`, { cause: error })
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

/** @throws {DeckError} usage */
function checkTarget (file: string, { isForced }: How) {
  if (!isForced && existsSync(file))
    throw new DeckError('usage', `backup: expected a file that does not exist yet, or --force, received ${file}`)
}

/** @throws {DeckError} not-found, data-dir-unusable */
function readRecords (folder: string): AppRecord[] {
  const list = path.join(folder, 'apps')
  if (!existsSync(list)) throw new DeckError('not-found', `no host of this user has run yet: ${list} is not there`)
  return readdirSync(list).filter((name) => name.endsWith('.json')).map((name) => {
    const { record, error } = readRecord(path.join(list, name))
    if (record) return record
    throw new DeckError('data-dir-unusable',
      `${path.join(list, name)}: expected the record of an app, received what this version cannot read`, {
      cause: error
    })
  })
}

async function copyAll (records: AppRecord[], staging: string, how: How): Promise<Manifest> {
  const { folder, version, hasSecrets } = how
  const createdAt = new Date().toISOString()
  const bare = records.map((record) => hasSecrets ? { record, variables: [] } : bareRecord(record))
  const alerts: number[] = []
  for (const { inside, dataDir } of placesOf({ folder, apps: bare }))
    alerts.push(await copyPlace(dataDir, path.join(staging, inside), how))
  const [ofHost, ...ofApps] = alerts
  const manifest: Manifest = { format: FORMAT, version, createdAt, folder, hasSecrets, alerts: ofHost,
    apps: bare.map((app, index) => ({ ...app, alerts: ofApps[index] })) }
  writeJson(path.join(staging, MANIFEST_FILE), manifest)
  return manifest
}

/** Returns how many alerts are left out. An app that has never run has no files there. */
async function copyPlace (dataDir: string, target: string, how: How): Promise<number> {
  mkdirSync(target, { recursive: true })
  let alerts = 0
  for (const name of filesOf(how).filter((each) => existsSync(path.join(dataDir, each)))) {
    const from = path.join(dataDir, name)
    try {
      if (name === HISTORY) alerts = await copyDatabase(from, path.join(target, name), how)
      else await copyFile(from, path.join(target, name))
    } catch (error) {
      throw new Error(`${from}: ${errorText(error)}`, { cause: error })
    }
  }
  return alerts
}

async function pack (staging: string, file: string, signal: AbortSignal) {
  const { create } = await import('tar')
  const packed = create({ cwd: staging, gzip: true, portable: true, strict: true }, readdirSync(staging))
  await pipeline(Readable.from(packed), createWriteStream(file, { mode: 0o600, flush: true }), { signal })
}
