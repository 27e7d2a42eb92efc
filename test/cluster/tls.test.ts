import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { test } from 'node:test'
import tls from 'node:tls'
import { fileURLToPath } from 'node:url'
import { createCertificate } from '../../server/admin/certificate.ts'
import { startAdmin } from '../support/admin.ts'
import { FIXTURES, runCli, spawnCli } from '../support/deck.ts'
import { fake } from '../support/fake.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'
import type { Timers } from '../../server/admin/site.ts'

const FILES = fileURLToPath(new URL('../fixtures/tls/', import.meta.url))
const [CERT, KEY] = ['cert.pem', 'key.pem'].map((name) => path.join(FILES, name))

test('with a certificate the admin port speaks https, and the command line knows its master by it', async (t) => {
  const folder = tempFolder()
  const { exited, output } = spawnCli(t, ['start', path.join(FIXTURES, 'answers-with-pid.js'), '--workers', '1',
    '--admin-port', '0', '--data-dir', folder, '--admin-tls-cert', CERT, '--admin-tls-key', KEY])
  await until(() => /admin .*https:\/\/127\.0\.0\.1:\d+/.test(output.stdout), () => output.stdout + output.stderr)
  const cli = (...args: string[]) => runCli([...args, '--data-dir', folder])

  const { code, stdout, stderr } = await cli('status', '--json')
  assert.deepEqual([code, JSON.parse(stdout).state, stderr], [0, 'running', ''])
  assert.match((await cli('open', '--json')).stdout, /https:\/\/127\.0\.0\.1:\d+\/sign-in/)
  assert.equal((await cli('history', '--limit', '1')).code, 0)

  const file = path.join(folder, 'master.json')
  const announced = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file,
    JSON.stringify({ ...announced,
      fingerprint: announced.fingerprint.replace(/^../, (byte: string) => byte === '00' ? '01' : '00') }))
  const stranger = await cli('status')
  assert.equal(stranger.code, 5)
  assert.match(stranger.stderr, /another certificate than that of the master/)
  writeFileSync(file, JSON.stringify({ ...announced, fingerprint: null }))
  assert.equal((await cli('status')).code, 5, 'nobody has signed it')

  writeFileSync(file, JSON.stringify(announced))
  assert.equal((await cli('stop')).code, 0)
  assert.deepEqual(await exited, { code: 0, signal: null })
})

test('a renewed certificate is taken from the same files, and what is none is not', async (t) => {
  const folder = tempFolder()
  mkdirSync(folder, { recursive: true })
  const files = { cert: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') }
  const put = (from: string) => {
    for (const name of ['cert.pem', 'key.pem']) {
      copyFileSync(path.join(FILES, from, name), path.join(folder, `new-${name}`))
      renameSync(path.join(folder, `new-${name}`), path.join(folder, name))
    }
  }
  put('.')
  const renewed: string[] = []
  const errors: unknown[] = []
  let look = () => {}
  const certificate = createCertificate(files, { onRenewed: (fingerprint) => renewed.push(fingerprint),
    onError: (error) => errors.push(error), timers: fake<Timers>({ setInterval (run: () => void) {
      look = run
      return {}
    }, clearInterval () {} }) })
  const admin = await startAdmin(t, { certificate })
  const shown = async () => {
    const socket = tls.connect({ port: admin.port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  const first = certificate.fingerprint
  assert.equal(await shown(), first)
  look()
  assert.deepEqual([renewed, errors], [[], []])

  writeFileSync(files.key, 'half of it')
  look()
  assert.equal(errors.length, 1)
  assert.equal(await shown(), first)
  put('renewed')
  look()
  assert.notEqual(await shown(), first)
  assert.deepEqual(renewed, [await shown()])
  assert.throws(
    () => createCertificate({ ...files, key: CERT }, { onRenewed () {}, onError () {}, timers: globalThis }),
    { code: 'invalid-config', message: /^admin\.tls: expected a certificate and its private key as PEM/ }
  )
  assert.throws(
    () => createCertificate({ ...files, key: '/nowhere' }, { onRenewed () {}, onError () {}, timers: globalThis }),
    { code: 'invalid-config', message: 'admin.tls.key: expected a file that can be read, received /nowhere (ENOENT)' }
  )
})

rareTest('over TLS too, whoever is silent makes way for who asks', async (t) => {
  const certificate = createCertificate({ cert: CERT, key: KEY }, { onRenewed () {}, onError () {},
    timers: globalThis })
  const admin = await startAdmin(t, { certificate, maxConnections: { maxKnown: 4, maxStrangers: 4 } })
  const silent = Array.from({ length: 40 },
    () => tls.connect({ port: admin.port, host: '127.0.0.1', rejectUnauthorized: false }).on('error', () => {}))
  t.after(() => {
    for (const socket of silent) socket.destroy()
  })
  await Promise.all(
    silent.slice(20).map((socket) => Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]))
  )
  const socket = tls.connect({ port: admin.port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nConnection: close\r\n\r\n`)
  let answer = ''
  for await (const text of socket.setEncoding('utf8')) answer += text
  assert.match(answer, /^HTTP\/1\.1 200 /)
  const cut = silent.filter((each) => each.destroyed || each.closed)
  assert.ok(cut.length > 0, 'of those that say nothing, some are gone')
  const plain = await new Promise((resolve) =>
    http.get({ port: admin.port, host: '127.0.0.1', path: '/healthz' }, resolve).on('error',
      ({ code }: NodeJS.ErrnoException) => resolve(code))
  )
  assert.equal(plain, 'ECONNRESET')
})
