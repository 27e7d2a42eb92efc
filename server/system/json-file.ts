import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

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

/** Removes what a full disk has taken of it. */
function removeRest (file: string) {
  try {
    rmSync(file, { force: true })
  } catch {
    // EROFS; EISDIR: it is not ours.
  }
}

/** Null: there is none that can be read */
export function readJson (file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
