import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { ownersOfListeners } from '../../../server/system/listener-owner.js'
import { tempFolder } from '../../support/folder.js'

const HEADING = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'

/** @param {string[]} rows @returns {string} a file */
function table (...rows) {
  const file = path.join(tempFolder(), 'tcp')
  writeFileSync(file, `${[HEADING, ...rows].join('\n')}\n`)
  return file
}

/** @param {string} local @param {string} remote @param {string} state @param {number} uid @param {number} [inode] */
function row (local, remote, state, uid, inode = 3092952) {
  return `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 1 0000000000000000 100 0 0 10 0`
}

test('knows who listens on a port of this machine, and that nobody does', { skip: !existsSync('/proc/net/tcp') && 'this system does not tell' }, async (t) => {
  const server = net.createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  assert.deepEqual(await ownersOfListeners(port), [process.geteuid?.()])
  server.close()
  await once(server, 'close')
  assert.deepEqual(await ownersOfListeners(port), [])
})

test('on any address, of both families, and no connection counts', async () => {
  const v4 = table(row('0100007F:2631', '00000000:0000', '0A', 1000), row('00000000:0050', '00000000:0000', '0A', 0), row('0100007F:2631', '0100007F:EC3C', '01', 5))
  const v6 = table(row('00000000000000000000000000000000:2631', '00000000000000000000000000000000:0000', '0A', 1001))
  assert.deepEqual(await ownersOfListeners(0x2631, [v4, v6]), [1000, 1001])
  assert.deepEqual(await ownersOfListeners(0x50, [v4, v6]), [0])
  assert.deepEqual(await ownersOfListeners(0x51, [v4, v6]), [])
})

test('a listener that no process has is not taken for one of root', async () => {
  const file = table(row('0100007F:2631', '00000000:0000', '0A', 0, 0))
  assert.deepEqual(await ownersOfListeners(0x2631, [file]), [-1])
})

test('tells that a system tells nothing', async () => {
  assert.equal(await ownersOfListeners(80, ['/nowhere/tcp', '/nowhere/tcp6']), null)
})
