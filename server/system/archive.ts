/** What an archive of an app may hold, for those who pack it and for those who unpack it. */
export type ArchiveLimits = typeof ARCHIVE

export const ARCHIVE = Object.freeze({
  /** How large it may be when it is sent. */
  maxBytes: 1024 ** 3,
  maxUnpackedBytes: 4 * 1024 ** 3,
  maxEntries: 200_000,
  maxDepth: 100,
  maxNameBytes: 255,
  maxPathBytes: 2048
} as { maxBytes: number, maxUnpackedBytes: number, maxEntries: number, maxDepth: number, maxNameBytes: number,
  maxPathBytes: number })

/** What of a mode is kept: nobody else may write, and nothing runs as another user. */
const KEPT = 0o755
/** The mode of an entry that names none. */
const USUAL = Object.freeze({ folder: 0o755, file: 0o644 })
/** Whoever unpacks has to read, to change and to remove. */
const OWNERS = Object.freeze({ folder: 0o700, file: 0o600 })
const CONTROL = /[\u0000-\u001f\u007f]/

/** `name`: from the top of the archive, with slashes. Returns why it may not be in there. */
export function whyNoName (name: string, { maxDepth, maxNameBytes, maxPathBytes }: ArchiveLimits): string | null {
  const parts = name.split('/')
  // Descriptions of entries are read line by line.
  if (CONTROL.test(name)) return 'its name has characters that cannot be shown'
  if (parts.includes('') || parts.includes('.') || parts.includes('..')) return 'its name leaves the folder, or is none'
  if (parts.length > maxDepth) return `it is deeper than ${maxDepth} folders`
  if (Buffer.byteLength(name) > maxPathBytes || parts.some((part) => Buffer.byteLength(part) > maxNameBytes))
    return 'its name is too long'
  return null
}

/**
 * A link goes up first and then down alone, and not above the top: then no chain of such links ever leaves it, since
 * each one of them begins in a real folder. By what would be behind a name, as in `a/../b`, it could. `name`: of the
 * link, from the top; `target`: as it is written.
 */
export function leadsInside (name: string, target: string) {
  if (target === '' || target.includes('\0') || target.startsWith('/')) return false
  const parts = target.replace(/\/+$/, '').split('/').filter((part) => part !== '.')
  const firstDown = parts.findIndex((part) => part !== '..')
  const ups = firstDown < 0 ? parts.length : firstDown
  return ups <= name.split('/').length - 1 && !parts.slice(ups).includes('..') && !parts.includes('')
}

/**
 * Group and others only ever lose by it: what nobody else can read where it is packed, nobody else can where it is
 * unpacked.
 */
export function tameMode (mode?: number, isFolder: boolean = false) {
  const kind = isFolder ? 'folder' : 'file'
  const kept = (mode ?? USUAL[kind]) & KEPT
  // tar makes a folder that can be read one that can be entered too.
  const unentered = isFolder ? (~kept & 0o011) << 2 : 0
  return (kept & ~unentered) | OWNERS[kind]
}

/**
 * @returns without the `./` that some programs begin all names with, and the slash at the end of folders; '': the top
 * itself
 */
export function plainName (name: string): string {
  const plain = name.replace(/^(\.\/+)+/, '').replace(/\/+$/, '')
  return plain === '.' ? '' : plain
}
