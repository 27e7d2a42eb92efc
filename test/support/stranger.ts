import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from './folder.ts'
import type { TestContext } from 'node:test'

export const OTHER_UID = 54_321

/** Why there can be no process of another user. */
export const lacksStrangers: string | false = process.geteuid?.() === 0 && process.platform === 'linux'
  ? false
  : 'only root can be another user too, and only Linux tells them apart'

const CODE = `
const server = require('net').createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => { process.stdout.write(data); socket.end('HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: 2\\r\\n\\r\\n{}') })
})
const listen = () => server.listen(Number(process.argv[1]), process.argv[2])
server.once('listening', () => process.stdout.write(server.address().port + '\\n'))
server.on('error', () => setTimeout(listen, 5))
listen()`

let copy = ''

/** A Node that another user can run: this one, or a copy where the folder of this one is closed to others. */
export function nodeForOthers (): string {
  if (!spawnSync(process.execPath, ['--version'], { uid: OTHER_UID, gid: OTHER_UID, cwd: '/' }).error)
    return process.execPath
  if (!existsSync(copy)) {
    const folder = tempFolder()
    chmodSync(folder, 0o755)
    copy = path.join(folder, 'node')
    copyFileSync(process.execPath, copy)
  }
  return copy
}

/** A server of another user, which answers whatever it is asked. It takes a port as soon as that is free. */
export function startStranger (t: Pick<TestContext, 'after'>,
  { host = '127.0.0.1', port = 0, uid = OTHER_UID }: { host?: string, port?: number, uid?: number } = {})
{
  const child = spawn(nodeForOthers(), ['-e', CODE, String(port), host], { uid, gid: uid, cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const heard = { port: 0, text: '' }
  const listening = once(child.stdout.setEncoding('utf8'), 'data').then(([line]) => {
    heard.port = Number.parseInt(line)
    child.stdout.on('data', (text) => {
      heard.text += text
    })
    return heard
  })
  return { listening }
}
