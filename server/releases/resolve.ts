import { lstat, readFile, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { attempt, DeckError } from '../errors.ts'
import { splitOption } from '../launch/node-options.ts'
import type { Runtime } from '../launch/launch.ts'
import type { PackageJson } from '../launch/packages.ts'

/** Tells whether its files may change under its workers: only a copy is a folder of our own */
export function mayChange ({ mode }: { mode?: string }): boolean {
  return mode !== 'folder'
}

/** Where the code of a release is. All paths are real paths. */
export type Place = {
  /** how it was found */
  mode: 'live' | 'symlink' | 'path',
  entry: string,
  /** the app's package folder */
  folder: string,
  /** what its workers run in */
  cwd: string,
  /** the path of the entry if that is itself a link, as in `node_modules/.bin`: `process.argv[1]` shows it */
  calledAs?: string
}

const MAX_PATH_CHARS = 4096
const MAX_PACKAGE_BYTES = 1024 * 1024
/** What Nitro (Nuxt, SolidStart, Analog, …) and Next build. */
const OUTPUTS = Object.freeze(['.output', '.next'])

/**
 * Finds the files that the configuration means now. If `entry` goes through a symbolic link (`current/app.js`), these
 * are where it points. `config`: absolute paths.
 * @throws {DeckError} entry-not-found
 */
export async function resolveConfigured (
  { entry, cwd, mode, runtime }: { entry: string, cwd: string, mode: 'auto' | 'folder' | 'live', runtime?: Runtime }
): Promise<Place> {
  if (runtime === 'other') return await placeOfProgram({ entry, cwd, mode })
  const real = await realFile(entry)
  if (real === null)
    throw new DeckError('entry-not-found', `entry: expected a file, received ${entry}, which is not there`)
  const user = await folderOfUser(entry, cwd)
  const link = mode === 'live' ? null : await lastLink(user ?? entry)
  return {
    mode: link ? 'symlink' : 'live',
    entry: real,
    folder: user ? await realpath(user) : await packageFolder(real, link?.target ?? null),
    ...await linkOf(entry),
    // If it goes through the link too, later workers of this release must not run in the folder of another one.
    cwd: await realpath(cwd).catch(() => cwd)
  }
}

/**
 * Another program than Node may be installed anywhere, and may behave by the name of a link to it: the app is the
 * folder that it runs in.
 * @throws {DeckError} entry-not-found
 */
async function placeOfProgram (
  { entry, cwd, mode }: { entry: string, cwd: string, mode: 'auto' | 'folder' | 'live' }
): Promise<Place> {
  const link = mode === 'live' ? null : await lastLink(cwd)
  const folder = await realpath(cwd)
  const file = programIn(folder, { entry, cwd })
  if (await realFile(file) === null)
    throw new DeckError('entry-not-found', `entry: expected a program, received ${file}, which is not there`)
  return { mode: link ? 'symlink' : 'live', entry: file, folder, cwd: folder }
}

/** `folder`: takes the place of `cwd` */
function programIn (folder: string, { entry, cwd }: { entry: string, cwd: string }): string {
  return isBelow(entry, cwd) ? path.join(folder, path.relative(cwd, entry)) : entry
}

/**
 * Finds the files of a folder that a deploy names. The folder must be below `root`, and takes the place of the package
 * folder of the configured entry. `wanted`: absolute, or relative to `root`.
 * @throws {DeckError} path-refused, entry-not-found
 */
export async function resolvePath (wanted: string,
  { root, entry, cwd, runtime }: { root: string | undefined, entry: string, cwd: string, runtime?: Runtime }
): Promise<Place> {
  const folder = await folderBelow(wanted, root)
  const top = root === undefined ? folder : await realpath(root)
  const found = await placeIn(folder, { top, entry, cwd, runtime })
  if ('outside' in found) throw pathRefusal(wanted, `${found.outside} in it leads out of releases.root`)
  if ('missing' in found)
    throw new DeckError('entry-not-found',
      `path: expected a folder with ${found.missing}, received ${quoteClipped(wanted)}, which has none`)
  return { mode: 'path', ...found }
}

/**
 * Finds in another folder what the configuration means in the app's own.
 * @param folder takes the place of the app's package folder, real path
 * @param config `top`: nothing outside of it counts, real path
 * @returns `outside`: an entry that leads out; `missing`: where it was looked for
 */
export async function placeIn (folder: string,
  { top, entry, cwd, runtime }: { top: string, entry: string, cwd: string, runtime?: Runtime }
): Promise<Omit<Place, 'mode'> | { outside: string } | { missing: string }> {
  if (runtime === 'other') {
    const file = programIn(folder, { entry, cwd })
    return await realFile(file) === null
      ? { missing: path.relative(folder, file) }
      : { entry: file, folder, cwd: folder }
  }
  const candidates = await placesOfEntry(entry, folder, cwd)
  for (const candidate of candidates) {
    const file = path.resolve(folder, candidate)
    const real = await realFile(file)
    if (real === null) continue
    if (!isBelow(real, top)) return { outside: candidate }
    return { entry: real, folder, cwd: await sameCwd({ entry, cwd, folder }), ...await linkOf(file) }
  }
  return { missing: candidates.join(' or ') }
}

async function linkOf (file: string): Promise<{ calledAs?: string }> {
  return (await lstat(file)).isSymbolicLink()
    ? { calledAs: path.join(await realpath(path.dirname(file)), path.basename(file)) }
    : {}
}

/** Returns its real path @throws {DeckError} path-refused */
export async function folderBelow (wanted: string, root: string | undefined): Promise<string> {
  if (root === undefined) throw pathRefusal(wanted, 'releases.root is not set, so none may be named')
  if (wanted === '' || wanted.length > MAX_PATH_CHARS || wanted.includes('\0'))
    throw pathRefusal(wanted, 'it is no path')
  const realRoot = await realpath(root).catch((error) => {
    throw pathRefusal(wanted, `releases.root, ${root}, cannot be read (${error.code})`)
  })
  const named = path.resolve(realRoot, wanted)
  // It is refused before it is read, so that nobody learns what exists outside. The root may be named by its real path
  // or as configured.
  if (!isBelow(named, realRoot) && !isBelow(named, path.resolve(root)))
    throw pathRefusal(wanted, 'it is not below releases.root')
  const real = await realpath(named).catch((error) => {
    throw pathRefusal(wanted, `it cannot be read (${error.code})`)
  })
  // Real paths have the letter case of the file system, so they can be compared.
  if (!isBelow(real, realRoot)) throw pathRefusal(wanted, 'it leads out of releases.root')
  if (!(await stat(real)).isDirectory()) throw pathRefusal(wanted, 'it is no folder')
  return real
}

/**
 * If the entry is a program in `node_modules`, the app is the package that has installed it, not the program. Returns
 * the folder of that package, perhaps by links; null: the entry is no such program.
 */
async function folderOfUser (entry: string, cwd: string): Promise<string | null> {
  const [before, behind] = entry.split(`${path.sep}node_modules${path.sep}`, 2)
  if (behind === undefined) return null
  const top = before || path.sep
  if (cwd !== top && !isBelow(cwd, top)) return null
  for (let folder = cwd; folder !== top; folder = path.dirname(folder)) {
    if (await realFile(path.join(folder, 'package.json'))) return folder
  }
  return top
}

/** `entry`: as configured. Returns its possible places in that folder, the likeliest first. */
async function placesOfEntry (entry: string, folder: string, cwd: string): Promise<string[]> {
  const user = await folderOfUser(entry, cwd)
  if (user) return [path.relative(user, entry)]
  const link = await lastLink(entry)
  const real = await realFile(entry) ?? entry
  const { main } = await readPackage(folder) ?? {}
  const mains = typeof main === 'string' && !main.includes('\0')
    ? [main, `${main}.js`, path.join(main, 'index.js')]
    : []
  const own = path.relative(await packageFolder(real, link?.target ?? null), real)
  return [...new Set([...(link?.rest ? [link.rest] : []), own, ...mains, path.basename(entry)])]
}

/**
 * Workers whose working folder is in the configured release get the same folder in this one, as the other may be
 * removed some day.
 */
async function sameCwd ({ entry, cwd, folder }: { entry: string, cwd: string, folder: string }) {
  const real = await realpath(cwd).catch(() => cwd)
  const own = await ownFolder({ entry, cwd })
  if (real !== own && !isBelow(real, own)) return real
  const same = await realpath(path.join(folder, path.relative(own, real))).catch(() => null)
  return same !== null && (same === folder || isBelow(same, folder)) ? same : real
}

/** @returns the app's package folder as configured, real path, also where its entry is not there (yet) */
export async function ownFolder (
  { entry, cwd, runtime }: { entry: string, cwd: string, runtime?: Runtime }
): Promise<string> {
  if (runtime === 'other') return await realpath(cwd)
  const user = await folderOfUser(entry, cwd)
  const link = await lastLink(entry)
  return user ? await realpath(user) : await packageFolder(await realFile(entry) ?? entry, link?.target ?? null)
}

/** @returns the folder that the last link on the way leads to, and the way from there */
async function lastLink (file: string): Promise<{ target: string, rest: string } | null> {
  for (let at = file; at !== path.dirname(at); at = path.dirname(at)) {
    const found = await lstat(at).catch(() => null)
    if (!found?.isSymbolicLink()) continue
    const real = await realpath(at)
    return at === file ? { target: path.dirname(real), rest: '' } : { target: real, rest: path.relative(at, file) }
  }
  return null
}

/**
 * `entry`: real path; `within`: how far up to look; null: to the top. Returns the nearest folder with a package.json,
 * else `within`, else that of the entry.
 */
async function packageFolder (entry: string, within: string | null): Promise<string> {
  for (let folder = path.dirname(entry);; folder = path.dirname(folder)) {
    if (within !== null && folder !== within && !isBelow(folder, within)) break
    if (await realFile(path.join(folder, 'package.json'))) return await builderOf(folder, within)
    if (folder === path.dirname(folder)) break
  }
  return within !== null && isBelow(entry, within) ? within : path.dirname(entry)
}

/**
 * A build may have written its own package.json (`.output/server`, `.next/standalone`), and reads what is beside that
 * too. `folder`: with a package.json. Returns the package that has built it; if that is not there, all that was built;
 * any other folder itself.
 */
async function builderOf (folder: string, within: string | null): Promise<string> {
  const output = folder.split(path.sep).findLastIndex((name) => OUTPUTS.includes(name))
  if (output === -1) return folder
  const built = folder.split(path.sep).slice(0, output + 1).join(path.sep)
  if (within !== null && built !== within && !isBelow(built, within)) return folder
  const builder = path.dirname(built)
  const mayLook = within === null || builder === within || isBelow(builder, within)
  return mayLook && await realFile(path.join(builder, 'package.json')) ? builder : built
}

/** Null: there is none that can be read */
export async function readPackage (folder: string): Promise<PackageJson | null> {
  const file = path.join(folder, 'package.json')
  try {
    const { size } = await stat(file)
    if (await realFile(file) === null || size > MAX_PACKAGE_BYTES) return null
    return parsePackage(await readFile(file, 'utf8'))
  } catch {
    // ENOENT: the folder has none.
    return null
  }
}

/** `text`: of a package.json. Returns null: it is none. */
export function parsePackage (text: string | null): PackageJson | null {
  return attempt(() => {
    const content = JSON.parse(String(text).replace(/^\uFEFF/, ''))
    return typeof content === 'object' ? content : null
  })
}

/** @returns its real path; null where there is no such file */
async function realFile (file: string): Promise<string | null> {
  try {
    const real = await realpath(file)
    return (await stat(real)).isFile() ? real : null
  } catch {
    // ENOENT, ENOTDIR, ELOOP, EACCES: none that can be run.
    return null
  }
}

/** @returns by the paths alone; a folder is not below itself */
export function isBelow (inner: string, outer: string): boolean {
  const way = path.relative(outer, inner)
  return way !== '' && way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way)
}

function pathRefusal (wanted: string, why: string) {
  return new DeckError('path-refused',
    `path: expected a folder below releases.root, received ${quoteClipped(wanted)}: ${why}`)
}

function quoteClipped (text: string) {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 199)}…` : text)
}

/**
 * Follows links now, as the entry does: a worker that is started later must not load what the next release has put
 * there, such as the `.pnp.cjs` of Yarn. `words`: options of Node.
 */
export async function pinOptions (words: readonly string[]): Promise<string[]> {
  return await Promise.all(words.map(async (word) => {
    const file = pathIn(word)
    if (file === null) return word
    const real = await realpath(file).catch(() => file)
    return mapPath(word, () => real)
  }))
}

/** `word`: an option of Node, or its value; `change`: of an absolute path in it */
export function mapPath (word: string, change: (file: string) => string): string {
  const file = pathIn(word)
  return file === null ? word : `${word.slice(0, -file.length)}${change(file)}`
}

/** @returns the absolute path that it is, or that stands behind its `=` */
function pathIn (word: string): string | null {
  const [name, value] = splitOption(word)
  const file = value ?? name
  return path.isAbsolute(file) ? file : null
}
