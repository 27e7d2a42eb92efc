import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { DeckError } from '../errors.ts'
import { readPackage } from './resolve.ts'

/**
 * A package of a workspace (npm, pnpm, Yarn) finds its packages in folders above its own, so only the whole workspace
 * can be copied. `folder`: a package folder, real path. Returns the nearest folder above it that is a workspace or has
 * Yarn Plug'n'Play, within its repository; else itself.
 * @throws {DeckError} copy-failed: its packages are outside
 */
export async function workspaceFolder (folder: string): Promise<string> {
  for (let at = folder; at !== path.dirname(at); at = path.dirname(at)) {
    if (await isThere(path.join(at, '.pnp.cjs'))) {
      await refuseOutside(path.join(at, '.pnp.cjs'))
      return at
    }
    if (await isThere(path.join(at, 'pnpm-workspace.yaml')) || (await readPackage(at))?.workspaces) return at
    if (await isThere(path.join(at, '.git'))) break
  }
  return folder
}

/** `file`: names the folder of each package from its own */
async function refuseOutside (file: string) {
  if (!/"packageLocation": ?"\.\.\//.test(await readFile(file, 'utf8'))) return
  throw new DeckError('copy-failed',
    `the copy of ${
      path.dirname(file)
    } failed: its packages are in Yarn's global cache. Set "enableGlobalCache: false" in .yarnrc.yml and run yarn install`)
}

function isThere (file: string) {
  return stat(file).then(() => true, () => false)
}
