import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test } from 'node:test'
import { otherEndOf } from '../../../server/system/connection-owner.ts'
import { sendRequest } from '../../../server/system/http.ts'
import { identifyProcess, pidNamespace } from '../../../server/system/process-identity.ts'
import { whyAbsent, whyNotTold } from '../../../server/system/recipient.ts'
import { until } from '../../support/until.ts'
import { listening } from '../../support/listening.ts'
import { rows } from '../../support/rows.ts'
import { lacksStrangers, nodeForOthers, OTHER_UID, startStranger } from '../../support/stranger.ts'
import { fake } from '../../support/fake.ts'

const HERE = identifyProcess(process.pid)
const GONE = { pid: 2 ** 30, startTime: null }
const SECRET = { headers: { authorization: 'Bearer secret' } }
const isLinux = process.platform === 'linux'

for (const host of ['127.0.0.1', '::1']) {
  test(`a secret goes to a process of this user on ${host}`, { skip: !isLinux }, async (t) => {
    const server = http.createServer((req, res) => void res.end(req.headers.authorization))
    t.after(() => server.closeAllConnections())
    const response = await sendRequest(urlOf(host, await listening(t, server, host)), { ...SECRET,
      recipient: { processes: [HERE] } })
    assert.equal((await response.setEncoding('utf8').toArray()).join(''), 'Bearer secret')
  })

  test(`no byte of it goes to a process of another user on ${host}, unless the deck is his`, { skip: lacksStrangers },
    async (t) => {
      const heard = await startStranger(t, { host }).listening
      const url = urlOf(host, heard.port)
      await assert.rejects(sendRequest(url, { ...SECRET, recipient: { processes: [HERE] } }), {
        message: `a process of another user (uid ${OTHER_UID}) answers there`
      })
      await assert.rejects(sendRequest(url, { ...SECRET, recipient: { processes: [HERE], owner: OTHER_UID + 1 } }), {
        message: /another user/
      })
      const response = await sendRequest(url, { ...SECRET, recipient: { processes: [HERE], owner: OTHER_UID } })
      assert.equal(response.resume().statusCode, 200)
      await until(() => heard.text.includes('secret'), 'the one that he may hear')
      assert.equal(heard.text.match(/GET/g)?.length, 1)
    })
}

test('a connection that waits to be taken is told nothing: it could be anybody\'s', { skip: lacksStrangers },
  async (t) => {
    // It listens, and does nothing else any more.
    const child = spawn(nodeForOthers(), ['-e',
      'const s = require(\'net\').createServer().listen(0, \'127.0.0.1\', () => { require(\'fs\').writeSync(1, s.address().port + \'\\n\'); for (;;); })'],
      { uid: OTHER_UID, gid: OTHER_UID, cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] })
    t.after(() => child.kill('SIGKILL'))
    const port = Number.parseInt((await once(child.stdout, 'data'))[0])
    const socket = net.connect(port, '127.0.0.1')
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    // The kernel shows it as root's.
    assert.equal(otherEndOf(socket), 'not taken')
    let at = 0
    assert.equal(await whyNotTold(socket, { processes: [HERE] }, { isPinned: false, now: () => (at += 10_001) }),
      'nobody has taken the connection within 20000 ms')
    await assert.rejects(
      sendRequest(urlOf('127.0.0.1', port), { ...SECRET, recipient: { processes: [HERE] },
        signal: AbortSignal.timeout(50) })
    )
  })

// Whose the other end is, of a deck, with the certificate of its master or not, and why it is told nothing.
for (const [found, recipient, isPinned, expected] of rows(`
0            | {}                         | no  | may be told
${OTHER_UID} | {}                         | no  | another user
${OTHER_UID} | {"owner":${OTHER_UID}}     | no  | may be told
elsewhere    | {}                         | no  | another machine
elsewhere    | {}                         | yes | may be told
untold       | {}                         | no  | may be told
untold       | {"pidNamespace":"pid:[1]"} | no  | does not tell
untold       | {"pidNamespace":"pid:[1]"} | yes | may be told
gone         | {}                         | yes | ^ECONNRESET$`))
  test(`${found}, of a deck ${recipient}, with its certificate: ${isPinned}: ${expected}`, async () => {
    const lookUp = () => (/^\d/.test(found) ? Number(found) : found) as ReturnType<typeof otherEndOf>
    const reason = await whyNotTold(fake({ destroyed: false }), { processes: [HERE], ...JSON.parse(recipient) }, {
      isPinned: isPinned === 'yes',
      lookUp
    })
    assert.match(reason ?? 'may be told', new RegExp(expected))
  })

test('a master that has ended is told nothing, whoever has its number by now; its keeper starts the next one', {
  skip: !isLinux
}, async () => {
  const other = { pid: process.pid, startTime: 'another-boot:1' }
  assert.equal(whyAbsent({ processes: [HERE] }), null)
  for (const processes of [[GONE], [other], [GONE, GONE]])
    assert.match(String(whyAbsent({ processes })), /^its master \(pid \d+\) has ended$/)
  assert.equal(whyAbsent({ processes: [GONE, HERE] }), null)
  assert.equal(whyAbsent({ processes: [GONE], pidNamespace: 'pid:[1]' }), null, 'in a container numbers are others')
  assert.match(String(whyAbsent({ processes: [GONE], pidNamespace: pidNamespace() })), /has ended/)
  await assert.rejects(sendRequest('http://127.0.0.1:1', { ...SECRET, recipient: { processes: [GONE] } }), {
    message: /has ended/
  })
})

function urlOf (host: string, port: number) {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}/`
}
