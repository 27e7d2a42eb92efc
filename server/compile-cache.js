// Not imported: see own-code.js.
const { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync } = process.getBuiltinModule('node:fs')
const module = process.getBuiltinModule('node:module')
const path = process.getBuiltinModule('node:path')

/** Folders of other bundles that are kept: a master that runs may be of one of them. */
const KEPT = 3
const OTHERS_WRITE = 0o022
const FLUSH_AFTER_MS = 5000

/**
 * Has Node keep what it has compiled of our own code in a folder of this user, so that the next process compiles
 * nothing. From Node 22.1 on.
 * @param {string} name of what is compiled @param {Record<string, string | undefined>} [env]
 */
export function enableCompileCache (name, env = process.env) {
  const { enableCompileCache: enable, flushCompileCache: flush } =
    /** @type {{ enableCompileCache?: (folder: string) => void, flushCompileCache?: () => void }} */ (module)
  if (!enable || env.NODE_COMPILE_CACHE) return
  const folder = cacheFolder(name, env)
  if (folder === null) return
  enable(folder)
  // Node writes it at the end of a process, which for a keeper or a master may come by SIGKILL.
  if (flush) setTimeout(flush, FLUSH_AFTER_MS).unref()
}

/**
 * @param {string} name @param {Record<string, string | undefined>} env
 * @returns {string | null} null: this user has no folder that nobody else can write to
 */
export function cacheFolder (name, { XDG_CACHE_HOME: cache, HOME: home }) {
  const above = cache && path.isAbsolute(cache)
    ? cache
    : home && path.isAbsolute(home)
    ? path.join(home, '.cache')
    : null
  if (above === null) return null
  const own = path.join(above, 'clusterdeck')
  const all = path.join(own, 'code')
  const folder = path.join(all, name)
  try {
    // With sudo the home may be another user's.
    if (home && statSync(home).uid !== process.getuid?.()) return null
    // Where the system makes no folders, as below /proc, Node never returns from mkdir with `recursive`, nor from
    // enabling a cache.
    const missing = [above, own, all, folder].filter((each) => !existsSync(each))
    for (const each of missing) mkdirSync(each, { mode: 0o700 })
    if (![own, all, folder].every(isOurs)) return null
    if (missing.length > 0) forgetOthers(all, name)
    return folder
  } catch {
    // EACCES, EROFS, ENOENT, ENOSPC: it is compiled each time.
    return null
  }
}

/** In short what system/trust.ts asks: each command loads this first, before any bundle. @param {string} folder */
function isOurs (folder) {
  const stat = lstatSync(folder)
  return stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & OTHERS_WRITE) === 0
}

/** @param {string} folder @param {string} name */
function forgetOthers (folder, name) {
  const others = readdirSync(folder).filter((each) => each !== name).map((each) => path.join(folder, each))
  const newestFirst = others.map((each) => ({ each, at: lstatSync(each).mtimeMs })).sort((one, other) =>
    other.at - one.at
  )
  for (const { each } of newestFirst.slice(KEPT)) rmSync(each, { recursive: true, force: true })
}
