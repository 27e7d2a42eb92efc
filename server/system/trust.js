import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import path from 'node:path'
import { hasOthers } from './group.js'

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

/** @typedef {{ owner?: number }} Trusted `owner`: a user whose files count as well as those of root and of this process */

/**
 * Why somebody else than root and the user of this process could have made of a file what it is.
 * @param {string} file absolute path; a link leads to the one that is meant, and has an owner of its own
 * @param {Trusted} [trusted]
 * @returns {string | null} null: nobody could, or this system knows no owners
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyDistrusted (file, trusted) {
  const target = statSync(file)
  return whyNotOwned(lstatSync(file), trusted) ?? whyNotOwned(target, trusted) ?? whyWritable(target)
}

/**
 * The same of a folder, of what is in it, and of all that leads there.
 * @param {string} folder absolute path
 * @param {readonly string[]} secrets names of files in it that others may not even read
 * @param {Trusted} [trusted]
 * @returns {string | null} beginning with the path that is meant
 */
export function whyFolderDistrusted (folder, secrets, trusted) {
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
 * everybody to a volume of root's, as Kubernetes makes them, for there nobody else is.
 * @param {string} file absolute path; what is not there yet is nobody's
 * @param {Trusted} [trusted]
 * @returns {string | null} beginning with the path that is meant
 */
export function whyPathDistrusted (file, trusted) {
  return whyWayDistrusted(file, ({ place, stat }) => {
    const reason = whyNotOwned(stat, trusted)
    const replacers = reason === null ? whyReplaceable(stat, trusted) : null
    return replacers !== null && isVolume(place, stat) ? null : reason ?? replacers
  })
}

/**
 * The same of a program, which nobody else may be able to replace, wherever it lies.
 * @param {string} program absolute path
 * @returns {string | null}
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyProgramDistrusted (program) {
  return whyDistrusted(program) ?? whyPlaceDistrusted(program)
}

/**
 * Who could put something else in its place: as of a path, and no volume is as safe as that.
 * @param {string} file absolute path
 * @returns {string | null} beginning with the path that is meant
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyPlaceDistrusted (file) {
  statSync(file)
  return whyWayDistrusted(file, ({ stat }) => whyNotOwned(stat) ?? whyReplaceable(stat))
}

/** @typedef {{ place: string, stat: import('node:fs').Stats }} Step */

/** @param {string} file @param {(step: Step) => string | null} why @returns {string | null} */
function whyWayDistrusted (file, why) {
  if (!process.geteuid) return null
  for (const step of wayTo(file)) {
    const reason = why(step)
    if (reason) return `${step.place} ${reason}`
  }
  return null
}

/**
 * Each folder and link on the way to a file, and the file: the kernel goes the same way.
 * @param {string} file absolute path @returns {Generator<Step>} as far as there is something
 */
function * wayTo (file) {
  const ahead = partsOf(file)
  let place = path.parse(file).root
  yield { place, stat: lstatSync(place) }
  for (let links = 0; ahead.length > 0 && links <= MAX_LINKS;) {
    const next = path.join(place, /** @type {string} */ (ahead.shift()))
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

/** @param {string} file */
function partsOf (file) {
  return file.split(path.sep).filter(Boolean)
}

/** Who could write to it, or rename what is in it. The mode of a link means nothing. @param {import('node:fs').Stats} stat @param {Trusted} [trusted] */
function whyReplaceable (stat, { owner } = {}) {
  if (stat.isSymbolicLink() || (stat.isDirectory() && stat.mode & STICKY)) return null
  if (stat.mode & OTHERS_REPLACE) return whyWritable(stat)
  if (!(stat.mode & GROUP_REPLACES) || !process.geteuid) return null
  const uids = owner === undefined ? [process.geteuid()] : [process.geteuid(), owner]
  return hasOthers(stat.gid, uids) ? `can be written by group ${stat.gid}, in which others are (mode ${toOctal(stat.mode)})` : null
}

/** @param {string} place @param {import('node:fs').Stats} stat */
function isVolume (place, stat) {
  const above = path.dirname(place)
  return stat.isDirectory() && (above === place || lstatSync(above).dev !== stat.dev)
}

/** @param {import('node:fs').Stats} stat @param {Trusted} [trusted] */
function whyNotOwned ({ uid }, { owner } = {}) {
  const own = process.geteuid?.()
  return own === undefined || uid === own || uid === 0 || uid === owner ? null : `belongs to another user (uid ${uid}, this process has ${own})`
}

/** @param {import('node:fs').Stats} stat */
function whyWritable ({ mode }) {
  return process.geteuid && mode & OTHERS_WRITE ? `can be written by others (mode ${toOctal(mode)})` : null
}

/** @param {import('node:fs').Stats} stat */
function whyReadable ({ mode }) {
  return process.geteuid && mode & OTHERS_READ ? `can be read by others (mode ${toOctal(mode)})` : null
}

/** @param {import('node:fs').Stats} stat of what is in a folder that others can enter @param {boolean} isSecret */
function whyOpen (stat, isSecret) {
  // The mode of a link means nothing.
  if (stat.isSymbolicLink()) return null
  return whyWritable(stat) ?? (isSecret ? whyReadable(stat) : null)
}

/** @param {number} mode */
function toOctal (mode) {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
