import { readFileSync } from 'node:fs'
import { attempt } from '../errors.ts'

/** A file that needs any other module of Node may listen itself, or have workers of its own. */
const OF_LAUNCHERS = new Set(['assert', 'child_process', 'events', 'fs', 'fs/promises', 'module', 'os', 'path',
  'process', 'timers', 'timers/promises', 'url', 'util', 'cross-spawn', 'dotenv', 'dotenv/config', 'execa'])
const IMPORTS = /\brequire\(\s*['"]([^'"]+)['"]|\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g
const STARTS_NODE = /\bfork\(|\b(?:spawn|execFile|execa)\(\s*(?:process\.execPath|['"]node['"])/
const MAX_CHARS = 64 * 1024

/**
 * Whether a file does nothing but start Node for another one: a start script. The server is a process of its own then,
 * and no worker of the cluster, so the file is run as a program of another language is: all that it starts is heard,
 * drained and ended.
 */
export function isLauncher (file: string) {
  // ENOENT, EACCES: whoever starts it says so.
  const source = attempt(() => readFileSync(file, 'utf8'), '')
  if (source.length > MAX_CHARS || !STARTS_NODE.test(source)) return false
  return [...source.matchAll(IMPORTS)].every(([, required, from, imported]) => {
    const name = (required ?? from ?? imported).replace(/^node:/, '')
    return OF_LAUNCHERS.has(name)
  })
}
