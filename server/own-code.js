// Of what is imported, Node reads all exports, and so loads the streams of node:fs: 7 ms of CPU before the keeper, and
// before the master.
const { existsSync, readFileSync, statSync } = process.getBuiltinModule('node:fs')
const { fileURLToPath } = process.getBuiltinModule('node:url')

const ROOT = new URL('..', import.meta.url)

/**
 * Where the code of clusterdeck is that runs: in the bundle. In a clone that is built anew once a source has changed.
 * @param {URL} [root]
 * @returns {{ folder: URL, name: string } | null} `name`: of the bundle; null: there is none, and it cannot be built,
 * which is told
 */
export function ownCode (root = ROOT) {
  const name = bundleOf(root) ?? (build(root) ? bundleOf(root) : null)
  return name === null ? null : { folder: new URL(`dist/${name}/`, root), name }
}

/** @param {URL} root @returns {string | null} */
function bundleOf (root) {
  const list = new URL('dist/bundle.json', root)
  try {
    const { name, sources } = JSON.parse(readFileSync(list, 'utf8'))
    // What a package manager has unpacked is as it was packed.
    const isFresh = root.pathname.includes('/node_modules/') ||
      areUnchanged(fileURLToPath(root), sources, statSync(list).mtimeMs)
    return isFresh ? name : null
  } catch {
    // ENOENT: nobody has made one, or a source is gone.
    return null
  }
}

/**
 * @param {string} folder
 * @param {Record<string, number>} sources their sizes in bytes
 * @param {number} since ms since the epoch
 */
function areUnchanged (folder, sources, since) {
  return Object.entries(sources).every(([file, bytes]) => {
    const { size, mtimeMs } = statSync(folder + file)
    return size === bytes && mtimeMs <= since
  })
}

/** @param {URL} root @returns {boolean} */
function build (root) {
  const folder = fileURLToPath(root)
  const isClone = existsSync(`${folder}build/bundle.ts`)
  if (isClone && existsSync(`${folder}node_modules/rolldown`))
    return process.getBuiltinModule('node:child_process').spawnSync(process.execPath, [`${folder}build/bundle.ts`], {
      stdio: ['ignore', 'ignore', 'inherit']
    }).status === 0
  process.stderr.write(
    `clusterdeck: it is not built: ${
      isClone ? `run "npm ci && npm install --global ." in ${folder}` : 'install clusterdeck again'
    }\n`
  )
  return false
}
