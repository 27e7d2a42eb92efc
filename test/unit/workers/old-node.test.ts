import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PRELOAD = fileURLToPath(new URL('../../../workers/old-node.cjs', import.meta.url))
const APP = `
const answer = (request, response) => {
  if (request.url !== '/slow') return response.end(String(process.env.CLUSTERDECK_IDLE_GRACE_MS))
  process.once('SIGURG', () => setTimeout(() => response.end('slow'), 50))
  console.log('asked')
}
require('http').createServer({ keepAliveTimeout: 60_000 }, answer).listen(0, function () {
  const { port } = this.address()
  require('http2').createServer(answer).listen(0, function () { console.log(port + ' ' + this.address().port) })
})
process.on('SIGURG', () => console.log('drains'))
`

test('after SIGURG each kept connection is closed with its next answer, a request that is open is answered, an idle connection is closed later, and HTTP/2 goes away', async (t) => {
  const child = spawn(process.execPath, ['--require', PRELOAD, '-e', APP], { env: { CLUSTERDECK_IDLE_GRACE_MS: '300' },
    stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const [port, port2] = String((await lines.next()).value).split(' ')
  const agents = [1, 2, 3].map(() => new http.Agent({ keepAlive: true, maxSockets: 1 }))
  t.after(() => agents.forEach((agent) => agent.destroy()))
  const ask = async (index: number, path = '/') => {
    const [response] = await once(http.get({ port, path, agent: agents[index] }), 'response')
    const { socket, headers: { connection } } = response
    let text = ''
    for await (const piece of response.setEncoding('utf8')) text += piece
    return { connection, text, socket }
  }
  const session = http2.connect(`http://localhost:${port2}`)
  await once(session, 'connect')
  const before = await Promise.all([ask(0), ask(1)])
  assert.deepEqual(before.map(({ connection, text }) => [connection, text]), [['keep-alive', 'undefined'], [
    'keep-alive',
    'undefined'
  ]])
  const slow = ask(2, '/slow')
  assert.equal((await lines.next()).value, 'asked')
  await ask(0)

  const [idleEnds, sessionEnds] = [once(before[1].socket, 'close'), once(session, 'close')]
  child.kill('SIGURG')
  assert.equal((await lines.next()).value, 'drains')
  assert.equal((await ask(0)).connection, 'close')
  const { connection, text } = await slow
  assert.deepEqual([connection, text], ['close', 'slow'])
  await Promise.all([idleEnds, sessionEnds])
})
