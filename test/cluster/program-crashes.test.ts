import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startReady } from '../support/deck.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { asOtherProgram, withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'

const PROGRAM = `
const { readFileSync } = require('node:fs')
function load () { return JSON.parse(readFileSync('shop.json', 'utf8')).name.toUpperCase() }
const name = load()
require('node:http').createServer((req, res) => res.end(name)).listen(process.env.PORT, '127.0.0.1')
`

test(
  'a bad release of a program is rolled back, for the reason that it has said itself; a later end of a worker has another one',
  { skip: withoutOtherPrograms },
  async (t) => {
    const cwd = tempFolder()
    writeFileSync(path.join(cwd, 'server.js'), PROGRAM)
    writeFileSync(path.join(cwd, 'shop.json'), '{ "name": "good" }')
    const deck = await startReady(t, null, { cwd, args: asOtherProgram(path.join(cwd, 'server.js')), workers: 1,
      env: { PORT: String(await freePort()) } })
    const [{ pid }] = (await deck.status()).workers

    rmSync(path.join(cwd, 'shop.json'))
    const { state, reason } = await deck.rollout('deploy')
    assert.equal(state, 'failed')
    assert.match(String(reason),
      /exited with code 1 before it was ready: Error: ENOENT: no such file or directory, open 'shop\.json'/)
    const [{ culprit, kind, errorName }] = (await deck.api('/crashes')).body.items
    assert.deepEqual([culprit, kind, errorName], ['load (server.js)', 'exception', 'Error'])

    process.kill(present(pid), 'SIGSEGV')
    const end = await deck.untilEvent('worker.exited', { pid })
    assert.match(String(end.message), /was ended by SIGSEGV \(it used memory that is not its own\)$/)
  }
)

test('the words of an error that a Node app logs before it exits are the reason, with the code 3 of one that serves too', async (t) => {
  const file = path.join(tempFolder(), 'app.cjs')
  writeFileSync(file, `
    const end = (words, code) => require('node:net').connect(1, '127.0.0.1').on('error', (error) => { console.error(words, error); process.exit(code) })
    if (require('node:fs').existsSync('${file}.bad')) end('no database:', 1)
    else require('node:http').createServer((request, response) => end('lost the database:', 3)).listen(0)
  `)
  const deck = await startReadyHere(t, file, { workers: 1 })
  await fetch(await deck.appUrl()).catch(() => {})
  const { message } = await deck.untilEvent('worker.exited')
  assert.match(String(message), /exited with code 3: lost the database: Error: connect ECONNREFUSED 127\.0\.0\.1:1$/)

  await deck.until({ ready: 1 })
  writeFileSync(`${file}.bad`, '')
  const { reason } = await deck.rollout('deploy')
  assert.match(String(reason),
    /exited with code 1 before it was ready: no database: Error: connect ECONNREFUSED 127\.0\.0\.1:1$/)
})
