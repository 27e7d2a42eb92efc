/**
 * What an archive of an app may hold, for those who pack it and for those who unpack it.
 * @typedef {typeof ARCHIVE} ArchiveLimits
 */

export const ARCHIVE = Object.freeze(/** @type {{ maxBytes: number, maxUnpackedBytes: number, maxEntries: number, maxDepth: number, maxNameBytes: number, maxPathBytes: number }} */ ({
  /** As it is sent. */
  maxBytes: 1024 ** 3,
  maxUnpackedBytes: 4 * 1024 ** 3,
  maxEntries: 200_000,
  maxDepth: 100,
  maxNameBytes: 255,
  maxPathBytes: 2048
}))

/** What becomes of modes: nobody else may write, and nothing runs as another user. */
const MODES = Object.freeze({ folder: 0o755, program: 0o755, file: 0o644 })
const EXECUTE = 0o111
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/

/**
 * @param {string} name  from the top of the archive, with slashes @param {ArchiveLimits} limits
 * @returns {string | null} why it may not be in there
 */
export function whyNoName (name, { maxDepth, maxNameBytes, maxPathBytes }) {
  const parts = name.split('/')
  // Descriptions of entries are read line by line.
  if (CONTROL.test(name)) return 'its name has characters that cannot be shown'
  if (parts.includes('') || parts.includes('.') || parts.includes('..')) return 'its name leaves the folder, or is none'
  if (parts.length > maxDepth) return `it is deeper than ${maxDepth} folders`
  if (Buffer.byteLength(name) > maxPathBytes || parts.some((part) => Buffer.byteLength(part) > maxNameBytes)) return 'its name is too long'
  return null
}

/**
 * A link goes up first and then down alone, and not above the top: then no chain of such links ever leaves it, since each
 * one of them begins in a real folder. By what would be behind a name, as in `a/../b`, it could.
 * @param {string} name  of the link, from the top @param {string} target  as it is written
 */
export function leadsInside (name, target) {
  if (target === '' || target.includes('\0') || target.startsWith('/')) return false
  const parts = target.replace(/\/+$/, '').split('/').filter((part) => part !== '.')
  const firstDown = parts.findIndex((part) => part !== '..')
  const ups = firstDown < 0 ? parts.length : firstDown
  return ups <= name.split('/').length - 1 && !parts.slice(ups).includes('..') && !parts.includes('')
}

/** @param {number | undefined} mode @param {boolean} isFolder */
export function tameMode (mode = 0, isFolder = false) {
  if (isFolder) return MODES.folder
  return mode & EXECUTE ? MODES.program : MODES.file
}

/** @param {string} name @returns {string} without the `./` that some programs begin all names with, and the slash at the end of folders; '': the top itself */
export function plainName (name) {
  const plain = name.replace(/^(\.\/+)+/, '').replace(/\/+$/, '')
  return plain === '.' ? '' : plain
}
