import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../../server/errors.ts'
import { FIXTURES, startDeck } from '../../support/deck.ts'
import { tempFolder } from '../../support/folder.ts'
import { createOwner } from '../../support/owner.ts'
import { makeProject, packOwn, QUIETLY, run, versionOf } from './install.ts'
import type { Peer } from './peers.ts'
import type { Cell } from './rows.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const COMPILERS = /^(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|c\d\d|clang|make|gmake|cmake|python)[\d.+-]*$/

/** How a peer gets into a folder. */
export type Install = {
  /** what is not measured; resolves with the arguments of npm */
  prepare: (folder: string) => Promise<string[]>,
  /** rejects where it does not run */
  tryOut?: (folder: string) => Promise<void>
}

/** by the name of a peer */
export const INSTALLS = Object.freeze({ clusterdeck: { async prepare (folder: string) {
  makeProject(folder)
  return ['install', await packOwn(folder)]
}, tryOut: (folder: string) => runClusterdeck(path.join(folder, 'node_modules', 'clusterdeck')) },
  clone: { async prepare (folder: string) {
    await run('git', ['clone', '--quiet', '--depth', '1', `file://${ROOT}`, folder])
    return ['ci', '--include=dev']
  }, tryOut: runClusterdeck }, pm2: { prepare: (folder) => fromRegistry(folder, 'pm2') },
  watt: { prepare: (folder) => fromRegistry(folder, 'wattpm', '@platformatic/node') } }) satisfies Record<string,
    Install>

/** `names`: of packages */
async function fromRegistry (folder: string, ...names: string[]) {
  makeProject(folder)
  return ['install', ...names.map((name) => `${name}@${versionOf(name)}`)]
}

export async function measureInstall ({ install }: Peer): Promise<Cell> {
  if (!install) throw new Error('it is not installed')
  const folder = path.join(tempFolder(), 'project')
  mkdirSync(folder)
  const args = await install.prepare(folder)
  const env = { ...process.env, PATH: pathWithoutCompilers(), npm_config_cache: tempFolder() }
  const begunAt = performance.now()
  await run('npm', [...args, ...QUIETLY], { cwd: folder, env })
  const seconds = (performance.now() - begunAt) / 1000
  await install.tryOut?.(folder)
  const { stdout } = await run('du', ['-sk', 'node_modules'], { cwd: folder })
  const { packages } = JSON.parse(readFileSync(path.join(folder, 'node_modules', '.package-lock.json'), 'utf8'))
  return { seconds, MB: parseInt(stdout) / 1024, packages: Object.keys(packages).length }
}

/**
 * What builds native code, or looks for it, finds none of its tools.
 * @returns folders with all other programs
 */
function pathWithoutCompilers (): string {
  const folder = tempFolder()
  const linked = new Set()
  for (const place of String(process.env.PATH).split(':')) {
    for (const name of list(place)) {
      if (COMPILERS.test(name) || linked.has(name)) continue
      linked.add(name)
      symlinkSync(path.join(place, name), path.join(folder, name))
    }
  }
  return folder
}

function list (place: string): string[] {
  // ENOENT: PATH may name folders that are not there.
  return attempt(() => readdirSync(place), [])
}

/**
 * Runs an app and keeps its history: native code that is missing does not fail an installation.
 * @param folder of the package
 */
async function runClusterdeck (folder: string) {
  const owner = createOwner()
  try {
    const deck = await startDeck(owner, path.join(FIXTURES, 'compared-app.cjs'), {
      cli: path.join(folder, 'server', 'cli.js'),
      env: { PORT: '0' }
    })
    await deck.until({ ready: 2 })
    const kept = await deck.history()
    assert.notEqual(kept.length, 0)
  } catch (cause) {
    throw new Error('what is installed does not run', { cause })
  } finally {
    await owner.end()
  }
}
