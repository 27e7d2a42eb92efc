import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from './apps.js'

/**
 * What an app is called by those who have several: as somebody has called it, or as its package, or else as its folder.
 * @param {Pick<import('./config.js').Config, 'name' | 'entry' | 'cwd' | 'launch'>} config
 * @returns {string} fit for a path and for a command line
 */
export function appName ({ name, entry, cwd, launch }) {
  if (name !== undefined) return name
  const found = packageName(launch ? cwd : path.dirname(entry)) ?? path.basename(cwd)
  const text = found.replace(/^@[^/]*\//, '').replace(/[^\w.-]+/g, '-').replace(/^[^A-Za-z\d]+/, '').slice(0, 60)
  return DECK_NAME.test(text) ? text : 'app'
}

/** @param {string} folder @returns {string | null} of the nearest package.json from here upwards */
export function packageName (folder) {
  try {
    const { name } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8').replace(/^\uFEFF/, ''))
    if (typeof name === 'string' && name !== '') return name
  } catch {
    // There is none here, or it cannot be read.
  }
  return path.dirname(folder) === folder ? null : packageName(path.dirname(folder))
}
