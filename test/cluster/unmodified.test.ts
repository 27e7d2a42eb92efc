import assert from 'node:assert/strict'
import { once } from 'node:events'
import { lookup } from 'node:dns/promises'
import { readdir, stat, symlink, writeFile } from 'node:fs/promises'
import https from 'node:https'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import { OPTIONS } from '../../server/config/options.ts'
import { askPath, get } from '../support/asking.ts'
import { startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { TLSSocket } from 'node:tls'
import type { DeckClient as Deck } from '../support/deck-client.ts'

async function run (t: TestContext, app: string,
  { workers = 1, ...options }: NonNullable<Parameters<typeof startDeckHere>[2]> = {})
{
  const deck = await startReadyHere(t, app, { workers, ...options })
  return { deck, url: await deck.appUrl() }
}

/** Rolls all workers, and asks again: another process must answer on the same address. */
async function answersAfterDeploy (deck: Deck, ask: () => Promise<string>) {
  const before = (await deck.status()).workers.map(({ pid }) => String(pid))
  const rollout = await deck.rollout('deploy')
  assert.equal(rollout.state, 'succeeded', rollout.reason ?? undefined)
  const answer = await ask()
  const pid = answer.match(/\d+/)?.[0]
  assert.ok(pid && !before.includes(pid), `${answer} comes from a new worker`)
}

describe('unmodified apps', { concurrency: 2 }, () => {
  test('express, with port 0 shared by all workers', async (t) => {
    const { deck, url } = await run(t, 'express-app.cjs', { workers: 2 })
    const { app, workers } = await deck.status()
    assert.equal(app.addresses.length, 1, 'both workers have the same port')
    const { pid, isMain } = JSON.parse(await get(url))
    assert.equal(isMain, true)
    assert.ok(workers.some((worker) => worker.pid === pid))
    await answersAfterDeploy(deck, () => get(url))
  })

  rareTest('a Fastify ES module on localhost answers on 127.0.0.1 and on ::1', async (t) => {
    const port = await freePort()
    const { deck } = await run(t, 'fastify-on-localhost.js', { env: { PORT: String(port) } })
    const { app } = await deck.status()
    const hosts = app.addresses.map((address: string) => new URL(address).hostname).sort()
    for (const host of hosts) assert.match(await get(`http://${host}:${port}/`), /"pid":\d+/)
    const known = await lookup('localhost', { all: true })
    assert.equal(hosts.length, known.length, 'one address for each that localhost has here')
    await answersAfterDeploy(deck, () => get(`http://127.0.0.1:${port}/`))
  })

  rareTest('https, and a session ticket of one worker is good for the next', async (t) => {
    const { deck, url } = await run(t, 'https-app.js')
    assert.match(url, /^https:/)
    const port = Number(new URL(url).port)
    const { session, body } = await tlsGet(port)
    await answersAfterDeploy(deck, () => get(url))
    const later = await tlsGet(port, session)
    assert.notEqual(later.body, body)
    assert.equal(later.isReused, true)
  })

  test('a Unix socket, whose path is there until the master ends, and has the permissions that node would give it', async (t) => {
    const socketPath = path.join(tempFolder(), 'app.sock')
    const deck = await startReadyHere(t, 'unix-socket.js', { workers: 1,
      env: { SOCKET_PATH: socketPath, UMASK: '077' } })
    assert.equal((await stat(socketPath)).mode & 0o777, 0o700, 'as node would give it under this umask')
    assert.deepEqual((await deck.status()).app.addresses, [`unix:${socketPath}`])
    const ask = () => askPath(socketPath)
    await answersAfterDeploy(deck, ask)
    await answersAfterDeploy(deck, ask)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
    await assert.rejects(ask(), { code: 'ENOENT' })
  })

  rareTest(
    'a Unix socket whose path the app removes, before it listens and when it ends, is served by all workers, also after restarts, a crash and a master\'s death',
    async (t) => {
      const socketPath = path.join(tempFolder(), 'app.sock')
      const deck = await startDeck(t, 'removes-its-socket.js', { workers: 2, flags: ['--drain-idle-grace-ms', '50'],
        env: { SOCKET_PATH: socketPath } })
      // A busy machine takes a moment to bring it back.
      const ifRemoved = (error: NodeJS.ErrnoException) => assert.equal(error.code, 'ENOENT')
      const serving = async () => {
        const { workers } = await deck.until({ ready: 2 })
        const pids = workers.map(({ pid }) => String(pid))
        const seen = new Set()
        while (!pids.every((pid: string) => seen.has(pid)))
          seen.add(await askPath(socketPath).catch(ifRemoved))
        assert.equal((await stat(socketPath)).mode & 0o777, 0o666)
      }
      await serving()
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      await serving()
      const [{ pid }] = (await deck.status()).workers
      process.kill(present(pid), 'SIGKILL')
      await deck.untilEvent('worker.exited', { pid })
      await serving()
      await deck.loseMaster()
      await deck.untilEvent('worker.exited', { cause: 'master-lost' })
      await serving()
      assert.deepEqual(await deck.stop(), { code: 0, signal: null })
      assert.deepEqual(await readdir(path.dirname(socketPath)), [])
    }
  )

  for (const [how, env, mode] of [['under a wide umask', { UMASK: '0' }, 0o777], ['for all', { UMASK: '077',
    ALL: 'on' }, 0o766]] as [string, Record<string, string>, number][])
  {
    rareTest(`a Unix socket ${how} has the permissions that node would give it`, async (t) => {
      const socketPath = path.join(tempFolder(), 'app.sock')
      await startReadyHere(t, 'unix-socket.js', { workers: 1, env: { SOCKET_PATH: socketPath, ...env } })
      assert.equal((await stat(socketPath)).mode & 0o777, mode)
    })
  }

  test('a WebSocket echo: one that is open outlives a deploy with its worker, which the status shows, until somebody ends it', async (t) => {
    const { deck, url } = await run(t, 'websocket-echo.js', {
      flags: ['--drain-idle-grace-ms', '100', '--drain-spread-ms', '0']
    })
    const open = async () => {
      const socket = new WebSocket(url.replace('http', 'ws'))
      await once(socket, 'open')
      return socket
    }
    const echo = async (socket: WebSocket) => {
      socket.send('hello')
      return String((await once(socket, 'message'))[0])
    }
    const lasting = await open()
    const answer = await echo(lasting)
    assert.match(answer, /^\d+ hello$/)
    await answersAfterDeploy(deck, async () => {
      const socket = await open()
      return echo(socket).finally(() => socket.terminate())
    })
    assert.equal(await echo(lasting), answer)
    const { workers } = await deck.status()
    const { id, state, holds, keptUntil } = present(workers.find(({ pid }) => answer.startsWith(`${pid} `)))
    assert.deepEqual([state, holds?.webSockets, Date.parse(String(keptUntil)) > Date.now()], ['draining', 1, true])
    const closed = once(lasting, 'close')
    assert.equal((await deck.post(`/workers/${id}/end-connections`)).status, 202)
    assert.equal((await closed)[0], 1012)
    const { message } = await deck.untilEvent('worker.exited', { worker: id })
    assert.match(String(message), /it has closed 1 WebSocket$/)
  })

  test('exclusive servers and UDP sockets stay with their worker; a second shared server, with reusePort too, gets a port of its own that all share', async (t) => {
    const { deck } = await run(t, 'shares-and-keeps.js', { workers: 2 })
    const { app } = await deck.untilStatus(({ app }) => app.addresses.length === 4, 'all four addresses')
    const answers = await Promise.all(app.addresses.map(async (address: string) => JSON.parse(await get(address))))
    assert.equal(new Set(answers.map(({ pid }) => pid)).size, 2, 'each worker has answered on its exclusive port')
    const of = (name: string) => new Set(answers.map(({ ports }) => ports[name])).size
    assert.deepEqual([of('first'), of('second'), of('exclusive')], [1, 1, 2])
    assert.notEqual(answers[0].ports.first, answers[0].ports.second)
  })

  test('an exclusive server at a port of its own choice is shared, and replaced', async (t) => {
    const port = await freePort()
    const { deck, url } = await run(t, 'listens-where-told.js', { workers: 2,
      env: { ADDRESSES: JSON.stringify([{ port, host: '127.0.0.1', exclusive: true }]) } })
    assert.deepEqual((await deck.status()).app.addresses, [`http://127.0.0.1:${port}`])
    await answersAfterDeploy(deck, () => get(url))
  })

  test('an app sees nothing of how it was started, no secret either, and neither do its children and hooks; an entry that is a link has its own name', async (t) => {
    const link = path.join(tempFolder(), 'serve')
    await symlink(fileURLToPath(new URL('../fixtures/tells-what-it-sees.js', import.meta.url)), link)
    // In the file too: `env: { ...process.env }` is what people write.
    const valid = { CLUSTERDECK_EXEC_ARGV: '--no-deprecation', CLUSTERDECK_ARGS: '--colour',
      CLUSTERDECK_FLEET: '127.0.0.1:9', CLUSTERDECK_HEARTBEAT_URL: 'http://127.0.0.1:9/a-secret',
      CLUSTERDECK_ADMIN_PROXY_AUTH_SECRET: 'a-secret-that-is-long' }
    const secret = [...OPTIONS.filter(({ isSecret }) => isSecret).map(({ env }) => env), 'CLUSTERDECK_TOKEN',
      'CLUSTERDECK_ADDED_LATER']
    const env = { ...Object.fromEntries(secret.map((name) => [name, 'a-secret'])), ...valid }
    const config = path.join(tempFolder(), 'clusterdeck.config.mjs')
    await writeFile(config,
      'export default { env: { ...process.env }, hooks: { beforeDeploy: { command: [\'env\'] } } }')
    const deck = await startReady(t, link, { flags: ['--config', config], workers: 1, env })
    const url = await deck.appUrl()
    const { own, child } = JSON.parse(await get(url))
    assert.deepEqual(own.argv.slice(1), [link, '--colour'])
    assert.deepEqual([own.execArgv, child.execArgv], [['--no-deprecation'], ['--no-deprecation']])
    const added = own.env.filter((name: string) => process.env[name] === undefined)
    assert.deepEqual(added.sort(), ['CLUSTERDECK_RELEASE', 'CLUSTERDECK_SLOT'])

    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const { detail } = await deck.untilEvent('hook.succeeded')
    const given = [...String(detail?.output).matchAll(/^(CLUSTERDECK_\w+)=/gm)].map(([, name]) => name)
    assert.deepEqual(given.sort(), ['CLUSTERDECK_FROM_RELEASE', 'CLUSTERDECK_HOOK', 'CLUSTERDECK_RELEASE',
      'CLUSTERDECK_ROLLOUT'])
  })
})

function tlsGet (port: number,
  session: Buffer | undefined = undefined): Promise<{ body: string, session: Buffer | undefined, isReused: boolean }>
{
  return new Promise((resolve, reject) => {
    const options: https.RequestOptions & { session?: Buffer } = { port, host: '127.0.0.1', path: '/', agent: false,
      rejectUnauthorized: false, session, maxVersion: 'TLSv1.2' }
    const request = https.get(options, (response) => {
      const socket = response.socket as TLSSocket
      const result = { session: socket.getSession(), isReused: socket.isSessionReused() }
      let body = ''
      response.setEncoding('utf8').on('data', (text) => {
        body += text
      }).on('end', () => resolve({ body, ...result }))
    })
    request.on('error', reject)
  })
}
