import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { listTree, type TreeEntry } from './tree.ts'
import type { WorkerConfig } from './launch-spec.ts'

/** Which files of an app's folder differ. Packages are left out: their lock file tells of them. */
/** of each file: its name, and what differs once it has been written */
export type Stamps = string[]
/** names */
export type Differences = { added: string[], changed: string[], removed: string[] }
/** `left`: files and folders of it that are no part of a release; `data`: our own folder */
type Parts = { left: readonly string[], data: string }

/** A folder with more files is not listed: it may be the home folder of somebody. */
const MAX_FILES = 20_000
const MAX_NAMED = 20
/** More is not read to compare contents. */
const MAX_READ_BYTES = 64 * 1024 * 1024
const READ_AT_ONCE = 16
/** Our configuration: what has changed in it is told by its options. */
const CONFIG_FILE = /^clusterdeck\.config\.\w+$/
/** No name of a file can have it. */
const SEPARATOR = '\0'

/** @returns the parts of an app's folder that are no part of a release: the variables of a release are kept with it */
export function partsLeftOut (
  { envFile, releases: { shared, exclude } }: Pick<WorkerConfig, 'envFile' | 'releases'>
): string[] {
  return [...shared, ...exclude, ...envFile === undefined ? [] : [envFile]]
}

/** `top`: real path. Returns its files and links. @throws {Error} it cannot be read, or has too many files */
export async function listFolder (top: string, { left, data }: Parts): Promise<TreeEntry[]> {
  const except = [await realpath(data), ...left.map((name) => path.resolve(top, name))]
  const entries = await listTree(top, { except, packages: false, limit: MAX_FILES })
  return entries.filter(({ kind, name }) => kind !== 'folder' && !CONFIG_FILE.test(name))
}

/** @returns plain texts, as there may be thousands */
export function stampsOf (files: TreeEntry[]): Stamps {
  return files.map(({ kind, name, mode, size, mtimeMs, mark, target }) =>
    [name, kind, mode, size, mtimeMs, mark, target].join(SEPARATOR)
  )
}

export function differencesOf (before: Stamps, now: Stamps): Differences {
  return sortOut({ gone: namesBeyond(before, now), come: namesBeyond(now, before) })
}

/** @returns the names of the files whose stamps the others do not have */
function namesBeyond (stamps: Stamps, others: Stamps): Set<string> {
  const known = new Set(others)
  return new Set(stamps.filter((stamp) => !known.has(stamp)).map((stamp) => stamp.slice(0, stamp.indexOf(SEPARATOR))))
}

/**
 * How the files of two folders differ in content: those of a copy or a checkout have other times.
 * @returns null: one of them cannot be read, or there is too much to read
 */
export async function differencesBetween (from: string, to: string, parts: Parts): Promise<Differences | null> {
  try {
    const [before, now] = await Promise.all([listByName(from, parts), listByName(to, parts)])
    const names = [...now.keys()]
    const found = new Map(names.map((name) => [name, compareEntries(before.get(name), now.get(name))]))
    const unread = names.filter((name) => found.get(name) === 'unread')
    if (unread.reduce((sum, name) => sum + 2 * (now.get(name)?.size ?? 0), 0) > MAX_READ_BYTES) return null
    for (let at = 0; at < unread.length; at += READ_AT_ONCE) {
      await Promise.all(unread.slice(at, at + READ_AT_ONCE).map(async (name) => {
        const [old, fresh] = await Promise.all([readFile(path.join(from, name)), readFile(path.join(to, name))])
        found.set(name, old.equals(fresh) ? 'same' : 'other')
      }))
    }
    const come = new Set(names.filter((name) => found.get(name) === 'other'))
    return sortOut({ gone: new Set([...before.keys()].filter((name) => !now.has(name) || come.has(name))), come })
  } catch {
    return null
  }
}

/** Only so many are named. */
export function shownFiles (
  { added, changed, removed }: Differences
): { added: number, changed: number, removed: number,
  items: { name: string, change: 'added' | 'changed' | 'removed' }[] }
{
  const named = (names: string[], change: 'added' | 'changed' | 'removed') =>
    names.slice(0, MAX_NAMED).map((name) => ({ name, change }))
  return { added: added.length, changed: changed.length, removed: removed.length,
    items: [...named(changed, 'changed'), ...named(added, 'added'), ...named(removed, 'removed')].slice(0, MAX_NAMED) }
}

/** `names`: what has changed is in both */
function sortOut ({ gone, come }: { gone: Set<string>, come: Set<string> }): Differences {
  return { added: [...come].filter((name) => !gone.has(name)), changed: [...come].filter((name) => gone.has(name)),
    removed: [...gone].filter((name) => !come.has(name)) }
}

async function listByName (top: string, parts: Parts): Promise<Map<string, TreeEntry>> {
  return new Map((await listFolder(top, parts)).map((entry) => [entry.name, entry]))
}

/** `other`: of the same name in another folder. Returns unread: only their contents can tell. */
function compareEntries (one: TreeEntry | undefined, other: TreeEntry | undefined): 'same' | 'other' | 'unread' {
  if (one?.kind === 'link' && other?.kind === 'link') return one.target === other.target ? 'same' : 'other'
  if (one?.kind !== 'file' || other?.kind !== 'file' || one.size !== other.size) return 'other'
  // A copy has the time of its original, but not to the last nanosecond.
  return Math.abs(one.mtimeMs - other.mtimeMs) < 0.01 ? 'same' : 'unread'
}
