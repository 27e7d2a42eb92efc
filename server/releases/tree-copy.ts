import { constants } from 'node:fs'
import { chmod, copyFile, link, mkdir, realpath, rename, rm, symlink, utimes } from 'node:fs/promises'
import path from 'node:path'
import { DeckError, errorCode, errorText } from '../errors.ts'
import { isBelow } from './resolve.ts'
import type { TreeEntry } from './tree.ts'

const AT_ONCE = 16
/** The names of unfinished copies begin with this. */
export const UNFINISHED = '.new-'

/** The file system cannot do it, or not between these two places. */
const CANNOT = new Set(['EXDEV', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'ENOTTY'])
/** This file cannot be linked: it belongs to another user, or has the most links that it can have. */
const MAY_NOT = new Set(['EPERM', 'EACCES', 'EMLINK'])

/**
 * Copies the folder of an app, so that later changes of it reach no worker that runs from the copy. If the file system
 * can share blocks (btrfs, xfs, …), everything is cloned. Otherwise the app's own files are copied, and those of
 * node_modules are hard links: package managers replace files, which does not change the copy, but a file that is
 * written in place changes in both. `entries`: of listTree; `to`: does not exist yet; it appears whole or not
 * at all; `links`: what is shared by all copies, the target by the name in the copy.
 * @throws {DeckError} copy-failed; then nothing is left of it
 */
export async function copyTree (entries: TreeEntry[],
  { from, to, links = {} }: { from: string, to: string, links?: Readonly<Record<string, string>> })
{
  const unfinished = path.join(path.dirname(to), `${UNFINISHED}${path.basename(to)}`)
  try {
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true, mode: 0o700 })
    await addTree(entries, { from, to: unfinished })
    for (const [name, target] of Object.entries(links)) {
      await symlink(target,
        path.join(await makeWithin(path.dirname(path.join(unfinished, name)), unfinished), path.basename(name)))
    }
    await rename(unfinished, to)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true }).catch(() => {})
    if (error instanceof DeckError) throw error
    throw new DeckError('copy-failed', `the copy of ${from} failed: ${reasonOf(error)}`, { cause: error })
  }
}

/**
 * Makes a folder of a release for what is shared. A link on the way there may lead out of the release, where nothing is
 * made. `top`: of the release, a real path. Returns its real path.
 * @throws {DeckError} invalid-config
 */
export async function makeWithin (folder: string, top: string): Promise<string> {
  const real = await realpath(folder).catch(nullIfMissing)
  if (real === null) {
    const made = path.join(await makeWithin(path.dirname(folder), top), path.basename(folder))
    await mkdir(made)
    return made
  }
  if (real === top || isBelow(real, top)) return real
  throw new DeckError('invalid-config',
    `releases.shared: expected places within the release, received one below ${
      path.relative(top, folder)
    }, which leads to ${real}`)
}

/** Copies files into a folder that may have others already, as copyTree does. `entries`: of listTree. */
export async function addTree (entries: TreeEntry[], { from, to }: { from: string, to: string }) {
  const can = { clone: true, link: true }
  const folders = entries.filter(({ kind }) => kind === 'folder')
  // A folder without the right to write could be neither filled nor removed.
  for (const { name, mode } of folders)
    await mkdir(path.join(to, name), { mode: (mode & 0o777) | 0o700, recursive: true })
  const rest = entries.filter(({ kind }) => kind !== 'folder').values()
  const ends = await Promise.allSettled(Array.from({ length: AT_ONCE }, async () => {
    for (const entry of rest) await putFile(entry).catch(giveUp)
  }))
  for (const end of ends) if (end.status === 'rejected') throw end.reason

  /** Takes all entries, so that the others stop too. */
  function giveUp (error: unknown) {
    while (!rest.next().done);
    throw error
  }

  async function putFile (entry: TreeEntry) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)]
    try {
      if (entry.kind === 'link') await symlink(await sameTarget(entry, from), target)
      else if (await tryClone(source, target)) await finishFile(entry, target)
      else if (!(entry.isDependency && await tryLink(source, target))) {
        await copyFile(source, target, constants.COPYFILE_EXCL)
        await finishFile(entry, target)
      }
    } catch (error) {
      // ENOENT: it was removed in the meantime, which changes nothing for the copy.
      if (errorCode(error) !== 'ENOENT') throw error
    }
  }

  async function finishFile ({ mode, mtimeMs }: TreeEntry, target: string) {
    // Apps make ETag and Last-Modified from the time.
    await utimes(target, mtimeMs / 1000, mtimeMs / 1000)
    await chmod(target, mode & 0o777)
  }

  async function tryClone (source: string, target: string): Promise<boolean> {
    if (!can.clone) return false
    try {
      await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
      return true
    } catch (error) {
      if (!CANNOT.has(errorCode(error) ?? '')) throw error
      can.clone = false
      return false
    }
  }

  async function tryLink (source: string, target: string): Promise<boolean> {
    if (!can.link) return false
    try {
      await link(source, target)
      return true
    } catch (error) {
      if (CANNOT.has(errorCode(error) ?? '')) can.link = false
      else if (!MAY_NOT.has(errorCode(error) ?? '')) throw error
      return false
    }
  }
}

/**
 * Finds the target of a link in the copy: a link within the folder leads to the same place within the copy, any other
 * to its old target. `from`: a real path.
 */
async function sameTarget ({ name, target }: TreeEntry, from: string) {
  const at = path.dirname(path.join(from, name))
  const absolute = path.resolve(at, String(target))
  const isInside = (place: string) => place === from || place.startsWith(from + path.sep)
  const inside = isInside(absolute)
    ? absolute
    : await realpath(absolute).then((real) => isInside(real) ? real : null, () => null)
  return inside === null ? absolute : path.relative(at, inside) || '.'
}

function nullIfMissing (error: unknown): null {
  if (errorCode(error) !== 'ENOENT') throw error
  return null
}

function reasonOf (error: unknown) {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')
  return isFull ? 'the disk with the data folder is full' : errorText(error)
}
