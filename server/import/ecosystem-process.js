import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { runInThisContext } from 'node:vm'
import { toPlain } from './plain.js'

/** Runs one file of PM2 and sends what it exports; see ecosystem-file.js. */

const [, , file] = process.argv
try {
  process.send?.(toPlain(file.endsWith('.json') ? looseJson(file) : await exportedValue(file)))
} catch (/** @type {any} */ error) {
  process.send?.({ reason: String(error?.message ?? error) })
}

/** @param {string} file */
async function exportedValue (file) {
  const { default: value, ...named } = await import(pathToFileURL(file).href)
  return value ?? named
}

/** With comments and commas at the end, which PM2 takes: it reads JSON as JavaScript. @param {string} file */
function looseJson (file) {
  return runInThisContext(`(${readFileSync(file, 'utf8')}\n)`, { filename: file })
}
