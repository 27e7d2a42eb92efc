import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/** @param {string} file @param {unknown} content renamed into place, so that no reader sees half of it; its owner's alone */
export function writeJson (file, content) {
  try {
    writeFileSync(`${file}.new`, `${JSON.stringify(content)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  } catch (error) {
    removeRest(`${file}.new`)
    throw error
  }
}

/** What a full disk has taken of it. @param {string} file */
function removeRest (file) {
  try {
    rmSync(file, { force: true })
  } catch {
    // EROFS; EISDIR: it is not ours.
  }
}

/** @param {string} file @returns {any} null when there is none that can be read */
export function readJson (file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
