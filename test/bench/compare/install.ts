import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createOwner } from '../../support/owner.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const MAJOR = Number(process.versions.node.split('.')[0])
/** Where the peers of this Node are, outside of what is checked in. */
export const PEERS = path.join(import.meta.dirname, '.peers', `node-${MAJOR}`)
const OWN = path.join(PEERS, 'clusterdeck')
/**
 * The command of clusterdeck as npm installs it: with native code for this Node, and without what only its development
 * needs.
 */
export const CLI = path.join(OWN, 'node_modules', 'clusterdeck', 'server', 'cli.js')
/** Watt takes a newer Node than the oldest that clusterdeck runs on. */
export const canRunWatt = MAJOR >= 22
const PACKAGES = Object.freeze({ pm2: '7', ...canRunWatt && { wattpm: '3', '@platformatic/node': '3' } })
export const QUIETLY = Object.freeze(['--no-audit', '--no-fund', '--loglevel=error'])
export const { run } = createOwner()

/**
 * Installs the peers, where that has not been done, and this clusterdeck.
 * @returns the version of each package of a peer
 */
export async function installPeers (): Promise<Record<string, string>> {
  if (!existsSync(path.join(PEERS, 'node_modules', '.package-lock.json'))) {
    makeProject(PEERS)
    await run('npm', ['install', ...QUIETLY, ...Object.entries(PACKAGES).map(([name, version]) =>
      `${name}@${version}`
    )], { cwd: PEERS })
  }
  await installOwn()
  return Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, versionOf(name)]))
}

/** What it depends on is kept from the last time, as it may have been compiled. */
async function installOwn () {
  makeProject(OWN)
  // They know the file of the last time, which had the same version.
  for (const file of ['package-lock.json', 'node_modules/.package-lock.json', 'node_modules/clusterdeck'])
    rmSync(path.join(OWN, file), { recursive: true, force: true })
  await run('npm', ['install', ...QUIETLY, await packOwn(OWN)], { cwd: OWN })
}

/** @returns the path of the file there that is published of this clusterdeck */
export async function packOwn (folder: string): Promise<string> {
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT })
  return path.join(folder, String(readdirSync(folder).find((name) => name.endsWith('.tgz'))))
}

export function makeProject (folder: string) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n')
}

/** `name`: of a package */
export function versionOf (name: string): string {
  return JSON.parse(readFileSync(path.join(PEERS, 'node_modules', name, 'package.json'), 'utf8')).version
}
