import { constants, type Dirent } from 'node:fs'
import { open, opendir } from 'node:fs/promises'
import path from 'node:path'
import { readTracked } from './git.ts'

/** What is found in the folder of an app, by names from there; folders end with a slash. */
export type AppFiles = {
  /** databases and uploads, which the app writes */
  data: string[],
  /** `.env` files, but for examples and those of development and tests */
  environment: string[],
  logs: string[],
  /** which its code mentions */
  healthPaths: string[],
  /** its own source code, as far as it was read */
  code: string,
  /** false: there was more than could be looked through in time */
  isWhole: boolean
}
type Folder = { name: string, entries: Dirent[] }

const MAX_ENTRIES = 20_000
const MAX_IN_FOLDER = 5000
const MAX_DEPTH = 8
const MAX_CODE_FILES = 400
const MAX_FILE_BYTES = 256 * 1024
const MAX_CODE_BYTES = 2 * 1024 ** 2
/**
 * Folders of other tools, those that a build makes, and data folders of any deck: the app has written nothing there.
 */
const NOT_THE_APPS = new Set(['.clusterdeck', 'node_modules', '.git', '.hg', '.svn', '.yarn', '.pnpm-store', '.next',
  '.nuxt', '.output', '.svelte-kit', '.cache', '.turbo', '.vercel', 'coverage', 'test', 'tests', '__tests__',
  'fixtures'])
const UPLOADS = /^(uploads?|attachments|user[-_]?(uploads|files|content))$/i
const LOGS = /^logs?$/i
const SESSIONS = /^sessions$/i
const ENVIRONMENT = /^\.env(?!\.(example|sample|template|dist|defaults?|dev|development|test)(\.|$))(\.[\w-]+)*$/
const DATABASE = /\.(db3?|sqlite3?)$/i
const BESIDE_DATABASE = /\.(db3?|sqlite3?)(-(wal|shm|journal))?$|^\.git(keep|ignore)$/i
const CODE = /\.([cm]?[jt]s|[jt]sx)$/
const SQLITE = Buffer.from('SQLite format 3\0')
const HEALTH_PATH = /['"`](\/(?:api\/)?_?(?:healthz?|health-?check|readyz?|livez))['"`]/g
/** Names that can be written into an option and onto a terminal. */
const USABLE = /^[^\u0000-\u001f\u007f-\u009f\\]+$/

/**
 * Looks through the folder of an app, without its packages. What git tracks came with the code, so the app has not
 * written it.
 * @param top real path of the package folder
 * @param how `except`: files and folders that are left out, absolute; `isLate`: time is up
 */
export async function lookThroughApp (top: string,
  { except, env, isLate = () => false }: { except: readonly string[], env: Record<string, string | undefined>,
    isLate?: () => boolean }): Promise<AppFiles>
{
  const found: { data: string[], environment: string[], logs: string[], code: string[] } = { data: [], environment: [],
    logs: [], code: [] }
  const folders: { name: string, depth: number }[] = [{ name: '', depth: 0 }]
  let seen = 0
  let isWhole = true
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    if (seen > MAX_ENTRIES || isLate()) {
      isWhole = false
      break
    }
    const { name, depth } = folder
    const all = await listSome(path.join(top, name))
    const entries = all.filter((each) => USABLE.test(each.name) && !except.includes(path.join(top, name, each.name)))
    seen += all.length
    if (all.length === MAX_IN_FOLDER) isWhole = false
    const inner = await takeFolder({ name, entries })
    if (depth < MAX_DEPTH) folders.push(...inner.map((each) => ({ name: each, depth: depth + 1 })))
  }
  const code = await readCode(top, found.code, isLate)
  const tracked = await readTracked(top, [...found.data, ...found.environment, ...found.logs], { env })
  const ofApp = (names: string[]) =>
    names.filter((name) =>
      !tracked.some((file) =>
        file === name || (name.endsWith('/') && file.startsWith(name) && !/\.git(keep|ignore)$/.test(file))
      )
    ).sort()
  return { data: ofApp(found.data), environment: ofApp(found.environment), logs: ofApp(found.logs),
    healthPaths: [...new Set(Array.from(code.matchAll(HEALTH_PATH), ([, route]) => route))], code,
    isWhole: isWhole && found.code.length <= MAX_CODE_FILES }

  /** @returns the names of folders to look into */
  async function takeFolder ({ name, entries }: Folder): Promise<string[]> {
    const inside = (each: string) => path.posix.join(name, each)
    const files = entries.filter((each) => each.isFile()).map((each) => each.name)
    found.environment.push(
      ...entries.filter((each) => !each.isDirectory() && ENVIRONMENT.test(each.name)).map((each) => inside(each.name))
    )
    found.logs.push(...files.filter((each) => each.endsWith('.log')).map(inside))
    found.code.push(...files.filter((each) => CODE.test(each)).map(inside))
    const databases =
      (await Promise.all(
        files.filter((each) => DATABASE.test(each)).map(async (each) =>
          await isSqlite(path.join(top, inside(each))) ? [each] : []
        )
      )).flat()
    // SQLite has more files beside its own, and tools replace all of them.
    const isOfData = name !== '' && databases.length > 0 &&
      entries.every((each) => each.isFile() && BESIDE_DATABASE.test(each.name))
    found.data.push(...isOfData ? [`${name}/`] : databases.map(inside))
    const inner = []
    for (const each of entries.filter((entry) => entry.isDirectory() && !NOT_THE_APPS.has(entry.name))) {
      const kind = await kindOf(inside(each.name), each.name)
      if (kind === null) inner.push(inside(each.name))
      else found[kind].push(`${inside(each.name)}/`)
    }
    return inner
  }

  /** Null: a folder as any other */
  async function kindOf (name: string, base: string): Promise<'data' | 'logs' | null> {
    if (![UPLOADS, LOGS, SESSIONS].some((kind) => kind.test(base))) return null
    const names = (await listSome(path.join(top, name))).map((each) => each.name)
    if (names.some((each) => CODE.test(each))) return null
    if (LOGS.test(base)) return names.some((each) => /\.log(\.|$)/.test(each)) ? 'logs' : null
    return SESSIONS.test(base) && !names.some((each) => each.endsWith('.json')) ? null : 'data'
  }
}

/** @returns its first entries, as uploads can be millions */
async function listSome (folder: string): Promise<Dirent[]> {
  const entries: Dirent[] = []
  try {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      if (entries.push(entry) === MAX_IN_FOLDER) break
    }
  } catch {
    // EACCES, ENOENT: nobody can tell what is in it.
  }
  return entries
}

/** Tells whether it is a database, whoever may have named it so */
async function isSqlite (file: string): Promise<boolean> {
  const start = await readStart(file, Buffer.alloc(SQLITE.length))
  return start !== null && start.equals(SQLITE)
}

async function readCode (top: string, names: string[], isLate: () => boolean): Promise<string> {
  let text = ''
  const buffer = Buffer.alloc(MAX_FILE_BYTES)
  for (const name of names.slice(0, MAX_CODE_FILES)) {
    if (isLate() || text.length > MAX_CODE_BYTES) break
    const start = await readStart(path.join(top, name), buffer)
    if (start) text += `${start.toString()}\n`
  }
  return text
}

/** `buffer`: which takes it. Returns what the file begins with; null: it cannot be read. */
async function readStart (file: string, buffer: Buffer): Promise<Buffer | null> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
      return buffer.subarray(0, bytesRead)
    } finally {
      await handle.close()
    }
  } catch {
    // EACCES, ELOOP, ENOENT: nobody can tell.
    return null
  }
}
