import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { addToHelper } from '../../../server/programs/helper-link.ts'
import { loadNotifyCalls } from '../../../server/programs/notify-calls.ts'
import { openNotifySocket, openNotifySocketAt } from '../../../server/programs/notify-socket.ts'
import { loadPosix } from '../../../server/system/posix.ts'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { tempFolder } from '../../support/folder.ts'
import type { NotifySocket, Said } from '../../../server/programs/notify-socket.ts'

const posix = loadPosix()
const skip = !(posix && loadNotifyCalls()) && 'it takes Linux and koffi'
const ignore = () => {}

/** `pid`: of the program */
function hear (t: TestContext, socket: NotifySocket, pid: number) {
  const heard: Said[] = []
  const over: PromiseWithResolvers<void> = Promise.withResolvers()
  const program = addToHelper({ onAsked: ignore, onListening: ignore, onClosed: ignore, onReleased: ignore,
    onNote: ignore, onSaid: (said) => said.isStopping ? over.resolve() : heard.push(said) })
  t.after(() => program?.close())
  // The process of the helper keeps nobody alive.
  const timer = setInterval(ignore, 1000)
  t.after(() => clearInterval(timer))
  const isOf = (other: number) => program?.isOf({ ...identifyProcess(other), mark: 'of nobody' })
  isOf(pid)
  program?.hearNotify(Number(socket.fd))
  return { heard, over: over.promise, isOf, look: () => program?.look(), close: () => program?.close() }
}

test('a program is heard, and also by the next master; no other process is', { skip }, async (t) => {
  const socket = openNotifySocket(path.join(tempFolder(), 'orders'))
  const file = String(socket.file)
  const say = (text: string) => assert.ok(posix?.sendDatagram(file, text))
  t.after(socket.remove)
  const own = hear(t, socket, process.pid)
  say('STATUS=starts\nMAINPID=1')
  say('READY=1\nSTATUS=half of\nSTATUS=all')
  say('WATCHDOG=1')
  say('STOPPING=1')
  await own.over
  assert.deepEqual(own.heard, [{ isReady: false, isStopping: false, isAlive: false, status: 'starts' }, { isReady: true,
    isStopping: false, isAlive: false, status: 'all' }, { isReady: false, isStopping: false, isAlive: true }])

  own.close()
  socket.close()
  const next = openNotifySocketAt(file)
  t.after(next.remove)
  const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  t.after(() => stranger.kill())
  const others = hear(t, next, Number(stranger.pid))
  say('READY=1')
  // After the second one it has been read.
  for (let look = 0; look < 2; look++) await others.look()
  others.isOf(process.pid)
  // It is told in a pipe, and might read the socket first.
  await others.look()
  say('STOPPING=1')
  await others.over
  assert.deepEqual(others.heard, [])
  next.remove()
  assert.equal(existsSync(path.dirname(file)), false)
})

test('where no socket can be made, that is told', () => {
  const { file, reason } = openNotifySocket('/dev/null/folder')
  assert.deepEqual([file, /not a directory/.test(String(reason))], [null, true])
})
