import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { above } from '../support/event-log.ts'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import type { TestOwner } from '../support/deck.ts'

/**
 * It answers with its own version, that of a file that it reads from its working folder, and what it has noted so far.
 */
const source = (version: string) =>
  `import http from 'node:http'
import { appendFileSync, readFileSync } from 'node:fs'
http.createServer((request, response) => {
  if (request.url === '/note') appendFileSync('data/notes.txt', '${version} ')
  response.end(JSON.stringify({ version: '${version}', built: readFileSync('dist/built.txt', 'utf8'), notes: readFileSync('data/notes.txt', 'utf8') }))
}).listen(0)
`

function build (folder: string, version: string) {
  writeFileSync(path.join(folder, 'app.mjs'), source(version))
  writeFileSync(path.join(folder, 'dist', 'built.txt'), version)
}

async function startInFolders (t: TestOwner, flags: string[]) {
  const folder = tempFolder()
  for (const name of ['dist', 'data']) mkdirSync(path.join(folder, name))
  writeFileSync(path.join(folder, 'package.json'), '{}')
  writeFileSync(path.join(folder, 'data', 'notes.txt'), '')
  build(folder, 'one')
  const dataDir = tempFolder()
  const deck = await startReadyHere(t, path.join(folder, 'app.mjs'), { workers: 1, dataDir,
    flags: ['--releases-mode', 'folder', '--drain-idle-grace-ms', '100', ...flags], cwd: folder })
  const ask = async (route?: string) => JSON.parse(await deck.ask(route))
  return { deck, folder, dataDir, ask }
}

test('a release runs in a folder of its own, with what all share, whatever becomes of the app\'s folder', async (t) => {
  const { deck, folder, ask } = await startInFolders(t, ['--releases-shared', 'data'])
  assert.deepEqual(await ask('/note'), { version: 'one', built: 'one', notes: 'one ' })
  build(folder, 'two')
  assert.deepEqual(await ask(), { version: 'one', built: 'one', notes: 'one ' })
  assert.equal((await deck.rollout('deploy')).state, 'succeeded')
  assert.deepEqual(await ask('/note'), { version: 'two', built: 'two', notes: 'one two ' })

  writeFileSync(path.join(folder, 'app.mjs'), 'throw new Error("broken")')
  assert.equal((await deck.rollout('deploy')).state, 'failed')
  assert.equal((await deck.rollout({ kind: 'rollback', release: 'r1' })).state, 'succeeded')
  assert.deepEqual(await ask(), { version: 'one', built: 'one', notes: 'one two ' })

  for (const name of ['app.mjs', 'dist', 'package.json']) rmSync(path.join(folder, name), { recursive: true })
  const { workers: [worker], lastEventId } = await deck.status()
  process.kill(present(worker.pid), 'SIGKILL')
  await deck.untilEvent('worker.ready', { id: above(lastEventId) })
  assert.deepEqual(await ask('/note'), { version: 'one', built: 'one', notes: 'one two one ' })
  assert.equal(readFileSync(path.join(folder, 'data', 'notes.txt'), 'utf8'), 'one two one ')
})

test('a deploy that would lose what the app has written is refused, and says which and where', async (t) => {
  const { deck, folder, dataDir, ask } = await startInFolders(t, [])
  await ask('/note')
  build(folder, 'two')
  const { code, stderr } = await runCliHere(['deploy', '--wait', '--data-dir', deck.folder])
  assert.equal(code, 1)
  assert.match(stderr, /releases\.shared: expected what the app writes, received data\/notes\.txt in the folder of r1/)
  assert.deepEqual(await ask(), { version: 'one', built: 'one', notes: 'one ' })
  assert.deepEqual([existsSync(path.join(dataDir, 'releases', 'r1', 'data', 'notes.txt')),
    existsSync(path.join(dataDir, 'releases', 'r2'))], [true, false])
})
