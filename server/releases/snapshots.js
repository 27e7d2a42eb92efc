import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { DeckError, errorCode, errorText } from '../errors.js'
import { copyTree, UNFINISHED } from './snapshot.js'
import { listTree } from './tree.js'

/** The names of folders that are being removed begin with this. */
const LEAVING = '.gone-'

/**
 * Keeps the copies from which releases run, each in a folder named by the release: `r7`, …
 * @param {object} parts
 * @param {string} parts.dataFolder  is never copied
 * @param {string} parts.releaseFolder  where the copies are
 * @param {(error: unknown) => void} parts.onError  a copy could not be removed
 */
export function createSnapshots ({ dataFolder, releaseFolder, onError }) {
  return {
    /**
     * @param {import('./resolve.js').Place} place
     * @returns {Promise<Awaited<ReturnType<typeof listTree>>>} the entries that a copy of its folder would have
     * @throws {DeckError} snapshot-failed
     */
    async look ({ folder, entry }) {
      mkdirSync(releaseFolder, { recursive: true, mode: 0o700 })
      const except = await realpath(dataFolder)
      if (folder === except) {
        throw new DeckError('snapshot-failed', `dataDir: expected another folder than that of the app, received ${folder}: a snapshot would copy itself`)
      }
      if (path.relative(folder, entry).startsWith('..')) {
        throw new DeckError('snapshot-failed', `the snapshot of ${folder} failed: its entry, ${entry}, is not in it`)
      }
      try {
        return await listTree(folder, { except })
      } catch (error) {
        if (error instanceof DeckError) throw error
        throw new DeckError('snapshot-failed', `the snapshot of ${folder} failed: ${errorText(error)}`, { cause: error })
      }
    },

    /**
     * @param {string} id of the release that gets a copy @param {import('./resolve.js').Place} place @param {Awaited<ReturnType<typeof listTree>>} tree
     * @returns {Promise<{ mode: 'snapshot', entry: string, path: string }>}
     * @throws {DeckError} snapshot-failed; then nothing is left of it
     */
    async keep (id, { entry, folder }, { entries }) {
      const copy = path.join(await realpath(releaseFolder), id)
      await copyTree(entries, { from: folder, to: copy })
      return { mode: 'snapshot', entry: path.join(copy, path.relative(folder, entry)), path: copy }
    },

    /** @returns {string[]} the names of all copies, also unfinished ones */
    names () {
      try {
        return readdirSync(releaseFolder).filter((name) => /^r\d+$/.test(name) || name.startsWith(UNFINISHED) || name.startsWith(LEAVING))
      } catch {
        // ENOENT: no snapshot was ever made.
        return []
      }
    },

    /** @param {string} name it is renamed first, so that half of it is never taken for a whole @returns {Promise<void>} never rejects */
    async remove (name) {
      try {
        const leaving = path.join(releaseFolder, name.startsWith(LEAVING) ? name : `${LEAVING}${name}`)
        if (!name.startsWith(LEAVING)) renameSync(path.join(releaseFolder, name), leaving)
        await rm(leaving, { recursive: true, force: true, maxRetries: 2 })
      } catch (error) {
        // ENOENT: another process has removed it.
        if (errorCode(error) !== 'ENOENT') onError(error)
      }
    }
  }
}
