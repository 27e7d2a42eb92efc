import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { bindSocketGroup } from '../../../server/cluster/socket-group.ts'
import { loadHelperCalls } from '../../../server/programs/helper-calls.ts'
import { bindOptionsOf, keepOptions } from '../../../server/programs/socket-options.ts'
import { loadPosix } from '../../../server/system/posix.ts'
import { freePort } from '../../support/ports.ts'

const [calls, posix] = [loadHelperCalls(), loadPosix()]
const KIND = { domain: 2, type: 1 }
// asm-generic/socket.h, linux/in.h, linux/tcp.h
const [SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP] = [1, 0, 6]
const [SO_KEEPALIVE, SO_RCVBUF, SO_BUF_LOCK, IP_FREEBIND, TCP_NODELAY, TCP_MAXSEG] = [9, 8, 72, 15, 1, 2]

describe('options of a socket that takes the place of another', {
  skip: !(calls && posix) && 'it takes Linux and koffi'
}, () => {
  const valueOf = (fd: number, level: number, name: number) => calls?.optionOf(fd, level, name)?.readInt32LE()
  const set = (fd: number, level: number, name: number, value = 1) =>
    assert.ok(calls?.setOption(fd, level, name, Buffer.from(Int32Array.of(value).buffer)))

  function open (t: TestContext) {
    const fd = Number(calls?.freshSocket(KIND))
    t.after(() => calls?.closeCopy(fd))
    return fd
  }

  test('it has them, and none of a program before', (t) => {
    const [own, first, second] = [open(t), open(t), open(t)]
    set(first, IPPROTO_TCP, TCP_NODELAY)
    set(first, IPPROTO_TCP, TCP_MAXSEG, 600)
    set(first, SOL_SOCKET, SO_RCVBUF, 20_000)
    keepOptions(first, own, { isShared: false })
    assert.deepEqual([valueOf(own, IPPROTO_TCP, TCP_NODELAY), valueOf(own, IPPROTO_TCP, TCP_MAXSEG),
      valueOf(own, SOL_SOCKET, SO_RCVBUF)], [1, 600, 40_000])

    set(second, SOL_SOCKET, SO_KEEPALIVE)
    keepOptions(second, own, { isShared: true })
    assert.deepEqual([valueOf(own, IPPROTO_TCP, TCP_NODELAY), valueOf(own, SOL_SOCKET, SO_RCVBUF),
      valueOf(own, SOL_SOCKET, SO_KEEPALIVE)], [1, 40_000, 1], 'others serve it as well')
    keepOptions(second, own, { isShared: false })
    for (const [level, name] of [[IPPROTO_TCP, TCP_NODELAY], [IPPROTO_TCP, TCP_MAXSEG], [SOL_SOCKET, SO_RCVBUF], [
      SOL_SOCKET,
      SO_KEEPALIVE
    ], [SOL_SOCKET, SO_BUF_LOCK]]) {
      assert.equal(valueOf(own, level, name), valueOf(second, level, name), `${level}.${name}`)
    }
  })

  test('what counts for bind(2) is set before that, also for those that join the address later', async (t) => {
    const asked = open(t)
    assert.equal(bindOptionsOf(asked), null)
    set(asked, IPPROTO_IP, IP_FREEBIND)
    set(asked, SOL_SOCKET, SO_RCVBUF, 20_000)
    const before = bindOptionsOf(asked) ?? {}
    assert.deepEqual(before, { isFree: true, receiveBytes: 20_000 })
    // No machine has this address: RFC 5737.
    const query = { address: '192.0.2.7', port: await freePort(), addressType: 4, index: 0 }
    assert.deepEqual(bindSocketGroup(posix!, query, 1), { errno: -99 })
    const group = bindSocketGroup(posix!, { ...query, before }, 1)
    assert.ok(!('errno' in group))
    t.after(group.close)
    assert.equal(group.listen(), 0)
    assert.equal(group.member(2).errno, undefined)
    assert.deepEqual(group.handles().map(({ fd }) => valueOf(fd, SOL_SOCKET, SO_RCVBUF)), [40_000, 40_000])
  })
})
