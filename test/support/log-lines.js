import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { endOf, listParts, liveFile } from '../../server/logs/log-files.js'

/**
 * Checks what writes-lines.js has left in the log of a slot: every line of each process once, in order, none torn.
 * @param {string} folder @param {number} slot
 * @returns {{ bytes: number, files: number, writers: Map<string, { lines: number, cpuMs: number | null }> }} by pid; `cpuMs`: once it has written all
 */
export function checkLines (folder, slot) {
  const log = /** @type {const} */ ({ slot, stream: 'stdout' })
  const parts = listParts(folder, log)
  let expected = 0
  for (const { from, to } of parts) {
    assert.equal(from, expected, 'the parts follow one another')
    expected = to
  }
  const live = readFileSync(liveFile(folder, log))
  const contents = [...parts.map(({ file }) => readFileSync(file)), live.subarray(live.length - (endOf(folder, log) - expected))]
  /** @type {Map<string, { lines: number, cpuMs: number | null }>} */
  const writers = new Map()
  for (const content of contents) {
    assert.ok(content.length === 0 || content.at(-1) === 10, 'each file ends with a line')
    for (const line of content.toString().split('\n').slice(0, -1)) take(writers, line)
  }
  return { bytes: endOf(folder, log), files: contents.length, writers }
}

const FILL = 'abcdefghijklmnopqrstuvwxyz'.repeat(3)

/** @param {Map<string, { lines: number, cpuMs: number | null }>} writers @param {string} line */
function take (writers, line) {
  const [pid, number, rest, cpuMs] = line.split(' ')
  const writer = writers.get(pid) ?? { lines: 0, cpuMs: null }
  writers.set(pid, writer)
  if (number === 'end') {
    assert.equal(Number(rest), writer.lines)
    writer.cpuMs = Number(cpuMs)
  } else if (Number(number) !== writer.lines || rest !== `${FILL.slice(0, (writer.lines + 1) % 78)}.`) {
    assert.fail(`expected line ${writer.lines} of process ${pid}, received ${JSON.stringify(line.slice(0, 200))}`)
  } else writer.lines++
}
