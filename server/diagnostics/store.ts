import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { readJson, writeJson } from '../system/json-file.ts'
import type { Diagnostic } from './diagnostics.ts'

export type Store = ReturnType<typeof openStore>

const EXTENSIONS: Readonly<Record<Diagnostic['kind'], string>> = Object.freeze({ 'cpu-profile': 'cpuprofile',
  'heap-snapshot': 'heapsnapshot', 'heap-statistics': 'json', report: 'report.json' })

/**
 * Keeps the files of the diagnostics, each with a description that outlives the master: `7.about.json` and
 * `7-worker-3.cpuprofile`. Only their owner can read them. `limits`: the newest file stays, however large.
 */
export function openStore (folder: string, { maxFiles, maxBytes }: { maxFiles: number, maxBytes: number }) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  /** ascending by id */
  const known: Map<number, Diagnostic> = new Map(readAll(folder).map((item) => [item.id, item]))

  return {
    /** @returns newest first */
    list: (): Diagnostic[] => [...known.values()].reverse(),
    get: (id: number): Diagnostic | null => known.get(id) ?? null,
    nextId: () => Math.max(0, ...known.keys()) + 1,

    /** @returns its file, made empty */
    create (item: Diagnostic): string {
      const file = fileOf(item)
      rmSync(file, { force: true })
      closeSync(openSync(file, 'wx', 0o600))
      keepItem(item)
      return file
    },

    keep: keepItem,
    fileOf,

    sizeOf (item: Diagnostic): number {
      const stat = lstatSync(fileOf(item), { throwIfNoEntry: false })
      return stat?.isFile() ? stat.size : 0
    },

    remove: removeItem,

    prune () {
      const done = [...known.values()].filter(({ state }) => state !== 'running')
      let bytes = done.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
      while (done.length > maxFiles || (bytes > maxBytes && done.length > 1)) {
        const [oldest] = done.splice(0, 1)
        bytes -= oldest.bytes ?? 0
        removeItem(oldest)
      }
    }
  }

  function keepItem (item: Diagnostic) {
    known.set(item.id, item)
    writeJson(aboutOf(item.id), item)
  }

  function removeItem (item: Diagnostic) {
    known.delete(item.id)
    rmSync(fileOf(item), { force: true })
    rmSync(aboutOf(item.id), { force: true })
  }

  function fileOf ({ id, worker, kind }: Diagnostic) {
    return path.join(folder, `${id}-worker-${worker}.${EXTENSIONS[kind]}`)
  }

  function aboutOf (id: number) {
    return path.join(folder, `${id}.about.json`)
  }
}

/** @returns those of earlier masters, by id */
function readAll (folder: string): Diagnostic[] {
  return readdirSync(folder).filter((name) => /^\d+\.about\.json$/.test(name)).flatMap((name) => {
    const item = Object(readJson(path.join(folder, name)))
    // It is not one of ours, or was cut short by a full disk.
    if (!Number.isSafeInteger(item.id) || !Number.isSafeInteger(item.worker) || !Object.hasOwn(EXTENSIONS, item.kind))
      return []
    return [
      item.state === 'running' ? { ...item, state: 'failed', error: 'the master ended before it was done' } : item
    ]
  }).sort((a, b) => a.id - b.id)
}
