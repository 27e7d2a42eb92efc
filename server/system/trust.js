import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'

/** The files of a data folder that nobody but its user may read. */
export const SECRETS = Object.freeze(['admin.token', 'release.key'])

const OTHERS_WRITE = 0o022
const OTHERS_ENTER = 0o011
const OTHERS_READ = 0o044
const OTHERS_REPLACE = 0o002
const STICKY = 0o1000

/**
 * Why somebody else than root and the user of this process could have made of a file what it is.
 * @param {string} file absolute path; a link leads to the one that is meant, and has an owner of its own
 * @returns {string | null} null: nobody could, or this system knows no owners
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyDistrusted (file) {
  const target = statSync(file)
  return ownership(lstatSync(file)) ?? ownership(target) ?? writable(target)
}

/**
 * The same of a folder, and of what is in it.
 * @param {string} folder absolute path
 * @param {readonly string[]} secrets names of files in it that others may not even read
 * @returns {string | null} beginning with the path that is meant
 */
export function whyFolderDistrusted (folder, secrets) {
  const reason = whyDistrusted(folder)
  if (reason) return `${folder} ${reason}`
  const isOpen = (statSync(folder).mode & OTHERS_ENTER) !== 0
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    const stat = lstatSync(file, { throwIfNoEntry: false })
    if (!stat) continue
    const reason = ownership(stat) ?? (isOpen ? openness(stat, secrets.includes(name)) : null)
    if (reason) return `${file} ${reason}`
  }
  return null
}

/**
 * The same of a program, which whoever can write a folder above it could replace. Groups may: many systems give each
 * user one of his own.
 * @param {string} program absolute path
 * @returns {string | null}
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyProgramDistrusted (program) {
  return whyDistrusted(program) ?? whyPlaceDistrusted(path.dirname(realpathSync(program)))
}

/**
 * Who could put something else in its place: the owners of it and of all folders above, and whoever may write there.
 * @param {string} file real path
 * @returns {string | null} beginning with the path that is meant
 * @throws {NodeJS.ErrnoException} where it is not there
 */
export function whyPlaceDistrusted (file) {
  for (let place = file; ; place = path.dirname(place)) {
    const stat = statSync(place)
    const reason = ownership(stat) ?? (stat.mode & OTHERS_REPLACE && !(stat.mode & STICKY) ? writable(stat) : null)
    if (reason) return `${place} ${reason}`
    if (place === path.dirname(place)) return null
  }
}

/** @param {import('node:fs').Stats} stat */
function ownership ({ uid }) {
  const own = process.geteuid?.()
  return own === undefined || uid === own || uid === 0 ? null : `belongs to another user (uid ${uid}, this process has ${own})`
}

/** @param {import('node:fs').Stats} stat */
function writable ({ mode }) {
  return process.geteuid && mode & OTHERS_WRITE ? `can be written by others (mode ${octal(mode)})` : null
}

/** @param {import('node:fs').Stats} stat */
function readable ({ mode }) {
  return process.geteuid && mode & OTHERS_READ ? `can be read by others (mode ${octal(mode)})` : null
}

/** @param {import('node:fs').Stats} stat of what is in a folder that others can enter @param {boolean} isSecret */
function openness (stat, isSecret) {
  // The mode of a link means nothing.
  if (stat.isSymbolicLink()) return null
  return writable(stat) ?? (isSecret ? readable(stat) : null)
}

/** @param {number} mode */
function octal (mode) {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}
