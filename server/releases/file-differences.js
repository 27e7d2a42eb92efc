import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { listTree } from './tree.js'

/**
 * Which files of an app's folder differ. Packages are left out: their lock file tells of them.
 * @typedef {import('./tree.js').TreeEntry} TreeEntry
 * @typedef {Map<string, { stamp: string, writtenAt: number, entry: TreeEntry }>} Listing  by the name of the file, from its top; `writtenAt`: wall ms
 * @typedef {{ added: string[], changed: string[], removed: string[] }} Differences  names
 * @typedef {{ left: readonly string[], data: string }} Parts  `left`: files and folders of it that are no part of a release; `data`: our own folder
 */

/** A folder with more files is not listed: it may be the home folder of somebody. */
const MAX_FILES = 20_000
/** More is not read to compare contents. */
const MAX_READ_BYTES = 64 * 1024 * 1024
const READ_AT_ONCE = 16
/** Our configuration: what has changed in it is told by its options. */
const CONFIG_FILE = /^clusterdeck\.config\.\w+$/

/**
 * @param {Pick<import('./launch-spec.js').WorkerConfig, 'envFile' | 'releases'>} config
 * @returns {string[]} the parts of an app's folder that are no part of a release: the variables of a release are kept with it
 */
export function partsLeftOut ({ envFile, releases: { shared, exclude } }) {
  return [...shared, ...exclude, ...envFile === undefined ? [] : [envFile]]
}

/**
 * @param {string} top real path @param {Parts} parts
 * @returns {Promise<Listing>} @throws {Error} it cannot be read, or has too many files
 */
export async function listFolder (top, { left, data }) {
  const except = [await realpath(data), ...left.map((name) => path.resolve(top, name))]
  const { entries } = await listTree(top, { except, packages: false, limit: MAX_FILES })
  return new Map(entries.filter(({ kind, name }) => kind !== 'folder' && !CONFIG_FILE.test(name)).map((entry) => [entry.name, { stamp: stampOf(entry), writtenAt: entry.ctimeMs, entry }]))
}

/** @param {Map<string, { stamp: string }>} before @param {Map<string, { stamp: string }>} now @returns {Differences} by their stamps */
export function differencesOf (before, now) {
  const names = [...now.keys()]
  return {
    added: names.filter((name) => !before.has(name)),
    changed: names.filter((name) => before.has(name) && before.get(name)?.stamp !== now.get(name)?.stamp),
    removed: [...before.keys()].filter((name) => !now.has(name))
  }
}

/**
 * How the files of two folders differ in content: those of a copy or a checkout have other times.
 * @param {string} from @param {string} to @param {Parts} parts
 * @returns {Promise<Differences | null>} null: one of them cannot be read, or there is too much to read
 */
export async function differencesBetween (from, to, parts) {
  try {
    const [before, now] = await Promise.all([listFolder(from, parts), listFolder(to, parts)])
    const { added, changed, removed } = differencesOf(before, now)
    const found = new Map(changed.map((name) => [name, compareEntries(before.get(name)?.entry, now.get(name)?.entry)]))
    const unread = changed.filter((name) => found.get(name) === 'unread')
    if (unread.reduce((sum, name) => sum + 2 * (now.get(name)?.entry.size ?? 0), 0) > MAX_READ_BYTES) return null
    for (let at = 0; at < unread.length; at += READ_AT_ONCE) {
      await Promise.all(unread.slice(at, at + READ_AT_ONCE).map(async (name) => {
        const [old, fresh] = await Promise.all([readFile(path.join(from, name)), readFile(path.join(to, name))])
        found.set(name, old.equals(fresh) ? 'same' : 'other')
      }))
    }
    return { added, changed: changed.filter((name) => found.get(name) === 'other'), removed }
  } catch {
    return null
  }
}

/**
 * @param {TreeEntry | undefined} one @param {TreeEntry | undefined} other  of the same name in another folder
 * @returns {'same' | 'other' | 'unread'} unread: only their contents can tell
 */
function compareEntries (one, other) {
  if (one?.kind === 'link' && other?.kind === 'link') return one.target === other.target ? 'same' : 'other'
  if (one?.kind !== 'file' || other?.kind !== 'file' || one.size !== other.size) return 'other'
  // A copy has the time of its original, but not to the last nanosecond.
  return Math.abs(one.mtimeMs - other.mtimeMs) < 0.01 ? 'same' : 'unread'
}

/** @param {TreeEntry} entry @returns {string} a plain text, as there may be thousands */
function stampOf ({ kind, mode, size, mtimeMs, mark, target }) {
  return `${kind}:${mode}:${size}:${mtimeMs}:${mark}:${target ?? ''}`
}
