import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { loadConfig } from '../../server/config/config.ts'
import { startAppHere } from '../support/app-here.ts'
import { freePort } from '../support/ports.ts'
import { tempFolder } from '../support/folder.ts'
import { rareOnly } from '../support/rare.ts'

/** Answers each connection with the name of the app and the number of the worker. */
const ANSWERS = `
  const { NAME, PORT, CLUSTERDECK_SLOT } = process.env
  require('node:net').createServer((socket) => socket.end(NAME + CLUSTERDECK_SLOT)).listen(Number(PORT), '127.0.0.1')
`

async function start (t: TestContext, name: string, dispatch: 'shared' | 'sticky' | 'round-robin', port: number = 0) {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), ANSWERS)
  const env = { PATH: process.env.PATH, NAME: name, PORT: String(port) }
  const config = await loadConfig({
    flags: { entry: 'app.js', workers: 2, dispatch, logsMirror: 'off', dataDir: 'data', drainIdleGraceMs: 0 },
    env,
    cwd: folder
  })
  return await startAppHere(t, { config, environment: env, reload: async () => config })
}

function ask (url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8')
    let text = ''
    socket.on('data', (part) => {
      text += part
    }).once('end', () => resolve(text)).once('error', reject)
  })
}

async function answersOf (app: { url: () => string }) {
  return [...new Set(await Promise.all(Array.from({ length: 20 }, () => ask(app.url()))))].sort()
}

describe('apps in one process', () => {
  test('hand out their connections each in its own way, to their own workers alone, also where two ask for the same any port', async (t) => {
    const apps = await Promise.all([start(t, 'a', 'shared'), start(t, 'b', 'round-robin'), start(t, 'c', 'round-robin'),
      start(t, 'd', 'sticky')])
    await Promise.all(apps.map(({ supervisor }) => supervisor.running))
    const [a, b, c, d] = await Promise.all(apps.map(answersOf))
    assert.deepEqual([b, c], [['b1', 'b2'], ['c1', 'c2']])
    for (const [seen, name] of [[a, 'a'], [d, 'd']] as const)
      assert.ok(seen.length > 0 && seen.every((answer) => answer.startsWith(name)), String(seen))
    await apps[1].stop()
    await assert.rejects(ask(apps[1].url()), { code: 'ECONNREFUSED' })
    assert.deepEqual(await answersOf(apps[2]), ['c1', 'c2'])
  })

  for (const dispatch of ['shared', 'round-robin'] as const) {
    test(`do not get each other's connections on one port: to the second one, ${dispatch}, it is in use`, {
      skip: dispatch === 'round-robin' && rareOnly
    }, async (t) => {
      const port = await freePort()
      const first = await start(t, 'first', 'round-robin', port)
      await first.supervisor.running
      const second = await start(t, 'second', dispatch, port)
      const { message: reason } = dispatch === 'shared'
        ? await second.supervisor.startBlocked
        // The primary of node:cluster tells the app, which ends by that.
        : await second.untilEvent(({ type }) => type === 'crash.group-new')
      assert.match(String(reason), /EADDRINUSE/)
      await second.stop()
      assert.deepEqual(await answersOf(first), ['first1', 'first2'])
    })
  }
})
