import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { runInThisContext } from 'node:vm'
import { errorText } from '../errors.js'
import { toPlain } from './plain.js'

/** Runs one file of PM2 and sends what it exports; see ecosystem-file.js. */

const [, , file] = process.argv
try {
  process.send?.(toPlain(file.endsWith('.json') ? looseJson(file) : await exportedValue(file)))
} catch (error) {
  process.send?.({ reason: errorText(error) })
}

/** @param {string} file */
async function exportedValue (file) {
  const { default: value, ...named } = await import(pathToFileURL(file).href)
  return value ?? named
}

/** PM2 reads JSON as JavaScript, so it takes comments and trailing commas. @param {string} file */
function looseJson (file) {
  return runInThisContext(`(${readFileSync(file, 'utf8')}\n)`, { filename: file })
}
