// Of what is imported, Node reads all exports, and so loads the streams of node:fs: 7 ms of CPU before the keeper, and before the master.
const { readFileSync, statSync } = process.getBuiltinModule('node:fs')
const { fileURLToPath } = process.getBuiltinModule('node:url')

const ROOT = new URL('..', import.meta.url)

/**
 * Where the code of clusterdeck is: in the bundle where there is one of just these sources, as `npm run bundle` makes it, which starts
 * much sooner; else in the sources.
 * @param {URL} [root]
 * @returns {{ url: string, name: string }} of the module of the command line; `name`: of the bundle
 */
export function ownCode (root = ROOT) {
  const name = bundleOf(root)
  return name === null ? { url: new URL('server/command-line.js', root).href, name: 'sources' } : { url: new URL(`dist/${name}/command-line.js`, root).href, name }
}

/** @param {URL} root @returns {string | null} */
function bundleOf (root) {
  const list = new URL('dist/bundle.json', root)
  try {
    const { name, sources } = JSON.parse(readFileSync(list, 'utf8'))
    // What a package manager has unpacked is as it was packed.
    const isFresh = root.pathname.includes('/node_modules/') || areUnchanged(fileURLToPath(root), sources, statSync(list).mtimeMs)
    return isFresh ? name : null
  } catch {
    // ENOENT: nobody has made one, or a source is gone.
    return null
  }
}

/** @param {string} folder @param {Record<string, number>} sources their sizes in bytes @param {number} since ms since the epoch */
function areUnchanged (folder, sources, since) {
  return Object.entries(sources).every(([file, bytes]) => {
    const { size, mtimeMs } = statSync(folder + file)
    return size === bytes && mtimeMs <= since
  })
}
