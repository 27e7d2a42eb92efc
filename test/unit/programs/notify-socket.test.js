import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { loadNotifyCalls } from '../../../server/programs/notify-calls.js'
import { hearNotifySocket, openNotifySocket } from '../../../server/programs/notify-socket.js'
import { createDeferred } from '../../../server/system/deferred.js'
import { loadPosix } from '../../../server/system/posix.js'
import { tempFolder } from '../../support/folder.js'

const posix = loadPosix()
const skip = !(posix && loadNotifyCalls()) && 'it takes Linux and koffi'

/** @param {(pid: number) => boolean} isOwn */
function listener (isOwn) {
  /** @type {import('../../../server/programs/notify-socket.js').Said[]} */
  const heard = []
  const over = createDeferred()
  return { isOwn, heard, over: over.reached, onSaid (/** @type {import('../../../server/programs/notify-socket.js').Said} */ said) { said.isStopping ? over.reach() : heard.push(said) } }
}

test('a program is heard, and also by the next master; no other process is', { skip }, async (t) => {
  const say = (/** @type {string} */ text) => assert.ok(posix?.sendDatagram(file, text))
  const own = listener((pid) => pid === process.pid)
  const socket = openNotifySocket(path.join(tempFolder(), 'orders'), own)
  const file = String(socket.file)
  t.after(socket.remove)
  say('STATUS=starts\nMAINPID=1')
  say('READY=1\nSTATUS=half of\nSTATUS=all')
  say('WATCHDOG=1')
  say('STOPPING=1')
  await own.over
  assert.deepEqual(own.heard, [
    { isReady: false, isStopping: false, isAlive: false, status: 'starts' },
    { isReady: true, isStopping: false, isAlive: false, status: 'all' },
    { isReady: false, isStopping: false, isAlive: true, status: undefined }
  ])

  socket.close()
  assert.equal(posix?.sendDatagram(file, 'READY=1'), false)
  let isOwn = false
  const others = listener(() => isOwn)
  const next = hearNotifySocket(file, others)
  t.after(next.remove)
  say('READY=1')
  setTimeout(() => {
    isOwn = true
    say('STOPPING=1')
  }, 200)
  await others.over
  assert.deepEqual(others.heard, [])
  next.remove()
  assert.equal(existsSync(path.dirname(file)), false)
})

test('where no socket can be made, that is told', () => {
  const { file, reason } = openNotifySocket('/dev/null/folder', listener(() => true))
  assert.deepEqual([file, /not a directory/.test(String(reason))], [null, true])
})
