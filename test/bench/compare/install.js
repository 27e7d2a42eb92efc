import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

/** Where the peers are, outside of what is checked in. */
export const PEERS = path.join(import.meta.dirname, '.peers')
/** Watt takes a newer Node than the oldest that clusterdeck runs on. */
const PACKAGES = Object.freeze({ pm2: '7', wattpm: '3', '@platformatic/node': '3', node: '24' })
export const WATT_NODE = path.join(PEERS, 'node_modules', 'node', 'bin', 'node')

/** Installs the peers, where that has not been done. @returns {Promise<Record<string, string>>} the version of each package */
export async function installPeers () {
  if (!existsSync(WATT_NODE)) {
    mkdirSync(PEERS, { recursive: true })
    writeFileSync(path.join(PEERS, 'package.json'), '{ "private": true }\n')
    const wanted = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`)
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...wanted], { cwd: PEERS, shell: process.platform === 'win32' })
  }
  return Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, versionOf(name)]))
}

/** @param {string} name of a package @returns {string} */
export function versionOf (name) {
  return JSON.parse(readFileSync(path.join(PEERS, 'node_modules', name, 'package.json'), 'utf8')).version
}
