import assert from 'node:assert/strict'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import type { DeckClient } from '../support/deck-client.ts'

/** A server that says how it was started. */
const TELLS = `#!/usr/bin/env node
const told = () => ({ args: process.argv.slice(2), level: process.env.LEVEL, script: process.env.npm_lifecycle_event, version: process.env.npm_package_version, cwd: process.cwd(), file: __filename, release: process.env.CLUSTERDECK_RELEASE })
require('node:http').createServer((_request, response) => response.end(JSON.stringify(told()))).listen(0)
`

/** `files`: by path; objects become JSON */
function write (files: Record<string, string | object>, folder: string = tempFolder()) {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    writeFileSync(path.join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return folder
}

/** An app whose server is an installed program. */
function writeApp ({ script, version = '1.0.0', folder }: { script: string, version?: string, folder?: string }) {
  const where = write({ 'package.json': { name: 'told', version, scripts: { start: script } },
    'node_modules/teller/package.json': { name: 'teller', bin: 'cli' }, 'node_modules/teller/cli': TELLS }, folder)
  mkdirSync(path.join(where, 'node_modules/.bin'))
  symlinkSync('../teller/cli', path.join(where, 'node_modules/.bin/teller'))
  return where
}

type Told = { release: string, args: string[], version: string, cwd: string, file: string }

/** @returns what its one worker tells */
async function ask (deck: DeckClient): Promise<Told> {
  await deck.until({ ready: 1 })
  return JSON.parse(await deck.ask())
}

async function deploy (deck: DeckClient, order: object = {}) {
  return await deck.post('/rollouts', { kind: 'deploy', ...order })
}

async function deployed (deck: DeckClient, order?: object) {
  const { status, body } = await deploy(deck, order)
  assert.equal(status, 202, JSON.stringify(body))
  const done = await deck.rolloutEnd(body)
  assert.equal(done.state, 'succeeded', done.reason ?? undefined)
}

test('npm start runs the program of the script, as the script says at each deploy', async (t) => {
  const cwd = writeApp({ script: 'LEVEL=one teller --first' })
  const deck = await startDeckHere(t, null, { workers: 1, cwd, flags: ['npm'], args: ['start', '--', 'more'] })
  const first = { args: ['--first', 'more'], level: 'one', script: 'start', version: '1.0.0', cwd,
    file: path.join(cwd, 'node_modules/teller/cli'), release: 'r1' }
  assert.deepEqual(await ask(deck), first)
  assert.match(deck.output.stdout, /^npm start -- more → LEVEL=… node node_modules\/teller\/cli --first more\n/)
  const { path: folder, package: named } = (await deck.status()).release
  assert.deepEqual([folder, named], [cwd, { name: 'told', version: '1.0.0' }])

  write({
    'package.json': { name: 'told', version: '1.1.0', scripts: { start: 'cross-env LEVEL=two teller --second' } }
  }, cwd)
  await deployed(deck)
  assert.deepEqual(await ask(deck), { ...first, args: ['--second', 'more'], level: 'two', version: '1.1.0',
    release: 'r2' })

  write({ 'package.json': { scripts: { start: 'tellr --third' } } }, cwd)
  const { status, body } = await deploy(deck)
  assert.deepEqual([status, body.code], [422, 'invalid-config'])
  assert.match(String(body.detail),
    /^entry: expected a program, received "tellr --third" .* which runs tellr, which is not installed in/)
  assert.equal((await ask(deck)).release, 'r2')
})

test('a folder that is a link is pinned at each deploy, and so is a folder that a deploy names', async (t) => {
  const root = tempFolder()
  for (const version of ['1.0.0', '2.0.0', '3.0.0'])
    writeApp({ script: `teller --of ${version}`, version, folder: path.join(root, version) })
  symlinkSync('1.0.0', path.join(root, 'current'))
  const deck = await startDeckHere(t, null, { workers: 1, cwd: root, flags: ['./current', '--releases-root', root] })
  const expected = (
    version: string
  ) => [['--of', version], version, path.join(root, version), path.join(root, version, 'node_modules/teller/cli')]
  const told = async () => {
    const { args, version, cwd, file } = await ask(deck)
    return [args, version, cwd, file]
  }
  assert.deepEqual(await told(), expected('1.0.0'))
  assert.equal((await deck.status()).release.mode, 'symlink')
  symlinkSync('2.0.0', path.join(root, 'next'))
  renameSync(path.join(root, 'next'), path.join(root, 'current'))
  await deployed(deck)
  assert.deepEqual(await told(), expected('2.0.0'))
  await deployed(deck, { path: '3.0.0' })
  assert.deepEqual(await told(), expected('3.0.0'))
})
