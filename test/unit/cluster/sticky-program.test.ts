import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stickyProgram } from '../../../server/cluster/sticky-program.ts'
import type { Instruction } from '../../../server/system/posix.ts'

const CLIENTS = 4000

test('spreads addresses evenly, those of one network and those of IPv6 too, over one slot and over the most that there can be', () => {
  for (const packet of [ipv4, ipv6]) {
    for (const size of [1, 2, 3, 8]) {
      const counts = Array(size).fill(0)
      for (const index of choices(stickyProgram(upTo(size)), packet)) counts[index]++
      for (const count of counts)
        assert.ok(Math.abs(count - CLIENTS / size) < 5 * Math.sqrt(CLIENTS / size), `${counts}`)
    }
  }
  const program = stickyProgram(upTo(256))
  assert.equal(new Set(choices(program, ipv4)).size, 256)
  // net.core.optmem_max, as it was before Linux 6.7, less the kernel's own.
  assert.ok(8 * program.length < 20_480 - 1000)
})

test('where a slot comes or goes, only its own clients move, and they go to all others', () => {
  for (const packet of [ipv4, ipv6]) {
    const [five, four] = [choices(stickyProgram(upTo(5)), packet), choices(stickyProgram([0, 1, 3, 4]), packet)]
    const moved = five.flatMap((index, client) => index === four[client] ? [] : [[index, four[client]]])
    assert.ok(moved.every(([from]) => from === 2))
    assert.deepEqual(new Set(moved.map(([, to]) => to)), new Set([0, 1, 3, 4]))
    assert.equal(moved.length, five.filter((index) => index === 2).length)
  }
})

function upTo (size: number) {
  return Array.from({ length: size }, (_, index) => index)
}

function choices (program: Instruction[], packet: (client: number) => Buffer) {
  return Array.from({ length: CLIENTS }, (_, client) => run(program, packet(client)))
}

function ipv4 (client: number) {
  const header = Buffer.alloc(20)
  header[0] = 0x45
  header.writeUInt32BE(0x0a000000 + client, 12)
  return header
}

function ipv6 (client: number) {
  const header = Buffer.alloc(40)
  header[0] = 0x60
  header.write('20010db800000000', 8, 'hex')
  header.writeUInt32BE(client, 20)
  return header
}

/** As the kernel runs it, bpf(4) of BSD. `header`: of IP. */
function run (program: Instruction[], header: Buffer) {
  const cells = [] as number[]
  let [a, x] = [0, 0]
  for (let at = 0;; at++) {
    const [code, ifTrue, ifFalse, k] = program[at]
    if (code === 0x20) a = header.readUInt32BE(k - 0xfff00000)
    else if (code === 0x00) a = k
    else if (code === 0x60) a = cells[k]
    else if (code === 0x61) x = cells[k]
    else if (code === 0x02) cells[k] = a
    else if (code === 0x24) a = Math.imul(a, k) >>> 0
    else if (code === 0x74) a >>>= k
    else if (code === 0xac) a = (a ^ x) >>> 0
    else if (code === 0x07) x = a
    else if (code === 0x05) at += k
    else if (code === 0x15) at += a === k ? ifTrue : ifFalse
    else if (code === 0x2d) at += a > x ? ifTrue : ifFalse
    else if (code === 0x16) return a
    else throw new Error(`no such instruction: ${code}`)
  }
}
