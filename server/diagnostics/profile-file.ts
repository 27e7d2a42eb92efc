import { readFile, stat } from 'node:fs/promises'
import { writeJson } from '../system/json-file.ts'
import { withOriginalPlaces, type Places } from './original-places.ts'

/** A larger one would block the loop of the master for long. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Puts the places of sources into the file of a CPU profile that has just been taken. One that is too large, or not
 * whole, stays as the worker has written it. `root`: the folder of its release.
 */
export async function putOriginalPlaces (file: string, root: string, places: Places) {
  try {
    if ((await stat(file)).size > MAX_BYTES) return
    const profile = JSON.parse(await readFile(file, 'utf8'))
    const original = withOriginalPlaces(profile, root, places)
    if (original !== profile) writeJson(file, original)
  } catch {
    // Nothing in it is believed; ENOSPC: there is no room for both.
  }
}
