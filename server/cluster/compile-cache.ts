import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'

/** Each release in a folder of its own adds to it, and Node removes nothing. */
const MAX_BYTES = 256 * 1024 * 1024
/** Workers that start have the CPUs to themselves. */
const LOOK_AFTER_MS = 30_000

/**
 * Once after a start, empties the folder in which Node keeps what it has compiled of the app's code, if it has grown
 * too large: it fills again with what is used.
 */
export function boundCompileCache (folder: string,
  { maxBytes = MAX_BYTES, afterMs = LOOK_AFTER_MS }: { maxBytes?: number, afterMs?: number } = {})
{
  setTimeout(async () => {
    try {
      if (await bytesIn(folder) > maxBytes) await rm(folder, { recursive: true, force: true })
    } catch {
      // ENOENT: no worker has written there. Whatever else it is, it is as good at the next start.
    }
  }, afterMs).unref()
}

async function bytesIn (folder: string) {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(path.join(entry.parentPath ?? entry.path, entry.name))).size
  }
  return bytes
}
