import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync, type Stats } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'

/** The files of a data folder that nobody but its user may read. */
export const SECRETS = Object.freeze(['admin.token', 'release.key'])

const OTHERS_WRITE = 0o022
const OTHERS_ENTER = 0o011
const OTHERS_READ = 0o044
const OTHERS_REPLACE = 0o002
const GROUP_REPLACES = 0o020
const STICKY = 0o1000
/** Linux follows no more of them. */
const MAX_LINKS = 40

/** `owner`: a user whose files count as well as those of root and of this process */
type Trusted = { owner?: number }

const ROOT = 0

/**
 * Why somebody else than root and the user of this process could have made of a file what it is.
 * @param file absolute path; a link leads to the one that is meant, and has an owner of its own
 * @returns null: nobody could, or this system knows no owners
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyDistrusted (file: string, trusted?: Trusted): string | null {
  const target = statSync(file)
  return whyNotOwned(lstatSync(file), trusted) ?? whyNotOwned(target, trusted) ?? whyWritable(target)
}

/**
 * The same of a folder, of what is in it, and of all that leads there. `folder`: absolute path; `secrets`: names of
 * files in it that others may not even read.
 * @returns beginning with the path that is meant
 */
export function whyFolderDistrusted (folder: string, secrets: readonly string[], trusted?: Trusted): string | null {
  const reason = whyDistrusted(folder, trusted)
  if (reason) return `${folder} ${reason}`
  const isOpen = (statSync(folder).mode & OTHERS_ENTER) !== 0
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    const stat = lstatSync(file, { throwIfNoEntry: false })
    if (!stat) continue
    const reason = whyNotOwned(stat, trusted) ?? (isOpen ? whyOpen(stat, secrets.includes(name)) : null)
    if (reason) return `${file} ${reason}`
    const behind = stat.isSymbolicLink() ? whyPathDistrusted(file, trusted) : null
    if (behind) return `${file} leads to what others choose: ${behind}`
  }
  return whyPathDistrusted(folder, trusted)
}

/**
 * Why somebody else could put something of his own at a path: he owns what is there, a folder above it or a link on the
 * way, or he can write to one. A group may in which nobody else is: many systems give each user one of his own. So may
 * everybody to a volume of root's, as Kubernetes makes them, for there nobody else is. `file`: absolute path; what is
 * not there yet is nobody's.
 * @returns beginning with the path that is meant
 */
export function whyPathDistrusted (file: string, trusted?: Trusted): string | null {
  return whyWayDistrusted(file, ({ place, stat }) => {
    const reason = whyNotOwned(stat, trusted)
    const replacers = reason === null ? whyReplaceable(stat, trusted) : null
    return replacers !== null && isVolume(place, stat) ? null : reason ?? replacers
  })
}

/**
 * The same of a program, which nobody else may be able to replace, wherever it lies. `program`: absolute path.
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyProgramDistrusted (program: string): string | null {
  return whyDistrusted(program) ?? whyPlaceDistrusted(program)
}

/**
 * Who could put something else in its place: as of a path, and no volume is as safe as that. `file`: absolute path.
 * @returns beginning with the path that is meant
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyPlaceDistrusted (file: string): string | null {
  statSync(file)
  return whyWayDistrusted(file, ({ stat }) => whyNotOwned(stat) ?? whyReplaceable(stat))
}

type Step = { place: string, stat: Stats }

function whyWayDistrusted (file: string, why: (step: Step) => string | null): string | null {
  if (!process.geteuid) return null
  for (const step of wayTo(file)) {
    const reason = why(step)
    if (reason) return `${step.place} ${reason}`
  }
  return null
}

/**
 * Each folder and link on the way to a file, and the file: the kernel goes the same way. `file`: absolute path.
 * @returns as far as there is something
 */
