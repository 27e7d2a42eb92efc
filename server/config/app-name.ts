import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from './apps.ts'
import type { Config } from './config.ts'

/**
 * What an app is called by those who have several: as somebody has called it, or as its package, or else as its folder.
 * @returns fit for a path and for a command line
 */
export function appName ({ name, entry, cwd, launch }: Pick<Config, 'name' | 'entry' | 'cwd' | 'launch'>): string {
  if (name !== undefined) return name
  const found = packageName(launch ? cwd : path.dirname(entry)) ?? path.basename(cwd)
  const text = found.replace(/^@[^/]*\//, '').replace(/[^\w.-]+/g, '-').replace(/^[^A-Za-z\d]+/, '').slice(0, 60)
  return DECK_NAME.test(text) ? text : 'app'
}

/** @returns of the nearest package.json from here upwards */
export function packageName (folder: string): string | null {
  try {
    const { name } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8').replace(/^\uFEFF/, ''))
    if (typeof name === 'string' && name !== '') return name
  } catch {
    // There is none here, or it cannot be read.
  }
  return path.dirname(folder) === folder ? null : packageName(path.dirname(folder))
}
