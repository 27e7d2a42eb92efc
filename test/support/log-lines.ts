import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { endOf, listParts, liveFile } from '../../server/logs/log-files.ts'

/**
 * Checks what writes-lines.js has left in the log of a slot: every line of each process once, in order, none torn.
 * @returns by pid; `cpuMs`: once it has written all
 */
export function checkLines (folder: string,
  slot: number): { bytes: number, files: number, writers: Map<string, { lines: number, cpuMs: number | null }> }
{
  const log = { slot, stream: 'stdout' } as const
  const parts = listParts(folder, log)
  let expected = 0
  for (const { from, to } of parts) {
    assert.equal(from, expected, 'the parts follow one another')
    expected = to
  }
  const live = readFileSync(liveFile(folder, log))
  const contents = [...parts.map(({ file }) => readFileSync(file)),
    live.subarray(live.length - (endOf(folder, log) - expected))]
  const writers: Map<string, { lines: number, cpuMs: number | null }> = new Map()
  for (const content of contents) {
    assert.ok(content.length === 0 || content.at(-1) === 10, 'each file ends with a line')
    for (const line of content.toString().split('\n').slice(0, -1)) take(writers, line)
  }
  return { bytes: endOf(folder, log), files: contents.length, writers }
}

const FILL = 'abcdefghijklmnopqrstuvwxyz'.repeat(3)

function take (writers: Map<string, { lines: number, cpuMs: number | null }>, line: string) {
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
