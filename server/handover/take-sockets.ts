import { spawn } from 'node:child_process'
import { scriptPath } from '../system/built.ts'
import type { Socket } from 'node:net'

/**
 * This is a program of its own. It takes sockets, whose kinds are its arguments, from its channel, which is a
 * connection to another master. Then it lets another program send them through its descriptor 4, the channel of the
 * process that has started this one.
 */
const CHANNEL_OF_PARENT = 4
const HAND_ON = scriptPath('hand-on-sockets.js')

const kinds = process.argv.slice(2)
const sockets: Socket[] = []
process.on('message', ({ index }: { index: number }, socket) => {
  sockets[index] = socket as Socket
  if (Object.keys(sockets).length < kinds.length) return
  spawn(process.execPath, [HAND_ON, ...kinds], { env: { ...process.env, NODE_CHANNEL_FD: '3' },
    stdio: ['ignore', 'ignore', 'inherit', CHANNEL_OF_PARENT, ...sockets] }).on('exit', (code) => {
      process.exitCode = code ?? 1
      if (process.connected) process.disconnect()
    })
})
