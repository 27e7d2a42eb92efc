import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('..', import.meta.url)
const SOURCES = 'sources'
const CODE_VARIABLE = 'CLUSTERDECK_KEPT_CODE'

/**
 * Where the code of clusterdeck is: in the bundle where there is one of just these sources, as `npm run bundle` makes it, which starts
 * much sooner; else in the sources.
 * @param {URL} [root] @param {string | null} [told]  the name that the keeper has found a moment ago
 * @returns {{ url: string, name: string }} of the module of the command line; `name`: of the bundle
 */
export function ownCode (root = ROOT, told = null) {
  const name = told ?? bundleOf(root)
  return { url: new URL(name === SOURCES ? 'server/command-line.js' : `dist/${name}/command-line.js`, root).href, name }
}

/**
 * What a keeper tells its first master, which starts at once and so need not look at each source again.
 * @param {string} name @returns {Record<string, string>} variables
 */
export function tellCode (name) {
  return { [CODE_VARIABLE]: name }
}

/** @param {Record<string, string | undefined>} env  is left without it @param {number} parent  pid @returns {string | null} the name that the keeper has told this process */
export function toldCode (env, parent = process.ppid) {
  const { [CODE_VARIABLE]: name = null, CLUSTERDECK_KEPT: keeper } = env
  delete env[CODE_VARIABLE]
  return keeper === String(parent) ? name : null
}

/** @param {URL} root @returns {string} */
function bundleOf (root) {
  const list = new URL('dist/bundle.json', root)
  try {
    const { name, sources } = JSON.parse(readFileSync(list, 'utf8'))
    // What a package manager has unpacked is as it was packed.
    const isFresh = root.pathname.includes('/node_modules/') || areUnchanged(fileURLToPath(root), sources, statSync(list).mtimeMs)
    return isFresh ? name : SOURCES
  } catch {
    // ENOENT: nobody has made one, or a source is gone.
    return SOURCES
  }
}

/** @param {string} folder @param {Record<string, number>} sources their sizes in bytes @param {number} since ms since the epoch */
function areUnchanged (folder, sources, since) {
  return Object.entries(sources).every(([file, bytes]) => {
    const { size, mtimeMs } = statSync(folder + file)
    return size === bytes && mtimeMs <= since
  })
}
