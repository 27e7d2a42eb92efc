import { fstatSync, readSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { readyLineOf } from '../lifecycle/ready-line.js'

/** @typedef {import('../programs/running-program.js').Output} Output */
/** @typedef {{ fd: number, at: number }} Stream  `at`: where the first line begins that was not looked at */

const LOOK_EVERY_MS = 50
const CHUNK_BYTES = 64 * 1024
const MAX_LINE_LENGTH = 4096
const LINE_END = 10

/**
 * Waits for the line of a worker's output that says that it is ready. Others that write into the same log meanwhile cannot be told
 * from it.
 * @param {Output} output  of the worker, which has written nothing yet
 * @param {string} wanted  as of readyLineOf()
 * @param {{ isAwaited: () => boolean, onFound: () => void }} parts
 * @returns {Output} to start the worker with: the files stay open here
 */
export function awaitReadyLine (output, wanted, { isAwaited, onFound }) {
  const isWanted = readyLineOf(wanted)
  const streams = [output.stdout, output.stderr].flatMap((fd) => fd === 'inherit' ? [] : [{ fd, at: fstatSync(fd).size }])
  lookLater()
  return { ...output, close () {} }

  function look () {
    const isFound = streams.some((stream) => newLines(stream).some(isWanted))
    if (isAwaited() && !isFound) return lookLater()
    output.close()
    if (isAwaited()) onFound()
  }

  function lookLater () { setTimeout(look, LOOK_EVERY_MS).unref() }
}

/** @param {Stream} stream @returns {string[]} those that have an end */
function newLines (stream) {
  const { size } = fstatSync(stream.fd)
  // Somebody has emptied it.
  if (size < stream.at) stream.at = 0
  /** @type {string[]} */
  const lines = []
  while (stream.at < size) {
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - stream.at))
    const bytes = chunk.subarray(0, readSync(stream.fd, chunk, 0, chunk.length, stream.at))
    const end = bytes.lastIndexOf(LINE_END) + 1
    // A line that has no end yet is read again, unless it is longer than anybody looks at.
    if (end === 0 && bytes.length < CHUNK_BYTES) break
    stream.at += end || bytes.length
    lines.push(...bytes.toString('utf8', 0, end).split('\n').map((line) => stripVTControlCharacters(line.slice(0, MAX_LINE_LENGTH))))
  }
  return lines
}
