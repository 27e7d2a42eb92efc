import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import path from 'node:path'
import { attempt } from '../errors.ts'

/** Writes a file that its owner alone can read, and renames it into place, so that no reader sees half of it. */
export function writeJson (file: string, content: unknown) {
  try {
    writeFileSync(`${file}.new`, `${JSON.stringify(content)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  } catch (error) {
    removeRest(`${file}.new`)
    throw error
  }
}

/**
 * The same, and a power cut takes none of it: it resolves once the disk has it, and the main thread does not wait.
 * @throws what the system says, as on a full disk; then the file is as before
 */
export async function storeJson (file: string, content: unknown): Promise<void> {
  try {
    const rest = await open(`${file}.new`, 'w', 0o600)
    try {
      await rest.writeFile(`${JSON.stringify(content)}\n`)
      await rest.sync()
    } finally {
      await rest.close()
    }
    await rename(`${file}.new`, file)
    await syncFolder(path.dirname(file))
  } catch (error) {
    removeRest(`${file}.new`)
    throw error
  }
}

/** Only then is the name of a new file, or its end, on the disk. */
export async function syncFolder (folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Removes what a full disk has taken of it. */
function removeRest (file: string) {
  // EROFS; EISDIR: it is not ours.
  attempt(() => rmSync(file, { force: true }))
}

/** Null: there is none that can be read */
export function readJson (file: string): unknown {
  return attempt(() => JSON.parse(readFileSync(file, 'utf8')))
}
