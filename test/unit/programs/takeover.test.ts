import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { holderText, processText } from '../../../server/programs/holder.ts'
import { takePlaces } from '../../../server/programs/takeover.ts'
import { loadSystemCalls } from '../../../server/programs/system-calls.ts'
import { get } from '../../support/asking.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'

const SERVER = `const net = require('net'); const http = require('http')
  const server = http.createServer((_, response) => response.end(process.argv[1]))
  server.listen(JSON.parse(process.argv[2]), () => console.log(server.address().port ?? 0))`

/** `passed`: descriptors, from 3 on */
async function serve (t: TestContext, answer: string, place: object, passed: number[] = []) {
  const child = spawn(process.execPath, ['-e', SERVER, answer, JSON.stringify(place)], {
    stdio: ['ignore', 'pipe', 'inherit', ...passed]
  })
  t.after(() => {
    child.kill('SIGKILL')
  })
  const [line] = await once(child.stdout!, 'data')
  return { child, pid: Number(child.pid), port: Number(line) }
}

/** @returns who answers 20 connections, each once */
async function answers (port: number): Promise<string> {
  const all = []
  for (let n = 0; n < 20; n++) all.push(await get(`http://127.0.0.1:${port}/`))
  return [...new Set(all)].sort().join(' ')
}

const skip = loadSystemCalls() ? false : 'not on this machine'

test(
  'beside a program that serves, others listen on its port: it gets all connections until they are ready, then they do, and it may end',
  { skip },
  async (t) => {
    const { child, pid, port } = await serve(t, 'old', { port: 0 })
    const takeover = takePlaces([pid])
    t.after(takeover.close)
    const [{ fd, host, port: at, index }] = takeover.open()
    assert.deepEqual([host, at, index], ['::', port, 1])
    takeover.holdBack()
    await serve(t, 'new', { fd: 3 }, [fd])
    await until(async () => await answers(port) === 'old', 'the program to get all connections')
    assert.equal(await answers(port), 'old')
    takeover.steer()
    assert.equal(await answers(port), 'new')
    assert.equal(takeover.queued(), 0)
    child.kill('SIGTERM')
    await once(child, 'exit')
    takeover.close()
    assert.equal(await answers(port), 'new')
  }
)

test('the socket of a path is a copy of that of the program', { skip }, async (t) => {
  const file = path.join(tempFolder(), 'app.sock')
  const { pid } = await serve(t, 'old', { path: file })
  const takeover = takePlaces([pid])
  t.after(takeover.close)
  assert.deepEqual(takeover.open().map(({ path: place, index }) => [place, index]), [[file, null]])
  assert.ok(existsSync(file))
})

test('of a process that listens nowhere there is nothing to take', { skip }, async (t) => {
  // Not this one: other tests in it may listen.
  const child = spawn(process.execPath, ['-e', 'console.log("runs"); setInterval(() => {}, 60_000)'], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.after(() => {
    child.kill('SIGKILL')
  })
  await once(child.stdout, 'data')
  assert.deepEqual(takePlaces([Number(child.pid)]).open(), [])
})

test('who has a port is said by command and process, with the command that takes its place', { skip }, async (t) => {
  const { pid, port } = await serve(t, 'old', { port: 0 })
  assert.match(String(holderText(port)),
    new RegExp(
      `^node … \\(pid ${pid}[^)]*\\) listens there; without a gap, it is replaced by: clusterdeck adopt --port ${port}$`
    ))
  assert.equal(holderText(1), null)
})

test('of a command line no more is told than which program it runs, as arguments may be secret', () => {
  const textOf = (...words: string[]) => processText(fake({ pid: 0, words, env: {} }))
  assert.equal(textOf('/usr/bin/node', '--require=./x.cjs', 'app.js', '--token', 'x'),
    'node --require=… app.js … (pid 0)')
  assert.equal(textOf('python3', '-m', 'uvicorn', 'app:app'), 'python3 -m uvicorn … (pid 0)')
  assert.equal(textOf('sh', '-c', 'TOKEN=x serve'), 'sh … (pid 0)')
  assert.equal(textOf('./server'), './server (pid 0)')
})