function* wayTo (file: string): Generator<Step> {
  const ahead = partsOf(file)
  let place = path.parse(file).root
  yield { place, stat: lstatSync(place) }
  for (let links = 0; ahead.length > 0 && links <= MAX_LINKS;) {
    const next = path.join(place, ahead.shift() as string)
    const stat = lstatSync(next, { throwIfNoEntry: false })
    if (!stat) return
    yield { place: next, stat }
    if (!stat.isSymbolicLink()) {
      place = next
      continue
    }
    links += 1
    const target = readlinkSync(next)
    ahead.unshift(...partsOf(target))
    if (path.isAbsolute(target)) place = path.parse(target).root
  }
}

function partsOf (file: string) {
  return file.split(path.sep).filter(Boolean)
}

/** Who could write to it, or rename what is in it. The mode of a link means nothing. */
function whyReplaceable (stat: Stats, { owner }: Trusted = {}) {
  if (stat.isSymbolicLink() || (stat.isDirectory() && stat.mode & STICKY)) return null
  if (stat.mode & OTHERS_REPLACE) return whyWritable(stat)
  if (!(stat.mode & GROUP_REPLACES) || !process.geteuid) return null
  const uids = owner === undefined ? [process.geteuid()] : [process.geteuid(), owner]
  return hasOthers(stat.gid, uids)
    ? `can be written by group ${stat.gid}, in which others are (mode ${toOctal(stat.mode)})`
    : null
}

function isVolume (place: string, stat: Stats) {
  const above = path.dirname(place)
  return stat.isDirectory() && (above === place || lstatSync(above).dev !== stat.dev)
}

function whyNotOwned ({ uid }: Stats, { owner }: Trusted = {}) {
  const own = process.geteuid?.()
  return own === undefined || uid === own || uid === 0 || uid === owner
    ? null
    : `belongs to another user (uid ${uid}, this process has ${own})`
}

function whyWritable ({ mode }: Stats) {
  return process.geteuid && mode & OTHERS_WRITE ? `can be written by others (mode ${toOctal(mode)})` : null
}

function whyReadable ({ mode }: Stats) {
  return process.geteuid && mode & OTHERS_READ ? `can be read by others (mode ${toOctal(mode)})` : null
}

/** `stat`: of what is in a folder that others can enter */
function whyOpen (stat: Stats, isSecret: boolean) {
  // The mode of a link means nothing.
  if (stat.isSymbolicLink()) return null
  return whyWritable(stat) ?? (isSecret ? whyReadable(stat) : null)
}

function toOctal (mode: number) {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}

/**
 * Who is in a group, as far as the files of the system say, see group(5) and passwd(5): many systems give each user a
 * group of his own, and what it may write nobody else may.
 * `uids`: the users who count as nobody else, beside root. Returns whether somebody else is in it, or could be: one
 * that no file names, and that this process is not in.
 */
export function hasOthers (gid: number, uids: readonly number[],
  { read = readTable, ownGroups = groupsOfThisProcess }: { read?: (file: string) => string,
    ownGroups?: () => readonly number[] } = {}): boolean
{
  if (gid === ROOT) return false
  const users = rowsOf(read('/etc/passwd')).map(([name, , uid, group]) => ({ name, uid: Number(uid),
    gid: Number(group) })
  )
  const named = rowsOf(read('/etc/group')).filter(([, , id]) => Number(id) === gid)
  const members = named.flatMap(([, , , names = '']) => names.split(',').filter(Boolean))
  const isOther = (uid: number | undefined) => uid !== ROOT && !uids.includes(uid as number)
  if (users.some((user) => user.gid === gid && isOther(user.uid))) return true
  if (members.some((name) => isOther(users.find((user) => user.name === name)?.uid))) return true
  return named.length === 0 && !ownGroups().includes(gid)
}

function rowsOf (table: string): string[][] {
  return table.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(':'))
}

function groupsOfThisProcess () {
  return [...(process.getgroups?.() ?? []), ...(process.getegid ? [process.getegid()] : [])]
}

function readTable (file: string) {
  // ENOENT: an image without users; the groups of this process count.
  return attempt(() => readFileSync(file, 'utf8'), '')
}
