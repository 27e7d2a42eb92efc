import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { tempFolder } from './folder.js'

/**
 * Archives as no good program makes them: each header written by hand.
 * @typedef {{ name: string, type?: string, body?: string | Buffer, link?: string, mode?: number, size?: number, prefix?: string, mtime?: number }} Entry `type`: of the format, '0' a file, '1' a hard link, '2' a symbolic link, '3' a device, '5' a folder, 'x' what describes the next one
 */

const BLOCK = 512

/** @param {Entry} entry @returns {Buffer} */
export function entryOf ({ name, type = '0', body = '', link = '', mode = 0o644, size, prefix = '', mtime = 1_700_000_000 }) {
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

/** @param {Buffer} header @param {number} value @param {number} at @param {number} length */
function writeOctal (header, value, at, length) {
  header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, length)
}

/** A header of the pax format, for the entry behind it. @param {Record<string, string>} fields */
export function paxOf (fields) {
  return entryOf({ name: 'pax', type: 'x', body: Object.entries(fields).map(([key, value]) => recordOf(key, value)).join('') })
}

/** @param {string} key @param {string} value */
function recordOf (key, value) {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  const length = [1, 2, 3, 4, 5].map((digits) => rest + digits).find((each, index) => String(each).length === index + 1)
  return `${length} ${key}=${value}\n`
}

/** @param {Entry[]} entries @returns {Buffer} */
export function archiveOf (...entries) {
  return gzipSync(tarOf(...entries.map(entryOf)))
}

/** @param {Buffer[]} parts */
export function tarOf (...parts) {
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

/** @param {Buffer} bytes @returns {string} */
export function fileOf (bytes) {
  const file = path.join(tempFolder(), 'archive.tgz')
  writeFileSync(file, bytes)
  return file
}
