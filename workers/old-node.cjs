// Runs first in apps on a Node that is too old for workers, so any Node from 12 on reads it. The master sends SIGURG, which other programs
// ignore, when the worker is to end: each kept connection is closed after its next answer, as nobody but its server can do that without harm.
const net = require('net')

const idleGraceMs = Number(process.env.CLUSTERDECK_IDLE_GRACE_MS)
delete process.env.CLUSTERDECK_IDLE_GRACE_MS
const { emit } = net.Server.prototype
const sockets = new Set()
const sessions = new Set()
let isDraining = false

/** @type {(this: import('net').Server, ...event: [name: string | symbol, ...values: any[]]) => boolean} */
const emitAndKeep = function (name, first, second) {
  if (name === 'connection' || name === 'secureConnection') keep(sockets, first)
  else if (name === 'session') keep(sessions, first)
  else if (name === 'request' && isDraining && second) second.shouldKeepAlive = false
  return /** @type {Function} */ (emit).apply(this, arguments)
}
net.Server.prototype.emit = emitAndKeep

process.on('SIGURG', () => {
  isDraining = true
  for (const { _httpMessage: answer } of sockets) if (answer && !answer.headersSent) answer.shouldKeepAlive = false
  for (const session of sessions) session.close()
  setTimeout(endIdle, idleGraceMs).unref()
})

/** @param {Set<import('net').Socket>} all @param {import('net').Socket} each */
function keep (all, each) {
  all.add(each)
  each.once('close', () => {
    all.delete(each)
  })
}

/** A server of HTTP has set a parser. Others know themselves when they are done. */
function endIdle () {
  for (const socket of sockets) if (socket.parser && !socket._httpMessage) socket.end()
  setTimeout(endIdle, 1000).unref()
}
