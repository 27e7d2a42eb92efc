import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { readJson, writeJson } from '../system/json-file.js'

/** @typedef {ReturnType<typeof openStore>} Store */
/** @typedef {import('./diagnostics.js').Diagnostic} Diagnostic */

/** @type {Readonly<Record<Diagnostic['kind'], string>>} */
const EXTENSIONS = Object.freeze({
  'cpu-profile': 'cpuprofile', 'heap-snapshot': 'heapsnapshot', 'heap-statistics': 'json', report: 'report.json'
})

/**
 * Keeps the files of the diagnostics, each with a description that outlives the master: `7.about.json` and
 * `7-worker-3.cpuprofile`. Only their owner can read them.
 * @param {string} folder
 * @param {{ maxFiles: number, maxBytes: number }} limits the newest file stays, however large
 */
export function openStore (folder, { maxFiles, maxBytes }) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  /** @type {Map<number, Diagnostic>} ascending by id */
  const known = new Map(readAll(folder).map((item) => [item.id, item]))

  return {
    /** @returns {Diagnostic[]} newest first */
    list: () => [...known.values()].reverse(),
    /** @param {number} id @returns {Diagnostic | null} */
    get: (id) => known.get(id) ?? null,
    nextId: () => Math.max(0, ...known.keys()) + 1,

    /** @param {Diagnostic} item @returns {string} its file, made empty */
    create (item) {
      const file = fileOf(item)
      rmSync(file, { force: true })
      closeSync(openSync(file, 'wx', 0o600))
      keepItem(item)
      return file
    },

    keep: keepItem,
    fileOf,

    /** @param {Diagnostic} item @returns {number} */
    sizeOf (item) {
      const stat = lstatSync(fileOf(item), { throwIfNoEntry: false })
      return stat?.isFile() ? stat.size : 0
    },

    remove: removeItem,

    /** Removes the oldest ones beyond the limits. */
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

  /** @param {Diagnostic} item */
  function keepItem (item) {
    known.set(item.id, item)
    writeJson(aboutOf(item.id), item)
  }

  /** @param {Diagnostic} item */
  function removeItem (item) {
    known.delete(item.id)
    rmSync(fileOf(item), { force: true })
    rmSync(aboutOf(item.id), { force: true })
  }

  /** @param {Diagnostic} item */
  function fileOf ({ id, worker, kind }) {
    return path.join(folder, `${id}-worker-${worker}.${EXTENSIONS[kind]}`)
  }

  function aboutOf (/** @type {number} */ id) {
    return path.join(folder, `${id}.about.json`)
  }
}

/** @param {string} folder @returns {Diagnostic[]} those of earlier masters, by id */
function readAll (folder) {
  return readdirSync(folder).filter((name) => /^\d+\.about\.json$/.test(name)).flatMap((name) => {
    const item = Object(readJson(path.join(folder, name)))
    // It is not one of ours, or was cut short by a full disk.
    if (!Number.isSafeInteger(item.id) || !Number.isSafeInteger(item.worker) || !Object.hasOwn(EXTENSIONS, item.kind)) return []
    return [item.state === 'running' ? { ...item, state: 'failed', error: 'the master ended before it was done' } : item]
  }).sort((a, b) => a.id - b.id)
}
