import { mkdirSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { readJson, writeJson } from '../../server/system/json-file.ts'
import type { AppRecord } from '../../server/host/records.ts'

/** Writes what a host remembers of an app, as one has left it. `folder`: of the host */
export function writeRecord (folder: string,
  { order, ...fields }: Pick<AppRecord, 'name' | 'dataDir'> & Partial<Omit<AppRecord, 'order'>> & {
    order: Pick<AppRecord['order'], 'cwd'> & Partial<AppRecord['order']>
  })
{
  const record: AppRecord = { version: 1, id: fields.name, wish: 'running', runs: null, ...fields,
    order: { flags: {}, env: {}, dependsOn: [], ...order } }
  mkdirSync(path.join(folder, 'apps'), { recursive: true, mode: 0o700 })
  writeJson(path.join(folder, 'apps', `${record.id}.json`), record)
}

/** Returns what it remembers, by name. */
export function readRecords (folder: string): AppRecord[] {
  const place = path.join(folder, 'apps')
  const records = readdirSync(place).filter((name) => name.endsWith('.json')).map((name) =>
    readJson(path.join(place, name)) as AppRecord
  )
  return records.sort((one, other) => one.name < other.name ? -1 : 1)
}
