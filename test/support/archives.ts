import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { tempFolder } from './folder.ts'

/**
 * Archives as no good program makes them: each header written by hand.
 * `type`: of the format, '0' a file, '1' a hard link, '2' a symbolic link, '3' a device, '5' a folder, 'x' what
 * describes the next one
 */
type Entry = { name: string, type?: string, body?: string | Buffer, link?: string, mode?: number, size?: number,
  prefix?: string, mtime?: number }

const BLOCK = 512

export function entryOf (
  { name, type = '0', body = '', link = '', mode = 0o644, size, prefix = '', mtime = 1_700_000_000 }: Entry
): Buffer {
  const content = Buffer.from(body)
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100)
  writeOctal(header, mode, 100, 8)
  writeOctal(header, 0, 108, 8)
  writeOctal(header, 0, 116, 8)
  writeOctal(header, size ?? content.length, 124, 12)
  writeOctal(header, mtime, 136, 12)
  header.write(type, 156)
  header.write(link, 157, 100)
  header.write('ustar\x0000', 257)
  header.write(prefix, 345, 155)
  header.fill(' ', 148, 156)
  writeOctal(header, header.reduce((sum, byte) => sum + byte), 148, 8)
  return Buffer.concat([header, content, Buffer.alloc((BLOCK - content.length % BLOCK) % BLOCK)])
}

function writeOctal (header: Buffer, value: number, at: number, length: number) {
  header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, length)
}

/** A header of the pax format, for the entry behind it. */
export function paxOf (fields: Record<string, string>) {
  return entryOf({ name: 'pax', type: 'x',
    body: Object.entries(fields).map(([key, value]) => recordOf(key, value)).join('') })
}

function recordOf (key: string, value: string) {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  const length = [1, 2, 3, 4, 5].map((digits) => rest + digits).find((each, index) => String(each).length === index + 1)
  return `${length} ${key}=${value}\n`
}

export function archiveOf (...entries: Entry[]): Buffer {
  return gzipSync(tarOf(...entries.map(entryOf)))
}

export function tarOf (...parts: Buffer[]) {
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

export function fileOf (bytes: Buffer): string {
  const file = path.join(tempFolder(), 'archive.tgz')
  writeFileSync(file, bytes)
  return file
}
