import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Short, as the path of a Unix socket has to be. */
const TEMPORARY = 't-'
const folders: string[] = []

if (process.env.NODE_TEST_CONTEXT !== undefined) await import('./place.ts')
else {
  // Programs that are no tests meet no deck and no host of this user either.
  process.env.CLUSTERDECK_RUNTIME_DIR = path.join(tempFolder(), 'running')
  process.env.CLUSTERDECK_HOST_DIR = path.join(tempFolder(), 'host')
}

// At the very end, when everything that writes to them is gone.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder of its own for a test, removed when the tests of its file have ended. */
export function tempFolder () {
  const folder = mkdtempSync(path.join(os.tmpdir(), TEMPORARY))
  folders.push(folder)
  return folder
}

/** `files`: by name, with the folders that they are in; null: it is removed */
export function writeFiles (folder: string, files: Record<string, string | null>) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    if (text === null) rmSync(path.join(folder, name), { recursive: true })
    else writeFileSync(path.join(folder, name), text)
  }
}
