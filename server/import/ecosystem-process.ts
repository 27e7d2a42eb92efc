import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { runInThisContext } from 'node:vm'
import { errorText } from '../errors.ts'
import { toPlain } from './plain.ts'

/** Runs one file of PM2 and sends what it exports; see ecosystem-file.ts. */

const [, , file] = process.argv
try {
  process.send?.(toPlain(file.endsWith('.json') ? looseJson(file) : await exportedValue(file)))
} catch (error) {
  process.send?.({ reason: errorText(error) })
}

async function exportedValue (file: string) {
  const { default: value, ...named } = await import(pathToFileURL(file).href)
  return value ?? named
}

/** PM2 reads JSON as JavaScript, so it takes comments and trailing commas. */
function looseJson (file: string) {
  return runInThisContext(`(${readFileSync(file, 'utf8')}\n)`, { filename: file })
}
